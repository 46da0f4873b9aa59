// Which weights a step changed: a map of heat over the layers, and the same as a table of all tensors. The map is a table too: every
// cell has its number, so that it needs no other text.
import { html, useMemo, useState } from '../../vendor/htm-preact.js';
import { all } from '../../api.js';
import { bytes, count, percent } from '../../components/format.js';
import { useLoad } from '../../components/hooks.js';
import { Search, Segments } from '../../components/field.js';
import { Empty, Fault, Section, Waiting } from '../../components/page.js';
import { Table } from '../../components/table.js';
import { runPath } from './run_data.js';

const KINDS_MOST = 24;
const OUTSIDE_MOST = 24;

/** What stands where a step has no base. */
export const WHOLE = 'Nothing to compare with: this step is whole.';

export function Changes({ bucket, name, step, base, counted }) {
  const from = useLoad((signal) => (counted ? tensorsOf(runPath(bucket, name, 'steps', step, 'changes'), signal) : Promise.resolve(null)), [step, Boolean(counted)]);
  const [view, setView] = useState('map');
  const switches = from.data && html`<${Segments} label="How the tensors are shown" value=${view} options=${[['map', 'Map'], ['table', 'Table']]} onChange=${setView} />`;
  return html`<${Section} title="Changed weights" actions=${switches}>
    ${from.fault && from.fault.status !== 404 ? html`<${Fault} fault=${from.fault} retry=${from.reload} />`
      : from.loading ? html`<${Waiting} />`
        : !from.data && !base ? html`<div class="panel"><${Empty} title=${WHOLE} /></div>`
          : !from.data ? html`<div class="panel"><${Empty} title="Unknown">The changes of this step have not been counted. The server counts them when it proves a step.<//></div>`
          : view === 'map' ? html`<${Heat} tensors=${from.data} />` : html`<${Tensors} tensors=${from.data} />`}
  <//>`;
}

function tensorsOf(path, signal) { return all(path, 'tensors', { query: { limit: 10000 }, cursor: 'from', signal }); }

/** Where a tensor stands in the map: {layer, kind}. A number between dots is the layer, the first one; further numbers (experts) are `*`. */
export function placeOf(name) {
  const parts = name.split('.');
  const at = parts.findIndex((part) => /^[0-9]+$/.test(part));
  const kind = (at < 0 ? parts : parts.slice(at + 1)).map((part) => (/^[0-9]+$/.test(part) ? '*' : part));
  if (kind.length > 1 && kind.at(-1) === 'weight') kind.pop();
  return { layer: at < 0 ? null : Number(parts[at]), kind: kind.join('.') || name };
}

function Heat({ tensors }) {
  const { layers, kinds, cells, outside, most, left } = useMemo(() => mapOf(tensors), [tensors]);
  return html`<div class="panel">
    ${layers.length > 0 && html`<div class="heat-scroll" tabindex="0" role="region" aria-label="Map of changed weights"><table class="heat">
      <caption class="hidden-text">The share of changed elements, for each layer and kind of tensor</caption>
      <thead><tr><th scope="col">Layer</th>${kinds.map((kind) => html`<th key=${kind} scope="col">${kind.split('.').map((part) => html`<span key=${part}>${part}</span>`)}</th>`)}</tr></thead>
      <tbody>${layers.map((layer) => html`<tr key=${layer}><th scope="row">${layer}</th>${kinds.map((kind) =>
        html`<${Cell} key=${kind} cell=${cells.get(`${layer} ${kind}`)} most=${most} />`)}</tr>`)}</tbody>
    </table></div>`}
    ${outside.length > 0 && html`<ul class="heat-outside" aria-label="Tensors outside the layers">${outside.map((cell) => html`<li key=${cell.names}>
      <span class="heat-name" title=${cell.names}>${cell.names}</span><span class="heat-value" style=${{ '--heat': heatOf(cell, most) }}>${percent(shareOf(cell))}</span></li>`)}</ul>`}
    <div class="table-foot"><span class="heat-scale">0 % <i></i> ${percent(most)}</span>${left > 0 && html`<span>${count(left)} kinds of tensors stand in the table alone.</span>`}</div>
  </div>`;
}

function Cell({ cell, most }) {
  if (!cell) return html`<td class="none"></td>`;
  return html`<td style=${{ '--heat': heatOf(cell, most) }} title="${cell.names}: ${count(cell.changed)} of ${count(cell.elements)} elements">${percent(shareOf(cell))}</td>`;
}

function shareOf(cell) { return cell.elements ? cell.changed / cell.elements : 0; }

// The root of the share: small shares differ in sight too.
function heatOf(cell, most) { return `${(most ? 100 * Math.sqrt(shareOf(cell) / most) : 0).toFixed(1)}%`; }

function mapOf(tensors) {
  const cells = new Map();
  const kinds = new Set();
  const layers = new Set();
  const outside = [];
  for (const tensor of tensors) {
    const { layer, kind } = placeOf(tensor.name);
    if (layer === null) { outside.push({ ...tensor, names: tensor.name }); continue; }
    const key = `${layer} ${kind}`;
    const cell = cells.get(key) || { elements: 0, changed: 0, names: tensor.name };
    cells.set(key, { elements: cell.elements + tensor.elements, changed: cell.changed + tensor.changed, names: cell.elements ? `${kind}, several tensors` : tensor.name });
    kinds.add(kind);
    layers.add(layer);
  }
  const shown = [...kinds].slice(0, KINDS_MOST);
  let most = 0;
  for (const cell of [...cells.values(), ...outside]) most = Math.max(most, shareOf(cell));
  return { layers: [...layers].sort((a, b) => a - b), kinds: shown, cells, outside: outside.slice(0, OUTSIDE_MOST), most,
    left: kinds.size - shown.length + Math.max(0, outside.length - OUTSIDE_MOST) };
}

const COLUMNS = [
  { id: 'name', label: 'Tensor', value: (one) => one.name, cell: (one) => html`<span title=${one.name}>${one.name}</span>` },
  { id: 'dtype', label: 'Type', width: '80px', hide: 'phone', value: (one) => one.dtype, cell: (one) => one.dtype },
  { id: 'shape', label: 'Shape', width: '160px', hide: 'tablet', cell: (one) => one.shape.join(' × ') || 'scalar' },
  { id: 'elements', label: 'Elements', end: true, width: '136px', hide: 'tablet', value: (one) => one.elements, cell: (one) => count(one.elements) },
  { id: 'changed', label: 'Changed', end: true, width: '136px', hide: 'phone', value: (one) => one.changed, cell: (one) => count(one.changed) },
  { id: 'share', label: 'Share', end: true, width: '96px', value: (one) => (one.elements ? one.changed / one.elements : 0), cell: (one) => percent(one.elements ? one.changed / one.elements : 0) },
];

function Tensors({ tensors }) {
  const [text, setText] = useState('');
  const rows = useMemo(() => tensors.filter((one) => one.name.toLowerCase().includes(text.toLowerCase())), [tensors, text]);
  return html`<div><div class="filters filters-line"><${Search} label="Filter tensors" placeholder="Filter by name" value=${text} onChange=${setText} /></div>
    <${Table} label="Tensors" columns=${COLUMNS} rows=${rows} rowKey=${(one) => one.name} sort=${{ id: 'share', descending: true }} height=${520}
      empty=${html`<${Empty} title="No tensor has this in its name" />`} foot=${html`<span>${count(rows.length)} tensors</span>`} /></div>`;
}
