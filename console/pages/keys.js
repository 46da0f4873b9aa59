// Keys: who may do what, since when, and what was done with it. The root key sees all of it, any other its own key and sessions.
import { html, useState } from '../vendor/htm-preact.js';
import { api, path } from '../api.js';
import { Cards } from '../components/cards.js';
import { Confirm } from '../components/dialog.js';
import { Copy } from '../components/copy.js';
import { Search } from '../components/field.js';
import { moment, some } from '../components/format.js';
import { Ago, useLoad, useNarrow } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Empty, Head, Loaded, Section } from '../components/page.js';
import { Table } from '../components/table.js';
import { Tabs } from '../components/tabs.js';
import { attempt, toast } from '../components/toast.js';
import { href } from '../route.js';
import { AddKey } from './add_key.js';
import { Audit } from './audit.js';
import { visible } from './name.js';

export default function Page({ route, session }) {
  const [adding, setAdding] = useState(false);
  const [turn, setTurn] = useState(0);
  const view = session.root ? route.query.get('view') || 'keys' : 'own';
  return html`<div>
    <${Head} title="Keys" lead=${session.root ? 'Who may do what, and what was done.' : 'What your key may do, and where it is signed in.'}>
      ${session.root && html`<button type="button" class="button primary" onClick=${() => setAdding(true)}><${Icon} name="plus" />Add key…</button>`}
    <//>
    ${session.root && html`<${Tabs} label="Views of keys" current=${view} items=${TABS} />`}
    ${view === 'own' && html`<${OwnKey} session=${session} /><${Sessions} session=${session} own />`}
    ${view === 'keys' && html`<${KeyList} key=${turn} session=${session} />`}
    ${view === 'sessions' && html`<${Sessions} session=${session} />`}
    ${view === 'audit' && html`<${Audit} chosen=${route.query.get('key') || ''} />`}
    ${adding && html`<${AddKey} session=${session} onMade=${() => setTurn((n) => n + 1)} onClose=${() => setAdding(false)} />`}</div>`;
}

const TABS = [
  { id: 'keys', label: 'Keys', href: href('keys') },
  { id: 'sessions', label: 'Sessions', href: href('keys', { view: 'sessions' }) },
  { id: 'audit', label: 'Audit trail', href: href('keys', { view: 'audit' }) },
];

function OwnKey({ session }) {
  const rows = [['Key', html`<code>${session.key_id}</code>`], session.name && ['Name', visible(session.name)], ['Account', session.namespace],
    ['May', html`<${Grants} grants=${session.grants} />`]].filter(Boolean);
  return html`<div class="panel"><dl class="facts panel-body tight">${rows.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl></div>`;
}

function Grants({ grants, root }) {
  if (root) return html`<span class="tag accent">root: everything</span>`;
  if (!grants.length) return html`<span class="soft">everything in its account</span>`;
  return grants.map((grant) => html`<span class="tag mono" key=${grant} title=${grant}>${visible(grant)}</span>`);
}

function KeyList({ session }) {
  const [text, setText] = useState('');
  const [doomed, setDoomed] = useState(null);
  const isNarrow = useNarrow(600);
  const keys = useLoad(async (signal) => (await api('/-/keys', { signal })).keys, []);
  const matches = (row) => [row.key_id, row.name, row.namespace, ...row.grants].some((one) => String(one || '').includes(text));
  const columns = [
    { id: 'name', label: 'Name', value: (row) => row.name || '', cell: (row) => html`<bdi class="strong">${visible(row.name || '–')}</bdi>${row.damaged && html` <span class="tag bad">damaged</span>`}` },
    { id: 'id', label: 'Key', width: '230px', hide: 'tablet', cell: (row) => html`<span class="key-id"><code>${row.key_id}</code><${Copy} text=${row.key_id} label=${`Copy the id of ${row.name || row.key_id}`} /></span>` },
    { id: 'grants', label: 'May', cell: (row) => html`<${Grants} grants=${row.grants} root=${row.root} />` },
    { id: 'namespace', label: 'Account', width: '100px', hide: 'tablet', value: (row) => row.namespace, cell: (row) => row.namespace },
    { id: 'created', label: 'Made', end: true, width: '100px', hide: 'phone', value: (row) => row.created, cell: (row) => html`<${Ago} time=${row.created} />` },
    { id: 'used', label: 'Last used', end: true, width: '110px', hide: 'phone', value: (row) => row.last_used, cell: (row) => (row.last_used ? html`<${Ago} time=${row.last_used} />` : html`<span class="soft">never</span>`) },
    { id: 'act', name: 'Actions', end: true, width: '110px', cell: (row) => !row.root && html`<button type="button" class="button small danger" aria-label=${`Revoke ${visible(row.name || row.key_id)}`} onClick=${() => setDoomed(row)}>Revoke</button>` },
  ];
  const card = (row) => html`
    <div class="card-head"><bdi class="strong break">${visible(row.name || row.key_id)}</bdi>${columns.at(-1).cell(row)}</div>
    <div class="card-tags"><${Grants} grants=${row.grants} root=${row.root} /></div>
    <div class="card-foot small soft"><code class="break">${row.key_id}</code><span>${row.last_used ? html`used <${Ago} time=${row.last_used} />` : 'never used'}</span></div>`;
  return html`<${Loaded} from=${keys}>${(rows) => html`
    <div class="section-head"><${Search} label="Find a key" placeholder="Name, id or grant" value=${text} onChange=${setText} /></div>
    <${isNarrow ? Cards : Table} label="Keys" rows=${rows.filter(matches).sort(byName)} card=${card} rowKey=${(row) => row.key_id} columns=${columns} sort=${{ id: 'name' }} foot=${html`<span>${some('key', rows.length)}</span>`}
      empty=${html`<${Empty} title="No key has this in its name, id or grants" />`} />
    ${doomed && html`<${Revoke} row=${doomed} isOwn=${doomed.key_id === session.key_id} reload=${keys.reload} onClose=${() => setDoomed(null)} />`}`}<//>`;
}

