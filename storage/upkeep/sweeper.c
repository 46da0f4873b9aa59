/* One slice is one change of some hundred rows of one kind of work, so that clients' changes get
 * their turn between slices. A reader is asked for work first: an idle store writes nothing. The
 * kinds stand in a table, in an order in which one may leave work to the next. */
#include "storage/upkeep/sweeper.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/buckets/session_row.h"
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
	/* used by the thread only: */
	struct sweep sweep;
	bool has_recovered; /* scratch_release_left has run */
	unsigned logged;    /* kinds whose failure was logged; bits as in sweep.failed */
};

/* Removes what is left of a run that has no steps any more. */
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
	if (more_parts) /* dead by now; one is swept at a time */
		return step_part_row_sweep(db, 0, &more_parts, err);
	return more_replicas || more_pins || more_adoptions ? 0 : run_row_remove(db, run, err);
}

/* Each kind of work does one slice; *out_more when it found some. */
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

struct slice {
	struct change change; /* first */
	unsigned kind;
	int64_t now_ms;
	struct xet_file_damage damage;
};

static int sweeper_run_ended_runs(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return sweep_ended_run(db, out_more, err);
}

static int sweeper_run_removed_steps(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return sweep_removed_step(db, out_more, err);
}

static int sweeper_run_part_sets(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	(void)slice;
	return part_set_sweep(db, out_more, err);
}

static int sweeper_run_folds(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return fold_sweep(db, slice->now_ms, out_more, err);
}

static int sweeper_run_step_parts(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return step_part_row_sweep(db, slice->now_ms, out_more, err);
}

static int sweeper_run_uploads(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return upload_sweep(db, slice->now_ms, out_more, err);
}

static int sweeper_run_files(struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	slice->damage = (struct xet_file_damage){0};
	return xet_file_sweep(db, slice->now_ms, out_more, &slice->damage, err);
}

static int sweeper_run_sessions(
	struct slice *slice, struct db *db, bool *out_more, struct error *err)
{
	return session_row_sweep(db, slice->now_ms, out_more, err);
}

static int sweeper_has_ended_run(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t run;
	(void)now_ms;
	return run_row_find_ended(db, &run, out_has, err);
}

static int sweeper_has_removed_step(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	int64_t step;
	(void)now_ms;
	const int found = step_row_find_releasing(db, &step, err);
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

static int sweeper_has_part_set(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	(void)now_ms;
	return part_set_has_dead(db, out_has, err);
}

/* In this order: the next kind may take up what one leaves behind. */
static const struct sweep_kind {
	const char *name;
	int (*has_work)(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
	int (*run)(struct slice *slice, struct db *db, bool *out_more, struct error *err);
} sweep_kinds[] = {
	{"ended runs", sweeper_has_ended_run, sweeper_run_ended_runs},
	{"removed steps", sweeper_has_removed_step, sweeper_run_removed_steps},
	{"dead part sets", sweeper_has_part_set, sweeper_run_part_sets},
	{"folds", fold_sweep_has_work, sweeper_run_folds},
	{"parts of steps", step_part_row_has_work, sweeper_run_step_parts},
	{"uploads", upload_sweep_has_work, sweeper_run_uploads},
	{"files", xet_file_sweep_has_work, sweeper_run_files},
	{"sessions", session_row_has_ended, sweeper_run_sessions},
};
enum { SWEEP_KINDS = sizeof(sweep_kinds) / sizeof(sweep_kinds[0]) };
_Static_assert(SWEEP_KINDS <= 32, "struct sweep has a bit for each kind");

static int sweeper_apply(struct change *change, struct db *db, struct error *err)
{
	struct slice *const slice = (struct slice *)change;
	bool found = false;
	ASSERT(slice->kind < SWEEP_KINDS);
	if (sweep_kinds[slice->kind].run(slice, db, &found, err) != 0)
		return -1;
	return found ? db_vacuum_some(db, VACUUM_PAGES, err) : 0;
}

/* Finds the first kind that has work and has not failed yet; SWEEP_KINDS: none. */
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
	ASSERT(kind < SWEEP_KINDS);
	*out_more = err->kind != ERROR_BUSY; /* busy: the store is closing */
	sweep->failed |= 1u << kind;
	return error_wrap(err, "sweeping %s", sweep_kinds[kind].name);
}

int sweeper_slice(struct store *store, struct sweep *sweep, bool *out_more, struct error *err)
{
	struct slice slice = {.change = {.apply = sweeper_apply}, .now_ms = store_now_ms(store)};
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

/* Scratch versions that an earlier process left go before anything else. */
static int sweep_next(struct sweeper *sweeper, bool *out_more, struct error *err)
{
	if (!sweeper->has_recovered && scratch_release_left(sweeper->store, err) != 0)
		return -1;
	sweeper->has_recovered = true;
	return sweeper_slice(sweeper->store, &sweeper->sweep, out_more, err);
}

/* Leftovers that could not be swept stay marked and are tried again in each run of slices. The
 * failure is logged once. */
static int64_t sweeper_round(void *owner)
{
	struct sweeper *const sweeper = owner;
	struct error err = {0};
	bool more = false;
	if (!store_may_delete(sweeper->store))
		return INTERVAL_MS;
	const int result = sweep_next(sweeper, &more, &err);
	const bool is_logged =
		sweeper->sweep.failed != 0 && (sweeper->sweep.failed & ~sweeper->logged) == 0;
	if (result != 0 && !is_logged && err.kind != ERROR_BUSY)
		log_failure(store_log(sweeper->store), LOG_WARNING, NULL, "sweep", &err);
	sweeper->logged |= sweeper->sweep.failed;
	if (more)
		return 0;
	sweeper->logged = sweeper->sweep.failed;
	sweeper->sweep = (struct sweep){0};
	return INTERVAL_MS;
}

struct sweeper *sweeper_start(struct store *store)
{
	static const struct worker_thread_plan plan = {
		.name = "sweeper", .first_ms = INTERVAL_MS, .round = sweeper_round};
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
