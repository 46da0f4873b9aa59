/* How one safetensors object becomes another of the same tensors: the blocks of each tensor that
 * changed, written to a local file, and the recipe that makes the one out of the other and that
 * file. Reads both from front to back, in memory of a few blocks. Internal to storage. */
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
	uint64_t delta_max; /* no more bytes than these */
	const struct work_pace *pace;
};
struct derive_encoded {
	struct derived_recipe *recipe; /* the caller's */
	/* which of its sources is the file: to be settled; SIZE_MAX: none, the file is empty */
	size_t delta;
	uint64_t delta_bytes;
	struct digest128 digest; /* of the next object's bytes, as they were read */
};
/* 1 encoded, 0 the file would be too large, -1: an error. The tensors must be the same by name,
 * dtype and shape (invalid). */
int derive_encode(
	const struct derive_encode_params *params, struct derive_encoded *out, struct error *err);

#endif
