/* Each run has a ring of slices, one for each minute; a slice is used again when its minute has
 * passed. A slice that is full joins ranges, which bounds the memory whatever readers ask for. */
#include "storage/run_tables/path_hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/thread/lock.h"

/* One slice more than PATH_HOLD_MS has minutes, because only a part of the oldest one has
 * expired. */
enum { SLICE_MS = 60 * 1000, SLICES = PATH_HOLD_MS / SLICE_MS + 1, SLICE_RANGES = 4 };
_Static_assert(PATH_HOLD_RANGES_MAX > SLICES * SLICE_RANGES, "all ranges of a run, and one");

struct slice {
	int64_t minute;
	size_t count;
	struct step_range ranges[SLICE_RANGES];
};
struct held_run {
	int64_t run;
	struct slice slices[SLICES]; /* index: minute modulo SLICES */
};
struct path_hold {
	const struct clock_source *clock;
	struct lock lock;
	struct held_run **runs; /* sorted by number; guarded by lock, like all fields below */
	size_t count;
	size_t capacity;
};

static int64_t minute_now(const struct path_hold *hold);
static struct held_run *get_run(struct path_hold *hold, int64_t run);
static size_t find_place(const struct path_hold *hold, int64_t run, bool *out_found);
static bool path_hold_run_is_before(const void *element, const void *key);
static void add_range(struct slice *slice, struct step_range range);
static bool is_expired(const struct slice *slice, int64_t minute);

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
	ASSERT(range.first <= range.last);
	lock_enter(&hold->lock);
	const int64_t minute = minute_now(hold);
	struct slice *const slice = &get_run(hold, run)->slices[minute % SLICES];
	if (slice->minute != minute)
		*slice = (struct slice){.minute = minute};
	add_range(slice, range);
	lock_leave(&hold->lock);
}

size_t path_hold_ranges(struct path_hold *hold, int64_t run, struct step_range *out)
{
	size_t count = 0;
	bool found;
	lock_enter(&hold->lock);
	const int64_t minute = minute_now(hold);
	const size_t at = find_place(hold, run, &found);
	for (size_t i = 0; found && i < SLICES; i++) {
		const struct slice *const slice = &hold->runs[at]->slices[i];
		if (is_expired(slice, minute))
			continue;
		ASSERT(count + slice->count <= PATH_HOLD_RANGES_MAX);
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
		bool expired = true;
		for (size_t i = 0; i < SLICES && expired; i++)
			expired = is_expired(&hold->runs[r]->slices[i], minute);
		if (expired)
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

static struct held_run *get_run(struct path_hold *hold, int64_t run)
{
	bool found;
	const size_t at = find_place(hold, run, &found);
	if (found)
		return hold->runs[at];
	hold->runs =
		memory_make_room(hold->runs, hold->count, &hold->capacity, sizeof(*hold->runs));
	memmove(&hold->runs[at + 1], &hold->runs[at], (hold->count - at) * sizeof(*hold->runs));
	hold->runs[at] = memory_new(sizeof(*hold->runs[at]));
	hold->runs[at]->run = run;
	hold->count++;
	return hold->runs[at];
}

/* The index at which the run is or belongs. */
static size_t find_place(const struct path_hold *hold, int64_t run, bool *out_found)
{
	lock_assert_held(&hold->lock);
	const size_t at = search_lower_bound(
		hold->runs, hold->count, sizeof(*hold->runs), path_hold_run_is_before, &run);
	*out_found = at < hold->count && hold->runs[at]->run == run;
	return at;
}

static bool path_hold_run_is_before(const void *element, const void *key)
{
	return (*(struct held_run *const *)element)->run < *(const int64_t *)key;
}

/* When the slice is full, the new range is joined with the nearest range below it. Without one
 * below, it is joined with the first. */
static void add_range(struct slice *slice, struct step_range range)
{
	ASSERT(slice->count <= SLICE_RANGES);
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
	ASSERT(count <= SLICE_RANGES);
	memcpy(slice->ranges, joined, count * sizeof(*joined));
	slice->count = count;
}

static bool is_expired(const struct slice *slice, int64_t minute)
{
	return slice->count == 0 || slice->minute <= minute - SLICES;
}
