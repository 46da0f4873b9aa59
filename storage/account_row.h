/* The table `accounts`. Internal to storage. */
#ifndef STORAGE_ACCOUNT_ROW_H
#define STORAGE_ACCOUNT_ROW_H

#include "storage/db.h"

/* The account of a namespace, added when it is new. */
int account_row_ensure(struct db *db, struct span namespace, int64_t now_ms, int64_t *out_id, struct error *err);

#endif
