// One step: how it came, its forms and objects, its files, and which weights it changed.
import { html, useState } from '../../vendor/htm-preact.js';
import { api } from '../../api.js';
import { href } from '../../route.js';
import { bytes, count, digest, duration, moment, percent } from '../../components/format.js';
import { Ago, useLoad } from '../../components/hooks.js';
import { Copy } from '../../components/copy.js';
import { Icon } from '../../components/icon.js';
import { Head, Loaded, Notice, Section } from '../../components/page.js';
import { Proof } from '../../components/run_table.js';
import { Table } from '../../components/table.js';
import { Changes, WHOLE } from './changes.js';
import { changedShare, fullBytes, runPath } from './run_data.js';
import { ForkDialog, PinDialog, RollbackDialog } from './run_dialogs.js';

export function Step({ bucket, name, run, data, step, crumbs, writes }) {
  const from = useLoad((signal) => api(runPath(bucket, name, 'steps', step), { signal }), [step, run.verified]);
  const at = (n) => href('runs', bucket, name, 'steps', String(n));
  return html`<div>
    <${Head} title="Step ${count(step)}" crumbs=${crumbs} lead=${from.data ? html`<${Lead} manifest=${from.data} />` : ''}>
      ${writes && from.data && html`<${Actions} bucket=${bucket} name=${name} run=${run} data=${data} step=${step} />`}
      <a class="button icon-only" href=${at(step - 1)} aria-label="The step before" title="The step before" hidden=${step <= 0}><${Icon} name="left" /></a>
      <a class="button icon-only" href=${at(step + 1)} aria-label="The step after" title="The step after" hidden=${step >= run.head}><${Icon} name="right" /></a>
    <//>
    <${Loaded} from=${from}>${(manifest) => html`<${Manifest} bucket=${bucket} name=${name} manifest=${manifest} />`}<//>
  </div>`;
}

function Lead({ manifest }) {
  return html`<span class="lead-line"><span>Published <${Ago} time=${manifest.created} /></span>${manifest.verified && html`<${Proof} verified=${manifest.verified} />`}
    <span>${bytes(fullBytes(manifest))} whole</span></span>`;
}

function Actions({ bucket, name, run, data, step }) {
  const [open, setOpen] = useState('');
  const shared = { bucket, name, run, step, onClose: () => setOpen(''), onDone: data.set };
  return html`<div class="actions">
    <button class="button" onClick=${() => setOpen('pin')}><${Icon} name="pin" />Pin…</button>
    <button class="button" onClick=${() => setOpen('rollback')}><${Icon} name="back" />Roll back here…</button>
    <button class="button" onClick=${() => setOpen('fork')}><${Icon} name="branch" />Fork…</button>
    ${open === 'pin' && html`<${PinDialog} ...${shared} onDone=${null} />`}
    ${open === 'rollback' && html`<${RollbackDialog} ...${shared} />`}
    ${open === 'fork' && html`<${ForkDialog} ...${shared} />`}
  </div>`;
}

function Manifest({ bucket, name, manifest }) {
  const { step, base, metadata = {} } = manifest;
  const share = changedShare(manifest);
  return html`<div>
    ${manifest.verify_error && html`<div class="notices"><${Notice} kind="bad">The proof of this step failed: ${manifest.verify_error}<//></div>`}
    ${manifest.collected && html`<div class="notices"><${Notice}>This step has been removed by retention. Its manifest is what remains.<//></div>`}
    <div class="columns">
      <section class="panel panel-body" aria-label="Facts"><dl class="facts">
        <dt>Published</dt><dd>${moment(manifest.created)}</dd>
        ${manifest.label && html`<dt>Label</dt><dd>${manifest.label}</dd>`}
        <dt>Changed</dt><dd>${share === null ? (base ? 'unknown' : WHOLE) : `${percent(share)}: ${count(manifest.changed.elements)} of ${count(manifest.changed.of)} elements`}</dd>
        <dt>Publish</dt><dd>${manifest.publish_ms === undefined ? 'unknown' : duration(manifest.publish_ms)}</dd>
        <dt>Epoch</dt><dd>${count(manifest.epoch)}</dd>
        <dt>Digest</dt><dd><${Digest} text=${manifest.digest} /></dd>
        ${base && html`<dt>Base</dt><dd><a href=${href('runs', bucket, name, 'steps', String(base.step))}>step ${count(base.step)}</a></dd>`}
      </dl></section>
      <section class="panel panel-body" aria-label="Metadata"><h2 class="panel-title">Metadata</h2>${Object.keys(metadata).length
        ? html`<dl class="facts">${Object.entries(metadata).map(([key, value]) => [html`<dt key=${key}>${key}</dt>`, html`<dd key="${key}-is">${value}</dd>`])}</dl>`
        : html`<p class="soft">The publisher gave none.</p>`}</section>
    </div>
    <${Changes} bucket=${bucket} name=${name} step=${step} base=${base} counted=${manifest.changed} />
    <${Section} title="Forms" note=${(manifest.forms || []).length ? '' : 'none'}><${Table} label="Objects of the forms" columns=${OBJECTS} rows=${objectsOf(manifest)} rowKey=${(one) => `${one.kind}/${one.name}`} height=${360} /><//>
    <${Section} title="Files" note="of the checkpoint that results"><${Table} label="Files" columns=${FILES} rows=${manifest.files} rowKey=${(file) => file.path} height=${360} /><//>
  </div>`;
}

const OBJECTS = [
  { id: 'kind', label: 'Form', width: '112px', value: (one) => one.kind, cell: (one) => html`<span class="tag ${one.kind === 'anchor' ? 'accent' : ''}">${one.kind}</span>` },
  { id: 'format', label: 'Format', width: '120px', hide: 'phone', value: (one) => one.format, cell: (one) => one.format },
  { id: 'name', label: 'Object', value: (one) => one.name, cell: (one) => html`<span title=${one.name}>${one.name}</span>` },
  { id: 'key', label: 'Key', hide: 'tablet', value: (one) => one.key, cell: (one) => html`<span class="soft" title=${one.key}>${one.key}</span>` },
  { id: 'size', label: 'Bytes', end: true, width: '104px', value: (one) => one.size, cell: (one) => bytes(one.size) },
  { id: 'digest', label: 'Digest', width: '160px', hide: 'tablet', cell: (one) => html`<${Digest} text=${one.digest} />` },
];

const FILES = [
  { id: 'path', label: 'File', value: (file) => file.path, cell: (file) => html`<span class="strong" title=${file.path}>${file.path}</span>` },
  { id: 'size', label: 'Bytes', end: true, width: '104px', value: (file) => file.size, cell: (file) => bytes(file.size) },
  { id: 'digest', label: 'Digest', width: '160px', hide: 'phone', cell: (file) => html`<${Digest} text=${file.digest} />` },
];

function Digest({ text }) {
  return html`<span class="digest"><code title=${text}>${digest(text)}</code>${text && html`<${Copy} text=${text} label="Copy the digest" />`}</span>`;
}

function objectsOf(manifest) {
  return (manifest.forms || []).flatMap((form) => form.objects.map((object) => ({ ...object, kind: form.kind, format: form.format })));
}
