// All runs.
import { html, useMemo, useState } from '../vendor/htm-preact.js';
import { nameOf, useRuns } from '../runs.js';
import { some } from '../components/format.js';
import { Search } from '../components/field.js';
import { Empty, Fault, Head, Waiting } from '../components/page.js';
import { RunTable } from '../components/run_table.js';

export default function Page({ route }) {
  const { runs, fault, reload } = useRuns();
  const bucket = route.path[1];
  const [text, setText] = useState(bucket ? `${bucket}/` : '');
  const shown = useMemo(() => runs && runs.filter((run) => nameOf(run).toLowerCase().includes(text.toLowerCase())), [runs, text]);
  return html`<div>
    <${Head} title="Runs" lead=${runs ? `${some('run', runs.length)} that your key may see.` : ''}>
      <${Search} label="Filter runs" placeholder="Filter by name" value=${text} onChange=${setText} />
    <//>
    ${fault && html`<${Fault} fault=${fault} retry=${reload} />`}
    ${!runs ? !fault && html`<${Waiting} />` : runs.length && !shown.length
      ? html`<div class="table-frame"><${Empty} title="No run has this in its name" action=${html`<button class="button" onClick=${() => setText('')}>Show all runs</button>`} /></div>`
      : html`<${RunTable} label="Runs" runs=${shown} height=${720} />`}
  </div>`;
}