const byName = (one, other) => ((one.name || '') < (other.name || '') ? -1 : 1);

function Revoke({ row, reload, isOwn, onClose }) {
  const revoke = async () => {
    await api(path('-', 'keys', row.key_id), { method: 'DELETE' });
    reload();
    toast(`Key ${visible(row.name || row.key_id)} was revoked.`);
  };
  return html`<${Confirm} title="Revoke the key?" action="Revoke key" danger onConfirm=${revoke} onClose=${onClose}>
    <dl class="facts"><dt>Name</dt><dd><bdi>${visible(row.name || '–')}</bdi></dd><dt>Key</dt><dd><code>${row.key_id}</code></dd>
      <dt>Last used</dt><dd>${row.last_used ? html`${moment(row.last_used)} (<${Ago} time=${row.last_used} />)` : 'never'}</dd></dl>
    <p>Its token, signatures, links and sessions end at once. This cannot be undone.${isOwn && html` <span class="bad">It is the key that you are signed in with.</span>`}</p>
  <//>`;
}

// A session ends a day after it was made: the end of one's own tells which it is.
const isOwn = (row, { key_id, expires }) => row.key_id === key_id && expires && Date.parse(expires) - Date.parse(row.made) === 86400000;

function Sessions({ session, own }) {
  const [doomed, setDoomed] = useState(null);
  const sessions = useLoad(async (signal) => {
    const [found, known] = await Promise.all([api('/-/sessions', { signal }), session.root ? api('/-/keys', { signal }) : { keys: [session] }]);
    const names = new Map(known.keys.map((key) => [key.key_id, key.name]));
    return found.sessions.map((row) => ({ ...row, name: names.get(row.key_id) || '', isOwn: isOwn(row, session) }));
  }, []);
  const end = (row) => attempt(async () => { await api(path('-', 'sessions', row.id), { method: 'DELETE' }); sessions.reload(); }, 'The session has ended.');
  const columns = [
    { id: 'key', label: 'Key', value: (row) => row.name || row.key_id, cell: (row) => html`${row.name && html`<bdi class="strong">${visible(row.name)}</bdi> `}${row.isOwn && html`<span class="tag accent">this one</span> `}<code class=${row.name ? 'soft hide-phone' : ''}>${row.key_id}</code>` },
    { id: 'address', label: 'From', width: '22%', hide: 'phone', value: (row) => row.address, cell: (row) => visible(row.address) },
    { id: 'made', label: 'Signed in', end: true, width: '120px', hide: 'phone', value: (row) => row.made, cell: (row) => html`<${Ago} time=${row.made} />` },
    { id: 'seen', label: 'Last seen', end: true, width: '120px', value: (row) => row.seen, cell: (row) => html`<${Ago} time=${row.seen} />` },
    { id: 'act', name: 'Actions', end: true, width: '100px', cell: (row) => html`<button type="button" class="button small danger" aria-label=${`End the session of ${row.key_id}`} onClick=${() => (row.isOwn ? setDoomed(row) : end(row))}>End</button>` },
  ];
  const table = html`<${Loaded} from=${sessions}>${(rows) => html`<${Table} label="Sessions" rows=${rows} rowKey=${(row) => row.id} columns=${columns} sort=${{ id: 'seen', descending: true }}
    empty=${html`<${Empty} title="Nobody is signed in" />`} />
    ${doomed && html`<${Confirm} title="End your own session?" action="End session" danger onConfirm=${() => end(doomed)} onClose=${() => setDoomed(null)}>
      <p>It is the one that you are looking at this page with. You have to sign in again.</p><//>`}`}<//>`;
  return own ? html`<${Section} title="Sessions">${table}<//>` : table;
}
