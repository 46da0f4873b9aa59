#include "storage/runs/view_switch.h"

#include "storage/run_tables/view_key.h"
#include "storage/versions/version.h"

enum { KEYS_LOOKED_AT = 10000 };

/* Forms of views have the numbers from 3 on (step_pin.h). */
static const char SQL_VIEW_OURS[] = "SELECT 1 FROM step_objects WHERE version = ?1 AND form >= 3";

static int switch_on(struct db *db, const struct run_row *run, struct span run_name,
	enum view_kind kind, struct error *err);
static int check_free(struct db *db, int64_t bucket, struct span prefix, struct error *err);
static int check_ours(struct db *db, int64_t bucket, struct span key, struct error *err);

int view_want(struct db *db, const struct run_settings *settings, int64_t step, struct error *err)
{
	for (int kind = 0; kind < VIEW_KINDS; kind++)
		if (view_key_is_on(settings, (enum view_kind)kind) &&
			view_row_want(db, step, (enum view_kind)kind, err) != 0)
			return -1;
	return 0;
}

int view_switch(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err)
{
	for (int i = 0; i < VIEW_KINDS; i++) {
		const enum view_kind kind = (enum view_kind)i;
		const bool is = view_key_is_on(&run->settings, kind);
		if (is == view_key_is_on(before, kind))
			continue;
		if ((is ? switch_on(db, run, run_name, kind, err)
			: view_row_forget_wanted(db, run->id, kind, err)) != 0)
			return -1;
	}
	return 0;
}

static int switch_on(struct db *db, const struct run_row *run, struct span run_name,
	enum view_kind kind, struct error *err)
{
	char prefix[VIEW_KEY_BYTES];
	if (check_free(db, run->bucket, span_of(prefix, view_key_prefix(kind, run_name, prefix)),
		    err) != 0)
		return -1;
	return view_row_want_all(db, run->id, kind, err);
}

/* Objects from an earlier time when the view was on may stay. */
static int check_free(struct db *db, int64_t bucket, struct span prefix, struct error *err)
{
	ASSERT(prefix.len > 0);
	struct db_statement *const scan = version_scan(db, bucket, prefix, err);
	int got;
	for (unsigned keys = 0; (got = db_step(scan, err)) == 1; keys++) {
		const struct span key = version_scan_key(scan);
		if (!span_starts(key, prefix))
			break;
		if (keys == KEYS_LOOKED_AT)
			got = error_set(err, ERROR_EXISTS,
				"There are over %d objects below '%.*s': remove them first.",
				KEYS_LOOKED_AT, (int)prefix.len, (const char *)prefix.data);
		if (got < 0 || check_ours(db, bucket, key, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static int check_ours(struct db *db, int64_t bucket, struct span key, struct error *err)
{
	struct version version;
	const int found = version_find_current(db, bucket, key, NULL, &version, err);
	if (found != 1)
		return found;
	const int got = db_exists(db, SQL_VIEW_OURS, err, db_i64(version.sequence));
	if (got == 0)
		return error_set(err, ERROR_EXISTS,
			"The object '%.*s' lies in the place of the view: remove it first.",
			(int)span_slice(key, 0, 200).len, (const char *)key.data);
	return got < 0 ? -1 : 0;
}
