// The settings of a run, retention among them, and its end. Nothing changes before a list of the changes was confirmed.
import { html, useMemo, useState } from '../../vendor/htm-preact.js';
import { api } from '../../api.js';
import { CheckField, SelectField, TextField } from '../../components/field.js';
import { Confirm } from '../../components/dialog.js';
import { Section } from '../../components/page.js';
import { toast } from '../../components/toast.js';
import { runPath } from './run_data.js';
import { EndDialog } from './run_dialogs.js';

const ADOPT = ['', 'trl', 'slime', 'stitch', 'modelexpress', 'skyrl', 'pulse'].map((one) => [one, one || 'nothing']);
const GROUPS = [
  ['Retention', [['keep_steps', 'Steps to keep', 'The newest ones. 0 keeps all. Pins and workers keep theirs beside these.']]],
  ['Workers', [['lease_s', 'Lease in seconds', 'A worker that was not heard of for this long counts as lost; with thousands of workers it takes longer. 10 to 86,400.']]],
  ['Proof', [['verify', 'Decode and prove each published step', 'In the background. Without it nothing is counted either.']]],
  ['Views', [['view_trl', "Keep steps in TRL's layout too", 'As objects below deltas/ and anchors/.'], ['view_slime', "Keep steps in slime's layout too", 'As objects below updates/.']]],
  ['Adoption', [['adopt', "Make steps of what a trainer puts in the convention of"], ['adopt_prefix', 'Where its keys begin', '{run} stands for the name of the run.']]],
  ['Hot-loads', [['hot_load', 'Deployment whose hot-loads are steps of this run', 'Empty: none.'], ['hot_load_prefix', 'Where their objects lie', '{run} stands for the name of the run.']]],
  ['Webhook', [['webhook', 'URL that is told of each step', "The server's option webhook_hosts must allow its host. Empty: none."]]],
];
const LABELS = new Map(GROUPS.flatMap(([, fields]) => fields));
const LIMITS = { lease_s: [10, 86400] };

/** `edits` are the changes that are not saved yet; the page of the run keeps them while other tabs are looked at. */
export function Settings({ bucket, name, run, data, writes, edits: form, setEdits: setForm }) {
  const [open, setOpen] = useState('');
  const value = (id) => (id in form ? form[id] : run.settings[id]);
  const changes = useMemo(() => Object.entries(form).filter(([id, one]) => String(one) !== String(run.settings[id])), [form, run.settings]);
  const others = Object.keys(run.settings).filter((id) => !LABELS.has(id));
  const groups = others.length ? [...GROUPS, ['Other', others.map((id) => [id, id])]] : GROUPS;
  const save = async () => {
    data.set(await api(runPath(bucket, name, 'settings'), { method: 'PUT', json: Object.fromEntries(changes.map(([id, one]) => [id, typed(run.settings[id], one)])) }));
    setForm({});
    toast('The settings are changed.');
  };
  return html`<div>
    <form class="settings" onSubmit=${(event) => { event.preventDefault(); if (changes.length) setOpen('save'); }}>
      <fieldset disabled=${!writes}>
        ${groups.map(([title, fields]) => html`<section key=${title} class="setting" aria-label=${title}><h2>${title}</h2><div class="form">${fields.filter(([id]) => id in run.settings).map(([id, label, help]) =>
          html`<${Setting} key=${id} id=${id} label=${label} help=${help} value=${value(id)} was=${run.settings[id]} onChange=${(one) => setForm((before) => ({ ...before, [id]: one }))} />`)}</div></section>`)}
      </fieldset>
      ${writes ? html`<div class="settings-foot"><span class="soft">${changes.length ? `${changes.length === 1 ? '1 change' : `${changes.length} changes`} not saved` : ''}</span>
        <button type="button" class="button" disabled=${!changes.length} onClick=${() => setForm({})}>Undo</button>
        <button type="submit" class="button primary" disabled=${!changes.length}>Save</button></div>` : html`<p class="soft">Your key may read these settings. Changing them needs write on ${bucket}/${name}/.</p>`}
    </form>
    ${writes && html`<${Section} title="End the run"><div class="panel panel-body end-run"><p class="soft">Its steps go, its objects stay in the bucket.</p>
      <button class="button danger" onClick=${() => setOpen('end')}>End the run…</button></div><//>`}
    ${open === 'save' && html`<${Confirm} title="Change settings of ${bucket}/${name}" action="Change" onConfirm=${save} onClose=${() => setOpen('')}>
      <dl class="facts">${changes.map(([id, one]) => [html`<dt key=${id}>${LABELS.get(id) || id} <code class="small">${id}</code></dt>`, html`<dd key="${id}-to"><s class="soft">${shown(run.settings[id])}</s> → <strong>${shown(one)}</strong></dd>`])}</dl>
      ${changes.map(([id, one]) => meaning(id, one, run)).filter(Boolean).map((line) => html`<p key=${line}>${line}</p>`)}<//>`}
    ${open === 'end' && html`<${EndDialog} bucket=${bucket} name=${name} run=${run} onClose=${() => setOpen('')} />`}
  </div>`;
}

function Setting({ id, label, help, value, was, onChange }) {
  if (typeof was === 'boolean') return html`<${CheckField} label=${label} help=${help} value=${value} onChange=${onChange} />`;
  if (id === 'adopt') return html`<${SelectField} label=${label} value=${value} options=${ADOPT} onChange=${onChange} />`;
  const number = typeof was === 'number';
  return html`<${TextField} label=${label} help=${help} mono=${!number} value=${value} onChange=${onChange} spellcheck=${false} autocomplete="off"
    ...${number ? numeric(LIMITS[id]) : {}} />`;
}

function numeric(limits) {
  return limits ? { type: 'number', min: limits[0], max: limits[1], required: true } : { inputmode: 'numeric', pattern: '[0-9]+', title: 'A whole number', required: true };
}

// What a change means where the names alone do not say it.
function meaning(id, one, run) {
  if (id === 'keep_steps' && Number(one) > 0 && (run.settings.keep_steps === 0 || Number(one) < run.settings.keep_steps)) {
    return 'Older steps are removed soon, unless a pin or a worker keeps them. Removed steps do not come back.';
  }
  if (id === 'verify' && !one) return 'Steps are no longer proven: damage of a publish is found by workers alone.';
  if ((id === 'view_trl' || id === 'view_slime') && !one) return 'The objects of this view are removed.';
  if (id === 'webhook') return one ? 'Every step from now on is sent to this URL.' : 'Nothing is sent from now on.';
  return '';
}

function typed(was, value) { return typeof was === 'number' ? Number(value) : value; }

function shown(value) { return value === '' ? 'empty' : String(value); }
