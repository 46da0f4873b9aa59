// Storage: what lies on the disk and what holds it there, what gc gives back, damage and scrub, packs, and lifecycle rules.
import { html, useState } from '../vendor/htm-preact.js';
import { all, api } from '../api.js';
import { Confirm } from '../components/dialog.js';
import { CheckField, SelectField } from '../components/field.js';
import { bytes, count, moment, percent, some } from '../components/format.js';
import { Ago, useLoad } from '../components/hooks.js';
import { Figure, Meter, State } from '../components/meter.js';
import { Empty, Head, Loaded, Notice, Section } from '../components/page.js';
import { Table } from '../components/table.js';
import { toast } from '../components/toast.js';
import { may } from '../session.js';
import { Damage } from './damage.js';
import { Lifecycle } from './lifecycle_rules.js';

export default function Page({ route, session }) {
  return html`<div>
    <${Head} title="Storage" lead="What lies on the disk, what holds it there, and how sound it is." />
    ${session.metrics && html`<${Space} session=${session} />`}
    ${session.root && html`<${Packs} />`}
    <${Rules} chosen=${route.query.get('bucket')} alone=${!session.metrics} /></div>`;
}

function Space({ session }) {
  const storage = useLoad((signal) => api('/-/storage', { signal }), []);
  return html`<${Loaded} from=${storage}>${(data) => html`
    ${data.damaged_chunks > 0 && html`<div class="notices"><${Notice} kind="bad">${some('stored chunk', data.damaged_chunks)} ${data.damaged_chunks === 1 ? 'is' : 'are'} damaged. Reads that need ${data.damaged_chunks === 1 ? 'it' : 'them'} are refused; everything else is served.<//></div>`}
    <${Figures} data=${data} />
    <${Gc} data=${data} isRoot=${session.root} reload=${storage.reload} />
    <${Damage} scrub=${data.scrub} isRoot=${session.root} reload=${storage.reload} />
    <${SetAside} data=${data} />`}<//>`;
}

function Figures({ data }) {
  const { packs, objects, promises, registered } = data;
  const waste = Math.max(0, packs.bytes - packs.live_bytes);
  return html`<div class="figures">
    <${Figure} name="Packs" value=${bytes(packs.bytes)} note=${`${some('pack', packs.count)}, ${packs.open} open`}>
      <${Meter} label=${`${percent(share(packs.live_bytes, packs.bytes))} of the packs' bytes are needed`} legend
        parts=${[{ label: 'needed', value: packs.live_bytes, text: `${bytes(packs.live_bytes)} needed` }, { label: 'not needed', value: waste, kind: 'mute', text: `${bytes(waste)} not needed` }]} />
    <//>
    <${Figure} name="Objects and steps" value=${bytes(objects.logical_bytes)} note=${`${some('object', objects.count)}; chunks that are alike are stored once`} />
    <${Figure} name="Held by promises" value=${bytes(promises.bytes + registered.bytes)} note=${promiseNote(promises, registered)} />
  </div>`;
}

function promiseNote(promises, registered) {
  const until = [promises.until, registered.until].filter(Boolean).sort().at(-1);
  return until ? `to Xet clients, until ${moment(until)}` : 'Nothing is promised to Xet clients.';
}

const share = (part, whole) => (whole > 0 ? part / whole : 0);

function Gc({ data, isRoot, reload }) {
  const [asking, setAsking] = useState(false);
  const { last } = data.gc;
  const action = isRoot && html`<button type="button" class="button" onClick=${() => setAsking(true)}>Run gc…</button>`;
  return html`<${Section} title="Garbage collection" actions=${action}>
    <div class="panel"><ul class="rows">
      <li><div class="grow"><div class="strong">Last round</div><div class="small soft">${last ? round(last) : 'None since the server started; gc runs by itself.'}</div></div>${last && html`<span class="soft"><${Ago} time=${last.ended} /></span>`}</li>
      <li><div class="grow"><div class="strong">Given back</div><div class="small soft">Since the server started.</div></div><span>${bytes(data.gc.freed_bytes)}</span></li>
      ${data.backup_holds > 0 && html`<li><div class="grow"><div class="strong">${some('backup', data.backup_holds)} under way</div><div class="small soft">What gc frees stays on the disk until the backup has shipped it.</div></div></li>`}
      ${data.derived.swapped > 0 && html`<li><div class="grow"><div class="strong">${some('object', data.derived.swapped)} made of deltas</div><div class="small soft">They are made as they are read, instead of being stored.</div></div><span>${bytes(data.derived.bytes_saved)} saved</span></li>`}
    </ul></div>
    ${asking && html`<${RunGc} onDone=${reload} onClose=${() => setAsking(false)} />`}
  <//>`;
}

function round(result) {
  const said = [`${bytes(result.bytes_freed)} given back`, `${some('pack', result.packs_deleted)} deleted`, `${count(result.packs_compacted)} compacted`];
  if (result.packs_waiting) said.push(`${count(result.packs_waiting)} wait for readers`);
  return said.join(', ');
}

