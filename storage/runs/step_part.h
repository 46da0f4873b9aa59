/* Steps that many ranks publish together: each puts its part, and the last one publishes the step,
 * as one change like any other. Parts lie in the catalog until then, so that neither the server nor
 * a rank may die in between to any harm: whichever rank repeats its part goes on. They die with
 * their epoch, with a step published past them, when they do not make a whole (all are to be put
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
/* All params are copied. Errors: invalid, no_run, stale_epoch, head_moved, base_missing,
 * step_differs (this part was put with other content, or with another number of parts), no_key,
 * digest_mismatch; with the last part also parts_mismatch, schema_mismatch, incomplete_anchor and
 * whatever else publishing the whole gives. */
struct call *step_part_call(struct store *store, const struct step_part_params *params);
/* *out_already: this part, or with the last one the step, was there. */
const struct part_answer *step_part_result(const struct call *call, bool *out_already);

#endif
