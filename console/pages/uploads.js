// The uploads of this visit. They go on while other pages are looked at; closing the window asks first.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { bytes, percent, some } from '../components/format.js';
import { Icon } from '../components/icon.js';
import { UploadQueue } from '../upload.js';
import { visible } from './name.js';

export const uploads = new UploadQueue();
const STATES = { waiting: 'waits', sending: '', paused: 'paused', failed: 'failed', done: 'done', cancelled: 'cancelled' };

addEventListener('beforeunload', (event) => { if (uploads.busy) event.preventDefault(); });

/** The list of uploads; nothing while there is none. */
export function Uploads() {
  const [, setTurn] = useState(0);
  useEffect(() => uploads.watch(() => setTurn((n) => n + 1)), []);
  const all = uploads.uploads;
  if (!all.length) return null;
  const open = all.filter((one) => one.state !== 'done').length;
  return html`
    <section class="panel uploads" aria-label="Uploads">
      <div class="uploads-head"><h2><span role="status">${open ? `${some('upload', open)} under way` : `${some('upload', all.length)} done`}</span></h2>
        ${all.length > open && html`<button type="button" class="button small plain" onClick=${() => uploads.clear()}>Clear finished</button>`}</div>
      <ul class="rows">${all.slice(0, 100).map((one) => html`<${Row} key=${one.id} upload=${one} />`)}</ul>
      ${all.length > 100 && html`<p class="table-foot">and ${all.length - 100} more</p>`}
    </section>`;
}

function Row({ upload }) {
  const name = visible(upload.key);
  const share = upload.size ? upload.progress / upload.size : Number(upload.state === 'done');
  return html`
    <li>
      <div class="grow"><bdi class="clip strong" title=${`${upload.bucket}/${name}`}>${name}</bdi>
        <span class=${upload.state === 'failed' ? 'small bad break' : 'small soft break'}>${describe(upload, share)}</span></div>
      <progress aria-label=${`Upload of ${name}`} max="1" value=${share}>${percent(share)}</progress>
      <span class="upload-actions">
        ${upload.state === 'sending' && html`<${Action} icon="pause" name=${`Pause ${name}`} onClick=${() => uploads.pause(upload)} />`}
        ${(upload.state === 'paused' || upload.state === 'failed') && html`<${Action} icon="play" name=${`Resume ${name}`} onClick=${() => uploads.resume(upload)} />`}
        <${Action} icon="cross" name=${upload.state === 'done' ? `Clear ${name}` : `Cancel ${name}`} onClick=${() => uploads.remove(upload)} />
      </span>
    </li>`;
}

function describe(upload, share) {
  if (upload.state === 'failed') return upload.message;
  if (upload.state === 'done') return `${bytes(upload.size)}, done`;
  const said = [`${bytes(upload.progress)} of ${bytes(upload.size)}`, upload.state === 'sending' ? percent(share) : STATES[upload.state], upload.note];
  return said.filter(Boolean).join(', ');
}

function Action({ icon, name, onClick }) {
  return html`<button type="button" class="button plain icon-only" aria-label=${name} title=${name} onClick=${onClick}><${Icon} name=${icon} /></button>`;
}
