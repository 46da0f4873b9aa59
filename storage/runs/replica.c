/* A report goes into the table in memory. If the saved row protects less than the lease, the
 * request also waits for a call that saves the report; otherwise the worker saves it, many in one
 * change. A change takes the newest report from the table as it writes it. Afterwards the table
 * learns whether that was committed; if not, the report is saved again later. */
#include "storage/runs/replica.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/run_feed.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/report_pace.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_lag.h"

enum { TIDY_REPLICAS = 500, TIDY_ARENA_BYTES = 8 * 1024 * 1024, CHANGE_ARENA_BYTES = 1024 * 1024 };

static const char SQL_RUN_LIVES[] = "SELECT 1 FROM runs WHERE id = ?1 AND name IS NOT NULL";

struct replica_change {
	struct call call;
	struct replica_ref ref;
	int64_t run; /* id of the run's row, once it is found */
	struct replica_saving saving;
};

struct tidy {
	struct change change; /* first */
	struct store *store;
	struct replica_name names[TIDY_REPLICAS];
	struct replica_saving savings[TIDY_REPLICAS];
	size_t count;
};

static int find_run(struct store *store, const struct run_ref *run, struct run_row *out_run,
	struct replica_message *out, struct error *err);
static int check_step(
	const struct run_row *run, const struct replica_message *report, struct error *err);
static int find_staleness(struct db *db, const struct run_row *run, int64_t now_ms,
	struct replica_message *out, struct error *err);
static struct report_pace pace_of(struct store *store, const struct run_row *run);
static int put(struct store *store, const struct run_row *run, struct span id,
	struct replica_message *report, bool *out_saved, struct error *err);
static struct replica_list_message begin_list(struct store *store, const struct run_row *run);
static void fill(const struct replica_entry *entry, struct replica_message *out);
static int no_replica(struct span id, struct error *err);
static int parse(const struct replica_entry *entry, struct arena *arena,
	struct replica_message *out, struct error *err);
static int read_page(struct store *store, const struct run_row *run,
	const struct replica_entry *entries, struct arena *arena, struct replica_list_message *out,
	struct error *err);
static struct call *make(
	struct store *store, const struct call_kind *kind, const struct replica_ref *ref);
static int replica_apply_save(struct call *call, struct db *db, struct error *err);
static int save(struct store *store, struct db *db, int64_t run, struct span id,
	struct replica_saving *out_saving, struct error *err);
static void replica_saved(struct call *call);
static int replica_apply_remove(struct call *call, struct db *db, struct error *err);
static int replica_apply_tidy(struct change *base, struct db *db, struct error *err);
static int run_lives(struct db *db, int64_t run, struct error *err);
static int tidy_some(struct tidy *tidy, struct error *err);

static const struct call_kind save_kind = {
	.stages = {{.apply = replica_apply_save}},
	.settle = replica_saved,
};

static const struct call_kind remove_kind = {.stages = {{.apply = replica_apply_remove}}};

int replica_put(struct store *store, const struct replica_ref *ref,
	const struct replica_message *report, struct arena *arena, struct replica_message *out,
	struct error *err)
{
	struct run_row row;
	struct replica_entry entry;
	bool saved = false;
	*out = *report;
	if (replica_check_id("A replica's id", ref->id, err) != 0 ||
		find_run(store, &ref->run, &row, out, err) != 0 ||
		put(store, &row, ref->id, out, &saved, err) != 0)
		return -1;
	if (!replica_table_find(store_parts(store)->replicas, row.id, ref->id, arena, &entry))
		return error_set(err, ERROR_BUSY,
			"The replica was removed while it reported: report again.");
	fill(&entry, out);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a replica.");
	return saved;
}

int replica_find(struct store *store, const struct replica_ref *ref, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	struct run_row row;
	struct replica_entry entry;
	if (find_run(store, &ref->run, &row, NULL, err) != 0)
		return -1;
	if (!replica_table_find(store_parts(store)->replicas, row.id, ref->id, arena, &entry))
		return no_replica(ref->id, err);
	if (parse(&entry, arena, out, err) != 0)
		return -1;
	struct db *const db = store_reader_take(store, err);
	const int result =
		db == NULL ? -1 : find_staleness(db, &row, store_now_ms(store), out, err);
	store_reader_give(store, db);
	return result;
}

