/* user_version is the number of the last migration that ran. It is written in the transaction of
 * the migration, so a file always has exactly one number. Parts of a migration that SQL cannot do
 * are steps in C, in the same transaction. */
#include "storage/start/catalog.h"

#include "base/file.h"
#include "storage/buckets/bucket_access.h"
#include "storage/buckets/key_row.h"
#include "storage/core/store_row.h"
#include "storage/start/migration_list.h"

/* Checksums of pages are not a step: a VACUUM after the migrations adds them (give_checksums). */
static const struct {
	int number;
	int (*run)(struct db *db, struct error *err);
} steps[] = {
	{5, store_row_make},
	{5, key_row_sum_all},
	{5, bucket_access_stamp_all},
};

static int migrate(struct db *db, const struct catalog_gate *gate, struct error *err);
static int run_migration(struct db *db, const struct migration *migration, struct error *err);
static int run_steps(struct db *db, int number, struct error *err);
static int give_checksums(struct db *db, struct error *err);

struct db *catalog_open_asking(const char *path, const struct catalog_gate *gate, struct error *err)
{
	struct db *const db = db_open(path, DB_WRITE, err);
	if (db == NULL)
		return NULL;
	db_keep_log(db, true);
	if (migrate(db, gate, err) == 0 && give_checksums(db, err) == 0 &&
		db_keep_sums(db, err) == 0) {
		db_keep_log(db, false);
		return db;
	}
	db_close(db);
	return NULL;
}

struct db *catalog_open(const char *path, struct error *err)
{
	return catalog_open_asking(path, NULL, err);
}

struct db *catalog_make(const char *path, uint32_t schema, struct error *err)
{
	ASSERT(!file_exists(path));
	if (schema < 1 || schema > (uint32_t)migration_list[migration_count - 1].number) {
		error_set(err, ERROR_UNSUPPORTED,
			"The journal is of a catalog with schema %u, and this program knows those up to %d.",
			schema, migration_list[migration_count - 1].number);
		return NULL;
	}
	struct db *const db = db_open(path, DB_WRITE, err);
	int result = db == NULL ? -1 : 0;
	for (size_t i = 0; result == 0 && i < migration_count; i++)
		if ((uint32_t)migration_list[i].number <= schema)
			result = run_migration(db, &migration_list[i], err);
	if (result == 0)
		return db;
	db_close(db);
	return NULL;
}

static int migrate(struct db *db, const struct catalog_gate *gate, struct error *err)
{
	int version = 0;
	int application = 0;
	ASSERT(migration_count > 0);
	if (db_get_version(db, &version, &application, err) != 0)
		return -1;
	const int newest = migration_list[migration_count - 1].number;
	if (application != CATALOG_APPLICATION && (application != 0 || version != 0))
		return error_set(err, ERROR_CORRUPT,
			"%s is not a deltabucket catalog (application id %d).", db_path(db),
			application);
	if (version > newest)
		return error_set(err, ERROR_UNSUPPORTED,
			"%s has schema %d, made by a newer program; this one knows %d. Start the newer one.",
			db_path(db), version, newest);
	if (version < newest && gate != NULL && gate->ask(gate->owner, db, version, err) != 0)
		return -1;
	for (size_t i = 0; i < migration_count; i++)
		if (migration_list[i].number > version &&
			run_migration(db, &migration_list[i], err) != 0)
			return -1;
	return 0;
}

static int run_migration(struct db *db, const struct migration *migration, struct error *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	if (db_run_script(db, migration->sql, err) != 0 ||
		run_steps(db, migration->number, err) != 0 ||
		db_set_version(db, migration->number, CATALOG_APPLICATION, err) != 0) {
		db_rollback(db);
		return error_wrap(err, "The migration %s failed", migration->name);
	}
	return db_commit(db, err);
}

static int run_steps(struct db *db, int number, struct error *err)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (steps[i].number == number && steps[i].run(db, err) != 0)
			return -1;
	return 0;
}

/* Writes a catalog whose pages have no checksums again. After an interruption the next start does
 * it. */
static int give_checksums(struct db *db, struct error *err)
{
	if (db_is_summed(db))
		return 0;
	if (db_vacuum_whole(db, err) != 0)
		return error_wrap(
			err, "The catalog cannot be written again with checksums of its pages");
	return db_checkpoint_truncate(db, err);
}
