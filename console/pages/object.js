// One object: what it is, its metadata and tags, its versions, links for others, and the header of a safetensors file.
import { html, useState } from '../vendor/htm-preact.js';
import { clock } from '../api.js';
import { Confirm, Dialog } from '../components/dialog.js';
import { CopyLine } from '../components/copy.js';
import { Search, SelectField, TextField } from '../components/field.js';
import { bytes, count, moment, some } from '../components/format.js';
import { Ago, useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Empty, Fault, Head, Loaded, Notice, Section } from '../components/page.js';
import { Table } from '../components/table.js';
import { attempt, toast } from '../components/toast.js';
import { go, href } from '../route.js';
import { deleteObjects, downloadUrl, headObject, listVersions, readRange, readTags, restoreVersion, shareUrl, writeTags } from '../s3.js';
import { may } from '../session.js';
import { readHeader } from '../safetensors.js';
import { crumbs, save, WhatStays } from './bucket.js';
import { Name, visible } from './name.js';

const HEADER_NAME = /\.safetensors$/i;
const LIFETIMES = [['900', '15 minutes'], ['3600', '1 hour'], ['86400', '1 day'], ['604800', '7 days']];

export function ObjectPage({ bucket, object, version }) {
  const [dialog, setDialog] = useState('');
  const slash = object.lastIndexOf('/', object.length - 2);
  const prefix = object.slice(0, slash + 1);
  const head = useLoad(() => headObject(bucket, object, version), [bucket, object, version]);
  const versions = useLoad(() => (may('list', bucket, object) ? listVersions(bucket, object) : Promise.resolve(null)), [bucket, object]);
  const close = () => setDialog('');
  const reload = () => { head.reload(); versions.reload(); };
  const deleted = () => { if (version) reload(); else go(href('buckets', bucket, { prefix })); };
  return html`<div>
    <${Head} title=${visible(object.slice(slash + 1))} crumbs=${crumbs(bucket, prefix)}>
      ${head.data && html`
        <button type="button" class="button primary" onClick=${() => attempt(async () => save(await downloadUrl(bucket, object, version)))}><${Icon} name="download" />Download</button>
        <button type="button" class="button" onClick=${() => setDialog('share')}><${Icon} name="link" />Share</button>
        ${may('write', bucket, object) && html`<button type="button" class="button danger" onClick=${() => setDialog('delete')}><${Icon} name="trash" />Delete</button>`}`}
    <//>
    ${version && html`<div class="notices"><${Notice} kind="calm" action=${html`<a class="button small" href=${href('buckets', bucket, { object })}>To the current one</a>`}>This is the version <code>${version}</code>.<//></div>`}
    <${Loaded} from=${head}>${(data) => html`
      <${Facts} data=${data} />
      ${data.metadata.length > 0 && html`<${Metadata} rows=${data.metadata} />`}
      <${Tags} key=${version || ''} bucket=${bucket} object=${object} version=${version} />
      ${HEADER_NAME.test(object) && html`<${Tensors} key=${version || ''} bucket=${bucket} object=${object} version=${version} size=${data.size} />`}`}<//>
    ${versions.data && html`<${Versions} bucket=${bucket} object=${object} shown=${version} found=${versions.data} reload=${reload} />`}
    ${dialog === 'share' && html`<${Share} bucket=${bucket} object=${object} version=${version} onClose=${close} />`}
    ${dialog === 'delete' && html`<${Delete} bucket=${bucket} object=${object} version=${version} onDone=${deleted} onClose=${close} />`}</div>`;
}

function Facts({ data }) {
  const rows = [
    ['Size', html`${bytes(data.size)}${data.size >= 1000 && html` <span class="soft">(${count(data.size)} bytes)</span>`}`],
    ['Type', visible(data.type)],
    ['Changed', html`${moment(data.modified)} <span class="soft">(<${Ago} time=${new Date(data.modified).toISOString()} />)</span>`],
    ['ETag', html`<code>${data.etag}</code>`],
    data.digest && ['Digest', html`<code>${data.digest}</code>`],
    data.version && ['Version', html`<code>${data.version}</code>`],
    data.derived && ['Made of', 'other versions and deltas, as it is read'],
    data.expires && ['Lifecycle', visible(data.expires)],
    ...data.headers.map(([name, value]) => [name, visible(value)]),
  ].filter(Boolean);
  return html`<div class="panel"><dl class="facts panel-body tight">${rows.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl></div>`;
}

function Metadata({ rows }) {
  return html`<${Section} title="Metadata">
    <div class="panel"><dl class="facts panel-body tight">${rows.map(([name, value]) => html`<dt key=${name}><bdi>${visible(name)}</bdi></dt><dd><bdi>${visible(value)}</bdi></dd>`)}</dl></div>
  <//>`;
}

function Tags({ bucket, object, version }) {
  const [editing, setEditing] = useState(false);
  const tags = useLoad(() => readTags(bucket, object, version), [bucket, object, version]);
  const mayEdit = may('write', bucket, object) && !version && tags.data;
  const edit = mayEdit && html`<button type="button" class="button small" onClick=${() => setEditing(true)}>Edit tags…</button>`;
  if (tags.fault || (!mayEdit && (!tags.data || !tags.data.length))) return null;
  return html`<${Section} title="Tags" actions=${edit}>
    <p>${tags.data && tags.data.length ? tags.data.map(([name, value]) => html`<span class="tag" key=${name}><bdi>${visible(name)}: ${visible(value)}</bdi></span>`)
      : html`<span class="soft">None. Lifecycle rules can choose objects by their tags.</span>`}</p>
    ${editing && html`<${EditTags} bucket=${bucket} object=${object} tags=${tags.data} onDone=${tags.reload} onClose=${() => setEditing(false)} />`}
  <//>`;
}

function EditTags({ bucket, object, tags, onDone, onClose }) {
  const [rows, setRows] = useState([...tags, ['', '']]);
  const change = (at, part, value) => setRows((before) => {
    const next = before.map((row) => [...row]);
    next[at][part] = value;
    if (next.at(-1)[0] && next.length < 10) next.push(['', '']);
    return next;
  });
  const store = async () => {
    await writeTags(bucket, object, rows.filter(([name]) => name));
    onDone();
    toast('The tags are stored.');
  };
  return html`<${Confirm} title="Edit tags" action="Store tags" onConfirm=${store} onClose=${onClose}>
    ${rows.map(([name, value], at) => html`<div class="form-row" key=${at}>
      <${TextField} label=${`Key ${at + 1}`} value=${name} maxlength="128" onChange=${(text) => change(at, 0, text)} />
      <${TextField} label=${`Value ${at + 1}`} value=${value} maxlength="256" onChange=${(text) => change(at, 1, text)} /></div>`)}
    <p class="soft small">Up to 10 tags of letters, digits, blanks and + - = . _ : / @. An empty key removes the tag.</p>
  <//>`;
}

function Share({ bucket, object, version, onClose }) {
  const [seconds, setSeconds] = useState('3600');
  const link = useLoad(async () => ({ url: await shareUrl(bucket, object, version, Number(seconds)), ends: clock.now() + 1000 * Number(seconds) }), [seconds]);
  return html`<${Dialog} title="A link for others" onClose=${onClose}><div class="stack">
    <${SelectField} label="Works for" value=${seconds} options=${LIFETIMES} onChange=${setSeconds} />
    ${link.fault ? html`<${Fault} fault=${link.fault} />` : html`<${CopyLine} text=${link.data ? link.data.url : '…'} label="Copy the link" />`}
    <p class="soft">Everybody that has the link can download this object, without a key. It ends ${link.data ? html`on ${moment(link.data.ends)}` : 'by itself'}, and at once when the key of this session is revoked.</p>
  </div><//>`;
}

function Delete({ bucket, object, version, onDone, onClose }) {
  const remove = async () => {
    const refused = await deleteObjects(bucket, [{ key: object, version: version || undefined }]);
    if (refused.length) throw new Error(refused[0].message);
    toast(`${visible(object)} is deleted.`);
    onDone();
  };
  return html`<${Confirm} title=${version ? 'Delete this version?' : 'Delete this object?'} action=${version ? 'Delete version' : 'Delete object'} danger onConfirm=${remove} onClose=${onClose}>
    <p class="break"><bdi>${visible(object)}</bdi></p>
    <p class="soft">${version ? 'The version is gone for good; the one before it becomes current if this was the newest.' : html`<${WhatStays} bucket=${bucket} />`} Steps that were published keep what they need.</p>
  <//>`;
}

function Versions({ bucket, object, shown, found, reload }) {
  const [doomed, setDoomed] = useState(null);
  const mayWrite = may('write', bucket, object);
  const restore = (row) => attempt(async () => { await restoreVersion(bucket, object, row.version); reload(); }, 'The version is current again, as a copy.');
  if (found.versions.length < 2 && !found.versions.some((row) => row.marker || row.version !== 'null')) return null;
  const columns = [
    { id: 'version', label: 'Version', cell: (row) => (row.marker ? html`<code class="clip">${row.version}</code>` : html`<a class="clip" href=${href('buckets', bucket, { object, version: row.version })}><code>${row.version}</code></a>`) },
    { id: 'state', name: 'State', width: '120px', cell: (row) => html`${row.latest && html`<span class="tag accent">current</span>`}${row.marker && html`<span class="tag warn">deleted</span>`}` },
    { id: 'size', label: 'Size', end: true, width: '100px', hide: 'phone', cell: (row) => (row.marker ? '' : bytes(row.size)) },
    { id: 'modified', label: 'Made', end: true, width: '110px', cell: (row) => html`<${Ago} time=${row.modified} />` },
    { id: 'act', name: 'Actions', end: true, width: '110px', cell: (row) => mayWrite && html`<span class="row-actions">
      ${!row.latest && !row.marker && html`<button type="button" class="button plain icon-only small" aria-label=${`Restore version ${row.version}`} title="Restore, as a copy" onClick=${() => restore(row)}><${Icon} name="back" /></button>`}
      <button type="button" class="button plain icon-only small" aria-label=${`Delete version ${row.version}`} title="Delete this version" onClick=${() => setDoomed(row)}><${Icon} name="trash" /></button></span>` },
  ];
  return html`<${Section} title="Versions" note=${found.complete ? some('version', found.versions.length) : 'the newest'}>
    <${Table} label="Versions" rows=${found.versions} rowKey=${(row) => row.version} columns=${columns} selected=${shown || undefined} height=${420} />
    ${doomed && html`<${Delete} bucket=${bucket} object=${object} version=${doomed.version} onDone=${reload} onClose=${() => setDoomed(null)} />`}
  <//>`;
}

function Tensors({ bucket, object, version, size }) {
  const header = useLoad((signal) => readHeader((first, last) => readRange(bucket, object, version, first, last, signal), size), [bucket, object, version]);
  return html`<${Section} title="Tensors" note=${header.data ? tensorNote(header.data) : ''}>
    ${header.fault ? html`<${Notice}>${visible(header.fault.message)}<//>` : header.data ? html`<${TensorTable} data=${header.data} />` : html`<p class="soft" role="status">Reading the header…</p>`}
  <//>`;
}

function tensorNote(data) {
  return `${some('tensor', data.tensors.length)}, ${bytes(data.dataBytes)}, a header of ${bytes(data.headerBytes)}`;
}

function TensorTable({ data }) {
  const [text, setText] = useState('');
  const rows = text ? data.tensors.filter((one) => one.name.includes(text)) : data.tensors;
  const columns = [
    { id: 'name', label: 'Name', value: (row) => row.name, cell: (row) => html`<${Name} text=${row.name} />` },
    { id: 'dtype', label: 'Type', width: '90px', value: (row) => row.dtype, cell: (row) => row.dtype },
    { id: 'shape', label: 'Shape', width: '160px', hide: 'phone', cell: (row) => (row.shape.length ? row.shape.join(' × ') : 'scalar') },
    { id: 'elements', label: 'Elements', end: true, width: '130px', hide: 'tablet', value: (row) => row.elements, cell: (row) => count(row.elements) },
    { id: 'bytes', label: 'Size', end: true, width: '100px', value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  ];
  return html`<div>
    ${data.metadata.length > 0 && html`<div class="panel tensor-metadata"><dl class="facts panel-body tight">${data.metadata.slice(0, 50).map(([name, value]) =>
      html`<dt key=${name}><bdi>${visible(name.slice(0, 200))}</bdi></dt><dd><bdi>${visible(value.slice(0, 2000))}</bdi></dd>`)}</dl></div>`}
    <div class="section-head"><${Search} label="Find a tensor" placeholder="Find a tensor" value=${text} onChange=${setText} /></div>
    <${Table} label="Tensors" rows=${rows} rowKey=${(row) => row.name} columns=${columns} height=${520} foot=${html`<span role="status">${some('tensor', rows.length)}</span>`} empty=${html`<${Empty} title=${text ? 'No tensor has this in its name' : 'The file has no tensors'} />`} />
  </div>`;
}
