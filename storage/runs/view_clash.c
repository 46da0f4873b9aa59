/* Each of the two settings may come second, so there are two checks: a view that was switched on is
 * compared with all adopting runs of the bucket, and what a run adopts now with the view in that
 * place. */
#include "storage/runs/view_clash.h"

#include <stdio.h>
#include <string.h>

#include "storage/run_tables/adopt_layout.h"
#include "storage/run_tables/run_settings.h"
#include "storage/run_tables/view_key.h"

enum { PLACE_BYTES = 2 * RUN_PREFIX_MAX_BYTES + 16 };

static const char SQL_CLASH_ADOPTING[] =
	"SELECT name, settings, keep_steps FROM runs WHERE bucket = ?1 AND adopts = 1 ORDER BY id LIMIT 16";

static int check_view(struct db *db, const struct run_row *run, struct span run_name,
	enum view_kind kind, struct error *err);
static int check_adopting_run(struct db *db, struct db_statement *row, struct span run_name,
	enum view_kind kind, struct error *err);
static bool find_place(const struct run_settings *settings, struct span run_name,
	char text[PLACE_BYTES], struct span *out_run, enum view_kind *out_kind);
static int check_adopted(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err);

int view_clash_check(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err)
{
	for (int i = 0; i < VIEW_KINDS; i++) {
		const enum view_kind kind = (enum view_kind)i;
		const bool goes_on =
			view_key_is_on(&run->settings, kind) && !view_key_is_on(before, kind);
		if (goes_on && check_view(db, run, run_name, kind, err) != 0)
			return -1;
	}
	return check_adopted(db, run, run_name, before, err);
}

static int check_view(struct db *db, const struct run_row *run, struct span run_name,
	enum view_kind kind, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_CLASH_ADOPTING, err, db_i64(run->bucket));
	int got;
	while ((got = db_step(statement, err)) == 1)
		if (check_adopting_run(db, statement, run_name, kind, err) != 0)
			break;
	db_reset(statement);
	return got == 0 ? 0 : -1;
}

/* Checks the view against one run that adopts. */
static int check_adopting_run(struct db *db, struct db_statement *row, struct span run_name,
	enum view_kind kind, struct error *err)
{
	const struct span adopting = db_column_blob(row, 0);
	struct run_settings settings;
	char text[PLACE_BYTES];
	struct span viewed;
	enum view_kind place;
	if (run_settings_read(db, db_column_blob(row, 1), (uint64_t)db_column_i64(row, 2),
		    &settings, err) != 0)
		return -1;
	if (!find_place(&settings, adopting, text, &viewed, &place) || place != kind ||
		!span_equal(viewed, run_name))
		return 0;
	return error_set(err, ERROR_EXISTS,
		"The setting \"%s\" would keep a view where the trainer writes whose publishes the run '%.*s' adopts, and only the "
		"server may write to a view: change that run's settings \"adopt\" or \"adopt_prefix\" first.",
		view_key_setting(kind), (int)adopting.len, (const char *)adopting.data);
}

/* The view into which a trainer would write, below the prefix or in the folder that it makes there.
 * False when there is none. The run's name is borrowed from `text`. */
static bool find_place(const struct run_settings *settings, struct span run_name,
	char text[PLACE_BYTES], struct span *out_run, enum view_kind *out_kind)
{
	const char *const folder = adopt_layout_folder((enum adopt_convention)settings->adopt);
	const size_t len = run_settings_prefix(settings->adopt_prefix, run_name, text);
	if (settings->adopt == ADOPT_NONE)
		return false;
	if (view_key_place(span_of(text, len), out_run, out_kind))
		return true;
	ASSERT(len + strlen(folder) <= PLACE_BYTES);
	memcpy(text + len, folder, strlen(folder));
	return view_key_place(span_of(text, len + strlen(folder)), out_run, out_kind);
}

/* Checks what the run adopts now and did not adopt before. */
static int check_adopted(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err)
{
	const struct run_settings *const now = &run->settings;
	char text[PLACE_BYTES];
	struct span viewed;
	enum view_kind kind;
	struct run_row owner;
	if ((now->adopt == before->adopt && strcmp(now->adopt_prefix, before->adopt_prefix) == 0) ||
		!find_place(now, run_name, text, &viewed, &kind))
		return 0;
	const int found = run_row_find(db, run->bucket, viewed, &owner, err);
	if (found != 1 || !view_key_is_on(&owner.settings, kind))
		return found < 0 ? -1 : 0;
	return error_set(err, ERROR_EXISTS,
		"The trainer of the setting \"adopt\" writes where the setting \"%s\" of the run '%.*s' keeps a view, "
		"and only the server may write there: turn that off first (%s=false), or set another \"adopt_prefix\".",
		view_key_setting(kind), (int)viewed.len, (const char *)viewed.data,
		view_key_setting(kind));
}
