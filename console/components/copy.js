// Copying text to the clipboard.
import { html, useState } from '../vendor/htm-preact.js';
import { Icon } from './icon.js';
import { toast } from './toast.js';

/** A button that copies `text`. `label` names what is copied: "Copy the command". */
export function Copy({ text, label = 'Copy' }) {
  const [done, setDone] = useState(false);
  const copy = async (event) => {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1600);
    } catch (refused) {
      toast('The browser did not allow copying. Select the text and copy it by hand.', 'bad');
    }
  };
  return html`<button type="button" class="button plain small icon-only" title=${label} aria-label=${label} onClick=${copy}>
    <${Icon} name=${done ? 'check' : 'copy'} /></button>`;
}

/** A line of code with a button that copies it. */
export function CopyLine({ text, label = 'Copy the command' }) {
  return html`<div class="copy-line"><code tabindex="0">${text}</code><${Copy} text=${text} label=${label} /></div>`;
}
