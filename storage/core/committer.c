/* One batch is one transaction, and one sync of the shared pack serves all its changes:
 *
 *   queue --take--> place each --sync the shared pack--> BEGIN, pack records, each change under its savepoint --COMMIT--> done
 *                      |                    |                                                            |
 *                      change fails         +--------------- the whole batch fails -----------------------+
 *
 * Packs in a far place are not synced: rows of the batch keep what was appended
 * (pack_staged_row.h).
 *
 * If the batch fails, a change that was refused inside it gets the batch's error too: the refusal
 * may have depended on a neighbour that was rolled back. */
#include "storage/core/committer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/core/change_feed.h"
#include "storage/core/pack_row.h"
#include "storage/core/pack_staged_row.h"
#include "storage/core/run_feed.h"

enum { BATCH_MAX_CHANGES = 256, SHARED_RECORDS = 16 };
static const uint64_t WAL_RESTART_BYTES = UINT64_C(64) << 20;
static const uint64_t WAL_RETRY_BYTES = UINT64_C(8) << 20;

struct committer {
	struct committer_options options;
	struct db *db;
	struct pack_store *packs;
	struct metrics *metrics;
	pthread_t thread;
	struct lock lock;
	struct lock_condition arrived;
	struct lock_condition settled; /* of committer_run */
	struct change *first;          /* guarded by lock */
	struct change *last;           /* guarded by lock */
	bool is_stopping;              /* guarded by lock */
	/* the log, and the number of its frames, at the last COMMIT that was acknowledged */
	uint64_t noted_salt;
	uint32_t noted_frames;
	uint64_t restart_at; /* bytes of the log at which its next restart is tried */
	uint8_t *staging;    /* PACK_STAGED_BYTES; NULL: packs are synced, not staged */
};

struct batch {
	struct change *changes[BATCH_MAX_CHANGES];
	/* it failed before the transaction, and keeps its own error */
	bool unplaced[BATCH_MAX_CHANGES];
	size_t count;
	bool has_placed; /* at least one change has `place` */
	bool in_doubt;   /* COMMIT was tried and broke off */
	bool is_alone;   /* its one change runs outside of transactions */
};

/* A change that a thread waits for. It is queued in place of `inner`, and wakes the thread. */
struct awaited {
	struct change change; /* first */
	struct change *inner;
	struct committer *committer;
	bool is_done; /* guarded by the committer's lock */
};

static void *committer_main(void *argument);
static bool take_batch(struct committer *committer, struct batch *batch);
static void run_batch(struct committer *committer, struct batch *batch);
static void place_all(struct batch *batch);
static int commit_batch(struct committer *committer, struct batch *batch, struct error *err);
static int run_alone(struct committer *committer, struct change *change, struct error *err);
static int record_shared_packs(struct committer *committer, struct error *err);
static int stage_shared_packs(struct committer *committer, struct error *err);
static int apply_one(struct committer *committer, struct change *change, struct error *err);
static void settle_feed(struct committer *committer, bool committed);
static void tell_health(struct committer *committer, const struct batch *batch, bool committed,
	const struct error *err);
static bool has_changed(const struct batch *batch);
static void acknowledge(struct committer *committer);
static void fail_batch(struct batch *batch, const struct error *err);
static void settle(struct committer *committer, struct batch *batch);
static void relieve_wal(struct committer *committer);
static int committer_awaited_place(struct change *change, struct error *err);
static int committer_awaited_apply(struct change *change, struct db *db, struct error *err);
static int committer_awaited_alone(struct change *change, struct db *db, struct error *err);
static void committer_awaited_done(struct change *change);

struct committer *committer_start(const struct committer_options *options)
{
	ASSERT(options->db != NULL);
	struct committer *const committer = memory_new(sizeof(*committer));
	committer->options = *options;
	committer->db = options->db;
	committer->packs = options->packs;
	committer->metrics = options->metrics;
	committer->restart_at = WAL_RESTART_BYTES;
	if (committer->packs != NULL && pack_store_is_far(committer->packs))
		committer->staging = memory_new(PACK_STAGED_BYTES);
	lock_init(&committer->lock, LOCK_COMMIT_QUEUE);
	lock_condition_init(&committer->arrived);
	lock_condition_init(&committer->settled);
	lock_thread_start(&committer->thread, "committer", committer_main, committer);
	return committer;
}

