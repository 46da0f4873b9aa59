/* One slice is one change of some hundred rows, so that clients' changes get their turn between slices. Whether there is work is asked of a
 * reader first: an idle store writes nothing. */
#include "storage/sweeper.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/memory.h"
#include "storage/adopt_row.h"
#include "storage/fold_sweep.h"
#include "storage/part.h"
#include "storage/pin_row.h"
#include "storage/replica_row.h"
#include "storage/run_row.h"
#include "storage/step_part_row.h"
#include "storage/step_pin.h"
#include "storage/step_row.h"
#include "storage/store_internal.h"
#include "storage/upload_sweep.h"
#include "storage/view_row.h"
#include "storage/xet_file.h"

enum { INTERVAL_MS = 1000, VACUUM_PAGES = 256 };

struct sweeper {
	struct store *store;
	pthread_t thread;
	struct lock lock;
	struct lock_condition stop;
	bool stopping; /* guarded by lock */
	bool failing;  /* the sweeper's thread alone */
};

/* What is left of a run without steps. */
static int remove_rest(struct db *const db, const int64_t run, struct error *const err)
{
	bool more_replicas = false;
	bool more_pins = false;
	bool more_parts = false;
	bool more_adoptions = false;
	if (replica_row_remove_of_run(db, run, &more_replicas, err) != 0 || pin_row_remove_of_run(db, run, &more_pins, err) != 0 ||
		step_part_row_end_run(db, run, &more_parts, err) != 0 || adopt_row_remove_of_run(db, run, &more_adoptions, err) != 0)
		return -1;
	if (more_parts) /* dead by now; one of them at a time */
		return step_part_row_sweep(db, 0, &more_parts, err);
	return more_replicas || more_pins || more_adoptions ? 0 : run_row_remove(db, run, err);
}

/* Each kind of work: does one slice of it; *out_more when it found some. */
static int sweep_ended_run(struct db *const db, bool *const out_more, struct error *const err)
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

static int sweep_removed_step(struct db *const db, bool *const out_more, struct error *const err)
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
	int64_t now_ms;
};

static int apply_slice(struct change *const change, struct db *const db, struct error *const err)
{
	static int (*const kinds[])(struct db *db, bool *out_more, struct error *err) = {sweep_ended_run, sweep_removed_step, part_set_sweep};
	const struct slice *const slice = (const struct slice *)change;
	bool found = false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !found; i++) {
		if (kinds[i](db, &found, err) != 0)
			return -1;
	}
	if (!found && fold_sweep(db, slice->now_ms, &found, err) != 0)
		return -1;
	if (!found && step_part_row_sweep(db, slice->now_ms, &found, err) != 0)
		return -1;
	if (!found && upload_sweep(db, slice->now_ms, &found, err) != 0)
		return -1;
	if (!found && xet_file_sweep(db, slice->now_ms, &found, err) != 0)
		return -1;
	return found ? db_vacuum_some(db, VACUUM_PAGES, err) : 0;
}

static int find_work(struct db *const db, const int64_t now_ms, bool *const out_found, struct error *const err)
{
	int64_t id;
	if (run_row_find_ended(db, &id, out_found, err) != 0)
		return -1;
	if (*out_found)
		return 0;
	const int step = step_row_find_releasing(db, &id, err);
	*out_found = step == 1;
	if (step != 0)
		return step < 0 ? -1 : 0;
	if (part_set_has_dead(db, out_found, err) != 0)
		return -1;
	if (!*out_found && fold_sweep_has_work(db, now_ms, out_found, err) != 0)
		return -1;
	if (!*out_found && step_part_row_has_work(db, now_ms, out_found, err) != 0)
		return -1;
	if (!*out_found && upload_sweep_has_work(db, now_ms, out_found, err) != 0)
		return -1;
	return *out_found ? 0 : xet_file_sweep_has_work(db, now_ms, out_found, err);
}

int sweeper_slice(struct store *const store, bool *const out_more, struct error *const err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int64_t now_ms = store_clock(store)->wall_ms(store_clock(store));
	const int looked = find_work(db, now_ms, out_more, err);
	store_reader_give(store, db);
	if (looked != 0 || !*out_more)
		return looked;
	struct slice slice = {.change = {.apply = apply_slice}, .now_ms = now_ms};
	return committer_run(store_committer(store), &slice.change, err);
}

/* What could not be swept stays marked and is tried again each time: that is told once. True when it may be asked again at once. */
static bool work(struct sweeper *const sweeper)
{
	struct error err = {0};
	bool more = false;
	const bool failed = sweeper_slice(sweeper->store, &more, &err) != 0;
	struct log *const log = store_log(sweeper->store);
	if (failed && !sweeper->failing && err.kind != ERROR_BUSY && log != NULL)
		log_failure(log, LOG_WARNING, NULL, "sweep", &err);
	sweeper->failing = failed;
	return !failed && more;
}

static void *run(void *const argument)
{
	struct sweeper *const sweeper = argument;
	bool more = false;
	lock_enter(&sweeper->lock);
	while (!sweeper->stopping) {
		if (!more)
			lock_wait_for(&sweeper->lock, &sweeper->stop, INTERVAL_MS);
		if (sweeper->stopping)
			break;
		lock_leave(&sweeper->lock);
		more = work(sweeper);
		lock_enter(&sweeper->lock);
	}
	lock_leave(&sweeper->lock);
	return NULL;
}

struct sweeper *sweeper_start(struct store *const store)
{
	struct sweeper *const sweeper = memory_new(sizeof(*sweeper));
	sweeper->store = store;
	lock_init(&sweeper->lock, LOCK_CONTROL);
	lock_condition_init(&sweeper->stop);
	lock_thread_start(&sweeper->thread, "sweeper", run, sweeper);
	return sweeper;
}

void sweeper_stop(struct sweeper *const sweeper)
{
	if (sweeper == NULL)
		return;
	lock_enter(&sweeper->lock);
	sweeper->stopping = true;
	lock_signal(&sweeper->stop);
	lock_leave(&sweeper->lock);
	pthread_join(sweeper->thread, NULL);
	lock_condition_release(&sweeper->stop);
	lock_release(&sweeper->lock);
	free(sweeper);
}
