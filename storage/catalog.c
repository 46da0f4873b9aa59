/* user_version is the number of the last migration that ran; it is stamped in the migration's own transaction, so a file is always at
 * exactly one number. */
#include "storage/catalog.h"

#include "storage/migration_list.h"

static int run_migration(struct db *const db, const struct migration *const migration, struct error *const err)
{
	if (db_begin(db, err) != 0)
		return -1;
	if (db_run_script(db, migration->sql, err) != 0 || db_set_version(db, migration->number, CATALOG_APPLICATION, err) != 0) {
		db_rollback(db);
		return error_wrap(err, "running migration %s", migration->name);
	}
	return db_commit(db, err);
}

static int migrate(struct db *const db, struct error *const err)
{
	int version = 0;
	int application = 0;
	if (db_get_version(db, &version, &application, err) != 0)
		return -1;
	const int newest = migration_list[migration_count - 1].number;
	if (application != CATALOG_APPLICATION && (application != 0 || version != 0))
		return error_set(err, ERROR_CORRUPT, "%s is not a deltabucket catalog (application id %d).", db_path(db), application);
	if (version > newest)
		return error_set(err, ERROR_UNSUPPORTED, "%s has schema %d, made by a newer program; this one knows %d.", db_path(db), version,
			newest);
	for (size_t i = 0; i < migration_count; i++)
		if (migration_list[i].number > version && run_migration(db, &migration_list[i], err) != 0)
			return -1;
	return 0;
}

struct db *catalog_open(const char *const path, struct error *const err)
{
	struct db *const db = db_open(path, DB_WRITE, err);
	if (db == NULL)
		return NULL;
	if (migrate(db, err) == 0)
		return db;
	db_close(db);
	return NULL;
}
