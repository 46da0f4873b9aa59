/* The thread chooses events, senders send them. A free sender goes to the account that has the
 * fewest senders, among equal accounts to the next by turns, and there to the event that is due
 * first. So a receiver that is slow, or never ends its answer, costs only the senders of its own
 * account. */
#include "storage/step_jobs/webhook_worker.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/core/store.h"
#include "storage/run_tables/webhook_row.h"
#include "storage/runs/webhook.h"
#include "storage/step_jobs/webhook_sender.h"

enum {
	INTERVAL_MS = 1000,
	SENDERS = 16,
	SENDERS_OF_ONE_ACCOUNT = 2,
	EVENT_ARENA_BYTES = 64 * 1024
};

struct webhook_worker {
	struct store *store;
	struct worker_thread thread;
	struct webhook_sender *senders[SENDERS];
	int64_t last_account; /* whose turn was the last; used by the thread only */
};

/* The runs whose events the senders have. They are looked up before the catalog is read: an event
 * that is settled meanwhile is at worst left for the next round, never sent twice. */
struct busy_senders {
	struct webhook_run of[SENDERS];
	size_t free;
};

struct choice {
	struct webhook_run run;
	size_t senders; /* that its account has already */
	uint64_t turn;  /* how far its account is from its turn: 0 is next */
	struct webhook_event event;
	struct arena *arena; /* has the event's body; NULL: nothing was found */
};

static int64_t webhook_worker_round(void *owner);
static int run_round(struct webhook_worker *worker, struct error *err);
static void look_at_senders(struct webhook_worker *worker, struct busy_senders *out);
static int choose(const struct webhook_worker *worker, struct db *db,
	const struct busy_senders *busy, struct choice *out, struct error *err);
static int consider(const struct webhook_worker *worker, struct db *db,
	const struct busy_senders *busy, const struct webhook_run *run, struct choice *best,
	struct error *err);
static size_t count_busy(const struct busy_senders *busy, int64_t account);
static bool is_busy_with(const struct busy_senders *busy, int64_t run);
static bool account_comes_before(const struct choice *one, const struct choice *other);
static bool is_due_before(const struct webhook_event *one, const struct webhook_event *other);
static void give(
	struct webhook_worker *worker, struct busy_senders *busy, const struct choice *choice);
static void webhook_worker_wake(void *owner);

struct webhook_worker *webhook_worker_start(struct store *store)
{
	static const struct worker_thread_plan plan = {
		.name = "webhooks", .round = webhook_worker_round};
	if (store_parts(store)->webhooks->host_count == 0)
		return NULL;
	struct webhook_worker *const worker = memory_new(sizeof(*worker));
	const struct webhook_sender_plan sender = {
		.store = store, .freed = webhook_worker_wake, .owner = worker};
	worker->store = store;
	for (size_t i = 0; i < SENDERS; i++)
		worker->senders[i] = webhook_sender_start(&sender);
	worker_thread_start(&worker->thread, &plan, worker);
	return worker;
}

void webhook_worker_stop(struct webhook_worker *worker)
{
	if (worker == NULL)
		return;
	worker_thread_stop(&worker->thread);
	for (size_t i = 0; i < SENDERS; i++)
		webhook_sender_quiesce(worker->senders[i]);
	for (size_t i = 0; i < SENDERS; i++)
		webhook_sender_stop(worker->senders[i]);
	worker_thread_release(&worker->thread);
	free(worker);
}

static int64_t webhook_worker_round(void *owner)
{
	struct webhook_worker *const worker = owner;
	struct error err = {0};
	const int result = store_takes_work(worker->store) ? run_round(worker, &err) : 0;
	struct log *const log = store_log(worker->store);
	if (result < 0 && err.kind != ERROR_BUSY && log != NULL)
		log_failure(log, LOG_WARNING, NULL, "webhooks", &err);
	return INTERVAL_MS;
}

