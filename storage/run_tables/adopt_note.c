#include "storage/run_tables/adopt_note.h"

#include "base/encode.h"
#include "storage/buckets/bucket.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/run_settings.h"

static const char SQL_NOTE_RUNS[] =
	"SELECT id, name, settings, keep_steps FROM runs WHERE bucket = ?1 AND adopts = 1 ORDER BY id LIMIT 16";

struct found {
	int64_t run;
	enum adopt_convention convention;
	struct adopt_mark mark;
};

static int find_runs(struct db *db, const struct adopt_object *object,
	struct found found[ADOPTING_RUNS_MAX], size_t *out_count, struct error *err);
static int note_publish(struct db *db, const struct adopt_object *object, const struct found *found,
	struct error *err);

int adopt_note(struct db *db, const struct adopt_object *object, bool *out_noted, struct error *err)
{
	struct found found[ADOPTING_RUNS_MAX];
	size_t count = 0;
	if (find_runs(db, object, found, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (note_publish(db, object, &found[i], err) != 0)
			return -1;
	*out_noted = count > 0;
	return 0;
}

/* Finds the runs in which the key completes a publish. */
static int find_runs(struct db *db, const struct adopt_object *object,
	struct found found[ADOPTING_RUNS_MAX], size_t *out_count, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_NOTE_RUNS, err, db_i64(object->bucket));
	int got = -1;
	*out_count = 0;
	while (*out_count < ADOPTING_RUNS_MAX && (got = db_step(statement, err)) == 1) {
		struct found *const next = &found[*out_count];
		struct run_settings settings;
		char prefix[2 * RUN_PREFIX_MAX_BYTES];
		if (run_settings_read(db, db_column_blob(statement, 2),
			    (uint64_t)db_column_i64(statement, 3), &settings, err) != 0) {
			got = -1;
			break;
		}
		const size_t len = run_settings_prefix(
			settings.adopt_prefix, db_column_blob(statement, 1), prefix);
		ASSERT(len <= sizeof(prefix));
		next->run = db_column_i64(statement, 0);
		next->convention = (enum adopt_convention)settings.adopt;
		*out_count += adopt_layout_match(
			next->convention, span_of(prefix, len), object->key, &next->mark);
	}
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

/* Each content of a pointer is a publish of its own, so the id of the object's version is its
 * identity. */
static int note_publish(struct db *db, const struct adopt_object *object, const struct found *found,
	struct error *err)
{
	char id[2 * VERSION_ID_BYTES + 1];
	ASSERT(object->version_id.len == VERSION_ID_BYTES);
	encode_hex(object->version_id, id);
	const struct adoption adoption = {
		.run = found->run,
		.convention = found->convention,
		.identity = found->mark.is_pointer ? span_text(id) : found->mark.identity,
		.objects = found->mark.objects,
	};
	return adopt_row_note(db, &adoption, object->modified_ms, err);
}
