/* A round runs the queued orders, then walks the current versions without a hash, BATCH at a time
 * in the order of their commits. Orders come first because a client waits for them: they also run
 * between two batches and while a large version is decoded. For RETRY_MS after a failure the walk
 * begins behind the failed version, so that it holds up no later one. */
#include "storage/files/file_hash_worker.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/store.h"
#include "storage/files/file_hash_find.h"
#include "storage/versions/derive_waiting.h"

enum {
	INTERVAL_MS = 1000,
	RETRY_MS = 10 * 60 * 1000,
	SETTLED_MS = 60 * 1000, /* younger derived versions wait */
	BATCH = 64,
	TRIES = 4 /* for a version whose contents are replaced meanwhile */
};
_Static_assert((int)BATCH <= (int)FILE_HASHES_MAX, "a batch is one change");

struct file_hash_worker {
	struct store *store;
	struct worker_thread thread;
	struct file_hash_order *first; /* guarded by the thread's lock */
	struct file_hash_order *last;  /* guarded by the thread's lock */
	/* Only the thread uses what follows. */
	struct work_pace pace;  /* for its own work */
	struct work_pace haste; /* for orders */
	/* The version that failed last, 0: none. Until retry_ms (monotonic) the walk begins behind
	 * it. */
	int64_t failed;
	int64_t retry_ms;
};

static int64_t file_hash_worker_round(void *owner);
static void run_orders(struct file_hash_worker *worker);
static struct file_hash_order *take_order(struct file_hash_worker *worker, bool *out_is_refused);
static void walk(struct file_hash_worker *worker);
static void note(const struct file_hash_worker *worker, enum work_state state);
static void give_batch(struct file_hash_worker *worker, const int64_t *versions, size_t count);
static int find(struct file_hash_worker *worker, int64_t version, struct file_hash_found *out,
	struct error *err);
static bool is_young(const struct file_hash_worker *worker, int64_t modified_ms);
static void put_off(struct file_hash_worker *worker, int64_t version, const struct error *err);
static void file_hash_worker_last(void *owner);
static bool file_hash_worker_spend(void *owner, size_t bytes);
static bool file_hash_worker_hasten(void *owner, size_t bytes);

void file_hash_worker_order(struct file_hash_worker *worker, struct file_hash_order *order)
{
	ASSERT(order->run != NULL);
	order->next = NULL;
	lock_enter(&worker->thread.lock);
	const bool is_refused = worker_thread_is_stopping(&worker->thread);
	if (!is_refused) {
		*(worker->last != NULL ? &worker->last->next : &worker->first) = order;
		worker->last = order;
		worker_thread_wake_held(&worker->thread);
	}
	lock_leave(&worker->thread.lock);
	if (is_refused)
		order->run(order, worker, true);
}

int file_hash_worker_give(struct file_hash_worker *worker, int64_t version, struct error *err)
{
	struct file_hash_facts facts = {.state = FILE_HASH_FOUND};
	for (unsigned i = 0; i < TRIES && facts.state == FILE_HASH_FOUND; i++)
		if (file_hash_find(worker->store, version, &worker->haste, &facts, err) != 0 ||
			(facts.state == FILE_HASH_FOUND &&
				file_hash_write(worker->store, &facts.found, 1, err) != 0))
			return -1;
	return 0; /* the last look found it settled */
}

struct file_hash_worker *file_hash_worker_start(struct store *store)
{
	static const struct worker_thread_plan plan = {.name = "file hash",
		.round = file_hash_worker_round,
		.last = file_hash_worker_last};
	struct file_hash_worker *const worker = memory_new(sizeof(*worker));
	worker->store = store;
	worker->pace = (struct work_pace){file_hash_worker_spend, worker};
	worker->haste = (struct work_pace){file_hash_worker_hasten, worker};
	work_notes_set(store_work_notes(store), WORK_FILE_HASH, WORK_RESTING, "%s", "");
	worker_thread_start(&worker->thread, &plan, worker);
	store_set_worker(store, STORE_FILE_HASH_WORK, &worker->thread);
	return worker;
}

void file_hash_worker_quiesce(struct file_hash_worker *worker)
{
	worker_thread_quiesce(&worker->thread);
}

void file_hash_worker_stop(struct file_hash_worker *worker)
{
	if (worker == NULL)
		return;
	store_set_worker(worker->store, STORE_FILE_HASH_WORK, NULL);
	worker_thread_stop(&worker->thread);
	ASSERT(worker->first == NULL); /* the thread's last act refused them */
	worker_thread_release(&worker->thread);
	free(worker);
}

