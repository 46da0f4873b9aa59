/* What a step changed, tensor by tensor, as its proof has counted it. Any thread. */
#ifndef STORAGE_SURVEY_STEP_SURVEY_H
#define STORAGE_SURVEY_STEP_SURVEY_H

#include "storage/core/call.h"
#include "storage/run_tables/run_ref.h"

struct surveyed_tensor {
	struct span name;
	const char *dtype; /* static */
	unsigned rank;
	const uint64_t *shape;
	uint64_t elements; /* of a dtype below a byte: bytes */
	uint64_t changed;
};
struct step_survey {
	uint64_t step;
	uint64_t elements; /* of all tensors */
	uint64_t changed;
	const struct surveyed_tensor *tensors; /* in the order of the run's schema */
	size_t count;
};

/* A call (storage/core/call.h). no_run, no_step, collected; not_found when the step was not
 * counted: its proof is not through, failed or was not asked for, or it has no delta to count
 * by. */
struct call *step_survey_call(struct store *store, const struct run_ref *run, uint64_t step);
/* After its success; lives as long as the call. */
const struct step_survey *step_survey_result(const struct call *call);
/* After collected: the nearest anchor above the step; UINT64_MAX: none, or another error. */
uint64_t step_survey_anchor(const struct call *call);

#endif
