/* How far a replica is from the step that it is to serve. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_LAG_H
#define STORAGE_RUN_TABLES_STEP_LAG_H

#include "storage/db/db.h"
#include "wire/rollback_message.h"

struct step_lag_scale {
	int64_t run;         /* the number of its row */
	uint64_t target;     /* the step to serve */
	int64_t rollback_ms; /* when the rollback to it began; for replicas above it */
	int64_t now_ms;
};
struct step_lag {
	uint64_t steps;
	uint64_t seconds; /* since the replica could have gone on */
};

int step_lag_find(struct db *db, const struct step_lag_scale *scale, uint64_t step,
	struct step_lag *out, struct error *err);

#endif
