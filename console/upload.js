// Uploads from the browser. A file goes up in parts by URLs that the server signed; no secret is here. Each part's SHA-256 is counted
// here and compared with what the server stored, so a finished upload has the file's bytes.
//
//   waiting -> sending -> done
//              sending -> paused | failed -> waiting (resume)      any -> cancelled
//
// An upload that was cut off, by a connection or by a reload, goes on where it was when the same file comes again: the server lists
// the parts that it has, and those whose SHA-256 is that of the file's own bytes are not sent again.
import { ApiError, root, s3, s3Xml, signed, textOf, xml } from './api.js';
import { checkAddress } from './s3.js';

const MIB = 1024 * 1024;
const PART = 8 * MIB;
const PARTS_MAX = 9000;
const SIDE_BY_SIDE = 3;
const FILES_SIDE_BY_SIDE = 2;
const URLS_AT_ONCE = 12;
const URL_SECONDS = 900;
const TRIES = 8;
const KEPT = 'deltabucket-uploads';

/** How a file of `size` bytes is cut: the size of a part. The same for the same file, so that an upload can go on. */
export function partSize(size) {
  return Math.max(PART, Math.ceil(size / PARTS_MAX / MIB) * MIB);
}

/** One file on its way. `onChange()` runs whenever something of it changed. */
export class Upload {
  constructor(bucket, key, file, onChange = () => {}) {
    Object.assign(this, { bucket, key, file, onChange, state: 'waiting', message: '', sent: 0, kept: 0, note: '' });
    this.id = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
  }

  get size() { return this.file.size; }
  /** Bytes that the server has, with those of the parts on their way. */
  get progress() { return Math.min(this.size, this.sent + Object.values(this.moving || {}).reduce((sum, one) => sum + one, 0)); }

  /** Sends what is missing. Resolves when it is done, paused, failed or cancelled; never rejects. */
  async run() {
    this.abort = new AbortController();
    this.moving = {};
    this.#be('sending');
    try {
      checkAddress(this.key);
      await (this.size <= PART ? this.#sendWhole() : this.#sendParts());
      forget(this);
      this.sent = this.size;
      this.#be('done');
    } catch (fault) {
      this.abort.abort();
      if (this.state === 'sending') this.#be('failed', sentence(fault));
    }
    this.moving = {};
    this.onChange();
  }

  pause() { this.#stop('paused'); }

  /** Ends it for good: the server drops the parts. */
  async cancel() {
    const { uploadId } = this;
    this.#stop('cancelled');
    forget(this);
    if (uploadId) await s3({ method: 'DELETE', bucket: this.bucket, key: this.key, query: { uploadId } }).catch(() => {});
  }

  #stop(state) {
    this.#be(state);
    if (this.abort) this.abort.abort();
  }

  #be(state, message = '') {
    this.state = state;
    this.message = message;
    this.onChange();
  }

