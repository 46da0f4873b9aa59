/* Small, bounded allocations that cannot reasonably fail: they abort with a message when memory is
 * out. Never let a peer's data set the size: struct buffer with its cap is for that. Any thread. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

void *memory_new(size_t bytes);                           /* zeroed */
void *memory_new_array(size_t count, size_t bytes);       /* zeroed, overflow checked */
void *memory_grow(void *old, size_t count, size_t bytes); /* as realloc, overflow checked */
/* For lists that grow by doubling. Returns `list`, or the memory it moved to, with room for one
 * element after its first `count`. *capacity is the room in elements; it is 0 for a NULL list and
 * starts at 16. New room is not zeroed. */
void *memory_make_room(void *list, size_t count, size_t *capacity, size_t element_bytes);
char *memory_copy_text(const char *text); /* NULL gives NULL */
void *memory_copy(const void *data, size_t bytes);

struct memory_rest {     /* in bytes; zero it before the first call */
	size_t resident; /* the size of the process */
	size_t unused;   /* freed memory, as the allocator counts it */
};
/* Returns freed memory to the system: free() alone returns only what lies at the end of a heap. To
 * be called now and then. It does something only when much memory lies unused and either that or
 * the process has grown since the last call, which *rest remembers. */
void memory_give_back(struct memory_rest *rest);

#endif
