// Requests to the server. Every one carries the header that makes the session's cookie count, and
// that a page of another origin cannot send. S3 requests carry no session: the server signs their URLs.

/** The server's base URL, whatever path a proxy puts in front of /console/. */
export const root = new URL('../', import.meta.url);

/** What a server refused: `status`, `code`, `message`, `requestId`. Status 0: it was not reached. */
export class ApiError extends Error {
  constructor(status, code, message, requestId, details) {
    super(message);
    Object.assign(this, { status, code, requestId: requestId || '', details: details || {} });
  }
}

/** The server's clock against the browser's, in ms; ages are counted by it. */
export const clock = { offset: 0, now: () => Date.now() + clock.offset };

let onSignedOut = () => {};
/** `handler` runs whenever the server says that there is no session any more. */
export function whenSignedOut(handler) { onSignedOut = handler; }

/**
 * Sends a request to a JSON face: `await api('/-/overview')`. Options: `method`, `json` (an object to send), `body`, `headers`,
 * `query` (an object; members that are null are left out), `signal`. Returns the parsed reply, or null for 204. Throws ApiError.
 */
export async function api(path, options = {}) {
  const response = await send(path, options);
  if (response.status === 204) return null;
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** As `api`, with the Response itself, for streams and headers. */
export async function send(path, { method = 'GET', json, body, headers = {}, query, signal } = {}) {
  const sent = { 'X-Deltabucket-Console': '1', ...headers };
  if (json !== undefined) { sent['Content-Type'] = 'application/json'; body = JSON.stringify(json); }
  const response = await reach(address(path, query), { method, body, headers: sent, signal, credentials: 'same-origin' });
  noteClock(response);
  if (response.ok) return response;
  const fault = await jsonFault(response);
  if (response.status === 401 && fault.code !== 'refused') onSignedOut(fault);
  throw fault;
}

/** Reads all pages of a list: `await all('/v1/runs', 'runs', {limit: 1000})`. `cursor` is the parameter that takes `next`. */
export async function all(path, member, { query = {}, cursor = 'after', pages = 100, signal, onPage } = {}) {
  const rows = [];
  let next;
  for (let page = 0; page < pages; page++) {
    const reply = await api(path, { query: { ...query, [cursor]: next ?? query[cursor] }, signal });
    rows.push(...reply[member]);
    if (onPage) onPage(rows, reply);
    next = reply.next;
    if (next === undefined || next === null) return Object.assign(rows, { complete: true });
  }
  return Object.assign(rows, { complete: false, next });
}

/** A path of segments, each escaped: `path('v1', 'runs', bucket, run)` is `/v1/runs/b/r`. */
export function path(...segments) {
  return '/' + segments.map((segment) => encodeURIComponent(segment)).join('/');
}

/**
 * URLs that the server signed with the session's key: `await signed([{method: 'GET', bucket, key}])`. A request is
 * {method, bucket, key?, query?}. Up to 1000 at once; more are asked for in turns.
 */
export async function signed(requests, expires_s = 900) {
  const urls = [];
  for (let at = 0; at < requests.length; at += 1000) {
    const reply = await api('/-/signed-urls', { method: 'POST', json: { expires_s, requests: requests.slice(at, at + 1000) } });
    urls.push(...reply.urls);
  }
  return urls;
}

/** One S3 request by a signed URL. `target` is {method, bucket, key?, query?}. Returns the Response; throws ApiError. */
export async function s3(target, { body, headers, signal } = {}) {
  const [url] = await signed([target]);
  return fetchSigned(url, { method: target.method, body, headers, signal });
}

/** Fetches a URL that was signed before. */
export async function fetchSigned(url, { method = 'GET', body, headers, signal } = {}) {
  const response = await reach(url, { method, body, headers, signal, credentials: 'omit', cache: 'no-store' });
  if (response.ok) return response;
  throw await xmlFault(response);
}

/** One S3 request whose reply is XML, parsed. */
export async function s3Xml(target, options) {
  return xml(await (await s3(target, options)).text());
}

/** Parses XML. Throws an Error when it is malformed. */
export function xml(text) {
  // Of an empty text, the body of a fault of HEAD, browsers make a document with styles inside, which the page's policy refuses aloud.
  if (!text) throw new Error('The server sent nothing.');
  const parsed = new DOMParser().parseFromString(text, 'text/xml');
  if (parsed.getElementsByTagName('parsererror').length) throw new Error('The server sent XML that is malformed.');
  return parsed;
}

/** The text of the first element called `name` below `node`, or ''. */
export function textOf(node, name) {
  const found = node.getElementsByTagName(name)[0];
  return found ? found.textContent : '';
}

function address(path, query) {
  const url = new URL(path.replace(/^\//, ''), root);
  for (const [name, value] of Object.entries(query || {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) url.searchParams.append(name, one);
    }
  }
  return url;
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (fault) {
    if (fault.name === 'AbortError') throw fault;
    throw new ApiError(0, 'unreachable', 'The server does not answer.');
  }
}

function noteClock(response) {
  const date = Date.parse(response.headers.get('Date') || '');
  if (!Number.isNaN(date) && Math.abs(date - Date.now()) > 2000) clock.offset = date - Date.now();
}

async function jsonFault(response) {
  const text = await response.text().catch(() => '');
  try {
    const { code, message, request_id, ...details } = JSON.parse(text).error;
    return new ApiError(response.status, code, message, request_id, details);
  } catch (malformed) {
    return new ApiError(response.status, 'unknown', `The server answered with status ${response.status}.`);
  }
}

async function xmlFault(response) {
  const text = await response.text().catch(() => '');
  try {
    const parsed = xml(text);
    return new ApiError(response.status, textOf(parsed, 'Code'), textOf(parsed, 'Message'), textOf(parsed, 'RequestId'));
  } catch (malformed) {
    return new ApiError(response.status, 'unknown', `The server answered with status ${response.status}.`);
  }
}
