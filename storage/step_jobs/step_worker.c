/* The catalog is the queue. Requested jobs come before it, from a list in memory alone: a caller
 * that still wants its job after a restart requests it again. A requested job and one from the
 * catalog take turns. Among several jobs, one of the account that was served longest ago comes
 * first. A job that failed is put aside until its time, and is passed over until then. */
#include "storage/step_jobs/step_worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "base/thread/worker_thread.h"
#include "storage/core/store.h"
#include "storage/run_tables/run_label.h"
#include "storage/run_tables/run_row.h"
#include "storage/step_jobs/step_turns.h"

enum {
	ASKED_MAX = 64,
	ASIDE_MAX = 64,
	CHOICE_MOST = 1024, /* jobs of a kind that are looked at for the best account */
	ASIDE_MS = 60 * 1000
};

/* A job that failed, when it may be tried again, and why it failed. */
struct aside {
	struct step_job job;
	int64_t until_ms;
	struct error error;
};

struct step_worker {
	struct step_work work; /* first: step_worker_spend finds the rest by it */
	struct step_worker_options options;
	const struct clock_source *clock; /* real time, whatever the store's clock says */
	struct worker_thread thread;
	struct lock_condition settled;
	/* guarded by the thread's lock, as all below; a running job stays the first one */
	struct step_job asked[ASKED_MAX];
	size_t asked_count;
	struct aside aside[ASIDE_MAX];
	size_t aside_count;
	bool settling;           /* a caller waits in step_worker_settle */
	bool served_asked;       /* the last job was a requested one; used by the thread only */
	struct step_turns turns; /* used by the thread only */
};

static int64_t step_worker_round(void *owner);
static int64_t review_aside(struct step_worker *worker);
static void work_through(struct step_worker *worker, bool looks);
static int next_job(struct step_worker *worker, bool looks, struct step_job *out, bool *out_asked,
	struct error *err);
static bool find_asked(struct step_worker *worker, struct step_job *out);
static size_t choose_asked(const struct step_worker *worker, struct db *db, size_t count);
static uint64_t last_served(
	const struct step_worker *worker, struct db *db, const struct step_job *job);
static int find_job(struct step_worker *worker, struct step_job *out, struct error *err);
static int find_of_kind(struct step_worker *worker, struct db *db, const struct step_job_kind *kind,
	uint64_t *best, struct step_job *out, struct error *err);
static int find_after(struct step_worker *worker, struct db *db, const struct step_job_kind *kind,
	int64_t after, struct step_job *out, struct error *err);
static const struct aside *find_aside(struct step_worker *worker, const struct step_job *job);
static bool same_job(const struct step_job *a, const struct step_job *b);
static void run_job(struct step_worker *worker, const struct step_job *job, bool is_asked);
static void note_rest(const struct step_worker *worker);
static void count_turn(struct step_worker *worker, const struct step_job *job);
static int64_t find_account(const struct step_worker *worker, const struct step_job *job);
static void put_aside(
	struct step_worker *worker, const struct step_job *job, const struct error *err);
static void log_job_failure(
	struct step_worker *worker, const struct step_job *job, struct error *err);
static void end_asked(struct step_worker *worker);
static int64_t sleep_ms(struct step_worker *worker);
static void step_worker_end_settling(void *owner);
static bool step_worker_spend(struct step_work *work, uint64_t bytes);
static int queue_asked(struct step_worker *worker, const struct step_job *job, struct error *err);
static bool has_place(const struct step_worker *worker, const struct step_job *job);

struct step_worker *step_worker_start(
	struct store *store, const struct step_worker_options *options)
{
	const struct worker_thread_plan plan = {.name = "step_worker",
		.first_ms = options->enabled ? 0 : WORKER_THREAD_UNTIL_WOKEN,
		.round = step_worker_round,
		.last = step_worker_end_settling};
	struct step_worker *const worker = memory_new(sizeof(*worker));
	ASSERT(store != NULL && options->aside_ms >= 0);
	worker->options = *options;
	if (worker->options.aside_ms == 0)
		worker->options.aside_ms = ASIDE_MS;
	worker->work = (struct step_work){.store = store,
		.threads = options->threads == 0 ? 1 : options->threads,
		.spend = step_worker_spend};
	worker->clock = clock_system();
	lock_condition_init(&worker->settled);
	note_rest(worker);
	worker_thread_start(&worker->thread, &plan, worker);
	store_set_worker(store, STORE_STEP_WORK, &worker->thread);
	return worker;
}

