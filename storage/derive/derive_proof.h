/* Proves that a recipe makes a version: its very bytes. Where the version's chunks are not those
 * that one PUT gives (parts, copied ranges, chunks that a Xet client has cut), it also proves the
 * file of its Xet hash. Internal to storage. */
#ifndef STORAGE_DERIVE_DERIVE_PROOF_H
#define STORAGE_DERIVE_DERIVE_PROOF_H

#include "storage/versions/derived_recipe.h"
#include "storage/versions/version.h"

/* `digest` is that of the version's bytes as they were read. A version that needs a file hash for
 * this and has none gets it. 1 proven, 0 not, -1. */
int derive_proof(struct store *store, const struct version *version,
	const struct derived_recipe *recipe, const struct digest128 *digest, struct error *err);

#endif
