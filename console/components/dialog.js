// Dialogs: the browser's own <dialog>, which keeps the focus inside and closes at Esc.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';
import { useElementId } from './hooks.js';
import { Field } from './field.js';

/**
 * A dialog that is open while it is drawn. `onClose` runs at Esc, at its cross, and at a click beside it; with `steady` a click beside it
 * does nothing, with `firm` neither does Esc, and there is no cross: a button in it has to be chosen.
 */
export function Dialog({ title, onClose, broad, steady, firm, children }) {
  const node = useRef(null);
  const id = useElementId();
  useEffect(() => {
    const before = document.activeElement;
    const dialog = node.current;
    dialog.showModal();
    const first = dialog.querySelector('[data-focus]') || dialog.querySelector('.dialog-body input, .dialog-body select, .dialog-body textarea');
    if (first) first.focus();
    return () => {  // the page takes the focus again only once the dialog is closed
      dialog.close();
      if (before && before.isConnected) before.focus();
    };
  }, []);
  const beside = (event) => { if (event.target === node.current && !steady && !firm) onClose(); };
  const cancel = (event) => { event.preventDefault(); if (!firm) onClose(); };
  // Browsers close a dialog at the second Esc without asking it.
  const press = (event) => { if (firm && event.key === 'Escape') event.preventDefault(); };
  const closed = () => { if (firm && node.current) node.current.showModal(); };
  return html`<dialog class="dialog ${broad ? 'broad' : ''}" ref=${node} aria-labelledby=${id} onCancel=${cancel} onClose=${closed} onKeyDown=${press} onMouseDown=${beside}>
    <div class="dialog-head"><h2 id=${id}>${title}</h2>
      ${!firm && html`<button type="button" class="button plain icon-only" aria-label="Close" onClick=${onClose}><${Icon} name="cross" /></button>`}</div>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/**
 * Asks before something is done. `action` is the button's word ("Delete 3 objects"), `children` say what will happen. With `word` the
 * button works only once that word is typed, with `ready` false not yet. `onConfirm` may return a promise; the dialog closes when it is kept, and shows the fault.
 */
export function Confirm({ title, action, danger, word, broad, ready: allowed = true, onConfirm, onClose, children }) {
  const [typed, setTyped] = useState('');
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const ready = !busy && allowed && (!word || typed === word);
  const confirm = async (event) => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    setFault(null);
    try {
      await onConfirm();
      onClose();
    } catch (failed) {
      setFault(failed);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} broad=${broad} onClose=${onClose}>
    <form onSubmit=${confirm}>
      <div class="stack">${children}
        ${word && html`<${Field} label=${html`Type <code>${word}</code> to confirm`}>${(id) =>
          html`<input id=${id} class="input mono" autocomplete="off" spellcheck=${false} data-focus value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}<//>`}
        ${fault && html`<p class="bad" role="alert">${fault.message}</p>`}
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" data-focus=${(danger && !word) || undefined} onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary ${danger ? 'danger' : ''}" disabled=${!ready}>${busy ? 'Working…' : action}</button>
      </div>
    </form>
  <//>`;
}
