/* Things in the order of their last changes, which have rising numbers. A reader that knows all up
 * to a number finds the next thing by a binary search. A thing that changes again leaves a hole
 * where it was, and the holes are taken out when they are more than the things. Its owner locks.
 * Zeroed memory is an empty order. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_CHANGE_ORDER_H
#define STORAGE_RUN_TABLES_CHANGE_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct change_slot {
	uint64_t change;
	void *thing; /* NULL: a hole */
};
struct change_order {
	struct change_slot *slots;
	size_t count;
	size_t capacity;
	size_t holes;
	size_t first; /* no thing lies before this place */
};

void change_order_release(struct change_order *order);
/* Adds a thing, which is not NULL, at the end. The number is above all others. */
void change_order_add(struct change_order *order, uint64_t change, void *thing);
/* Takes out the thing that was added with this number. Readers' places are void afterwards. */
void change_order_remove(struct change_order *order, uint64_t change);
/* The thing that changed earliest; NULL: there is none. */
void *change_order_first(const struct change_order *order);
/* The place of the first slot with a number above `change`. */
size_t change_order_find(const struct change_order *order, uint64_t change);
/* The next thing at *place or behind, and moves *place behind it; NULL: there is none. */
void *change_order_next(const struct change_order *order, size_t *place);

#endif
