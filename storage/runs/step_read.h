/* Steps out of the catalog, and copies of those that go into it. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_READ_H
#define STORAGE_RUNS_STEP_READ_H

#include "storage/run_tables/step_row.h"
#include "wire/step_message.h"

/* A deep copy; false when the arena ran out. */
bool step_copy(const struct step_message *step, struct arena *arena, struct step_message *out);
/* The manifest as published, with URLs and times. */
int step_read(struct db *db, const struct step_row *row, bool with_tensors, struct arena *arena,
	struct step_message *out, struct error *err);
/* collected, with the nearest anchor above (UINT64_MAX: none). */
int step_is_collected(
	struct db *db, int64_t run, uint64_t step, uint64_t *out_anchor, struct error *err);
int step_no_step(uint64_t step, struct error *err);

#endif
