/* The tables `keys`, `grants` and `revoked_keys`. The row of a key has a sum over itself and all
 * its grants (docs/FORMAT.md, "Keys and grants"), because a key that lost its grants would act for
 * its whole account. Internal to storage; used on the thread of the connection. */
#ifndef STORAGE_BUCKETS_KEY_ROW_H
#define STORAGE_BUCKETS_KEY_ROW_H

#include "storage/buckets/account.h"
#include "storage/db/db.h"

/* Reads the first key after row `after`. Texts lie in the arena, and *out_row is the number of its
 * row. Returns 1, 0 when there is none, -1 on error. is_damaged is set when the sum is wrong or the
 * grants cannot be read. */
int key_row_next(struct db *db, int64_t after, struct arena *arena, struct key_record *out,
	int64_t *out_row, struct error *err);
/* Finds the row of the key, and one of the rows of root keys. Both return 1, 0 when there is none,
 * -1 on error. */
int key_row_find(struct db *db, struct span id, int64_t *out_row, struct error *err);
int key_row_find_root(struct db *db, int64_t *out_row, struct error *err);
/* Adds the key, and lifts a ban of its id. exists when the id is taken. */
int key_row_add(struct db *db, const struct key_record *key, int64_t account, struct error *err);
int key_row_remove(struct db *db, int64_t row, struct error *err);

/* Bans the id: for a key whose row cannot be removed, because its page cannot be written. */
int key_row_ban(struct db *db, struct span id, struct error *err);

/* For the migration that added the sums: writes those of all rows. */
int key_row_sum_all(struct db *db, struct error *err);

#endif
