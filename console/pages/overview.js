// What an operator wants to know first. Everything here is live.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { api } from '../api.js';
import { href } from '../route.js';
import { useRuns, workersOf } from '../runs.js';
import { bytes, count, percent, short, some } from '../components/format.js';
import { Ago, useEvents } from '../components/hooks.js';
import { Spark } from '../components/chart.js';
import { Figure, Meter, State } from '../components/meter.js';
import { Fault, Head, Notice, Section, Waiting } from '../components/page.js';
import { RunTable } from '../components/run_table.js';

const SLOTS = 60;
const SHOWN_RUNS = 8;
const REFRESH_MS = 30000;
const WORK = { gc: 'Garbage collection', scrub: 'Scrub', proof: 'Proof of steps', derive: 'Anchors, folds and views', lifecycle: 'Lifecycle rules',
  file_hash: 'File hashes', journal: 'Journal', catalog_check: 'Check of the catalog' };
const WORK_STATES = { working: ['busy', 'Working'], resting: ['ok', 'Resting'], off: ['', 'Off'] };

export default function Page({ session }) {
  const { runs, fault: runsFault, reload } = useRuns();
  const { server, fault, rates, load } = useServer(session.metrics || session.root);
  if (fault && !server) return html`<div><${Head} title="Overview" /><${Fault} fault=${fault} retry=${load} /></div>`;
  if (!server) return html`<div><${Head} title="Overview" lead="" /><${Waiting} /></div>`;
  return html`<div>
    <${Head} title="Overview" lead=${html`deltabucketd ${server.version}, started <${Ago} time=${server.started} />`} />
    ${server.warnings && server.warnings.length > 0 && html`<div class="notices" role="status" aria-label="Warnings">${server.warnings.map((line) =>
      html`<${Notice} key=${line}><${Warning} line=${line} /><//>`)}</div>`}
    <div class="figures">
      <${Workers} runs=${runs} />
      ${server.stored ? html`<${Sent} stored=${server.stored} /><${Stored} stored=${server.stored} />`
        : html`<${Figure} name="Runs" value=${count(server.runs)} note="that your key may see" /><${Figure} name="Buckets" value=${count(server.buckets)} note="that your key may see" />`}
      ${server.disk && html`<${Disk} disk=${server.disk} free=${server.now && server.now.disk_free} />`}
      ${server.now && html`<${Rate} name="Requests" points=${rates.requests} total=${server.now.requests} />`}
      ${server.now && html`<${Rate} name="Errors" kind="bad" points=${rates.errors} total=${server.now.errors} />`}
    </div>
    <${Section} title="Runs" actions=${runs && runs.length > SHOWN_RUNS && html`<a href=${href('runs')}>All ${count(runs.length)} runs</a>`}>
      ${runsFault && html`<${Fault} fault=${runsFault} retry=${reload} />`}
      ${runs ? html`<${RunTable} label="Runs" runs=${newest(runs)} height=${400} />` : html`<${Waiting} />`}
    <//>
    ${server.work && html`<${Section} title="Background work"><ul class="panel rows work">${server.work.map((one) => html`<${Work} key=${one.name} one=${one} />`)}</ul><//>`}
  </div>`;
}

// A line of the server is `subject: sentence`, with commands between backquotes.
function Warning({ line }) {
  const at = line.indexOf(': ');
  const words = line.slice(at < 0 ? 0 : at + 2).split('`').map((part, i) => (i % 2 ? html`<code key=${i}>${part}</code>` : part));
  return html`<span>${at > 0 && html`<strong>${line[0].toUpperCase()}${line.slice(1, at)}.</strong> `}${words}</span>`;
}

function Workers({ runs }) {
  const { known, on, behind, lost, failed, alive } = workersOf(runs || []);
  const note = !runs ? '' : !known ? 'Your key may not see workers.' : alive + lost === 0 ? 'A worker appears here once it follows a run.' : 'on the step to serve';
  return html`<${Figure} name="Workers" value=${known ? count(on) : '–'} unit=${known ? `of ${count(alive + lost)}` : ''} note=${note}>
    ${known && html`<${Meter} legend label="${on} workers on it, ${behind} behind, ${lost} lost" parts=${[
      { label: 'on', value: on, kind: 'ok', text: `${count(on)} on it` }, { label: 'behind', value: behind, kind: 'warn', text: `${count(behind)} behind` },
      { label: 'lost', value: lost, kind: 'bad', text: lost ? `${count(lost)} lost` : undefined }, ...(failed ? [{ label: 'failed', value: 0, kind: 'bad', text: `${count(failed)} with an error` }] : [])]} />`}
  <//>`;
}

function Sent({ stored }) {
  const full = stored.full_bytes_sent;
  const part = full ? stored.sent_bytes / full : null;
  return html`<${Figure} name="Sent, against full checkpoints" value=${part === null ? bytes(stored.sent_bytes) : percent(part)}
    note=${part === null ? 'sent so far' : `${bytes(stored.sent_bytes)} went out instead of ${bytes(full)}`}>
    ${part !== null && html`<${Meter} label="${percent(part)} of full checkpoints" parts=${[{ label: 'sent', value: stored.sent_bytes }, { label: 'rest', value: Math.max(0, full - stored.sent_bytes), kind: 'rest' }]} />`}<//>`;
}

