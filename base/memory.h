/* Small bounded allocations that cannot reasonably fail: they abort with a message when memory is
 * out. Never size one of these by what a peer sent: that is what struct buffer and its cap are
 * for. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

void *memory_new(size_t bytes);                           /* zeroed */
void *memory_new_array(size_t count, size_t bytes);       /* zeroed, overflow checked */
void *memory_grow(void *old, size_t count, size_t bytes); /* realloc, overflow checked */
char *memory_copy_text(const char *text);                 /* NULL gives NULL */
void *memory_copy(const void *data, size_t bytes);

struct memory_rest {     /* in bytes; zeroed at first */
	size_t resident; /* the process's size */
	size_t unused;   /* of what was freed */
};
/* Gives memory that was freed back to the system, which free alone does at the end of each heap
 * only. To be called now and then; does something when much lies unused, and that or the process
 * has grown since the last time, of which *rest knows. */
void memory_give_back(struct memory_rest *rest);

#endif