static int64_t file_hash_worker_round(void *owner)
{
	struct file_hash_worker *const worker = owner;
	run_orders(worker);
	if (store_takes_work(worker->store))
		walk(worker);
	return INTERVAL_MS;
}

static void run_orders(struct file_hash_worker *worker)
{
	struct file_hash_order *order;
	bool is_refused;
	while ((order = take_order(worker, &is_refused)) != NULL)
		order->run(order, worker, is_refused); /* may free the order */
}

static struct file_hash_order *take_order(struct file_hash_worker *worker, bool *out_is_refused)
{
	lock_enter(&worker->thread.lock);
	struct file_hash_order *const order = worker->first;
	if (order != NULL)
		worker->first = order->next;
	if (worker->first == NULL)
		worker->last = NULL;
	*out_is_refused = worker_thread_is_stopping(&worker->thread);
	lock_leave(&worker->thread.lock);
	return order;
}

static void walk(struct file_hash_worker *worker)
{
	int64_t versions[BATCH];
	struct error ignored;
	if (worker->failed != 0 && clock_monotonic_ms() >= worker->retry_ms)
		worker->failed = 0;
	int64_t after = worker->failed;
	size_t count = BATCH;
	while (count == BATCH && !worker_thread_is_stopping(&worker->thread)) {
		if (file_hash_lacking(worker->store, after, versions, BATCH, &count, &ignored) !=
				0 ||
			count == 0)
			return;
		note(worker, WORK_WORKING);
		give_batch(worker, versions, count);
		note(worker, WORK_RESTING);
		after = versions[count - 1];
		run_orders(worker);
	}
}

static void note(const struct file_hash_worker *worker, enum work_state state)
{
	work_notes_set(store_work_notes(worker->store), WORK_FILE_HASH, state, "%s",
		state == WORK_WORKING ? "finds the Xet file hashes of new objects" : "");
}

/* Finds the hashes of these versions and writes them in one change. */
static void give_batch(struct file_hash_worker *worker, const int64_t *versions, size_t count)
{
	struct file_hash_found found[BATCH];
	struct error err = {0};
	size_t used = 0;
	ASSERT(count >= 1 && count <= BATCH);
	for (size_t i = 0; i < count; i++) {
		const int got = !worker_thread_is_stopping(&worker->thread)
			? find(worker, versions[i], &found[used], &err)
			: 0;
		if (got < 0)
			put_off(worker, versions[i], &err);
		used += got == 1;
	}
	if (used == 0)
		return;
	if (file_hash_write(worker->store, found, used, &err) != 0)
		put_off(worker, versions[count - 1], &err);
	else
		metrics_add(store_metrics(worker->store), METRIC_FILE_HASHES, (int64_t)used);
}

/* 1: `out` has a hash to write; 0: nothing to do now; -1: the version failed. */
static int find(struct file_hash_worker *worker, int64_t version, struct file_hash_found *out,
	struct error *err)
{
	struct file_hash_facts facts;
	if (file_hash_find(worker->store, version, NULL, &facts, err) != 0)
		return -1;
	if (facts.state == FILE_HASH_DECODES) {
		if (is_young(worker, facts.modified_ms))
			return 0;
		if (file_hash_find(worker->store, version, &worker->pace, &facts, err) != 0)
			return -1;
	}
	*out = facts.found;
	return facts.state == FILE_HASH_FOUND;
}

static bool is_young(const struct file_hash_worker *worker, int64_t modified_ms)
{
	return store_now_ms(worker->store) - modified_ms < SETTLED_MS;
}

static void put_off(struct file_hash_worker *worker, int64_t version, const struct error *err)
{
	struct log *const log = store_log(worker->store);
	const struct log_field field = log_number("version", version);
	worker->failed = version;
	worker->retry_ms = clock_monotonic_ms() + RETRY_MS;
	if (log == NULL || err->kind == ERROR_BUSY)
		return;
	log_event(log, LOG_WARNING, NULL, "file_hash_failed", &field, 1);
	log_failure(log, LOG_WARNING, NULL, "file_hash_failed", err);
}

/* The thread is stopping by now, so the orders are refused. */
static void file_hash_worker_last(void *owner)
{
	run_orders(owner);
}

/* Runs orders too, which must not wait until a large version is decoded. */
static bool file_hash_worker_spend(void *owner, size_t bytes)
{
	struct file_hash_worker *const worker = owner;
	run_orders(worker);
	return worker_thread_spend(
		&worker->thread, bytes, store_parts(worker->store)->derive->bytes_per_second);
}

static bool file_hash_worker_hasten(void *owner, size_t bytes)
{
	const struct file_hash_worker *const worker = owner;
	(void)bytes;
	return !worker_thread_is_stopping(&worker->thread);
}
