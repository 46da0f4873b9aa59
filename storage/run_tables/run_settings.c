#include "storage/run_tables/run_settings.h"

#include "storage/run_tables/deployment_row.h"

static const char SQL_SETTINGS_SET[] =
	"UPDATE runs SET settings = ?2, keep_steps = ?3, adopts = ?4, hot_load = ?5 WHERE id = ?1";
static const char SQL_SETTINGS_ADOPTING[] =
	"SELECT COUNT(*) FROM runs WHERE bucket = (SELECT bucket FROM runs WHERE id = ?1) AND adopts = 1 AND id <> ?1";

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

/* Each of them is looked at with each object that is put (storage/run_tables/adopt_note.h). */
static int check_adopting(struct db *db, int64_t run, uint64_t adopt, struct error *err)
{
	struct db_statement *const statement =
		adopt != ADOPT_NONE ? db_prepare(db, SQL_SETTINGS_ADOPTING, err) : NULL;
	if (statement == NULL)
		return adopt != ADOPT_NONE ? -1 : 0;
	db_bind_i64(statement, 1, run);
	const int got = db_step(statement, err);
	const bool is_full = got == 1 && db_column_i64(statement, 0) >= ADOPTING_RUNS_MAX;
	db_reset(statement);
	if (is_full)
		return error_set(err, ERROR_EXISTS,
			"%d other runs of the bucket adopt already, the most there may be.",
			ADOPTING_RUNS_MAX);
	return got < 0 ? -1 : 0;
}

int run_settings_store(
	struct db *db, int64_t run, const struct run_settings *settings, struct error *err)
{
	struct buffer document;
	uint8_t column[DEPLOYMENT_COLUMN_BYTES];
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
	struct db_statement *const statement =
		result == 0 ? db_prepare(db, SQL_SETTINGS_SET, err) : NULL;
	if (statement != NULL) {
		db_bind_i64(statement, 1, run);
		db_bind_blob(statement, 2, buffer_span(&document));
		db_bind_i64(statement, 3, (int64_t)settings->keep_steps);
		db_bind_i64(statement, 4, settings->adopt != ADOPT_NONE);
		if (settings->hot_load[0] != '\0')
			db_bind_blob(statement, 5,
				span_of(column,
					deployment_row_column(settings->hot_load, run, column)));
		result = db_execute(statement, err);
	} else {
		result = -1;
	}
	buffer_release(&document);
	return result;
}
