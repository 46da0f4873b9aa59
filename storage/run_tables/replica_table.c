/* Runs in an array sorted by number, replicas of a run in one sorted by id: a look-up is two binary
 * searches, a page is a slice. */
#include "storage/run_tables/replica_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum { LOAD_ARENA_BYTES = 64 * 1024 };

struct replica {
	struct span id; /* owned, like the document */
	struct span document;
	enum replica_state state;
	bool has_step;
	uint64_t step;
	bool has_wanted;
	uint64_t wanted;
	int64_t lease_ms;
	int64_t heard_ms; /* monotonic */
	int64_t since_ms; /* wall */
	int64_t updated_ms;
	bool unsaved; /* says other than was last taken for saving */
	bool saved;   /* the catalog has it, with: */
	bool saved_has_step;
	uint64_t saved_step;
};
struct replica_run {
	int64_t run;
	struct replica **replicas;
	size_t count;
	size_t capacity;
};
struct replica_table {
	const struct clock_source *clock;
	bool is_whole; /* set before others use the table */
	struct lock lock;
	struct replica_run **runs; /* guarded by lock, as what follows */
	size_t count;
	size_t capacity;
	size_t total;
};

static void free_run(struct replica_run *run);
static void free_replica(struct replica *replica);
static struct replica *find(const struct replica_table *table, int64_t run, struct span id);
static struct replica_run *find_run(const struct replica_table *table, int64_t run);
static size_t run_place(const struct replica_table *table, int64_t run, bool *out_there);
static size_t place(const struct replica_run *run, struct span id, bool *out_there);
static struct replica_run *need_run(struct replica_table *table, int64_t run);
static int check_room(
	const struct replica_table *table, const struct replica_run *run, struct error *err);
static struct replica *add(struct replica_table *table, struct replica_run *run, struct span id);
static struct span own(struct span bytes);
static void say(struct replica *replica, struct span document, const struct replica_message *said);
static int64_t now_ms(const struct replica_table *table);
static bool is_saved(const struct replica *replica);
static void load_one(struct replica_table *table, const struct replica_row *row);
static void copy_row(const struct replica_run *run, const struct replica *replica,
	struct arena *arena, struct replica_row *out);
static bool is_expired(const struct replica *replica, int64_t now);
static void remove_at(struct replica_table *table, struct replica_run *run, size_t at);
static void remove_run_at(struct replica_table *table, size_t at);
static void count(const struct replica *replica, bool expired, struct replica_list_message *list);
static size_t insert(uint64_t *steps, size_t have, size_t max, uint64_t step);
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
	lock_release(&table->lock);
	free(table);
}

