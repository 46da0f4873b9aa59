// A table that stays smooth with tens of thousands of rows, while some of them change every second.
//
// Rows have one height, so the place of each is known without drawing it: only those in sight (and a few around them) are in the
// document, between two rows of empty space. Sorting is by `value` of a column. While the pointer or the focus is in the table the
// order is held, so that no row slips away under a click; rows still change in place, new ones come at the end.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';

const ROW = 40;
const AROUND = 8;

/**
 * Properties:
 * - `label`: the table's name for screen readers; `rows`; `rowKey(row)`: a text or number of its own for each row
 * - `columns`: a list of {id, label, cell(row), value?(row), end?: true (numbers stand right), width?: '120px', hide?: 'phone' | 'tablet', only?: 'narrow'};
 *   with `value` the column can be sorted, null comes last; `name` says for screen readers what a column without a label is, `head` is a control
 *   that stands in its head
 * - `sort`: {id, descending} at first; without it the rows keep their order
 * - `href(row)` or `onOpen(row)`: what a click or Enter does; `selected`: the key of a row that is marked
 * - `height`: how high it may grow, in px, before it scrolls by itself; `empty`: what stands there without rows
 * - `foot`: a line below; `hold={false}`: never holds the order
 */
export function Table({ label, columns, rows, rowKey, sort, href, onOpen, selected, height = 640, empty, foot, hold = true }) {
  const [order, setOrder] = useState(sort || null);
  const [view, setView] = useState({ top: 0, height });
  const [active, setActive] = useState(0);
  const [inside, setInside] = useState(false);
  const scroller = useRef(null);
  const held = useRef(null);
  const leadTo = useRef(null);
  const sorted = useMemo(() => {
    const column = order && columns.find((one) => one.id === order.id);
    const key = JSON.stringify(order);
    if (hold && inside && held.current && held.current.key === key) return keepOrder(held.current.rows, rows, rowKey);
    return column && column.value ? sortRows(rows, column.value, order.descending) : rows;
  }, [rows, order, inside]);
  held.current = { key: JSON.stringify(order), rows: sorted };

  useEffect(() => {
    const node = scroller.current;
    if (!node) return undefined;
    const measure = () => setView((before) => {
      const top = Math.floor(node.scrollTop / ROW);
      const shown = node.clientHeight;
      return before.top === top && before.height === shown ? before : { top, height: shown };
    });
    measure();
    node.addEventListener('scroll', measure, { passive: true });
    const watcher = new ResizeObserver(measure);
    watcher.observe(node);
    return () => { node.removeEventListener('scroll', measure); watcher.disconnect(); };
  }, [rows.length === 0]);

  // A row that the keyboard leads to may have to be scrolled into the document first.
  useLayoutEffect(() => {
    const row = leadTo.current !== null && scroller.current && scroller.current.querySelector(`tr[data-at="${leadTo.current}"]`);
    if (!row) return;
    leadTo.current = null;
    row.focus({ preventScroll: true });
  });

  if (rows.length === 0 && empty) return html`<div class="table-frame">${empty}</div>`;
  const first = Math.max(0, Math.min(view.top - AROUND, sorted.length - 1));
  const last = Math.min(sorted.length, view.top + Math.ceil(view.height / ROW) + AROUND);
  const at = Math.min(active, sorted.length - 1);
  const open = href || onOpen;
  const go = (row) => { if (href) location.hash = href(row).replace(/^#/, ''); else if (onOpen) onOpen(row); };
  const move = (to) => {
    const next = Math.max(0, Math.min(sorted.length - 1, to));
    leadTo.current = next;
    setActive(next);
    reveal(scroller.current, next);
  };
  const page = Math.max(1, Math.floor(view.height / ROW) - 2);
  const moves = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: sorted.length - 1 };
  const press = (event) => {
    if (event.target.tagName !== 'TR' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) { event.preventDefault(); move(moves[event.key]); }
    if (event.key === 'Enter' && open) { event.preventDefault(); go(sorted[at]); }
  };
  const turn = (column) => setOrder((before) => ({
    id: column.id, descending: before && before.id === column.id ? !before.descending : Boolean(column.end) }));
  const events = {
    onMouseEnter: () => setInside(true), onMouseLeave: () => setInside(false), onFocusIn: () => setInside(true),
    onFocusOut: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) setInside(false); },
  };

  return html`<div class="table-frame">
    <div class="table-scroll" ref=${scroller} style=${{ maxHeight: `${height}px` }} onKeyDown=${press}>
      <table class="table" role="grid" aria-label=${label} aria-rowcount=${sorted.length + 1}>
        <colgroup>${columns.map((column) => html`<col key=${column.id} class=${hiding(column)} style=${{ width: column.width || 'auto' }} />`)}</colgroup>
        <thead><tr aria-rowindex="1">${columns.map((column) => html`<th key=${column.id} scope="col" class="${column.end ? 'end' : ''} ${hiding(column)}"
          aria-sort=${order && order.id === column.id ? (order.descending ? 'descending' : 'ascending') : undefined}>${
          column.head ? column.head : column.value ? html`<button type="button" onClick=${() => turn(column)}>${column.label}<${Icon} name=${order && order.id === column.id && order.descending ? 'down' : 'up'} /></button>`
            : column.label || html`<span class="hidden-text">${column.name || 'Actions'}</span>`}</th>`)}</tr></thead>
        <tbody ...${events}>
          ${first > 0 && html`<tr key="above" class="space" aria-hidden="true"><td style=${{ height: `${first * ROW}px` }}></td></tr>`}
          ${sorted.slice(first, last).map((row, i) => html`<${Row} key=${rowKey(row)} row=${row} columns=${columns} at=${first + i}
            active=${first + i === at} selected=${selected !== undefined && rowKey(row) === selected} href=${href} open=${open ? go : null} enter=${setActive} />`)}
          ${last < sorted.length && html`<tr key="below" class="space" aria-hidden="true"><td style=${{ height: `${(sorted.length - last) * ROW}px` }}></td></tr>`}
        </tbody>
      </table>
    </div>
    ${foot && html`<div class="table-foot">${foot}</div>`}
  </div>`;
}

