// The audit trail in words: what each action is called, and what its detail says. The server keeps a detail as the caller sent it:
// a word, an operation's name, or the body of the request (docs/protocol/admin.md, ListAudit).
import { count } from '../components/format.js';
import { visible } from './name.js';

export const ACTIONS = {
  sign_in: 'signed in', sign_in_refused: 'sign-in refused', sign_out: 'signed out', link_made: 'link made', key_made: 'key made', key_revoked: 'key revoked',
  run_settings: 'run settings', run_removed: 'run removed', pin_put: 'pin put', pin_removed: 'pin removed', rollback: 'rolled back', forward: 'went forward',
  bucket_made: 'bucket made', bucket_removed: 'bucket removed', bucket_settings: 'bucket settings', gc: 'gc', scrub: 'scrub',
};
export const GRAVE = new Set(['sign_in_refused', 'key_revoked', 'run_removed', 'bucket_removed', 'rollback']);

const WAYS = { secret: 'with its secret', token: 'with its token', link: 'by a link' };
const TEXTS = {
  sign_in: (text) => WAYS[text], sign_in_refused: (text) => WAYS[text],
  sign_out: (text) => (text === 'by its id' ? 'ended from the list of sessions' : undefined),
  key_made: (text) => `named ${text}`, pin_put: (text) => `pin ${text}`, pin_removed: (text) => `pin ${text}`,
  bucket_settings: (text) => OPERATIONS[text],
};
const BODIES = { rollback: ['step'], gc: ['dry_run', 'ends_promises', 'live_percent'], scrub: ['resume', 'rate'], bucket_settings: ['fromRepo', 'toRepo', 'type'] };
const MEMBERS = {
  step: (value) => `to step ${count(value)}`,
  dry_run: (value) => (value ? 'looked only' : ''),
  ends_promises: (value) => (value ? 'ended the promises to Xet clients' : ''),
  live_percent: (value) => `compacted packs below ${value} % in use`,
  resume: (value) => (value ? 'went on with the round' : ''),
  rate: (value) => (value ? `at most ${count(value)} MiB a second` : 'without a limit'),
  fromRepo: (value) => `was ${value}`, toRepo: (value) => `now ${value}`, type: () => '',
};
const OPERATIONS = {
  PutBucket: 'settings changed', HubBucketSettings: 'visibility, by the Hub', PutBucketVersioning: 'versioning', PutBucketAcl: 'access',
  PutBucketPolicy: 'access policy', DeleteBucketPolicy: 'access policy removed', PutBucketTagging: 'tags', DeleteBucketTagging: 'tags removed',
  PutBucketCors: 'CORS rules', DeleteBucketCors: 'CORS rules removed', PutBucketOwnershipControls: 'ownership of objects',
  DeleteBucketOwnershipControls: 'ownership of objects, as at first', PutPublicAccessBlock: 'block of public access',
  DeletePublicAccessBlock: 'block of public access removed', PutBucketLifecycleConfiguration: 'lifecycle rules', DeleteBucketLifecycle: 'lifecycle rules removed',
};

/** What the entry's detail says, as words. What is not known here stands as it came, a JSON object as `name: value`. */
export function detailOf({ action, detail }) {
  if (!detail) return '';
  const known = Object.hasOwn(TEXTS, action) && TEXTS[action](detail);
  if (known) return visible(known);
  const body = objectOf(detail);
  return visible(body ? sayBody(body, BODIES[action] || []) : detail);
}

function objectOf(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function sayBody(body, known) {
  return Object.entries(body).map(([name, value]) => (known.includes(name) && isPlain(value) ? MEMBERS[name](value) : `${name}: ${wordOf(value)}`))
    .filter(Boolean).join(', ');
}

const isPlain = (value) => value === null || typeof value !== 'object';
const wordOf = (value) => (value === true ? 'yes' : value === false ? 'no' : value === null ? 'none' : isPlain(value) ? String(value) : JSON.stringify(value));
