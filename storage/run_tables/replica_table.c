/* Runs lie in an array sorted by number, and the replicas of a run in one sorted by id: a look-up
 * is two binary searches, and a page is a slice. Beside its report each replica has the step of its
 * saved row, which tells whether the row protects as much as the lease. If so, the report needs no
 * change before the reply and is saved later. */
#include "storage/run_tables/replica_table_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/thread/lock.h"

enum { LOAD_ARENA_BYTES = 64 * 1024 };

static void free_run(struct replica_run *run);
static void free_replica(struct replica *replica);
static size_t find_run_place(const struct replica_table *table, int64_t run, bool *out_found);
static bool replica_table_run_is_before(const void *element, const void *key);
static size_t find_place(const struct replica_run *run, struct span id, bool *out_found);
static bool replica_table_replica_is_before(const void *element, const void *key);
static struct replica_run *get_run(struct replica_table *table, int64_t run);
static int check_room(
	const struct replica_table *table, const struct replica_run *run, struct error *err);
static struct replica *add(struct replica_table *table, struct replica_run *run, struct span id);
static struct span copy_owned(struct span bytes);
static bool renew(struct replica_table *table, struct replica *replica,
	const struct replica_row *row, const struct replica_message *report);
static bool set_report(
	struct replica *replica, struct span document, const struct replica_message *report);
static bool is_saved(const struct replica *replica);
static void load_one(struct replica_table *table, const struct replica_row *row);
static void remove_at(struct replica_table *table, struct replica_run *run, size_t at);
static void remove_run_at(struct replica_table *table, size_t at);
static size_t insert_step(uint64_t *steps, size_t have, size_t max, uint64_t step);
static size_t forget_of_run(struct replica_table *table, struct replica_run *run, int64_t now,
	size_t max, struct arena *arena, struct replica_name *out);

struct replica_table *replica_table_new(const struct clock_source *clock)
{
	struct replica_table *const table = memory_new(sizeof(*table));
	table->clock = clock;
	lock_init(&table->lock, LOCK_REPLICAS);
	return table;
}

void replica_table_free(struct replica_table *table)
{
	if (table == NULL)
		return;
	for (size_t i = 0; i < table->count; i++)
		free_run(table->runs[i]);
	free(table->runs);
	for (size_t i = 0; table->removals != NULL && i < REPLICA_REMOVALS_MAX; i++)
		free((void *)table->removals[i].id.data);
	free(table->removals);
	lease_heap_release(&table->leases);
	change_order_release(&table->moved);
	lock_release(&table->lock);
	free(table);
}

int replica_table_put(struct replica_table *table, const struct replica_row *row,
	const struct replica_message *report, bool *out_saved, struct error *err)
{
	int result = 0;
	ASSERT(row->id.len > 0 && row->id.len <= REPLICA_ID_MAX_BYTES);
	lock_enter(&table->lock);
	struct replica_run *const run = get_run(table, row->run);
	struct replica *replica = replica_table_look(table, row->run, row->id);
	if (replica == NULL) {
		result = check_room(table, run, err);
		if (result == 0) {
			replica = add(table, run, row->id);
			replica->since_ms = table->clock->wall_ms(table->clock);
			replica->unsaved = true;
		}
	}
	if (result == 0) {
		const bool comes = replica->change == 0 || replica->was_expired;
		const bool differs = renew(table, replica, row, report);
		replica->updated_ms = table->clock->wall_ms(table->clock);
		replica->is_loaded = false;
		replica_changes_note(table, replica, comes || differs);
		*out_saved = is_saved(replica);
	}
	lock_leave(&table->lock);
	return result;
}

int replica_table_load(struct replica_table *table, struct db *db, struct error *err)
{
	struct db_statement *const scan = replica_row_scan(db, err);
	int got;
	lock_enter(&table->lock);
	while ((got = db_step(scan, err)) == 1) {
		struct replica_row row;
		replica_row_read(scan, &row);
		load_one(table, &row);
	}
	table->is_whole = got == 0;
	lock_leave(&table->lock);
	db_reset(scan);
	return got;
}

bool replica_table_is_whole(const struct replica_table *table)
{
	return table->is_whole;
}

