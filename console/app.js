// The shell: the bar on top, the session, and the page that the address names.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from './vendor/htm-preact.js';
import { href, parseRoute } from './route.js';
import { ApiError } from './api.js';
import { beginSession, seesStorage, session, signOut, watchSession } from './session.js';
import { Icon } from './components/icon.js';
import { Empty, Fault, Waiting } from './components/page.js';
import { Toasts } from './components/toast.js';
import { useSetting, useStreamState } from './components/hooks.js';

const PAGES = [
  { name: '', label: 'Overview', load: () => import('./pages/overview.js') },
  { name: 'runs', label: 'Runs', load: (path) => (path.length > 2 ? import('./pages/run.js') : import('./pages/runs.js')) },
  { name: 'buckets', label: 'Buckets', load: () => import('./pages/buckets.js') },
  { name: 'storage', label: 'Storage', isFor: seesStorage, load: () => import('./pages/storage.js') },
  { name: 'keys', label: 'Keys', load: () => import('./pages/keys.js') },
];
const STREAM = { connecting: 'Connecting', live: 'Live', waiting: 'Reconnecting', refused: 'Not live' };
const THEMES = { system: ['screen', 'as the browser'], light: ['sun', 'light'], dark: ['moon', 'dark'] };

function App() {
  const [, setTold] = useState(0);
  const [fault, setFault] = useState(null);
  const route = useRoute();
  const begin = () => beginSession(takeLink()).then(() => setFault(null), setFault);
  useEffect(() => {
    const end = watchSession(() => setTold((n) => n + 1));
    begin();
    return end;
  }, []);
  useEffect(() => { if (/^#link=/.test(route.hash)) begin(); }, [route.hash]);
  if (fault) return html`<div class="sign-in"><div class="sign-in-card"><${Fault} fault=${fault} retry=${begin} /></div></div>`;
  if (session.value === undefined) return null;
  if (session.value === null) return html`<${Lazy} load=${() => import('./pages/sign_in.js')} name="sign-in" bare=${true} route=${route} />`;
  return html`<${Shell} route=${route} />`;
}

function Shell({ route }) {
  const name = route.path[0] || '';
  const page = PAGES.find((one) => one.name === name);
  const main = useRef(null);
  const skip = (event) => { event.preventDefault(); main.current.focus(); };
  usePlace(main, route);
  return html`<div>
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="bar"><div class="bar-inner">
      <a class="brand" href="#/"><img src=${new URL('icon.svg', import.meta.url).pathname} alt="" />deltabucket</a>
      <nav class="pages" aria-label="Pages">${PAGES.filter((one) => !one.isFor || one.isFor(session.value)).map((one) =>
        html`<a key=${one.name} href=${one.name ? href(one.name) : '#/'} aria-current=${one === page ? 'page' : undefined}>${one.label}</a>`)}</nav>
      <div class="bar-end"><${Live} /><${Theme} /><${Account} /></div>
    </div></header>
    <main class="main" id="main" tabindex="-1" ref=${main}>${page
      ? html`<${Lazy} key=${name + (route.path.length > 2)} load=${() => page.load(route.path)} name=${name} route=${route} />`
      : html`<${Empty} title="There is no such page" action=${html`<a class="button" href="#/">To the overview</a>`} />`}</main>
    <${Toasts} />
  </div>`;
}

// A page is fetched when it is first looked at.
function Lazy({ load, name, route, bare }) {
  const [state, setState] = useState({});
  const [broken, mend] = useErrorBoundary((fault) => console.error(fault));
  useEffect(() => {
    let here = true;
    load().then((module) => { if (here) setState({ Page: module.default }); }, () => look(() => { if (here) setState({ fault: { message: 'This page could not be fetched from the server.' } }); }));
    return () => { here = false; };
  }, [name]);
  // A browser does not fetch a module again that failed: the whole console is loaded anew, once the server answers.
  const look = (answers) => fetch(import.meta.url, { cache: 'no-store' }).then(answers, () => setState({ fault: new ApiError(0, 'unreachable', 'The server does not answer.') }));
  const again = () => (state.fault.code ? look(() => location.reload()) : location.reload());
  if (broken) return html`<${Fault} fault=${{ message: `This page has a fault: ${broken.message}` }} retry=${mend} />`;
  if (state.fault) return html`<${Fault} fault=${state.fault} retry=${again} />`;
  if (!state.Page) return bare ? null : html`<${Waiting} />`;
  return html`<${state.Page} route=${route} session=${session.value} />`;
}

function Live() {
  const state = useStreamState();
  if (state === 'off') return null;  // the page in sight has nothing that is live
  return html`<span class="live" data-state=${state} role="status"><i></i><span class="live-word">${STREAM[state]}</span></span>`;
}

function Theme() {
  const [theme, setTheme] = useSetting('theme', 'system');
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme) + 1) % names.length];
  const [icon, word] = THEMES[theme] || THEMES.system;
  const turn = () => {
    setTheme(next);
    if (next === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
  };
  const label = `Colours: ${word}. Change to: ${THEMES[next][1]}`;
  return html`<button type="button" class="button plain icon-only" title=${label} aria-label=${label} onClick=${turn}><${Icon} name=${icon} /></button>`;
}

function Account() {
  const { value } = session;
  const grants = value.grants || [];
  return html`<div>
    <button type="button" class="button plain icon-only" aria-label="Your key, and sign out" title="Your key, and sign out" popovertarget="account"><${Icon} name="person" /></button>
    <div class="menu" id="account" popover="auto">
      <dl>
        <dt>Key</dt><dd><code>${value.key_id}</code></dd>
        ${value.name && html`<dt>Name</dt><dd>${value.name}</dd>`}
        <dt>Account</dt><dd>${value.namespace}</dd>
        <dt>May</dt><dd>${value.root ? 'do everything' : grants.length ? grants.map((grant) => html`<div key=${grant}><code>${grant}</code></div>`) : 'act for its account'}</dd>
        ${value.server && html`<dt>Server</dt><dd>${value.server.version}</dd>`}
      </dl>
      <button type="button" class="button" onClick=${signOut}>Sign out</button>
    </div>
  </div>`;
}

function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const read = () => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return route;
}

// A new page begins at its top, and screen readers begin there too. A tab or a filter of the same page moves nothing.
function usePlace(main, route) {
  const place = route.path.slice(0, route.path[0] === 'runs' ? 3 : 2).join('/');
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    scrollTo(0, 0);
    main.current.focus({ preventScroll: true });
  }, [place]);
}

// The code of a sign-in link is taken out of the address at once: it must not stay in the history.
function takeLink() {
  const found = /^#link=([^&]+)/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, '', location.pathname + '#/');
  dispatchEvent(new HashChangeEvent('hashchange'));
  return found[1];
}

render(html`<${App} />`, document.getElementById('app'));
