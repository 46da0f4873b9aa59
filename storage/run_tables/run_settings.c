#include "storage/run_tables/run_settings.h"

#include "storage/run_tables/deployment_row.h"

static const char SQL_SETTINGS_SET[] =
	"UPDATE runs SET settings = ?2, keep_steps = ?3, adopts = ?4, hot_load = ?5 WHERE id = ?1";
static const char SQL_SETTINGS_ADOPTING[] =
	"SELECT COUNT(*) FROM runs WHERE bucket = (SELECT bucket FROM runs WHERE id = ?1) AND adopts = 1 AND id <> ?1";

static int check_adopting(struct db *db, int64_t run, uint64_t adopt, struct error *err);
static struct db_value hot_load_value(
	const struct run_settings *settings, int64_t run, uint8_t column[DEPLOYMENT_COLUMN_BYTES]);

int run_settings_read(struct db *db, struct span document, uint64_t keep_steps,
	struct run_settings *out, struct error *err)
{
	struct error fault = {0};
	*out = run_settings_default();
	if (document.len > 0 && run_settings_parse(out, document, false, &fault) != 0)
		return error_set(err, ERROR_CORRUPT, "%s: the settings of a run are damaged: %s",
			db_path(db), fault.text);
	out->keep_steps = keep_steps;
	return 0;
}

int run_settings_store(
	struct db *db, int64_t run, const struct run_settings *settings, struct error *err)
{
	struct buffer document;
	uint8_t column[DEPLOYMENT_COLUMN_BYTES];
	ASSERT(run > 0 && settings->adopt != ADOPT_HOT_LOAD);
	if (settings->hot_load[0] != '\0' &&
		deployment_row_check(db, run, settings->hot_load, err) != 0)
		return -1;
	if (check_adopting(db, run, settings->adopt, err) != 0)
		return -1;
	struct json_writer writer;
	buffer_init(&document, RUN_SETTINGS_MAX_BYTES);
	json_writer_init(&writer, &document);
	run_settings_print(settings, NULL, &writer);
	int result = buffer_check(&document, "the settings of a run", err);
	if (result == 0)
		result = db_run(db, SQL_SETTINGS_SET, err, db_i64(run),
			db_blob(buffer_span(&document)), db_i64((int64_t)settings->keep_steps),
			db_i64(settings->adopt != ADOPT_NONE),
			hot_load_value(settings, run, column));
	buffer_release(&document);
	return result;
}

/* Adopting runs are limited because each object that is put is compared with each of them
 * (storage/run_tables/adopt_note.h). */
static int check_adopting(struct db *db, int64_t run, uint64_t adopt, struct error *err)
{
	int64_t others = 0;
	if (adopt == ADOPT_NONE)
		return 0;
	if (db_find_i64(db, SQL_SETTINGS_ADOPTING, &others, err, db_i64(run)) < 0)
		return -1;
	if (others >= ADOPTING_RUNS_MAX)
		return error_set(err, ERROR_EXISTS,
			"%d other runs of the bucket have the setting \"adopt\" already, which is the limit.",
			ADOPTING_RUNS_MAX);
	return 0;
}

/* Borrowed from `column`. */
static struct db_value hot_load_value(
	const struct run_settings *settings, int64_t run, uint8_t column[DEPLOYMENT_COLUMN_BYTES])
{
	if (settings->hot_load[0] == '\0')
		return db_null();
	return db_blob(span_of(column, deployment_row_column(settings->hot_load, run, column)));
}
