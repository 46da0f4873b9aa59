/* The facts about a step's tensors that a publish needs before its change queues. Internal to
 * storage. */
#ifndef STORAGE_RUNS_STEP_CHECK_H
#define STORAGE_RUNS_STEP_CHECK_H

#include "storage/core/store.h"
#include "storage/run_tables/run_ref.h"
#include "storage/runs/step_part_set.h"
#include "weights/model/schema.h"
#include "wire/step_message.h"

struct step_check {
	int64_t run; /* id of the run that the step was compared with; 0: there was none */
	/* the run's schema or, when the run has none, the anchor's; NULL: there is neither */
	struct schema *schema;
	struct digest128 schema_digest; /* of `schema` */
	/* `error` says what is wrong with the objects, the anchor or the digests; the change
	 * reports it after everything else */
	bool failed;
	struct error error;
};
/* Adds digests that are missing, proves that the objects can be read, reads the headers of the
 * anchor's shards and judges schema and tensor digests. With `parts`, the tensor digests come from
 * there and the step's digest is computed. Blocks: on a helper. Failures go into `out`, which is
 * zeroed before. */
void step_check_run(struct store *store, const struct run_ref *run, struct step_message *step,
	struct step_part_set *parts, struct step_check *out);
void step_check_release(struct step_check *check);

#endif
