/* Kept steps: the manifest proves itself and parses, each object that it names is there under the
 * version that it names, and the step before has the digest that it was made against. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "storage/run_tables/step_row.h"
#include "storage/versions/version.h"
#include "wire/step_message.h"

enum { ARENA_BYTES = 4 * STEP_MESSAGE_MAX_BYTES };

static const char SQL_NEXT[] =
	"SELECT s.id, s.run, r.bucket, s.step FROM steps s JOIN runs r ON r.id = s.run"
	" WHERE s.state = 0 AND r.name IS NOT NULL AND s.id > ?1 ORDER BY s.id LIMIT 1";

struct step_look {
	struct db *db;
	struct arena *arena;
	int64_t id;
	int64_t run;
	int64_t bucket;
	uint64_t step;
};

static int next_step(struct fsck *fsck, struct step_look *look, struct error *err);
static int check_step(struct fsck *fsck, struct step_look *look, struct error *err);
static int check_manifest(const struct step_look *look, struct error *err);
static int check_form(
	const struct step_look *look, const struct step_form *form, struct error *err);
static int check_object(
	const struct step_look *look, const struct step_object *object, struct error *err);
static int check_base(
	const struct step_look *look, const struct step_message *step, struct error *err);

int fsck_steps(struct fsck *fsck, struct error *err)
{
	struct step_look look = {.db = fsck->db, .id = INT64_MIN};
	int got = 1;
	while (got == 1) {
		if (db_snapshot_begin(fsck->db, err) != 0)
			return -1;
		got = next_step(fsck, &look, err);
		if (got == 1 && check_step(fsck, &look, err) != 0)
			got = -1;
		else if (got < 0)
			got = fsck_tell_failure(fsck, FINDING_TABLE, "table steps", err);
		db_snapshot_end(fsck->db);
	}
	return got;
}

static int next_step(struct fsck *fsck, struct step_look *look, struct error *err)
{
	struct db_statement *row = db_query(fsck->db, SQL_NEXT, err, db_i64(look->id));
	const int got = db_step(row, err);
	if (got == 1) {
		look->id = db_column_i64(row, 0);
		look->run = db_column_i64(row, 1);
		look->bucket = db_column_i64(row, 2);
		look->step = (uint64_t)db_column_i64(row, 3);
	}
	db_reset(row);
	return got;
}

static int check_step(struct fsck *fsck, struct step_look *look, struct error *err)
{
	char subject[FINDING_SUBJECT_BYTES];
	fsck->report->steps++;
	look->arena = arena_new(ARENA_BYTES);
	const int result = check_manifest(look, err);
	arena_free(look->arena);
	if (result == 0)
		return 0;
	snprintf(subject, sizeof(subject), "step %" PRIu64, look->step);
	reach_add_step(fsck->reach, look->id);
	return fsck_tell_failure(fsck, FINDING_STEP, subject, err);
}

static int check_manifest(const struct step_look *look, struct error *err)
{
	struct span manifest;
	struct step_message step;
	if (step_row_load_manifest(look->db, look->id, look->arena, &manifest, NULL, err) != 0)
		return -1;
	struct error why = {0};
	if (step_message_parse(manifest, look->arena, &step, &why) != 0)
		return error_set(err, ERROR_CORRUPT, "Its manifest cannot be read: %s", why.text);
	for (size_t i = 0; i < step.form_count; i++)
		if (check_form(look, &step.forms[i], err) != 0)
			return -1;
	return step.has_base ? check_base(look, &step, err) : 0;
}

static int check_form(const struct step_look *look, const struct step_form *form, struct error *err)
{
	for (size_t i = 0; i < form->object_count; i++)
		if (check_object(look, &form->objects[i], err) != 0)
			return -1;
	return 0;
}

static int check_object(
	const struct step_look *look, const struct step_object *object, struct error *err)
{
	uint8_t id[VERSION_ID_BYTES];
	struct version version;
	const struct object_place place = {.bucket = look->bucket, .key = object->key};
	const bool is_id = object->version.len == 2 * VERSION_ID_BYTES &&
		decode_hex(object->version, id, VERSION_ID_BYTES);
	const int found = is_id ? version_find_id(look->db, place, id, NULL, &version, err) : 0;
	if (found < 0)
		return -1;
	if (found == 0)
		return error_set(err, ERROR_CORRUPT,
			"Its object '%.*s' is not in the catalog under the version that it names.",
			(int)span_slice(object->name, 0, 200).len, (const char *)object->name.data);
	return version.size == object->size
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "Its object '%.*s' has %" PRIu64 " bytes, and was published with %" PRIu64
			  ".",
			  (int)span_slice(object->name, 0, 200).len,
			  (const char *)object->name.data, version.size, object->size);
}

/* The step before stays as a row, also when it was removed; a fork's first steps lie in another
 * run. */
static int check_base(
	const struct step_look *look, const struct step_message *step, struct error *err)
{
	struct step_row base;
	const int found = step_row_find(look->db, look->run, step->base_step, &base, err);
	if (found <= 0)
		return found;
	return memcmp(base.digest.bytes, step->base_digest.bytes, sizeof(base.digest.bytes)) == 0
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "It was made against another step %" PRIu64 " than the one that is here.",
			  step->base_step);
}
