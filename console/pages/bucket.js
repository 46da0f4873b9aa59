// One bucket: its objects by folder, with upload, search and deletion; the other views are files of their own.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { api, path } from '../api.js';
import { Chosen, useChoice } from '../components/choice.js';
import { Confirm } from '../components/dialog.js';
import { Search } from '../components/field.js';
import { bytes, count, some } from '../components/format.js';
import { Ago, useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Empty, Fault, Head, Section, Waiting } from '../components/page.js';
import { Table } from '../components/table.js';
import { Tabs } from '../components/tabs.js';
import { attempt, toast } from '../components/toast.js';
import { go, href } from '../route.js';
import { deleteObjects, downloadUrl, listAll, listFolder } from '../s3.js';
import { may, prefixesOf, session } from '../session.js';
import { droppedFiles, pickedFiles } from '../upload.js';
import { BucketDeleted } from './bucket_deleted.js';
import { BucketSettings } from './bucket_settings.js';
import { BucketUsage } from './bucket_usage.js';
import { Name, visible } from './name.js';
import { ObjectPage } from './object.js';
import { Uploads, uploads } from './uploads.js';

const DELETE_MAX = 20000;

export function BucketPage({ bucket, query }) {
  const object = query.get('object');
  if (object !== null) return html`<${ObjectPage} key=${object} bucket=${bucket} object=${object} version=${query.get('version')} />`;
  const prefix = query.get('prefix') || '';
  const view = query.get('view') || 'objects';
  return html`<div>
    <${Head} title=${bucket} crumbs=${crumbs(bucket, prefix, view)} />
    <${Tabs} label="Views of the bucket" current=${view} items=${tabs(bucket, prefix)} />
    ${view === 'deleted' ? html`<${BucketDeleted} key=${prefix} bucket=${bucket} prefix=${prefix} />`
      : view === 'usage' ? html`<${BucketUsage} key=${prefix} bucket=${bucket} prefix=${prefix} />`
      : view === 'settings' ? html`<${BucketSettings} bucket=${bucket} />`
      : html`<${Objects} key=${prefix} bucket=${bucket} prefix=${prefix} />`}</div>`;
}

function tabs(bucket, prefix) {
  const items = [
    { id: 'objects', label: 'Objects', href: href('buckets', bucket, { prefix }) },
    { id: 'deleted', label: 'Deleted', href: href('buckets', bucket, { prefix, view: 'deleted' }) },
    { id: 'usage', label: 'Usage', href: href('buckets', bucket, { prefix, view: 'usage' }) },
  ];
  if (may('list', bucket)) items.push({ id: 'settings', label: 'Settings', href: href('buckets', bucket, { view: 'settings' }) });
  return items;
}

/** The way from the list of buckets to a prefix. */
export function crumbs(bucket, prefix, view = 'objects') {
  const more = view === 'usage' || view === 'deleted' ? { view } : {};
  const way = [['Buckets', href('buckets')], [bucket, href('buckets', bucket, more)]];
  let at = '';
  for (const segment of prefix.split(/(?<=\/)/).filter(Boolean)) {
    at += segment;
    way.push([visible(segment.replace(/\/$/, '') || '/'), href('buckets', bucket, { prefix: at, ...more })]);
  }
  return way;
}

