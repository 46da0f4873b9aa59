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

static int release_one(struct db *db, int64_t fold, struct error *err);

int fold_object_add(
	struct db *db, int64_t fold, struct span name, int64_t version, struct error *err)
{
	ASSERT(name.len > 0 && version > 0);
	return db_run(db, SQL_OBJECT_ADD, err, db_i64(fold), db_blob(name), db_i64(version));
}

int fold_object_find(
	struct db *db, int64_t fold, struct span name, int64_t *out_version, struct error *err)
{
	return db_find_i64(db, SQL_OBJECT_FIND, out_version, err, db_i64(fold), db_blob(name));
}

int fold_object_count(struct db *db, int64_t fold, size_t *out_count, struct error *err)
{
	int64_t count = 0;
	const int got = db_find_i64(db, SQL_OBJECT_COUNT, &count, err, db_i64(fold));
	*out_count = (size_t)count;
	return got < 0 ? -1 : 0;
}

struct db_statement *fold_object_scan(struct db *db, int64_t fold, struct error *err)
{
	return db_query(db, SQL_OBJECT_SCAN, err, db_i64(fold));
}

int fold_object_release(struct db *db, int64_t fold, bool *out_more, struct error *err)
{
	int got = 1;
	for (int i = 0; got == 1 && i < FOLD_RELEASE_ROWS; i++)
		got = release_one(db, fold, err);
	*out_more = got == 1;
	return got < 0 ? -1 : 0;
}

/* 1: an object was released; 0: none is left; -1. */
static int release_one(struct db *db, int64_t fold, struct error *err)
{
	struct db_statement *const first = db_query(db, SQL_OBJECT_FIRST, err, db_i64(fold));
	int got = db_step(first, err);
	if (got == 1) {
		const struct span name = db_column_blob(first, 0);
		const int64_t version = db_column_i64(first, 1);
		if (db_run(db, SQL_OBJECT_REMOVE, err, db_i64(fold), db_blob(name)) != 0 ||
			version_drop_unless_named(db, version, err) != 0)
			got = -1;
	}
	db_reset(first);
	return got;
}
