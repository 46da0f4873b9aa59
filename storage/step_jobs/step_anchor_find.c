/* Finds the files of any kept step's checkpoint, by step and path or by key: the published file,
 * the one that the server made or, before it is made, the facts in the manifest. */
#include "storage/step_jobs/step_anchor.h"

#include <string.h>

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/view_find.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/step_read.h"
#include "storage/step_jobs/step_worker.h"
#include "storage/step_jobs/view_job.h"

enum { MANIFEST_ARENA_BYTES = 32 * 1024 * 1024 };

static int find(struct db *db, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err);
static int find_file(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct object *out, struct error *err);
static int find_unmade(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct object *out, struct error *err);
static void set_etag(struct object *object);
static int find_version(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct version *out, struct error *err);

int run_find_anchor_file(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find(db, ref, arena, out, out_anchor, err);
	store_snapshot_give(store, db);
	return result;
}

int run_find_view(struct store *store, struct bucket_ref bucket, struct span key,
	struct run_anchor *out, struct error *err)
{
	struct view_wanted wanted = {0};
	struct span run;
	int64_t bucket_id;
	*out = (struct run_anchor){
		.is_view = view_key_parse(key, &run, &wanted.kind, &wanted.number)};
	if (!out->is_view)
		return 0;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = bucket_row_find(db, bucket, &bucket_id, err);
	if (found == 0)
		found = view_find(db, bucket_id, key, &wanted, err);
	store_reader_give(store, db);
	if (found == 1)
		*out = (struct run_anchor){.run = wanted.run,
			.id = wanted.step,
			.step = wanted.number,
			.is_view = true,
			.view = wanted.kind};
	return found;
}

int run_find_anchor_key(struct store *store, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err)
{
	struct run_file_ref file = {.run.bucket = ref->bucket};
	ASSERT(ref->version.kind == VERSION_REF_CURRENT && ref->judged_version == 0);
	if (!step_anchor_key_parse(ref->key, &file.run.name, &file.step, &file.name)) {
		const int found = run_find_view(store, ref->bucket, ref->key, out_anchor, err);
		*out = (struct object){0};
		return found == 0 ? object_no_key(ref->key, err)
			: found == 1
			? error_set(err, ERROR_NOT_READY, "The view is still being made.")
			: -1;
	}
	const int result = run_find_anchor_file(store, &file, arena, out, out_anchor, err);
	if (result != 0 &&
		(err->kind == ERROR_NO_RUN || err->kind == ERROR_NO_STEP ||
			err->kind == ERROR_COLLECTED || err->kind == ERROR_STEP_FAILED))
		return object_no_key(ref->key, err);
	if (result == 0)
		out->key = arena_copy(arena, ref->key);
	return result;
}

int run_ask_anchor(struct store *store, const struct run_anchor *anchor, struct error *err)
{
	const struct view_wanted view = {.step = anchor->id,
		.kind = (enum view_kind)anchor->view,
		.run = anchor->run,
		.number = anchor->step};
	const struct step_job made = {.kind = &step_anchor_job,
		.run = anchor->run,
		.id = anchor->id,
		.step = anchor->step};
	const struct step_job job = anchor->is_view ? view_job_of(&view) : made;
	return step_worker_ask(store_parts(store)->step_worker, &job, err);
}

struct span run_anchors_topic(void)
{
	return step_worker_topic();
}

static int find(struct db *db, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err)
{
	struct run_row run;
	struct step_row row;
	uint64_t nearest;
	if (run_row_need(db, &ref->run, &run, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, ref->step, &row, err);
	if (found == 0)
		return step_error_missing(ref->step, err);
	if (found == 1 && row.state != STEP_KEPT)
		return step_error_collected(db, run.id, ref->step, &nearest, err);
	*out_anchor = (struct run_anchor){.run = run.id, .id = row.id, .step = ref->step};
	return found == 1 ? find_file(db, &row, ref->name, arena, out, err) : -1;
}

static int find_file(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct object *out, struct error *err)
{
	struct version version;
	if (row->verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			"The proof of step %llu failed: no anchor is made of it.",
			(unsigned long long)row->step);
	if (!row->has_form[STEP_ANCHOR] && !row->has_made)
		return find_unmade(db, row, file, arena, out, err);
	const int found = find_version(db, row, file, arena, &version, err);
	if (found != 1)
		return found < 0 ? -1 : object_no_key(file, err);
	if (object_of_version(&version, arena, out, err) != 0)
		return -1;
	out->is_current = true;
	if (out->has_digest)
		set_etag(out);
	return 0;
}

/* Gives the facts of a file whose bytes are not made, from the manifest. not_ready when that lists
 * no files. */
static int find_unmade(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct object *out, struct error *err)
{
	struct arena *const scratch = arena_new(MANIFEST_ARENA_BYTES);
	struct step_message manifest;
	int result = step_read(db, row, false, scratch, &manifest, err);
	*out = (struct object){
		.key = arena_copy(arena, file), .has_digest = true, .modified_ms = row->created_ms};
	if (result == 0 && manifest.file_count == 0)
		result = error_set(err, ERROR_NOT_READY, "The file is not made yet.");
	else if (result == 0)
		result = 1;
	for (size_t i = 0; result == 1 && i < manifest.file_count; i++) {
		if (!span_equal(manifest.files[i].path, file))
			continue;
		out->size = manifest.files[i].size;
		out->digest = manifest.files[i].digest;
		result = 0;
	}
	arena_free(scratch);
	set_etag(out);
	return result == 1 ? object_no_key(file, err) : result;
}

static void set_etag(struct object *object)
{
	encode_hex(span_of(object->digest.bytes, sizeof(object->digest.bytes)), object->etag);
	memcpy(object->etag + 2 * sizeof(object->digest.bytes), "-d", sizeof("-d"));
}

/* 1 found; 0: the step has no such file in its anchor; -1. */
static int find_version(struct db *db, const struct step_row *row, struct span file,
	struct arena *arena, struct version *out, struct error *err)
{
	int64_t sequence = 0;
	const enum step_pin_form form =
		row->has_form[STEP_ANCHOR] ? STEP_PIN_ANCHOR : STEP_PIN_MADE;
	int found = step_pin_find(db, row->id, form, file, &sequence, err);
	if (found == 1)
		found = version_find_sequence(db, sequence, arena, out, err);
	return found;
}
