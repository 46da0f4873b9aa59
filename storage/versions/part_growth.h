/* A part set of one part that several changes write, a few segments each, because a change touches
 * about 1,000 rows at most: for files that lie in very many places. The set cannot be read before
 * part_growth_end. The caller makes sure that a row leads to the set from the first change on.
 * Inside changes. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_GROWTH_H
#define STORAGE_VERSIONS_PART_GROWTH_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

struct part_growth {
	int64_t set;
	uint64_t size; /* bytes of the segments so far */
	uint64_t sum;  /* of their rows */
};
/* Adds a set with one holder, which will have so many segments. */
int part_growth_begin(struct db *db, size_t segments, struct part_growth *out, struct error *err);
/* Every pack that the segments name must have a row (invariant 1). */
int part_growth_add(struct db *db, struct part_growth *growth, const struct segment *segments,
	size_t count, struct error *err);
/* *out_contents is the sum for rows that lead to the set. */
int part_growth_end(
	struct db *db, const struct part_growth *growth, uint64_t *out_contents, struct error *err);

#endif
