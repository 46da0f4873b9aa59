/* The column `runs.hot_load`: the run in which the hot-loads of a deployment become steps. A
 * deployment belongs to the account that owns the run's bucket: the same name in two accounts means
 * two deployments. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_DEPLOYMENT_ROW_H
#define STORAGE_RUN_TABLES_DEPLOYMENT_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"
#include "storage/run_tables/run_ref.h"
#include "wire/run_settings_message.h"

enum { DEPLOYMENT_COLUMN_BYTES = RUN_DEPLOYMENT_MAX_BYTES + 24 };

/* Writes the value of the column for the run `run` and returns its length in bytes. */
size_t deployment_row_column(
	const char *deployment, int64_t run, uint8_t out[DEPLOYMENT_COLUMN_BYTES]);
/* Where a deployment is looked for: in all buckets of an account, or in one bucket. Both are names;
 * the other one is empty. */
struct deployment_place {
	struct span account;
	struct span bucket;
};
/* The run of the deployment, its texts in the arena. 1 found, 0 absent, -1. */
int deployment_row_find(struct db *db, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err);
/* exists when another run of the run's account has the deployment. */
int deployment_row_check(struct db *db, int64_t run, const char *deployment, struct error *err);
/* For a bucket that moves to another account: exists when a run of that account has a deployment
 * that a run of the bucket has, too. */
int deployment_row_check_move(struct db *db, int64_t bucket, int64_t account, struct error *err);

#endif
