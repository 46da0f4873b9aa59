/* The parts of a completed multipart version whose segments were replaced by a recipe: number,
 * place and checksum of each. A blob beside the recipe (docs/FORMAT.md, "Derived versions").
 * Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_PARTS_H
#define STORAGE_VERSIONS_DERIVED_PARTS_H

#include "storage/versions/object.h"
#include "storage/versions/version.h"

enum { DERIVED_PARTS_MAX = 2000 }; /* a version of more parts keeps its segments */

/* Writes the blob of a version that is not derived yet; nothing for a single PUT. precondition when
 * it has too many parts. */
int derived_parts_collect(
	struct db *db, const struct version *version, struct buffer *out, struct error *err);
bool derived_parts_are_sound(struct span parts);
size_t derived_parts_count(struct span parts);
/* `algorithm` is that of the version's checksum. */
struct object_part derived_parts_entry(
	struct span parts, size_t index, enum checksum_algorithm algorithm);
/* The index of the first part whose number is at least `number`; the count when there is none. */
size_t derived_parts_find(struct span parts, uint32_t number);

#endif