bool replica_table_find(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_entry *out)
{
	lock_enter(&table->lock);
	const struct replica *const replica = replica_table_look(table, run, id);
	if (replica != NULL) {
		replica_table_copy(replica_table_look_run(table, run), replica, arena, &out->row);
		out->expired = replica_table_is_expired(replica, replica_table_now(table));
	}
	lock_leave(&table->lock);
	return replica != NULL;
}

void replica_table_remove(struct replica_table *table, int64_t run, struct span id)
{
	lock_enter(&table->lock);
	struct replica_run *const of_run = replica_table_look_run(table, run);
	bool found = false;
	const size_t at = of_run == NULL ? 0 : find_place(of_run, id, &found);
	if (found)
		remove_at(table, of_run, at);
	lock_leave(&table->lock);
}

void replica_table_remove_run(struct replica_table *table, int64_t run)
{
	bool found;
	lock_enter(&table->lock);
	const size_t at = find_run_place(table, run, &found);
	if (found)
		remove_run_at(table, at);
	lock_leave(&table->lock);
}

size_t replica_table_page(struct replica_table *table, const struct replica_page *page,
	struct arena *arena, struct replica_entry *out, struct fleet_counts *counts)
{
	size_t taken = 0;
	lock_enter(&table->lock);
	replica_changes_end_leases(table);
	const struct replica_run *const of_run = replica_table_look_run(table, page->run);
	bool found = false;
	size_t at = of_run == NULL ? 0 : find_place(of_run, page->after, &found);
	if (of_run != NULL)
		*counts = of_run->counts.all;
	replica_table_add_age(table, of_run, counts);
	for (at += found; of_run != NULL && at < of_run->count && taken < page->limit; at++) {
		const struct replica *const replica = of_run->replicas[at];
		replica_table_copy(of_run, replica, arena, &out[taken].row);
		out[taken++].expired = replica->was_expired;
	}
	lock_leave(&table->lock);
	return taken;
}

bool replica_table_lowest(struct replica_table *table, int64_t run, uint64_t *out_step,
	char out_id[REPLICA_ID_MAX_BYTES + 1])
{
	const struct replica *lowest = NULL;
	lock_enter(&table->lock);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	const int64_t now = replica_table_now(table);
	for (size_t i = 0; of_run != NULL && i < of_run->count; i++) {
		const struct replica *const replica = of_run->replicas[i];
		if (replica->has_step && (lowest == NULL || replica->step < lowest->step) &&
			!replica_table_is_expired(replica, now))
			lowest = replica;
	}
	if (lowest != NULL) {
		*out_step = lowest->step;
		if (out_id != NULL) {
			ASSERT(lowest->id.len <= REPLICA_ID_MAX_BYTES);
			memcpy(out_id, lowest->id.data, lowest->id.len);
			out_id[lowest->id.len] = '\0';
		}
	}
	lock_leave(&table->lock);
	return lowest != NULL;
}

bool replica_table_holds(struct replica_table *table, int64_t run, uint64_t step)
{
	bool holds = false;
	lock_enter(&table->lock);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	const int64_t now = replica_table_now(table);
	for (size_t i = 0; of_run != NULL && i < of_run->count && !holds; i++) {
		const struct replica *const replica = of_run->replicas[i];
		holds = replica->has_step && replica->step == step &&
			!replica_table_is_expired(replica, now);
	}
	lock_leave(&table->lock);
	return holds;
}

size_t replica_table_wanted(
	struct replica_table *table, int64_t run, uint64_t *out_steps, size_t max)
{
	size_t have = 0;
	lock_enter(&table->lock);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	const int64_t now = replica_table_now(table);
	for (size_t i = 0; of_run != NULL && i < of_run->count; i++) {
		const struct replica *const replica = of_run->replicas[i];
		if (!replica->has_step && replica->has_wanted &&
			!replica_table_is_expired(replica, now))
			have = insert_step(out_steps, have, max, replica->wanted);
	}
	lock_leave(&table->lock);
	return have;
}