function Row({ row, columns, at, active, selected, href, open, enter }) {
  const click = (event) => {
    if (event.target.closest('a, button, input, select, label')) return;
    enter(at);
    if (open && !String(getSelection())) open(row);
  };
  return html`<tr class=${open ? 'open-able' : ''} data-at=${at} aria-rowindex=${at + 2} aria-selected=${selected ? 'true' : undefined}
    tabindex=${active ? 0 : -1} onClick=${click} onFocus=${() => enter(at)}>${columns.map((column, i) => {
      const content = column.cell(row);
      return html`<td key=${column.id} class="${column.end ? 'end' : ''} ${hiding(column)}">${
        i === 0 && href ? html`<a href=${href(row)} tabindex="-1">${content}</a>` : content}</td>`;
    })}</tr>`;
}

function hiding(column) { return column.hide ? `hide-${column.hide}` : column.only ? `only-${column.only}` : ''; }

function sortRows(rows, value, descending) {
  const turned = descending ? -1 : 1;
  const keyed = rows.map((row, at) => ({ row, at, key: value(row) }));
  keyed.sort((a, b) => {
    const none = (a.key === null || a.key === undefined) - (b.key === null || b.key === undefined);
    if (none) return none;
    if (a.key < b.key) return -turned;
    return a.key > b.key ? turned : a.at - b.at;
  });
  return keyed.map((one) => one.row);
}

// The rows as they are now, in the order in which they were.
function keepOrder(before, rows, rowKey) {
  const now = new Map(rows.map((row) => [rowKey(row), row]));
  const kept = [];
  for (const row of before) {
    const key = rowKey(row);
    if (!now.has(key)) continue;
    kept.push(now.get(key));
    now.delete(key);
  }
  return [...kept, ...now.values()];
}

function reveal(node, at) {
  const head = 36;
  const top = at * ROW;
  if (top < node.scrollTop) node.scrollTop = top;
  else if (top + ROW + head > node.scrollTop + node.clientHeight) node.scrollTop = top + ROW + head - node.clientHeight;
}
