/* The thread chooses, senders send. A sender that is free goes to the account that has the fewest,
 * of equal ones to the next by turns, and there to what is due first. So a receiver that is slow,
 * or never ends its answer, costs the senders of its own account. */
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
	int64_t last_account; /* whose turn was the last; the thread alone */
};

/* What the senders hold. It is looked up before the catalog is read, so that what they settle
 * meanwhile is at worst left for the next round, never sent twice. */
struct webhook_holds {
	struct webhook_run of[SENDERS];
	size_t free;
};

struct choice {
	struct webhook_run run;
	size_t held;   /* senders that its account has */
	uint64_t turn; /* how far its account is from having one: 0 is next */
	struct webhook_event event;
	struct arena *arena; /* of the event's body; NULL: nothing was found */
};

static int64_t one_round(void *owner);
static int work(struct webhook_worker *worker, struct error *err);
static void look_at_senders(struct webhook_worker *worker, struct webhook_holds *out);
static int choose(const struct webhook_worker *worker, struct db *db,
	const struct webhook_holds *holds, struct choice *out, struct error *err);
static int consider(const struct webhook_worker *worker, struct db *db,
	const struct webhook_holds *holds, const struct webhook_run *run, struct choice *best,
	struct error *err);
static size_t count_held(const struct webhook_holds *holds, int64_t account);
static bool is_held(const struct webhook_holds *holds, int64_t run);
static bool account_comes_before(const struct choice *one, const struct choice *other);
static bool is_due_before(const struct webhook_event *one, const struct webhook_event *other);
static void give(
	struct webhook_worker *worker, struct webhook_holds *holds, const struct choice *choice);
static void wake(void *owner);

struct webhook_worker *webhook_worker_start(struct store *store)
{
	static const struct worker_thread_plan plan = {.name = "webhooks", .round = one_round};
	if (store_parts(store)->webhooks->host_count == 0)
		return NULL;
	struct webhook_worker *const worker = memory_new(sizeof(*worker));
	const struct webhook_sender_plan sender = {.store = store, .freed = wake, .owner = worker};
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

static int64_t one_round(void *owner)
{
	struct webhook_worker *const worker = owner;
	struct error err = {0};
	const int result = store_takes_work(worker->store) ? work(worker, &err) : 0;
	struct log *const log = store_log(worker->store);
	if (result < 0 && err.kind != ERROR_BUSY && log != NULL)
		log_failure(log, LOG_WARNING, NULL, "webhooks", &err);
	return INTERVAL_MS;
}

static int work(struct webhook_worker *worker, struct error *err)
{
	struct webhook_holds holds;
	struct choice choice;
	int found = 1;
	look_at_senders(worker, &holds);
	struct db *const db = store_reader_take(worker->store, err);
	if (db == NULL)
		return -1;
	while (holds.free > 0 && (found = choose(worker, db, &holds, &choice, err)) == 1)
		give(worker, &holds, &choice);
	store_reader_give(worker->store, db);
	return found < 0 ? -1 : 0;
}

static void look_at_senders(struct webhook_worker *worker, struct webhook_holds *out)
{
	out->free = 0;
	for (size_t i = 0; i < SENDERS; i++)
		out->free += webhook_sender_is_free(worker->senders[i], &out->of[i]);
}

static int choose(const struct webhook_worker *worker, struct db *db,
	const struct webhook_holds *holds, struct choice *out, struct error *err)
{
	struct webhook_run run = {0};
	int found = 1;
	*out = (struct choice){0};
	while (found == 1 && !worker_thread_is_stopping(&worker->thread)) {
		found = webhook_row_next_run(db, run.run, &run, err);
		if (found == 1 && consider(worker, db, holds, &run, out, err) != 0)
			found = -1;
	}
	if (found < 0 && out->arena != NULL)
		arena_free(out->arena);
	return found < 0 ? -1 : out->arena != NULL;
}

/* One event of a run at a time: the next is looked for when it is settled. */
static int consider(const struct webhook_worker *worker, struct db *db,
	const struct webhook_holds *holds, const struct webhook_run *run, struct choice *best,
	struct error *err)
{
	struct choice next = {.run = *run,
		.held = count_held(holds, run->account),
		.turn = (uint64_t)run->account - (uint64_t)worker->last_account - 1};
	if (is_held(holds, run->run) || next.held >= SENDERS_OF_ONE_ACCOUNT ||
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

static size_t count_held(const struct webhook_holds *holds, int64_t account)
{
	size_t count = 0;
	for (size_t i = 0; i < SENDERS; i++)
		count += holds->of[i].run != 0 && holds->of[i].account == account;
	return count;
}

static bool is_held(const struct webhook_holds *holds, int64_t run)
{
	for (size_t i = 0; i < SENDERS; i++)
		if (holds->of[i].run == run)
			return true;
	return false;
}

static bool account_comes_before(const struct choice *one, const struct choice *other)
{
	return one->held != other->held ? one->held < other->held : one->turn < other->turn;
}

static bool is_due_before(const struct webhook_event *one, const struct webhook_event *other)
{
	return one->due_ms != other->due_ms ? one->due_ms < other->due_ms : one->id < other->id;
}

static void give(
	struct webhook_worker *worker, struct webhook_holds *holds, const struct choice *choice)
{
	size_t i = 0;
	while (holds->of[i].run != 0)
		i++;
	holds->of[i] = choice->run;
	holds->free--;
	worker->last_account = choice->run.account;
	webhook_sender_give(worker->senders[i], &choice->run, &choice->event, choice->arena);
}

static void wake(void *owner)
{
	struct webhook_worker *const worker = owner;
	worker_thread_wake(&worker->thread);
}
