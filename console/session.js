// Who is signed in, for the whole console.
import { api, whenSignedOut } from './api.js';
import { stream } from './events.js';

const MARK = 'deltabucket-signed-in';
const watchers = new Set();

/** `value`: null while nobody is signed in, undefined until the server has said. `ended`: why the last session is over, or ''. */
export const session = { value: undefined, ended: '' };

/** `watcher()` runs when somebody signs in or out. */
export function watchSession(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Asks the server who is signed in. A link's code signs in first. */
export async function beginSession(link) {
  whenSignedOut(() => { if (session.value) end('Your session has ended. Sign in to go on where you were.'); });
  try {
    if (link) return set(await api('/-/sessions', { method: 'POST', json: { link } }));
    if (!wasSignedIn()) return end('');
    set(await api('/-/session'));
  } catch (fault) {
    if (link) end(fault.message);
    else if (fault.status === 401 || fault.status === 403) end('');
    else throw fault;
  }
}

// The tabs of a browser share one cookie, and follow one another: the mark changes where somebody signs in or out.
addEventListener('storage', (event) => {
  if (event.key !== MARK) return;
  if (event.newValue === 'yes' ? session.value === null : session.value) api('/-/session').then(set, () => {});
});

/** Signs in with {key_id, secret} or {token}. Throws ApiError. */
export async function signIn(credentials) {
  set(await api('/-/sessions', { method: 'POST', json: credentials }));
}

export async function signOut() {
  await api('/-/session', { method: 'DELETE' }).catch(() => {});
  end('');
}

/** Whether the caller may do `permission` (read, write, list, admin) on `bucket`/`name`, as far as the session says. */
export function may(permission, bucket, name = '') {
  const { value } = session;
  if (!value) return false;
  if (value.root || !value.grants || value.grants.length === 0) return true;
  return prefixesOf(permission, bucket).some((prefix) => name.startsWith(prefix));
}

/** The prefixes of a bucket below which the grants of the caller's key give `permission`; none for a key without grants. */
export function prefixesOf(permission, bucket) {
  return session.value.grants.map(parseGrant).filter((one) => one.bucket === bucket && one.permissions.includes(permission)).map((one) => one.prefix);
}

/** Whether the page of storage has anything for the caller: what the server keeps, or the rules of a whole bucket. */
export function seesStorage({ root, metrics, grants }) {
  return root || metrics || !grants.length || grants.map(parseGrant).some((one) => !one.prefix && one.permissions.includes('list'));
}

// BUCKET[/PREFIX]=PERMISSION,...
function parseGrant(grant) {
  const at = grant.lastIndexOf('=');
  const resource = grant.slice(0, at);
  const slash = resource.indexOf('/');
  return { bucket: slash < 0 ? resource : resource.slice(0, slash), prefix: slash < 0 ? '' : resource.slice(slash + 1), permissions: grant.slice(at + 1).split(',') };
}

function set(value) {
  session.value = value;
  remember(true);
  session.ended = '';
  tell();
}

function end(why) {
  session.value = null;
  remember(false);
  session.ended = why;
  stream.close();
  tell();
}

// The cookie cannot be seen from here. This mark spares a visitor who never signed in a request that is refused.
function wasSignedIn() {
  try { return localStorage.getItem(MARK) === 'yes'; } catch (refused) { return true; }
}

function remember(signedIn) {
  try { localStorage.setItem(MARK, signedIn ? 'yes' : 'no'); } catch (refused) { /* nothing is spared */ }
}

function tell() { for (const watcher of [...watchers]) watcher(); }
