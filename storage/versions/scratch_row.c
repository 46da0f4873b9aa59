#include "storage/versions/scratch_row.h"

#include "storage/versions/version.h"

static const char SQL_SCRATCH_ADD[] = "INSERT INTO scratch_versions (version) VALUES (?1)";
static const char SQL_SCRATCH_REMOVE[] = "DELETE FROM scratch_versions WHERE version = ?1";
static const char SQL_SCRATCH_FIND[] =
	"SELECT version FROM scratch_versions WHERE version <= ?1 LIMIT 1";
static const char SQL_SCRATCH_LAST[] = "SELECT coalesce(max(version), 0) FROM scratch_versions";

int scratch_row_add(struct db *db, int64_t version, struct error *err)
{
	ASSERT(version > 0);
	return db_run(db, SQL_SCRATCH_ADD, err, db_i64(version));
}

int scratch_row_release(struct db *db, int64_t version, struct error *err)
{
	if (db_run(db, SQL_SCRATCH_REMOVE, err, db_i64(version)) != 0)
		return -1;
	return version_drop_unless_named(db, version, err);
}

int scratch_row_find(struct db *db, int64_t last, int64_t *out_version, struct error *err)
{
	return db_find_i64(db, SQL_SCRATCH_FIND, out_version, err, db_i64(last));
}

int scratch_row_last(struct db *db, int64_t *out_version, struct error *err)
{
	return db_find_i64(db, SQL_SCRATCH_LAST, out_version, err) < 0 ? -1 : 0;
}
