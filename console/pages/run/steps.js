// The steps of a run, newest first: what each cost, and whether it is proven.
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../../vendor/htm-preact.js';
import { all, api, s3Xml, textOf } from '../../api.js';
import { go, href } from '../../route.js';
import { may } from '../../session.js';
import { Chart } from '../../components/chart.js';
import { bytes, count, duration, percent, some } from '../../components/format.js';
import { Ago, useLoad } from '../../components/hooks.js';
import { Empty, Fault, Section, Waiting } from '../../components/page.js';
import { Proof } from '../../components/run_table.js';
import { Table } from '../../components/table.js';
import { WHOLE } from './changes.js';
import { changedShare, formOf, fullBytes, runPath } from './run_data.js';

const FETCHED = 1000;
const NO_STEPS = new Set();
const LOOKED_AT_AGAIN = 50;
const ALL_WHOLE = 'Nothing to compare with: each of these steps is whole.';

export function Steps({ bucket, name, run }) {
  const { steps, fault, older, reload } = useSteps(bucket, name, run);
  const made = useMadeAnchors(bucket, name, run);
  if (run.head === null) {
    return html`<div class="panel"><${Empty} title="No steps yet" command="deltabucket publish --run ${bucket}/${name} model.safetensors">Publish the first one where a checkpoint lies:<//></div>`;
  }
  if (!steps) return fault ? html`<${Fault} fault=${fault} retry=${reload} />` : html`<${Waiting} />`;
  const last = steps.at(-1);
  const columns = columnsOf(made);
  return html`<div class="stack-wide">
    ${fault && html`<${Fault} fault=${fault} retry=${reload} />`}
    <${Charts} bucket=${bucket} name=${name} steps=${steps} />
    <${Table} label="Steps" columns=${columns} rows=${steps} rowKey=${(step) => step.step} sort=${{ id: 'step', descending: true }}
      href=${(step) => href('runs', bucket, name, 'steps', String(step.step))} height=${560}
      foot=${html`<span>${some('step', steps.length)}${last && last.step < run.head ? ', more are fetched' : ''}</span>
        ${older > 0 && html`<span>Steps below ${count(steps[0] ? steps[0].step : 0)} are not shown.</span>`}`} />
    <${Folds} bucket=${bucket} name=${name} run=${run} />
  </div>`;
}

const columnsOf = (made) => [
  { id: 'step', label: 'Step', width: '104px', value: (step) => step.step, cell: (step) => count(step.step) },
  { id: 'created', label: 'Published', end: true, width: '112px', hide: 'phone', value: (step) => Date.parse(step.created), cell: (step) => html`<${Ago} time=${step.created} />` },
  { id: 'label', label: 'Label', hide: 'tablet', cell: (step) => html`<span class="soft">${step.label}</span>` },
  { id: 'delta', label: 'Delta', end: true, width: '104px', value: deltaBytes, cell: (step) => (formOf(step, 'delta') ? bytes(deltaBytes(step)) : html`<span class="soft">–</span>`) },
  { id: 'share', label: 'Of full', end: true, width: '96px', hide: 'phone', value: deltaShare, cell: (step) => percent(deltaShare(step)) },
  { id: 'changed', label: 'Changed', end: true, width: '104px', hide: 'phone', value: changedShare,
    cell: (step) => (step.changed ? html`<span title="${count(step.changed.elements)} of ${count(step.changed.of)} elements">${percent(changedShare(step))}</span>` : step.base ? html`<span class="soft">unknown</span>` : html`<span class="soft" title=${WHOLE}>–</span>`) },
  { id: 'publish', label: 'Publish', end: true, width: '104px', hide: 'tablet', value: (step) => step.publish_ms, cell: (step) => (step.publish_ms === undefined ? html`<span class="soft">unknown</span>` : duration(step.publish_ms)) },
  { id: 'forms', label: 'Forms', width: '192px', hide: 'tablet', cell: (step) => (step.forms || []).map((form) =>
    html`<span key=${form.kind} class="tag ${form.kind === 'anchor' ? 'accent' : ''}" title="${form.format}, ${bytes(form.bytes)}">${form.kind}</span>`).concat(
    made.has(step.step) && !formOf(step, 'anchor') ? html`<span key="made" class="tag" title="The server made this anchor: it takes as much room as a delta.">anchor (server)</span>` : []) },
  { id: 'proof', label: 'Proof', width: '112px', value: (step) => step.verified, cell: (step) => html`<span title=${step.verify_error || ''}><${Proof} verified=${step.verified} /></span>` },
];

const FOLDS = [
  { id: 'to', label: 'To step', width: '112px', value: (fold) => fold.to, cell: (fold) => html`<span class="strong">${count(fold.to)}</span>` },
  { id: 'from', label: 'From step', width: '112px', value: (fold) => fold.from, cell: (fold) => count(fold.from) },
  { id: 'steps', label: 'Steps', end: true, width: '88px', value: (fold) => fold.to - fold.from, cell: (fold) => count(fold.to - fold.from) },
  { id: 'bytes', label: 'Bytes', end: true, width: '104px', value: (fold) => fold.bytes, cell: (fold) => bytes(fold.bytes) },
  { id: 'kind', label: 'Made', value: (fold) => fold.kind, hide: 'phone', cell: (fold) => html`<span class="soft">${fold.kind === 'skip' ? 'after a publish' : 'for a reader'}</span>` },
  { id: 'format', label: 'Format', width: '136px', hide: 'tablet', value: (fold) => fold.format, cell: (fold) => html`<span class="soft">${fold.format}</span>` },
];

