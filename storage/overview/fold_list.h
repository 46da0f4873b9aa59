/* The made folds of a run, for people that look at it. */
#ifndef STORAGE_OVERVIEW_FOLD_LIST_H
#define STORAGE_OVERVIEW_FOLD_LIST_H

#include "storage/core/store.h"
#include "storage/run_tables/run_ref.h"

struct fold_note {
	uint64_t from;
	uint64_t to;
	uint64_t bytes;
	bool is_direct;     /* made for a reader that held `from`; else a skip fold */
	struct span format; /* in the arena */
};

struct fold_list {
	struct fold_note *folds; /* in the arena; those with the highest end first */
	size_t count;
	uint64_t next; /* where the folds of the page that follows end at most, if has_next */
	bool has_next;
};

/* Which folds: those of a run that end at step `to` or below. A page has `limit` of them, and the
 * others that end where the last one does. */
struct fold_scan {
	struct run_ref run;
	uint64_t to;
	size_t limit;
};

/* Fails with no_bucket or no_run. */
int fold_list_read(struct store *store, const struct fold_scan *scan, struct arena *arena,
	struct fold_list *out, struct error *err);

#endif