function Stored({ stored }) {
  const part = stored.logical_bytes ? stored.stored_bytes / stored.logical_bytes : null;
  return html`<${Figure} name="Stored, against what it holds" value=${part === null ? bytes(stored.stored_bytes) : percent(part)}
    note=${part === null ? 'Nothing is stored yet.' : `${bytes(stored.stored_bytes)} on disk hold ${bytes(stored.logical_bytes)}`}>
    ${part !== null && html`<${Meter} label="${percent(part)} of the logical bytes" parts=${[{ label: 'stored', value: stored.stored_bytes }, { label: 'rest', value: Math.max(0, stored.logical_bytes - stored.stored_bytes), kind: 'rest' }]} />`}<//>`;
}

function Disk({ disk, free }) {
  const left = free ?? disk.free;
  const usable = Math.max(0, left - disk.reserve);
  const used = Math.max(0, disk.bytes - left);
  const tight = disk.full ? 'bad' : usable < disk.bytes * 0.05 ? 'warn' : '';
  return html`<${Figure} name="Disk" value=${bytes(usable)} unit="to use" note=${disk.full ? html`<span class="bad">Full: writes are refused until there is room.</span>` : `of ${bytes(disk.bytes)}`}>
    <${Meter} legend label="${bytes(used)} used, ${bytes(disk.reserve)} kept in reserve, ${bytes(usable)} to use" parts=${[
      { label: 'used', value: used, kind: tight, text: `${bytes(used)} used` }, { label: 'free', value: usable, kind: 'rest' },
      { label: 'reserve', value: Math.min(disk.reserve, left), kind: 'mute', text: `${bytes(disk.reserve)} reserve` }]} /><//>`;
}

function Rate({ name, points, total, kind }) {
  const last = points.length ? points.at(-1) : null;
  return html`<${Figure} name=${name} value=${last === null ? '–' : short(last)} unit="/ s" note="${count(Math.round(total))} since the start">
    <${Spark} kind=${kind} points=${points} slots=${SLOTS} label="${name} a second in the last minute, now ${last === null ? 'unknown' : short(last)}" /><//>`;
}

function Work({ one }) {
  const [kind, word] = WORK_STATES[one.state] || ['', one.state];
  return html`<li><span class="work-name">${WORK[one.name] || one.name}</span><span class="work-state"><${State} kind=${kind}>${word}<//></span>
    <span class="grow soft break">${one.detail}</span><span class="soft nowrap">${one.waiting ? `${count(one.waiting)} waiting` : ''}</span></li>`;
}

// The overview's figures, and rates made of its counters.
function useServer(metrics) {
  const [state, setState] = useState({ rates: { requests: [], errors: [] } });
  const last = useRef(null);
  const rates = useRef({ requests: [], errors: [] });
  const show = (server) => setState((before) => ({ server: { ...before.server, ...server }, rates: { ...rates.current } }));
  const push = (now, at) => {
    const before = last.current;
    last.current = { now, at, seen: Date.now() };
    if (!before || at <= before.at) return;
    for (const name of Object.keys(rates.current)) {
      const rate = Math.max(0, (now[name] - before.now[name]) / ((at - before.at) / 1000));
      rates.current[name] = [...rates.current[name].slice(1 - SLOTS), rate];
    }
  };
  const load = async () => {
    try {
      const server = await api('/-/overview');
      if (server.now && !last.current) last.current = { now: server.now, at: Date.parse(server.time), seen: Date.now() };
      show(server);
    } catch (fault) {
      setState((before) => ({ ...before, fault }));
    }
  };
  useEvents(metrics ? { server: true, runs: true } : { runs: true }, (name, data) => {
    if (name === 'open') return load();
    if (name !== 'server' || !last.current) return undefined;
    const { time, warnings, work, ...now } = data;
    const all = { ...last.current.now, ...now };
    push(all, Date.parse(time));
    return show({ ...(warnings && { warnings }), ...(work && { work }), now: all });
  });
  // What the stream does not carry, such as the bytes stored, is asked for now and then.
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) load(); }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  // Nothing comes while nothing happens: a quiet second is a rate of 0.
  useEffect(() => {
    const timer = setInterval(() => {
      if (!last.current || !last.current.seen || Date.now() - last.current.seen < 2500) return;
      push(last.current.now, last.current.at + 1000);
      show({});
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  return { ...state, load };
}

// The runs that moved last; all of them stand on their own page.
function newest(runs) {
  const age = (run) => Date.parse(run.head_created || run.created);
  return runs.length <= SHOWN_RUNS ? runs : [...runs].sort((a, b) => age(b) - age(a)).slice(0, SHOWN_RUNS);
}
