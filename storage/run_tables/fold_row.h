/* The table `folds`: deltas over several steps that the server made or is to make. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_FOLD_ROW_H
#define STORAGE_RUN_TABLES_FOLD_ROW_H

#include "storage/db/db.h"
#include "wire/step_message.h"

/* Numbers are stored in the catalog. */
enum fold_kind {
	FOLD_SKIP = 0,  /* between steps that are multiples of its span */
	FOLD_DIRECT = 1 /* requested: from a step that a worker held to the head at that time */
};
enum fold_state {
	FOLD_WANTED = 0,
	FOLD_MADE = 1,
	FOLD_REFUSED = 2,  /* it cannot be made; the row prevents another try */
	FOLD_RELEASING = 3 /* no path uses it any more; the sweeper releases its objects */
};
enum {
	FOLD_SPAN_MIN = 4,    /* steps */
	FOLD_DIRECT_MAX = 32, /* of one run; above it the one unused for longest is released */
	/* a direct fold that was used within this time stays: a reader may be fetching it */
	FOLD_HELD_MS = 30 * 60 * 1000,
	/* a direct fold that no path has named for this long is released */
	FOLD_UNUSED_MS = 60 * 60 * 1000
};

struct fold_row {
	int64_t id;
	int64_t run;
	uint64_t from;
	uint64_t to;
	enum fold_kind kind;
	enum fold_state state;
	uint64_t bytes;                         /* of its objects; 0 until it is made */
	char format[STEP_FORMAT_MAX_BYTES + 1]; /* empty until it is made */
	/* when it was requested or last named by a path, accurate to some minutes */
	int64_t used_ms;
};

/* 1 found, 0 absent, -1. */
int fold_row_find(struct db *db, int64_t run, uint64_t from, uint64_t to, struct fold_row *out,
	struct error *err);
int fold_row_find_id(struct db *db, int64_t id, struct fold_row *out, struct error *err);
/* A wanted fold of the kind: the oldest direct one with an id above `limit`, or the newest skip
 * fold with an id below `limit`. */
int fold_row_find_wanted(
	struct db *db, enum fold_kind kind, int64_t limit, struct fold_row *out, struct error *err);
int fold_row_find_releasing(struct db *db, int64_t *out_id, struct error *err);
/* A direct fold that is not being released and was not used since `before_ms`. */
int fold_row_find_unused(struct db *db, int64_t before_ms, int64_t *out_id, struct error *err);
int fold_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err);
/* The made folds of a run that end at `to` or below, those with the highest end first: db_step and
 * fold_row_read, then db_reset. */
struct db_statement *fold_row_scan(struct db *db, int64_t run, uint64_t to, struct error *err);
void fold_row_read(struct db_statement *scan, struct fold_row *out);

/* Adds a wanted fold. Does nothing when there is a row for these steps, whatever its state. */
int fold_row_want(struct db *db, const struct fold_row *row, struct error *err);
/* Wants the skip folds that end at `step` and begin at a kept step. */
int fold_row_want_skips(
	struct db *db, int64_t run, uint64_t step, int64_t now_ms, struct error *err);
int fold_row_set_made(
	struct db *db, int64_t id, struct span format, uint64_t bytes, struct error *err);
int fold_row_set_state(struct db *db, int64_t id, enum fold_state state, struct error *err);
int fold_row_set_used(struct db *db, int64_t id, int64_t now_ms, struct error *err);
/* Marks as releasing the folds that begin or end at a removed step. */
int fold_row_release_of_step(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Marks as releasing the direct folds of a run above FOLD_DIRECT_MAX, those unused for longest
 * first. */
int fold_row_release_surplus(struct db *db, int64_t run, struct error *err);
/* Whether the run may have one more direct fold: fewer than FOLD_DIRECT_MAX were used within
 * FOLD_HELD_MS. */
int fold_row_has_room(struct db *db, int64_t run, int64_t now_ms, bool *out_has, struct error *err);
int fold_row_remove(struct db *db, int64_t id, struct error *err);

#endif
