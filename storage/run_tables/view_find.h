/* Views that are not made yet, found by the keys that they will have. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_VIEW_FIND_H
#define STORAGE_RUN_TABLES_VIEW_FIND_H

#include "storage/run_tables/view_key.h"

/* 1: the key belongs to a wanted view; whether the object exists will be known when the view is
 * made. 0: it does not. -1. */
int view_find(
	struct db *db, int64_t bucket, struct span key, struct view_wanted *out, struct error *err);

#endif
