/* The bytes of one source of a derived version. They can be read in any order while the input is
 * open, best from front to back. Open it within the snapshot in which the derived version was
 * found: from then on it holds the packs of the source (invariant 5). One thread at a time.
 * Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_INPUT_H
#define STORAGE_VERSIONS_DERIVED_INPUT_H

#include "base/stream.h"
#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

struct derived_input;
/* Reads may ask for bytes [from, to) of `source`. no_key when the source is gone; corrupt when it
 * is not what the recipe says, or is derived and no level is left; not_ready when it has more than
 * `max_segments` segments. */
struct derived_input_params {
	const struct derived_source *source;
	uint64_t from;
	uint64_t to;
	unsigned levels;     /* derivations that may be nested below this one */
	size_t max_segments; /* 0: any number */
};
struct derived_input *derived_input_open(struct store *store, struct db *db,
	const struct derived_input_params *params, struct error *err);
/* From now on reads do not block on a network: they fail with not_ready where they would, then
 * wake(owner) comes once, and the same read must be repeated. The input must stay until then. */
void derived_input_let_wait(struct derived_input *input, source_wake_fn *wake, void *owner);
/* Reads exactly `len` bytes from `offset` on. */
int derived_input_read(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* The same for bytes that are the base of a block. Blocks that are read whole are not proven,
 * because that block proves its result. */
int derived_input_read_base(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* Like assemble_check_damaged, for all bytes that may be read. */
int derived_input_check_damaged(struct derived_input *input, struct error *err);
void derived_input_close(struct derived_input *input); /* NULL is fine */

#endif
