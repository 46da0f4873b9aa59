/* A fork is a new run that begins where another one stands. Its step 0 is an anchor that shares the
 * bytes of that step, without a copy. The runs are independent from then on: either may be ended
 * without the other. */
#ifndef STORAGE_STEP_JOBS_RUN_FORK_H
#define STORAGE_STEP_JOBS_RUN_FORK_H

#include "storage/runs/run.h"

struct run_fork_params {
	struct run_open_params open; /* of the new run; expected_epoch may only be 0 */
	struct span from;            /* the old run, in the same bucket */
	uint64_t step;
};
/* Copies all params. run_open_result gives the result. exists: there is a run of the new name;
 * no_run, no_step, collected, step_failed: about the old run; not_ready: the step has no anchor
 * yet, and the server makes one now. */
struct call *run_fork_call(struct store *store, const struct run_fork_params *params);

#endif
