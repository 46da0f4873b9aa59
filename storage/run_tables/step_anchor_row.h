/* What the catalog says of the anchors that the server makes: columns of `steps`. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_STEP_ANCHOR_ROW_H
#define STORAGE_RUN_TABLES_STEP_ANCHOR_ROW_H

#include "storage/run_tables/step_row.h"

/* The first kept step with an id above `after` that wants an anchor which it has not, or not
 * stored. 1, 0, -1. */
int step_anchor_row_find_wanted(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err);
/* The first kept step with an id above `after` that has one. 1, 0, -1. */
int step_anchor_row_find_made(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err);
/* Kept steps of the run below `step` that have one: db_step and step_row_read; db_reset. */
struct db_statement *step_anchor_row_scan_made(
	struct db *db, int64_t run, uint64_t step, struct error *err);
/* Kept steps below `step` that are whole in themselves and good, by anchor or made anchor, the
 * nearest first: db_step and step_row_read; db_reset. */
struct db_statement *step_anchor_row_scan_whole(
	struct db *db, int64_t run, uint64_t step, struct error *err);

int step_anchor_row_want(struct db *db, int64_t id, enum step_wants wants, struct error *err);
/* A stored anchor is on its way above `from`, at or below `to`. 1, 0, -1. */
int step_anchor_row_awaits_stored(
	struct db *db, int64_t run, uint64_t from, uint64_t to, struct error *err);
/* The steps below `step` want none any more, but stored ones and those with a pin. */
int step_anchor_row_want_none_below(struct db *db, int64_t run, uint64_t step, struct error *err);
/* has_made, made_depth, made_bytes and made_until_ms as in the row. */
int step_anchor_row_set_made(struct db *db, const struct step_row *row, struct error *err);

#endif
