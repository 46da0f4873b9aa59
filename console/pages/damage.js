// What the disk has lost and what that touches; scrub, which finds it.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { api, clock } from '../api.js';
import { Confirm } from '../components/dialog.js';
import { TextField } from '../components/field.js';
import { bytes, count, moment, percent, some } from '../components/format.js';
import { Ago, useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Meter } from '../components/meter.js';
import { Fault, Section } from '../components/page.js';
import { toast } from '../components/toast.js';
import { href } from '../route.js';
import { visible } from './name.js';

const LOOK_MS = 2000;

/** `scrub` is what /-/storage says of it; the root key sees what is damaged too, and may start a round. */
export function Damage({ scrub, isRoot, reload }) {
  const [asking, setAsking] = useState(false);
  const damage = useLoad((signal) => (isRoot ? api('/-/damage', { signal }) : Promise.resolve(null)), [isRoot]);
  const now = damage.data ? damage.data.scrub : scrub;
  useEffect(() => {
    if (!now || !now.round) return undefined;
    const timer = setTimeout(damage.reload, LOOK_MS);
    return () => clearTimeout(timer);
  }, [damage.data]);
  const done = () => { damage.reload(); reload(); };
  const action = isRoot && html`<button type="button" class="button" disabled=${Boolean(now && now.round)} onClick=${() => setAsking(true)}>Start scrub…</button>`;
  return html`<${Section} title="Scrub" note="reads every pack and verifies every record" actions=${action}>
    <div class="panel"><${Round} scrub=${now || {}} /></div>
    ${damage.fault && html`<${Fault} fault=${damage.fault} retry=${damage.reload} />`}
    ${damage.data && damage.data.chunks > 0 && html`<${Touched} damage=${damage.data} />`}
    ${asking && html`<${StartScrub} onStart=${() => setTimeout(damage.reload, 300)} onDone=${done} onClose=${() => setAsking(false)} />`}
  <//>`;
}

function Round({ scrub }) {
  const { round, last, next } = scrub;
  return html`<ul class="rows">
    ${round && html`<li><div class="grow"><div class="strong">A round is under way</div><div class="small soft">${bytes(round.bytes)} of ${bytes(round.store_bytes)} read</div></div>
      <div class="scrub-meter"><${Meter} label=${`${percent(part(round))} of the packs are read`} parts=${[{ label: 'read', value: round.bytes }, { label: 'not yet', value: Math.max(0, (round.store_bytes || 0) - round.bytes), kind: 'rest' }]} /></div></li>`}
    <li><div class="grow"><div class="strong">Last round</div><div class="small soft">${last ? found(last) : 'None has ended yet.'}</div></div>${last && html`<span class="soft"><${Ago} time=${last.ended} /></span>`}</li>
    ${next && html`<li><div class="grow"><div class="strong">Next round</div><div class="small soft">${moment(next)}</div></div>
      <span class="soft">${Date.parse(next) < clock.now() ? 'due: begins by itself' : html`<${Ago} time=${next} />`}</span></li>`}
  </ul>`;
}

const part = (round) => (round.store_bytes > 0 ? round.bytes / round.store_bytes : 0);

function found(last) {
  const said = [`${bytes(last.bytes)} in ${some('pack', last.packs)} verified`];
  said.push(last.chunks_damaged ? `${some('chunk', last.chunks_damaged)} damaged, ${count(last.chunks_healed)} healed` : 'nothing damaged');
  if (last.packs_failed) said.push(`${some('pack', last.packs_failed)} could not be read`);
  return said.join(', ');
}

function Touched({ damage }) {
  const rest = (all, shown) => (all > shown.length ? html`<li class="soft">and ${count(all - shown.length)} more</li>` : null);
  return html`<div>
    <h3 class="touched">What the ${some('damaged chunk', damage.chunks)} ${damage.chunks === 1 ? 'touches' : 'touch'}</h3>
    <div class="panel"><ul class="rows">
      ${damage.keys.map((one) => html`<li key=${`${one.bucket}/${one.key}/${one.version}`}><${Icon} name="file" /><a class="grow break" href=${objectHref(one)}><bdi>${one.bucket}/${visible(one.key)}</bdi></a>
        <span class="tag bad">${one.current ? 'object' : 'older version'}</span></li>`)}
      ${rest(damage.keys_in_all, damage.keys)}
      ${damage.steps.map((one) => html`<li key=${`${one.bucket}/${one.run}/${one.step}/${one.form}`}><${Icon} name="branch" /><a class="grow break" href=${href('runs', one.bucket, one.run)}><bdi>${one.bucket}/${one.run}</bdi>, step ${one.step}</a>
        <span class="tag bad">${one.form}</span></li>`)}
      ${rest(damage.steps_in_all, damage.steps)}
      ${damage.parts.map((one) => html`<li key=${`${one.upload}/${one.part}`}><${Icon} name="upload" /><span class="grow break"><bdi>${one.bucket}/${visible(one.key)}</bdi>, part ${one.part}</span><span class="tag bad">open upload</span></li>`)}
      ${rest(damage.parts_in_all, damage.parts)}
      ${!damage.keys_in_all && !damage.steps_in_all && !damage.parts_in_all && html`<li class="soft">Nothing that is current: no object, no step.</li>`}
    </ul></div>
    <p class="soft small touched-help">An upload of the same bytes heals a chunk, and so does a worker that holds the step. <code>deltabucket damage</code> lists everything.</p>
  </div>`;
}

const objectHref = (one) => href('buckets', one.bucket, { object: one.key, version: one.current ? undefined : one.version });

function StartScrub({ onStart, onDone, onClose }) {
  const [rate, setRate] = useState('');
  const begin = async () => {
    if (!/^\d{0,5}$/.test(rate)) throw new Error('The rate must be a whole number of MiB a second, or empty.');
    const round = api('/-/scrub', { method: 'POST', json: rate ? { rate: Number(rate) } : {} });
    round.then((result) => { onDone(); toast(`Scrub finished: ${some('chunk', result.damaged_now)} damaged now.`); }, (fault) => { onDone(); toast(fault.message, 'bad'); });
    onStart();
  };
  return html`<${Confirm} title="Start scrub" action="Start scrub" onConfirm=${begin} onClose=${onClose}>
    <p>Every sealed pack is read from the disk and every record in it verified. What has another copy is healed.</p>
    <${TextField} label="At most, in MiB a second" help="Empty: as fast as the disk reads, which others feel." inputmode="numeric" value=${rate} onChange=${(value) => setRate(value.trim())} />
  <//>`;
}
