/* Opening a version whose bytes lie in very many places, for a thread that must not be held up by
 * it: its rows are read on a helper, and the packs are held within that helper's snapshot
 * (invariant 5). Any thread. */
#ifndef STORAGE_OBJECTS_OBJECT_OPENING_H
#define STORAGE_OBJECTS_OBJECT_OPENING_H

#include "storage/versions/object.h"

struct object_opening;
/* As object_open; what `object` points to must live until `done`, which comes once, from another
 * thread, perhaps before this returns. */
struct object_opening *object_opening_start(struct store *store, const struct object *object,
	uint64_t offset, uint64_t length, void (*done)(void *owner), void *owner);
/* After done, once: what object_open gave, the caller's to close. */
struct body_source *object_opening_take(struct object_opening *opening, struct error *err);
/* after done; closes what was not taken. NULL is fine */
void object_opening_free(struct object_opening *opening);

#endif