function RunGc({ onDone, onClose }) {
  const [ends, setEnds] = useState(false);
  const [percentage, setPercentage] = useState('');
  const options = { ends_promises: ends, ...(percentage ? { live_percent: Number(percentage) } : {}) };
  const dry = useLoad((signal) => api('/-/gc', { method: 'POST', json: { ...options, dry_run: true }, signal }), [ends, percentage]);
  const run = async () => {
    const result = await api('/-/gc', { method: 'POST', json: options });
    onDone();
    toast(`gc finished: ${round(result)}.`);
  };
  return html`<${Confirm} title="Run gc" action="Run gc now" ready=${Boolean(dry.data)} danger=${ends} onConfirm=${run} onClose=${onClose}>
    <div class="dry-run" role="status">${dry.fault ? html`<p class="bad">${dry.fault.message}</p>` : dry.data ? html`<${DryRun} result=${dry.data} />` : html`<p class="soft">Looking what can go…</p>`}</div>
    <${SelectField} label="Compact packs that need less than" value=${percentage} onChange=${setPercentage}
      options=${[['', '90 % of their bytes'], ['50', '50 % of their bytes'], ['100', 'all of their bytes, which takes longest']]} />
    <${CheckField} label="End the promises to Xet clients" value=${ends} onChange=${setEnds} help="Uploads by hf that are under way fail, and begin again. It frees what nobody came back for." />
    <p class="soft small">Files deleted within the last day are kept for Xet clients.</p>
  <//>`;
}

function DryRun({ result }) {
  const held = result.bytes_promised + result.bytes_registered;
  const packs = result.packs_deleted + result.packs_compacted;
  return html`<p>${packs ? html`It gives back <span class="strong">${bytes(result.bytes_freed)}</span>, of ${some('pack', packs)}.` : `There is nothing to give back: ${some('pack', result.packs)} of ${bytes(result.bytes)} are needed.`}
    ${held > 0 && html` <span class="soft">Promises hold ${bytes(held)} more.</span>`}</p>`;
}

function SetAside({ data }) {
  if (!data.set_aside.files) return null;
  return html`<${Section} title="Set aside">
    <div class="panel"><ul class="rows"><li><div class="grow"><div class="strong">${some('file', data.set_aside.files)}</div>
      <div class="small soft">Files that no row of the catalog names and that nothing proves to be garbage lie in <code>set-aside/</code> of the data folder. OPERATIONS.md says when they may go.</div></div><span>${bytes(data.set_aside.bytes)}</span></li></ul></div>
  <//>`;
}

const STATES = { open: 'busy', sealed: 'ok', condemned: 'warn' };
const PACK_COLUMNS = [
  { id: 'number', label: 'Pack', width: '64px', value: (row) => row.number, cell: (row) => row.number },
  { id: 'state', label: 'State', width: '116px', value: (row) => row.state, cell: (row) => html`<${State} kind=${row.damaged ? 'bad' : STATES[row.state]}>${row.damaged ? 'damaged' : row.state}<//>` },
  { id: 'bytes', label: 'Size', end: true, width: '88px', value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  { id: 'live', label: 'Needed', end: true, width: '84px', value: (row) => share(row.live_bytes, row.bytes), cell: (row) => percent(share(row.live_bytes, row.bytes)) },
  { id: 'chunks', label: 'Chunks', end: true, width: '100px', hide: 'phone', value: (row) => row.chunks, cell: (row) => count(row.chunks) },
  { id: 'made', label: 'Made', end: true, width: '120px', hide: 'tablet', value: (row) => row.made, cell: (row) => html`<${Ago} time=${row.made} />` },
  { id: 'promised', label: 'Promised until', width: '190px', hide: 'tablet', value: (row) => row.promised_until, cell: (row) => (row.promised_until ? moment(row.promised_until) : '–') },
  { id: 'id', label: 'File', hide: 'phone', cell: (row) => html`<code class="soft" title=${row.id}>${row.id}</code>` },
];

function Packs() {
  const packs = useLoad((signal) => all('/-/packs', 'packs', { query: { limit: 1000 }, signal }), []);
  return html`<${Section} title="Packs" note="files of up to 64 MiB, in which chunks lie">
    <${Loaded} from=${packs}>${(rows) => html`<${Table} label="Packs" rows=${rows} rowKey=${(row) => row.number} columns=${PACK_COLUMNS} sort=${{ id: 'number', descending: true }} height=${480}
      empty=${html`<${Empty} title="No pack yet">The first upload makes one.<//>`} />`}<//>
  <//>`;
}

function Rules({ chosen, alone }) {
  const list = useLoad((signal) => all('/-/buckets', 'buckets', { query: { limit: 1000 }, signal }), []);
  const seen = (list.data || []).map((row) => row.bucket).filter((name) => may('list', name));
  const [picked, setBucket] = useState(chosen);
  const bucket = seen.includes(picked) ? picked : seen[0];
  const picker = html`<select class="input low bucket-choice" aria-label="Bucket whose rules are shown" value=${bucket} onChange=${(event) => setBucket(event.target.value)}>
    ${seen.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`;
  return html`<${Loaded} from=${list}>${() => (bucket ? html`<${Lifecycle} key=${bucket} bucket=${bucket} mayChange=${may('admin', bucket)} title="Lifecycle rules" picker=${picker} spaced=${!alone} />`
    : alone && html`<div class="panel"><${Empty} title="Your key sees nothing of the storage">A key without grants does, and one with the grant <code>metrics</code>.<//></div>`)}<//>`;
}
