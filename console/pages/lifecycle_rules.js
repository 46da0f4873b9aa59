// The lifecycle rules of one bucket: what each does in words, and a form for those that a form can hold.
import { html, useState } from '../vendor/htm-preact.js';
import { Confirm } from '../components/dialog.js';
import { CheckField, Field, TextField } from '../components/field.js';
import { useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { State } from '../components/meter.js';
import { Empty, Loaded, Section } from '../components/page.js';
import { toast } from '../components/toast.js';
import { faultOf, newRule, parseRules, sentences, writeRules } from '../lifecycle.js';
import { readLifecycle, writeLifecycle } from '../s3.js';
import { visible } from './name.js';

/** A section with the rules of `bucket`. `picker`: a control beside its heading; `spaced`: something stands above it. */
export function Lifecycle({ bucket, mayChange, title = 'Lifecycle', picker, spaced = true }) {
  const [editing, setEditing] = useState(null);
  const rules = useLoad(async () => { const text = await readLifecycle(bucket); return { text, rows: parseRules(text) }; }, [bucket]);
  const store = async (text, done) => {
    await writeLifecycle(bucket, text);
    rules.reload();
    toast(done);
  };
  const edit = mayChange && rules.data && html`
    <button type="button" class="button small" onClick=${() => setEditing({ document: true })}>Edit document…</button>
    <button type="button" class="button small" onClick=${() => setEditing({ at: rules.data.rows.length, rule: newRule() })}><${Icon} name="plus" />Add rule…</button>`;
  return html`<div class=${spaced ? 'spaced' : ''}><${Section} title=${title} actions=${html`<div class="actions">${picker}${edit}</div>`}>
    <${Loaded} from=${rules}>${({ text, rows }) => html`
      <div class="panel">${rows.length ? html`<ul class="rows">${rows.map((rule, at) => html`<${Rule} key=${rule.id || at} rule=${rule} mayChange=${mayChange} onEdit=${() => setEditing(rule.more ? { document: true } : { at, rule })} />`)}</ul>`
        : html`<${Empty} title="No rules">A rule removes what is old: objects, older versions, uploads that were never completed.<//>`}</div>
      ${editing && editing.rule && html`<${EditRule} rows=${rows} at=${editing.at} rule=${editing.rule} store=${store} onClose=${() => setEditing(null)} />`}
      ${editing && editing.document && html`<${EditDocument} text=${text} store=${store} onClose=${() => setEditing(null)} />`}`}<//>
  <//></div>`;
}

function Rule({ rule, mayChange, onEdit }) {
  return html`<li><div class="grow">
      <div class="strong break"><bdi>${rule.prefix ? visible(rule.prefix) : 'All objects'}</bdi></div>
      <div class="small soft break">${sentences(rule).join('; ') || 'does nothing'}</div></div>
    <${State} kind=${rule.enabled ? 'ok' : ''}>${rule.enabled ? 'on' : 'off'}<//>
    ${mayChange && html`<button type="button" class="button small" onClick=${onEdit} aria-label=${`Edit the rule ${visible(rule.id)}`}>Edit…</button>`}</li>`;
}

function EditRule({ rows, at, rule, store, onClose }) {
  const [form, setForm] = useState(rule);
  const isNew = at === rows.length;
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const number = (name) => (value) => set(name)(value.trim());
  const put = (changed) => store(writeRules(rows.flatMap((one, i) => (i === at ? changed : [one])).concat(isNew ? changed : [])), 'The rules are stored.');
  const confirm = async () => {
    const fault = faultOf(form);
    if (fault) throw new Error(fault);
    await put([form]);
  };
  const remove = () => put([]).then(onClose, (fault) => toast(fault.message, 'bad'));
  return html`<${Confirm} title=${isNew ? 'Add a rule' : 'Edit the rule'} action="Store rule" onConfirm=${confirm} onClose=${onClose}>
    <${TextField} label="Prefix" help="Keys that begin so; empty: all objects." mono value=${form.prefix} onChange=${set('prefix')} spellcheck=${false} />
    <div class="form-row">
      <${TextField} label="Objects go after days" inputmode="numeric" value=${form.days} onChange=${number('days')} />
      <${TextField} label="Unfinished uploads end after days" inputmode="numeric" value=${form.abortDays} onChange=${number('abortDays')} />
    </div>
    <div class="form-row">
      <${TextField} label="Older versions go after days" inputmode="numeric" value=${form.olderDays} onChange=${number('olderDays')} />
      <${TextField} label="Older versions that stay" inputmode="numeric" value=${form.olderKept} onChange=${number('olderKept')} />
    </div>
    <${CheckField} label="The rule is on" value=${form.enabled} onChange=${set('enabled')} />
    <p class="soft small">Days end at the next midnight UTC. What published steps need stays, whatever a rule says.</p>
    ${!isNew && html`<p><button type="button" class="button small danger" onClick=${remove}><${Icon} name="trash" />Remove this rule</button></p>`}
  <//>`;
}

function EditDocument({ text, store, onClose }) {
  const [form, setForm] = useState(text);
  return html`<${Confirm} title="The rules as a document" action="Store document" broad onConfirm=${() => store(form.trim(), form.trim() ? 'The rules are stored.' : 'All rules are removed.')} onClose=${onClose}>
    <${Field} label="LifecycleConfiguration, as S3 has it" help="Empty: no rules.">${(id) => html`
      <textarea id=${id} class="input mono" rows="16" spellcheck=${false} value=${form} onInput=${(event) => setForm(event.target.value)}></textarea>`}<//>
  <//>`;
}
