/* Derived versions (kind VERSION_DERIVED): their bytes are made from other versions, the sources,
 * while they stream. A recipe lists literal bytes, copies of ranges, and ranges of a base changed
 * by `ulp-class` blocks (weights/codec/block_code.h); each block is proven by its own hash. Readers
 * see an object like any other: object_open gives ranges of it. Sources stay as long as a derived
 * version names them, whatever happens to their keys. docs/FORMAT.md, "Derived versions", defines
 * the bytes of a recipe. */
#ifndef STORAGE_VERSIONS_DERIVED_H
#define STORAGE_VERSIONS_DERIVED_H

#include "storage/db/db.h"
#include "storage/versions/object.h"
#include "weights/codec/dtype.h"

enum {
	DERIVED_DEPTH_MAX = 2, /* a derived version of a derived version of plain ones */
	DERIVED_SOURCES_MAX = 64,
	DERIVED_RECIPE_MAX_BYTES = 32 * 1024 * 1024,
	/* Blocks that derived_recipe_add_blocks puts in one piece: a read walks over at most so
	 * many headers. */
	DERIVED_PIECE_BLOCKS = 16
};

/* How a version's bytes are made, piece by piece in the order of the result. One thread builds it,
 * then it is read-only. Building never fails: functions that take the recipe refuse one that is too
 * large (too_large) or has a piece outside of its source (invalid). */
struct derived_recipe;
struct derived_recipe *derived_recipe_new(void);
void derived_recipe_free(struct derived_recipe *recipe); /* NULL is fine */
/* Returns the ordinal of a source; the same version gives the same one again. `size` is the
 * version's, in bytes. */
size_t derived_recipe_source(struct derived_recipe *recipe, int64_t version, uint64_t size);
/* Each function adds a piece behind the last one and ignores an empty piece. Ranges must lie in
 * their sources. */
void derived_recipe_add_literal(struct derived_recipe *recipe, struct span bytes);
void derived_recipe_add_copy(
	struct derived_recipe *recipe, size_t source, uint64_t offset, uint64_t length);
/* Bytes of a source. */
struct derived_range {
	size_t source; /* its ordinal */
	uint64_t offset;
	uint64_t length;
};
/* Adds the range `base`, which belongs to one tensor of this dtype, changed by the blocks that the
 * range `delta` holds. */
void derived_recipe_add_delta(struct derived_recipe *recipe, enum dtype dtype,
	const struct derived_range *base, const struct derived_range *delta);
/* The same for blocks that the caller has in memory. It makes several pieces of them, so that
 * ranges of large tensors are found faster. invalid when `blocks` are not the blocks of such a
 * tensor. */
struct derived_blocks {
	size_t source;   /* the ordinal of the source that holds them, */
	uint64_t offset; /* from here on */
	struct span bytes;
};
int derived_recipe_add_blocks(struct derived_recipe *recipe, enum dtype dtype,
	const struct derived_range *base, const struct derived_blocks *blocks, struct error *err);
uint64_t derived_recipe_size(const struct derived_recipe *recipe); /* of the result */

/* Opens bytes [offset, offset + length) of the result before any version has the recipe, so that
 * the recipe can be proven. Holds the packs of the sources until close. no_key when a source is
 * gone, invalid when a piece lies outside of its source or the range outside of the result, corrupt
 * when derived versions are nested too deep. Reads block, as those of object_open do. */
struct body_source *derived_open_recipe(struct store *store, const struct derived_recipe *recipe,
	uint64_t offset, uint64_t length, struct error *err);
/* The digest of the whole result. Every block is decoded and proven on the way. */
int derived_recipe_digest(struct store *store, const struct derived_recipe *recipe,
	struct digest128 *out_digest, struct error *err);

/* Finds the version whose bytes this one copies whole, through all such copies in between; itself
 * when it is not such a copy. A copy of the origin has the same depth however often the bytes were
 * copied. no_key when a version is gone. */
int derived_origin(struct db *db, int64_t version, int64_t *out_origin, struct error *err);

/* Inside a change: adds a version made of a recipe. Its ETag is `<32 hex of the digest>-d`. The
 * caller has proven that the recipe gives `digest`, or knows it. A hidden version must be named in
 * the same change (step_pin_add). Sources that scratch_store_hidden made are released from scratch
 * here. invalid when the recipe is too deep or a source is gone. */
struct derived_add {
	int64_t bucket;
	struct span key;
	bool is_hidden; /* false: it goes on top of its key, as a PUT does */
	const struct derived_recipe *recipe;
	struct digest128 digest;
	struct span headers; /* a header_blob; may be empty */
	int64_t modified_ms;
};
int derived_add(
	struct db *db, const struct derived_add *add, int64_t *out_version, struct error *err);
/* Inside a change: gives a plain version this recipe in place of its segments. Everything that the
 * row says stays, but a version without a digest gets one. The caller has proven that the recipe
 * gives the version's bytes. precondition when the version cannot be swapped (any more): it is
 * gone, a marker, inline, derived already, a source of others, of another size or digest, or has
 * too many parts. */
int derived_swap(struct db *db, int64_t version, const struct derived_recipe *recipe,
	const struct digest128 *digest, struct error *err);

#endif