void committer_stop(struct committer *committer)
{
	if (committer == NULL)
		return;
	lock_enter(&committer->lock);
	committer->is_stopping = true;
	lock_signal(&committer->arrived);
	lock_leave(&committer->lock);
	pthread_join(committer->thread, NULL);
	ASSERT(committer->first == NULL);
	db_close(committer->db);
	lock_condition_release(&committer->settled);
	lock_condition_release(&committer->arrived);
	lock_release(&committer->lock);
	free(committer->staging);
	free(committer);
}

void committer_submit(struct committer *committer, struct change *change)
{
	ASSERT(change->apply != NULL || change->alone != NULL);
	ASSERT(change->done != NULL);
	change->next = NULL;
	lock_enter(&committer->lock);
	const bool refused = committer->is_stopping;
	if (!refused) {
		if (committer->last != NULL)
			committer->last->next = change;
		else
			committer->first = change;
		committer->last = change;
		metrics_add(committer->metrics, METRIC_CHANGES_WAITING, 1);
		lock_signal(&committer->arrived);
	}
	lock_leave(&committer->lock);
	if (!refused)
		return;
	change->failed = true;
	change->in_doubt = false;
	error_set(&change->error, ERROR_BUSY, "The store is closing.");
	change->done(change);
}

int committer_run(struct committer *committer, struct change *change, struct error *err)
{
	struct awaited awaited = {.inner = change, .committer = committer};
	ASSERT(change->apply != NULL || change->alone != NULL);
	/* the committer would wait for itself */
	ASSERT(!pthread_equal(pthread_self(), committer->thread));
	awaited.change.place = change->place == NULL ? NULL : committer_awaited_place;
	awaited.change.apply = committer_awaited_apply;
	awaited.change.alone = change->alone == NULL ? NULL : committer_awaited_alone;
	awaited.change.done = committer_awaited_done;
	committer_submit(committer, &awaited.change);
	lock_enter(&committer->lock);
	while (!awaited.is_done)
		lock_wait(&committer->lock, &committer->settled);
	lock_leave(&committer->lock);
	change->failed = awaited.change.failed;
	change->in_doubt = awaited.change.in_doubt;
	if (!change->failed)
		return 0;
	change->error = awaited.change.error;
	*err = awaited.change.error;
	return -1;
}

static void *committer_main(void *argument)
{
	struct committer *const committer = argument;
	for (;;) {
		struct batch batch = {.count = 0};
		if (!take_batch(committer, &batch))
			return NULL;
		run_batch(committer, &batch);
		relieve_wal(committer);
	}
}

/* Waits for changes. False when the committer is stopping and has none left. */
static bool take_batch(struct committer *committer, struct batch *batch)
{
	lock_enter(&committer->lock);
	while (committer->first == NULL && !committer->is_stopping)
		lock_wait(&committer->lock, &committer->arrived);
	while (committer->first != NULL && batch->count < BATCH_MAX_CHANGES) {
		struct change *const change = committer->first;
		if (change->alone != NULL && batch->count > 0) /* it begins the next batch */
			break;
		batch->is_alone = change->alone != NULL;
		committer->first = change->next;
		change->next = NULL;
		batch->changes[batch->count++] = change;
		if (batch->is_alone)
			break;
	}
	if (committer->first == NULL)
		committer->last = NULL;
	lock_leave(&committer->lock);
	return batch->count > 0;
}

