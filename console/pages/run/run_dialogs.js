// What can be done to a run, each with what it will mean before it is done.
import { html, useState } from '../../vendor/htm-preact.js';
import { api } from '../../api.js';
import { go, href } from '../../route.js';
import { count } from '../../components/format.js';
import { Confirm } from '../../components/dialog.js';
import { TextField } from '../../components/field.js';
import { toast } from '../../components/toast.js';
import { runPath } from './run_data.js';

/** Holds the fleet at a step. `step` is what the field begins with. */
export function RollbackDialog({ bucket, name, run, step, onClose, onDone }) {
  const [to, setTo] = useState(String(step ?? (run.rollback ? run.rollback.step : Math.max(0, run.head - 1))));
  const confirm = async () => {
    onDone(await api(runPath(bucket, name, 'rollback'), { method: 'PUT', json: { step: number(to) } }));
    toast(`All workers of ${bucket}/${name} go to step ${count(number(to))}.`);
  };
  return html`<${Confirm} title="Roll back ${bucket}/${name}" action="Roll back" danger onConfirm=${confirm} onClose=${onClose}>
    <p>Every worker of the run goes to this step and stays there until you go forward. The trainer is not stopped: steps that it publishes are kept.</p>
    <${StepField} label="To step" value=${to} onChange=${setTo} head=${run.head} />
  <//>`;
}

export function ForwardDialog({ bucket, name, run, onClose, onDone }) {
  const confirm = async () => {
    onDone({ ...await api(runPath(bucket, name, 'rollback'), { method: 'DELETE' }) });
    toast(`All workers of ${bucket}/${name} go to the newest step.`);
  };
  return html`<${Confirm} title="Go forward" action="Go forward" onConfirm=${confirm} onClose=${onClose}>
    <p>The hold at step ${count(run.rollback ? run.rollback.step : null)} ends. Every worker of ${bucket}/${name} takes the newest step, ${count(run.head)}, at once.</p>
  <//>`;
}

/** Makes a new run of a step. */
export function ForkDialog({ bucket, name, run, step, onClose }) {
  const [from, setFrom] = useState(String(step ?? run.head));
  const [to, setTo] = useState('');
  const confirm = async () => {
    await api(runPath(bucket, to), { method: 'POST', json: { expected_epoch: 0, fork: { run: name, step: number(from) } } });
    toast(`${bucket}/${to} begins at step ${count(number(from))} of ${name}.`);
    go(href('runs', bucket, to));
  };
  return html`<${Confirm} title="Fork ${bucket}/${name}" action="Make the run" onConfirm=${confirm} onClose=${onClose}>
    <p>A new run begins with the checkpoint of a step. The bytes are shared, not copied, and stay when this run ends.</p>
    <${TextField} label="Name of the new run" help="In bucket ${bucket}. Up to 128 of A-Z a-z 0-9 . _ -" mono required title="Letters, digits and . _ -, and no . or - at first" pattern="[A-Za-z0-9_][A-Za-z0-9._\\-]*" maxlength="128" spellcheck=${false} autocomplete="off" data-focus value=${to} onChange=${setTo} />
    <${StepField} label="From step" value=${from} onChange=${setFrom} head=${run.head} />
  <//>`;
}

/** Adds a pin, or moves one. */
export function PinDialog({ bucket, name, run, step, pin, onClose, onDone }) {
  const [form, setForm] = useState({ name: pin ? pin.name : '', step: String(step ?? (pin ? pin.step : run.head)), days: '' });
  const fill = (member) => (value) => setForm((before) => ({ ...before, [member]: value }));
  const confirm = async () => {
    const days = Number(form.days || 0);
    await api(runPath(bucket, name, 'pins', form.name), { method: 'PUT', json: { step: number(form.step), ...(days > 0 && { ttl_s: Math.round(days * 86400) }) } });
    toast(`Pin ${form.name} keeps step ${count(number(form.step))}.`);
    if (onDone) await onDone();
  };
  return html`<${Confirm} title=${pin ? `Move pin ${pin.name}` : 'Pin a step'} action=${pin ? 'Move the pin' : 'Pin the step'} onConfirm=${confirm} onClose=${onClose}>
    <p>A pin keeps a step and what leads to it, whatever retention says.</p>
    ${!pin && html`<${TextField} label="Name" mono required title="Letters, digits and . _ : -, and no . or - at first" pattern="[A-Za-z0-9_:][A-Za-z0-9._:\\-]*" maxlength="128" spellcheck=${false} autocomplete="off" data-focus value=${form.name} onChange=${fill('name')} />`}
    <div class="form-row"><${StepField} label="Step" value=${form.step} onChange=${fill('step')} head=${run.head} />
    <${TextField} label="Keep for (days)" help="Empty: for ever." inputmode="decimal" title="A number of days, such as 7 or 1.5" pattern="[0-9]+([.][0-9]+)?" value=${form.days} onChange=${fill('days')} /></div>
  <//>`;
}

/** Ends the run. */
export function EndDialog({ bucket, name, run, onClose }) {
  const confirm = async () => {
    await api(runPath(bucket, name), { method: 'DELETE' });
    toast(`${bucket}/${name} has ended.`);
    go(href('runs'));
  };
  return html`<${Confirm} title="End ${bucket}/${name}" action="End the run" danger word=${name} onConfirm=${confirm} onClose=${onClose}>
    <p>Its ${count(run.steps)} steps, pins and workers' reports are gone at once, and its name is free again. The objects that the trainer put stay in bucket ${bucket} until they are deleted.</p>
  <//>`;
}

function StepField({ label, value, onChange, head }) {
  return html`<${TextField} label=${label} help="The newest is ${count(head)}." inputmode="numeric" title="The number of a step" pattern="[0-9]+" required value=${value} onChange=${onChange} />`;
}

// What the field holds is checked by its pattern; the server judges the rest.
function number(text) { return Number.parseInt(text, 10); }