void step_worker_quiesce(struct step_worker *worker)
{
	ASSERT(worker != NULL);
	worker_thread_quiesce(&worker->thread);
}

void step_worker_stop(struct step_worker *worker)
{
	if (worker == NULL)
		return;
	worker_thread_stop(&worker->thread);
}

void step_worker_free(struct step_worker *worker)
{
	if (worker == NULL)
		return;
	ASSERT(!worker->settling);
	store_set_worker(worker->work.store, STORE_STEP_WORK, NULL);
	worker_thread_release(&worker->thread);
	lock_condition_release(&worker->settled);
	free(worker);
}

int step_worker_ask(struct step_worker *worker, const struct step_job *job, struct error *err)
{
	ASSERT(job->kind != NULL && job->kind->run != NULL);
	struct step_job asked = *job;
	asked.account = find_account(worker, job);
	lock_enter(&worker->thread.lock);
	const int result = queue_asked(worker, &asked, err);
	lock_leave(&worker->thread.lock);
	if (result == 0)
		worker_thread_wake(&worker->thread);
	return result;
}

struct span step_worker_topic(void)
{
	return span_text("asked");
}

void step_worker_settle(struct step_worker *worker, size_t *out_failed)
{
	lock_enter(&worker->thread.lock);
	worker->settling = !worker_thread_is_stopping(&worker->thread);
	lock_leave(&worker->thread.lock);
	worker_thread_wake(&worker->thread);
	lock_enter(&worker->thread.lock);
	while (worker->settling)
		lock_wait(&worker->thread.lock, &worker->settled);
	*out_failed = worker->aside_count;
	lock_leave(&worker->thread.lock);
}

static int64_t step_worker_round(void *owner)
{
	struct step_worker *const worker = owner;
	lock_enter(&worker->thread.lock);
	const bool settles = worker->settling;
	review_aside(worker);
	lock_leave(&worker->thread.lock);
	work_through(worker,
		(worker->options.enabled && store_takes_work(worker->work.store)) || settles);
	lock_enter(&worker->thread.lock);
	if (settles && !worker->thread.woken) {
		worker->settling = false;
		lock_broadcast(&worker->settled);
	}
	const int64_t ms = sleep_ms(worker);
	lock_leave(&worker->thread.lock);
	return ms;
}

/* Removes the jobs whose time has come from those put aside. Returns the milliseconds until the
 * next one's time; 0 when there is none. */
static int64_t review_aside(struct step_worker *worker)
{
	const int64_t now = worker->clock->monotonic_ms(worker->clock);
	int64_t next = 0;
	lock_assert_held(&worker->thread.lock);
	for (size_t i = worker->aside_count; i-- > 0;) {
		const int64_t left = worker->aside[i].until_ms - now;
		if (left <= 0)
			worker->aside[i] = worker->aside[--worker->aside_count];
		else if (next == 0 || left < next)
			next = left;
	}
	return next;
}

static void work_through(struct step_worker *worker, bool looks)
{
	struct step_job job;
	struct error err = {0};
	bool is_asked = false;
	int found = 1;
	while (found == 1 && !worker_thread_is_stopping(&worker->thread)) {
		found = next_job(worker, looks, &job, &is_asked, &err);
		worker->served_asked = is_asked;
		if (found == 1)
			run_job(worker, &job, is_asked);
	}
	if (found < 0)
		log_job_failure(worker, NULL, &err); /* the next publish makes it look again */
}

/* 1 with the next job, and *out_asked telling whether it was requested; 0: nothing to do; -1. After
 * a requested job it is the catalog's turn, so that readers with many requests do not keep proofs
 * waiting. */
static int next_job(struct step_worker *worker, bool looks, struct step_job *out, bool *out_asked,
	struct error *err)
{
	lock_enter(&worker->thread.lock);
	/* no room is left to put the next failure aside */
	const bool is_full = worker->aside_count == ASIDE_MAX;
	lock_leave(&worker->thread.lock);
	const bool is_catalogs = looks && !is_full && worker->served_asked;
	*out_asked = !is_catalogs && find_asked(worker, out);
	if (*out_asked)
		return 1;
	const int found = looks && !is_full ? find_job(worker, out, err) : 0;
	*out_asked = found == 0 && is_catalogs && find_asked(worker, out);
	return *out_asked ? 1 : found;
}

