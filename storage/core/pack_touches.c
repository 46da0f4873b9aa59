/* A list sorted by number: packs are few, and new ones come at its end. */
#include "storage/core/pack_touches.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum { TOUCH_SHARE = 16 };

struct pack_touch {
	int64_t pack;
	int64_t lost; /* chunks, at most: rows may lead to the same ones */
	int64_t live; /* when gc looked; -1: it did not, or shall again */
};
struct pack_touches {
	struct lock lock;
	struct pack_touch *list; /* guarded by lock */
	size_t count;
	size_t capacity;
};

static struct pack_touch *touch_of(struct pack_touches *touches, int64_t pack);
static size_t touch_place(const struct pack_touches *touches, int64_t pack);
static bool touch_is_at(const struct pack_touches *touches, size_t at, int64_t pack);
static bool touch_is_due(const struct pack_touch *touch);

struct pack_touches *pack_touches_new(void)
{
	struct pack_touches *const touches = memory_new(sizeof *touches);
	lock_init(&touches->lock, LOCK_PACK_TOUCHES);
	return touches;
}

void pack_touches_free(struct pack_touches *touches)
{
	if (touches == NULL)
		return;
	lock_release(&touches->lock);
	free(touches->list);
	free(touches);
}

void pack_touches_add(struct pack_touches *touches, int64_t pack, int64_t chunks)
{
	if (touches == NULL)
		return;
	lock_enter(&touches->lock);
	touch_of(touches, pack)->lost += chunks;
	lock_leave(&touches->lock);
}

void pack_touches_look(struct pack_touches *touches, int64_t pack)
{
	lock_enter(&touches->lock);
	touch_of(touches, pack)->lost = 0;
	lock_leave(&touches->lock);
}

void pack_touches_looked(struct pack_touches *touches, int64_t pack, uint32_t live)
{
	lock_enter(&touches->lock);
	touch_of(touches, pack)->live = live;
	lock_leave(&touches->lock);
}

void pack_touches_again(struct pack_touches *touches, int64_t pack)
{
	lock_enter(&touches->lock);
	touch_of(touches, pack)->live = -1;
	lock_leave(&touches->lock);
}

void pack_touches_forget(struct pack_touches *touches, int64_t pack)
{
	lock_enter(&touches->lock);
	const size_t at = touch_place(touches, pack);
	if (touch_is_at(touches, at, pack)) {
		touches->count--;
		memmove(&touches->list[at], &touches->list[at + 1],
			(touches->count - at) * sizeof *touches->list);
	}
	lock_leave(&touches->lock);
}

size_t pack_touches_due(struct pack_touches *touches, int64_t after, int64_t *out, size_t capacity)
{
	size_t count = 0;
	lock_enter(&touches->lock);
	for (size_t at = touch_place(touches, after + 1); at < touches->count && count < capacity;
		at++)
		if (touch_is_due(&touches->list[at]))
			out[count++] = touches->list[at].pack;
	lock_leave(&touches->lock);
	return count;
}

static struct pack_touch *touch_of(struct pack_touches *touches, int64_t pack)
{
	const size_t at = touch_place(touches, pack);
	if (touch_is_at(touches, at, pack))
		return &touches->list[at];
	if (touches->count == touches->capacity) {
		touches->capacity = touches->capacity == 0 ? 64 : 2 * touches->capacity;
		touches->list =
			memory_grow(touches->list, touches->capacity, sizeof *touches->list);
	}
	memmove(&touches->list[at + 1], &touches->list[at],
		(touches->count - at) * sizeof *touches->list);
	touches->count++;
	touches->list[at] = (struct pack_touch){.pack = pack, .live = -1};
	return &touches->list[at];
}

/* Where the pack stands in the list, or belongs. */
static size_t touch_place(const struct pack_touches *touches, int64_t pack)
{
	size_t from = 0;
	size_t to = touches->count;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (touches->list[middle].pack < pack)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool touch_is_at(const struct pack_touches *touches, size_t at, int64_t pack)
{
	return at < touches->count && touches->list[at].pack == pack;
}

static bool touch_is_due(const struct pack_touch *touch)
{
	return touch->live < 0 || (touch->lost > 0 && touch->lost * TOUCH_SHARE >= touch->live);
}
