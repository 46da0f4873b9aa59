/* The tables `derivations` and `derivation_sources`: the recipe of each derived version, and which
 * versions it names. A row of the latter pins its source. Internal to storage. */
#ifndef STORAGE_VERSIONS_DERIVED_ROW_H
#define STORAGE_VERSIONS_DERIVED_ROW_H

#include "storage/db/db.h"
#include "storage/versions/derived_recipe.h"

/* What a version row says of its derivation. */
uint64_t derived_row_contents(struct span recipe, struct span parts);
/* One more than the deepest source; 0: the version is none. */
int derived_row_depth(struct db *db, int64_t version, unsigned *out_depth, struct error *err);
/* Writes both tables. `recipe` encoded in `bytes`; `parts`: a derived_parts blob, may be empty. */
int derived_row_add(struct db *db, int64_t version, unsigned depth,
	const struct derived_recipe *recipe, struct span bytes, struct span parts,
	struct error *err);
/* The same derivation for another version: a copy. */
int derived_row_share(struct db *db, int64_t from, int64_t to, struct error *err);
/* Under another number. */
int derived_row_move(struct db *db, int64_t from, int64_t to, struct error *err);
/* Removes the rows; sources that nothing else keeps go too. */
int derived_row_remove(struct db *db, int64_t version, struct error *err);
/* Whether any derived version is made of this one. */
int derived_row_is_source(struct db *db, int64_t version, bool *out_is, struct error *err);
/* Verified against `contents`; corrupt when absent or damaged. */
struct derived_recipe *derived_row_load(
	struct db *db, int64_t version, uint64_t contents, struct error *err);
/* The parts of a swapped multipart version, verified; *out lives until the statement is reset. */
int derived_row_parts(struct db *db, int64_t version, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err);

#endif
