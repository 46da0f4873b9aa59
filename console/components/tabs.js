// The parts of a page. Each tab is a link, so that it has an address and the browser's back button works.
import { html } from '../vendor/htm-preact.js';

/** `items` is a list of {id, href, label, count?}; `current` the id of the one in sight. */
export function Tabs({ label, items, current }) {
  return html`<nav class="tabs" aria-label=${label}>${items.map((item) =>
    html`<a key=${item.id} href=${item.href} aria-current=${item.id === current ? 'page' : undefined}>${item.label}${
      item.count !== undefined && html`<span class="tab-count">${item.count}</span>`}</a>`)}</nav>`;
}
