/* The table `accounts`. Internal to storage. */
#ifndef STORAGE_BUCKETS_ACCOUNT_ROW_H
#define STORAGE_BUCKETS_ACCOUNT_ROW_H

#include "storage/db/db.h"

/* Returns 1 when found, 0 when absent, -1 on error. */
int account_row_find(struct db *db, struct span namespace, int64_t *out_id, struct error *err);
/* Finds the account of a namespace, or adds it. */
int account_row_ensure(
	struct db *db, struct span namespace, int64_t now_ms, int64_t *out_id, struct error *err);

#endif
