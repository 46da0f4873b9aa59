/* Changes have numbers that rise by one, from 1; number n lies in slot n modulo the ring's size.
 * Notes of the running transaction have numbers above `shown`. */
#include "storage/core/run_feed.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/lock.h"

struct run_feed {
	struct lock lock;
	struct run_change *ring; /* names owned; guarded by lock, as all below */
	uint64_t noted;
	uint64_t shown;
};

static void add(struct run_feed *feed, const struct run_change *change);
static struct span copy(struct span text);
static bool is_among(const struct run_change *changes, size_t count, int64_t run);

struct run_feed *run_feed_new(void)
{
	struct run_feed *const feed = memory_new(sizeof(*feed));
	feed->ring = memory_new_array(RUN_FEED_CHANGES, sizeof(*feed->ring));
	lock_init(&feed->lock, LOCK_RUN_FEED);
	return feed;
}

void run_feed_free(struct run_feed *feed)
{
	if (feed == NULL)
		return;
	for (size_t i = 0; i < RUN_FEED_CHANGES; i++) {
		free((void *)feed->ring[i].bucket.data);
		free((void *)feed->ring[i].name.data);
	}
	free(feed->ring);
	lock_release(&feed->lock);
	free(feed);
}

void run_feed_note(struct run_feed *feed, int64_t run)
{
	const struct run_change change = {.run = run};
	if (feed != NULL)
		add(feed, &change);
}

void run_feed_note_end(struct run_feed *feed, const struct run_change *end)
{
	struct run_change change = *end;
	ASSERT(end->bucket_id > 0);
	if (feed == NULL)
		return;
	change.has_ended = true;
	change.bucket = copy(end->bucket);
	change.name = copy(end->name);
	add(feed, &change);
}

void run_feed_show(struct run_feed *feed)
{
	if (feed == NULL)
		return;
	lock_enter(&feed->lock);
	feed->shown = feed->noted;
	lock_leave(&feed->lock);
}

uint64_t run_feed_last(struct run_feed *feed)
{
	lock_enter(&feed->lock);
	const uint64_t last = feed->shown;
	lock_leave(&feed->lock);
	return last;
}

bool run_feed_read(struct run_feed *feed, struct run_feed_page *page, struct arena *arena,
	struct run_change *out)
{
	ASSERT(page->limit > 0);
	page->count = 0;
	lock_enter(&feed->lock);
	ASSERT(page->until <= feed->shown);
	const bool is_whole = page->after + RUN_FEED_CHANGES >= feed->noted;
	while (is_whole && page->after < page->until && page->count < page->limit) {
		const struct run_change *const change =
			&feed->ring[++page->after % RUN_FEED_CHANGES];
		if (!change->has_ended && is_among(out, page->count, change->run))
			continue;
		out[page->count] = *change;
		out[page->count].bucket = arena_copy(arena, change->bucket);
		out[page->count++].name = arena_copy(arena, change->name);
	}
	lock_leave(&feed->lock);
	return is_whole;
}

/* Takes over the names. Notes beyond the ring's size push out the oldest, shown or not. */
static void add(struct run_feed *feed, const struct run_change *change)
{
	lock_enter(&feed->lock);
	struct run_change *const slot = &feed->ring[++feed->noted % RUN_FEED_CHANGES];
	free((void *)slot->bucket.data);
	free((void *)slot->name.data);
	*slot = *change;
	lock_leave(&feed->lock);
}

static struct span copy(struct span text)
{
	return span_of(text.len > 0 ? memory_copy(text.data, text.len) : NULL, text.len);
}

static bool is_among(const struct run_change *changes, size_t count, int64_t run)
{
	for (size_t i = 0; i < count; i++)
		if (changes[i].run == run && !changes[i].has_ended)
			return true;
	return false;
}