  async #sendWhole() {
    const type = { 'Content-Type': this.file.type || 'application/octet-stream' };
    await this.#persist(async () => {
      const [url] = await signed([{ method: 'PUT', bucket: this.bucket, key: this.key }], URL_SECONDS);
      await this.#put(url, this.file, 0, type);
    });
  }

  async #sendParts() {
    this.part = partSize(this.size);
    this.count = Math.ceil(this.size / this.part);
    this.done = await this.#persist(() => this.#find());
    this.urls = new Map();
    const missing = Array.from({ length: this.count }, (_, at) => at + 1).filter((number) => !this.done.has(number));
    const sender = async () => {
      for (let number; (number = missing.shift()) !== undefined;) await this.#sendPart(number, missing);
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, sender));
    await this.#persist(() => this.#complete());
  }

  /** The parts that the server has of this very file, by number; begins an upload where there is none of it. */
  async #find() {
    for (const uploadId of await this.#candidates()) {
      const parts = await this.#matching(uploadId);
      if (parts) {
        this.uploadId = uploadId;
        this.kept = this.sent = [...parts.keys()].reduce((sum, number) => sum + this.#slice(number).size, 0);
        this.note = parts.size ? 'goes on where it was' : '';
        return parts;
      }
    }
    await this.#begin();
    return new Map();
  }

  async #candidates() {
    const known = remembered(this);
    if (this.uploadId) return [this.uploadId];
    if (!hashes()) return known ? [known] : [];
    const open = await this.#openUploads();
    return [...new Set([...(known ? [known] : []), ...open])].slice(0, 5);
  }

  async #openUploads() {
    try {
      const root = await s3Xml({ method: 'GET', bucket: this.bucket, query: { uploads: '', prefix: this.key, 'encoding-type': 'url' } }, { signal: this.abort.signal });
      const rows = [...root.getElementsByTagName('Upload')].filter((row) => decodeURIComponent(textOf(row, 'Key').replaceAll('+', '%20')) === this.key);
      return rows.map((row) => textOf(row, 'UploadId')).reverse();
    } catch (fault) {
      if (fault.status === 403) return [];  // the key may write and not list
      throw fault;
    }
  }

  /** The parts of an open upload that have the file's bytes; null when it is another file's or gone. */
  async #matching(uploadId) {
    const listed = await this.#listParts(uploadId);
    if (!listed) return null;
    const parts = new Map();
    for (const { number, size, etag, sum } of listed) {
      const slice = number <= this.count ? this.#slice(number) : null;
      if (!slice || slice.size !== size) continue;
      if (hashes() ? sum === await sha256(slice) : true) parts.set(number, { etag, sum });
    }
    return parts.size || !listed.length ? parts : null;
  }

  async #listParts(uploadId) {
    const parts = [];
    for (let marker = ''; ;) {
      const query = { uploadId, 'max-parts': '1000', ...(marker ? { 'part-number-marker': marker } : {}) };
      let root;
      try {
        root = cleaned(await (await s3({ method: 'GET', bucket: this.bucket, key: this.key, query }, { signal: this.abort.signal })).text());
      } catch (fault) {
        if (fault.status === 404) return null;
        throw fault;
      }
      if (hashes() && textOf(root, 'ChecksumAlgorithm') !== 'SHA256') return null;
      parts.push(...[...root.getElementsByTagName('Part')].map((row) => ({
        number: Number(textOf(row, 'PartNumber')), size: Number(textOf(row, 'Size')), etag: textOf(row, 'ETag'), sum: textOf(row, 'ChecksumSHA256'),
      })));
      if (textOf(root, 'IsTruncated') !== 'true') return parts;
      marker = textOf(root, 'NextPartNumberMarker');
    }
  }

  async #begin() {
    const query = { uploads: '', ...(hashes() ? { 'x-amz-checksum-algorithm': 'SHA256' } : {}) };
    const headers = { 'Content-Type': this.file.type || 'application/octet-stream' };
    const reply = await s3({ method: 'POST', bucket: this.bucket, key: this.key, query }, { headers, signal: this.abort.signal });
    this.uploadId = textOf(cleaned(await reply.text()), 'UploadId');
    remember(this);
  }

  async #sendPart(number, missing) {
    const slice = this.#slice(number);
    await this.#persist(async () => {
      const sum = hashes() ? await sha256(slice) : '';
      const url = await this.#url(number, missing);
      const reply = await this.#put(url, slice, number);
      if (sum && reply.sum !== sum) throw new ApiError(0, 'unreachable', 'A part arrived with other bytes.');
      this.done.set(number, { etag: reply.etag, sum });
    }, () => this.urls.delete(number));
    delete this.moving[number];
    this.sent += slice.size;
    this.onChange();
  }

  async #url(number, missing) {
    if (!this.urls.has(number)) {
      const numbers = [number, ...missing.filter((one) => !this.urls.has(one)).slice(0, URLS_AT_ONCE - 1)];
      const urls = await signed(numbers.map((one) => ({
        method: 'PUT', bucket: this.bucket, key: this.key, query: { uploadId: this.uploadId, partNumber: String(one) },
      })), URL_SECONDS);
      numbers.forEach((one, at) => this.urls.set(one, urls[at]));
    }
    return this.urls.get(number);
  }

  #slice(number) { return this.file.slice((number - 1) * this.part, Math.min(number * this.part, this.size)); }

  async #complete() {
    const rows = [...this.done].sort(([one], [other]) => one - other).map(([number, { etag, sum }]) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${etag.replaceAll('"', '&quot;')}</ETag>${sum ? `<ChecksumSHA256>${sum}</ChecksumSHA256>` : ''}</Part>`);
    const target = { method: 'POST', bucket: this.bucket, key: this.key, query: { uploadId: this.uploadId } };
    await s3(target, { body: `<CompleteMultipartUpload>${rows.join('')}</CompleteMultipartUpload>`, signal: this.abort.signal });
  }

  /** A request of the browser that tells how far it has come, which fetch does not. Resolves to {etag, sum}. */
  #put(url, body, number, headers = {}) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const stop = () => request.abort();
      this.abort.signal.addEventListener('abort', stop);
      request.open('PUT', url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = (event) => { this.moving[number] = event.loaded; this.onChange(); };
      request.onload = () => (request.status < 300 ? resolve({ etag: request.getResponseHeader('ETag'), sum: request.getResponseHeader('x-amz-checksum-sha256') }) : reject(faultOf(request)));
      request.onerror = () => reject(new ApiError(0, 'unreachable', 'The connection was cut.'));
      request.onabort = () => reject(new DOMException('stopped', 'AbortError'));
      request.onloadend = () => this.abort.signal.removeEventListener('abort', stop);
      request.send(body);
    });
  }

  /** Tries again what a cut connection or a busy server made fail, after longer and longer waits, or as soon as the browser is online again. */
  async #persist(attempt, before = () => {}) {
    for (let tries = 1; ; tries++) {
      if (this.abort.signal.aborted) throw new DOMException('stopped', 'AbortError');
      try {
        const outcome = await attempt();
        this.note = this.note === 'waits for the connection' ? '' : this.note;
        return outcome;
      } catch (fault) {
        if (this.abort.signal.aborted || !isPassing(fault) || tries === TRIES) throw fault;
        if (fault.status === 0) await checkRoom();
        before();
        this.note = 'waits for the connection';
        this.onChange();
        await delay(Math.min(500 * 2 ** (tries - 1), 15000), this.abort.signal);
      }
    }
  }
}

/** The uploads of a visit. `uploads` is the list; watchers run at most ten times a second. */
export class UploadQueue {
  constructor() { Object.assign(this, { uploads: [], watchers: new Set(), enders: new Set(), running: 0 }); }

  /** `ender(upload)` runs when one is done. */
  whenDone(ender) {
    this.enders.add(ender);
    return () => this.enders.delete(ender);
  }

  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  add(bucket, key, file) {
    this.uploads.push(new Upload(bucket, key, file, () => this.changed()));
    this.#next();
  }

  resume(upload) {
    upload.state = 'waiting';
    upload.message = '';
    this.#next();
  }

  pause(upload) { upload.pause(); }

  remove(upload) {
    if (upload.state !== 'done' && upload.state !== 'cancelled') upload.cancel();
    this.uploads = this.uploads.filter((one) => one !== upload);
    this.changed();
  }

  clear() {
    this.uploads = this.uploads.filter((one) => one.state !== 'done');
    this.changed();
  }

  get busy() { return this.uploads.some((one) => one.state === 'sending' || one.state === 'waiting'); }

  changed() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      for (const watcher of [...this.watchers]) watcher();
    }, 100);
  }

  async #next() {
    this.changed();
    const upload = this.running < FILES_SIDE_BY_SIDE && this.uploads.find((one) => one.state === 'waiting');
    if (!upload) return;
    this.running++;
    upload.run().finally(() => {
      this.running--;
      if (upload.state === 'done') for (const ender of [...this.enders]) ender(upload);
      this.#next();
    });
    this.#next();
  }
}

/** The files of a drop or of a picker, with their paths: [{path, file}]. Folders are walked. */
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => (item.webkitGetAsEntry ? item.webkitGetAsEntry() : null)).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

export const pickedFiles = (list) => [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

async function walk(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, ''), file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {  // a hundred at a time
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some) await walk(one, found);
  }
}

const hashes = () => Boolean(globalThis.crypto && crypto.subtle);  // not on a page that came over plain HTTP from another machine

async function sha256(blob) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()));
  return btoa(String.fromCharCode(...sum));
}

function faultOf(request) {
  try {
    const root = xml(request.responseText);
    return new ApiError(request.status, textOf(root, 'Code'), textOf(root, 'Message'), textOf(root, 'RequestId'));
  } catch (malformed) {
    return new ApiError(request.status, 'unknown', `The server answered with status ${request.status}.`);
  }
}

// A server without room breaks the connection off in the middle of a part, before the browser has read its answer.
async function checkRoom() {
  const reply = await fetch(new URL('-/ready?write', root), { cache: 'no-store' }).catch(() => null);
  if (reply && reply.status === 507) throw new ApiError(507, 'no_space', (await reply.json()).error.message);
}

// A URL that is too old is signed anew at the next try.
function isPassing(fault) {
  return fault instanceof ApiError && fault.code !== 'address' &&
    (fault.status === 0 || fault.status === 429 || fault.status === 500 || fault.status === 502 || fault.status === 503 || fault.status === 504 ||
     /expired/i.test(fault.message));
}

function sentence(fault) {
  if (fault instanceof ApiError) return fault.message || `The server answered with status ${fault.status}.`;
  return fault.name === 'NotReadableError' || fault.name === 'NotFoundError' ? 'The file cannot be read: it has changed or is gone. Choose it again.' : String(fault.message || fault);
}

function delay(ms, signal) {
  return new Promise((resolve) => {
    const end = () => { clearTimeout(timer); removeEventListener('online', end); resolve(); };
    const timer = setTimeout(end, ms);
    addEventListener('online', end);
    signal.addEventListener('abort', end, { once: true });
  });
}

const cleaned = (text) => xml(text.replace(/&#x0*(?:[0-8bcef]|1[0-9a-f]);/gi, '\ufffd'));

// Which upload of which file is open, for after a reload. An upload's id is not a secret: it opens nothing without a key.
function recordOf(upload) {
  return JSON.stringify([upload.bucket, upload.key, upload.file.name, upload.size, upload.file.lastModified]);
}

function records() {
  try { return JSON.parse(localStorage.getItem(KEPT)) || {}; } catch (refused) { return {}; }
}

function keep(all) {
  try { localStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(Object.entries(all).slice(-100)))); } catch (refused) { /* storage is off: the server's list will do */ }
}

function remembered(upload) { return records()[recordOf(upload)]; }
function remember(upload) { keep({ ...records(), [recordOf(upload)]: upload.uploadId }); }

function forget(upload) {
  const all = records();
  delete all[recordOf(upload)];
  keep(all);
}
