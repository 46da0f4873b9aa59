/* The one row of the table `store`: which store this is, and its life, the number of its present
 * start. Both stand in the header of each pack too. Internal to storage. */
#ifndef STORAGE_CORE_STORE_ROW_H
#define STORAGE_CORE_STORE_ROW_H

#include "storage/db/db.h"

enum { STORE_ID_BYTES = 16 };

struct store_identity {
	uint8_t id[STORE_ID_BYTES]; /* random */
	uint64_t life;              /* 0: never started since it got its id */
};
int store_row_make(struct db *db, struct error *err); /* of a store that is new, or has none yet */
int store_row_read(struct db *db, struct store_identity *out, struct error *err);
int store_row_set_life(struct db *db, uint64_t life, struct error *err);

#endif