size_t replica_table_unsaved(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out)
{
	size_t taken = 0;
	lock_enter(&table->lock);
	for (size_t r = 0; r < table->count && taken < max; r++) {
		const struct replica_run *const run = table->runs[r];
		for (size_t i = 0; i < run->count && taken < max; i++)
			if (run->replicas[i]->unsaved)
				out[taken++] = (struct replica_name){
					run->run, arena_copy(arena, run->replicas[i]->id)};
	}
	lock_leave(&table->lock);
	return taken;
}

size_t replica_table_forget(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out)
{
	size_t taken = 0;
	lock_enter(&table->lock);
	const int64_t now = replica_table_now(table);
	for (size_t r = table->count; r-- > 0 && taken < max;) {
		/* A run that has just lost its last replica stays for a round: readers see that. */
		if (table->runs[r]->count == 0)
			remove_run_at(table, r);
		else
			taken += forget_of_run(
				table, table->runs[r], now, max - taken, arena, out + taken);
	}
	lock_leave(&table->lock);
	return taken;
}

bool replica_table_take(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_row *out, struct replica_saving *out_saving)
{
	lock_enter(&table->lock);
	struct replica *const replica = replica_table_look(table, run, id);
	*out_saving = (struct replica_saving){.known = replica != NULL};
	if (replica != NULL) {
		replica_table_copy(replica_table_look_run(table, run), replica, arena, out);
		out_saving->has_step = replica->has_step;
		out_saving->step = replica->step;
		out_saving->lease_ms = replica->lease_ms;
		replica->unsaved = false;
	}
	lock_leave(&table->lock);
	return out_saving->known;
}

void replica_table_saved(struct replica_table *table, int64_t run, struct span id,
	const struct replica_saving *saving, bool failed)
{
	if (!saving->known)
		return;
	lock_enter(&table->lock);
	struct replica *const replica = replica_table_look(table, run, id);
	if (replica != NULL && failed) {
		replica->unsaved = true;
	} else if (replica != NULL) {
		replica->saved = true;
		replica->saved_has_step = saving->has_step;
		replica->saved_step = saving->step;
		replica->saved_lease_ms = saving->lease_ms;
	}
	lock_leave(&table->lock);
}

size_t replica_table_count(struct replica_table *table)
{
	lock_enter(&table->lock);
	replica_changes_end_leases(table);
	const size_t live = table->leases.count;
	lock_leave(&table->lock);
	return live;
}

struct replica *replica_table_look(const struct replica_table *table, int64_t run, struct span id)
{
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	bool found = false;
	const size_t at = of_run == NULL ? 0 : find_place(of_run, id, &found);
	return found ? of_run->replicas[at] : NULL;
}

struct replica_run *replica_table_look_run(const struct replica_table *table, int64_t run)
{
	bool found;
	const size_t at = find_run_place(table, run, &found);
	return found ? table->runs[at] : NULL;
}

void replica_table_copy(const struct replica_run *run, const struct replica *replica,
	struct arena *arena, struct replica_row *out)
{
	*out = (struct replica_row){
		.run = run->run,
		.id = arena_copy(arena, replica->id),
		.document = arena_copy(arena, replica->document),
		.lease_ms = replica->lease_ms,
		.since_ms = replica->since_ms,
		.updated_ms = replica->updated_ms,
	};
}

bool replica_table_is_expired(const struct replica *replica, int64_t now)
{
	return now >= replica->lease.end_ms;
}

int64_t replica_table_now(const struct replica_table *table)
{
	return table->clock->monotonic_ms(table->clock);
}

void replica_table_count_in(struct replica *replica)
{
	if (replica->is_counted)
		replica_counts_take(&replica->of_run->counts, &replica->counted);
	replica->counted = (struct replica_counted){
		replica->was_expired, replica->state, replica->has_step, replica->step};
	replica->is_counted = true;
	replica_counts_add(&replica->of_run->counts, &replica->counted);
}

/* Replicas were loaded in the order of their ids, before any report, and all report later than
 * that. */
void replica_table_add_age(
	const struct replica_table *table, const struct replica_run *run, struct fleet_counts *out)
{
	const struct replica *const oldest = run == NULL ? NULL : change_order_first(&run->reports);
	out->has_report = oldest != NULL;
	out->oldest_report_s = 0;
	if (oldest == NULL)
		return;
	const int64_t ms = oldest->is_loaded ? run->loaded_ms : oldest->updated_ms;
	const int64_t now_ms = table->clock->wall_ms(table->clock);
	if (now_ms > ms)
		out->oldest_report_s = (uint64_t)(now_ms - ms) / 1000;
}