static int run_round(struct webhook_worker *worker, struct error *err)
{
	struct busy_senders busy;
	struct choice choice;
	int found = 1;
	look_at_senders(worker, &busy);
	struct db *const db = store_reader_take(worker->store, err);
	if (db == NULL)
		return -1;
	while (busy.free > 0 && (found = choose(worker, db, &busy, &choice, err)) == 1)
		give(worker, &busy, &choice);
	store_reader_give(worker->store, db);
	return found < 0 ? -1 : 0;
}

static void look_at_senders(struct webhook_worker *worker, struct busy_senders *out)
{
	out->free = 0;
	for (size_t i = 0; i < SENDERS; i++)
		out->free += webhook_sender_is_free(worker->senders[i], &out->of[i]);
}

static int choose(const struct webhook_worker *worker, struct db *db,
	const struct busy_senders *busy, struct choice *out, struct error *err)
{
	struct webhook_run run = {0};
	int found = 1;
	*out = (struct choice){0};
	while (found == 1 && !worker_thread_is_stopping(&worker->thread)) {
		found = webhook_row_next_run(db, run.run, &run, err);
		if (found == 1 && consider(worker, db, busy, &run, out, err) != 0)
			found = -1;
	}
	if (found < 0 && out->arena != NULL)
		arena_free(out->arena);
	return found < 0 ? -1 : out->arena != NULL;
}

/* One event of a run at a time: the next one is looked for when this one is settled. */
static int consider(const struct webhook_worker *worker, struct db *db,
	const struct busy_senders *busy, const struct webhook_run *run, struct choice *best,
	struct error *err)
{
	struct choice next = {.run = *run,
		.senders = count_busy(busy, run->account),
		.turn = (uint64_t)run->account - (uint64_t)worker->last_account - 1};
	if (is_busy_with(busy, run->run) || next.senders >= SENDERS_OF_ONE_ACCOUNT ||
		(best->arena != NULL && account_comes_before(best, &next)))
		return 0;
	next.arena = arena_new(EVENT_ARENA_BYTES);
	const int found = webhook_row_find_due(
		db, run->run, store_now_ms(worker->store), next.arena, &next.event, err);
	if (found == 1 &&
		(best->arena == NULL || account_comes_before(&next, best) ||
			is_due_before(&next.event, &best->event))) {
		const struct choice worse = *best;
		*best = next;
		next = worse;
	}
	if (next.arena != NULL)
		arena_free(next.arena);
	return found < 0 ? -1 : 0;
}

static size_t count_busy(const struct busy_senders *busy, int64_t account)
{
	size_t count = 0;
	for (size_t i = 0; i < SENDERS; i++)
		count += busy->of[i].run != 0 && busy->of[i].account == account;
	return count;
}

static bool is_busy_with(const struct busy_senders *busy, int64_t run)
{
	for (size_t i = 0; i < SENDERS; i++)
		if (busy->of[i].run == run)
			return true;
	return false;
}

static bool account_comes_before(const struct choice *one, const struct choice *other)
{
	return one->senders != other->senders ? one->senders < other->senders
					      : one->turn < other->turn;
}

static bool is_due_before(const struct webhook_event *one, const struct webhook_event *other)
{
	return one->due_ms != other->due_ms ? one->due_ms < other->due_ms : one->id < other->id;
}

static void give(
	struct webhook_worker *worker, struct busy_senders *busy, const struct choice *choice)
{
	size_t i = 0;
	ASSERT(busy->free > 0 && choice->arena != NULL);
	while (busy->of[i].run != 0) {
		i++;
		ASSERT(i < SENDERS);
	}
	busy->of[i] = choice->run;
	busy->free--;
	worker->last_account = choice->run.account;
	webhook_sender_give(worker->senders[i], &choice->run, &choice->event, choice->arena);
}

static void webhook_worker_wake(void *owner)
{
	struct webhook_worker *const worker = owner;
	worker_thread_wake(&worker->thread);
}
