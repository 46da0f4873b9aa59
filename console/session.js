// Who is signed in, for the whole console.
import { api, whenSignedOut } from './api.js';
import { stream } from './events.js';

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
  return value.grants.some((grant) => {
    const at = grant.lastIndexOf('=');
    const resource = grant.slice(0, at);
    const slash = resource.indexOf('/');
    const prefix = slash < 0 ? '' : resource.slice(slash + 1);
    return (slash < 0 ? resource : resource.slice(0, slash)) === bucket && name.startsWith(prefix) &&
      grant.slice(at + 1).split(',').includes(permission);
  });
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
  try { return localStorage.getItem('deltabucket-signed-in') === 'yes'; } catch (refused) { return true; }
}

function remember(signedIn) {
  try { localStorage.setItem('deltabucket-signed-in', signedIn ? 'yes' : 'no'); } catch (refused) { /* nothing is spared */ }
}

function tell() { for (const watcher of [...watchers]) watcher(); }
