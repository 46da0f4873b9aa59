// What was deleted from a bucket that keeps versions, and its way back, many objects at a time.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { Chosen, useChoice } from '../components/choice.js';
import { bytes, count, some } from '../components/format.js';
import { Ago } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Empty, Fault, Waiting } from '../components/page.js';
import { Table } from '../components/table.js';
import { attempt, toast } from '../components/toast.js';
import { go, href } from '../route.js';
import { deleteObjects, listDeleted } from '../s3.js';
import { may } from '../session.js';
import { isBeyond, mayBelow, Reachable } from './bucket.js';
import { Name, visible } from './name.js';

const FOUND_MIN = 1000;  // looks on by itself until so many were found,
const PAGES_MAX = 20;    // or so many pages were looked at
const COLUMNS = [
  { id: 'name', label: 'Name', value: (row) => row.name, cell: (row) => html`
    <a class="with-icon" href=${row.href} tabindex="-1"><${Icon} name="file" /><${Name} text=${row.name} /></a>` },
  { id: 'size', label: 'Size', end: true, width: '100px', hide: 'phone', value: (row) => row.size, cell: (row) => bytes(row.size) },
  { id: 'deleted', label: 'Deleted', end: true, width: '120px', value: (row) => row.deleted, cell: (row) => html`<${Ago} time=${row.deleted} />` },
];

export function BucketDeleted({ bucket, prefix }) {
  const list = useDeleted(bucket, prefix);
  const choice = useChoice(list.rows);
  const [progress, setProgress] = useState(null);
  const mayWrite = may('write', bucket, prefix) || mayBelow('write', bucket, prefix);
  const restore = () => attempt(async () => {
    setProgress(0);
    try {
      await bringBack(bucket, choice.picked, setProgress);
    } finally {
      setProgress(null);
      choice.clear();
      list.reload();
    }
  });
  if (isBeyond(list.fault, bucket)) return html`<${Reachable} bucket=${bucket} view="deleted" />`;
  if (!list.loaded) return list.fault ? html`<${Fault} fault=${list.fault} retry=${list.reload} />` : html`<${Waiting} />`;
  return html`<div>
    ${list.fault && html`<${Fault} fault=${list.fault} retry=${list.more} />`}
    <${Chosen} choice=${choice} rows=${list.rows} more=${list.next}>
      ${mayWrite && html`<button type="button" class="button small" disabled=${progress !== null} onClick=${restore}><${Icon} name="back" />${
        progress === null ? `Restore ${some('object', choice.picked.length)}` : `Restoring, ${count(progress)} done`}</button>`}<//>
    <${Table} label="Deleted objects" rows=${list.rows} rowKey=${(row) => row.id} columns=${[...(mayWrite ? [choice.column] : []), ...COLUMNS]} sort=${{ id: 'name' }}
      onOpen=${(row) => go(row.href)} foot=${html`<${Foot} list=${list} />`} empty=${list.next ? undefined : html`<${Empty} title="Nothing here was deleted">
        Objects that are deleted stand here, with those of all folders below, while the bucket keeps their versions.<//>`} />
  </div>`;
}

/** Takes away the markers that say that the objects are deleted. */
async function bringBack(bucket, objects, onProgress) {
  const markers = objects.flatMap(({ key, markers: versions }) => versions.map((version) => ({ key, version })));
  const refused = await deleteObjects(bucket, markers, (n) => onProgress(Math.min(n, objects.length)));
  const keys = new Set(refused.map((one) => one.key));
  if (refused.length) throw new Error(`${some('object', keys.size)} could not be restored. ${visible(refused[0].key)}: ${refused[0].message}`);
  toast(`${some('object', objects.length)} restored.`);
}

function Foot({ list }) {
  return html`<div class="contents"><span role="status">${some('deleted object', list.rows.length)} found among ${some('version', list.scanned)}${list.next ? ', and more' : ''}</span>
    ${list.next && html`<button type="button" class="button small" onClick=${list.more} disabled=${list.busy}>Look on</button>`}</div>`;
}

function useDeleted(bucket, prefix) {
  const [state, setState] = useState({ rows: [], scanned: 0, loaded: false });
  const [turn, setTurn] = useState(0);
  const look = async (from, before, scanned, signal) => {
    setState((old) => ({ ...old, busy: true, fault: null }));
    try {
      const page = await lookOn(bucket, prefix, from, signal);
      const rows = [...before, ...page.objects.map((one) => rowOf(bucket, prefix, one))];
      if (!signal.aborted) setState({ rows, scanned: scanned + page.scanned, next: page.next, loaded: true });
    } catch (fault) {
      if (!signal.aborted) setState((old) => ({ ...old, fault, busy: false }));
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    look(undefined, [], 0, stop.signal);
    return () => stop.abort();
  }, [bucket, prefix, turn]);
  return { ...state, more: () => look(state.next, state.rows, state.scanned, new AbortController().signal), reload: () => setTurn((n) => n + 1) };
}

async function lookOn(bucket, prefix, from, signal) {
  const objects = [];
  let scanned = 0, next = from;
  for (let page = 0; page < PAGES_MAX && objects.length < FOUND_MIN; page++) {
    const found = await listDeleted(bucket, prefix, next, signal);
    objects.push(...found.objects);
    scanned += found.scanned;
    next = found.next;
    if (!next) break;
  }
  return { objects, scanned, next };
}

const rowOf = (bucket, prefix, one) => ({ ...one, id: one.key, name: one.key.slice(prefix.length), href: href('buckets', bucket, { object: one.key }) });
