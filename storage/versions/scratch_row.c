#include "storage/versions/scratch_row.h"

#include "storage/versions/version.h"

static const char SQL_SCRATCH_ADD[] = "INSERT INTO scratch_versions (version) VALUES (?1)";
static const char SQL_SCRATCH_REMOVE[] = "DELETE FROM scratch_versions WHERE version = ?1";
static const char SQL_SCRATCH_FIND[] =
	"SELECT version FROM scratch_versions WHERE version <= ?1 LIMIT 1";
static const char SQL_SCRATCH_LAST[] = "SELECT coalesce(max(version), 0) FROM scratch_versions";

static int run_on_version(struct db *db, const char *sql, int64_t version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, version);
	return db_execute(statement, err);
}

int scratch_row_add(struct db *db, int64_t version, struct error *err)
{
	return run_on_version(db, SQL_SCRATCH_ADD, version, err);
}

int scratch_row_release(struct db *db, int64_t version, struct error *err)
{
	return run_on_version(db, SQL_SCRATCH_REMOVE, version, err) != 0
		? -1
		: version_unpin(db, version, err);
}

/* The first column of the first row: 1, 0 without one, -1. */
static int take_version(struct db_statement *statement, int64_t *out_version, struct error *err)
{
	int got = db_step(statement, err);
	if (got == 1)
		*out_version = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int scratch_row_find(struct db *db, int64_t last, int64_t *out_version, struct error *err)
{
	struct db_statement *statement = db_prepare(db, SQL_SCRATCH_FIND, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, last);
	return take_version(statement, out_version, err);
}

int scratch_row_last(struct db *db, int64_t *out_version, struct error *err)
{
	struct db_statement *statement = db_prepare(db, SQL_SCRATCH_LAST, err);
	return statement == NULL || take_version(statement, out_version, err) < 0 ? -1 : 0;
}
