/* Finds and opens object versions. */
#ifndef STORAGE_OBJECTS_OBJECT_READ_H
#define STORAGE_OBJECTS_OBJECT_READ_H

#include "storage/versions/object.h"

/* Fails with no_bucket, with no_key when there is no current version, and with no_version when the
 * id is unknown. A marker is found when it is named by its id (is_marker). When the current version
 * is a marker, the error is no_key, and *out has is_marker, version and has_id; else *out is
 * zeroed. */
int object_find(struct store *store, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
/* Finds one version by its row, current or not. */
int object_find_sequence(struct store *store, int64_t sequence, struct arena *arena,
	struct object *out, struct error *err);
/* Opens bytes [offset, offset + length) of a version, and verifies its row's checksum. The rows of
 * parts and segments are read here, and the packs are held until close. no_key when the version was
 * removed since it was found. */
struct body_source *object_open(struct store *store, const struct object *object, uint64_t offset,
	uint64_t length, struct error *err);

#endif
