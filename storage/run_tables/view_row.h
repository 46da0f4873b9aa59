/* The table `step_views`: which views of steps are wanted, made or failed. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_VIEW_ROW_H
#define STORAGE_RUN_TABLES_VIEW_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"

/* Numbers are stored in the catalog. */
enum view_kind { VIEW_TRL = 0, VIEW_SLIME = 1, VIEW_KINDS };
enum view_state { VIEW_WANTED = 0, VIEW_MADE = 1, VIEW_FAILED = 2 };

/* Does nothing when the view has a row. `step` is the id of a row of `steps`. */
int view_row_want(struct db *db, int64_t step, enum view_kind kind, struct error *err);
/* Wants the view of the newest 1,000 kept steps of a run. Those that failed are tried again. */
int view_row_want_all(struct db *db, int64_t run, enum view_kind kind, struct error *err);
/* 1 with the state, 0 when there is no row, -1. */
int view_row_find(struct db *db, int64_t step, enum view_kind kind, enum view_state *out_state,
	struct error *err);
/* A view that is wanted, of a kept step whose proof has not failed. */
struct view_wanted {
	int64_t step; /* id of the row */
	enum view_kind kind;
	int64_t run;
	uint64_t number; /* of the step */
};
/* The first wanted view behind (after_step, after_kind). 1, 0, -1. */
int view_row_find_wanted(struct db *db, int64_t after_step, int after_kind, struct view_wanted *out,
	struct error *err);
enum { VIEW_PENDING_MAX = 64 };
struct view_pending { /* a wanted view, as listings show it */
	enum view_kind kind;
	uint64_t number;
	struct span run;
	bool has_anchor; /* the step was published with one */
	bool has_base;   /* the step before is kept */
};
/* The views of a bucket among the newest VIEW_PENDING_MAX wanted ones of the store, newest first.
 * Names are copied into the arena. */
int view_row_list_pending(struct db *db, int64_t bucket, struct arena *arena,
	struct view_pending out[VIEW_PENDING_MAX], size_t *out_count, struct error *err);
/* `error` says why the view failed; it is empty when the view was made. */
int view_row_settle(struct db *db, int64_t step, enum view_kind kind, enum view_state state,
	struct span error, struct error *err);
/* For a view that was switched off: its wanted rows of the run are removed. */
int view_row_forget_wanted(struct db *db, int64_t run, enum view_kind kind, struct error *err);
/* For a step that was removed. */
int view_row_remove(struct db *db, int64_t step, struct error *err);

#endif