function Objects({ bucket, prefix }) {
  const [text, setText] = useState('');
  const [doomed, setDoomed] = useState(null);
  const list = useFolder(bucket, prefix);
  const search = useSearch(bucket, prefix, text);
  const { rows, next } = text ? search : list;
  const choice = useChoice(rows);
  const mayWrite = may('write', bucket, prefix) || mayBelow('write', bucket, prefix);
  useEffect(() => uploads.whenDone((upload) => { if (upload.bucket === bucket && upload.key.startsWith(prefix)) list.reload(); }), [bucket, prefix]);
  const removed = () => { choice.clear(); list.reload(); search.reload(); };
  if (isBeyond(list.fault, bucket)) return html`<${Reachable} bucket=${bucket} />`;
  return html`
    <${DropZone} on=${mayWrite} bucket=${bucket} prefix=${prefix}>
      <div class="section-head">
        <${Search} label="Search this folder and below" placeholder="Search here and below" value=${text} onChange=${setText} />
        ${mayWrite && html`<div class="actions at-end"><${Pickers} bucket=${bucket} prefix=${prefix} /></div>`}
      </div>
      <${Uploads} />
      <${Chosen} choice=${choice} rows=${rows} more=${next}><${Deeds} bucket=${bucket} picked=${choice.picked} mayWrite=${mayWrite} onDelete=${() => setDoomed(choice.picked)} /><//>
      ${list.fault && html`<${Fault} fault=${list.fault} retry=${list.reload} />`}
      ${search.fault && html`<${Fault} fault=${search.fault} retry=${search.reload} />`}
      ${!list.loaded && !list.fault && html`<${Waiting} />`}
      ${list.loaded && html`
        <${Table} label=${text ? 'Objects found' : 'Objects'} rows=${rows} rowKey=${(row) => row.id} onOpen=${(row) => go(row.href)} columns=${[choice.column, ...COLUMNS]}
          sort=${text ? undefined : { id: 'name' }} foot=${html`<${Foot} list=${text ? search : list} text=${text} />`}
          empty=${text ? html`<${Empty} title=${search.busy ? 'Searching…' : 'No key below here has this text'} />` : html`<${NoObject} bucket=${bucket} prefix=${prefix} mayWrite=${mayWrite} />`} />`}
      ${doomed && html`<${DeleteObjects} bucket=${bucket} prefix=${prefix} picked=${doomed} onClose=${() => setDoomed(null)} onDone=${removed} />`}
    <//>`;
}

/** Whether a place may not be listed while the key may list others of the bucket. */
export const isBeyond = (fault, bucket) => Boolean(fault && fault.status === 403 && prefixesOf('list', bucket).length);

/** What a key may list of a bucket that it may not list as a whole. */
export function Reachable({ bucket, view }) {
  return html`<${Section} title="Your key may list these folders">
    <div class="panel"><ul class="rows">${[...new Set(prefixesOf('list', bucket))].sort().map((prefix) => html`<li key=${prefix}>
      <a class="with-icon grow" href=${href('buckets', bucket, { prefix, view })}><${Icon} name="folder" /><${Name} text=${prefix || bucket} /></a></li>`)}</ul></div>
  <//>`;
}

const COLUMNS = [
  { id: 'name', label: 'Name', value: (row) => `${row.folder ? 0 : 1}${row.name}`, cell: (row) => html`
    <a class="with-icon" href=${row.href} tabindex="-1"><${Icon} name=${row.folder ? 'folder' : 'file'} /><${Name} text=${row.name} /></a>` },
  { id: 'size', label: 'Size', end: true, width: '100px', value: (row) => (row.folder ? null : row.size), cell: (row) => (row.folder ? '' : bytes(row.size)) },
  { id: 'modified', label: 'Changed', end: true, width: '120px', hide: 'phone', value: (row) => row.modified, cell: (row) => (row.folder ? '' : html`<${Ago} time=${row.modified} />`) },
];

// A key whose grants begin further down may still write there.
export function mayBelow(permission, bucket, prefix) {
  return session.value.grants.some((grant) => {
    const at = grant.lastIndexOf('=');
    return grant.slice(0, at).startsWith(`${bucket}/${prefix}`) && grant.slice(at + 1).split(',').includes(permission);
  });
}

const rowOfFolder = (bucket, prefix, folder) => ({ id: `/${folder}`, folder: true, key: folder, name: folder.slice(prefix.length), href: href('buckets', bucket, { prefix: folder }) });
const rowOfObject = (bucket, prefix, one) => ({ ...one, id: `=${one.key}`, folder: false, name: one.key.slice(prefix.length), href: href('buckets', bucket, { object: one.key }) });

