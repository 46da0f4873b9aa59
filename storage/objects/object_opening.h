/* Opens a version that object_view_open_soon (object_view.h) finds not ready, for a thread that
 * must not be blocked. A helper reads the rows and holds the packs within its own snapshot
 * (invariant 5). Any thread. */
#ifndef STORAGE_OBJECTS_OBJECT_OPENING_H
#define STORAGE_OBJECTS_OBJECT_OPENING_H

#include "storage/versions/object.h"

struct object_opening;
/* Like object_view_open_told (object_view.h). The texts of `object` must live until `done`, which
 * comes once, on a helper, perhaps before this returns. */
struct object_opening *object_opening_start(struct store *store, const struct object *object,
	uint64_t offset, uint64_t length, void (*done)(void *owner), void *owner);
/* Once, after `done`: gives the source, which the caller closes, or the error. */
struct body_source *object_opening_take(struct object_opening *opening, struct error *err);
/* After `done`; closes a source that was not taken. NULL is fine. */
void object_opening_free(struct object_opening *opening);

#endif
