// The frame of a page: its head, its sections, notices, and what stands there while nothing or a fault is known.
import { html, useEffect } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';
import { CopyLine } from './copy.js';
import { useElementId, useTitle } from './hooks.js';

/** A page's head. `crumbs` is a list of [text, href]; `lead` one line below the title; children are the actions at its end. */
export function Head({ title, lead, crumbs, children }) {
  useTitle(title);
  return html`<header class="head">
    <div class="head-text">
      ${crumbs && html`<nav aria-label="Where this page is"><ol class="crumbs">${crumbs.map(([text, href]) =>
        html`<li key=${href}><a href=${href}>${text}</a></li>`)}</ol></nav>`}
      <h1>${title}</h1>
      ${lead !== undefined && html`<p class="lead">${lead}</p>`}
    </div>
    ${children && html`<div class="actions">${children}</div>`}
  </header>`;
}

/** A part of a page with its heading. `actions` stand at the heading's end. */
export function Section({ title, note, actions, children }) {
  const id = useElementId();
  return html`<section class="section" aria-labelledby=${id}>
    <div class="section-head"><h2 id=${id}>${title}${note && html` <span class="section-note">${note}</span>`}</h2>${actions}</div>
    ${children}
  </section>`;
}

/** One sentence that an operator should read. `kind`: warn, bad, calm. */
export function Notice({ kind = 'warn', children, action }) {
  return html`<div class="notice ${kind}"><${Icon} name=${kind === 'calm' ? 'back' : 'alert'} />
    <div class="notice-text">${children}</div>${action}</div>`;
}

/** Where a list is empty: what to do, and the command to type. */
export function Empty({ title, children, command, action }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}
    ${command && html`<${CopyLine} text=${command} />`}
    ${action && html`<div class="actions">${action}</div>`}</div>`;
}

export function Waiting() {
  return html`<div class="wait" role="status"><span>Loading…</span></div>`;
}

const RETRY_MS = 3000;

/**
 * What went wrong, for people: the server's sentence, its code and the request's id for its log. While the server is not reached it
 * calls `retry` by itself, until that brings no new fault.
 */
export function Fault({ fault, retry }) {
  const away = fault.code === 'unreachable';
  useEffect(() => {
    if (!away || !retry) return undefined;
    const timer = setTimeout(() => retry(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [fault]);
  return html`<div class="notice bad" role="alert"><${Icon} name="alert" />
    <div class="notice-text">${fault.message}${away && retry ? ' Trying again…' : ''}
      ${fault.code && !away && html`<div class="small soft">${fault.code}${fault.requestId && html` · request <code>${fault.requestId}</code>`}</div>`}
    </div>
    ${retry && html`<button class="button small" onClick=${() => retry()}>Try again</button>`}
  </div>`;
}

/** Shows what `useLoad` gave: waiting, a fault, or `children(data)`. */
export function Loaded({ from, children }) {
  if (from.data !== undefined) return html`<div>${from.fault && html`<${Fault} fault=${from.fault} retry=${from.reload} />`}${children(from.data)}</div>`;
  return from.fault ? html`<${Fault} fault=${from.fault} retry=${from.reload} />` : html`<${Waiting} />`;
}
