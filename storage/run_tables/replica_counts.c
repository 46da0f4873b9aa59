#include "storage/run_tables/replica_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/search.h"

static size_t find_step(const struct replica_counts *counts, uint64_t step, bool *out_found);
static bool replica_counts_is_before(const void *element, const void *key);
static void add_holder(struct replica_counts *counts, uint64_t step);
static void take_holder(struct replica_counts *counts, uint64_t step);
static void note_oldest(struct replica_counts *counts);

void replica_counts_release(struct replica_counts *counts)
{
	free(counts->steps);
	*counts = (struct replica_counts){.steps = NULL};
}

void replica_counts_add(struct replica_counts *counts, const struct replica_counted *replica)
{
	if (replica->expired) {
		counts->all.expired++;
		return;
	}
	ASSERT(replica->state < REPLICA_STATE_COUNT);
	counts->all.states[replica->state]++;
	if (replica->has_step)
		add_holder(counts, replica->step);
	else
		counts->all.without_step++;
}

void replica_counts_take(struct replica_counts *counts, const struct replica_counted *replica)
{
	if (replica->expired) {
		ASSERT(counts->all.expired > 0);
		counts->all.expired--;
		return;
	}
	ASSERT(counts->all.states[replica->state] > 0);
	counts->all.states[replica->state]--;
	if (replica->has_step)
		take_holder(counts, replica->step);
	else
		counts->all.without_step--;
}

void replica_counts_fleet(
	const struct replica_counts *counts, uint64_t target, struct replica_fleet *out)
{
	*out = (struct replica_fleet){.counts = counts->all};
	if (counts->step_count == 0)
		return;
	out->newest = counts->steps[counts->step_count - 1].step;
	for (size_t i = 0; i < counts->step_count; i++) {
		const struct step_holders *const of = &counts->steps[i];
		out->behind += of->step < target ? of->replicas : 0;
		out->ahead += of->step > target ? of->replicas : 0;
	}
}

/* The index at which the step is or belongs. */
static size_t find_step(const struct replica_counts *counts, uint64_t step, bool *out_found)
{
	const size_t at = search_lower_bound(counts->steps, counts->step_count,
		sizeof(*counts->steps), replica_counts_is_before, &step);
	*out_found = at < counts->step_count && counts->steps[at].step == step;
	return at;
}

static bool replica_counts_is_before(const void *element, const void *key)
{
	return ((const struct step_holders *)element)->step < *(const uint64_t *)key;
}

static void add_holder(struct replica_counts *counts, uint64_t step)
{
	bool found;
	const size_t at = find_step(counts, step, &found);
	if (found) {
		counts->steps[at].replicas++;
		return;
	}
	counts->steps = memory_make_room(
		counts->steps, counts->step_count, &counts->step_capacity, sizeof(*counts->steps));
	memmove(&counts->steps[at + 1], &counts->steps[at],
		(counts->step_count - at) * sizeof(*counts->steps));
	counts->steps[at] = (struct step_holders){step, 1};
	counts->step_count++;
	note_oldest(counts);
}

static void take_holder(struct replica_counts *counts, uint64_t step)
{
	bool found;
	const size_t at = find_step(counts, step, &found);
	ASSERT(found);
	if (--counts->steps[at].replicas > 0)
		return;
	counts->step_count--;
	memmove(&counts->steps[at], &counts->steps[at + 1],
		(counts->step_count - at) * sizeof(*counts->steps));
	note_oldest(counts);
}

static void note_oldest(struct replica_counts *counts)
{
	counts->all.has_oldest = counts->step_count > 0;
	counts->all.oldest = counts->step_count > 0 ? counts->steps[0].step : 0;
}
