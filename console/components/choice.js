// Rows of a table that are chosen by boxes: one box for each row, and one in the head for all that are loaded.
import { html, useLayoutEffect, useRef, useState } from '../vendor/htm-preact.js';
import { count, some } from './format.js';
import { visible } from '../pages/name.js';

/**
 * Rows have {id, name}. Returns {picked, column, clear, focus}: the rows that are chosen, the table's first column, `clear()` which
 * chooses none, and `focus()` which leads to the box in the head.
 */
export function useChoice(rows) {
  const [chosen, setChosen] = useState(new Set());
  const box = useRef(null);
  const picked = rows.filter((row) => chosen.has(row.id));
  const isAll = rows.length > 0 && picked.length === rows.length;
  useLayoutEffect(() => { if (box.current) box.current.indeterminate = picked.length > 0 && !isAll; });
  const choose = (id, on) => setChosen((before) => new Set(on ? [...before, id] : [...before].filter((one) => one !== id)));
  const chooseAll = (on) => setChosen(new Set(on ? rows.map((row) => row.id) : []));
  const column = {
    id: 'choose', name: 'Choose', width: '48px',
    head: html`<input type="checkbox" class="choice" ref=${box} aria-label=${`Choose all ${count(rows.length)} loaded`} title="Choose all that are loaded"
      checked=${isAll} onChange=${(event) => chooseAll(event.target.checked)} />`,
    cell: (row) => html`<input type="checkbox" class="choice" aria-label=${`Choose ${visible(row.name)}`} checked=${chosen.has(row.id)}
      onChange=${(event) => choose(row.id, event.target.checked)} />`,
  };
  return { picked, column, clear: () => setChosen(new Set()), focus: () => { if (box.current) box.current.focus(); } };
}

/** The line above a table that says how many rows are chosen, with what can be done to them (`children`). `more`: not all rows are loaded. */
export function Chosen({ choice, rows, more, children }) {
  const { picked } = choice;
  const said = picked.length ? `${some('entry', picked.length, 'entries')} chosen` : '';
  const clear = () => { choice.clear(); choice.focus(); };
  return html`<div>
    <span class="hidden-text" role="status">${said}</span>
    ${said && html`<div class="selection" role="region" aria-label="What is chosen">
      <span class="strong">${said}</span>
      ${more && picked.length === rows.length && html`<span class="soft">More are not loaded yet.</span>`}
      ${children}
      <button type="button" class="button small plain" onClick=${clear}>Clear selection</button>
    </div>`}</div>`;
}
