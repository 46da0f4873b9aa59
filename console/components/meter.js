// Bars of parts, figures, and states in words.
import { html } from '../vendor/htm-preact.js';

/** A bar. `parts` is a list of {value, kind, label}; kinds: accent (default), ok, warn, bad, mute, rest. `label` says it in words. */
export function Meter({ parts, label, legend }) {
  const shown = parts.filter((part) => part.value > 0);
  return html`<div>
    <div class="meter" role="img" aria-label=${label}>${shown.map((part) =>
      html`<span key=${part.label} class=${part.kind || ''} style=${{ flexGrow: part.value, flexBasis: 0, minWidth: '2px' }}></span>`)}</div>
    ${legend && html`<ul class="legend">${parts.filter((part) => part.text !== undefined).map((part) =>
      html`<li key=${part.label}><i class=${part.kind || ''}></i>${part.text}</li>`)}</ul>`}
  </div>`;
}

/** A figure: a large number with its name, a note and a picture. It keeps its place while the number is unknown. */
export function Figure({ name, value, unit, note, children }) {
  return html`<div class="figure"><div class="figure-name">${name}</div>
    <div class="figure-value">${value}${unit && html` <span class="unit">${unit}</span>`}</div>
    ${note !== undefined && html`<div class="figure-note">${note}</div>`}
    ${children && html`<div class="figure-art">${children}</div>`}</div>`;
}

/** A figure that is a switch. `kind` colours its number: warn or bad. */
export function FigureButton({ name, value, kind, pressed, onClick }) {
  return html`<button type="button" class="figure" aria-pressed=${pressed ? 'true' : 'false'} onClick=${onClick}>
    <span class="figure-name">${name}</span> <span class="figure-value ${kind || ''}">${value}</span></button>`;
}

/** A state in words behind a dot. `kind`: ok, warn, bad, busy, or nothing. */
export function State({ kind, children }) {
  return html`<span class="state ${kind || ''}"><i></i>${children}</span>`;
}
