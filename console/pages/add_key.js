// Making a key: what it may do is built from buckets, prefixes and permissions, and each grant says what it covers now. The secret is
// shown once, with the lines to paste.
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { all, api, path } from '../api.js';
import { Dialog } from '../components/dialog.js';
import { Copy, CopyLine } from '../components/copy.js';
import { CheckField, Field, Segments, TextField } from '../components/field.js';
import { bytes, some } from '../components/format.js';
import { useElementId, useLoad } from '../components/hooks.js';
import { Icon } from '../components/icon.js';
import { Notice } from '../components/page.js';
import { visible } from './name.js';

const PERMISSIONS = [['read', 'Read'], ['list', 'List'], ['write', 'Write'], ['admin', 'Admin']];
const EMPTY = { bucket: '', prefix: '', read: true, list: true, write: false, admin: false };

export function AddKey({ session, onMade, onClose }) {
  const [made, setMade] = useState(null);
  const done = (key) => { setMade(key); onMade(); };
  return made ? html`<${MadeKey} key="made" made=${made} server=${session.server} onClose=${onClose} />` : html`<${KeyForm} key="form" session=${session} onMade=${done} onClose=${onClose} />`;
}

function KeyForm({ session, onMade, onClose }) {
  const [form, setForm] = useState({ name: '', namespace: '', kind: 'grants', metrics: false });
  const [grants, setGrants] = useState([EMPTY]);
  const [state, setState] = useState({ busy: false, fault: '' });
  const buckets = useLoad((signal) => all('/-/buckets', 'buckets', { query: { limit: 1000 }, signal }), []);
  const runs = useLoad((signal) => all('/v1/runs', 'runs', { query: { limit: 1000 }, signal }), []);
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const texts = form.kind === 'account' ? [] : [...grants.filter(isWhole).map(textOfGrant), ...(form.metrics ? ['metrics'] : [])];
  const ready = !state.busy && (form.kind === 'account' || texts.length > 0);
  const change = (at, changes) => setGrants((before) => before.map((one, i) => (i === at ? { ...one, ...changes } : one)));
  const submit = async (event) => {
    event.preventDefault();
    if (!ready) return;
    setState({ busy: true, fault: '' });
    try {
      onMade(await api('/-/keys', { method: 'POST', json: { ...(form.name ? { name: form.name } : {}), ...(form.namespace ? { namespace: form.namespace } : {}), grants: texts } }));
    } catch (fault) { setState({ busy: false, fault: fault.message }); }
  };
  return html`<${Dialog} title="Add a key" broad steady onClose=${onClose}><form class="stack" onSubmit=${submit}>
    <div class="form-row">
      <${TextField} label="Name" help="So that people know what it is for." maxlength="255" autocomplete="off" value=${form.name} onChange=${set('name')} />
      <${TextField} label="Account" help="Whose buckets are its own." maxlength="255" autocomplete="off" placeholder=${session.server.default_namespace} value=${form.namespace} onChange=${(value) => set('namespace')(value.trim())} />
    </div>
    <${Segments} label="What it may do" value=${form.kind} options=${[['grants', 'Only these grants'], ['account', 'Whole account']]} onChange=${set('kind')} />
    ${form.kind === 'account' ? html`<p class="soft">It may do everything in the account's buckets, and make new ones. For one machine, grants are enough.</p>` : html`
      <div class="stack">${grants.map((grant, at) => html`<${GrantRow} key=${at} number=${at + 1} grant=${grant} buckets=${buckets.data || []} runs=${runs.data || []}
        onChange=${(changes) => change(at, changes)} onRemove=${grants.length > 1 && (() => setGrants((before) => before.filter((_, i) => i !== at)))} />`)}</div>
      <p><button type="button" class="button small" onClick=${() => setGrants((before) => [...before, EMPTY])}><${Icon} name="plus" />Add a grant</button></p>
      <${CheckField} label="Read the server's metrics" help="For Prometheus, and for the pages that show the whole server." value=${form.metrics} onChange=${set('metrics')} />`}
    ${state.fault && html`<p class="bad" role="alert">${state.fault}</p>`}
    <div class="dialog-foot"><button type="button" class="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="button primary" disabled=${!ready}>${state.busy ? 'Working…' : 'Make key'}</button></div>
  </form><//>`;
}

const isWhole = (grant) => grant.bucket && PERMISSIONS.some(([one]) => grant[one]);
const textOfGrant = (grant) => `${grant.bucket}${grant.prefix ? `/${grant.prefix}` : ''}=${PERMISSIONS.map(([one]) => one).filter((one) => grant[one]).join(',')}`;

