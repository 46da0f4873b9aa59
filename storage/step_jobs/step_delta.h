/* Makes the delta between two steps, in any format, in a local folder or file: folds and views are
 * made of it. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_DELTA_H
#define STORAGE_STEP_JOBS_STEP_DELTA_H

#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_source.h"
#include "weights/delta/delta.h"

struct step_delta_plan {
	struct step_source *base;
	struct step_source *next;
	const struct scratch *scratch; /* for files that have to be fetched */
	enum delta_format format;
	const char *out; /* must not exist */
};
/* Proves both ends by their digests on the way. Fails as delta_encode does. Blocking: for
 * background work. */
int step_delta_encode(
	struct step_work *work, const struct step_delta_plan *plan, struct error *err);

#endif
