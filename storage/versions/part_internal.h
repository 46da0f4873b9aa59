/* What the single-part side (part.c) and the multi-part side (upload_set.c) of part sets share.
 * Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_INTERNAL_H
#define STORAGE_VERSIONS_PART_INTERNAL_H

#include "storage/versions/part.h"

struct part_row {
	int64_t number;
	uint64_t size;
	uint64_t sum; /* of its segments; in a single PUT's set the contents */
};
/* The chain of number, size, md5, digest, file_hash and sum behind `contents`. */
uint64_t part_row_add_to(uint64_t contents, const struct part_row *row, struct span md5,
	struct span digest, struct span file_hash);
/* Writes rows of segments that lie behind the part's row->size bytes; row->size and row->sum
 * grow. */
int part_grow(struct db *db, int64_t set, const struct segment *segments, size_t count,
	struct part_row *row, struct error *err);
/* Writes the part's segment rows; fills row->size and row->sum. */
int part_add_segments(struct db *db, int64_t set, const struct stored_part *part,
	struct part_row *row, struct error *err);
/* The part lies at `base` of the whole: appends what the range needs of it, verified. */
int part_load(struct db *db, int64_t set, const struct part_row *row, uint64_t base,
	struct part_range *range, struct error *err);
/* As part_set_load, for a set with a map. */
int part_set_load_map(
	struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err);
/* corrupt; -1 */
int part_set_damaged(struct db *db, int64_t set, const char *what, struct error *err);

#endif
