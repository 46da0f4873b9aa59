/* Rows of `segments` that a change removes: their packs are told, so that gc looks at them, and so
 * that packs.named stays what the rows say. A pack costs one write, mostly, however many of its
 * rows go. One change's. Internal to storage. */
#ifndef STORAGE_CORE_SEGMENT_LOSSES_H
#define STORAGE_CORE_SEGMENT_LOSSES_H

#include "storage/db/db.h"

enum { SEGMENT_LOSSES_PACKS = 16 };

struct segment_losses { /* begin with zeros but for db */
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
/* Behind the last one. */
int segment_losses_end(struct segment_losses *losses, struct error *err);

#endif
