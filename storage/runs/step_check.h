/* What publish must know of a step's tensors before its change queues. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_CHECK_H
#define STORAGE_RUNS_STEP_CHECK_H

#include "storage/core/store.h"
#include "storage/run_tables/run_ref.h"
#include "storage/runs/step_part_set.h"
#include "weights/model/schema.h"
#include "wire/step_message.h"

struct step_check {
	int64_t run; /* the run it was held against; 0: none was there */
	/* the run's, or the anchor's when the run has none; NULL: neither */
	struct schema *schema;
	struct digest128 schema_digest; /* of `schema` */
	/* `error` says what is wrong with the anchor or the digests; judged after all else */
	bool failed;
	struct error error;
};
/* Reads the headers of the anchor's shards and judges schema and tensor digests. With `parts`, the
 * digests are taken from there, and the step's own is computed. Blocking: on a helper. Faults go
 * into `out`. */
void step_check_run(struct store *store, const struct run_ref *run, struct step_message *step,
	struct step_part_set *parts, struct step_check *out);
void step_check_release(struct step_check *check);

#endif
