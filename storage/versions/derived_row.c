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

uint64_t derived_row_contents(struct span recipe, struct span parts)
{
	return row_sum_bytes(row_sum_bytes(0, recipe), parts);
}

static struct db_statement *prepare_of_version(
	struct db *db, const char *sql, int64_t version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement != NULL)
		db_bind_i64(statement, 1, version);
	return statement;
}

int derived_row_depth(struct db *db, int64_t version, unsigned *out_depth, struct error *err)
{
	struct db_statement *const statement =
		prepare_of_version(db, SQL_DERIVATION_DEPTH, version, err);
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	*out_depth = got == 1 ? (unsigned)db_column_i64(statement, 0) : 0;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static int add_source(
	struct db *db, int64_t version, size_t ordinal, int64_t source, struct error *err)
{
	struct db_statement *const statement = prepare_of_version(db, SQL_SOURCE_ADD, version, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 2, (int64_t)ordinal);
	db_bind_i64(statement, 3, source);
	return db_execute(statement, err);
}

int derived_row_add(struct db *db, int64_t version, unsigned depth,
	const struct derived_recipe *recipe, struct span bytes, struct span parts,
	struct error *err)
{
	struct db_statement *const statement =
		prepare_of_version(db, SQL_DERIVATION_ADD, version, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 2, depth);
	db_bind_blob(statement, 3, bytes);
	if (parts.len > 0)
		db_bind_blob(statement, 4, parts);
	int result = db_execute(statement, err);
	for (size_t i = 0; result == 0 && i < recipe->source_count; i++)
		result = add_source(db, version, i, recipe->sources[i].version, err);
	return result;
}

static int run_on_two(struct db *db, const char *sql, int64_t from, int64_t to, struct error *err)
{
	struct db_statement *const statement = prepare_of_version(db, sql, from, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 2, to);
	return db_execute(statement, err);
}

int derived_row_share(struct db *db, int64_t from, int64_t to, struct error *err)
{
	if (run_on_two(db, SQL_DERIVATION_SHARE, from, to, err) != 0)
		return -1;
	if (db_changes(db) != 1)
		return error_set(err, ERROR_CORRUPT,
			"%s: the derivation of version %lld is missing.", db_path(db),
			(long long)from);
	return run_on_two(db, SQL_SOURCE_SHARE, from, to, err);
}

int derived_row_move(struct db *db, int64_t from, int64_t to, struct error *err)
{
	return run_on_two(db, SQL_DERIVATION_MOVE, from, to, err) != 0
		? -1
		: run_on_two(db, SQL_SOURCE_MOVE, from, to, err);
}

static int list_sources(struct db *db, int64_t version, int64_t out[DERIVED_SOURCES_MAX],
	size_t *out_count, struct error *err)
{
	struct db_statement *const statement =
		prepare_of_version(db, SQL_SOURCE_LIST, version, err);
	int got = -1;
	*out_count = 0;
	if (statement == NULL)
		return -1;
	while (*out_count < DERIVED_SOURCES_MAX && (got = db_step(statement, err)) == 1)
		out[(*out_count)++] = db_column_i64(statement, 0);
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static int execute(struct db *db, const char *sql, int64_t version, struct error *err)
{
	struct db_statement *const statement = prepare_of_version(db, sql, version, err);
	return statement == NULL ? -1 : db_execute(statement, err);
}

int derived_row_remove(struct db *db, int64_t version, struct error *err)
{
	int64_t sources[DERIVED_SOURCES_MAX];
	size_t count = 0;
	if (list_sources(db, version, sources, &count, err) != 0 ||
		execute(db, SQL_SOURCE_REMOVE, version, err) != 0 ||
		execute(db, SQL_DERIVATION_REMOVE, version, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (version_unpin(db, sources[i], err) != 0)
			return -1;
	return 0;
}

int derived_row_is_source(struct db *db, int64_t version, bool *out_is, struct error *err)
{
	struct db_statement *const statement = prepare_of_version(db, SQL_SOURCE_IS, version, err);
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	db_reset(statement);
	*out_is = got == 1;
	return got < 0 ? -1 : 0;
}

/* 0 with the statement at the verified row, to be reset. */
static int load(struct db *db, int64_t version, uint64_t contents, struct db_statement **out,
	struct error *err)
{
	struct db_statement *const statement =
		prepare_of_version(db, SQL_DERIVATION_GET, version, err);
	if (statement == NULL)
		return -1;
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
