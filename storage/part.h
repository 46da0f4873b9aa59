/* What a version's bytes are made of: a part set, its parts, their segments; or inline bytes. The tables part_sets, parts, segments and
 * inline_bytes. A set has one part (a single PUT) or those of a multipart upload; copies share it. Internal to storage. */
#ifndef STORAGE_PART_H
#define STORAGE_PART_H

#include "storage/db.h"
#include "storage/segment.h"

enum {
	PART_SWEEP_ROWS = 1000, /* of one slice */
	PART_DROP_ROWS = 64     /* a set of more rows is left to the sweeper */
};

/* A set with this one part, held once, and the sum of its contents for the version row. Every pack it names must be recorded
 * (invariant 1). */
int part_set_add_single(struct db *db, const struct stored_part *part, int64_t *out_set, uint64_t *out_contents, struct error *err);
/* One more version leads to the set: a copy. */
int part_set_share(struct db *db, int64_t set, struct error *err);
/* One version less leads to the set. When that was the last: removed at once when small, else marked for part_set_sweep. */
int part_set_drop(struct db *db, int64_t set, struct error *err);
/* Removes up to PART_SWEEP_ROWS rows of dead sets. *out_more: there may be others. */
int part_set_sweep(struct db *db, bool *out_more, struct error *err);
int part_set_has_dead(struct db *db, bool *out_has, struct error *err);

/* The segments that hold bytes [offset, offset + length) of the set, verified against `contents`; free() them. *out_skip is where the
 * range begins in the first. corrupt when a row is damaged or missing. */
struct part_range {
	uint64_t offset;
	uint64_t length;
	struct segment *segments;
	size_t segment_count;
	size_t capacity;
	uint64_t skip;
};
int part_set_load(struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err);

uint64_t part_inline_contents(struct span bytes);
int part_inline_add(struct db *db, int64_t version, struct span bytes, struct error *err);
int part_inline_drop(struct db *db, int64_t version, struct error *err);
/* *out lives until `*out_statement` is reset. corrupt when absent or not what `contents` says. */
int part_inline_load(struct db *db, int64_t version, uint64_t contents, struct span *out, struct db_statement **out_statement,
	struct error *err);

#endif
