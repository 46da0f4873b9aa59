/* Objects of a step that have no digest (multipart uploads) get one. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_DIGEST_H
#define STORAGE_RUNS_STEP_DIGEST_H

#include "storage/core/store.h"
#include "wire/step_message.h"

/* Reads those that are there as declared and stores the digests of their bytes. What else is wrong
 * is for the change to say. Blocking: on a helper. */
int step_give_digests(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err);

#endif
