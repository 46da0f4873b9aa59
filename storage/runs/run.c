/* Checks names, reads runs, changes their settings and ends them. Opening is in run_open.c,
 * publishing in step_publish.c, collecting in step_collect.c. A change of settings also applies
 * what follows from it: views are switched and surplus steps removed, all in one change. */
#include "storage/runs/run.h"

#include <string.h>

#include "base/thread/step_watch.h"
#include "storage/core/run_feed.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/run_settings.h"
#include "storage/runs/step_collect.h"
#include "storage/runs/step_due.h"
#include "storage/runs/view_clash.h"
#include "storage/runs/view_switch.h"
#include "storage/runs/webhook.h"

enum { CHANGE_ARENA_BYTES = 1024 * 1024 };

struct settings_change {
	struct call call;
	struct run_ref run;
	struct span settings; /* JSON: the settings to change */
	struct run_message message;
};

struct run_end {
	struct call call;
	struct run_ref run;
	int64_t id; /* of its row, once it is found */
};

static int find_failed_adoption(struct db *db, int64_t run, struct arena *arena,
	struct run_failed_adoption *out, struct error *err);
static bool is_name_byte(uint8_t byte);
static int run_settings_apply(struct call *call, struct db *db, struct error *err);
static void run_settings_settle(struct call *call);
static int run_end_apply(struct call *call, struct db *db, struct error *err);
static void run_end_settle(struct call *call);

static const struct call_kind settings_kind = {
	.stages = {{.apply = run_settings_apply}},
	.settle = run_settings_settle,
};

static const struct call_kind end_kind = {
	.stages = {{.apply = run_end_apply}},
	.settle = run_end_settle,
};

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
				"A run's name holds only A-Z, a-z, 0-9, '.', '_' and '-'; byte %zu is none of these.",
				i + 1);
	return 0;
}

int run_find(struct store *store, const struct run_ref *run, struct arena *arena,
	struct run_message *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = run_find_in(db, run, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int run_find_in(struct db *db, const struct run_ref *run, struct arena *arena,
	struct run_message *out, struct error *err)
{
	struct run_row row;
	struct run_failed_adoption failed = {0};
	bool anchor_due = false;
	int result = run_row_need(db, run, &row, err);
	if (result == 0)
		result = step_anchor_due(db, &row, &anchor_due, err);
	if (result == 0)
		result = find_failed_adoption(db, row.id, arena, &failed, err);
	if (result != 0)
		return -1;
	const struct run_ref copy = run_ref_copy(run, arena);
	run_row_message(&row, &copy, out);
	out->anchor_due = anchor_due;
	out->failed_adoption = failed;
	if (arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a run.");
	return 0;
}

int run_list(struct store *store, const struct run_scan *scan, struct arena *arena,
	struct run_message **out, size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = run_row_list(db, scan, arena, out, out_count, err);
	store_reader_give(store, db);
	return result;
}

struct call *run_settings_call(struct store *store, const struct run_ref *run, struct span settings)
{
	struct settings_change *const change =
		call_new(sizeof(*change), &settings_kind, store, CHANGE_ARENA_BYTES);
	change->run = run_ref_copy(run, change->call.arena);
	change->settings = arena_copy(change->call.arena, settings);
	return &change->call;
}

const struct run_message *run_settings_result(const struct call *call)
{
	ASSERT(call->kind == &settings_kind);
	return &((const struct settings_change *)call)->message;
}

struct call *run_delete_call(struct store *store, const struct run_ref *run)
{
	struct run_end *const end = call_new(sizeof(*end), &end_kind, store, CHANGE_ARENA_BYTES);
	end->run = run_ref_copy(run, end->call.arena);
	return &end->call;
}

int run_webhook_secret(struct store *store, const struct run_ref *run,
	char out[RUN_WEBHOOK_SECRET_BYTES], struct error *err)
{
	_Static_assert((int)RUN_WEBHOOK_SECRET_BYTES == (int)WEBHOOK_SECRET_BYTES, "one secret");
	struct run_row row;
	struct db *const db = store_reader_take(store, err);
	const int found = db == NULL ? -1 : run_row_need(db, run, &row, err);
	store_reader_give(store, db);
	if (found == 0)
		webhook_secret(store, row.id, out);
	return found;
}

static int find_failed_adoption(struct db *db, int64_t run, struct arena *arena,
	struct run_failed_adoption *out, struct error *err)
{
	struct adoption adoption;
	const int found = adopt_row_find_failure(db, run, arena, &adoption, err);
	if (found == 1)
		*out = (struct run_failed_adoption){
			adoption.identity, adoption.created_ms, adoption.error};
	return found < 0 ? -1 : 0;
}

static bool is_name_byte(uint8_t byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
		(byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

static int run_settings_apply(struct call *call, struct db *db, struct error *err)
{
	struct settings_change *const change = (struct settings_change *)call;
	const struct span name = change->run.name;
	struct run_row row;
	if (run_row_need(db, &change->run, &row, err) != 0)
		return -1;
	const struct run_settings before = row.settings;
	if (run_settings_parse(&row.settings, change->settings, true, err) != 0 ||
		run_settings_store(db, row.id, &row.settings, err) != 0)
		return -1;
	if (strcmp(before.webhook, row.settings.webhook) != 0 &&
		webhook_check(call->store, row.settings.webhook, err) != 0)
		return -1;
	if (view_clash_check(db, &row, name, &before, err) != 0 ||
		view_switch(db, &row, name, &before, err) != 0)
		return -1;
	if (step_retain(call->store, db, &row, err) != 0 || run_row_update(db, &row, err) != 0)
		return -1;
	run_row_message(&row, &change->run, &change->message);
	return 0;
}

static void run_settings_settle(struct call *call)
{
	if (!call->failed)
		store_wake(call->store, STORE_STEP_WORK); /* for views that were switched on */
}

static int run_end_apply(struct call *call, struct db *db, struct error *err)
{
	struct run_end *const end = (struct run_end *)call;
	struct run_row row;
	if (run_row_need(db, &end->run, &row, err) != 0)
		return -1;
	end->id = row.id;
	const struct run_change change = {.run = row.id,
		.bucket_id = row.bucket,
		.bucket = end->run.bucket.name,
		.name = end->run.name};
	run_feed_note_end(db_context(db, DB_CONTEXT_RUN_FEED), &change);
	return run_row_end(db, row.id, err);
}

/* Wakes the readers that wait for the run's next step: they look again and find no run. */
static void run_end_settle(struct call *call)
{
	const struct run_end *const end = (const struct run_end *)call;
	if (call->failed)
		return;
	ASSERT(end->id > 0);
	replica_table_remove_run(store_parts(call->store)->replicas, end->id);
	step_watch_published(store_step_watch(call->store), end->run.bucket.name, end->run.name);
}
