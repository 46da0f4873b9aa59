/* Steps that many ranks publish together. Each rank puts its part, and the last one publishes the
 * step as one change like any other. Until then the parts lie in the catalog, so that the server or
 * a rank can die at any time without harm: any rank that repeats its part continues. Parts die with
 * their epoch, when a step is published past them, when they do not make a whole (all must be put
 * again), or after an hour. */
#ifndef STORAGE_RUNS_STEP_PART_H
#define STORAGE_RUNS_STEP_PART_H

#include "storage/runs/run.h"
#include "wire/part_message.h"

struct step_part_params {
	struct run_ref run;
	uint64_t part; /* from 0 */
	uint64_t parts;
	const struct part_message *message;
};
/* All params are copied. Fails with invalid, no_run, stale_epoch, head_moved, base_missing,
 * step_differs (this part was put with other content, or with another number of parts), no_key or
 * digest_mismatch. The last part can also fail with parts_mismatch, schema_mismatch,
 * incomplete_anchor and any other error of run_publish_call. */
struct call *step_part_call(struct store *store, const struct step_part_params *params);
/* *out_already: this part or, with the last one, the step had been put before. */
const struct part_answer *step_part_result(const struct call *call, bool *out_already);

#endif
