/* What a recipe makes, as a stream that can be set anywhere: pieces found by binary search, blocks
 * decoded and proven one at a time. It takes a few blocks of memory, whatever it reads. One thread
 * at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_BODY_H
#define STORAGE_VERSIONS_DERIVED_BODY_H

#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

struct derived_body;
/* In a snapshot. Takes the recipe over, on failure too, unless `is_borrowed`. Bytes [from, to) of
 * the result will be asked for. */
struct derived_body_params {
	struct store *store;
	struct db *db;
	const struct derived_recipe *recipe;
	bool is_borrowed;
	uint64_t from;
	uint64_t to;
	unsigned levels; /* how many derivations there may be, this one included */
	/* segments of each source: not_ready when one has more; 0: any number */
	size_t most;
};
struct derived_body *derived_body_open(const struct derived_body_params *params, struct error *err);
/* Exactly `len` bytes from `offset` on. corrupt when a source is damaged or a block is not what its
 * hash says. */
int derived_body_read(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err);
/* The same for the base of a block: blocks that are read whole are not proven, since that block
 * proves its result. */
int derived_body_read_base(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err);
void derived_body_close(struct derived_body *body); /* NULL is fine */

/* The same as a source of [from, to), which takes the body over. */
struct body_source *derived_body_source(struct derived_body *body, uint64_t from, uint64_t to);

#endif
