/* Rows of the tables keys and grants, which stand or fall together: a key's row carries a sum over
 * itself and all of its grants (docs/FORMAT.md, "Keys and grants"), since a key that has lost its
 * grants would act for its whole account. Internal to storage; the thread of the connection. */
#ifndef STORAGE_BUCKETS_KEY_ROW_H
#define STORAGE_BUCKETS_KEY_ROW_H

#include "storage/buckets/account.h"
#include "storage/db/db.h"

/* The key behind row `after`, with its texts in the arena: 1, 0 when there is none, -1. *out_row is
 * its number. A key whose sum is wrong, or whose grants cannot be read, comes with is_damaged
 * set. */
int key_row_next(struct db *db, int64_t after, struct arena *arena, struct key_record *out,
	int64_t *out_row, struct error *err);
int key_row_find(struct db *db, struct span id, int64_t *out_row, struct error *err); /* 1, 0, -1 */
/* one of them: 1, 0, -1 */
int key_row_find_root(struct db *db, int64_t *out_row, struct error *err);
/* exists: the id is taken. It is no longer banned. */
int key_row_add(struct db *db, const struct key_record *key, int64_t account, struct error *err);
int key_row_remove(struct db *db, int64_t row, struct error *err);

/* A key whose row cannot be removed, because the page cannot be written, is revoked by its name. */
int key_row_ban(struct db *db, struct span id, struct error *err);

/* For the migration that brought the sums: those of all rows as they are. */
int key_row_sum_all(struct db *db, struct error *err);

#endif