// Deltas over several steps, which the server makes by itself.
function Folds({ bucket, name, run }) {
  const from = useLoad((signal) => all(runPath(bucket, name, 'folds'), 'folds', { query: { limit: 1000 }, cursor: 'to', pages: 1, signal }), [bucket, name, run.head]);
  if (!from.data || from.data.length === 0) return null;
  return html`<${Section} title="Folds" note="deltas over several steps"><${Table} label="Folds" columns=${FOLDS} rows=${from.data} rowKey=${(fold) => `${fold.from}-${fold.to}`}
    sort=${{ id: 'to', descending: true }} height=${320} foot=${html`<span>${some('fold', from.data.length)}${from.data.complete ? '' : ', the newest ones'}</span>`} /><//>`;
}

// The steps whose anchor the server made: they are objects of the bucket below anchors/.
function useMadeAnchors(bucket, name, run) {
  const prefix = `${name}/anchors/step_`;
  const from = useLoad(async () => {
    if (!may('list', bucket, prefix)) return new Set();
    const listed = await s3Xml({ method: 'GET', bucket, query: { 'list-type': '2', prefix, delimiter: '/' } });
    return new Set([...listed.getElementsByTagName('CommonPrefixes')].map((one) => Number(textOf(one, 'Prefix').slice(prefix.length, -1))));
  }, [bucket, name, run.head, run.verified]);
  return from.data || NO_STEPS;
}

function Charts({ bucket, name, steps }) {
  const numbers = useMemo(() => steps.map((step) => step.step), [steps]);
  const [full, delta, changed, publish] = useMemo(() => [
    steps.map((step) => fullBytes(step) || null), steps.map((step) => deltaBytes(step) || null),
    steps.map((step) => { const share = changedShare(step); return share === null ? null : share * 100; }), steps.map((step) => step.publish_ms ?? null)], [steps]);
  const bytesData = useMemo(() => [numbers, delta, full], [numbers, delta, full]);
  const changedData = useMemo(() => [numbers, changed], [numbers, changed]);
  const publishData = useMemo(() => [numbers, publish], [numbers, publish]);
  const pick = (at) => go(href('runs', bucket, name, 'steps', String(numbers[at])));
  return html`<div class="charts">
    <${Panel} title="Bytes of each step" legend=${[['', 'delta'], ['soft', 'whole checkpoint']]} known=${delta.some((n) => n !== null) || full.length}>
      <${Chart} label="Bytes of each step's delta and of its whole checkpoint; the table below has the numbers" data=${bytesData} log height=${168} axisFormat=${bytes} onPick=${pick}
        series=${[{ label: 'delta', color: 'accent', format: bytes }, { label: 'whole', color: 'soft', format: bytes }]} /><//>
    <${Panel} title="Changed weights" known=${changed.some((n) => n !== null)} none=${steps.some((step) => step.base) ? 'Nothing has been counted yet: that comes with the proof.' : ALL_WHOLE}>
      <${Chart} label="The share of the weights that each step changed; the table below has the numbers" data=${changedData} height=${168} axisFormat=${(n) => `${Number(n.toPrecision(3))} %`} onPick=${pick}
        series=${[{ label: 'changed', color: 'accent', fill: true, format: (n) => percent(n === null ? null : n / 100) }]} /><//>
    <${Panel} title="Publish duration" known=${publish.some((n) => n !== null)} none="The publishers of these steps did not say.">
      <${Chart} label="How long each publish took; the table below has the numbers" data=${publishData} height=${168} axisFormat=${duration} onPick=${pick}
        series=${[{ label: 'publish', color: 'accent', fill: true, format: duration }]} /><//>
  </div>`;
}

function Panel({ title, legend, known, none, children }) {
  return html`<section class="panel chart-panel"><div class="chart-head"><h2>${title}</h2>
    ${legend && html`<ul class="legend">${legend.map(([kind, text]) => html`<li key=${text}><i class=${kind}></i>${text}</li>`)}</ul>`}</div>
    ${known ? children : html`<p class="chart-none soft">${none}</p>`}</section>`;
}

function deltaBytes(step) { return (formOf(step, 'delta') || { bytes: null }).bytes; }

function deltaShare(step) {
  const delta = deltaBytes(step);
  return delta === null ? null : delta / (fullBytes(step) || NaN);
}

// The newest steps, in rising order. What is new or was not proven is fetched again whenever the run changes.
function useSteps(bucket, name, run) {
  const [state, setState] = useState({});
  const rows = useRef(new Map());
  const busy = useRef(false);
  const fetchFrom = useCallback(async (from) => {
    if (busy.current) return;
    busy.current = true;
    try {
      await readFrom(from);
    } catch (fault) {
      setState((before) => ({ ...before, fault }));
    }
    busy.current = false;
  }, [bucket, name]);
  const readFrom = async (from) => {
    for (let next = from; next !== undefined && next !== null;) {
      const reply = await api(runPath(bucket, name, 'steps'), { query: { from: next, limit: 1000 } });
      for (const step of reply.steps) rows.current.set(step.step, step);
      next = reply.next;
      const steps = [...rows.current.values()].sort((a, b) => a.step - b.step);
      setState({ steps, older: run.steps - steps.length });
    }
  };
  useEffect(() => {
    if (run.head === null) return;
    const open = [...rows.current.values()].filter((step) => step.verified === 'pending' || (step.base && !step.changed)).map((step) => step.step);
    const newest = Math.max(-1, ...rows.current.keys());
    if (newest < 0) fetchFrom(Math.max(0, run.head - FETCHED + 1));
    else fetchFrom(Math.max(Math.min(newest + 1, ...open), run.head - LOOKED_AT_AGAIN, 0));
  }, [run.head, run.verified, run.bytes, run.steps]);
  return { ...state, reload: () => fetchFrom(Math.max(0, run.head - FETCHED + 1)) };
}