int replica_table_put(struct replica_table *table, const struct replica_row *row,
	const struct replica_message *said, bool *out_saved, struct error *err)
{
	int result = 0;
	lock_enter(&table->lock);
	struct replica *replica = find(table, row->run, row->id);
	if (replica == NULL) {
		struct replica_run *const run = need_run(table, row->run);
		result = check_room(table, run, err);
		if (result == 0) {
			replica = add(table, run, row->id);
			replica->since_ms = table->clock->wall_ms(table->clock);
			replica->unsaved = true;
		}
	}
	if (result == 0) {
		say(replica, row->document, said);
		replica->lease_ms = row->lease_ms;
		replica->heard_ms = now_ms(table);
		replica->updated_ms = table->clock->wall_ms(table->clock);
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
	const struct replica *const replica = find(table, run, id);
	if (replica != NULL) {
		copy_row(find_run(table, run), replica, arena, &out->row);
		out->expired = is_expired(replica, now_ms(table));
	}
	lock_leave(&table->lock);
	return replica != NULL;
}

void replica_table_remove(struct replica_table *table, int64_t run, struct span id)
{
	lock_enter(&table->lock);
	struct replica_run *const of = find_run(table, run);
	bool there = false;
	const size_t at = of == NULL ? 0 : place(of, id, &there);
	if (there)
		remove_at(table, of, at);
	lock_leave(&table->lock);
}

void replica_table_remove_run(struct replica_table *table, int64_t run)
{
	bool there;
	lock_enter(&table->lock);
	const size_t at = run_place(table, run, &there);
	if (there)
		remove_run_at(table, at);
	lock_leave(&table->lock);
}

size_t replica_table_page(struct replica_table *table, int64_t run, struct span after, size_t limit,
	struct arena *arena, struct replica_entry *out, struct replica_list_message *list)
{
	size_t taken = 0;
	lock_enter(&table->lock);
	const struct replica_run *const of = find_run(table, run);
	const int64_t now = now_ms(table);
	for (size_t i = 0; of != NULL && i < of->count; i++) {
		const bool expired = is_expired(of->replicas[i], now);
		count(of->replicas[i], expired, list);
		if (taken == limit ||
			(after.len > 0 && span_compare(of->replicas[i]->id, after) <= 0))
			continue;
		copy_row(of, of->replicas[i], arena, &out[taken].row);
		out[taken++].expired = expired;
	}
	lock_leave(&table->lock);
	return taken;
}

bool replica_table_lowest(struct replica_table *table, int64_t run, uint64_t *out_step,
	char out_id[REPLICA_ID_MAX_BYTES + 1])
{
	const struct replica *lowest = NULL;
	lock_enter(&table->lock);
	const struct replica_run *const of = find_run(table, run);
	const int64_t now = now_ms(table);
	for (size_t i = 0; of != NULL && i < of->count; i++) {
		const struct replica *const replica = of->replicas[i];
		if (replica->has_step && (lowest == NULL || replica->step < lowest->step) &&
			!is_expired(replica, now))
			lowest = replica;
	}
	if (lowest != NULL) {
		*out_step = lowest->step;
		if (out_id != NULL) {
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
	const struct replica_run *const of = find_run(table, run);
	const int64_t now = now_ms(table);
	for (size_t i = 0; of != NULL && i < of->count && !holds; i++) {
		const struct replica *const replica = of->replicas[i];
		holds = replica->has_step && replica->step == step && !is_expired(replica, now);
	}
	lock_leave(&table->lock);
	return holds;
}

size_t replica_table_wanted(
	struct replica_table *table, int64_t run, uint64_t *out_steps, size_t max)
{
	size_t have = 0;
	lock_enter(&table->lock);
	const struct replica_run *const of = find_run(table, run);
	const int64_t now = now_ms(table);
	for (size_t i = 0; of != NULL && i < of->count; i++) {
		const struct replica *const replica = of->replicas[i];
		if (!replica->has_step && replica->has_wanted && !is_expired(replica, now))
			have = insert(out_steps, have, max, replica->wanted);
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
	const int64_t now = now_ms(table);
	for (size_t r = table->count; r-- > 0 && taken < max;) {
		taken += forget_of_run(table, table->runs[r], now, max - taken, arena, out + taken);
		if (table->runs[r]->count == 0)
			remove_run_at(table, r);
	}
	lock_leave(&table->lock);
	return taken;
}

bool replica_table_take(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_row *out, struct replica_saving *out_saving)
{
	lock_enter(&table->lock);
	struct replica *const replica = find(table, run, id);
	*out_saving = (struct replica_saving){.known = replica != NULL};
	if (replica != NULL) {
		copy_row(find_run(table, run), replica, arena, out);
		out_saving->has_step = replica->has_step;
		out_saving->step = replica->step;
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
	struct replica *const replica = find(table, run, id);
	if (replica != NULL && failed) {
		replica->unsaved = true;
	} else if (replica != NULL) {
		replica->saved = true;
		replica->saved_has_step = saving->has_step;
		replica->saved_step = saving->step;
	}
	lock_leave(&table->lock);
}

size_t replica_table_count(struct replica_table *table)
{
	size_t live = 0;
	lock_enter(&table->lock);
	const int64_t now = now_ms(table);
	for (size_t r = 0; r < table->count; r++)
		for (size_t i = 0; i < table->runs[r]->count; i++)
			live += is_expired(table->runs[r]->replicas[i], now) ? 0 : 1;
	lock_leave(&table->lock);
	return live;
}

static void free_run(struct replica_run *run)
{
	for (size_t i = 0; i < run->count; i++)
		free_replica(run->replicas[i]);
	free(run->replicas);
	free(run);
}

static void free_replica(struct replica *replica)
{
	free((void *)replica->id.data);
	free((void *)replica->document.data);
	free(replica);
}

static struct replica *find(const struct replica_table *table, int64_t run, struct span id)
{
	const struct replica_run *const of = find_run(table, run);
	bool there = false;
	const size_t at = of == NULL ? 0 : place(of, id, &there);
	return there ? of->replicas[at] : NULL;
}

static struct replica_run *find_run(const struct replica_table *table, int64_t run)
{
	bool there;
	const size_t at = run_place(table, run, &there);
	return there ? table->runs[at] : NULL;
}

/* Where the run is, or belongs. */
static size_t run_place(const struct replica_table *table, int64_t run, bool *out_there)
{
	size_t low = 0;
	size_t high = table->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (table->runs[middle]->run < run)
			low = middle + 1;
		else
			high = middle;
	}
	*out_there = low < table->count && table->runs[low]->run == run;
	return low;
}

static size_t place(const struct replica_run *run, struct span id, bool *out_there)
{
	size_t low = 0;
	size_t high = run->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (span_compare(run->replicas[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*out_there = low < run->count && span_equal(run->replicas[low]->id, id);
	return low;
}

static struct replica_run *need_run(struct replica_table *table, int64_t run)
{
	bool there;
	const size_t at = run_place(table, run, &there);
	if (there)
		return table->runs[at];
	if (table->count == table->capacity) {
		table->capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
		table->runs = memory_grow(table->runs, table->capacity, sizeof(*table->runs));
	}
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
		"There are %zu replicas of this run and %zu in all, the most there may be; one is forgotten %d minutes "
		"after its lease.",
		run->count, table->total, REPLICA_FORGET_MS / 60000);
}

static struct replica *add(struct replica_table *table, struct replica_run *run, struct span id)
{
	bool there;
	const size_t at = place(run, id, &there);
	if (run->count == run->capacity) {
		run->capacity = run->capacity == 0 ? 16 : 2 * run->capacity;
		run->replicas = memory_grow(run->replicas, run->capacity, sizeof(*run->replicas));
	}
	memmove(&run->replicas[at + 1], &run->replicas[at],
		(run->count - at) * sizeof(*run->replicas));
	run->replicas[at] = memory_new(sizeof(*run->replicas[at]));
	run->replicas[at]->id = own(id);
	run->count++;
	table->total++;
	return run->replicas[at];
}

static struct span own(struct span bytes)
{
	return span_of(bytes.len > 0 ? memory_copy(bytes.data, bytes.len) : NULL, bytes.len);
}

static void say(struct replica *replica, struct span document, const struct replica_message *said)
{
	if (!span_equal(replica->document, document)) {
		free((void *)replica->document.data);
		replica->document = own(document);
		replica->unsaved = true;
	}
	replica->state = said->state;
	replica->has_step = said->has_step;
	replica->step = said->step;
	replica->has_wanted = said->has_wanted;
	replica->wanted = said->wanted;
}

static int64_t now_ms(const struct replica_table *table)
{
	return table->clock->monotonic_ms(table->clock);
}

/* A row that holds a lower step protects more; one that holds none protects nothing for good. */
static bool is_saved(const struct replica *replica)
{
	if (!replica->saved || !replica->has_step)
		return replica->saved;
	return replica->saved_has_step && replica->saved_step <= replica->step;
}

static void load_one(struct replica_table *table, const struct replica_row *row)
{
	struct arena *const arena = arena_new(LOAD_ARENA_BYTES);
	struct replica_message said;
	struct error ignored;
	/* A damaged row protects nothing that could be known; its worker will say it anew. */
	if (replica_message_parse(row->document, arena, &said, &ignored) == 0) {
		struct replica *const replica = add(table, need_run(table, row->run), row->id);
		say(replica, row->document, &said);
		replica->lease_ms = row->lease_ms;
		replica->heard_ms = now_ms(table);
		replica->since_ms = row->since_ms;
		replica->updated_ms = row->updated_ms;
		replica->unsaved = false;
		replica->saved = true;
		replica->saved_has_step = said.has_step;
		replica->saved_step = said.step;
	}
	arena_free(arena);
}

static void copy_row(const struct replica_run *run, const struct replica *replica,
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

static bool is_expired(const struct replica *replica, int64_t now)
{
	return now - replica->heard_ms >= replica->lease_ms;
}

static void remove_at(struct replica_table *table, struct replica_run *run, size_t at)
{
	free_replica(run->replicas[at]);
	run->count--;
	table->total--;
	memmove(&run->replicas[at], &run->replicas[at + 1],
		(run->count - at) * sizeof(*run->replicas));
}

static void remove_run_at(struct replica_table *table, size_t at)
{
	table->total -= table->runs[at]->count;
	free_run(table->runs[at]);
	table->count--;
	memmove(&table->runs[at], &table->runs[at + 1], (table->count - at) * sizeof(*table->runs));
}

static void count(const struct replica *replica, bool expired, struct replica_list_message *list)
{
	if (expired) {
		list->expired++;
		return;
	}
	list->states[replica->state]++;
	if (replica->has_step && (!list->has_oldest || replica->step < list->oldest)) {
		list->has_oldest = true;
		list->oldest = replica->step;
	}
}

/* Into a sorted array without repeats; when it is full, the highest falls out. */
static size_t insert(uint64_t *steps, size_t have, size_t max, uint64_t step)
{
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
		if (now - run->replicas[i]->heard_ms >=
			run->replicas[i]->lease_ms + REPLICA_FORGET_MS) {
			out[taken++] = (struct replica_name){
				run->run, arena_copy(arena, run->replicas[i]->id)};
			remove_at(table, run, i);
		}
	return taken;
}
