/* The objects of a fold, for links of paths and one by one. A row of `fold_objects` keeps its
 * version (invariant 6), so a version that is missing means that the catalog is damaged. */
#include "storage/runs/fold_form.h"

#include "base/encode.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/runs/fold_object.h"
#include "storage/runs/run.h"

enum { URL_MAX_BYTES = 4 * STEP_NAME_MAX_BYTES };

static int read_objects(struct db *db, const struct fold_row *fold, struct db_statement *scan,
	struct arena *arena, struct step_form *out, struct error *err);
static int read_object(struct db *db, const struct fold_row *fold, struct db_statement *scan,
	struct arena *arena, struct step_object *out, struct error *err);
static int find_object(struct db *db, const struct run_fold_ref *ref, struct arena *arena,
	struct version *out, struct error *err);

int fold_form_read(
	struct db *db, int64_t id, struct arena *arena, struct step_form *out, struct error *err)
{
	struct fold_row fold;
	const int found = fold_row_find_id(db, id, &fold, err);
	if (found != 1)
		return found < 0 ? -1
				 : error_set(err, ERROR_CORRUPT, "%s: the fold %lld is gone.",
					   db_path(db), (long long)id);
	size_t count;
	if (fold_object_count(db, id, &count, err) != 0)
		return -1;
	*out = (struct step_form){
		.kind = STEP_DELTA, .format = arena_copy(arena, span_text(fold.format))};
	out->objects = arena_take_array(arena, count + 1, sizeof(*out->objects));
	if (out->objects == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a fold.");
	struct db_statement *const scan = fold_object_scan(db, id, err);
	const int result = scan == NULL ? -1 : read_objects(db, &fold, scan, arena, out, err);
	db_reset(scan);
	ASSERT(out->object_count <= count);
	return result;
}

int run_find_fold_object(struct store *store, const struct run_fold_ref *ref, struct arena *arena,
	struct object *out, struct error *err)
{
	struct version version;
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find_object(db, ref, arena, &version, err);
	store_snapshot_give(store, db);
	return result == 0 ? object_of_version(&version, arena, out, err) : -1;
}

struct span run_folds_topic(struct span run, struct arena *arena)
{
	return span_text(arena_format(arena, "%.*s/folds", (int)run.len, (const char *)run.data));
}

static int read_objects(struct db *db, const struct fold_row *fold, struct db_statement *scan,
	struct arena *arena, struct step_form *out, struct error *err)
{
	int got;
	while ((got = db_step(scan, err)) == 1 && out->object_count < STEP_OBJECTS_MAX &&
		!arena_overflowed(arena)) {
		if (read_object(db, fold, scan, arena, &out->objects[out->object_count], err) != 0)
			return -1;
		out->object_count++;
	}
	if (got >= 0 && arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a fold.");
	return got < 0 ? -1 : 0;
}

static int read_object(struct db *db, const struct fold_row *fold, struct db_statement *scan,
	struct arena *arena, struct step_object *out, struct error *err)
{
	const struct span name = db_column_blob(scan, 0);
	const int64_t sequence = db_column_i64(scan, 1);
	struct version version;
	struct buffer url;
	char id[VERSION_TEXT_BYTES];
	const int found = version_find_sequence(db, sequence, arena, &version, err);
	if (found < 0)
		return -1;
	if (found == 0 || !version.has_digest) /* invariant 6 */
		return error_set(err, ERROR_CORRUPT,
			"%s: a fold's object has lost its version %lld.", db_path(db),
			(long long)sequence);
	encode_hex(span_of(version.id, sizeof(version.id)), id);
	buffer_init(&url, URL_MAX_BYTES);
	buffer_format(&url, "folds/%llu-%llu/objects/", (unsigned long long)fold->from,
		(unsigned long long)fold->to);
	encode_percent(name, true, &url);
	*out = (struct step_object){.name = arena_copy(arena, name),
		.key = version.key,
		.version = arena_copy(arena, span_text(id)),
		.size = version.size,
		.digest = version.digest,
		.url = arena_copy(arena, buffer_span(&url))};
	buffer_release(&url);
	return 0;
}

static int find_object(struct db *db, const struct run_fold_ref *ref, struct arena *arena,
	struct version *out, struct error *err)
{
	struct run_row run;
	struct fold_row fold;
	int64_t sequence = 0;
	if (run_row_need(db, &ref->run, &run, err) != 0)
		return -1;
	int found = fold_row_find(db, run.id, ref->from, ref->to, &fold, err);
	if (found == 1)
		found = fold.state == FOLD_MADE
			? fold_object_find(db, fold.id, ref->name, &sequence, err)
			: 0;
	if (found == 1)
		found = version_find_sequence(db, sequence, arena, out, err);
	if (found == 0)
		return object_no_key(ref->name, err);
	return found == 1 ? 0 : -1;
}
