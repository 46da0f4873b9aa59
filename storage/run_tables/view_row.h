/* The table `step_views`: which steps are wanted, made or failed as views. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_VIEW_ROW_H
#define STORAGE_RUN_TABLES_VIEW_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"

/* Numbers are stored in the catalog. */
enum view_kind { VIEW_TRL = 0, VIEW_SLIME = 1, VIEW_KINDS };
enum view_state { VIEW_WANTED = 0, VIEW_MADE = 1, VIEW_FAILED = 2 };

/* Nothing changes when it is known. `step` is a row of `steps`. */
int view_row_want(struct db *db, int64_t step, enum view_kind kind, struct error *err);
/* Of the newest 1,000 kept steps of a run; those that failed once are tried again. */
int view_row_want_all(struct db *db, int64_t run, enum view_kind kind, struct error *err);
/* 1 with the state, 0 absent, -1. */
int view_row_find(struct db *db, int64_t step, enum view_kind kind, enum view_state *out_state,
	struct error *err);
/* The first that is wanted of a kept step whose proof has not failed, behind (after_step,
 * after_kind). 1, 0, -1. */
struct view_wanted {
	int64_t step;
	enum view_kind kind;
	int64_t run;
	uint64_t number; /* of the step */
};
int view_row_find_wanted(struct db *db, int64_t after_step, int after_kind, struct view_wanted *out,
	struct error *err);
/* Those of a bucket that are among the newest VIEW_PENDING_MAX wanted of the store, newest first;
 * names in the arena. `out` has room for all. */
enum { VIEW_PENDING_MAX = 64 };
struct view_pending {
	enum view_kind kind;
	uint64_t number;
	struct span run;
	bool has_anchor; /* the step was published with one */
	bool has_base;   /* the step before is kept */
};
int view_row_list_pending(struct db *db, int64_t bucket, struct arena *arena,
	struct view_pending out[VIEW_PENDING_MAX], size_t *out_count, struct error *err);
int view_row_settle(struct db *db, int64_t step, enum view_kind kind, enum view_state state,
	struct span error, struct error *err);
/* The view was switched off: what is still wanted is not any more. */
int view_row_forget_wanted(struct db *db, int64_t run, enum view_kind kind, struct error *err);
/* The step was removed. */
int view_row_remove(struct db *db, int64_t step, struct error *err);

#endif
