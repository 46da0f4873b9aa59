// What the objects of a bucket hold, by folder: bars of the level below a prefix.
import { html } from '../vendor/htm-preact.js';
import { api, path } from '../api.js';
import { bytes, count, percent, some } from '../components/format.js';
import { useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Figure, Meter } from '../components/meter.js';
import { Empty, Loaded, Notice } from '../components/page.js';
import { href } from '../route.js';
import { isBeyond, Reachable } from './bucket.js';
import { Name } from './name.js';

const PAGES = 20;

export function BucketUsage({ bucket, prefix }) {
  const usage = useLoad((signal) => readUsage(bucket, prefix, signal), [bucket, prefix]);
  if (isBeyond(usage.fault, bucket)) return html`<${Reachable} bucket=${bucket} view="usage" />`;
  return html`<${Loaded} from=${usage}>${(data) => html`
    <div class="figures compact">
      <${Figure} name=${prefix ? 'Objects below here' : 'Objects'} value=${count(data.objects)} />
      <${Figure} name="Size" value=${bytes(data.bytes)} />
      <${Figure} name="Older versions" value=${count(data.older_versions)} />
      <${Figure} name="Size of older versions" value=${bytes(data.older_bytes)} />
    </div>
    ${!data.complete && html`<div class="notices usage-notice"><${Notice} kind="calm">There is more than was counted: the numbers are at least these.<//></div>`}
    <div class="panel usage">${data.entries.length ? html`<ul class="rows">${data.entries.map((one) => html`<${Entry} key=${one.name} bucket=${bucket} prefix=${prefix} entry=${one} all=${data.bytes} />`)}</ul>`
      : html`<${Empty} title="Nothing is here" />`}</div>`}<//>`;
}

/** All entries of the level, largest first, and the sums of all pages. */
export async function readUsage(bucket, prefix, signal) {
  const sums = { objects: 0, bytes: 0, older_versions: 0, older_bytes: 0 };
  const entries = [];
  let after, complete = true;
  for (let page = 0; page < PAGES; page++) {
    const reply = await api(path('-', 'buckets', bucket, 'usage'), { query: { prefix, after, limit: 1000 }, signal });
    for (const name of Object.keys(sums)) sums[name] += reply[name] || 0;
    entries.push(...reply.entries);
    complete = complete && reply.complete;
    after = reply.next;
    if (after === undefined || after === null) break;
  }
  entries.sort((one, other) => other.bytes - one.bytes || other.objects - one.objects);
  return { ...sums, entries, complete: complete && (after === undefined || after === null) };
}

function Entry({ bucket, prefix, entry, all }) {
  const share = all > 0 ? entry.bytes / all : 0;
  const target = entry.folder ? { prefix: prefix + entry.name, view: 'usage' } : { object: prefix + entry.name };
  return html`<li>
    <a class="with-icon grow" href=${href('buckets', bucket, target)}><${Icon} name=${entry.folder ? 'folder' : 'file'} /><${Name} text=${entry.name} /></a>
    <div class="usage-bar hide-phone"><${Meter} label=${`${percent(share)} of the size`} parts=${[{ label: 'here', value: share }, { label: 'elsewhere', value: 1 - share, kind: 'rest' }]} /></div>
    <span class="usage-count soft hide-phone">${entry.folder ? some('object', entry.objects) : ''}</span>
    <span class="usage-size">${bytes(entry.bytes)}</span>
  </li>`;
}
