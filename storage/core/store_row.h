/* The one row of the table `store`: the id of the store, and its life, the number of its present
 * start. The header of each pack has both, too. Internal to storage. */
#ifndef STORAGE_CORE_STORE_ROW_H
#define STORAGE_CORE_STORE_ROW_H

#include "storage/db/db.h"

enum { STORE_ID_BYTES = 16 };

struct store_identity {
	uint8_t id[STORE_ID_BYTES]; /* random */
	uint64_t life;              /* 0: not started since it got its id */
};
/* For a store without a row: a new one, or one from before stores had ids. */
int store_row_make(struct db *db, struct error *err);
int store_row_read(struct db *db, struct store_identity *out, struct error *err);
int store_row_set_life(struct db *db, uint64_t life, struct error *err);

#endif