static void run_batch(struct committer *committer, struct batch *batch)
{
	struct error error;
	const int64_t begun_us = clock_monotonic_us();
	if (!batch->is_alone)
		place_all(batch);
	const bool committed = commit_batch(committer, batch, &error) == 0;
	settle_feed(committer, committed);
	tell_health(committer, batch, committed, &error);
	if (committed) {
		acknowledge(committer);
		metrics_add(committer->metrics, METRIC_COMMITS, 1);
		metrics_work(committer->metrics, METRIC_WORK_COMMIT, begun_us);
		if (committer->packs != NULL)
			pack_store_shared_committed(committer->packs);
	} else {
		if (committer->packs != NULL)
			(batch->in_doubt ? pack_store_shared_doubt : pack_store_shared_abandon)(
				committer->packs);
		fail_batch(batch, &error);
	}
	settle(committer, batch);
}

static void place_all(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct change *const change = batch->changes[i];
		change->failed = false;
		change->in_doubt = false;
		if (change->place == NULL)
			continue;
		batch->has_placed = true;
		if (change->place(change, &change->error) != 0) {
			change->failed = true;
			batch->unplaced[i] = true;
		}
	}
}

static int commit_batch(struct committer *committer, struct batch *batch, struct error *err)
{
	ASSERT(batch->count > 0 && (!batch->is_alone || batch->count == 1));
	if (batch->is_alone)
		return run_alone(committer, batch->changes[0], err);
	if (store_health_may_write(committer->options.health, err) != 0 &&
		!store_health_wants_try(committer->options.health))
		return -1;
	if (batch->has_placed && committer->packs != NULL &&
		pack_store_shared_sync(committer->packs, err) != 0)
		return error_wrap(err, "The shared pack cannot be synced"); /* invariant 1 */
	if (db_begin(committer->db, err) != 0)
		return -1;
	int result = committer->packs == NULL ? 0 : record_shared_packs(committer, err);
	if (result == 0 && committer->staging != NULL)
		result = stage_shared_packs(committer, err);
	for (size_t i = 0; result == 0 && i < batch->count; i++)
		if (!batch->unplaced[i])
			result = apply_one(committer, batch->changes[i], err);
	if (result != 0) {
		db_rollback(committer->db);
		return -1;
	}
	result = db_commit(committer->db, err);
	batch->in_doubt = result != 0 && db_is_in_doubt(committer->db);
	return result;
}

static int run_alone(struct committer *committer, struct change *change, struct error *err)
{
	change->failed = false;
	change->in_doubt = false;
	return change->alone(change, committer->db, err);
}

static int record_shared_packs(struct committer *committer, struct error *err)
{
	struct pack_record records[SHARED_RECORDS];
	size_t count = SHARED_RECORDS;
	while (count == SHARED_RECORDS) {
		count = pack_store_shared_records(committer->packs, records, SHARED_RECORDS);
		for (size_t i = 0; i < count; i++)
			if (pack_row_record(committer->db, &records[i], err) != 0)
				return -1;
	}
	return 0;
}

/* In a far place the bytes are kept in the catalog, because nothing has synced them. */
static int stage_shared_packs(struct committer *committer, struct error *err)
{
	struct pack_staged staged;
	int got;
	while ((got = pack_store_shared_stage(
			committer->packs, committer->staging, &staged, err)) == 1)
		if (pack_staged_row_add(committer->db, &staged, err) != 0)
			return -1;
	return got;
}

/* Returns -1 only when the whole transaction is lost. */
static int apply_one(struct committer *committer, struct change *change, struct error *err)
{
	struct db *const db = committer->db;
	struct change_feed *const feed = db_context(db, DB_CONTEXT_CHANGE_FEED);
	const uint64_t mark = feed != NULL ? change_feed_mark(feed) : 0;
	ASSERT(change->apply != NULL);
	if (db_savepoint(db, err) != 0)
		return -1;
	if (change->apply(change, db, &change->error) == 0 &&
		db_savepoint_release(db, &change->error) == 0)
		return 0;
	change->failed = true;
	db_savepoint_rollback(db);
	if (feed != NULL)
		change_feed_take_back(feed, mark);
	if (db_in_transaction(db))
		return 0;
	*err = change->error;
	return -1;
}

