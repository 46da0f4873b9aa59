/* The column `runs.hot_load`: which run the hot-loads of a deployment become steps of. A deployment
 * is an account's, that of the run's bucket: the same name in two accounts is two deployments.
 * Internal to storage. */
#ifndef STORAGE_RUN_TABLES_DEPLOYMENT_ROW_H
#define STORAGE_RUN_TABLES_DEPLOYMENT_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"
#include "storage/run_tables/run_ref.h"
#include "wire/run_settings_message.h"

enum { DEPLOYMENT_COLUMN_BYTES = RUN_DEPLOYMENT_MAX_BYTES + 24 };

/* What stands in the column of run `run`; its length. */
size_t deployment_row_column(
	const char *deployment, int64_t run, uint8_t out[DEPLOYMENT_COLUMN_BYTES]);
/* The run of the deployment among the buckets of an account, or in one bucket, by their names; the
 * other is empty. 1, 0, -1. */
struct deployment_place {
	struct span account;
	struct span bucket;
};
int deployment_row_find(struct db *db, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err);
/* exists when another run of the run's account has it. */
int deployment_row_check(struct db *db, int64_t run, const char *deployment, struct error *err);
/* A bucket goes to another account: exists when a run of that account has a deployment that one of
 * the bucket's has. */
int deployment_row_check_move(struct db *db, int64_t bucket, int64_t account, struct error *err);

#endif
