// The workers of a run: where each stands, how far behind, what failed. Made for 10,000 of them.
import { html, useCallback, useMemo, useRef, useState } from '../../vendor/htm-preact.js';
import { all, api } from '../../api.js';
import { go, href } from '../../route.js';
import { servedStep } from '../../runs.js';
import { count, duration, moment, some, span } from '../../components/format.js';
import { Ago, useEvents, useLoad } from '../../components/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { Search, Segments } from '../../components/field.js';
import { Figure, FigureButton, State } from '../../components/meter.js';
import { Empty, Fault, Loaded, Waiting } from '../../components/page.js';
import { Table } from '../../components/table.js';
import { runPath } from './run_data.js';
import { Way } from './way.js';

const STATES = { idle: ['', 'Idle'], fetching: ['busy', 'Fetching'], staging: ['busy', 'Staging'], ready: ['ok', 'Ready'], error: ['bad', 'Error'] };
const AWAY = 'Not there yet';  // a fleet that is rolled back is not behind: it has a way to go
const FIRST = 1e15;
const SHOWN = {
  all: ['All', () => true], behind: ['Behind', (worker, served) => !worker.expired && behind(worker, served) !== 0],
  failed: ['Failed', (worker) => Boolean(worker.error) || worker.state === 'error'], lost: ['Lost', (worker) => worker.expired],
};

/** How many steps a worker is from the step to serve; null while it holds none. */
export function behind(worker, served) {
  return worker.step === null || worker.step === undefined || served === null ? null : Math.abs(served - worker.step);
}

export function Workers({ bucket, name, run, route }) {
  const { workers, counts, fault, reload, loading } = useWorkers(bucket, name);
  const served = servedStep(run);
  const late = run.rollback ? AWAY : 'Behind';
  const [text, setText] = useState('');
  const [shown, setShown] = useState('all');
  const rows = useMemo(() => workers && filter(workers, text, shown, served), [workers, text, shown, served]);
  const oldest = useMemo(() => workers && oldestReport(workers), [workers]);
  const columns = useMemo(() => columnsOf(served, late), [served, late]);
  const chosen = route.query.get('worker');
  if (!workers) return fault ? html`<${Fault} fault=${fault} retry=${reload} />` : html`<${Waiting} />`;
  const here = (worker) => href('runs', bucket, name, 'workers', worker ? { worker } : {});
  if (workers.length === 0) {
    return html`<div class="panel"><${Empty} title="No workers yet" command="deltabucket follow --run ${bucket}/${name} --into /srv/weights">A worker that follows the run reports here:<//></div>`;
  }
  return html`<div>
    <${Counts} workers=${workers} counts=${counts} served=${served} late=${late} shown=${shown} setShown=${setShown} />
    <div class="section-head filters-line"><div class="filters"><${Search} label="Filter workers" placeholder="Worker, host, error" value=${text} onChange=${setText} />
      <${Segments} label="Which workers" value=${shown} options=${Object.entries(SHOWN).map(([id, [label]]) => [id, id === 'behind' ? late : label])} onChange=${setShown} /></div></div>
    <${Table} label="Workers" columns=${columns} rows=${rows} rowKey=${(worker) => worker.id} sort=${{ id: 'behind', descending: true }} height=${620}
      onOpen=${(worker) => go(here(worker.id))} selected=${chosen || undefined}
      empty=${html`<${Empty} title="No worker matches" action=${html`<button class="button" onClick=${() => { setText(''); setShown('all'); }}>Show all workers</button>`} />`}
      foot=${html`<span><span>${rows.length === workers.length ? some('worker', rows.length) : `${count(rows.length)} of ${some('worker', workers.length)}`}${loading ? ', more are fetched' : ''}</span>${oldest && html`. Oldest report: <${Ago} time=${oldest} />`}</span>
        <span class="hide-phone">The order holds while the pointer is in the table.</span>`} />
    ${chosen && html`<${Worker} key=${chosen} bucket=${bucket} name=${name} id=${chosen} live=${workers.find((worker) => worker.id === chosen)} served=${served} onClose=${() => go(here(null))} />`}
  </div>`;
}

function Counts({ workers, counts, served, late, shown, setShown }) {
  const [on, ...found] = useMemo(() => [(worker) => !worker.expired && behind(worker, served) === 0, ...['behind', 'failed', 'lost'].map((id) => SHOWN[id][1])]
    .map((belongs) => workers.filter((worker) => belongs(worker, served)).length), [workers, served]);
  const states = counts ? counts.states : {};
  const choice = (id, name, n, kind) => html`<${FigureButton} name=${name} value=${count(n)} kind=${n > 0 ? kind : ''} pressed=${shown === id} onClick=${() => setShown(shown === id ? 'all' : id)} />`;
  return html`<div class="figures compact">
    <${Figure} name="On step ${count(served)}" value=${count(on)} />
    ${choice('behind', late, found[0], 'warn')}
    <${Figure} name="Fetching" value=${count(states.fetching)} />
    <${Figure} name="Staging" value=${count(states.staging)} />
    ${choice('failed', 'Error', found[1], 'bad')}
    ${choice('lost', 'Lost', found[2], 'bad')}
  </div>`;
}

