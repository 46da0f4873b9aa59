/* The inside of a recipe (derived.h): its sources and pieces, and its bytes in the catalog.
 * Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_RECIPE_H
#define STORAGE_VERSIONS_DERIVED_RECIPE_H

#include "storage/versions/derived.h"

/* Numbers are stored in the catalog. */
enum derived_piece_kind {
	DERIVED_LITERAL = 0,
	DERIVED_COPY = 1,
	DERIVED_DELTA = 2,
	DERIVED_PIECE_KINDS
};

struct derived_piece {
	uint64_t end; /* in the result; the piece begins where the one before it ends */
	enum derived_piece_kind kind;
	enum dtype dtype; /* of a delta */
	uint16_t source;  /* ordinal of the source that is copied, or of the base */
	uint64_t offset;  /* in that source; of a literal: in `literals` */
	uint16_t delta;   /* ordinal of the source that holds a delta's blocks */
	uint64_t delta_offset;
	uint64_t delta_length;
};
struct derived_source {
	int64_t version;
	uint64_t size;
};
struct derived_recipe {
	struct derived_source *sources;
	size_t source_count;
	size_t source_capacity;
	struct derived_piece *pieces;
	size_t piece_count;
	size_t piece_capacity;
	struct buffer literals;
	bool is_unsound; /* a piece was added that lies outside its source */
};

/* Sets a source that was added as version 0 with size DERIVED_SIZE_UNKNOWN, because it was still
 * being written while the recipe was built. */
#define DERIVED_SIZE_UNKNOWN ((uint64_t)INT64_MAX)
void derived_recipe_settle(
	struct derived_recipe *recipe, size_t source, int64_t version, uint64_t size);
/* too_large; invalid when a piece lies outside of its source. */
int derived_recipe_encode(
	const struct derived_recipe *recipe, struct buffer *out, struct error *err);
/* corrupt unless every piece lies in its source and the pieces add up to the result. */
struct derived_recipe *derived_recipe_parse(struct span bytes, struct error *err);
uint64_t derived_recipe_start(const struct derived_recipe *recipe, size_t piece);
/* The index of the piece that holds byte `offset` of the result; the count when there is none. */
size_t derived_recipe_find(const struct derived_recipe *recipe, uint64_t offset);
uint64_t derived_piece_length(const struct derived_recipe *recipe, size_t piece);

#endif
