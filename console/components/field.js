// Fields of forms.
import { html, useEffect, useRef } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';
import { useElementId } from './hooks.js';

/** A field with its name, a line of help and a fault. `children(id)` gives the control, which takes the id. */
export function Field({ label, help, fault, children }) {
  const id = useElementId();
  return html`<div class="field"><label class="field-name" for=${id}>${label}</label>
    ${children(id)}
    ${help && html`<span class="field-help">${help}</span>`}
    ${fault && html`<span class="field-fault" role="alert">${fault}</span>`}</div>`;
}

/** A text field. `onChange(value)`. The rest of its properties go to the input. */
export function TextField({ label, help, fault, value, onChange, mono, ...rest }) {
  return html`<${Field} label=${label} help=${help} fault=${fault}>${(id) => html`<input id=${id} class="input ${mono ? 'mono' : ''}"
    value=${value} aria-invalid=${fault ? 'true' : undefined} onInput=${(event) => onChange(event.target.value)} ...${rest} />`}<//>`;
}

/** A choice. `options` is a list of [value, text]. */
export function SelectField({ label, help, value, options, onChange }) {
  return html`<${Field} label=${label} help=${help}>${(id) => html`<select id=${id} class="input" value=${value}
    onChange=${(event) => onChange(event.target.value)}>${options.map(([one, text]) => html`<option key=${one} value=${one}>${text}</option>`)}</select>`}<//>`;
}

export function CheckField({ label, help, value, onChange }) {
  const id = useElementId();
  return html`<div class="check"><input type="checkbox" id=${id} checked=${value} onChange=${(event) => onChange(event.target.checked)} />
    <div><label for=${id}>${label}</label>${help && html`<span class="field-help">${help}</span>`}</div></div>`;
}

/** A page's search field: the key / leads to it, Esc empties it and leaves it. */
export function Search({ label, value, onChange, placeholder = 'Filter' }) {
  const input = useRef(null);
  useEffect(() => {
    const lead = (event) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      event.preventDefault();
      input.current.focus();
      input.current.select();
    };
    document.addEventListener('keydown', lead);
    return () => document.removeEventListener('keydown', lead);
  }, []);
  const escape = (event) => {
    if (event.key !== 'Escape') return;
    onChange('');
    input.current.blur();
  };
  return html`<div class="search"><${Icon} name="search" />
    <input ref=${input} class="input" type="text" inputmode="search" aria-label=${label} aria-keyshortcuts="/" placeholder=${placeholder} value=${value}
      spellcheck=${false} autocomplete="off" onInput=${(event) => onChange(event.target.value)} onKeyDown=${escape} />
    <kbd class="hide-phone" aria-hidden="true">/</kbd></div>`;
}

/** Two or more choices side by side. `options` is a list of [value, text]. */
export function Segments({ label, value, options, onChange }) {
  return html`<div class="segments" role="group" aria-label=${label}>${options.map(([one, text]) =>
    html`<button key=${one} type="button" aria-pressed=${one === value ? 'true' : 'false'} onClick=${() => onChange(one)}>${text}</button>`)}</div>`;
}

function typing(node) {
  return node.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(node.tagName) || node.closest('dialog[open]');
}
