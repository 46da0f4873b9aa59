/* The replicas of a run lie in the order of their last changes, and the runs in the order of their
 * last moves: changes that are more than a repeated report. A reader goes on from where it was.
 * Removals are in a ring. */
#include "storage/run_tables/replica_table_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void note_report(struct replica *replica);
static void note_move(struct replica_table *table, struct replica_run *run);
static uint64_t removal_after(const struct replica_table *table, uint64_t change);

void replica_table_fleet(
	struct replica_table *table, int64_t run, uint64_t target, struct replica_fleet *out)
{
	static const struct replica_counts none;
	lock_enter(&table->lock);
	replica_changes_end_leases(table);
	const struct replica_run *const of_run = replica_table_look_run(table, run);
	replica_counts_fleet(of_run == NULL ? &none : &of_run->counts, target, out);
	replica_table_add_age(table, of_run, &out->counts);
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
	static const struct change_order none;
	ASSERT(changes->limit > 0);
	changes->count = 0;
	lock_enter(&table->lock);
	const struct replica_run *const run = replica_table_look_run(table, changes->run);
	const struct change_order *const order = run == NULL ? &none : &run->order;
	const int64_t now = replica_table_now(table);
	const size_t first = change_order_find(order, changes->after);
	size_t at = first;
	const struct replica *replica = change_order_next(order, &at);
	for (; replica != NULL && replica->change <= changes->until &&
		changes->count < changes->limit;
		replica = change_order_next(order, &at)) {
		replica_table_copy(run, replica, arena, &out[changes->count].row);
		out[changes->count++].expired = replica_table_is_expired(replica, now);
		changes->after = replica->change;
	}
	changes->has_more = replica != NULL && replica->change <= changes->until;
	changes->looked_at = at - first;
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
	const size_t first = change_order_find(&table->moved, changes->after);
	size_t at = first;
	const struct replica_run *run = change_order_next(&table->moved, &at);
	for (; run != NULL && run->move <= changes->until && changes->count < changes->limit;
		run = change_order_next(&table->moved, &at)) {
		out_runs[changes->count++] = run->run;
		changes->after = run->move;
	}
	changes->has_more = run != NULL && run->move <= changes->until;
	changes->looked_at = at - first;
	lock_leave(&table->lock);
}

uint64_t replica_table_last_move(struct replica_table *table)
{
	lock_enter(&table->lock);
	const uint64_t move = table->move;
	lock_leave(&table->lock);
	return move;
}

void replica_table_note_expired(struct replica_table *table)
{
	lock_enter(&table->lock);
	replica_changes_end_leases(table);
	lock_leave(&table->lock);
}

void replica_changes_end_leases(struct replica_table *table)
{
	lock_assert_held(&table->lock);
	const int64_t now = replica_table_now(table);
	struct replica *replica;
	while ((replica = (struct replica *)lease_heap_first(&table->leases)) != NULL &&
		replica_table_is_expired(replica, now)) {
		lease_heap_remove(&table->leases, &replica->lease);
		replica->was_expired = true;
		replica_table_count_in(replica);
		replica_changes_note(table, replica, true);
	}
}

void replica_changes_note(struct replica_table *table, struct replica *replica, bool is_move)
{
	struct replica_run *const run = replica->of_run;
	lock_assert_held(&table->lock);
	if (replica->change > 0)
		change_order_remove(&run->order, replica->change);
	replica->change = run->change = ++table->change;
	change_order_add(&run->order, replica->change, replica);
	note_report(replica);
	if (is_move)
		note_move(table, run);
}

void replica_changes_note_removal(struct replica_table *table, const struct replica *replica)
{
	struct replica_run *const run = replica->of_run;
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
	change_order_remove(&run->order, replica->change);
	if (replica->told > 0)
		change_order_remove(&run->reports, replica->told);
	note_move(table, run);
}

void replica_changes_forget_run(struct replica_table *table, const struct replica_run *run)
{
	if (run->move > 0)
		change_order_remove(&table->moved, run->move);
}

/* The change of a replica with a lease is a report. */
static void note_report(struct replica *replica)
{
	struct change_order *const reports = &replica->of_run->reports;
	if (replica->told > 0)
		change_order_remove(reports, replica->told);
	replica->told = replica->was_expired ? 0 : replica->change;
	if (replica->told > 0)
		change_order_add(reports, replica->told, replica);
}

static void note_move(struct replica_table *table, struct replica_run *run)
{
	replica_changes_forget_run(table, run);
	run->move = table->move = table->change;
	change_order_add(&table->moved, run->move, run);
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
