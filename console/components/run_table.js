// The table of runs, for the overview and the page of all runs.
import { html } from '../vendor/htm-preact.js';
import { href } from '../route.js';
import { nameOf, servedStep, workersOf } from '../runs.js';
import { bytes, count, percent, span } from './format.js';
import { Ago } from './hooks.js';
import { Meter, State } from './meter.js';
import { Empty } from './page.js';
import { Table } from './table.js';

const PROOF = { ok: ['ok', 'Proven'], pending: ['busy', 'Pending'], failed: ['bad', 'Failed'] };

/** What the server found when it decoded a step, in a word. */
export function Proof({ verified }) {
  const [kind, word] = PROOF[verified] || ['', '–'];
  return verified ? html`<${State} kind=${kind}>${word}<//>` : html`<span class="soft">–</span>`;
}

const COLUMNS = [
  { id: 'run', label: 'Run', value: nameOf, cell: (run) => nameOf(run) },
  { id: 'step', label: 'Step', end: true, width: '88px', value: (run) => run.head, cell: step },
  { id: 'age', label: 'Published', end: true, width: '104px', hide: 'phone', value: (run) => run.head_created && -Date.parse(run.head_created),
    cell: (run) => html`<${Ago} time=${run.head_created} />` },
  { id: 'delta', label: 'Last delta', end: true, width: '168px', hide: 'phone', value: share, cell: delta },
  { id: 'workers', label: 'Workers', width: '200px', hide: 'tablet', value: (run) => (run.fleet ? workersOf([run]).alive : null), cell: workers },
  { id: 'on', label: 'Workers', end: true, width: '96px', only: 'narrow', cell: workersShort },
  { id: 'lag', label: 'Slowest', end: true, width: '152px', hide: 'tablet', value: (run) => run.fleet && run.fleet.lag_steps, cell: lag },
  { id: 'proof', label: 'Proof', width: '112px', hide: 'phone', value: (run) => run.verified, cell: (run) => html`<${Proof} verified=${run.verified} />` },
];

export function RunTable({ runs, label, height, foot }) {
  return html`<${Table} label=${label} columns=${COLUMNS} rows=${runs} rowKey=${nameOf} sort=${{ id: 'run', descending: false }}
    href=${(run) => href('runs', run.bucket, run.run)} height=${height} foot=${foot} empty=${html`<${NoRuns} />`} />`;
}

export function NoRuns() {
  return html`<${Empty} title="No runs yet" command="deltabucket publish --run models/policy --create-bucket model.safetensors">
    A run begins with the first step that a trainer publishes. Type this where a checkpoint lies:<//>`;
}

function step(run) {
  if (run.head === null) return html`<span class="soft">none</span>`;
  return run.rollback ? html`<span title="The fleet is held at an earlier step."><span class="tag warn">held</span> ${count(servedStep(run))}</span>` : count(run.head);
}

function share(run) {
  return run.head_delta_bytes === null || run.head_delta_bytes === undefined || !run.full_bytes ? null : run.head_delta_bytes / run.full_bytes;
}

function delta(run) {
  const part = share(run);
  return part === null ? html`<span class="soft">–</span>` : html`${bytes(run.head_delta_bytes)} <span class="soft">${percent(part)}</span>`;
}

function workers(run) {
  const { known, on, behind, lost, alive } = workersOf([run]);
  if (!known) return html`<span class="soft">–</span>`;
  if (alive + lost === 0) return html`<span class="soft">none</span>`;
  return html`<div class="worker-cell"><${Meter} label="${on} of ${alive} workers on it, ${behind} behind, ${lost} lost" parts=${[
    { label: 'on', value: on, kind: 'ok' }, { label: 'behind', value: behind, kind: 'warn' }, { label: 'lost', value: lost, kind: 'bad' }]} />
    <span>${count(on)} <span class="soft">/ ${count(alive + lost)}</span></span></div>`;
}

function workersShort(run) {
  const { known, on, alive, lost } = workersOf([run]);
  return known && alive + lost ? html`${count(on)} <span class="soft">/ ${count(alive + lost)}</span>` : html`<span class="soft">${known ? 'none' : '–'}</span>`;
}

function lag(run) {
  const { fleet } = run;
  if (!fleet || fleet.lag_steps === undefined || !workersOf([run]).alive) return html`<span class="soft">–</span>`;
  if (!fleet.lag_steps) return html`<span class="soft">up to date</span>`;
  return html`${count(fleet.lag_steps)} ${fleet.lag_steps === 1 ? 'step' : 'steps'}${
    fleet.lag_seconds ? html` <span class="soft">${span(fleet.lag_seconds)}</span>` : ''}`;
}
