// The ways from where workers stand: one for each step that some hold, those of most workers first, and the one of a new worker.
import { html, useMemo, useState } from '../../vendor/htm-preact.js';
import { api } from '../../api.js';
import { servedStep } from '../../runs.js';
import { count, some } from '../../components/format.js';
import { useLoad } from '../../components/hooks.js';
import { TextField } from '../../components/field.js';
import { Empty, Fault, Loaded, Waiting } from '../../components/page.js';
import { runPath } from './run_data.js';
import { Way } from './way.js';
import { useWorkers } from './workers.js';

const SHOWN = 8;

export function Ways({ bucket, name, run }) {
  const { workers, fault, reload } = useWorkers(bucket, name);
  const served = servedStep(run);
  const groups = useMemo(() => groupsOf(workers || [], served), [workers, served]);
  if (run.head === null) {
    return html`<div class="panel"><${Empty} title="No steps yet" command="deltabucket publish --run ${bucket}/${name} model.safetensors">There is no path before the first step:<//></div>`;
  }
  if (!workers && !fault) return html`<${Waiting} />`;
  return html`<div class="stack-wide">
    <${Asked} bucket=${bucket} name=${name} served=${served} />
    ${fault && html`<${Fault} fault=${fault} retry=${reload} />`}
    ${groups.slice(0, SHOWN).map((group) => html`<${Group} key=${String(group.step)} bucket=${bucket} name=${name} served=${served} ...${group} />`)}
    ${groups.length > SHOWN && html`<p class="soft">Workers hold ${some('other step', groups.length - SHOWN)}; ask for a path above.</p>`}
  </div>`;
}

function Asked({ bucket, name, served }) {
  const [text, setText] = useState('');
  const step = /^[0-9]+$/.test(text.trim()) ? Number(text) : null;
  return html`<section class="panel panel-body" aria-label="A path of your choice">
    <div class="way-asked"><${TextField} label="From step" help="Empty: a worker that holds nothing yet." inputmode="numeric" placeholder="none" value=${text} onChange=${setText} /></div>
    <${Found} bucket=${bucket} name=${name} step=${step} served=${served} />
  </section>`;
}

function Group({ bucket, name, served, step, workers }) {
  return html`<section class="panel panel-body" aria-label="From step ${step}">
    <div class="section-head"><h2>${some('worker', workers)} on step ${count(step)} <span class="section-note">${some('step', Math.abs(served - step))} ${step > served ? 'above' : 'behind'}</span></h2></div>
    <${Found} bucket=${bucket} name=${name} step=${step} served=${served} />
  </section>`;
}

function Found({ bucket, name, step, served }) {
  const way = useLoad((signal) => api(runPath(bucket, name, 'path'), { query: { have: step }, signal }), [step, served]);
  return html`<div class="way-place"><${Loaded} from=${way}>${(found) => html`<${Way} way=${found} />`}<//></div>`;
}

// How many workers hold each step but the one to serve.
function groupsOf(workers, served) {
  const counts = new Map();
  for (const { step, expired } of workers) {
    if (!expired && step !== null && step !== undefined && step !== served) counts.set(step, (counts.get(step) || 0) + 1);
  }
  return [...counts].map(([step, n]) => ({ step, workers: n })).sort((a, b) => b.workers - a.workers || b.step - a.step);
}
