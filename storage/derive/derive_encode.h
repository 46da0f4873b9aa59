/* Encodes one safetensors object as a delta of another one with the same tensors. It writes the
 * changed blocks of each tensor to a local file, and builds the recipe that makes the object out of
 * the base and that file. It reads both objects from front to back, with a few blocks in memory.
 * Internal to storage. */
#ifndef STORAGE_DERIVE_DERIVE_ENCODE_H
#define STORAGE_DERIVE_DERIVE_ENCODE_H

#include "storage/core/work_pace.h"
#include "storage/objects/shard_header.h"
#include "storage/versions/derived_recipe.h"

struct derive_side {
	struct derived_source source;
	const struct shard_header *header;
};
struct derive_encode_params {
	struct store *store;
	struct derive_side base;
	struct derive_side next;
	const char *path;   /* of the new file */
	uint64_t delta_max; /* the most bytes that the file may have */
	const struct work_pace *pace;
};
struct derive_encoded {
	struct derived_recipe *recipe; /* the caller frees it; NULL unless the result is 1 */
	/* The recipe's source that is the file, for derived_recipe_settle. SIZE_MAX: the file is
	 * empty, and the recipe does not name it. */
	size_t delta_source;
	uint64_t delta_bytes;
	struct digest128 digest; /* of the next object's bytes, as they were read */
};
/* 1: encoded; 0: the file would be too large; -1: an error. The tensors must be the same by name,
 * dtype and shape (invalid). */
int derive_encode(
	const struct derive_encode_params *params, struct derive_encoded *out, struct error *err);

#endif
