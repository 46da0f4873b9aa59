// The pins of a run.
import { html, useState } from '../../vendor/htm-preact.js';
import { api } from '../../api.js';
import { href } from '../../route.js';
import { count } from '../../components/format.js';
import { Ago, useLoad } from '../../components/hooks.js';
import { Confirm } from '../../components/dialog.js';
import { Icon } from '../../components/icon.js';
import { Empty, Loaded } from '../../components/page.js';
import { Table } from '../../components/table.js';
import { toast } from '../../components/toast.js';
import { runPath } from './run_data.js';
import { PinDialog } from './run_dialogs.js';

export function Pins({ bucket, name, run, writes }) {
  const from = useLoad((signal) => api(runPath(bucket, name, 'pins'), { signal }), []);
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  const columns = [
    { id: 'name', label: 'Pin', value: (pin) => pin.name, cell: (pin) => html`<span class="strong" title=${pin.name}>${pin.name}</span>` },
    { id: 'step', label: 'Step', end: true, width: '112px', value: (pin) => pin.step, cell: (pin) => html`<a href=${href('runs', bucket, name, 'steps', String(pin.step))}>${count(pin.step)}</a>` },
    { id: 'created', label: 'Made', end: true, width: '136px', hide: 'phone', value: (pin) => Date.parse(pin.created), cell: (pin) => html`<${Ago} time=${pin.created} />` },
    { id: 'expires', label: 'Runs out', end: true, width: '136px', hide: 'phone', value: (pin) => (pin.expires ? Date.parse(pin.expires) : null), cell: (pin) => (pin.expires ? html`<${Ago} time=${pin.expires} />` : html`<span class="soft">never</span>`) },
    ...(writes ? [{ id: 'actions', label: '', end: true, width: '176px', cell: (pin) => html`<button class="button small" aria-label="Move pin ${pin.name}" onClick=${() => setOpen({ move: pin })}>Move…</button>${' '}
      <button class="button small danger" aria-label="Remove pin ${pin.name}" onClick=${() => setOpen({ remove: pin })}>Remove</button>` }] : []),
  ];
  const add = writes && run.head !== null && html`<button class="button" onClick=${() => setOpen({ add: true })}><${Icon} name="pin" />Pin a step…</button>`;
  return html`<div>
    <div class="section-head"><p class="section-title soft">A pin keeps a step and what leads to it, whatever retention says.</p>${add}</div>
    <${Loaded} from=${from}>${({ pins }) => html`<${Table} label="Pins" columns=${columns} rows=${pins} rowKey=${(pin) => pin.name} sort=${{ id: 'name', descending: false }}
      empty=${html`<${Empty} title="No pins" command="curl -H 'Authorization: Bearer …' -X PUT -d '{&quot;step&quot;:${run.head ?? 0}}' …/v1/runs/${bucket}/${name}/pins/eval">Pin a step that evaluation or a release needs.<//>`} />`}<//>
    ${open && (open.add || open.move) && html`<${PinDialog} bucket=${bucket} name=${name} run=${run} pin=${open.move} onClose=${close} onDone=${from.reload} />`}
    ${open && open.remove && html`<${Remove} bucket=${bucket} name=${name} pin=${open.remove} onClose=${close} onDone=${from.reload} />`}
  </div>`;
}

function Remove({ bucket, name, pin, onClose, onDone }) {
  const confirm = async () => {
    await api(runPath(bucket, name, 'pins', pin.name), { method: 'DELETE' });
    toast(`Pin ${pin.name} is removed.`);
    await onDone();
  };
  return html`<${Confirm} title="Remove pin ${pin.name}" action="Remove the pin" danger onConfirm=${confirm} onClose=${onClose}>
    <p>Step ${count(pin.step)} stays only as long as retention, a worker or another pin keeps it.</p><//>`;
}
