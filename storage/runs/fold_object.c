#include "storage/runs/fold_object.h"

#include "storage/versions/version.h"

static const char SQL_OBJECT_ADD[] =
	"INSERT INTO fold_objects (fold, name, version) VALUES (?1, ?2, ?3)";
static const char SQL_OBJECT_FIND[] =
	"SELECT version FROM fold_objects WHERE fold = ?1 AND name = ?2";
static const char SQL_OBJECT_COUNT[] = "SELECT COUNT(*) FROM fold_objects WHERE fold = ?1";
static const char SQL_OBJECT_SCAN[] =
	"SELECT name, version FROM fold_objects WHERE fold = ?1 ORDER BY name";
static const char SQL_OBJECT_FIRST[] =
	"SELECT name, version FROM fold_objects WHERE fold = ?1 ORDER BY name LIMIT 1";
static const char SQL_OBJECT_REMOVE[] = "DELETE FROM fold_objects WHERE fold = ?1 AND name = ?2";

int fold_object_add(
	struct db *db, int64_t fold, struct span name, int64_t version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_OBJECT_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, fold);
	db_bind_blob(statement, 2, name);
	db_bind_i64(statement, 3, version);
	return db_execute(statement, err);
}

int fold_object_find(
	struct db *db, int64_t fold, struct span name, int64_t *out_version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_OBJECT_FIND, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, fold);
	db_bind_blob(statement, 2, name);
	const int got = db_step(statement, err);
	if (got == 1)
		*out_version = db_column_i64(statement, 0);
	db_reset(statement);
	return got;
}

int fold_object_count(struct db *db, int64_t fold, size_t *out_count, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_OBJECT_COUNT, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, fold);
	const int got = db_step(statement, err);
	*out_count = got == 1 ? (size_t)db_column_i64(statement, 0) : 0;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

struct db_statement *fold_object_scan(struct db *db, int64_t fold, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_OBJECT_SCAN, err);
	if (statement != NULL)
		db_bind_i64(statement, 1, fold);
	return statement;
}

static int remove_object(struct db *db, int64_t fold, struct span name, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_OBJECT_REMOVE, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, fold);
	db_bind_blob(statement, 2, name);
	return db_execute(statement, err);
}

/* 1: one was released; 0: none is left. */
static int release_one(struct db *db, int64_t fold, struct error *err)
{
	struct db_statement *const first = db_prepare(db, SQL_OBJECT_FIRST, err);
	if (first == NULL)
		return -1;
	db_bind_i64(first, 1, fold);
	int got = db_step(first, err);
	if (got == 1) {
		const int64_t version = db_column_i64(first, 1);
		if (remove_object(db, fold, db_column_blob(first, 0), err) != 0 ||
			version_unpin(db, version, err) != 0)
			got = -1;
	}
	db_reset(first);
	return got;
}

int fold_object_release(struct db *db, int64_t fold, bool *out_more, struct error *err)
{
	int got = 1;
	for (int i = 0; got == 1 && i < FOLD_RELEASE_ROWS; i++)
		got = release_one(db, fold, err);
	*out_more = got == 1;
	return got < 0 ? -1 : 0;
}
