/* A part set of one part that is written a few segments at a time, since a change touches about
 * 1,000 rows: for files that lie in very many places. Until part_growth_end nothing can be read of
 * it; whoever began it sees to it that somebody holds the set from the first change on. For
 * changes. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_GROWTH_H
#define STORAGE_VERSIONS_PART_GROWTH_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

struct part_growth {
	int64_t set;
	uint64_t size; /* bytes of the segments so far */
	uint64_t sum;  /* of their rows */
};
/* A new set, held once, which will have so many segments. */
int part_growth_begin(struct db *db, size_t segments, struct part_growth *out, struct error *err);
/* Every pack that they name must be recorded (invariant 1). */
int part_growth_add(struct db *db, struct part_growth *growth, const struct segment *segments,
	size_t count, struct error *err);
/* *out_contents: its sum for those who lead to it. */
int part_growth_end(
	struct db *db, const struct part_growth *growth, uint64_t *out_contents, struct error *err);

#endif
