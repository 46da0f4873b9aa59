/* The version's row proves a derivation, since its contents are the sum of recipe and parts. The
 * table `derivation_sources` repeats the sources that the recipe names, so that SQL finds out what
 * keeps a version; its rows are written and removed together with the derivation. */
#include "storage/versions/derived_row.h"

#include "storage/db/row_sum.h"
#include "storage/versions/version.h"

static const char SQL_DERIVATION_ADD[] =
	"INSERT INTO derivations (version, depth, recipe, parts) VALUES (?1, ?2, ?3, ?4)";
static const char SQL_DERIVATION_GET[] = "SELECT recipe, parts FROM derivations WHERE version = ?1";
static const char SQL_DERIVATION_DEPTH[] = "SELECT depth FROM derivations WHERE version = ?1";
static const char SQL_DERIVATION_SHARE[] =
	"INSERT INTO derivations (version, depth, recipe, parts) SELECT ?2, depth, recipe, parts FROM derivations WHERE version = ?1";
static const char SQL_DERIVATION_MOVE[] = "UPDATE derivations SET version = ?2 WHERE version = ?1";
static const char SQL_SOURCE_MOVE[] =
	"UPDATE derivation_sources SET version = ?2 WHERE version = ?1";
static const char SQL_DERIVATION_REMOVE[] = "DELETE FROM derivations WHERE version = ?1";
static const char SQL_SOURCE_ADD[] =
	"INSERT INTO derivation_sources (version, ordinal, source) VALUES (?1, ?2, ?3)";
static const char SQL_SOURCE_SHARE[] =
	"INSERT INTO derivation_sources (version, ordinal, source) SELECT ?2, ordinal, source FROM derivation_sources WHERE version = ?1";
static const char SQL_SOURCE_LIST[] =
	"SELECT source FROM derivation_sources WHERE version = ?1 ORDER BY ordinal";
static const char SQL_SOURCE_REMOVE[] = "DELETE FROM derivation_sources WHERE version = ?1";
static const char SQL_SOURCE_IS[] = "SELECT 1 FROM derivation_sources WHERE source = ?1 LIMIT 1";

static int list_sources(struct db *db, int64_t version, int64_t out[DERIVED_SOURCES_MAX],
	size_t *out_count, struct error *err);
static int load(struct db *db, int64_t version, uint64_t contents, struct db_statement **out,
	struct error *err);

uint64_t derived_row_contents(struct span recipe, struct span parts)
{
	return row_sum_bytes(row_sum_bytes(0, recipe), parts);
}

int derived_row_depth(struct db *db, int64_t version, unsigned *out_depth, struct error *err)
{
	int64_t depth = 0;
	const int got = db_find_i64(db, SQL_DERIVATION_DEPTH, &depth, err, db_i64(version));
	*out_depth = (unsigned)depth;
	return got < 0 ? -1 : 0;
}

int derived_row_add(
	struct db *db, int64_t version, const struct derived_row *row, struct error *err)
{
	const struct derived_recipe *const recipe = row->recipe;
	ASSERT(row->depth >= 1 && row->depth <= DERIVED_DEPTH_MAX);
	ASSERT(recipe->source_count <= DERIVED_SOURCES_MAX);
	int result = db_run(db, SQL_DERIVATION_ADD, err, db_i64(version), db_i64(row->depth),
		db_blob(row->bytes), db_blob_or_null(row->parts.len > 0, row->parts));
	for (size_t i = 0; result == 0 && i < recipe->source_count; i++)
		result = db_run(db, SQL_SOURCE_ADD, err, db_i64(version), db_i64((int64_t)i),
			db_i64(recipe->sources[i].version));
	return result;
}

int derived_row_share(struct db *db, int64_t from, int64_t to, struct error *err)
{
	ASSERT(from != to);
	if (db_run(db, SQL_DERIVATION_SHARE, err, db_i64(from), db_i64(to)) != 0)
		return -1;
	if (db_changes(db) != 1)
		return error_set(err, ERROR_CORRUPT,
			"%s: the derivation of version %lld is missing.", db_path(db),
			(long long)from);
	return db_run(db, SQL_SOURCE_SHARE, err, db_i64(from), db_i64(to));
}

int derived_row_move(struct db *db, int64_t from, int64_t to, struct error *err)
{
	ASSERT(from != to);
	if (db_run(db, SQL_DERIVATION_MOVE, err, db_i64(from), db_i64(to)) != 0)
		return -1;
	return db_run(db, SQL_SOURCE_MOVE, err, db_i64(from), db_i64(to));
}

int derived_row_remove(struct db *db, int64_t version, struct error *err)
{
	int64_t sources[DERIVED_SOURCES_MAX];
	size_t count = 0;
	if (list_sources(db, version, sources, &count, err) != 0 ||
		db_run(db, SQL_SOURCE_REMOVE, err, db_i64(version)) != 0 ||
		db_run(db, SQL_DERIVATION_REMOVE, err, db_i64(version)) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (version_drop_unless_named(db, sources[i], err) != 0)
			return -1;
	return 0;
}

int derived_row_is_source(struct db *db, int64_t version, bool *out_is, struct error *err)
{
	int64_t found = 0;
	const int got = db_find_i64(db, SQL_SOURCE_IS, &found, err, db_i64(version));
	*out_is = got == 1;
	return got < 0 ? -1 : 0;
}

struct derived_recipe *derived_row_load(
	struct db *db, int64_t version, uint64_t contents, struct error *err)
{
	struct db_statement *statement;
	if (load(db, version, contents, &statement, err) != 0)
		return NULL;
	struct derived_recipe *const recipe =
		derived_recipe_parse(db_column_blob(statement, 0), err);
	db_reset(statement);
	return recipe;
}

int derived_row_parts(struct db *db, int64_t version, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err)
{
	if (load(db, version, contents, out_statement, err) != 0)
		return -1;
	*out = db_column_blob(*out_statement, 1);
	return 0;
}

static int list_sources(struct db *db, int64_t version, int64_t out[DERIVED_SOURCES_MAX],
	size_t *out_count, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_SOURCE_LIST, err, db_i64(version));
	int got = -1;
	*out_count = 0;
	while (*out_count < DERIVED_SOURCES_MAX && (got = db_step(statement, err)) == 1)
		out[(*out_count)++] = db_column_i64(statement, 0);
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

/* On success the statement stands at the verified row; db_reset it. */
static int load(struct db *db, int64_t version, uint64_t contents, struct db_statement **out,
	struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_DERIVATION_GET, err, db_i64(version));
	const int got = db_step(statement, err);
	if (got == 1 &&
		derived_row_contents(db_column_blob(statement, 0), db_column_blob(statement, 1)) ==
			contents) {
		*out = statement;
		return 0;
	}
	db_reset(statement);
	if (got < 0)
		return -1;
	return error_set(err, ERROR_CORRUPT, "%s: the derivation of version %lld is %s.",
		db_path(db), (long long)version, got == 1 ? "damaged" : "missing");
}