/* Moves the requested job whose turn it is to the front, where it stays while it runs. */
static bool find_asked(struct step_worker *worker, struct step_job *out)
{
	struct error ignored = {0};
	lock_enter(&worker->thread.lock);
	const size_t count = worker->asked_count;
	lock_leave(&worker->thread.lock);
	if (count == 0)
		return false;
	struct db *const db = store_reader_take(worker->work.store, &ignored);
	const size_t chosen = db != NULL ? choose_asked(worker, db, count) : 0;
	store_reader_give(worker->work.store, db);
	lock_enter(&worker->thread.lock);
	ASSERT(chosen < worker->asked_count);
	*out = worker->asked[chosen];
	memmove(&worker->asked[1], &worker->asked[0], chosen * sizeof(worker->asked[0]));
	worker->asked[0] = *out;
	lock_leave(&worker->thread.lock);
	return true;
}

/* Reads the first `count` requested jobs without the lock: other threads only add behind them. */
static size_t choose_asked(const struct step_worker *worker, struct db *db, size_t count)
{
	uint64_t best = UINT64_MAX;
	size_t chosen = 0;
	ASSERT(count > 0 && count <= ASKED_MAX);
	for (size_t i = 0; i < count; i++) {
		const uint64_t served = last_served(worker, db, &worker->asked[i]);
		if (served < best) {
			best = served;
			chosen = i;
		}
	}
	return chosen;
}

/* When the job's account was served last. A run whose account is unknown counts as never served:
 * its job will say why. */
static uint64_t last_served(
	const struct step_worker *worker, struct db *db, const struct step_job *job)
{
	struct error ignored = {0};
	int64_t account = 0;
	return run_row_find_account(db, job->run, &account, &ignored) == 1
		? step_turns_last(&worker->turns, account)
		: 0;
}

/* The job whose account was served longest ago; among those of one account the first job of the
 * first kind. 1, 0, -1. */
static int find_job(struct step_worker *worker, struct step_job *out, struct error *err)
{
	struct db *const db = store_reader_take(worker->work.store, err);
	if (db == NULL)
		return -1;
	uint64_t best = UINT64_MAX;
	int result = 0;
	for (size_t i = 0; step_job_kinds[i] != NULL && result == 0 && best > 0; i++)
		result = find_of_kind(worker, db, step_job_kinds[i], &best, out, err);
	store_reader_give(worker->work.store, db);
	return result < 0 ? -1 : best != UINT64_MAX;
}

/* Looks at the first CHOICE_MOST jobs of a kind for one whose account was served before *best. If
 * there is one, it goes into *out, and its account's time into *best. 0, -1. */
static int find_of_kind(struct step_worker *worker, struct db *db, const struct step_job_kind *kind,
	uint64_t *best, struct step_job *out, struct error *err)
{
	struct step_job each = {.kind = kind};
	int found = 1;
	for (int i = 0; found == 1 && *best > 0 && i < CHOICE_MOST; i++) {
		found = find_after(worker, db, kind, each.id, &each, err);
		const uint64_t served = found == 1 ? last_served(worker, db, &each) : UINT64_MAX;
		if (served < *best) {
			*best = served;
			*out = each;
		}
	}
	return found < 0 ? -1 : 0;
}

/* The first job behind `after` that was not put aside: 1, 0, -1. */
static int find_after(struct step_worker *worker, struct db *db, const struct step_job_kind *kind,
	int64_t after, struct step_job *out, struct error *err)
{
	do {
		*out = (struct step_job){.kind = kind};
		const int found =
			kind->find_next == NULL ? 0 : kind->find_next(db, after, out, err);
		out->kind = kind;
		after = out->id;
		lock_enter(&worker->thread.lock);
		const bool passed = found == 1 && find_aside(worker, out) != NULL;
		lock_leave(&worker->thread.lock);
		if (!passed)
			return found;
	} while (!worker_thread_is_stopping(&worker->thread));
	return 0;
}

/* The entry of a job that was put aside; NULL when it was not. */
static const struct aside *find_aside(struct step_worker *worker, const struct step_job *job)
{
	lock_assert_held(&worker->thread.lock);
	for (size_t i = 0; i < worker->aside_count; i++)
		if (same_job(&worker->aside[i].job, job))
			return &worker->aside[i];
	return NULL;
}

static bool same_job(const struct step_job *a, const struct step_job *b)
{
	return a->kind == b->kind && a->id == b->id && a->from == b->from;
}

static void run_job(struct step_worker *worker, const struct step_job *job, bool is_asked)
{
	struct error err = {0};
	work_notes_set(store_work_notes(worker->work.store), WORK_PROOF, WORK_WORKING, "%s",
		job->kind->name);
	count_turn(worker, job);
	if (job->kind->run(&worker->work, job, &err) != 0 &&
		!worker_thread_is_stopping(&worker->thread)) {
		put_aside(worker, job, &err);
		log_job_failure(worker, job, &err);
	}
	if (is_asked)
		end_asked(worker);
	note_rest(worker);
}

