/* Names, reading runs, and the changes that touch only a run's row. Publishing is step_publish.c,
 * collecting step_collect.c. */
#include "storage/runs/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/run_tables/run_settings.h"
#include "storage/runs/run_change.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/view_clash.h"
#include "storage/runs/view_switch.h"
#include "storage/runs/webhook.h"

enum { CHANGE_ARENA_BYTES = 64 * 1024 * 1024 };

static bool is_name_byte(uint8_t byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
		(byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

int run_check_name(struct span name, struct error *err)
{
	if (name.len == 0 || name.len > RUN_NAME_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"A run's name has 1 to %d bytes; this one has %zu.", RUN_NAME_MAX_BYTES,
			name.len);
	if (name.data[0] == '.' || name.data[0] == '-')
		return error_set(
			err, ERROR_INVALID, "A run's name does not begin with '%c'.", name.data[0]);
	for (size_t i = 0; i < name.len; i++)
		if (!is_name_byte(name.data[i]))
			return error_set(err, ERROR_INVALID,
				"A run's name holds only A-Z, a-z, 0-9, '.', '_' and '-'; byte %zu is another.",
				i + 1);
	return 0;
}

int run_find(struct store *store, struct span bucket, struct span run, struct arena *arena,
	struct run_message *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct run_row row;
	bool anchor_due = false;
	int result = run_row_need(db, bucket, run, &row, err);
	if (result == 0)
		result = step_anchor_due(db, &row, &anchor_due, err);
	store_reader_give(store, db);
	if (result != 0)
		return -1;
	run_row_message(&row, arena_copy(arena, bucket), arena_copy(arena, run), out);
	out->anchor_due = anchor_due;
	if (arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a run.");
	return 0;
}

int run_list(struct store *store, struct span bucket, struct span after, size_t limit,
	struct arena *arena, struct run_message **out, size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = run_row_list(db, bucket, after, limit, arena, out, out_count, err);
	store_reader_give(store, db);
	return result;
}

static void committed(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	change->done(change->owner);
}

struct run_change *run_change_new(struct store *store, struct span bucket, struct span run,
	void (*done)(void *owner), void *owner)
{
	struct run_change *const change = memory_new(sizeof(*change));
	change->store = store;
	change->arena = arena_new(CHANGE_ARENA_BYTES);
	change->bucket = arena_copy(change->arena, bucket);
	change->run = arena_copy(change->arena, run);
	change->done = done;
	change->owner = owner;
	change->change.done = committed;
	return change;
}

static int apply_too_large(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	(void)db;
	return error_set(err, ERROR_TOO_LARGE, "The request's texts are too large.");
}

void run_change_submit(struct run_change *change,
	int (*apply)(struct change *change, struct db *db, struct error *err))
{
	change->change.apply = arena_overflowed(change->arena) ? apply_too_large : apply;
	committer_submit(store_committer(change->store), &change->change);
}

static int check_expected(const struct run_change *change, uint64_t epoch, struct error *err)
{
	if (!change->open.has_expected_epoch || change->open.expected_epoch == epoch)
		return 0;
	return error_set(err, ERROR_PRECONDITION,
		"The run is at epoch %llu, not at %llu: somebody has opened it since.",
		(unsigned long long)epoch, (unsigned long long)change->open.expected_epoch);
}

int run_open_new(struct run_change *change, struct db *db, struct run_row *row, struct error *err)
{
	const struct clock_source *const clock = store_clock(change->store);
	if (check_expected(change, 0, err) != 0 || run_check_name(change->run, err) != 0)
		return -1;
	row->epoch = 1;
	row->settings = run_settings_default();
	if (change->open.has_keep_steps)
		row->settings.keep_steps = change->open.keep_steps;
	row->created_ms = clock->wall_ms(clock);
	return run_row_add(db, change->run, row, err);
}

static int open_again(
	const struct run_change *change, struct db *db, struct run_row *row, struct error *err)
{
	if (check_expected(change, row->epoch, err) != 0)
		return -1;
	row->epoch++;
	if (step_part_row_settle(db, row->id, INT64_MAX, STEP_PART_DEAD, err) != 0)
		return -1;
	if (change->open.has_keep_steps) {
		row->settings.keep_steps = change->open.keep_steps;
		if (run_settings_store(db, row->id, &row->settings, err) != 0)
			return -1;
	}
	return run_row_update(db, row, err);
}

static int check_keep(uint64_t keep_steps, struct error *err)
{
	if (keep_steps <= INT64_MAX)
		return 0;
	return error_set(err, ERROR_INVALID, "keep_steps is at most %lld.", (long long)INT64_MAX);
}

static int apply_open(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	int64_t bucket;
	struct run_row row;
	if (check_keep(change->open.keep_steps, err) != 0 ||
		bucket_row_find(db, change->bucket, &bucket, err) != 0)
		return -1;
	const int found = run_row_find(db, bucket, change->run, &row, err);
	if (found < 0)
		return -1;
	if (found == 0)
		row = (struct run_row){.bucket = bucket};
	if ((found == 1 ? open_again(change, db, &row, err)
			: run_open_new(change, db, &row, err)) != 0)
		return -1;
	run_row_message(&row, change->bucket, change->run, &change->message);
	return 0;
}

struct run_change *run_open_start(struct store *store, const struct run_open_params *params,
	void (*done)(void *owner), void *owner)
{
	struct run_change *const change =
		run_change_new(store, params->bucket, params->run, done, owner);
	change->open = *params;
	change->open.bucket = change->bucket;
	change->open.run = change->run;
	run_change_submit(change, apply_open);
	return change;
}

static int apply_settings(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	struct run_row row;
	if (run_row_need(db, change->bucket, change->run, &row, err) != 0)
		return -1;
	const struct run_settings before = row.settings;
	if (run_settings_parse(&row.settings, change->settings, true, err) != 0 ||
		run_settings_store(db, row.id, &row.settings, err) != 0)
		return -1;
	if (strcmp(before.webhook, row.settings.webhook) != 0 &&
		webhook_check(change->store, row.settings.webhook, err) != 0)
		return -1;
	if (view_clash_check(db, &row, change->run, &before, err) != 0 ||
		view_switch(db, &row, change->run, &before, err) != 0)
		return -1;
	if (step_retain(change->store, db, &row, err) != 0 || run_row_update(db, &row, err) != 0)
		return -1;
	run_row_message(&row, change->bucket, change->run, &change->message);
	return 0;
}

static void settings_stored(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	if (!base->failed)
		store_wake(change->store, STORE_STEP_WORK); /* for views that were switched on */
	change->done(change->owner);
}

struct run_change *run_settings_start(struct store *store, struct span bucket, struct span run,
	struct span settings, void (*done)(void *owner), void *owner)
{
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->settings = arena_copy(change->arena, settings);
	change->change.done = settings_stored;
	run_change_submit(change, apply_settings);
	return change;
}

static int apply_delete(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	struct run_row row;
	if (run_row_need(db, change->bucket, change->run, &row, err) != 0)
		return -1;
	change->run_id = row.id;
	return run_row_end(db, row.id, err);
}

/* Who waits for the ended run's next step looks again and finds no run. */
static void deleted(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	if (!base->failed) {
		replica_table_remove_run(store_parts(change->store)->replicas, change->run_id);
		step_watch_published(store_step_watch(change->store), change->bucket, change->run);
	}
	change->done(change->owner);
}

int run_webhook_secret(struct store *store, struct span bucket, struct span run,
	char out[RUN_WEBHOOK_SECRET_BYTES], struct error *err)
{
	_Static_assert((int)RUN_WEBHOOK_SECRET_BYTES == (int)WEBHOOK_SECRET_BYTES, "one secret");
	struct run_row row;
	struct db *const db = store_reader_take(store, err);
	const int found = db == NULL ? -1 : run_row_need(db, bucket, run, &row, err);
	store_reader_give(store, db);
	if (found == 0)
		webhook_secret(store, row.id, out);
	return found;
}

struct run_change *run_delete_start(struct store *store, struct span bucket, struct span run,
	void (*done)(void *owner), void *owner)
{
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->change.done = deleted;
	run_change_submit(change, apply_delete);
	return change;
}

int run_change_outcome(struct run_change *change, struct run_outcome *out, struct error *err)
{
	if (change->change.failed) {
		*err = change->change.error;
		return -1;
	}
	*out = (struct run_outcome){
		.run = change->message, .already = change->already, .pin = change->pin};
	if (change->part != NULL)
		out->part = change->part->answer;
	return 0;
}

void run_change_free(struct run_change *change)
{
	if (change == NULL)
		return;
	step_check_release(&change->check);
	arena_free(change->arena);
	free(change);
}
