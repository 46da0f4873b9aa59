/* The table `key_uses`: when a key was last used, as far as it was written down. The keyring has it
 * in memory (api/auth/keyring.h). Any thread. */
#ifndef STORAGE_BUCKETS_KEY_USE_H
#define STORAGE_BUCKETS_KEY_USE_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct key_use {
	struct span key_id;
	int64_t used_ms; /* since 1970 */
};

/* Lists all uses, with texts in the arena. */
int key_use_list(struct store *store, struct arena *arena, struct key_use **out, size_t *out_count,
	struct error *err);
/* Writes uses down, some hundred in one change. Blocks. */
int key_use_write(struct store *store, const struct key_use *uses, size_t count, struct error *err);

/* Inside a change: for a key that is revoked. */
int key_use_remove(struct db *db, struct span key_id, struct error *err);

#endif
