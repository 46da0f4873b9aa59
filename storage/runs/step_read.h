/* Steps read from the catalog, and copies of steps that are to be written. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_READ_H
#define STORAGE_RUNS_STEP_READ_H

#include "storage/run_tables/step_row.h"
#include "wire/step_message.h"

/* A deep copy; false when the arena is too small. */
bool step_copy(const struct step_message *step, struct arena *arena, struct step_message *out);
/* The manifest as published, with URLs and times. A removed step has only its number, digest and
 * time, and is `collected`. */
int step_read(struct db *db, const struct step_row *row, bool with_tensors, struct arena *arena,
	struct step_message *out, struct error *err);
/* Always fails: with collected, and then *out_anchor is the nearest anchor above (UINT64_MAX:
 * none), or with an error of the catalog. */
int step_error_collected(
	struct db *db, int64_t run, uint64_t step, uint64_t *out_anchor, struct error *err);
/* The row of a kept step. Fails with no_step, or with collected as step_error_collected. */
int step_need_kept(struct db *db, int64_t run, uint64_t step, struct step_row *out,
	uint64_t *out_anchor, struct error *err);
/* Always fails with no_step. */
int step_error_missing(uint64_t step, struct error *err);

#endif
