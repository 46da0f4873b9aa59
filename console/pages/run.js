// One run: its head, and a tab for each part. `#/runs/BUCKET/RUN[/TAB[/STEP]]`.
import { html, useState } from '../vendor/htm-preact.js';
import { href } from '../route.js';
import { may } from '../session.js';
import { bytes, count, some } from '../components/format.js';
import { Ago } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Fault, Head, Notice, Waiting } from '../components/page.js';
import { Proof } from '../components/run_table.js';
import { Tabs } from '../components/tabs.js';
import { useRun } from './run/run_data.js';
import { ForkDialog, ForwardDialog, RollbackDialog } from './run/run_dialogs.js';
import { Steps } from './run/steps.js';
import { Step } from './run/step.js';
import { Workers } from './run/workers.js';
import { Ways } from './run/ways.js';
import { Pins } from './run/pins.js';
import { Settings } from './run/settings.js';

const TABS = [['steps', 'Steps', Steps], ['workers', 'Workers', Workers], ['ways', 'Paths', Ways], ['pins', 'Pins', Pins], ['settings', 'Settings', Settings]];

export default function Page({ route }) {
  const [, bucket, name, tab = 'steps', item] = route.path;
  return html`<${Run} key=${`${bucket}/${name}`} bucket=${bucket} name=${name} tab=${tab} item=${item} route=${route} />`;
}

function Run({ bucket, name, tab, item, route }) {
  const data = useRun(bucket, name);
  const [edits, setEdits] = useState({});
  const { run, fault, reload } = data;
  const title = `${bucket}/${name}`;
  const crumbs = [['Runs', href('runs')], [bucket, href('runs', bucket)]];
  if (!run) {
    return html`<div><${Head} title=${title} crumbs=${crumbs} lead="" />${fault ? html`<${Fault} fault=${fault} retry=${reload} />` : html`<${Waiting} />`}</div>`;
  }
  const writes = may('write', bucket, `${name}/`);
  const shared = { bucket, name, run, data, writes, route, edits, setEdits };
  if (tab === 'steps' && item !== undefined) return html`<${Step} key=${item} ...${shared} step=${Number(item)} crumbs=${[...crumbs, [name, href('runs', bucket, name)]]} />`;
  const [shown, , Part] = TABS.find(([id]) => id === tab) || TABS[0];
  const items = TABS.map(([id, label]) => ({ id, label, href: href('runs', bucket, name, ...(id === 'steps' ? [] : [id])),
    count: id === 'steps' ? count(run.steps) : undefined }));
  return html`<div>
    <${Head} title=${title} crumbs=${crumbs} lead=${html`<${Lead} run=${run} />`}>${writes && html`<${Actions} ...${shared} />`}<//>
    <${Notices} ...${shared} />
    <${Tabs} label="Parts of the run" items=${items} current=${shown} />
    <${Part} ...${shared} />
  </div>`;
}

function Lead({ run }) {
  if (run.head === null) return 'No step has been published yet.';
  return html`<span class="lead-line"><span>Step <strong>${count(run.head)}</strong>${run.label ? ` (${run.label})` : ''}</span>
    ${run.head_created && html`<span>published <${Ago} time=${run.head_created} /></span>`}
    ${run.verified && html`<${Proof} verified=${run.verified} />`}
    <span>${some('step', run.steps)} kept in ${bytes(run.bytes)}</span></span>`;
}

function Actions({ bucket, name, run, data }) {
  const [open, setOpen] = useState('');
  const close = () => setOpen('');
  const shared = { bucket, name, run, onClose: close, onDone: data.set };
  return html`<div class="actions">
    ${run.head !== null && html`<button class="button" onClick=${() => setOpen('rollback')}><${Icon} name="back" />Roll back…</button>
    <button class="button" onClick=${() => setOpen('fork')}><${Icon} name="branch" />Fork…</button>`}
    ${open === 'rollback' && html`<${RollbackDialog} ...${shared} />`}
    ${open === 'fork' && html`<${ForkDialog} ...${shared} />`}
  </div>`;
}

function Notices({ bucket, name, run, data, writes }) {
  const [open, setOpen] = useState(false);
  const failed = run.failed_adoption;
  if (!run.rollback && !failed && !run.anchor_due && !run.parent) return null;
  return html`<div class="notices">
    ${run.rollback && html`<${Notice} action=${writes && html`<button class="button small" onClick=${() => setOpen(true)}>Go forward</button>`}>
      All workers are held at step <strong>${count(run.rollback.step)}</strong>. Rolled back <${Ago} time=${run.rollback.created} />. Publishing goes on.<//>`}
    ${failed && html`<${Notice} kind="bad">What the trainer put last could not become a step: ${failed.publish}. ${failed.error}<//>`}
    ${run.anchor_due && html`<${Notice}>The next step should bring an anchor.<//>`}
    ${run.parent && html`<p class="soft small">Forked from <a href=${href('runs', bucket, run.parent.run)}>${run.parent.run}</a>, step ${count(run.parent.step)}.</p>`}
    ${open && html`<${ForwardDialog} bucket=${bucket} name=${name} run=${run} onClose=${() => setOpen(false)} onDone=${data.set} />`}
  </div>`;
}