int replica_list(struct store *store, const struct replica_scan *scan, struct arena *arena,
	struct replica_list_message *out, struct error *err)
{
	const size_t limit = scan->limit;
	struct run_row row;
	ASSERT(limit > 0);
	if (find_run(store, &scan->run, &row, NULL, err) != 0)
		return -1;
	*out = begin_list(store, &row);
	struct replica_entry *const entries = arena_take_array(arena, limit + 1, sizeof(*entries));
	out->replicas = arena_take_array(arena, limit + 1, sizeof(*out->replicas));
	if (entries == NULL || out->replicas == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing replicas.");
	const struct replica_page page = {.run = row.id, .after = scan->after, .limit = limit + 1};
	const size_t found = replica_table_page(
		store_parts(store)->replicas, &page, arena, entries, &out->counts);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing replicas.");
	out->count = found > limit ? limit : found;
	if (found > limit)
		out->next = entries[limit - 1].row.id;
	return read_page(store, &row, entries, arena, out, err);
}

int replica_follow_begin(struct store *store, const struct run_ref *run, struct replica_follow *out,
	struct error *err)
{
	struct run_row row;
	uint64_t of_all;
	if (find_run(store, run, &row, NULL, err) != 0)
		return -1;
	const uint64_t last =
		replica_table_last_change(store_parts(store)->replicas, row.id, &of_all);
	*out = (struct replica_follow){.run = *run,
		.id = row.id,
		.told = of_all,
		.gone = of_all,
		.until = of_all,
		.last = last,
		.of_all = of_all};
	return 0;
}

/* A quiet run's removals are all known, so its reader is never too far behind. */
bool replica_follow_look(struct store *store, struct replica_follow *follow)
{
	const uint64_t before = follow->last;
	follow->last = replica_table_last_change(
		store_parts(store)->replicas, follow->id, &follow->of_all);
	follow->until = follow->of_all;
	if (follow->last == before && follow->told >= before && follow->gone >= before) {
		follow->told = follow->of_all;
		follow->gone = follow->of_all;
		return false;
	}
	return true;
}

bool replica_follow_removed(struct store *store, struct replica_follow *follow, struct arena *arena,
	struct span *out, size_t limit, size_t *out_count)
{
	struct replica_changes changes = {
		.run = follow->id, .after = follow->gone, .until = follow->until, .limit = limit};
	const bool is_whole =
		replica_table_removed(store_parts(store)->replicas, &changes, arena, out);
	*out_count = changes.count;
	follow->gone = changes.has_more ? changes.after : follow->until;
	return is_whole;
}

int replica_follow_read(struct store *store, struct replica_follow *follow, struct arena *arena,
	struct replica_list_message *out, bool *out_more, struct error *err)
{
	struct replica_table *const table = store_parts(store)->replicas;
	struct run_row row;
	struct replica_changes changes = {.run = follow->id,
		.after = follow->told,
		.until = follow->until,
		.limit = out->count};
	struct replica_entry *const entries = arena_take_array(arena, out->count, sizeof(*entries));
	struct replica_message *const replicas = out->replicas;
	if (entries == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing replicas.");
	if (find_run(store, &follow->run, &row, NULL, err) != 0)
		return -1;
	if (row.id != follow->id)
		return error_set(err, ERROR_NO_RUN, "Another run has the name by now.");
	*out = begin_list(store, &row);
	out->replicas = replicas;
	const struct replica_page counts = {.run = row.id};
	(void)replica_table_page(table, &counts, arena, NULL, &out->counts);
	replica_table_changed(table, &changes, arena, entries);
	out->count = changes.count;
	*out_more = changes.has_more;
	follow->told = changes.has_more ? changes.after : follow->until;
	return read_page(store, &row, entries, arena, out, err);
}

size_t replica_moved_runs(
	struct store *store, uint64_t *after, uint64_t until, int64_t *out_runs, size_t limit)
{
	struct replica_changes changes = {.after = *after, .until = until, .limit = limit};
	replica_table_moved(store_parts(store)->replicas, &changes, out_runs);
	*after = changes.has_more ? changes.after : until;
	return changes.count;
}

uint64_t replica_last_move(struct store *store)
{
	return replica_table_last_move(store_parts(store)->replicas);
}

struct call *replica_save_call(struct store *store, const struct replica_ref *ref)
{
	return make(store, &save_kind, ref);
}

struct call *replica_remove_call(struct store *store, const struct replica_ref *ref)
{
	return make(store, &remove_kind, ref);
}

int replica_tidy(struct store *store, struct error *err)
{
	struct replica_table *const table = store_parts(store)->replicas;
	int result = 0;
	size_t count = TIDY_REPLICAS;
	replica_table_note_expired(table);
	while (result == 0 && count == TIDY_REPLICAS) {
		struct arena *const arena = arena_new(TIDY_ARENA_BYTES);
		struct tidy *const tidy = memory_new(sizeof(*tidy));
		tidy->change.apply = replica_apply_tidy;
		tidy->store = store;
		tidy->count = replica_table_forget(table, TIDY_REPLICAS, arena, tidy->names);
		if (tidy->count < TIDY_REPLICAS)
			tidy->count += replica_table_unsaved(table, TIDY_REPLICAS - tidy->count,
				arena, tidy->names + tidy->count);
		count = tidy->count;
		ASSERT(count <= TIDY_REPLICAS);
		if (count > 0)
			result = tidy_some(tidy, err);
		free(tidy);
		arena_free(arena);
	}
	metrics_set(store_metrics(store), METRIC_REPLICAS, (int64_t)replica_table_count(table));
	return result;
}

/* Finds the run. `out`, unless it is NULL, is a report: its step is checked and its staleness
 * filled in. */
static int find_run(struct store *store, const struct run_ref *run, struct run_row *out_run,
	struct replica_message *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = run_row_need(db, run, out_run, err);
	if (result == 0 && out != NULL)
		result = check_step(out_run, out, err);
	if (result == 0 && out != NULL)
		result = find_staleness(db, out_run, store_now_ms(store), out, err);
	store_reader_give(store, db);
	return result;
}

static int check_step(
	const struct run_row *run, const struct replica_message *report, struct error *err)
{
	if (!report->has_step || (run->has_head && report->step <= run->head))
		return 0;
	return error_set(err, ERROR_NO_STEP,
		"The replica holds step %llu, which the run does not have.",
		(unsigned long long)report->step);
}

static int find_staleness(struct db *db, const struct run_row *run, int64_t now_ms,
	struct replica_message *out, struct error *err)
{
	out->has_head = run->has_head;
	out->head = run->head;
	out->has_staleness = run->has_head && out->has_step;
	if (!out->has_staleness)
		return 0;
	const struct step_lag_scale scale = {.run = run->id,
		.target = run_row_target(run),
		.rollback_ms = run->rollback.created_ms,
		.now_ms = now_ms};
	struct step_lag lag;
	if (step_lag_find(db, &scale, out->step, &lag, err) != 0)
		return -1;
	out->behind_steps = lag.steps;
	out->behind_s = lag.seconds;
	return 0;
}

static struct report_pace pace_of(struct store *store, const struct run_row *run)
{
	return report_pace_of(
		replica_table_count(store_parts(store)->replicas), run->settings.lease_s);
}

/* Tells the replica, in its report, when the next one is due. */
static int put(struct store *store, const struct run_row *run, struct span id,
	struct replica_message *report, bool *out_saved, struct error *err)
{
	const struct report_pace pace = pace_of(store, run);
	struct buffer document;
	buffer_init(&document, REPLICA_MESSAGE_MAX_BYTES);
	replica_message_print_request(report, &document);
	int result = buffer_check(&document, "the replica's report", err);
	const struct replica_row row = {.run = run->id,
		.id = id,
		.document = buffer_span(&document),
		.lease_ms = (int64_t)pace.lease_s * 1000};
	report->report_s = pace.report_s;
	report->passing_s = pace.passing_s;
	if (result == 0)
		result = replica_table_put(
			store_parts(store)->replicas, &row, report, out_saved, err);
	buffer_release(&document);
	return result;
}

static struct replica_list_message begin_list(struct store *store, const struct run_row *run)
{
	const struct report_pace pace = pace_of(store, run);
	return (struct replica_list_message){.lease_s = pace.lease_s,
		.report_s = pace.report_s,
		.has_head = run->has_head,
		.head = run->head,
		.rollback = run->rollback};
}

/* Adds what the table knows to the report. */
static void fill(const struct replica_entry *entry, struct replica_message *out)
{
	out->id = entry->row.id;
	out->since_ms = entry->row.since_ms;
	out->updated_ms = entry->row.updated_ms;
	out->expired = entry->expired;
	out->lease_s = (uint64_t)entry->row.lease_ms / 1000;
}

static int no_replica(struct span id, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The run has no replica '%.*s'.",
		(int)span_slice(id, 0, 128).len, (const char *)id.data);
}

static int parse(const struct replica_entry *entry, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	if (replica_message_parse(entry->row.document, arena, out, err) != 0)
		return -1;
	fill(entry, out);
	return 0;
}

static int read_page(struct store *store, const struct run_row *run,
	const struct replica_entry *entries, struct arena *arena, struct replica_list_message *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	int result = db == NULL ? -1 : 0;
	for (size_t i = 0; result == 0 && i < out->count; i++) {
		result = parse(&entries[i], arena, &out->replicas[i], err);
		if (result == 0)
			result = find_staleness(
				db, run, store_now_ms(store), &out->replicas[i], err);
	}
	store_reader_give(store, db);
	return result;
}

static struct call *make(
	struct store *store, const struct call_kind *kind, const struct replica_ref *ref)
{
	struct replica_change *const change =
		call_new(sizeof(*change), kind, store, CHANGE_ARENA_BYTES);
	change->ref.run = run_ref_copy(&ref->run, change->call.arena);
	change->ref.id = arena_copy(change->call.arena, ref->id);
	return &change->call;
}

static int replica_apply_save(struct call *call, struct db *db, struct error *err)
{
	struct replica_change *const change = (struct replica_change *)call;
	struct run_row row;
	if (run_row_need(db, &change->ref.run, &row, err) != 0)
		return -1;
	change->run = row.id;
	return save(call->store, db, row.id, change->ref.id, &change->saving, err);
}

/* Makes the catalog's row say what the table says, or removes it when the table has no such
 * replica. */
static int save(struct store *store, struct db *db, int64_t run, struct span id,
	struct replica_saving *out_saving, struct error *err)
{
	struct arena *const arena = arena_new(TIDY_ARENA_BYTES);
	struct replica_row row;
	int result;
	if (replica_table_take(store_parts(store)->replicas, run, id, arena, &row, out_saving))
		result = replica_row_put(db, &row, err);
	else
		result = replica_row_remove(db, run, id, err);
	arena_free(arena);
	return result;
}

static void replica_saved(struct call *call)
{
	const struct replica_change *const change = (const struct replica_change *)call;
	replica_table_saved(store_parts(call->store)->replicas, change->run, change->ref.id,
		&change->saving, call->failed);
}

static int replica_apply_remove(struct call *call, struct db *db, struct error *err)
{
	const struct replica_change *const change = (const struct replica_change *)call;
	struct replica_table *const table = store_parts(call->store)->replicas;
	const struct span id = change->ref.id;
	struct run_row row;
	struct replica_entry entry;
	if (run_row_need(db, &change->ref.run, &row, err) != 0)
		return -1;
	if (!replica_table_find(table, row.id, id, call->arena, &entry))
		return no_replica(id, err);
	replica_table_remove(table, row.id, id);
	run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), row.id);
	return replica_row_remove(db, row.id, id, err);
}

