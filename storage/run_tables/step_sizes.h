/* The sizes of whole checkpoints, in memory, by the rows of their steps: what a step is never
 * changes, and its manifest is large. Bounded: a size that was pushed out is read again. Internally
 * locked; any thread. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_SIZES_H
#define STORAGE_RUN_TABLES_STEP_SIZES_H

#include "storage/run_tables/step_row.h"

struct step_sizes;

struct step_sizes *step_sizes_new(void);
void step_sizes_free(struct step_sizes *sizes); /* NULL is fine */
/* The bytes of all files of the step's checkpoint. The row is that of a kept step. */
int step_sizes_find(struct step_sizes *sizes, struct db *db, const struct step_row *row,
	uint64_t *out_bytes, struct error *err);

#endif
