/* The table `step_changes`: how many elements of a step's tensors differ from the step before, as
 * its proof has counted them. A step without a row was not counted. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_CHANGES_ROW_H
#define STORAGE_RUN_TABLES_STEP_CHANGES_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"

struct step_changes {
	uint64_t elements; /* of all tensors; those of dtypes below a byte are counted in bytes */
	uint64_t changed;
};

/* `id` is that of the step's row. `counts` has the changed elements of each of `tensors` tensors,
 * in schema order; they add up to changes->changed. */
int step_changes_row_put(struct db *db, int64_t id, const struct step_changes *changes,
	const uint64_t *counts, size_t tensors, struct error *err);
/* 1 found, 0 absent, -1. */
int step_changes_row_find(struct db *db, int64_t id, struct step_changes *out, struct error *err);
/* The counts of each of `tensors` tensors, in an array of the arena. 1, 0, -1 (corrupt when they
 * are not so many numbers, or do not add up). */
int step_changes_row_counts(struct db *db, int64_t id, size_t tensors, struct arena *arena,
	uint64_t **out, struct error *err);
int step_changes_row_remove(struct db *db, int64_t id, struct error *err);

#endif