static int replica_apply_tidy(struct change *base, struct db *db, struct error *err)
{
	struct tidy *const tidy = (struct tidy *)base;
	for (size_t i = 0; i < tidy->count; i++) {
		const int lives = run_lives(db, tidy->names[i].run, err);
		if (lives == 0) /* its replicas are removed with it */
			replica_table_remove(store_parts(tidy->store)->replicas, tidy->names[i].run,
				tidy->names[i].id);
		if (lives < 0 ||
			save(tidy->store, db, tidy->names[i].run, tidy->names[i].id,
				&tidy->savings[i], err) != 0)
			return -1;
		if (!tidy->savings[i].known) /* forgotten */
			run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), tidy->names[i].run);
	}
	return 0;
}

/* 1, 0 when the run has ended, -1. */
static int run_lives(struct db *db, int64_t run, struct error *err)
{
	return db_exists(db, SQL_RUN_LIVES, err, db_i64(run));
}

static int tidy_some(struct tidy *tidy, struct error *err)
{
	const int result = committer_run(store_committer(tidy->store), &tidy->change, err);
	for (size_t i = 0; i < tidy->count; i++)
		replica_table_saved(store_parts(tidy->store)->replicas, tidy->names[i].run,
			tidy->names[i].id, &tidy->savings[i], result != 0);
	return result;
}
