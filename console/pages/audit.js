// The audit trail: who changed or tried what, newest first.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { api } from '../api.js';
import { Search } from '../components/field.js';
import { some } from '../components/format.js';
import { Ago } from '../components/hooks.js';
import { Empty, Fault, Waiting } from '../components/page.js';
import { Table } from '../components/table.js';
import { visible } from './name.js';

const PAGE = 200;
const WORDS = {
  sign_in: 'signed in', sign_in_refused: 'sign-in refused', sign_out: 'signed out', link_made: 'link made', key_made: 'key made', key_revoked: 'key revoked',
  run_settings: 'run settings', run_removed: 'run removed', pin_put: 'pin put', pin_removed: 'pin removed', rollback: 'rollback', forward: 'forward',
  bucket_made: 'bucket made', bucket_removed: 'bucket removed', bucket_settings: 'bucket settings', gc: 'gc', scrub: 'scrub',
};
const GRAVE = new Set(['sign_in_refused', 'key_revoked', 'run_removed', 'bucket_removed', 'rollback']);
const COLUMNS = [
  { id: 'time', label: 'When', width: '110px', cell: (row) => html`<${Ago} time=${row.time} />` },
  { id: 'action', label: 'What', width: '150px', cell: (row) => html`<span class="tag ${GRAVE.has(row.action) ? 'warn' : ''}">${WORDS[row.action] || visible(row.action)}</span>` },
  { id: 'subject', label: 'On', cell: (row) => html`<bdi title=${visible(row.subject)}>${visible(row.subject || '–')}</bdi>` },
  { id: 'detail', label: 'Detail', hide: 'tablet', cell: (row) => html`<bdi class="soft" title=${visible(row.detail || '')}>${visible(row.detail || '')}</bdi>` },
  { id: 'key', label: 'Key', width: '210px', hide: 'phone', cell: (row) => html`<code>${visible(row.key_id || '–')}</code>` },
  { id: 'address', label: 'From', width: '130px', hide: 'phone', cell: (row) => visible(row.address || '–') },
];

export function Audit({ chosen }) {
  const [text, setText] = useState(chosen);
  const [action, setAction] = useState('');
  const trail = useTrail();
  const rows = trail.rows.filter((row) => (!action || row.action === action) &&
    (!text || [row.key_id, row.address, row.subject, row.detail, row.request_id].some((one) => String(one || '').includes(text))));
  if (!trail.loaded) return trail.fault ? html`<${Fault} fault=${trail.fault} retry=${trail.more} />` : html`<${Waiting} />`;
  return html`<div>
    <div class="section-head filters">
      <${Search} label="Find in the trail" placeholder="Key, subject or address" value=${text} onChange=${setText} />
      <select class="input low action-choice" aria-label="Which actions" value=${action} onChange=${(event) => setAction(event.target.value)}>
        <option value="">All actions</option>${Object.entries(WORDS).map(([name, word]) => html`<option key=${name} value=${name}>${word}</option>`)}</select>
    </div>
    ${trail.fault && html`<${Fault} fault=${trail.fault} retry=${trail.more} />`}
    <${Table} label="Audit trail" rows=${rows} rowKey=${(row) => row.id} columns=${COLUMNS} empty=${html`<${Empty} title="No entry matches" />`}
      foot=${html`<span role="status">${some('entry', rows.length, 'entries')}${text || action ? ` among the newest ${trail.rows.length}` : ''}</span>
        ${trail.next && html`<button type="button" class="button small" disabled=${trail.busy} onClick=${trail.more}>Show older ones</button>`}`} />
  </div>`;
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
