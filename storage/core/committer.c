/* One batch is one transaction. Arrows:
 *
 *   queue --take--> place each --sync the shared pack--> BEGIN, pack records, each change under its savepoint --COMMIT--> done
 *                      |                    |                                                            |
 *                      change fails         +--------------- the whole batch fails -----------------------+
 *
 * A change that was refused inside a batch that then failed gets the batch's error: its refusal may
 * rest on a neighbour that never was. */
#include "storage/core/committer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/core/change_feed.h"
#include "storage/core/pack_row.h"

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
	bool stopping;                 /* guarded by lock */
	/* of the last COMMIT that was acknowledged: the log, and its frames */
	uint64_t noted_salt;
	uint32_t noted_frames;
	uint64_t restart_at; /* bytes of WAL at which the next restart is tried */
};

struct batch {
	struct change *changes[BATCH_MAX_CHANGES];
	bool unplaced[BATCH_MAX_CHANGES]; /* failed before the transaction: keeps its own error */
	size_t count;
	bool placed;
	bool in_doubt; /* COMMIT was tried and broke off */
	bool is_alone; /* one change that runs outside of transactions */
};

/* A change that a thread waits for: stands in the queue for `inner` and wakes the waiter. */
struct awaited {
	struct change change; /* first */
	struct change *inner;
	struct committer *committer;
	bool is_done; /* guarded by the committer's lock */
};

static void *run(void *argument);
static bool take_batch(struct committer *committer, struct batch *batch);
static void run_batch(struct committer *committer, struct batch *batch);
static void place_all(struct batch *batch);
static int commit_batch(struct committer *committer, struct batch *batch, struct error *err);
static int run_alone(struct committer *committer, struct change *change, struct error *err);
static int record_shared_packs(struct committer *committer, struct error *err);
static int apply_one(struct committer *committer, struct change *change, struct error *err);
static void settle_feed(struct committer *committer, bool committed);
static void tell_health(struct committer *committer, bool committed, const struct error *err);
static void acknowledge(struct committer *committer);
static void fail_batch(struct batch *batch, const struct error *err);
static void settle(struct committer *committer, struct batch *batch);
static void relieve_wal(struct committer *committer);
static int awaited_place(struct change *change, struct error *err);
static int awaited_apply(struct change *change, struct db *db, struct error *err);
static int awaited_alone(struct change *change, struct db *db, struct error *err);
static void awaited_done(struct change *change);

struct committer *committer_start(const struct committer_options *options)
{
	struct committer *const committer = memory_new(sizeof(*committer));
	committer->options = *options;
	committer->db = options->db;
	committer->packs = options->packs;
	committer->metrics = options->metrics;
	committer->restart_at = WAL_RESTART_BYTES;
	lock_init(&committer->lock, LOCK_COMMIT_QUEUE);
	lock_condition_init(&committer->arrived);
	lock_condition_init(&committer->settled);
	lock_thread_start(&committer->thread, "committer", run, committer);
	return committer;
}

void committer_stop(struct committer *committer)
{
	if (committer == NULL)
		return;
	lock_enter(&committer->lock);
	committer->stopping = true;
	lock_signal(&committer->arrived);
	lock_leave(&committer->lock);
	pthread_join(committer->thread, NULL);
	ASSERT(committer->first == NULL);
	db_close(committer->db);
	lock_condition_release(&committer->settled);
	lock_condition_release(&committer->arrived);
	lock_release(&committer->lock);
	free(committer);
}

