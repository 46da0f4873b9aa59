/* The bytes of a version: inline bytes, or a part set with its parts and their segments. The tables
 * part_sets, parts, segments and inline_bytes. Copies share a set; `part_sets.holders` counts the
 * rows that lead to it. The set of a multipart upload has parts. The set of a single PUT has only
 * segments: its number is minus the version's, it has no row in `parts`, and none in `part_sets`
 * until it is shared. (In catalogs of version 0.1 a single PUT has a set of the first form with one
 * part.) Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_H
#define STORAGE_VERSIONS_PART_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

enum {
	PART_SWEEP_ROWS = 1000, /* about so many are removed by one call of part_set_sweep */
	PART_DROP_ROWS = 64,    /* a set of more rows is left to the sweeper */
	PART_TINY_ROWS = 4,     /* a set of so few goes at once: marking it would cost as much */
	/* A change that has touched more rows leaves all but tiny sets to the sweeper. */
	PART_CHANGE_ROWS = 1000
};

/* The number of the set of a single PUT. */
int64_t part_single_set(int64_t version);
/* The sum of such a set, which the version row has as its contents. */
uint64_t part_single_contents(const struct segment *segments, size_t count);
/* Adds the set of a single PUT, with one holder. Every pack that it names must have a row
 * (invariant 1). */
int part_single_add(struct db *db, int64_t set, const struct stored_part *part, struct error *err);
/* Adds a set with a number of its own, one part of at least one segment and one holder: for bytes
 * that several versions will share (xet_file.h). *out_contents is the sum for rows that lead to
 * it. */
int part_set_add_single(struct db *db, const struct segment *segments, size_t count,
	int64_t *out_set, uint64_t *out_contents, struct error *err);
/* Adds a holder: a copy leads to the set. */
int part_set_share(struct db *db, int64_t set, struct error *err);
/* Takes a holder off. The last one takes the set with it: at once when the set is small and the
 * change has not touched many rows, else the set is marked for part_set_sweep. */
int part_set_drop(struct db *db, int64_t set, struct error *err);
/* Removes about PART_SWEEP_ROWS rows of dead sets. *out_more: there may be others. */
int part_set_sweep(struct db *db, bool *out_more, struct error *err);
int part_set_has_dead(struct db *db, bool *out_has, struct error *err);

/* Loads the segments that hold bytes [offset, offset + length) of the set of `size` bytes and
 * verifies them against `contents`; free() them. `skip` is where the range begins in the first
 * segment. corrupt when a row is damaged or missing; not_ready when there are more than
 * `max_segments`. */
struct part_range {
	uint64_t offset;
	uint64_t length;
	size_t max_segments; /* 0: any number */
	struct segment *segments;
	size_t segment_count;
	size_t capacity;
	uint64_t skip;
};
int part_set_load(struct db *db, int64_t set, uint64_t size, uint64_t contents,
	struct part_range *range, struct error *err);

uint64_t part_inline_contents(struct span bytes);
int part_inline_add(struct db *db, int64_t version, struct span bytes, struct error *err);
int part_inline_drop(struct db *db, int64_t version, struct error *err);
/* *out lives until `*out_statement` is reset. corrupt when absent or not what `contents` says. */
int part_inline_load(struct db *db, int64_t version, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err);

#endif
