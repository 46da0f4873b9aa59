#include "storage/run_tables/change_order.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/search.h"

static bool change_order_is_before(const void *element, const void *key);
static void take_out_holes(struct change_order *order);

void change_order_release(struct change_order *order)
{
	free(order->slots);
	*order = (struct change_order){.slots = NULL};
}

void change_order_add(struct change_order *order, uint64_t change, void *thing)
{
	ASSERT(thing != NULL);
	ASSERT(order->count == 0 || order->slots[order->count - 1].change < change);
	order->slots = memory_make_room(
		order->slots, order->count, &order->capacity, sizeof(*order->slots));
	order->slots[order->count++] = (struct change_slot){change, thing};
}

void change_order_remove(struct change_order *order, uint64_t change)
{
	const size_t place = change_order_find(order, change - 1);
	ASSERT(place < order->count && order->slots[place].change == change);
	ASSERT(order->slots[place].thing != NULL);
	order->slots[place].thing = NULL;
	order->holes++;
	while (order->first < order->count && order->slots[order->first].thing == NULL)
		order->first++;
	if (order->holes > order->count / 2)
		take_out_holes(order);
}

void *change_order_first(const struct change_order *order)
{
	return order->first < order->count ? order->slots[order->first].thing : NULL;
}

size_t change_order_find(const struct change_order *order, uint64_t change)
{
	return search_lower_bound(
		order->slots, order->count, sizeof(*order->slots), change_order_is_before, &change);
}

void *change_order_next(const struct change_order *order, size_t *place)
{
	while (*place < order->count) {
		void *const thing = order->slots[(*place)++].thing;
		if (thing != NULL)
			return thing;
	}
	return NULL;
}

/* Whether the slot is not above the number. */
static bool change_order_is_before(const void *element, const void *key)
{
	return ((const struct change_slot *)element)->change <= *(const uint64_t *)key;
}

/* Costs one look at each slot, of which more than half were removed since the last time. */
static void take_out_holes(struct change_order *order)
{
	size_t kept = 0;
	for (size_t i = 0; i < order->count; i++)
		if (order->slots[i].thing != NULL)
			order->slots[kept++] = order->slots[i];
	order->count = kept;
	order->holes = 0;
	order->first = 0;
}
