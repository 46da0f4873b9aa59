// A list of cards: what a table shows, where the screen has no room for its columns. Cards are as high as what they say.
import { html } from '../vendor/htm-preact.js';

/** `card(row)` is what a card holds: a `card-head` and lines below it. `label`, `rows`, `rowKey`, `empty` and `foot` are those of a Table. */
export function Cards({ label, rows, rowKey, card, empty, foot }) {
  return html`<div class="table-frame">
    ${rows.length === 0 ? empty : html`<ul class="cards" aria-label=${label}>${rows.map((row) => html`<li key=${rowKey(row)}>${card(row)}</li>`)}</ul>`}
    ${foot && html`<div class="table-foot">${foot}</div>`}</div>`;
}
