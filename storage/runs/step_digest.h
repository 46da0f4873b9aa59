/* Digests for the objects of a step that have none (multipart uploads). Internal to storage. */
#ifndef STORAGE_RUNS_STEP_DIGEST_H
#define STORAGE_RUNS_STEP_DIGEST_H

#include "storage/core/store.h"
#include "wire/step_message.h"

/* Reads the objects that are as declared but have no digest, and stores the digests of their bytes.
 * Anything else that is wrong is left for the change to report. Blocks: on a helper. */
int step_give_digests(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err);

#endif