void committer_submit(struct committer *committer, struct change *change)
{
	change->next = NULL;
	lock_enter(&committer->lock);
	const bool refused = committer->stopping;
	if (!refused) {
		if (committer->last != NULL)
			committer->last->next = change;
		else
			committer->first = change;
		committer->last = change;
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
	awaited.change.place = change->place == NULL ? NULL : awaited_place;
	awaited.change.apply = awaited_apply;
	awaited.change.alone = change->alone == NULL ? NULL : awaited_alone;
	awaited.change.done = awaited_done;
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

static void *run(void *argument)
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

/* Waits for work; false once stopping and empty. */
static bool take_batch(struct committer *committer, struct batch *batch)
{
	lock_enter(&committer->lock);
	while (committer->first == NULL && !committer->stopping)
		lock_wait(&committer->lock, &committer->arrived);
	while (committer->first != NULL && batch->count < BATCH_MAX_CHANGES) {
		struct change *const change = committer->first;
		if (change->alone != NULL && batch->count > 0) /* it is first in the next one */
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
	if (!batch->is_alone)
		place_all(batch);
	const bool committed = commit_batch(committer, batch, &error) == 0;
	settle_feed(committer, committed);
	tell_health(committer, committed, &error);
	if (committed) {
		acknowledge(committer);
		metrics_add(committer->metrics, METRIC_COMMITS, 1);
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
		batch->placed = true;
		if (change->place(change, &change->error) != 0) {
			change->failed = true;
			batch->unplaced[i] = true;
		}
	}
}

static int commit_batch(struct committer *committer, struct batch *batch, struct error *err)
{
	if (batch->is_alone)
		return run_alone(committer, batch->changes[0], err);
	if (store_health_may_write(committer->options.health, err) != 0 &&
		!store_health_wants_try(committer->options.health))
		return -1;
	if (batch->placed && committer->packs != NULL &&
		pack_store_shared_sync(committer->packs, err) != 0)
		return error_wrap(err, "syncing the shared pack"); /* invariant 1 */
	if (db_begin(committer->db, err) != 0)
		return -1;
	int result = committer->packs == NULL ? 0 : record_shared_packs(committer, err);
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

/* -1 only when the transaction itself is lost. */
static int apply_one(struct committer *committer, struct change *change, struct error *err)
{
	struct db *const db = committer->db;
	struct change_feed *const feed = db_companion(db, DB_CHANGE_FEED);
	const uint64_t mark = feed != NULL ? change_feed_mark(feed) : 0;
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

/* What the batch noted is there for others now, or never was. */
static void settle_feed(struct committer *committer, bool committed)
{
	struct change_feed *const feed = db_companion(committer->db, DB_CHANGE_FEED);
	if (feed != NULL)
		(committed ? change_feed_show : change_feed_take_back_all)(feed);
}

static void tell_health(struct committer *committer, bool committed, const struct error *err)
{
	struct store_health *health = committer->options.health;
	if (health == NULL)
		return;
	if (committed)
		store_health_note_success(health);
	else
		store_health_note_failure(health, err);
}

/* Nothing that failed here makes what was told untrue: after a kill the catalog is ahead of the
 * note then. A batch in which every change failed wrote nothing. */
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
		batch->changes[i]->done(batch->changes[i]); /* invariant 2: COMMIT has returned */
	}
}

/* Between batches: when readers hold the restart up, the next try waits until the log has grown
 * some more. */
static void relieve_wal(struct committer *committer)
{
	const uint64_t used = db_wal_bytes(committer->db);
	if (used < WAL_RESTART_BYTES) {
		committer->restart_at = WAL_RESTART_BYTES;
		return;
	}
	if (used < committer->restart_at)
		return;
	/* what cannot be checkpointed now stays in the log: nothing is lost, and the next commit
	 * reports a broken disk */
	struct error ignored;
	db_checkpoint_restart(committer->db, &ignored);
	committer->restart_at = used + WAL_RETRY_BYTES;
}

static int awaited_place(struct change *change, struct error *err)
{
	struct awaited *const awaited = (struct awaited *)change;
	return awaited->inner->place(awaited->inner, err);
}

static int awaited_apply(struct change *change, struct db *db, struct error *err)
{
	struct awaited *const awaited = (struct awaited *)change;
	return awaited->inner->apply(awaited->inner, db, err);
}

static int awaited_alone(struct change *change, struct db *db, struct error *err)
{
	struct awaited *awaited = (struct awaited *)change;
	return awaited->inner->alone(awaited->inner, db, err);
}

static void awaited_done(struct change *change)
{
	struct awaited *const awaited = (struct awaited *)change;
	struct committer *const committer = awaited->committer;
	lock_enter(&committer->lock);
	awaited->is_done = true;
	lock_broadcast(&committer->settled);
	lock_leave(&committer->lock);
}