function GrantRow({ number, grant, buckets, runs, onChange, onRemove }) {
  const list = useElementId();
  return html`<fieldset class="grant"><legend class="hidden-text">Grant ${number}</legend>
    <div class="grant-place">
      <${Field} label="Bucket">${(id) => html`<input id=${id} class="input mono" list=${list} autocomplete="off" spellcheck=${false} value=${grant.bucket} onInput=${(event) => onChange({ bucket: event.target.value.trim() })} />`}<//>
      <datalist id=${list}>${buckets.map((row) => html`<option key=${row.bucket} value=${row.bucket} />`)}</datalist>
      <${TextField} label="Prefix" mono autocomplete="off" spellcheck=${false} placeholder="all of the bucket" value=${grant.prefix} onChange=${(prefix) => onChange({ prefix: prefix.replace(/^\//, '') })} />
      ${onRemove && html`<button type="button" class="button plain icon-only" aria-label=${`Remove grant ${number}`} title="Remove this grant" onClick=${onRemove}><${Icon} name="trash" /></button>`}
    </div>
    <div class="grant-permissions">${PERMISSIONS.map(([one, word]) => html`<${CheckField} key=${one} label=${word} value=${grant[one]} onChange=${(value) => onChange({ [one]: value })} />`)}</div>
    <${Coverage} grant=${grant} buckets=${buckets} runs=${runs} />
  </fieldset>`;
}

/** What a grant covers at this moment, in words. */
function Coverage({ grant, buckets, runs }) {
  const [found, setFound] = useState(null);
  const known = buckets.find((row) => row.bucket === grant.bucket);
  useEffect(() => {
    setFound(null);
    if (!known) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => api(path('-', 'buckets', grant.bucket, 'usage'), { query: { prefix: grant.prefix, limit: 1000 }, signal: stop.signal }).then(setFound, () => {}), 250);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [grant.bucket, grant.prefix, Boolean(known)]);
  if (!grant.bucket) return html`<p class="small soft coverage">Choose a bucket; a prefix narrows the grant.</p>`;
  if (!known) return html`<p class="small warn coverage" role="status">There is no bucket ${visible(grant.bucket)} yet. The grant counts once somebody has made it.</p>`;
  const covered = runs.filter((row) => row.bucket === grant.bucket && `${row.run}/`.startsWith(grant.prefix));
  return html`<div class="coverage" role="status">
    <p class="small soft">${found ? `Covers ${found.complete && !found.next ? '' : 'at least '}${some('object', found.objects)}, ${bytes(found.bytes)}, and ${runWords(covered)}.` : 'Counting what it covers…'}</p>
    ${grant.prefix && !grant.prefix.endsWith('/') && html`<p class="small warn">A prefix matches any key that starts with it, ${visible(grant.prefix)}2 too. End it with / to mean the folder.</p>`}
    ${grant.admin && grant.prefix && html`<p class="small warn">Settings of the bucket need Admin without a prefix.</p>`}
  </div>`;
}

function runWords(runs) {
  if (!runs.length) return 'no run';
  const names = runs.slice(0, 3).map((row) => visible(row.run)).join(', ');
  return `${some('run', runs.length)} (${names}${runs.length > 3 ? ', …' : ''})`;
}

function MadeKey({ made, server, onClose }) {
  const [client, setClient] = useState('deltabucket');
  return html`<${Dialog} title="The key is made" broad firm onClose=${onClose}><div class="stack">
    <${Notice}>Secret and token are shown this once. Copy them now: nobody can read them again.<//>
    ${made.warnings.map((one) => html`<${Notice} key=${one}>${visible(one)}<//>`)}
    <dl class="facts secret-facts">
      <dt>Key id</dt><dd><${CopyLine} text=${made.key_id} label="Copy the key id" /></dd>
      <dt>Secret</dt><dd><${CopyLine} text=${made.secret} label="Copy the secret" /></dd>
      <dt>Token</dt><dd><${CopyLine} text=${made.token} label="Copy the token" /></dd>
    </dl>
    <${Segments} label="Lines to paste for" value=${client} options=${Object.keys(LINES).map((name) => [name, name])} onChange=${setClient} />
    <${CopyBlock} text=${LINES[client](made, server).join('\n')} />
    <p class="small soft">The lines name the server's own CA as <code>ca.pem</code>: <a href=${new URL('../../-/ca', import.meta.url).href} download="ca.pem">save it</a> beside them. A server with a public certificate needs none.</p>
    <div class="dialog-foot"><button type="button" class="button primary" onClick=${onClose}>I have copied them</button></div>
  </div><//>`;
}

function CopyBlock({ text }) {
  return html`<div class="copy-line copy-block"><pre tabindex="0" aria-label="Lines to paste">${text}</pre><${Copy} text=${text} label="Copy the lines" /></div>`;
}

const LINES = {
  deltabucket: (key, server) => [`export DELTABUCKET_ENDPOINT=${server.url}`, 'export DELTABUCKET_CA=$PWD/ca.pem', `export DELTABUCKET_TOKEN=${key.token}`],
  aws: (key, server) => [`export AWS_ACCESS_KEY_ID=${key.key_id} AWS_SECRET_ACCESS_KEY=${key.secret}`,
    `export AWS_ENDPOINT_URL=${server.url} AWS_DEFAULT_REGION=${server.region} AWS_CA_BUNDLE=$PWD/ca.pem`],
  hf: (key, server) => [`export HF_ENDPOINT=${server.url}`, `export HF_TOKEN=${key.token}`, 'export SSL_CERT_FILE=$PWD/ca.pem'],
  curl: (key, server) => [`curl --cacert ca.pem -H 'Authorization: Bearer ${key.token}' ${server.url}/-/session`],
};
