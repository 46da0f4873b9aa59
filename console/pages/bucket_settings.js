// The settings of a bucket: versioning, access, ETags, lifecycle, and its end.
import { html, useState } from '../vendor/htm-preact.js';
import { api, path } from '../api.js';
import { Confirm } from '../components/dialog.js';
import { Segments } from '../components/field.js';
import { moment } from '../components/format.js';
import { useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Loaded, Notice, Section } from '../components/page.js';
import { attempt, toast } from '../components/toast.js';
import { go, href } from '../route.js';
import { isPublic, removeBucket, writeAcl, writeVersioning } from '../s3.js';
import { may } from '../session.js';
import { Lifecycle } from './lifecycle_rules.js';

const ETAGS = { md5: 'MD5 of the bytes', fast: 'fast, no MD5' };

export function BucketSettings({ bucket }) {
  const [dialog, setDialog] = useState(null);
  const facts = useLoad(async (signal) => {
    const [about, open] = await Promise.all([api(path('-', 'buckets', bucket), { signal }), isPublic(bucket)]);
    return { ...about, open, policy: about.documents.includes('policy') };
  }, [bucket]);
  const mayChange = may('admin', bucket);
  const change = (work, done) => attempt(async () => { await work(); facts.reload(); }, done);
  return html`<div>
    <${Loaded} from=${facts}>${(data) => html`
      <div class="panel"><ul class="rows">
        <${Setting} name="Owner" help=${`Made ${moment(data.created)}`}><span>${data.namespace}</span><//>
        <${Setting} name="Versioning" help="Keeps what is overwritten or deleted as older versions.">
          ${mayChange ? html`<${Segments} label="Versioning" value=${data.versioning} options=${versionings(data.versioning)}
            onChange=${(value) => change(() => writeVersioning(bucket, value === 'enabled' ? 'Enabled' : 'Suspended'), `Versioning is ${value === 'enabled' ? 'on' : 'off'}.`)} />` : data.versioning}<//>
        <${Setting} name="Access" help=${data.policy ? 'A policy says who may do what; aws s3api get-bucket-policy shows it.' : 'Without a key: nothing in a private bucket; in a public one everybody reads and lists.'}>
          ${mayChange && !data.policy ? html`<${Segments} label="Access" value=${data.open ? 'public' : 'private'} options=${[['private', 'Private'], ['public', 'Public']]}
            onChange=${(value) => (value === 'public' ? setDialog('public') : change(() => writeAcl(bucket, 'private'), 'The bucket is private.'))} />`
            : html`<span class="tag ${data.open ? 'warn' : ''}">${data.open ? 'public' : 'private'}</span>`}<//>
        <${Setting} name="ETags of new objects" help=${`In use: ${ETAGS[data.etag_in_use] || data.etag_in_use}`}>
          ${mayChange ? html`<${Segments} label="ETags of new objects" value=${data.etag} options=${[['default', 'Default'], ['md5', 'MD5'], ['fast', 'Fast']]}
            onChange=${(etag) => change(() => api(path('-', 'buckets', bucket), { method: 'PUT', json: { etag } }), 'The rule is stored.')} />` : data.etag}<//>
      </ul></div>`}<//>
    <${Lifecycle} bucket=${bucket} mayChange=${mayChange} />
    ${mayChange && html`<${Section} title="Remove the bucket">
      <div class="panel"><ul class="rows"><li><p class="grow soft">Only an empty bucket can be removed: no object, no older version, no run.</p>
        <button type="button" class="button danger" onClick=${() => setDialog('remove')}><${Icon} name="trash" />Remove bucket…</button></li></ul></div>
    <//>`}
    ${dialog === 'public' && html`<${MakePublic} bucket=${bucket} onDone=${facts.reload} onClose=${() => setDialog(null)} />`}
    ${dialog === 'remove' && html`<${Remove} bucket=${bucket} onClose=${() => setDialog(null)} />`}</div>`;
}

function Setting({ name, help, children }) {
  return html`<li><div class="grow"><div class="strong">${name}</div><div class="small soft">${help}</div></div>${children}</li>`;
}

// A bucket that never had versions keeps no word of it; once it has had them it can only be suspended.
function versionings(now) {
  return now === 'never' ? [['never', 'Off'], ['enabled', 'On']] : [['suspended', 'Suspended'], ['enabled', 'On']];
}

function MakePublic({ bucket, onDone, onClose }) {
  const open = async () => {
    await writeAcl(bucket, 'public-read');
    onDone();
    toast('The bucket is public.');
  };
  return html`<${Confirm} title="Make the bucket public?" action="Make public" danger word=${bucket} onConfirm=${open} onClose=${onClose}>
    <${Notice}>Everybody that reaches this server can list and read all objects and runs of ${bucket}, without a key.<//>
  <//>`;
}

function Remove({ bucket, onClose }) {
  const remove = async () => {
    await removeBucket(bucket);
    toast(`Bucket ${bucket} was removed.`);
    go(href('buckets'));
  };
  return html`<${Confirm} title="Remove the bucket?" action="Remove bucket" danger word=${bucket} onConfirm=${remove} onClose=${onClose}>
    <p>The bucket ${bucket} and its settings go. Uploads that are not complete end.</p>
  <//>`;
}
