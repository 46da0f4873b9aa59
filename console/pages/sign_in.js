// Signing in with a key, or with its token.
import { html, useState } from '../vendor/htm-preact.js';
import { session, signIn } from '../session.js';
import { Segments, TextField } from '../components/field.js';
import { Notice } from '../components/page.js';
import { useTitle } from '../components/hooks.js';

export default function Page() {
  const [way, setWay] = useState('key');
  const [form, setForm] = useState({ key_id: '', secret: '', token: '' });
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  useTitle('Sign in');
  const fill = (name) => (value) => setForm((before) => ({ ...before, [name]: value.trim() }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      await signIn(way === 'key' ? { key_id: form.key_id, secret: form.secret } : { token: form.token });
    } catch (failed) {
      setFault(failed);
      setBusy(false);
    }
  };
  return html`<main class="sign-in"><div class="sign-in-card">
    <div class="brand"><img src=${new URL('../icon.svg', import.meta.url).pathname} alt="" />deltabucket</div>
    ${session.ended && html`<div class="notices"><${Notice} kind="calm">${session.ended}<//></div>`}
    <div class="panel"><form class="panel-body form" onSubmit=${submit}>
      <div><h1>Sign in</h1><p class="soft">With a key of this server.</p></div>
      <${Segments} label="Sign in with" value=${way} options=${[['key', 'Key and secret'], ['token', 'Token']]} onChange=${setWay} />
      ${way === 'key' ? html`
        <${TextField} key="id" label="Key id" name="username" autocomplete="username" mono spellcheck=${false} autocapitalize="off" required value=${form.key_id} onChange=${fill('key_id')} />
        <${TextField} key="secret" label="Secret" name="password" type="password" autocomplete="current-password" mono required value=${form.secret} onChange=${fill('secret')} />`
      : html`<${TextField} key="token" label="Token" name="password" type="password" autocomplete="current-password" mono required value=${form.token} onChange=${fill('token')} />`}
      ${fault && html`<p class="bad" role="alert">${fault.message}</p>`}
      <button type="submit" class="button primary" disabled=${busy}>${busy ? 'Signing in…' : 'Sign in'}</button>
    </form></div>
    <p class="sign-in-foot">On the server, <code>deltabucketd console</code> prints a link that signs in once.</p>
  </div></main>`;
}