/* Shows what the batch noted, or takes it back. */
static void settle_feed(struct committer *committer, bool committed)
{
	struct change_feed *const feed = db_context(committer->db, DB_CONTEXT_CHANGE_FEED);
	if (feed != NULL)
		(committed ? change_feed_show : change_feed_take_back_all)(feed);
	run_feed_show(db_context(committer->db, DB_CONTEXT_RUN_FEED));
}

/* A batch whose changes were all refused, as by a damaged page, wrote nothing. */
static void tell_health(struct committer *committer, const struct batch *batch, bool committed,
	const struct error *err)
{
	struct store_health *health = committer->options.health;
	if (health == NULL)
		return;
	if (!committed)
		store_health_note_failure(health, err);
	else if (has_changed(batch))
		store_health_note_success(health);
}

static bool has_changed(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (!batch->changes[i]->failed)
			return true;
	return false;
}

/* A failed note is harmless: after a kill the catalog is then ahead of it. A batch whose changes
 * all failed wrote nothing, so there is nothing to note. */
static void acknowledge(struct committer *committer)
{
	struct error ignored;
	const struct acknowledgement now = {.store = committer->options.store,
		.change = db_change(committer->db),
		.log_salt = db_log_salt(committer->db),
		.log_frames = db_log_frames(committer->db)};
	bool is_noted =
		now.log_salt == committer->noted_salt && now.log_frames == committer->noted_frames;
	if (committer->options.acknowledged == NULL || is_noted ||
		acknowledged_note(committer->options.acknowledged, &now, &ignored) != 0)
		return;
	committer->noted_salt = now.log_salt;
	committer->noted_frames = now.log_frames;
}

static void fail_batch(struct batch *batch, const struct error *err)
{
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->unplaced[i])
			continue;
		batch->changes[i]->failed = true;
		batch->changes[i]->in_doubt = batch->in_doubt;
		batch->changes[i]->error = *err;
	}
}

static void settle(struct committer *committer, struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		metrics_add(committer->metrics,
			batch->changes[i]->failed ? METRIC_CHANGES_REFUSED : METRIC_CHANGES, 1);
		metrics_add(committer->metrics, METRIC_CHANGES_WAITING, -1);
		batch->changes[i]->done(batch->changes[i]); /* invariant 2: COMMIT has returned */
	}
}

/* Restarts the log once it is large. When readers block that, the next try waits until the log has
 * grown some more. */
static void relieve_wal(struct committer *committer)
{
	const uint64_t used = db_wal_bytes(committer->db);
	if (used < WAL_RESTART_BYTES) {
		committer->restart_at = WAL_RESTART_BYTES;
		return;
	}
	if (used < committer->restart_at)
		return;
	/* After a failure the log stays as it is, and nothing is lost. If the disk is broken, the
	 * next commit reports it. */
	struct error ignored;
	if (journal_sync(committer->options.journal, &ignored) == 0)
		db_checkpoint_restart(committer->db, &ignored);
	committer->restart_at = used + WAL_RETRY_BYTES;
}

static int committer_awaited_place(struct change *change, struct error *err)
{
	struct awaited *const awaited = (struct awaited *)change;
	return awaited->inner->place(awaited->inner, err);
}

static int committer_awaited_apply(struct change *change, struct db *db, struct error *err)
{
	struct awaited *const awaited = (struct awaited *)change;
	return awaited->inner->apply(awaited->inner, db, err);
}

static int committer_awaited_alone(struct change *change, struct db *db, struct error *err)
{
	struct awaited *awaited = (struct awaited *)change;
	return awaited->inner->alone(awaited->inner, db, err);
}

static void committer_awaited_done(struct change *change)
{
	struct awaited *const awaited = (struct awaited *)change;
	struct committer *const committer = awaited->committer;
	lock_enter(&committer->lock);
	awaited->is_done = true;
	lock_broadcast(&committer->settled);
	lock_leave(&committer->lock);
}
