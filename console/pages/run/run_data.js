// What the tabs of a run share: the run itself, live.
import { useCallback, useRef, useState } from '../../vendor/htm-preact.js';
import { api, path } from '../../api.js';
import { useEvents } from '../../components/hooks.js';

/** The path of a run on the steps face. */
export const runPath = (bucket, name, ...rest) => path('v1', 'runs', bucket, name, ...rest);

/** {run, fault, reload, set}. The run has `head_created` and `verified` beside what RunStatus says. */
export function useRun(bucket, name) {
  const [state, setState] = useState({});
  const known = useRef(null);
  const set = useCallback((run) => {
    known.current = { ...known.current, ...run, rollback: run.rollback };
    setState({ run: known.current });
  }, []);
  const reload = useCallback(async () => {
    try {
      const run = await api(runPath(bucket, name));
      const head = run.head === null ? {} : await headOf(bucket, name, run.head);
      set({ ...run, ...head });
    } catch (fault) {
      setState((before) => ({ run: before.run, fault }));
    }
  }, [bucket, name]);
  useEvents({ runs: true }, (event, data) => {
    if (event === 'open') return reload();
    if (data.bucket !== bucket || data.run !== name) return undefined;
    if (event === 'run') return set(data);
    if (event === 'run_removed') return setState({ fault: { code: 'no_run', message: 'This run has been ended.' } });
    return undefined;
  });
  return { ...state, reload, set };
}

async function headOf(bucket, name, step) {
  try {
    const { created, verified, label } = await api(runPath(bucket, name, 'steps', step));
    return { head_created: created, verified, label };
  } catch (fault) {
    return {};  // the head moved on, or its step is gone: the next event says more
  }
}

/** The bytes of a step's whole checkpoint. */
export const fullBytes = (step) => step.files.reduce((sum, file) => sum + file.size, 0);

/** The form of a kind that a step has, or undefined. */
export const formOf = (step, kind) => (step.forms || []).find((form) => form.kind === kind);

/** The share of the elements that a step changed, or null where nobody counted. */
export const changedShare = (step) => (step.changed && step.changed.of ? step.changed.elements / step.changed.of : null);
