#include "storage/step_jobs/fold_sweep.h"

#include "storage/run_tables/fold_row.h"
#include "storage/runs/fold_object.h"

static int find(struct db *db, int64_t now_ms, int64_t *out_id, struct error *err);
static int release(struct db *db, int64_t id, struct error *err);

int fold_sweep_has_work(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	int64_t id;
	const int found = find(db, now_ms, &id, err);
	*out_found = found == 1;
	return found < 0 ? -1 : 0;
}

int fold_sweep(struct db *db, int64_t now_ms, bool *out_found, struct error *err)
{
	int64_t id;
	const int found = find(db, now_ms, &id, err);
	*out_found = found == 1;
	return found == 1 ? release(db, id, err) : found;
}

int fold_sweep_run(struct db *db, int64_t run, bool *out_more, struct error *err)
{
	int64_t id;
	const int found = fold_row_find_of_run(db, run, &id, err);
	*out_more = found == 1;
	return found == 1 ? release(db, id, err) : found;
}

static int find(struct db *db, int64_t now_ms, int64_t *out_id, struct error *err)
{
	const int found = fold_row_find_releasing(db, out_id, err);
	return found != 0 ? found : fold_row_find_unused(db, now_ms - FOLD_UNUSED_MS, out_id, err);
}

/* The row goes with the last of its objects. Until then no path takes the fold. */
static int release(struct db *db, int64_t id, struct error *err)
{
	bool more = false;
	if (fold_object_release(db, id, &more, err) != 0)
		return -1;
	return more ? fold_row_set_state(db, id, FOLD_RELEASING, err)
		    : fold_row_remove(db, id, err);
}
