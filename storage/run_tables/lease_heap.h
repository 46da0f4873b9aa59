/* The replicas with a lease, the one whose lease ends first on top, so that what ends costs what
 * has ended. A binary heap; a replica knows its place. Its owner locks. Zeroed memory is an empty
 * heap. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_LEASE_HEAP_H
#define STORAGE_RUN_TABLES_LEASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct lease { /* member of a replica */
	int64_t end_ms;
	size_t place; /* from 1; 0: it is not in the heap */
};
struct lease_heap {
	struct lease **leases; /* place n in slot n - 1 */
	size_t count;
	size_t capacity;
};

void lease_heap_release(struct lease_heap *heap);
/* Adds the lease, or moves it, with a new end. */
void lease_heap_set(struct lease_heap *heap, struct lease *lease, int64_t end_ms);
/* Does nothing for a lease that is not there. */
void lease_heap_remove(struct lease_heap *heap, struct lease *lease);
/* The lease that ends first; NULL: there is none. */
struct lease *lease_heap_first(const struct lease_heap *heap);

#endif
