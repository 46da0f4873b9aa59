/* The parts of part sets that part.c, part_growth.c and upload_set.c share. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_INTERNAL_H
#define STORAGE_VERSIONS_PART_INTERNAL_H

#include "storage/versions/part.h"

struct part_row {
	int64_t number;
	uint64_t size;
	uint64_t sum; /* of its segments; in the set of a single PUT the contents */
};
/* Adds number, size, md5, digest, file_hash and sum of the row to the chain that makes
 * `contents`. */
uint64_t part_row_add_to(uint64_t contents, const struct part_row *row, struct span md5,
	struct span digest, struct span file_hash);
/* Writes segment rows behind the first row->size bytes of the part; row->size and row->sum grow. */
int part_grow(struct db *db, int64_t set, const struct segment *segments, size_t count,
	struct part_row *row, struct error *err);
/* Writes all segment rows of the part; fills row->size and row->sum. */
int part_add_segments(struct db *db, int64_t set, const struct stored_part *part,
	struct part_row *row, struct error *err);
/* Appends the segments of a part that the range needs, verified. The part begins at byte `base` of
 * the whole. */
int part_load(struct db *db, int64_t set, const struct part_row *row, uint64_t base,
	struct part_range *range, struct error *err);
/* Like part_set_load, for a set with a map. */
int part_set_load_by_map(
	struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err);
/* Sets the error corrupt. Returns -1. */
int part_set_damaged(struct db *db, int64_t set, const char *what, struct error *err);

#endif
