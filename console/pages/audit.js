// The audit trail: who changed or tried what, newest first.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { api } from '../api.js';
import { Cards } from '../components/cards.js';
import { Search } from '../components/field.js';
import { count, some } from '../components/format.js';
import { Ago, useNarrow } from '../components/hooks.js';
import { Empty, Fault, Waiting } from '../components/page.js';
import { Table } from '../components/table.js';
import { ACTIONS, GRAVE, detailOf } from './audit_words.js';
import { visible } from './name.js';

const PAGE = 200;
const COLUMNS = [
  { id: 'time', label: 'When', width: '110px', cell: (row) => html`<${Ago} time=${row.time} />` },
  { id: 'action', label: 'What', width: '150px', cell: (row) => html`<${Action} row=${row} />` },
  { id: 'subject', label: 'On', cell: (row) => html`<bdi title=${visible(row.subject)}>${visible(row.subject || '–')}</bdi>` },
  { id: 'detail', label: 'Detail', cell: (row) => html`<bdi class="soft" title=${detailOf(row)}>${detailOf(row)}</bdi>` },
  { id: 'key', label: 'Key', width: '210px', cell: (row) => html`<code>${visible(row.key_id || '–')}</code>` },
  { id: 'address', label: 'From', width: '130px', cell: (row) => visible(row.address || '–') },
];

export function Audit({ chosen }) {
  const [text, setText] = useState(chosen);
  const [action, setAction] = useState('');
  const trail = useTrail();
  const isNarrow = useNarrow(860);
  const rows = trail.rows.filter((row) => (!action || row.action === action) &&
    (!text || [row.key_id, row.address, row.subject, row.detail, detailOf(row), row.request_id].some((one) => String(one || '').includes(text))));
  if (!trail.loaded) return trail.fault ? html`<${Fault} fault=${trail.fault} retry=${trail.more} />` : html`<${Waiting} />`;
  return html`<div>
    <div class="section-head filters">
      <${Search} label="Find in the trail" placeholder="Key, subject or address" value=${text} onChange=${setText} />
      <select class="input low action-choice" aria-label="Which actions" value=${action} onChange=${(event) => setAction(event.target.value)}>
        <option value="">All actions</option>${Object.entries(ACTIONS).map(([name, word]) => html`<option key=${name} value=${name}>${word}</option>`)}</select>
    </div>
    ${trail.fault && html`<${Fault} fault=${trail.fault} retry=${trail.more} />`}
    <${isNarrow ? Cards : Table} label="Audit trail" rows=${rows} rowKey=${(row) => row.id} columns=${COLUMNS} card=${card} empty=${html`<${Empty} title="No entry matches" />`}
      foot=${html`<span role="status">${some('entry', rows.length, 'entries')}${text || action ? ` among the newest ${count(trail.rows.length)}` : ''}</span>
        ${trail.next && html`<button type="button" class="button small" disabled=${trail.busy} onClick=${trail.more}>Show older ones</button>`}`} />
  </div>`;
}

function Action({ row }) {
  return html`<span class="tag ${GRAVE.has(row.action) ? 'warn' : ''}">${ACTIONS[row.action] || visible(row.action)}</span>`;
}

// Where there is no room for the columns.
function card(row) {
  return html`
    <div class="card-head"><${Action} row=${row} /><span class="soft"><${Ago} time=${row.time} /></span></div>
    ${row.subject && html`<div class="break"><bdi>${visible(row.subject)}</bdi></div>`}
    ${row.detail && html`<div class="break soft"><bdi>${detailOf(row)}</bdi></div>`}
    <div class="card-foot small soft"><span>by <code class="break">${visible(row.key_id || 'nobody')}</code></span>${row.address && html`<span class="break">from ${visible(row.address)}</span>`}</div>`;
}

function useTrail() {
  const [state, setState] = useState({ rows: [], loaded: false });
  const more = async () => {
    setState((old) => ({ ...old, busy: true, fault: null }));
    try {
      const page = await api('/-/audit', { query: { before: state.next, limit: PAGE } });
      setState((old) => ({ rows: [...old.rows, ...page.entries], next: page.next, loaded: true }));
    } catch (fault) {
      setState((old) => ({ ...old, fault, busy: false }));
    }
  };
  useEffect(() => { more(); }, []);
  return { ...state, more };
}