static void free_run(struct replica_run *run)
{
	for (size_t i = 0; i < run->count; i++)
		free_replica(run->replicas[i]);
	free(run->replicas);
	replica_counts_release(&run->counts);
	change_order_release(&run->order);
	change_order_release(&run->reports);
	free(run);
}

static void free_replica(struct replica *replica)
{
	free((void *)replica->id.data);
	free((void *)replica->document.data);
	free(replica);
}

/* The index at which the run is or belongs. */
static size_t find_run_place(const struct replica_table *table, int64_t run, bool *out_found)
{
	lock_assert_held(&table->lock);
	const size_t at = search_lower_bound(
		table->runs, table->count, sizeof(*table->runs), replica_table_run_is_before, &run);
	*out_found = at < table->count && table->runs[at]->run == run;
	return at;
}

static bool replica_table_run_is_before(const void *element, const void *key)
{
	return (*(struct replica_run *const *)element)->run < *(const int64_t *)key;
}

static size_t find_place(const struct replica_run *run, struct span id, bool *out_found)
{
	const size_t at = search_lower_bound(run->replicas, run->count, sizeof(*run->replicas),
		replica_table_replica_is_before, &id);
	*out_found = at < run->count && span_equal(run->replicas[at]->id, id);
	return at;
}

static bool replica_table_replica_is_before(const void *element, const void *key)
{
	return span_compare((*(struct replica *const *)element)->id, *(const struct span *)key) < 0;
}

static struct replica_run *get_run(struct replica_table *table, int64_t run)
{
	bool found;
	const size_t at = find_run_place(table, run, &found);
	if (found)
		return table->runs[at];
	table->runs =
		memory_make_room(table->runs, table->count, &table->capacity, sizeof(*table->runs));
	memmove(&table->runs[at + 1], &table->runs[at], (table->count - at) * sizeof(*table->runs));
	table->runs[at] = memory_new(sizeof(*table->runs[at]));
	table->runs[at]->run = run;
	table->count++;
	return table->runs[at];
}

static int check_room(
	const struct replica_table *table, const struct replica_run *run, struct error *err)
{
	if (run->count < REPLICAS_OF_RUN_MAX && table->total < REPLICAS_MAX)
		return 0;
	return error_set(err, ERROR_BUSY,
		"The run has %zu replicas and the server %zu, which is the limit; a replica is forgotten %d minutes "
		"after its lease has expired.",
		run->count, table->total, REPLICA_FORGET_MS / 60000);
}

static struct replica *add(struct replica_table *table, struct replica_run *run, struct span id)
{
	bool found;
	const size_t at = find_place(run, id, &found);
	run->replicas =
		memory_make_room(run->replicas, run->count, &run->capacity, sizeof(*run->replicas));
	memmove(&run->replicas[at + 1], &run->replicas[at],
		(run->count - at) * sizeof(*run->replicas));
	run->replicas[at] = memory_new(sizeof(*run->replicas[at]));
	run->replicas[at]->of_run = run;
	run->replicas[at]->id = copy_owned(id);
	run->count++;
	table->total++;
	return run->replicas[at];
}

static struct span copy_owned(struct span bytes)
{
	return span_of(bytes.len > 0 ? memory_copy(bytes.data, bytes.len) : NULL, bytes.len);
}

/* Begins the lease anew. Returns whether the report differs from the one before. */
static bool renew(struct replica_table *table, struct replica *replica,
	const struct replica_row *row, const struct replica_message *report)
{
	const bool differs = set_report(replica, row->document, report);
	replica->lease_ms = row->lease_ms;
	replica->was_expired = false;
	lease_heap_set(&table->leases, &replica->lease, replica_table_now(table) + row->lease_ms);
	replica_table_count_in(replica);
	return differs;
}

