/* A new run that begins where another one stands: its step 0 is an anchor with the bytes of that
 * step's, shared, not copied. Both runs go their own ways from there: either may be ended without
 * the other. */
#ifndef STORAGE_STEP_JOBS_RUN_FORK_H
#define STORAGE_STEP_JOBS_RUN_FORK_H

#include "storage/runs/run.h"

struct run_fork_params {
	struct run_open_params open; /* of the new run; expected_epoch may only be 0 */
	struct span from;            /* the old run, in the same bucket */
	uint64_t step;
};
/* All params are copied. The result is run_open_result's. exists: there is a run of that name;
 * no_run, no_step, collected, step_failed: about the old one; not_ready: the step has no anchor
 * yet, one is being made now. */
struct call *run_fork_call(struct store *store, const struct run_fork_params *params);

#endif
