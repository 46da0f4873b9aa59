/* The rollback of a run's fleet: all followers serve an earlier kept step, until it ends. The head
 * stays, so the trainer goes on publishing. The row is a pin of the server's own (PIN_ROLLBACK), so
 * the step stays as long, and gets an anchor. docs/decisions/047. */
#ifndef STORAGE_RUNS_ROLLBACK_H
#define STORAGE_RUNS_ROLLBACK_H

#include "storage/runs/run.h"

/* Begins a rollback to the step, or moves the one that there is. Fails with no_run, no_step,
 * collected or step_failed, and then changes nothing. Followers that wait are woken. */
struct call *rollback_begin_call(struct store *store, const struct run_ref *run, uint64_t step);
/* Ends it: followers take the head again. Nothing happens when there is none. Fails with no_run. */
struct call *rollback_end_call(struct store *store, const struct run_ref *run);
/* The run as it is now, after either. */
const struct run_message *rollback_result(const struct call *call);

#endif
