// Hooks that pages share.
import { html, useCallback, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { ago, moment } from './format.js';
import { stream } from '../events.js';

/**
 * Loads what `load(signal)` gives, and again whenever one of `inputs` changes. Returns {data, fault, loading, reload, set}. What was
 * there stays in sight while it is loaded anew; a change of `inputs` drops it.
 */
export function useLoad(load, inputs) {
  const [state, setState] = useState({ loading: true });
  const current = useRef(null);
  const run = useCallback((keep) => {
    if (current.current) current.current.abort();
    const abort = current.current = new AbortController();
    setState((before) => keep ? { ...before, loading: true } : { loading: true });
    return load(abort.signal).then(
      (data) => { if (!abort.signal.aborted) setState({ data, loading: false }); },
      (fault) => { if (!abort.signal.aborted) setState((before) => ({ data: keep ? before.data : undefined, fault, loading: false })); });
  }, inputs);
  useEffect(() => {
    run(false);
    return () => current.current && current.current.abort();
  }, [run]);
  const set = useCallback((data) => setState({ data, loading: false }), []);
  return { ...state, reload: useCallback(() => run(true), [run]), set };
}

/** Subscribes to the event stream for as long as the component lives: events.js says what `wants` and `handler` are. */
export function useEvents(wants, handler) {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => stream.subscribe(wants, (name, data) => latest.current(name, data)), [JSON.stringify(wants)]);
}

/** The state of the event stream. */
export function useStreamState() {
  const [state, setState] = useState(stream.state);
  useEffect(() => stream.watch(setState), []);
  return state;
}

/** Whether the window is at most so wide. style.css has the same limits: 860 px for tablets that stand, 600 px for phones. */
export function useNarrow(width) {
  const query = matchMedia(`(max-width: ${width}px)`);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const look = () => setNarrow(query.matches);
    query.addEventListener('change', look);
    return () => query.removeEventListener('change', look);
  }, []);
  return narrow;
}

const ticking = new Set();
setInterval(() => { if (!document.hidden) for (const tick of [...ticking]) tick(); }, 1000);

/** Draws the component again once a second. */
export function useTick() {
  const [, setTick] = useState(0);
  useEffect(() => {
    const tick = () => setTick((n) => n + 1);
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
}

/** How long ago a time was; counts on by itself. The full time is its title. */
export function Ago({ time }) {
  useTick();
  return time ? html`<time datetime=${time} title=${moment(time)}>${ago(time)}</time>` : '–';
}

let ids = 0;
/** An id for an element, the same for the component's life. */
export function useElementId() {
  const id = useRef('');
  if (!id.current) id.current = `e${++ids}`;
  return id.current;
}

/** The document's title, while the page is in sight. */
export function useTitle(title) {
  useEffect(() => { document.title = title ? `${title} · deltabucket` : 'deltabucket'; }, [title]);
}

/** A value of localStorage, and its setter. */
export function useSetting(name, initial) {
  const [value, setValue] = useState(() => readSetting(name) ?? initial);
  return [value, (next) => { writeSetting(name, next); setValue(next); }];
}

function readSetting(name) {
  try { return localStorage.getItem(`deltabucket-${name}`); } catch (refused) { return null; }
}

function writeSetting(name, value) {
  try {
    if (value === null) localStorage.removeItem(`deltabucket-${name}`);
    else localStorage.setItem(`deltabucket-${name}`, value);
  } catch (refused) { /* storage is off: the choice holds until the page is left */ }
}
