/* What a reader was spared that fetched changes and not a whole checkpoint. */
#ifndef STORAGE_OVERVIEW_STEP_SAVING_H
#define STORAGE_OVERVIEW_STEP_SAVING_H

#include "storage/core/store.h"
#include "storage/run_tables/run_ref.h"

/* Of a delta or a fold of a run, `bytes` were sent. `from` and `step` are the steps that it leads
 * from and to. *out_full: the same part of the checkpoint of `step`, so that all parts of a delta
 * come to the whole checkpoint. no_run, no_step. */
struct step_part_sent {
	struct run_ref run;
	uint64_t from;
	uint64_t step;
	uint64_t bytes;
};
int step_saving_find(struct store *store, const struct step_part_sent *sent, uint64_t *out_full,
	struct error *err);
/* Adds both to the metrics FORM_BYTES_SENT and FORM_FULL_BYTES_SENT a moment later: a helper finds
 * them, because a manifest may have to be read. Does not block. A step that is gone by then does
 * not count, nor what is sent while 256 countings wait: clients may send faster than helpers
 * count. */
void step_saving_count(struct store *store, const struct step_part_sent *sent);

#endif
