/* The lease at place n ends no later than those at the places 2n and 2n + 1. */
#include "storage/run_tables/lease_heap.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static struct lease *at(const struct lease_heap *heap, size_t place);
static void set_at(struct lease_heap *heap, size_t place, struct lease *lease);
static void settle(struct lease_heap *heap, struct lease *lease);
static void rise(struct lease_heap *heap, struct lease *lease);
static void sink(struct lease_heap *heap, struct lease *lease);

void lease_heap_release(struct lease_heap *heap)
{
	free(heap->leases);
	*heap = (struct lease_heap){.leases = NULL};
}

void lease_heap_set(struct lease_heap *heap, struct lease *lease, int64_t end_ms)
{
	lease->end_ms = end_ms;
	if (lease->place == 0) {
		heap->leases = memory_make_room(
			heap->leases, heap->count, &heap->capacity, sizeof(struct lease *));
		heap->count++;
		set_at(heap, heap->count, lease);
	}
	settle(heap, lease);
}

void lease_heap_remove(struct lease_heap *heap, struct lease *lease)
{
	const size_t place = lease->place;
	if (place == 0)
		return;
	struct lease *const last = at(heap, heap->count);
	heap->count--;
	lease->place = 0;
	if (last == lease)
		return;
	set_at(heap, place, last);
	settle(heap, last);
}

struct lease *lease_heap_first(const struct lease_heap *heap)
{
	return heap->count == 0 ? NULL : at(heap, 1);
}

static struct lease *at(const struct lease_heap *heap, size_t place)
{
	ASSERT(place > 0 && place <= heap->count);
	return heap->leases[place - 1];
}

static void set_at(struct lease_heap *heap, size_t place, struct lease *lease)
{
	ASSERT(place > 0 && place <= heap->count);
	heap->leases[place - 1] = lease;
	lease->place = place;
}

/* Only one of the two moves it. */
static void settle(struct lease_heap *heap, struct lease *lease)
{
	rise(heap, lease);
	sink(heap, lease);
}

static void rise(struct lease_heap *heap, struct lease *lease)
{
	while (lease->place > 1 && at(heap, lease->place / 2)->end_ms > lease->end_ms) {
		const size_t place = lease->place / 2;
		set_at(heap, lease->place, at(heap, place));
		set_at(heap, place, lease);
	}
}

static void sink(struct lease_heap *heap, struct lease *lease)
{
	while (lease->place * 2 <= heap->count) {
		size_t place = lease->place * 2;
		if (place < heap->count && at(heap, place + 1)->end_ms < at(heap, place)->end_ms)
			place++;
		if (at(heap, place)->end_ms >= lease->end_ms)
			return;
		set_at(heap, lease->place, at(heap, place));
		set_at(heap, place, lease);
	}
}
