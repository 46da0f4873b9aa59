// Buckets: the list, and the way to the pages of one bucket and of one object.
//
//   #/buckets                               the list
//   #/buckets/B?prefix=P                    the objects below P
//   #/buckets/B?prefix=P&view=deleted       what was deleted there, and its way back
//   #/buckets/B?prefix=P&view=usage         what they hold, by folder
//   #/buckets/B?view=settings               versioning, access, lifecycle, removal
//   #/buckets/B?object=K[&version=V]        one object
import { html, useState } from '../vendor/htm-preact.js';
import { all } from '../api.js';
import { Confirm } from '../components/dialog.js';
import { Search, TextField } from '../components/field.js';
import { bytes, count, some } from '../components/format.js';
import { Ago, useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Empty, Head, Loaded } from '../components/page.js';
import { Table } from '../components/table.js';
import { toast } from '../components/toast.js';
import { go, href } from '../route.js';
import { makeBucket } from '../s3.js';
import { prefixesOf, session } from '../session.js';
import { BucketPage } from './bucket.js';

export default function Page({ route }) {
  const bucket = route.path[1];
  return bucket ? html`<${BucketPage} key=${bucket} bucket=${bucket} query=${route.query} />` : html`<${BucketList} />`;
}

function BucketList() {
  const [text, setText] = useState('');
  const [making, setMaking] = useState(false);
  const list = useLoad((signal) => all('/-/buckets', 'buckets', { signal, query: { limit: 1000 } }), []);
  return html`<div>
    <${Head} title="Buckets" lead=${list.data ? summary(list.data) : ''}>
      ${mayMake() && html`<button type="button" class="button primary" onClick=${() => setMaking(true)}><${Icon} name="plus" />Make bucket…</button>`}
    <//>
    ${making && html`<${MakeBucket} onClose=${() => setMaking(false)} />`}
    <${Loaded} from=${list}>${(buckets) => (buckets.length === 0 ? html`<div class="panel"><${NoBucket} /></div>` : html`
      <div class="section-head"><${Search} label="Find a bucket" placeholder="Find a bucket" value=${text} onChange=${setText} /></div>
      <${Table} label="Buckets" rows=${buckets.filter((row) => row.bucket.includes(text))} rowKey=${(row) => row.bucket} columns=${COLUMNS}
        href=${(row) => href('buckets', row.bucket, beginning(row.bucket))} sort=${{ id: 'bucket' }} empty=${html`<${Empty} title="No bucket has this in its name" />`} />`)}<//></div>`;
}

// A key that may list one folder of a bucket is led there.
function beginning(bucket) {
  const prefixes = prefixesOf('list', bucket);
  return prefixes.length === 1 && prefixes[0] ? { prefix: prefixes[0] } : {};
}

const COLUMNS = [
  { id: 'bucket', label: 'Name', value: (row) => row.bucket, cell: (row) => row.bucket },
  { id: 'objects', label: 'Objects', end: true, width: '110px', value: (row) => row.objects, cell: (row) => count(row.objects) },
  { id: 'bytes', label: 'Size', end: true, width: '110px', value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  { id: 'runs', label: 'Runs', end: true, width: '80px', hide: 'phone', value: (row) => row.runs, cell: (row) => count(row.runs) },
  { id: 'access', label: 'Settings', width: '170px', hide: 'tablet', cell: settings },
  { id: 'updated', label: 'Changed', end: true, width: '120px', hide: 'phone', value: (row) => row.updated || row.created, cell: (row) => html`<${Ago} time=${row.updated || row.created} />` },
];

function settings(row) {
  return html`<span class="tag ${row.public ? 'warn' : ''}">${row.public ? 'public' : 'private'}</span>${/enabled/i.test(row.versioning) && html`<span class="tag">versions</span>`}`;
}

function summary(rows) {
  const sum = (member) => rows.reduce((total, row) => total + (row[member] || 0), 0);
  return `${some('bucket', rows.length)}, ${some('object', sum('objects'))}, ${bytes(sum('bytes'))}`;
}

// A key with grants may make exactly the buckets that it has admin on; it gives the name then.
function mayMake() {
  const { grants, root } = session.value;
  return root || !grants.length || grants.some((grant) => /^[^/]+=.*admin/.test(grant));
}

function NoBucket() {
  const { grants, root } = session.value;
  if (!root && grants.length) return html`<${Empty} title="Your key reaches no bucket">Whoever made the key can give it grants: <code>deltabucketd keys add --grant BUCKET/PREFIX/=read,list</code><//>`;
  return html`<${Empty} title="No bucket yet" command="deltabucket mb models">A bucket holds the steps of runs, and any other file. Make one here, or with the command line.<//>`;
}

function MakeBucket({ onClose }) {
  const [name, setName] = useState('');
  const make = async () => {
    await makeBucket(name);
    toast(`Bucket ${name} was created.`);
    go(href('buckets', name));
  };
  return html`<${Confirm} title="Make a bucket" action="Make bucket" ready=${isBucketName(name)} onConfirm=${make} onClose=${onClose}>
    <${TextField} label="Name" help="3 to 63 of a-z, 0-9, . and -; it begins and ends with a letter or a digit." mono autocomplete="off" spellcheck=${false}
      value=${name} onChange=${(value) => setName(value.trim())} />
  <//>`;
}

const isBucketName = (name) => /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..');
