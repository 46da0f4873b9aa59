// Names that others chose: of objects, tensors, metadata. They are text and nothing else, and what could mislead in them is shown.
import { html } from '../vendor/htm-preact.js';

const SIGNS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Control characters, and the marks that turn or hide text, by their numbers. */
export function visible(text) {
  return String(text).replace(SIGNS, (sign) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`);
}

/** A name on one line, cut where it is too long; the whole of it is its title. */
export function Name({ text }) {
  const shown = visible(text);
  return html`<bdi class="clip" title=${shown}>${shown}</bdi>`;
}