/* A worker that is not enabled does what is asked of it. */
static void note_rest(const struct step_worker *worker)
{
	work_notes_set(store_work_notes(worker->work.store), WORK_PROOF,
		worker->options.enabled ? WORK_RESTING : WORK_OFF, "%s", "");
}

static void count_turn(struct step_worker *worker, const struct step_job *job)
{
	const int64_t account = find_account(worker, job);
	if (account != 0)
		step_turns_serve(&worker->turns, account);
}

/* 0 when the account is unknown. */
static int64_t find_account(const struct step_worker *worker, const struct step_job *job)
{
	struct error ignored = {0};
	int64_t account = 0;
	struct db *const db = store_reader_take(worker->work.store, &ignored);
	if (db != NULL && run_row_find_account(db, job->run, &account, &ignored) != 1)
		account = 0;
	store_reader_give(worker->work.store, db);
	return account;
}

static void put_aside(
	struct step_worker *worker, const struct step_job *job, const struct error *err)
{
	const int64_t until = worker->clock->monotonic_ms(worker->clock) + worker->options.aside_ms;
	lock_enter(&worker->thread.lock);
	if (find_aside(worker, job) == NULL && worker->aside_count < ASIDE_MAX)
		worker->aside[worker->aside_count++] = (struct aside){*job, until, *err};
	lock_leave(&worker->thread.lock);
}

static void log_job_failure(
	struct step_worker *worker, const struct step_job *job, struct error *err)
{
	struct log *const log = store_log(worker->work.store);
	if (job != NULL) {
		char run[RUN_LABEL_BYTES];
		run_label_format(worker->work.store, job->run, run);
		error_wrap(err, "background work '%s' on step %llu of run %s", job->kind->name,
			(unsigned long long)job->step, run);
	}
	if (log != NULL)
		log_failure(log, LOG_WARNING, NULL, "step_work_failed", err);
}

static void end_asked(struct step_worker *worker)
{
	lock_enter(&worker->thread.lock);
	ASSERT(worker->asked_count > 0);
	worker->asked_count--;
	for (size_t i = 0; i < worker->asked_count; i++)
		worker->asked[i] = worker->asked[i + 1];
	lock_leave(&worker->thread.lock);
	step_watch_published(
		store_step_watch(worker->work.store), span_of(NULL, 0), step_worker_topic());
}

/* How long until there may be work that no caller wakes the worker for. */
static int64_t sleep_ms(struct step_worker *worker)
{
	lock_assert_held(&worker->thread.lock);
	const size_t aside = worker->aside_count;
	const int64_t left = review_aside(worker);
	if (worker->asked_count > 0 || worker->aside_count < aside)
		return 0;
	return left > 0 ? left : WORKER_THREAD_UNTIL_WOKEN;
}

static void step_worker_end_settling(void *owner)
{
	struct step_worker *const worker = owner;
	lock_enter(&worker->thread.lock);
	worker->settling = false;
	lock_broadcast(&worker->settled);
	lock_leave(&worker->thread.lock);
}

static bool step_worker_spend(struct step_work *work, uint64_t bytes)
{
	struct step_worker *const worker = (struct step_worker *)work;
	return worker_thread_spend(&worker->thread, bytes, worker->options.bytes_per_second);
}

static int queue_asked(struct step_worker *worker, const struct step_job *job, struct error *err)
{
	lock_assert_held(&worker->thread.lock);
	review_aside(worker);
	const struct aside *const failed = find_aside(worker, job);
	if (failed != NULL) {
		*err = failed->error;
		return -1;
	}
	for (size_t i = 0; i < worker->asked_count; i++)
		if (same_job(&worker->asked[i], job))
			return 0;
	if (!has_place(worker, job) || worker_thread_is_stopping(&worker->thread))
		return error_set(err, ERROR_BUSY,
			"Too many jobs of this kind are requested, or the server is stopping. Ask again later.");
	ASSERT(worker->asked_count < ASKED_MAX);
	worker->asked[worker->asked_count++] = *job;
	return 0;
}

/* An account may take at most as many places as it leaves to others. */
static bool has_place(const struct step_worker *worker, const struct step_job *job)
{
	size_t own = 0;
	for (size_t i = 0; i < worker->asked_count; i++)
		own += worker->asked[i].account == job->account;
	return own < ASKED_MAX - worker->asked_count;
}
