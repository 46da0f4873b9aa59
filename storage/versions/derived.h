/* Derived objects: versions of kind VERSION_DERIVED, whose bytes are made of other versions' while
 * they stream: literal bytes, copies of ranges, and ranges of a base changed by `ulp-class` blocks
 * (weights/codec/block_code.h), each proven by its own hash. To readers they are objects like any
 * other: object_open gives ranges of them. The versions they are made of (sources) stay as long as
 * a derived one names them, whatever befalls their keys. docs/FORMAT.md, "Derived versions", has
 * the bytes of a recipe. */
#ifndef STORAGE_VERSIONS_DERIVED_H
#define STORAGE_VERSIONS_DERIVED_H

#include "storage/db/db.h"
#include "storage/versions/object.h"
#include "weights/codec/dtype.h"

enum {
	DERIVED_DEPTH_MAX = 2, /* a derived version of a derived version of others */
	DERIVED_SOURCES_MAX = 64,
	DERIVED_RECIPE_MAX_BYTES = 32 * 1024 * 1024,
	/* what derived_recipe_add_blocks puts in one piece: a range has at most so many headers
	 * to walk */
	DERIVED_PIECE_BLOCKS = 16
};

/* How a version's bytes are made, piece by piece in the order of the result. Built once, then
 * read-only; one thread's. Building never fails: what is too much is told by whoever takes the
 * recipe (too_large). */
struct derived_recipe;
struct derived_recipe *derived_recipe_new(void);
void derived_recipe_free(struct derived_recipe *recipe); /* NULL is fine */
/* The ordinal of a source: the same version gives the same one again. `size`: of the version. */
size_t derived_recipe_source(struct derived_recipe *recipe, int64_t version, uint64_t size);
/* Each adds a piece behind the last; empty ones are left out. Ranges must lie in their sources. */
void derived_recipe_add_literal(struct derived_recipe *recipe, struct span bytes);
void derived_recipe_add_copy(
	struct derived_recipe *recipe, size_t source, uint64_t offset, uint64_t length);
/* `length` bytes of `base` from `base_offset` on, one tensor of this dtype, changed by the blocks
 * that lie in `delta` from `delta_offset` on and take `delta_length` bytes. */
void derived_recipe_add_delta(struct derived_recipe *recipe, enum dtype dtype, size_t base,
	uint64_t base_offset, uint64_t length, size_t delta, uint64_t delta_offset,
	uint64_t delta_length);
/* The same where the blocks are at hand: several pieces, so that ranges of large tensors are found
 * faster. invalid when they are none. */
int derived_recipe_add_blocks(struct derived_recipe *recipe, enum dtype dtype, size_t base,
	uint64_t base_offset, uint64_t length, size_t delta, uint64_t delta_offset,
	struct span blocks, struct error *err);
uint64_t derived_recipe_size(const struct derived_recipe *recipe); /* of the result */

/* Bytes [offset, offset + length) of what the recipe makes, before any version has it: to prove it.
 * Sources are held until close. no_key when one is gone; too deep is invalid. Blocking reads, as
 * object_open's. */
struct body_source *derived_open_recipe(struct store *store, const struct derived_recipe *recipe,
	uint64_t offset, uint64_t length, struct error *err);
/* Digest of all that the recipe makes: every block is decoded and proven on the way. */
int derived_recipe_digest(struct store *store, const struct derived_recipe *recipe,
	struct digest128 *out_digest, struct error *err);

/* The version whose bytes this one copies whole, followed to where they lie; itself when it is not
 * such a copy. A copy of the former is as deep however often it is copied. no_key when it is
 * gone. */
int derived_origin(struct db *db, int64_t version, int64_t *out_origin, struct error *err);

/* Inside a change: a new version made of a recipe. Its ETag is `<32 hex of the digest>-d`. The
 * caller has proven that the recipe gives `digest`, or knows it. A hidden one (state 0) must be
 * named in the same change by whoever wants it (step_pin_add). Sources that scratch_store_hidden
 * made are released here. invalid when too deep or a source is gone. */
struct derived_add {
	int64_t bucket;
	struct span key;
	bool is_hidden; /* else it goes on top of its key, as a PUT */
	const struct derived_recipe *recipe;
	struct digest128 digest;
	struct span headers; /* a header_blob; may be empty */
	int64_t modified_ms;
};
int derived_add(
	struct db *db, const struct derived_add *add, int64_t *out_version, struct error *err);
/* Inside a change: the plain version gets this recipe in place of its segments. All that it says
 * stays, but that a version without digest gets one. The caller has proven that the recipe gives
 * its bytes. precondition when it cannot be (any more): gone, a marker, inline, derived already, a
 * source of others, or of another size or digest. */
int derived_swap(struct db *db, int64_t version, const struct derived_recipe *recipe,
	const struct digest128 *digest, struct error *err);

#endif
