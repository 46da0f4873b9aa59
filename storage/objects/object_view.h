/* The catalog as it is at one moment. What is found through a view can be opened through it,
 * whatever is committed meanwhile: for who judges a version and then serves it. Of one thread, and
 * not for long: while any view is open, the write-ahead log cannot begin anew. */
#ifndef STORAGE_OBJECTS_OBJECT_VIEW_H
#define STORAGE_OBJECTS_OBJECT_VIEW_H

#include "storage/versions/object.h"

struct object_view;
struct object_view *object_view_new(struct store *store, struct error *err);
/* Forgets what was found, and sees the catalog as it is now. On failure the view can only be
 * freed. */
int object_view_renew(struct object_view *view, struct error *err);
/* NULL is fine; sources opened through it live on */
void object_view_free(struct object_view *view);

/* As object_find and object_open (object_read.h). */
int object_view_find(struct object_view *view, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
struct body_source *object_view_open(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err);
/* The same for a thread that must not be held up: not_ready when the bytes lie in very many places
 * (object_opening.h). */
struct body_source *object_view_open_soon(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err);

#endif
