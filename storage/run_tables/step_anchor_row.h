/* The columns of `steps` about the anchors that the server makes. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_ANCHOR_ROW_H
#define STORAGE_RUN_TABLES_STEP_ANCHOR_ROW_H

#include "storage/run_tables/step_row.h"

/* The first kept step with an id above `after` that wants an anchor and has none made, or wants a
 * stored one and has one that is not stored. Its proof has not failed. 1, 0, -1. */
int step_anchor_row_find_wanted(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err);
/* The first kept step with an id above `after` that has a made anchor. 1, 0, -1. */
int step_anchor_row_find_made(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err);
/* The kept steps of the run below `step` that have a made anchor: db_step and step_row_read, then
 * db_reset. */
struct db_statement *step_anchor_row_scan_made(
	struct db *db, int64_t run, uint64_t step, struct error *err);
/* The kept steps of the run below `step` that have an anchor, published or made, and are proven or
 * unchecked, the nearest first: db_step and step_row_read, then db_reset. */
struct db_statement *step_anchor_row_scan_whole(
	struct db *db, int64_t run, uint64_t step, struct error *err);

int step_anchor_row_want(struct db *db, int64_t id, enum step_wants wants, struct error *err);
/* Whether a kept step above `from`, and at or below `to`, wants a stored anchor. 1, 0, -1. */
int step_anchor_row_awaits_stored(
	struct db *db, int64_t run, uint64_t from, uint64_t to, struct error *err);
/* The steps below `step` stop wanting an anchor, except those that want a stored one and those with
 * a pin. */
int step_anchor_row_want_none_below(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Writes has_made, made_depth, made_bytes and made_until_ms of the row. */
int step_anchor_row_set_made(struct db *db, const struct step_row *row, struct error *err);

#endif