/** The level below a prefix, page by page. */
function useFolder(bucket, prefix) {
  const [state, setState] = useState({ rows: [], loaded: false, busy: false });
  const [turn, setTurn] = useState(0);
  const load = async (token, before, signal) => {
    setState((old) => ({ ...old, busy: true, fault: null }));
    try {
      const page = await listFolder(bucket, prefix, { token, signal });
      const rows = [...before, ...page.folders.map((one) => rowOfFolder(bucket, prefix, one)), ...page.objects.map((one) => rowOfObject(bucket, prefix, one))];
      if (!signal.aborted) setState({ rows, next: page.next, loaded: true, busy: false });
    } catch (fault) {
      if (!signal.aborted) setState((old) => ({ ...old, fault, busy: false }));
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    load(undefined, [], stop.signal);
    return () => stop.abort();
  }, [bucket, prefix, turn]);
  return { ...state, more: () => load(state.next, state.rows, new AbortController().signal), reload: () => setTurn((n) => n + 1) };
}

/** What below the prefix has this text in its key. The server looks at so many keys at a time; `more` looks on. */
function useSearch(bucket, prefix, text) {
  const [state, setState] = useState({ rows: [], scanned: 0, busy: true });
  const [turn, setTurn] = useState(0);
  const look = async (after, before, scanned, signal) => {
    setState((old) => ({ ...old, busy: true, fault: null }));
    try {
      const found = await api(path('-', 'buckets', bucket, 'search'), { query: { prefix, contains: text, after, limit: 1000 }, signal });
      const rows = [...before, ...found.objects.map((one) => rowOfObject(bucket, prefix, one))];
      if (!signal.aborted) setState({ rows, scanned: scanned + found.scanned, next: found.next, busy: false });
    } catch (fault) {
      if (!signal.aborted) setState((old) => ({ ...old, busy: false, fault }));
    }
  };
  useEffect(() => {
    setState({ rows: [], scanned: 0, busy: true });
    if (!text) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => look(undefined, [], 0, stop.signal), 200);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [bucket, prefix, text, turn]);
  return { ...state, more: () => look(state.next, state.rows, state.scanned, new AbortController().signal), reload: () => setTurn((n) => n + 1) };
}

function Foot({ list, text }) {
  const said = text ? `${some('object', list.rows.length)} found among ${count(list.scanned)}` : some('entry', list.rows.length, 'entries');
  return html`<div class="contents"><span role="status">${said}${list.next ? ', and more' : ''}</span>
    ${list.next && html`<button type="button" class="button small" onClick=${list.more} disabled=${list.busy}>${text ? 'Search on' : 'Show more'}</button>`}</div>`;
}

function NoObject({ bucket, prefix, mayWrite }) {
  const title = prefix ? 'Nothing is here' : 'The bucket is empty';
  if (!mayWrite) return html`<${Empty} title=${title} />`;
  // What stands here may be pasted into a shell, and the prefix is anybody's word.
  const isPlain = /^[A-Za-z0-9._/-]*$/.test(prefix);
  return html`<${Empty} title=${title} command=${isPlain && `deltabucket put FILE ${bucket}/${prefix}`}>Drop files or folders here, choose them above, or use the command line.<//>`;
}

function Pickers({ bucket, prefix }) {
  const files = useRef(null), folder = useRef(null);
  const take = (event) => {
    for (const { path: name, file } of pickedFiles(event.target.files)) uploads.add(bucket, prefix + name, file);
    event.target.value = '';
  };
  const asFolder = (input) => { folder.current = input; if (input) input.webkitdirectory = true; };
  return html`<div class="contents">
    <input ref=${files} type="file" multiple hidden aria-label="Files to upload" onChange=${take} />
    <input ref=${asFolder} type="file" hidden aria-label="Folder to upload" onChange=${take} />
    <button type="button" class="button hide-phone" onClick=${() => folder.current.click()}><${Icon} name="folder" />Upload folder</button>
    <button type="button" class="button primary" onClick=${() => files.current.click()}><${Icon} name="upload" />Upload files</button></div>`;
}

