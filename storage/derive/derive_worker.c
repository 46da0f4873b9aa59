/* The table is the queue. After a failure `after` lets the worker pass the failed version and what
 * waits before it, until retry_ms; then it begins again from the front. */
#include "storage/derive/derive_worker.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/derive/derive_series.h"
#include "storage/derive/derive_work.h"
#include "storage/versions/derive_waiting.h"

enum { INTERVAL_MS = 1000, RETRY_MS = 60 * 1000 };

struct derive_worker {
	struct store *store;
	struct derive_options options;
	struct worker_thread thread;
	/* used by the thread only: */
	struct work_pace pace;
	int64_t after;    /* versions up to this one are left for later; 0: none */
	int64_t retry_ms; /* when they are tried again */
};

static int64_t derive_round(void *owner);
static int work_once(struct derive_worker *worker);
static void note(const struct derive_worker *worker, enum work_state state);
static int find_next(struct derive_worker *worker, int64_t *out_version, struct error *err);
static void log_failed_version(const struct derive_worker *worker, const char *event,
	int64_t version, const struct error *err);
static int derive_apply_prune(struct change *change, struct db *db, struct error *err);
static bool derive_spend(void *owner, size_t bytes);

struct derive_worker *derive_worker_start(struct store *store, const struct derive_options *options)
{
	static const struct worker_thread_plan plan = {.name = "derive", .round = derive_round};
	struct derive_worker *const worker = memory_new(sizeof(*worker));
	struct change prune = {.apply = derive_apply_prune};
	struct error ignored;
	ASSERT(store != NULL && options != NULL);
	worker->store = store;
	worker->options = *options;
	worker->pace = (struct work_pace){derive_spend, worker};
	if (options->enabled)
		(void)committer_run(
			store_committer(store), &prune, &ignored); /* else the next start does */
	note(worker, WORK_RESTING);
	worker_thread_start(&worker->thread, &plan, worker);
	return worker;
}

void derive_worker_quiesce(struct derive_worker *worker)
{
	ASSERT(worker != NULL);
	worker_thread_quiesce(&worker->thread);
}

void derive_worker_stop(struct derive_worker *worker)
{
	if (worker == NULL)
		return;
	worker_thread_stop(&worker->thread);
	worker_thread_release(&worker->thread);
	free(worker);
}

static int64_t derive_round(void *owner)
{
	struct derive_worker *const worker = owner;
	const bool found = worker->options.enabled && store_takes_work(worker->store) &&
		work_once(worker) == 1;
	return found                              ? 0
		: worker->options.interval_ms > 0 ? worker->options.interval_ms
						  : INTERVAL_MS;
}

/* 1: one was settled, put off or left for later; 0: none waits, or none could be read. */
static int work_once(struct derive_worker *worker)
{
	struct error err = {0};
	struct derive_outcome outcome;
	int64_t version = 0;
	if (worker->after != 0 && clock_monotonic_ms() >= worker->retry_ms)
		worker->after = 0;
	const int found = find_next(worker, &version, &err);
	if (found != 1)
		return 0;
	note(worker, WORK_WORKING);
	const int result = derive_work(worker->store, version, &worker->pace, &outcome, &err);
	note(worker, WORK_RESTING);
	if (result != 0) {
		log_failed_version(worker, "derive_failed", version, &err);
		worker->after = version;
		worker->retry_ms = clock_monotonic_ms() + RETRY_MS;
		return 1;
	}
	if (outcome.is_swapped) {
		metrics_add(store_metrics(worker->store), METRIC_DERIVED_SWAPPED, 1);
		metrics_add(store_metrics(worker->store), METRIC_DERIVED_BYTES_SAVED,
			(int64_t)outcome.bytes_saved);
	}
	return 1;
}

static void note(const struct derive_worker *worker, enum work_state state)
{
	work_notes_set(store_work_notes(worker->store), WORK_DERIVE,
		worker->options.enabled ? state : WORK_OFF, "%s",
		state == WORK_WORKING ? "compares an object with earlier checkpoints" : "");
}

static int find_next(struct derive_worker *worker, int64_t *out_version, struct error *err)
{
	struct db *const db = store_reader_take(worker->store, err);
	int64_t waiting = 0;
	if (db == NULL)
		return -1;
	int found = derive_waiting_next(
		db, worker->after, store_now_ms(worker->store), out_version, err);
	if ((found == 1 || worker->after != 0) && derive_waiting_count(db, &waiting, err) != 0)
		found = -1;
	store_reader_give(worker->store, db);
	metrics_set(store_metrics(worker->store), METRIC_DERIVE_WAITING, waiting);
	return found;
}

static void log_failed_version(const struct derive_worker *worker, const char *event,
	int64_t version, const struct error *err)
{
	struct log *const log = store_log(worker->store);
	const struct log_field field = log_number("version", version);
	if (log == NULL || err->kind == ERROR_BUSY)
		return;
	log_event(log, LOG_WARNING, NULL, event, &field, 1);
	log_failure(log, LOG_WARNING, NULL, event, err);
}

static int derive_apply_prune(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	return derive_series_prune(db, err);
}

static bool derive_spend(void *owner, size_t bytes)
{
	struct derive_worker *const worker = owner;
	return worker_thread_spend(&worker->thread, bytes, worker->options.bytes_per_second);
}
