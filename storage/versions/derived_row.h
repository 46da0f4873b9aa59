/* The tables `derivations` and `derivation_sources`: the recipe of each derived version, and the
 * versions that it names. A row of `derivation_sources` keeps its source. Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_ROW_H
#define STORAGE_VERSIONS_DERIVED_ROW_H

#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

/* The sum of both blobs, which the version row has as its contents. */
uint64_t derived_row_contents(struct span recipe, struct span parts);
/* One more than the depth of the deepest source; 0 when the version is not derived. */
int derived_row_depth(struct db *db, int64_t version, unsigned *out_depth, struct error *err);
struct derived_row {
	unsigned depth; /* 1 to DERIVED_DEPTH_MAX */
	const struct derived_recipe *recipe;
	struct span bytes; /* the recipe, encoded */
	struct span parts; /* a derived_parts blob; may be empty */
};
/* Writes rows of both tables. */
int derived_row_add(
	struct db *db, int64_t version, const struct derived_row *row, struct error *err);
/* Writes the same derivation for another version, a copy. */
int derived_row_share(struct db *db, int64_t from, int64_t to, struct error *err);
/* Gives the derivation to the version `to`. */
int derived_row_move(struct db *db, int64_t from, int64_t to, struct error *err);
/* Removes the rows, and the sources that nothing else keeps. */
int derived_row_remove(struct db *db, int64_t version, struct error *err);
/* Whether a derived version is made of this one. */
int derived_row_is_source(struct db *db, int64_t version, bool *out_is, struct error *err);
/* Verified against `contents`; corrupt when absent or damaged. */
struct derived_recipe *derived_row_load(
	struct db *db, int64_t version, uint64_t contents, struct error *err);
/* The parts of a version whose segments a recipe replaced, verified; empty when it has none. *out
 * lives until the statement is reset. */
int derived_row_parts(struct db *db, int64_t version, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err);

#endif
