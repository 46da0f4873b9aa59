/* The bytes of one source of a derived version, readable in any order while it is open, best from
 * front to back. Opened within the snapshot in which the derived version was found: from then on
 * its packs are held (invariant 5). One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_INPUT_H
#define STORAGE_VERSIONS_DERIVED_INPUT_H

#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

struct derived_input;
/* Bytes [from, to) of `source` will be asked for. `levels`: how many derivations there may be below
 * this one. corrupt when the source is not what the recipe says, or is derived and no level is
 * left; not_ready when it has more than `most` segments (0: any number). */
struct derived_input *derived_input_open(struct store *store, struct db *db,
	const struct derived_source *source, uint64_t from, uint64_t to, unsigned levels,
	size_t most, struct error *err);
/* Exactly `len` bytes from `offset` on. */
int derived_input_read(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* The same for the base of a block: blocks that are read whole are not proven, since that block
 * proves its result. */
int derived_input_read_base(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err);
void derived_input_close(struct derived_input *input); /* NULL is fine */

#endif
