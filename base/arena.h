/* Memory that is freed together: everything that belongs to one request or one parse. Allocations
 * come from growing blocks up to a cap. Past the cap every further call returns NULL, and
 * arena_overflowed says so. One thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>

#include "base/span.h"

struct arena;

struct arena *arena_new(size_t cap_bytes);
void arena_free(struct arena *arena); /* NULL is fine */

void *arena_take(struct arena *arena, size_t bytes); /* zeroed, aligned to 16; NULL past the cap */
void *arena_take_array(struct arena *arena, size_t count, size_t bytes);
char *arena_text(struct arena *arena, struct span text);        /* NUL-terminated copy */
struct span arena_copy(struct arena *arena, struct span bytes); /* {NULL, 0} past the cap */
char *arena_format(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* True once any call has failed: test it before you use the result. */
bool arena_overflowed(const struct arena *arena);

#endif
