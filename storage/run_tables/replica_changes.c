/* The replicas of a run are linked in the order of their last changes, and the runs in the order of
 * their last moves: changes that are more than a repeated report. A reader walks back from the end
 * to where it was. Removals are in a ring. */
#include "storage/run_tables/replica_table_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void unlink_change(struct replica_run *run, struct replica *replica);
static void note_move(struct replica_table *table, struct replica_run *run);
static const struct replica *first_after(const struct replica_run *run, uint64_t change);
static uint64_t removal_after(const struct replica_table *table, uint64_t change);
static void count_in_fleet(
	const struct replica *replica, uint64_t target, struct replica_fleet *out);

void replica_table_fleet(
	struct replica_table *table, int64_t run, uint64_t target, struct replica_fleet *out)
{
	memset(out, 0, sizeof(*out));
	lock_enter(&table->lock);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	const int64_t now = replica_table_now(table);
	for (size_t i = 0; of_run != NULL && i < of_run->count; i++) {
		if (replica_table_is_expired(of_run->replicas[i], now))
			out->expired++;
		else
			count_in_fleet(of_run->replicas[i], target, out);
	}
	out->has_report = replica_table_oldest_report(table, of_run, now, &out->oldest_report_s);
	lock_leave(&table->lock);
}

uint64_t replica_table_last_change(struct replica_table *table, int64_t run, uint64_t *out_of_all)
{
	lock_enter(&table->lock);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	const uint64_t change = of_run == NULL ? 0 : of_run->change;
	*out_of_all = table->change;
	lock_leave(&table->lock);
	return change;
}

void replica_table_changed(struct replica_table *table, struct replica_changes *changes,
	struct arena *arena, struct replica_entry *out)
{
	ASSERT(changes->limit > 0);
	changes->count = 0;
	lock_enter(&table->lock);
	const struct replica_run *const run = replica_table_look_run(table, changes->run);
	const int64_t now = replica_table_now(table);
	const struct replica *at = run == NULL ? NULL : first_after(run, changes->after);
	for (; at != NULL && at->change <= changes->until && changes->count < changes->limit;
		at = at->behind) {
		replica_table_copy(run, at, arena, &out[changes->count].row);
		out[changes->count++].expired = replica_table_is_expired(at, now);
		changes->after = at->change;
	}
	changes->has_more = at != NULL && at->change <= changes->until;
	lock_leave(&table->lock);
}

bool replica_table_removed(struct replica_table *table, struct replica_changes *changes,
	struct arena *arena, struct span *out)
{
	ASSERT(changes->limit > 0);
	changes->count = 0;
	changes->has_more = false;
	lock_enter(&table->lock);
	const bool is_whole = changes->after >= table->forgotten;
	uint64_t at = is_whole ? removal_after(table, changes->after) : table->removal_count;
	for (; at < table->removal_count && changes->count < changes->limit; at++) {
		const struct removal *const removal = &table->removals[at % REPLICA_REMOVALS_MAX];
		if (removal->change > changes->until)
			break;
		changes->after = removal->change;
		if (removal->run == changes->run &&
			replica_table_look(table, removal->run, removal->id) == NULL)
			out[changes->count++] = arena_copy(arena, removal->id);
	}
	changes->has_more = changes->count == changes->limit;
	lock_leave(&table->lock);
	return is_whole;
}

void replica_table_moved(
	struct replica_table *table, struct replica_changes *changes, int64_t *out_runs)
{
	ASSERT(changes->limit > 0);
	changes->count = 0;
	lock_enter(&table->lock);
	const struct replica_run *at = table->last_moved;
	while (at != NULL && at->before != NULL && at->before->move > changes->after)
		at = at->before;
	if (at != NULL && at->move <= changes->after)
		at = NULL;
	for (; at != NULL && at->move <= changes->until && changes->count < changes->limit;
		at = at->behind) {
		out_runs[changes->count++] = at->run;
		changes->after = at->move;
	}
	changes->has_more = at != NULL && at->move <= changes->until;
	lock_leave(&table->lock);
}

uint64_t replica_table_last_move(struct replica_table *table)
{
	lock_enter(&table->lock);
	const uint64_t move = table->last_moved == NULL ? 0 : table->last_moved->move;
	lock_leave(&table->lock);
	return move;
}