function DropZone({ on, bucket, prefix, children }) {
  const [over, setOver] = useState(false);
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    const dropped = droppedFiles(event.dataTransfer);
    if (on) attempt(async () => { for (const { path: name, file } of await dropped) uploads.add(bucket, prefix + name, file); });
  };
  const drag = (event) => {
    if (!event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    setOver(on);
  };
  const leave = (event) => { if (!event.currentTarget.contains(event.relatedTarget)) setOver(false); };
  return html`
    <div class="drop-zone" onDragEnter=${drag} onDragOver=${drag} onDrop=${drop} onDragLeave=${leave}>
      ${children}
      ${over && html`<div class="drop-hint" aria-hidden="true"><${Icon} name="upload" />Drop to upload to ${bucket}/${visible(prefix)}</div>`}
    </div>`;
}

function Deeds({ bucket, picked, mayWrite, onDelete }) {
  const isFiles = picked.every((row) => !row.folder);
  const download = () => attempt(async () => { for (const row of picked) save(await downloadUrl(bucket, row.key)); });
  return html`<div class="contents">
    ${isFiles && html`<button type="button" class="button small" onClick=${download}><${Icon} name="download" />Download</button>`}
    ${mayWrite && html`<button type="button" class="button small danger" onClick=${onDelete}><${Icon} name="trash" />Delete</button>`}</div>`;
}

/** Lets the browser save what a signed URL gives. */
export function save(url) {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  document.body.append(link);
  link.click();
  link.remove();
}

function DeleteObjects({ bucket, prefix, picked, onClose, onDone }) {
  const [progress, setProgress] = useState('');
  const found = useLoad((signal) => collect(bucket, picked, signal), []);
  const all = found.data ? found.data.objects : [];
  const place = `${bucket}/${visible(prefix)}`;
  const remove = async () => {
    const refused = await deleteObjects(bucket, all, (n) => setProgress(`${count(n)} of ${count(all.length)}`));
    onDone();
    if (refused.length) throw new Error(`${some('object', refused.length)} could not be deleted. ${visible(refused[0].key)}: ${refused[0].message}`);
    toast(`${some('object', all.length)} deleted.`);
  };
  return html`
    <${Confirm} title=${found.data ? `Delete ${some('object', all.length)} from ${place}?` : `Delete from ${place}?`} action=${`Delete ${some('object', all.length)}`} danger
      ready=${all.length > 0 && found.data.complete} word=${all.length > 100 ? bucket : undefined} onConfirm=${remove} onClose=${onClose}>
      ${found.fault && html`<${Fault} fault=${found.fault} />`}
      ${!found.data && !found.fault && html`<p class="soft">Counting what lies below…</p>`}
      ${found.data && !found.data.complete && html`<p class="bad">More than ${count(DELETE_MAX)} objects lie below. The command line deletes them: <code>deltabucket rm --recursive</code></p>`}
      <ul class="plain-list">${all.slice(0, 8).map((one) => html`<li key=${one.key}><${Name} text=${one.key} /></li>`)}${all.length > 8 && html`<li class="soft">and ${count(all.length - 8)} more</li>`}</ul>
      <p class="soft"><${WhatStays} bucket=${bucket} /> Steps that were published keep what they need.</p>
      ${progress && html`<p role="status" class="soft">${progress}</p>`}
    <//>`;
}

const STAYS = {
  enabled: 'The bucket keeps versions: older ones stay and can be restored.',
  suspended: 'Versioning is suspended: versions that were made before stay, what was put since is gone.',
  never: 'The bucket keeps no versions: the bytes are gone.',
};

/** What a deletion leaves, by the versioning of the bucket; both cases for keys that may not look. */
export function WhatStays({ bucket }) {
  const about = useLoad((signal) => (may('list', bucket) ? api(path('-', 'buckets', bucket), { signal }) : Promise.resolve({})), [bucket]);
  return (about.data && STAYS[about.data.versioning]) || 'With versioning, older versions stay and can be restored. Without it the bytes are gone.';
}

/** The objects of a selection, with all that lies below its folders. */
async function collect(bucket, picked, signal) {
  const objects = picked.filter((row) => !row.folder).map(({ key }) => ({ key }));
  let complete = true;
  for (const row of picked.filter((one) => one.folder)) {
    const below = await listAll(bucket, row.key, DELETE_MAX, signal);
    objects.push(...below.objects.map(({ key }) => ({ key })));
    complete = complete && below.complete && objects.length <= DELETE_MAX;
  }
  return { objects, complete };
}
