// Short messages about what just happened. They go by themselves; faults stay until they are closed.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';

const LASTS_MS = 5000;
let shown = [];
let draw = () => {};
let number = 0;

/** Shows `text`. `kind`: ok or bad. */
export function toast(text, kind = 'ok') {
  const one = { id: ++number, text, kind };
  shown = [...shown.slice(-3), one];
  draw();
  if (kind === 'ok') setTimeout(() => drop(one.id), LASTS_MS);
}

/** Runs `work` and says how it went: `done` after success, the server's sentence after a fault. Returns whether it succeeded. */
export async function attempt(work, done) {
  try {
    await work();
    if (done) toast(done);
    return true;
  } catch (fault) {
    toast(fault.message, 'bad');
    return false;
  }
}

/** Where toasts appear. It stands in the top layer, above dialogs. */
export function Toasts() {
  const [, setDrawn] = useState(0);
  const layer = useRef(null);
  useEffect(() => { draw = () => setDrawn((n) => n + 1); return () => { draw = () => {}; }; }, []);
  useEffect(() => {
    const node = layer.current;
    if (!node.showPopover) return;
    if (node.matches(':popover-open')) node.hidePopover();
    if (shown.length) node.showPopover();
  }, [shown.length]);
  return html`<div class="toasts" popover="manual" ref=${layer} role="status" aria-live="polite">${shown.map((one) =>
    html`<div class="toast ${one.kind}" key=${one.id}><${Icon} name=${one.kind === 'bad' ? 'alert' : 'check'} />
      <div class="toast-text">${one.text}</div>
      <button type="button" class="button plain small icon-only" aria-label="Close this message" onClick=${() => drop(one.id)}><${Icon} name="cross" /></button>
    </div>`)}</div>`;
}

function drop(id) {
  shown = shown.filter((one) => one.id !== id);
  draw();
}
