/* Adds up the rows of `segments` that one change removes. Then it touches their packs, so that gc
 * looks at them, and subtracts the rows from packs.named (pack_row.h). A pack mostly costs one
 * write, regardless of the number of its rows. Used inside one change. Internal to storage. */
#ifndef STORAGE_CORE_SEGMENT_LOSSES_H
#define STORAGE_CORE_SEGMENT_LOSSES_H

#include "storage/db/db.h"

enum { SEGMENT_LOSSES_PACKS = 16 };

struct segment_losses { /* begin with db set and the rest zero */
	struct db *db;
	struct segment_loss {
		int64_t pack; /* its number */
		int64_t chunks;
		int64_t names; /* pack_row_names_of its rows */
	} packs[SEGMENT_LOSSES_PACKS];
	size_t count;
};

int segment_losses_add(struct segment_losses *losses, int64_t pack, int64_t first, int64_t count,
	struct error *err);
/* Call it after the last segment_losses_add. */
int segment_losses_end(struct segment_losses *losses, struct error *err);

#endif
