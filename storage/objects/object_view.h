/* The catalog at one moment. A version that is found through a view can be opened through it,
 * whatever is committed meanwhile, so that a caller serves the version that it judged. One thread
 * uses it, and not for long: while any view is open, the write-ahead log cannot begin again. */
#ifndef STORAGE_OBJECTS_OBJECT_VIEW_H
#define STORAGE_OBJECTS_OBJECT_VIEW_H

#include "storage/versions/object.h"

struct object_view;
struct object_view *object_view_new(struct store *store, struct error *err);
/* Forgets the version that was found, and shows the catalog as it is now. After a failure the view
 * can only be freed. */
int object_view_renew(struct object_view *view, struct error *err);
/* NULL is fine. Sources that were opened through it live on. */
void object_view_free(struct object_view *view);

/* Like object_find and object_open (object_read.h). */
int object_view_find(struct object_view *view, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
struct body_source *object_view_open(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err);
/* The same for a reply, on a thread that must not be blocked: not_ready when the bytes lie in very
 * many places, or must first be looked at in a far one (object_opening.h); content_damaged when
 * bytes of the range are known to be damaged. */
struct body_source *object_view_open_soon(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err);
/* The same on a thread that may wait, without not_ready. */
struct body_source *object_view_open_told(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err);

#endif
