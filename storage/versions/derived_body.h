/* The result of a recipe as a stream that can be read from any place. Pieces are found by binary
 * search; blocks are decoded and proven one at a time. It takes memory for a few blocks, however
 * much it reads. One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_BODY_H
#define STORAGE_VERSIONS_DERIVED_BODY_H

#include "base/stream.h"
#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

struct derived_body;
/* Opens it in a snapshot. Takes the recipe over, on failure too, unless `is_borrowed`. Reads may
 * ask for bytes [from, to) of the result. */
struct derived_body_params {
	struct store *store;
	struct db *db;
	const struct derived_recipe *recipe;
	bool is_borrowed;
	uint64_t from;
	uint64_t to;
	unsigned levels; /* derivations that may be nested, this one included; at least 1 */
	/* segments of each source; not_ready when a source has more; 0: any number */
	size_t max_segments;
};
struct derived_body *derived_body_open(const struct derived_body_params *params, struct error *err);
/* Reads exactly `len` bytes from `offset` on. corrupt when a source is damaged or a block does not
 * match its hash. */
int derived_body_read(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* The same for bytes that are the base of another block. Blocks that are read whole are not proven,
 * because that other block proves its result. */
int derived_body_read_base(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* As derived_input_let_wait. */
void derived_body_let_wait(struct derived_body *body, source_wake_fn *wake, void *owner);
/* Like assemble_check_damaged (storage/packs/assemble.h), for what bytes [from, to) are made of:
 * the bytes that they copy, the blocks that they change, and the whole delta of each tensor. */
int derived_body_check_damaged(const struct derived_body *body, struct error *err);
void derived_body_close(struct derived_body *body); /* NULL is fine */

/* The same as a stream of [from, to), which takes the body over. In a far place
 * (storage/packs/backend.h) it has let_wait. */
struct body_source *derived_body_source(struct derived_body *body, uint64_t from, uint64_t to);

#endif
