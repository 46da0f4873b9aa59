/* A list sorted by number, because packs are few and new ones belong at its end. A pack without
 * live chunks and with a loss is always due. */
#include "storage/core/pack_touches.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/thread/lock.h"

enum { TOUCH_SHARE = 16 };

struct pack_touch {
	int64_t pack;
	int64_t lost; /* chunks, at most: several rows may have led to the same ones */
	int64_t live; /* chunks, when gc looked; -1: it did not, or must look again */
};
struct pack_touches {
	struct lock lock;
	struct pack_touch *list; /* guarded by lock */
	size_t count;
	size_t capacity;
};

static struct pack_touch *touch_of(struct pack_touches *touches, int64_t pack);
static size_t touch_place(const struct pack_touches *touches, int64_t pack);
static bool touch_is_before(const void *touch, const void *pack);
static bool touch_is_at(const struct pack_touches *touches, size_t at, int64_t pack);
static bool touch_is_due(const struct pack_touch *touch);

struct pack_touches *pack_touches_new(void)
{
	struct pack_touches *const touches = memory_new(sizeof(*touches));
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
	ASSERT(touches != NULL); /* only pack_touches_add may be called with NULL */
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
			(touches->count - at) * sizeof(*touches->list));
	}
	lock_leave(&touches->lock);
}

bool pack_touches_live(
	struct pack_touches *touches, int64_t pack, uint32_t chunks, uint32_t *out_live)
{
	struct pack_touch touch = {.live = -1};
	lock_enter(&touches->lock);
	const size_t at = touch_place(touches, pack);
	if (touch_is_at(touches, at, pack))
		touch = touches->list[at];
	lock_leave(&touches->lock);
	const int64_t live = (touch.live >= 0 ? touch.live : chunks) - touch.lost;
	*out_live = live < 0 ? 0 : live > chunks ? chunks : (uint32_t)live;
	return touch.live >= 0;
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
	touches->list = memory_make_room(
		touches->list, touches->count, &touches->capacity, sizeof(*touches->list));
	memmove(&touches->list[at + 1], &touches->list[at],
		(touches->count - at) * sizeof(*touches->list));
	touches->count++;
	touches->list[at] = (struct pack_touch){.pack = pack, .live = -1};
	return &touches->list[at];
}

/* Where the pack is in the list, or belongs. */
static size_t touch_place(const struct pack_touches *touches, int64_t pack)
{
	lock_assert_held(&touches->lock);
	return search_lower_bound(
		touches->list, touches->count, sizeof(*touches->list), touch_is_before, &pack);
}

static bool touch_is_before(const void *touch, const void *pack)
{
	return ((const struct pack_touch *)touch)->pack < *(const int64_t *)pack;
}

static bool touch_is_at(const struct pack_touches *touches, size_t at, int64_t pack)
{
	return at < touches->count && touches->list[at].pack == pack;
}

static bool touch_is_due(const struct pack_touch *touch)
{
	return touch->live < 0 || (touch->lost > 0 && touch->lost * TOUCH_SHARE >= touch->live);
}