function columnsOf(served, late) {
  const lag = (worker) => behind(worker, served);
  const rank = (worker) => (worker.state === 'error' && !worker.expired ? FIRST + lag(worker) : lag(worker));  // what failed comes before all that are late
  return [
    { id: 'id', label: 'Worker', value: (worker) => worker.id, cell: (worker) => html`<span class="strong" title=${worker.id}>${worker.id}</span>` },
    { id: 'state', label: 'State', width: '104px', value: (worker) => (worker.expired ? 'lost' : worker.state), cell: (worker) => html`<${WorkerState} worker=${worker} />` },
    { id: 'step', label: 'Step', end: true, width: '72px', hide: 'phone', value: (worker) => worker.step, cell: (worker) => count(worker.step) },
    { id: 'behind', label: late, end: true, width: late === AWAY ? '120px' : '88px', value: rank, cell: (worker) => { const n = lag(worker); return n === 0 ? html`<span class="soft">0</span>` : count(n); } },
    { id: 'for', label: 'For', end: true, width: '72px', hide: 'tablet', value: (worker) => (worker.staleness ? worker.staleness.seconds : null),
      cell: (worker) => (worker.staleness && lag(worker) ? span(worker.staleness.seconds) : html`<span class="soft">–</span>`) },
    { id: 'pause', label: 'Pause', end: true, width: '80px', hide: 'tablet', value: (worker) => worker.pause_ms, cell: (worker) => duration(worker.pause_ms) },
    { id: 'updated', label: 'Heard', end: true, width: '104px', hide: 'phone', value: (worker) => Date.parse(worker.updated), cell: (worker) => html`<${Ago} time=${worker.updated} />` },
    { id: 'host', label: 'Host', width: '144px', hide: 'tablet', value: (worker) => worker.host, cell: (worker) => html`<span class="soft" title=${worker.host}>${worker.host}</span>` },
    { id: 'error', label: 'What failed', hide: 'tablet', value: (worker) => worker.error, cell: (worker) => html`<span class="bad" title=${worker.error || ''}>${worker.error}</span>` },
  ];
}

function WorkerState({ worker }) {
  if (worker.expired) return html`<${State} kind="bad">Lost<//>`;
  const [kind, word] = STATES[worker.state] || ['', worker.state];
  return html`<${State} kind=${kind}>${word}<//>`;
}

function Worker({ bucket, name, id, live, served, onClose }) {
  const step = live ? live.step : undefined;
  const way = useLoad((signal) => (live ? api(runPath(bucket, name, 'path'), { query: { have: step, digest: live.digest }, signal }) : Promise.resolve(null)), [step, Boolean(live)]);
  return html`<${Dialog} title=${id} broad onClose=${onClose}>
    ${live ? html`<dl class="facts">
      <dt>State</dt><dd><${WorkerState} worker=${live} /></dd>
      <dt>Holds</dt><dd>${step === null || step === undefined ? 'no step yet' : `step ${count(step)}`}${behind(live, served) ? `, ${some('step', behind(live, served))} from step ${count(served)}` : ''}</dd>
      ${live.wanted !== null && live.wanted !== undefined && html`<dt>On its way to</dt><dd>step ${count(live.wanted)}</dd>`}
      ${live.error && html`<dt>What failed</dt><dd class="bad">${live.error}</dd>`}
      ${live.host && html`<dt>Host</dt><dd>${live.host}</dd>`}
      ${live.tensors && html`<dt>Part</dt><dd>${live.tensors}</dd>`}
      ${live.pause_ms !== undefined && html`<dt>Last pause</dt><dd>${duration(live.pause_ms)}</dd>`}
      <dt>Heard of</dt><dd><${Ago} time=${live.updated} />, first ${moment(live.since)}</dd>
    </dl>
    <h3>Path to step ${count(served)}</h3>
    <${Loaded} from=${way}>${(found) => html`<${Way} way=${found} />`}<//>` : html`<p class="soft">This worker is not there any more.</p>`}
  <//>`;
}

function filter(workers, text, shown, served) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const [, belongs] = SHOWN[shown];
  if (!words.length && shown === 'all') return workers;
  return workers.filter((worker) => belongs(worker, served) &&
    (!words.length || words.every((word) => `${worker.id} ${worker.host || ''} ${worker.state} ${worker.error || ''}`.toLowerCase().includes(word))));
}

/** When the worker with a lease that has been silent longest was heard of; null: there is none. */
function oldestReport(workers) {
  return workers.reduce((oldest, { expired, updated }) => (!expired && (!oldest || updated < oldest) ? updated : oldest), null);
}

/** The workers of a run, live: {workers, counts, fault, loading, reload}. */
export function useWorkers(bucket, name) {
  const [state, setState] = useState({});
  const rows = useRef(new Map());
  const load = useCallback(async () => {
    const fresh = new Map();
    const show = (loading, reply) => setState({ workers: [...rows.current.values()], counts: reply, loading });
    try {
      await all(runPath(bucket, name, 'replicas'), 'replicas', { query: { limit: 1000 }, onPage: (list, reply) => {
        for (const worker of reply.replicas) { fresh.set(worker.id, worker); rows.current.set(worker.id, worker); }
        const loading = reply.next !== undefined && reply.next !== null;
        if (!loading) for (const id of [...rows.current.keys()]) if (!fresh.has(id)) rows.current.delete(id);
        show(loading, reply);
      } });
    } catch (fault) {
      setState((before) => ({ ...before, fault, loading: false }));
    }
  }, [bucket, name]);
  useEvents({ replicas: `${bucket}/${name}` }, (event, data) => {
    if (event === 'open') return load();
    if (event !== 'replicas') return undefined;
    for (const worker of data.replicas) rows.current.set(worker.id, worker);
    for (const id of data.removed) rows.current.delete(id);
    return setState((before) => ({ ...before, workers: [...rows.current.values()], counts: data }));
  });
  return { ...state, reload: load };
}
