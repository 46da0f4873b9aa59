/* One slice is one change of some hundred rows of one kind of work, so that clients' changes get
 * their turn between slices. Whether there is work is asked of a reader first: an idle store writes
 * nothing. */
#include "storage/upkeep/sweeper.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/store.h"
#include "storage/files/xet_file.h"
#include "storage/objects/scratch.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/replica_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/run_tables/view_row.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/step_pin.h"
#include "storage/step_jobs/fold_sweep.h"
#include "storage/uploads/upload_sweep.h"
#include "storage/versions/part.h"

enum { INTERVAL_MS = 1000, VACUUM_PAGES = 256 };

struct sweeper {
	struct store *store;
	struct worker_thread thread;
	/* the thread alone */
	struct sweep sweep;
	bool has_recovered; /* scratch_release_left */
	unsigned told;      /* kinds whose failure was logged, as in sweep.failed */
};

struct slice {
	struct change change; /* first */
	unsigned kind;
	int64_t now_ms;
	struct xet_file_damage damage;
};

static int apply_slice(struct change *change, struct db *db, struct error *err);
static int has_ended_run(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
static int run_ended_runs(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int sweep_ended_run(struct db *db, bool *out_more, struct error *err);
static int remove_rest(struct db *db, int64_t run, struct error *err);
static int has_removed_step(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
static int run_removed_steps(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int sweep_removed_step(struct db *db, bool *out_more, struct error *err);
static int has_part_set(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
static int run_part_sets(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int run_folds(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int run_step_parts(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int run_uploads(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int run_files(struct slice *slice, struct db *db, bool *out_more, struct error *err);
static int find_work(
	struct sweep *sweep, struct db *db, int64_t now_ms, unsigned *out_kind, struct error *err);
static int fail(struct sweep *sweep, unsigned kind, bool *out_more, struct error *err);
static int64_t one_round(void *owner);
static int run_round(struct sweeper *sweeper, bool *out_more, struct error *err);

/* In their order: what one leaves behind the next may take up. */
static const struct sweep_kind {
	const char *name;
	int (*has_work)(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
	int (*run)(struct slice *slice, struct db *db, bool *out_more, struct error *err);
} sweep_kinds[] = {
	{"ended runs", has_ended_run, run_ended_runs},
	{"removed steps", has_removed_step, run_removed_steps},
	{"dead part sets", has_part_set, run_part_sets},
	{"folds", fold_sweep_has_work, run_folds},
	{"parts of steps", step_part_row_has_work, run_step_parts},
	{"uploads", upload_sweep_has_work, run_uploads},
	{"files", xet_file_sweep_has_work, run_files},
};

enum { SWEEP_KINDS = sizeof(sweep_kinds) / sizeof(sweep_kinds[0]) };

int sweeper_slice(struct store *store, struct sweep *sweep, bool *out_more, struct error *err)
{
	struct slice slice = {.change = {.apply = apply_slice}, .now_ms = store_now_ms(store)};
	*out_more = false;
	if (!store_may_delete(store))
		return 0;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int looked = find_work(sweep, db, slice.now_ms, &slice.kind, err);
	store_reader_give(store, db);
	if (looked == 0 && slice.kind == SWEEP_KINDS)
		return 0;
	if (looked != 0 || committer_run(store_committer(store), &slice.change, err) != 0)
		return fail(sweep, slice.kind, out_more, err);
	*out_more = true;
	sweep->rows_damaged += slice.damage.rows;
	xet_file_tell_damage(store, &slice.damage);
	return 0;
}

struct sweeper *sweeper_start(struct store *store)
{
	static const struct worker_thread_plan plan = {
		.name = "sweeper", .first_ms = INTERVAL_MS, .round = one_round};
	struct sweeper *const sweeper = memory_new(sizeof(*sweeper));
	sweeper->store = store;
	worker_thread_start(&sweeper->thread, &plan, sweeper);
	return sweeper;
}

void sweeper_stop(struct sweeper *sweeper)
{
	if (sweeper == NULL)
		return;
	worker_thread_stop(&sweeper->thread);
	worker_thread_release(&sweeper->thread);
	free(sweeper);
}

static int apply_slice(struct change *change, struct db *db, struct error *err)
{
	struct slice *const slice = (struct slice *)change;
	bool found = false;
	if (sweep_kinds[slice->kind].run(slice, db, &found, err) != 0)
		return -1;
	return found ? db_vacuum_some(db, VACUUM_PAGES, err) : 0;
}

static int has_ended_run(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t run;
	(void)now_ms;
	return run_row_find_ended(db, &run, out_has, err);
}

static int run_ended_runs(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return sweep_ended_run(db, out_more, err);
}

/* Each kind of work: does one slice of it; *out_more when it found some. */
static int sweep_ended_run(struct db *db, bool *out_more, struct error *err)
{
	int64_t run = 0;
	int64_t step = 0;
	bool more = false;
	if (run_row_find_ended(db, &run, out_more, err) != 0)
		return -1;
	if (!*out_more)
		return 0;
	if (fold_sweep_run(db, run, &more, err) != 0)
		return -1;
	if (more)
		return 0;
	const int found = step_row_find_of_run(db, run, &step, err);
	if (found == 0)
		return remove_rest(db, run, err);
	if (found < 0 || step_pin_release(db, step, &more, err) != 0)
		return -1;
	if (more)
		return 0;
	return view_row_remove(db, step, err) != 0 ? -1 : step_row_remove(db, step, err);
}

/* What is left of a run without steps. */
static int remove_rest(struct db *db, int64_t run, struct error *err)
{
	bool more_replicas = false;
	bool more_pins = false;
	bool more_parts = false;
	bool more_adoptions = false;
	if (replica_row_remove_of_run(db, run, &more_replicas, err) != 0 ||
		pin_row_remove_of_run(db, run, &more_pins, err) != 0 ||
		step_part_row_end_run(db, run, &more_parts, err) != 0 ||
		adopt_row_remove_of_run(db, run, &more_adoptions, err) != 0)
		return -1;
	if (more_parts) /* dead by now; one of them at a time */
		return step_part_row_sweep(db, 0, &more_parts, err);
	return more_replicas || more_pins || more_adoptions ? 0 : run_row_remove(db, run, err);
}

static int has_removed_step(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t step;
	(void)now_ms;
	const int found = step_row_find_releasing(db, &step, err);
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

static int run_removed_steps(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return sweep_removed_step(db, out_more, err);
}

static int sweep_removed_step(struct db *db, bool *out_more, struct error *err)
{
	int64_t step = 0;
	bool more = false;
	const int found = step_row_find_releasing(db, &step, err);
	*out_more = found == 1;
	if (found != 1)
		return found;
	if (step_pin_release(db, step, &more, err) != 0)
		return -1;
	return more ? 0 : step_row_set_released(db, step, err);
}

static int has_part_set(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	(void)now_ms;
	return part_set_has_dead(db, out_has, err);
}

static int run_part_sets(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return part_set_sweep(db, out_more, err);
}

static int run_folds(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return fold_sweep(db, slice->now_ms, out_more, err);
}

static int run_step_parts(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return step_part_row_sweep(db, slice->now_ms, out_more, err);
}

static int run_uploads(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return upload_sweep(db, slice->now_ms, out_more, err);
}

static int run_files(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	slice->damage = (struct xet_file_damage){0};
	return xet_file_sweep(db, slice->now_ms, out_more, &slice->damage, err);
}

/* The first kind that has work, of those that did not fail yet; SWEEP_KINDS: none has. */
static int find_work(
	struct sweep *sweep, struct db *db, int64_t now_ms, unsigned *out_kind, struct error *err)
{
	bool found = false;
	for (*out_kind = 0; *out_kind < SWEEP_KINDS; ++*out_kind) {
		if ((sweep->failed & 1u << *out_kind) != 0)
			continue;
		if (sweep_kinds[*out_kind].has_work(db, now_ms, &found, err) != 0)
			return -1;
		if (found)
			return 0;
	}
	return 0;
}

static int fail(struct sweep *sweep, unsigned kind, bool *out_more, struct error *err)
{
	*out_more = err->kind != ERROR_BUSY; /* else the store is closing */
	sweep->failed |= 1u << kind;
	return error_wrap(err, "sweeping %s", sweep_kinds[kind].name);
}

/* What could not be swept stays marked and is tried again in each run of slices: that is told
 * once. */
static int64_t one_round(void *owner)
{
	struct sweeper *const sweeper = owner;
	struct error err = {0};
	bool more = false;
	if (!store_may_delete(sweeper->store))
		return INTERVAL_MS;
	const int result = run_round(sweeper, &more, &err);
	const bool is_told =
		sweeper->sweep.failed != 0 && (sweeper->sweep.failed & ~sweeper->told) == 0;
	if (result != 0 && !is_told && err.kind != ERROR_BUSY)
		log_failure(store_log(sweeper->store), LOG_WARNING, NULL, "sweep", &err);
	sweeper->told |= sweeper->sweep.failed;
	if (more)
		return 0;
	sweeper->told = sweeper->sweep.failed;
	sweeper->sweep = (struct sweep){0};
	return INTERVAL_MS;
}

/* What an earlier process left held goes before anything else. */
static int run_round(struct sweeper *sweeper, bool *out_more, struct error *err)
{
	if (!sweeper->has_recovered && scratch_release_left(sweeper->store, err) != 0)
		return -1;
	sweeper->has_recovered = true;
	return sweeper_slice(sweeper->store, &sweeper->sweep, out_more, err);
}