/* Returns whether the report differs from the one before. */
static bool set_report(
	struct replica *replica, struct span document, const struct replica_message *report)
{
	const bool differs = !span_equal(replica->document, document);
	ASSERT(report->state < REPLICA_STATE_COUNT);
	if (differs) {
		free((void *)replica->document.data);
		replica->document = copy_owned(document);
		replica->unsaved = true;
	}
	replica->state = report->state;
	replica->has_step = report->has_step;
	replica->step = report->step;
	replica->has_wanted = report->has_wanted;
	replica->wanted = report->wanted;
	return differs;
}

/* Whether the saved row protects as much as the lease: after a start the lease of the row runs. A
 * row with a lower step protects more. A lease without a step protects nothing that lasts, so any
 * step will do. */
static bool is_saved(const struct replica *replica)
{
	if (!replica->saved || replica->saved_lease_ms < replica->lease_ms)
		return false;
	if (!replica->has_step)
		return true;
	return replica->saved_has_step && replica->saved_step <= replica->step;
}

static void load_one(struct replica_table *table, const struct replica_row *row)
{
	struct arena *const arena = arena_new(LOAD_ARENA_BYTES);
	struct replica_message report;
	struct error ignored;
	/* It is unknown what a damaged row protects. Its worker will report again. */
	if (row->id.len <= REPLICA_ID_MAX_BYTES &&
		replica_message_parse(row->document, arena, &report, &ignored) == 0) {
		struct replica_run *const run = get_run(table, row->run);
		struct replica *const replica = add(table, run, row->id);
		renew(table, replica, row, &report);
		replica->since_ms = row->since_ms;
		replica->updated_ms = row->updated_ms;
		replica->unsaved = false;
		replica->saved = true;
		replica->saved_has_step = report.has_step;
		replica->saved_step = report.step;
		replica->saved_lease_ms = row->lease_ms;
		replica->is_loaded = true;
		if (run->count == 1 || row->updated_ms < run->loaded_ms)
			run->loaded_ms = row->updated_ms;
		replica_changes_note(table, replica, true);
	}
	arena_free(arena);
}

static void remove_at(struct replica_table *table, struct replica_run *run, size_t at)
{
	ASSERT(at < run->count && table->total > 0);
	struct replica *const replica = run->replicas[at];
	ASSERT(replica->is_counted);
	replica_changes_note_removal(table, replica);
	replica_counts_take(&run->counts, &replica->counted);
	lease_heap_remove(&table->leases, &replica->lease);
	free_replica(replica);
	run->count--;
	table->total--;
	memmove(&run->replicas[at], &run->replicas[at + 1],
		(run->count - at) * sizeof(*run->replicas));
}

static void remove_run_at(struct replica_table *table, size_t at)
{
	ASSERT(at < table->count && table->total >= table->runs[at]->count);
	table->total -= table->runs[at]->count;
	for (size_t i = 0; i < table->runs[at]->count; i++)
		lease_heap_remove(&table->leases, &table->runs[at]->replicas[i]->lease);
	replica_changes_forget_run(table, table->runs[at]);
	free_run(table->runs[at]);
	table->count--;
	memmove(&table->runs[at], &table->runs[at + 1], (table->count - at) * sizeof(*table->runs));
}

/* Inserts into a sorted array without repeats. When the array is full, the highest step drops out.
 * Returns the new count. */
static size_t insert_step(uint64_t *steps, size_t have, size_t max, uint64_t step)
{
	ASSERT(have <= max);
	size_t at = 0;
	while (at < have && steps[at] < step)
		at++;
	if ((at < have && steps[at] == step) || at == max)
		return have;
	const size_t moved = have - at - (have == max ? 1 : 0);
	memmove(&steps[at + 1], &steps[at], moved * sizeof(*steps));
	steps[at] = step;
	return have == max ? have : have + 1;
}

static size_t forget_of_run(struct replica_table *table, struct replica_run *run, int64_t now,
	size_t max, struct arena *arena, struct replica_name *out)
{
	size_t taken = 0;
	for (size_t i = run->count; i-- > 0 && taken < max;)
		if (now - run->replicas[i]->lease.end_ms >= REPLICA_FORGET_MS) {
			out[taken++] = (struct replica_name){
				run->run, arena_copy(arena, run->replicas[i]->id)};
			remove_at(table, run, i);
		}
	return taken;
}
