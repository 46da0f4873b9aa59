/* Reads the rows that lifecycle rules are judged on, in slices: current versions, older versions,
 * and what a change needs to judge them again. Internal to storage. */
#ifndef STORAGE_UPKEEP_LIFECYCLE_SCAN_H
#define STORAGE_UPKEEP_LIFECYCLE_SCAN_H

#include "storage/buckets/lifecycle.h"
#include "storage/db/db.h"

struct lifecycle_row {
	int64_t sequence;
	struct span key; /* in the arena */
	bool is_marker;
	uint64_t size;
	int64_t since_ms; /* modified; an older version: when it ceased to be current */
	struct span tags; /* a tag_set, in the arena */
};
/* Where a slice continues: behind this key, and for older versions behind this version of it.
 * Zeros: from the start. */
struct lifecycle_position {
	struct span key;
	int64_t sequence;
	uint32_t newer; /* older versions of this key seen so far */
};
/* The first bucket above `after` that has rules, with its document in the arena. 1, 0, -1. */
int lifecycle_scan_bucket(struct db *db, int64_t after, struct arena *arena, int64_t *out_bucket,
	struct span *out_document, struct error *err);
struct lifecycle_scan {
	int64_t bucket;
	const struct lifecycle_position *from;
	struct arena *arena;
	struct lifecycle_row *rows; /* with room for `limit` */
	size_t limit;
	size_t count; /* out: the rows that were read */
};
/* Up to `limit` current versions, markers too, in the order of their keys. */
int lifecycle_scan_current(struct db *db, struct lifecycle_scan *scan, struct error *err);
/* Up to `limit` older versions in the order of their keys, newest first inside a key. */
int lifecycle_scan_older(struct db *db, struct lifecycle_scan *scan, struct error *err);

struct lifecycle_newer {
	int64_t bucket;
	struct span key;
	int64_t sequence; /* -1: all versions count */
	uint32_t most;
};
/* How many older versions of a key came after `sequence`, counted up to `most`. */
int lifecycle_scan_newer(
	struct db *db, const struct lifecycle_newer *newer, uint32_t *out, struct error *err);

#endif
