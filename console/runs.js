// The runs that the caller may see, live, and what pages say about them.
import { useCallback, useRef, useState } from './vendor/htm-preact.js';
import { all } from './api.js';
import { useEvents } from './components/hooks.js';

/** The name of a run. */
export const nameOf = (run) => `${run.bucket}/${run.run}`;

/** The step that workers are to hold: the newest, or that of a rollback. */
export const servedStep = (run) => (run.rollback ? run.rollback.step : run.head);

/** All runs: {runs, fault, reload}. `runs` is undefined until the first page is there. */
export function useRuns() {
  const [state, setState] = useState({});
  const rows = useRef(new Map());
  const show = () => setState({ runs: [...rows.current.values()].sort(byName) });
  const load = useCallback(async () => {
    try {
      const runs = await all('/v1/runs', 'runs', { query: { limit: 1000 } });
      rows.current = new Map(runs.map((run) => [nameOf(run), run]));
      show();
    } catch (fault) {
      setState((before) => ({ ...before, fault }));
    }
  }, []);
  useEvents({ runs: true }, (name, data) => {
    if (name === 'open') return load();
    if (name === 'run') rows.current.set(nameOf(data), data);
    else if (name === 'run_removed') rows.current.delete(nameOf(data));
    else return undefined;
    return show();
  });
  return { ...state, reload: load };
}

/** How many workers of a run, or of several together, stand where: {known, on, behind, lost, failed, alive}. */
export function workersOf(runs) {
  const sum = { known: false, on: 0, behind: 0, lost: 0, failed: 0, alive: 0 };
  for (const { fleet } of runs) {
    if (!fleet) continue;
    const alive = Object.values(fleet.states).reduce((a, b) => a + b, 0);
    const behind = fleet.behind + (fleet.ahead || 0) + (fleet.without_step || 0);
    sum.known = true;
    sum.alive += alive;
    sum.behind += behind;
    sum.on += Math.max(0, alive - behind);
    sum.lost += fleet.expired;
    sum.failed += fleet.states.error || 0;
  }
  return sum;
}

function byName(a, b) {
  const one = nameOf(a);
  const other = nameOf(b);
  return one < other ? -1 : Number(one > other);
}
