#include "storage/run_tables/path_hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

/* One slice more than the time has minutes: the oldest one is only partly over. */
enum { SLICE_MS = 60 * 1000, SLICES = PATH_HOLD_MS / SLICE_MS + 1, SLICE_RANGES = 4 };
_Static_assert(PATH_HOLD_RANGES_MAX > SLICES * SLICE_RANGES, "all ranges of a run, and one");

struct slice {
	int64_t minute;
	size_t count;
	struct step_range ranges[SLICE_RANGES];
};
struct held_run {
	int64_t run;
	struct slice slices[SLICES]; /* by minute */
};
struct path_hold {
	const struct clock_source *clock;
	struct lock lock;
	struct held_run **runs; /* by number; guarded by lock, as what follows */
	size_t count;
	size_t capacity;
};

static int64_t minute_now(const struct path_hold *hold);
static struct held_run *need(struct path_hold *hold, int64_t run);
static size_t place(const struct path_hold *hold, int64_t run, bool *out_there);
static void add_range(struct slice *slice, struct step_range range);
static bool is_over(const struct slice *slice, int64_t minute);

struct path_hold *path_hold_new(const struct clock_source *clock)
{
	struct path_hold *const hold = memory_new(sizeof(*hold));
	hold->clock = clock;
	lock_init(&hold->lock, LOCK_PATH_HOLDS);
	return hold;
}

void path_hold_free(struct path_hold *hold)
{
	if (hold == NULL)
		return;
	for (size_t i = 0; i < hold->count; i++)
		free(hold->runs[i]);
	free(hold->runs);
	lock_release(&hold->lock);
	free(hold);
}

void path_hold_add(struct path_hold *hold, int64_t run, struct step_range range)
{
	lock_enter(&hold->lock);
	const int64_t minute = minute_now(hold);
	struct slice *const slice = &need(hold, run)->slices[minute % SLICES];
	if (slice->minute != minute)
		*slice = (struct slice){.minute = minute};
	add_range(slice, range);
	lock_leave(&hold->lock);
}

size_t path_hold_ranges(struct path_hold *hold, int64_t run, struct step_range *out)
{
	size_t count = 0;
	bool there;
	lock_enter(&hold->lock);
	const int64_t minute = minute_now(hold);
	const size_t at = place(hold, run, &there);
	for (size_t i = 0; there && i < SLICES; i++) {
		const struct slice *const slice = &hold->runs[at]->slices[i];
		if (is_over(slice, minute))
			continue;
		memcpy(&out[count], slice->ranges, slice->count * sizeof(*out));
		count += slice->count;
	}
	lock_leave(&hold->lock);
	return step_range_join(out, count);
}

void path_hold_tidy(struct path_hold *hold)
{
	size_t kept = 0;
	lock_enter(&hold->lock);
	const int64_t minute = minute_now(hold);
	for (size_t r = 0; r < hold->count; r++) {
		bool over = true;
		for (size_t i = 0; i < SLICES && over; i++)
			over = is_over(&hold->runs[r]->slices[i], minute);
		if (over)
			free(hold->runs[r]);
		else
			hold->runs[kept++] = hold->runs[r];
	}
	hold->count = kept;
	lock_leave(&hold->lock);
}

static int64_t minute_now(const struct path_hold *hold)
{
	return hold->clock->monotonic_ms(hold->clock) / SLICE_MS;
}

static struct held_run *need(struct path_hold *hold, int64_t run)
{
	bool there;
	const size_t at = place(hold, run, &there);
	if (there)
		return hold->runs[at];
	if (hold->count == hold->capacity) {
		hold->capacity = hold->capacity == 0 ? 16 : 2 * hold->capacity;
		hold->runs = memory_grow(hold->runs, hold->capacity, sizeof(*hold->runs));
	}
	memmove(&hold->runs[at + 1], &hold->runs[at], (hold->count - at) * sizeof(*hold->runs));
	hold->runs[at] = memory_new(sizeof(*hold->runs[at]));
	hold->runs[at]->run = run;
	hold->count++;
	return hold->runs[at];
}

static size_t place(const struct path_hold *hold, int64_t run, bool *out_there)
{
	size_t low = 0;
	size_t high = hold->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (hold->runs[middle]->run < run)
			low = middle + 1;
		else
			high = middle;
	}
	*out_there = low < hold->count && hold->runs[low]->run == run;
	return low;
}

/* Full: joined with the range that is nearest below it, or the first. */
static void add_range(struct slice *slice, struct step_range range)
{
	struct step_range joined[SLICE_RANGES + 1];
	memcpy(joined, slice->ranges, slice->count * sizeof(*joined));
	joined[slice->count] = range;
	size_t count = step_range_join(joined, slice->count + 1);
	if (count > SLICE_RANGES) {
		size_t at = count - 1;
		while (at > 1 && joined[at].first != range.first)
			at--;
		joined[at - 1].last = joined[at].last;
		memmove(&joined[at], &joined[at + 1], (count - at - 1) * sizeof(*joined));
		count--;
	}
	memcpy(slice->ranges, joined, count * sizeof(*joined));
	slice->count = count;
}

static bool is_over(const struct slice *slice, int64_t minute)
{
	return slice->count == 0 || slice->minute <= minute - SLICES;
}
