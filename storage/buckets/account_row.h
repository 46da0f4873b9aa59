/* The table `accounts`. Internal to storage. */
#ifndef STORAGE_BUCKETS_ACCOUNT_ROW_H
#define STORAGE_BUCKETS_ACCOUNT_ROW_H

#include "storage/db/db.h"

/* 1 found, 0 absent, -1. */
int account_row_find(struct db *db, struct span namespace, int64_t *out_id, struct error *err);
/* The account of a namespace, added when it is new. */
int account_row_ensure(
	struct db *db, struct span namespace, int64_t now_ms, int64_t *out_id, struct error *err);

#endif
