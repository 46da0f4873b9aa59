/* Object versions found and read. */
#ifndef STORAGE_OBJECTS_OBJECT_READ_H
#define STORAGE_OBJECTS_OBJECT_READ_H

#include "storage/versions/object.h"

/* no_bucket; no_key when there is no current version; no_version when the id is unknown. A marker
 * that is named by its id is found (is_marker). When the current version is a marker: no_key, and
 * *out has is_marker, version and has_id (else *out is zeroed). */
int object_find(struct store *store, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
/* One version, current or not, by row. */
int object_find_sequence(struct store *store, int64_t sequence, struct arena *arena,
	struct object *out, struct error *err);
/* Bytes [offset, offset+length) of a version; checks the version row's checksum. Parts and segments
 * are read here, packs are held until close; a version removed between find and open answers
 * no_key. */
struct body_source *object_open(struct store *store, const struct object *object, uint64_t offset,
	uint64_t length, struct error *err);

#endif
