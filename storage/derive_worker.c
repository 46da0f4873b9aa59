#include "storage/derive_worker.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/memory.h"
#include "storage/committer.h"
#include "storage/derive_series.h"
#include "storage/derive_work.h"
#include "storage/store_internal.h"

enum { INTERVAL_MS = 1000, RETRY_MS = 60 * 1000, PAUSE_BYTES = 4 * 1024 * 1024 };

struct derive_worker {
	struct store *store;
	struct derive_options options;
	pthread_t thread;
	struct lock lock;
	struct lock_condition wake;
	bool quiescing;        /* guarded by lock */
	bool stopping;         /* guarded by lock */
	/* The worker's thread alone: */
	struct derive_pace pace;
	uint64_t spent;        /* since the last pause */
	int64_t after;         /* versions up to this one failed and are left for later */
	int64_t retry_ms;      /* when that is */
};

static int64_t now_ms(void)
{
	const struct clock_source *const clock = clock_system(); /* real time, whatever the store's clock says */
	return clock->monotonic_ms(clock);
}

/* False once the store is closing. */
static bool pause_for(struct derive_worker *const worker, const int64_t ms)
{
	const int64_t until = now_ms() + ms;
	lock_enter(&worker->lock);
	for (int64_t left = ms; left > 0 && !worker->quiescing; left = until - now_ms())
		lock_wait_for(&worker->lock, &worker->wake, left);
	const bool goes_on = !worker->quiescing;
	lock_leave(&worker->lock);
	return goes_on;
}

static bool spend(void *const owner, const size_t bytes)
{
	struct derive_worker *const worker = owner;
	worker->spent += bytes;
	if (worker->options.bytes_per_second == 0 || worker->spent < PAUSE_BYTES)
		return pause_for(worker, 0);
	const uint64_t ms = worker->spent * 1000 / worker->options.bytes_per_second;
	worker->spent = 0;
	return pause_for(worker, (int64_t)ms);
}

static int find_next(struct derive_worker *const worker, int64_t *const out_version, struct error *const err)
{
	struct db *const db = store_reader_take(worker->store, err);
	int64_t waiting = 0;
	if (db == NULL)
		return -1;
	const struct clock_source *const clock = store_clock(worker->store);
	int found = derive_waiting_next(db, worker->after, clock->wall_ms(clock), out_version, err);
	if ((found == 1 || worker->after != 0) && derive_waiting_count(db, &waiting, err) != 0)
		found = -1;
	store_reader_give(worker->store, db);
	metrics_set(store_metrics(worker->store), METRIC_DERIVE_WAITING, waiting);
	return found;
}

static void tell(const struct derive_worker *const worker, const char *const event, const int64_t version, const struct error *const err)
{
	struct log *const log = store_log(worker->store);
	const struct log_field field = log_number("version", version);
	if (log == NULL || err->kind == ERROR_BUSY)
		return;
	log_event(log, LOG_WARNING, NULL, event, &field, 1);
	log_failure(log, LOG_WARNING, NULL, event, err);
}

/* 1: one was settled or put aside; 0: none waits. */
static int work_once(struct derive_worker *const worker)
{
	struct error err = {0};
	struct derive_outcome outcome;
	int64_t version = 0;
	if (worker->after != 0 && now_ms() >= worker->retry_ms)
		worker->after = 0;
	const int found = find_next(worker, &version, &err);
	if (found != 1)
		return 0;
	if (derive_work(worker->store, version, &worker->pace, &outcome, &err) != 0) {
		tell(worker, "derive_failed", version, &err);
		worker->after = version;
		worker->retry_ms = now_ms() + RETRY_MS;
		return 1;
	}
	if (outcome.is_swapped) {
		metrics_add(store_metrics(worker->store), METRIC_DERIVED_SWAPPED, 1);
		metrics_add(store_metrics(worker->store), METRIC_DERIVED_BYTES_SAVED, (int64_t)outcome.bytes_saved);
	}
	return 1;
}

static int apply_prune(struct change *const change, struct db *const db, struct error *const err)
{
	(void)change;
	return derive_series_prune(db, err);
}

static void *run(void *const argument)
{
	struct derive_worker *const worker = argument;
	lock_enter(&worker->lock);
	while (!worker->stopping) {
		const bool idles = worker->quiescing || !worker->options.enabled;
		lock_leave(&worker->lock);
		const bool found = !idles && work_once(worker) == 1;
		lock_enter(&worker->lock);
		if (!found && !worker->stopping)
			lock_wait_for(&worker->lock, &worker->wake, worker->options.interval_ms > 0 ? worker->options.interval_ms : INTERVAL_MS);
	}
	lock_leave(&worker->lock);
	return NULL;
}

struct derive_worker *derive_worker_start(struct store *const store, const struct derive_options *const options)
{
	struct derive_worker *const worker = memory_new(sizeof(*worker));
	struct change prune = {.apply = apply_prune};
	struct error ignored;
	worker->store = store;
	worker->options = *options;
	worker->pace = (struct derive_pace){spend, worker};
	lock_init(&worker->lock, LOCK_CONTROL);
	lock_condition_init(&worker->wake);
	if (options->enabled)
		(void)committer_run(store_committer(store), &prune, &ignored); /* else at the next start */
	lock_thread_start(&worker->thread, "derive", run, worker);
	return worker;
}

void derive_worker_quiesce(struct derive_worker *const worker)
{
	lock_enter(&worker->lock);
	worker->quiescing = true;
	lock_broadcast(&worker->wake);
	lock_leave(&worker->lock);
}

void derive_worker_stop(struct derive_worker *const worker)
{
	if (worker == NULL)
		return;
	lock_enter(&worker->lock);
	worker->quiescing = true;
	worker->stopping = true;
	lock_broadcast(&worker->wake);
	lock_leave(&worker->lock);
	pthread_join(worker->thread, NULL);
	lock_condition_release(&worker->wake);
	lock_release(&worker->lock);
	free(worker);
}