void replica_table_note_expired(struct replica_table *table)
{
	lock_enter(&table->lock);
	const int64_t now = replica_table_now(table);
	for (size_t r = 0; r < table->count; r++)
		for (size_t i = 0; i < table->runs[r]->count; i++) {
			struct replica *const replica = table->runs[r]->replicas[i];
			if (replica->was_expired || !replica_table_is_expired(replica, now))
				continue;
			replica->was_expired = true;
			table->ended++;
			replica_changes_note(table, table->runs[r], replica, true);
		}
	lock_leave(&table->lock);
}

void replica_changes_note(
	struct replica_table *table, struct replica_run *run, struct replica *replica, bool is_move)
{
	lock_assert_held(&table->lock);
	unlink_change(run, replica);
	replica->change = run->change = ++table->change;
	replica->before = run->last_changed;
	if (run->last_changed != NULL)
		run->last_changed->behind = replica;
	run->last_changed = replica;
	if (is_move)
		note_move(table, run);
}

void replica_changes_note_removal(
	struct replica_table *table, struct replica_run *run, struct replica *replica)
{
	lock_assert_held(&table->lock);
	if (table->removals == NULL)
		table->removals = memory_new_array(REPLICA_REMOVALS_MAX, sizeof(*table->removals));
	struct removal *const removal =
		&table->removals[table->removal_count++ % REPLICA_REMOVALS_MAX];
	if (removal->change > 0)
		table->forgotten = removal->change;
	free((void *)removal->id.data);
	*removal = (struct removal){.change = ++table->change,
		.run = run->run,
		.id = span_of(memory_copy(replica->id.data, replica->id.len), replica->id.len)};
	run->change = table->change;
	unlink_change(run, replica);
	note_move(table, run);
}

void replica_changes_unlink_run(struct replica_table *table, struct replica_run *run)
{
	if (run->move == 0)
		return;
	if (run->before != NULL)
		run->before->behind = run->behind;
	if (run->behind != NULL)
		run->behind->before = run->before;
	else
		table->last_moved = run->before;
	run->before = run->behind = NULL;
}

/* Does nothing for a replica that is not linked yet. */
static void unlink_change(struct replica_run *run, struct replica *replica)
{
	if (replica->change == 0)
		return;
	if (replica->before != NULL)
		replica->before->behind = replica->behind;
	if (replica->behind != NULL)
		replica->behind->before = replica->before;
	else
		run->last_changed = replica->before;
	replica->before = replica->behind = NULL;
}

static void note_move(struct replica_table *table, struct replica_run *run)
{
	replica_changes_unlink_run(table, run);
	run->move = table->change;
	run->before = table->last_moved;
	if (table->last_moved != NULL)
		table->last_moved->behind = run;
	table->last_moved = run;
}

/* The replica with the lowest change above this one; NULL: there is none. */
static const struct replica *first_after(const struct replica_run *run, uint64_t change)
{
	const struct replica *at = run->last_changed;
	if (at == NULL || at->change <= change)
		return NULL;
	while (at->before != NULL && at->before->change > change)
		at = at->before;
	return at;
}

/* The number of the first removal with a change above this one. */
static uint64_t removal_after(const struct replica_table *table, uint64_t change)
{
	const uint64_t count = table->removal_count;
	const uint64_t oldest = count > REPLICA_REMOVALS_MAX ? count - REPLICA_REMOVALS_MAX : 0;
	uint64_t at = count;
	while (at > oldest && table->removals[(at - 1) % REPLICA_REMOVALS_MAX].change > change)
		at--;
	return at;
}

static void count_in_fleet(
	const struct replica *replica, uint64_t target, struct replica_fleet *out)
{
	out->states[replica->state]++;
	out->without_step += !replica->has_step;
	if (!replica->has_step)
		return;
	if (!out->has_oldest || replica->step < out->oldest)
		out->oldest = replica->step;
	if (!out->has_oldest || replica->step > out->newest)
		out->newest = replica->step;
	out->has_oldest = true;
	out->behind += replica->step < target;
	out->ahead += replica->step > target;
}
