/* What a version's bytes are made of: a part set, its parts, their segments; or inline bytes. The
 * tables part_sets, parts, segments and inline_bytes. Copies share a set. The set of a multipart
 * upload has its parts. The set of a single PUT is only its segments: it takes its number from the
 * version, below 0, and has no row in part_sets while it is not shared and none in parts. (Single
 * PUTs of catalogs of version 0.1 have a set of the first form with one part.) Internal to
 * storage. */
#ifndef STORAGE_VERSIONS_PART_H
#define STORAGE_VERSIONS_PART_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

enum {
	PART_SWEEP_ROWS = 1000, /* of one slice */
	PART_DROP_ROWS = 64,    /* a set of more rows is left to the sweeper */
	PART_TINY_ROWS = 4,     /* marking it would cost as much */
	PART_CHANGE_ROWS =
		1000 /* a change that has touched more leaves all but tiny sets to the sweeper */
};

/* The set of the single PUT that this version is. */
int64_t part_single_set(int64_t version);
/* The sum of such a set for the version row. */
uint64_t part_single_contents(const struct segment *segments, size_t count);
/* Held once. Every pack it names must be recorded (invariant 1). */
int part_single_add(struct db *db, int64_t set, const struct stored_part *part, struct error *err);
/* A new set with a number of its own and one part, held once, of at least one segment: for what
 * several versions will share (xet_file.h). *out_contents: its sum for those who lead to it. */
int part_set_add_single(struct db *db, const struct segment *segments, size_t count,
	int64_t *out_set, uint64_t *out_contents, struct error *err);
/* One more version leads to the set: a copy. */
int part_set_share(struct db *db, int64_t set, struct error *err);
/* One version less leads to the set. When that was the last: removed at once when small and the
 * change has not done much else, else marked for part_set_sweep. */
int part_set_drop(struct db *db, int64_t set, struct error *err);
/* Removes about PART_SWEEP_ROWS rows of dead sets. *out_more: there may be others. */
int part_set_sweep(struct db *db, bool *out_more, struct error *err);
int part_set_has_dead(struct db *db, bool *out_has, struct error *err);

/* The segments that hold bytes [offset, offset + length) of the set of `size` bytes, verified
 * against `contents`; free() them. `skip` is where the range begins in the first. corrupt when a
 * row is damaged or missing; not_ready when there are more than `most`. */
struct part_range {
	uint64_t offset;
	uint64_t length;
	size_t most; /* 0: any number */
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
