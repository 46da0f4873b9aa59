/* The delta between two steps, in any format, into a local folder: what folds and views are made
 * of. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_DELTA_H
#define STORAGE_STEP_JOBS_STEP_DELTA_H

#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_source.h"
#include "weights/delta/delta.h"

/* Both ends are proven by their digests on the way. `out` must not exist; what it needs besides
 * goes into `scratch`. Fails as delta_encode does. Blocking: for background work. */
int step_delta_encode(struct step_work *work, struct step_source *base, struct step_source *next,
	const struct scratch *scratch, enum delta_format format, const char *out,
	struct error *err);

#endif
