/* When a publisher is asked for an anchor. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_DUE_H
#define STORAGE_RUNS_STEP_DUE_H

#include "storage/run_tables/run_row.h"

/* Whether the next step should bring an anchor: a step on the path to the head failed its proof, or
 * the deltas since the last anchor, published or made, are too many or too large. */
int step_anchor_due(struct db *db, const struct run_row *run, bool *out_due, struct error *err);

#endif
