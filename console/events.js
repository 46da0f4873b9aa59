// The event stream (GET /-/events). One stream serves the whole console: pages subscribe to what they need, and the stream is
// opened again when that changes. It is read with fetch, because EventSource cannot send the console's header.
import { ApiError, clock, send } from './api.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30000;
const REFUSED_WAIT_MS = 30000;
const SILENCE_MS = 75000;  // the server pings every 30 s

/** Cuts a stream of text into events. `take(name, data)` gets each one that is whole. */
export class EventParser {
  constructor(take) { Object.assign(this, { take, rest: '', name: '', data: [] }); }

  push(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  #line(line) {
    if (line === '') this.#end();
    else if (line.startsWith('event:')) this.name = line.slice(6).trim();
    else if (line.startsWith('data:')) this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
  }

  #end() {
    if (this.name || this.data.length) this.take(this.name || 'message', this.data.join('\n'));
    this.name = '';
    this.data = [];
  }
}

/** The console's stream. Its state: `off`, `connecting`, `live`, `waiting` (for the next try), `refused`. */
export class Stream {
  constructor() {
    this.subscriptions = new Set();
    this.watchers = new Set();
    this.state = 'off';
    this.wait = FIRST_WAIT_MS;
  }

  /**
   * Subscribes to `wants`: {runs: true, server: true, replicas: 'bucket/run'}. `handler(name, data)` first gets `open` as soon as the
   * stream has begun (fetch the lists then; events that come meanwhile are safe to apply, since rows replace rows), then what the
   * server sends, and `open` again after each break or reset. Returns the function that ends the subscription.
   */
  subscribe(wants, handler) {
    const subscription = { wants, handler };
    this.subscriptions.add(subscription);
    if (this.state === 'refused' || this.state === 'waiting' || (this.state === 'live' && this.#covers(wants))) queueMicrotask(() => this.#open(subscription));
    if (this.state !== 'live' || !this.#covers(wants)) this.#later();
    return () => {
      this.subscriptions.delete(subscription);
      this.#later();
    };
  }

  /** `watcher(state)` runs at each change of the state. */
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Ends the stream for good: nobody is signed in. */
  close() {
    this.subscriptions.clear();
    this.#stop();
    this.#say('off');
  }

  #query() {
    const wants = [...this.subscriptions].map((one) => one.wants);
    const replicas = [...new Set(wants.map((one) => one.replicas).filter(Boolean))].slice(0, 4);
    return {
      runs: wants.some((one) => one.runs) ? 1 : null,
      server: wants.some((one) => one.server) ? 1 : null,
      replicas: replicas.length ? replicas : null,
    };
  }

  #covers(wants) {
    const open = this.query || {};
    return (!wants.runs || open.runs) && (!wants.server || open.server) &&
      (!wants.replicas || (open.replicas || []).includes(wants.replicas));
  }

  // Pages change by ending one subscription and beginning another: one new stream serves both.
  #later() {
    clearTimeout(this.change);
    this.change = setTimeout(() => this.#adapt(), 20);
  }

  #adapt() {
    const query = this.#query();
    if (JSON.stringify(query) === JSON.stringify(this.query) && this.state !== 'off') return;
    this.#stop();
    this.query = query;
    if (!query.runs && !query.server && !query.replicas) return this.#say('off');
    this.#run();
  }

  #stop() {
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    if (this.abort) this.abort.abort();
    this.abort = null;
    this.query = null;
  }

  async #run() {
    const abort = this.abort = new AbortController();
    this.#say(this.state === 'live' ? 'live' : 'connecting');
    try {
      const response = await send('/-/events', { query: this.query, signal: abort.signal });
      await this.#read(response, abort);
    } catch (fault) {
      if (abort.signal.aborted && abort !== this.abort) return;
      if (fault instanceof ApiError && fault.status >= 400 && fault.status < 500 && fault.status !== 429) {
        return this.#refuse();
      }
    }
    if (abort !== this.abort) return;
    this.#openNew();
    this.#again();
  }

  async #read(response, abort) {
    const parser = new EventParser((name, data) => this.#take(name, data, abort));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      this.#listen(abort);
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(value);
    }
  }

  // A connection that died without a word looks like silence.
  #listen(abort) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => abort.abort(), SILENCE_MS);
  }

  #take(name, text, abort) {
    if (abort !== this.abort) return;
    const data = text ? JSON.parse(text) : {};
    if (name === 'hello') return this.#hello(data);
    if (name === 'reset') return this.#openAll();
    if (name === 'reconnect') { this.wait = FIRST_WAIT_MS; return abort.abort(); }
    for (const one of [...this.subscriptions]) if (wanted(one.wants, name, data)) one.handler(name, data);
  }

  #hello(data) {
    this.wait = FIRST_WAIT_MS;
    if (data.time) clock.offset = Date.parse(data.time) - Date.now();
    this.#say('live');
    this.#openAll();
  }

  // Without a stream pages show what there is, and ask again now and then.
  #refuse() {
    this.#say('refused');
    this.#openAll();
    this.retry = setTimeout(() => this.#run(), REFUSED_WAIT_MS);
  }

  // Pages that never had a stream load their lists all the same, and say what is wrong.
  #openNew() { for (const one of [...this.subscriptions]) if (!one.opened) this.#open(one); }

  #openAll() { for (const one of [...this.subscriptions]) this.#open(one); }

  #open(one) {
    one.opened = true;
    if (this.subscriptions.has(one)) one.handler('open', {});
  }

  #again() {
    clearTimeout(this.silence);
    this.#say('waiting');
    const wait = this.wait * (0.7 + 0.6 * Math.random());
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
    this.retry = setTimeout(() => this.#run(), wait);
  }

  #say(state) {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of [...this.watchers]) watcher(state);
  }
}

function wanted(wants, name, data) {
  if (name === 'replicas') return wants.replicas === data.run;
  if (name === 'run' || name === 'run_removed') return wants.runs;
  if (name === 'server') return wants.server;
  return true;
}

/** The console's one stream. */
export const stream = new Stream();
