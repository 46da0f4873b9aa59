/* Pins and retention ask a reader first, and make a change only where there is something to do;
 * large work is cut into several changes. The first failure is logged, then none until a round went
 * well. */
#include "storage/step_jobs/fleet_worker.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/store.h"
#include "storage/run_tables/path_hold.h"
#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/runs/replica.h"
#include "storage/runs/step_collect.h"

enum { INTERVAL_MS = 5000, RETAIN_ROUNDS = 12 /* a minute */ };

struct fleet_worker {
	struct store *store;
	struct worker_thread thread;
	unsigned rounds; /* used by the thread only */
	bool failing;    /* the last round failed; used by the thread only */
};

struct pin_sweep {
	struct change change; /* first */
	int64_t now_ms;
	bool more;
};

struct retain {
	struct change change; /* first */
	struct store *store;
	int64_t run;
	bool more;
};

static int sweep_pins(struct store *store, struct error *err);
static int fleet_apply_pins(struct change *base, struct db *db, struct error *err);
static int retain_all(struct store *store, struct error *err);
static int retain_run(struct store *store, int64_t run, struct error *err);
static int fleet_apply_retain(struct change *base, struct db *db, struct error *err);
static int64_t fleet_round(void *owner);
static void run_round(struct fleet_worker *worker, bool retain);
static void fleet_save_leases(void *owner);

int fleet_worker_round(struct store *store, bool retain, struct error *err)
{
	path_hold_tidy(store_parts(store)->path_holds);
	if (replica_tidy(store, err) != 0 || sweep_pins(store, err) != 0)
		return -1;
	return retain ? retain_all(store, err) : 0;
}

struct fleet_worker *fleet_worker_start(struct store *store)
{
	static const struct worker_thread_plan plan = {.name = "fleet",
		.first_ms = INTERVAL_MS,
		.round = fleet_round,
		.last = fleet_save_leases};
	struct fleet_worker *const worker = memory_new(sizeof(*worker));
	ASSERT(store != NULL);
	worker->store = store;
	worker_thread_start(&worker->thread, &plan, worker);
	return worker;
}

void fleet_worker_stop(struct fleet_worker *worker)
{
	if (worker == NULL)
		return;
	worker_thread_stop(&worker->thread);
	worker_thread_release(&worker->thread);
	free(worker);
}

static int sweep_pins(struct store *store, struct error *err)
{
	const int64_t now_ms = store_now_ms(store);
	bool more = false;
	struct db *const db = store_reader_take(store, err);
	int result = db == NULL ? -1 : pin_row_has_expired(db, now_ms, &more, err);
	store_reader_give(store, db);
	while (result == 0 && more) {
		struct pin_sweep sweep = {.change = {.apply = fleet_apply_pins}, .now_ms = now_ms};
		result = committer_run(store_committer(store), &sweep.change, err);
		more = sweep.more;
	}
	return result;
}

static int fleet_apply_pins(struct change *base, struct db *db, struct error *err)
{
	struct pin_sweep *const sweep = (struct pin_sweep *)base;
	return pin_row_sweep(db, sweep->now_ms, &sweep->more, err);
}

/* A run that fails does not keep the others waiting; the last failure is reported. */
static int retain_all(struct store *store, struct error *err)
{
	int64_t run = 0;
	int found = 1;
	int result = 0;
	while (found == 1) {
		struct db *const db = store_reader_take(store, err);
		found = db == NULL ? -1 : run_row_find_overfull(db, run, &run, err);
		store_reader_give(store, db);
		if (found == 1 && retain_run(store, run, err) != 0)
			result = -1;
	}
	return found < 0 ? -1 : result;
}

static int retain_run(struct store *store, int64_t run, struct error *err)
{
	bool more = true;
	while (more) {
		struct retain retain = {
			.change = {.apply = fleet_apply_retain}, .store = store, .run = run};
		if (committer_run(store_committer(store), &retain.change, err) != 0)
			return -1;
		more = retain.more;
	}
	return 0;
}

static int fleet_apply_retain(struct change *base, struct db *db, struct error *err)
{
	struct retain *const retain = (struct retain *)base;
	struct run_row row;
	const int found = run_row_find_id(db, retain->run, NULL, &row, NULL, err);
	if (found != 1)
		return found;
	const uint64_t steps = row.steps;
	if (step_retain(retain->store, db, &row, err) != 0)
		return -1;
	retain->more = steps - row.steps == STEP_RETAIN_AT_ONCE;
	return row.steps == steps ? 0 : run_row_update(db, &row, err);
}

static int64_t fleet_round(void *owner)
{
	struct fleet_worker *const worker = owner;
	if (store_takes_work(worker->store))
		run_round(worker, ++worker->rounds % RETAIN_ROUNDS == 0);
	return INTERVAL_MS;
}

static void run_round(struct fleet_worker *worker, bool retain)
{
	struct error err = {0};
	const bool failed = fleet_worker_round(worker->store, retain, &err) != 0;
	struct log *const log = store_log(worker->store);
	if (failed && !worker->failing && err.kind != ERROR_BUSY && log != NULL)
		log_failure(log, LOG_WARNING, NULL, "fleet",
			&err); /* logged once; the next round tries again */
	worker->failing = failed;
}

static void fleet_save_leases(void *owner)
{
	run_round(owner, false);
}
