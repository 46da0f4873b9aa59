/* Finds on a helper what a publish must know about tensors: the schema of an anchor's shards,
 * whether it is the run's, and whether the claimed checkpoint digest follows from the tensor
 * digests. Each shard is read from a version with the declared digest, and the change demands that
 * digest again, so what was read here is what gets published. */
#include "storage/runs/step_check.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/buckets/bucket_row.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_row.h"
#include "storage/objects/shard_choice.h"
#include "storage/objects/shard_header.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/step_digest.h"
#include "storage/runs/step_publish.h"
#include "storage/versions/content_proof.h"
#include "weights/model/shard_rule.h"

enum { CHECK_ARENA_BYTES = 256 * 1024 };

static int find_run(struct db *db, const struct run_ref *run, uint64_t step,
	struct run_row *out_run, bool *out_needed, struct error *err);
static int prove_objects(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err);
static int prove_object(
	struct store *store, int64_t bucket, const struct step_object *object, struct error *err);
static int check_tensors(struct store *store, const struct run_row *run, struct step_message *step,
	struct step_part_set *parts, struct step_check *check, struct error *err);
static int load_schema(
	struct store *store, const struct run_row *run, struct schema **out, struct error *err);
static int read_anchor(struct store *store, int64_t bucket, const struct step_form *anchor,
	struct schema *schema, struct error *err);
static int choose_shards(struct store *store, int64_t bucket, const struct step_form *anchor,
	bool *out_is_shard, struct error *err);
static int add_shard(struct store *store, int64_t bucket, const struct step_object *declared,
	struct schema *schema, struct error *err);
static int find_object(struct store *store, int64_t bucket, const struct step_object *declared,
	struct arena *arena, struct object *out, struct error *err);
static int check_digests(
	const struct step_message *step, const struct step_check *check, struct error *err);

void step_check_run(struct store *store, const struct run_ref *run, struct step_message *step,
	struct step_part_set *parts, struct step_check *out)
{
	struct run_row row = {.id = 0};
	bool needed = false;
	ASSERT(out->schema == NULL && !out->failed);
	struct db *const db = store_reader_take(store, &out->error);
	out->failed = db == NULL || find_run(db, run, step->step, &row, &needed, &out->error) != 0;
	store_reader_give(store, db);
	out->run = row.id;
	if (needed && !out->failed)
		out->failed = step_give_digests(store, row.bucket, step, &out->error) != 0;
	if (needed && !out->failed)
		out->failed = prove_objects(store, row.bucket, step, &out->error) != 0;
	if (needed && !out->failed)
		out->failed = check_tensors(store, &row, step, parts, out, &out->error) != 0;
}

void step_check_release(struct step_check *check)
{
	schema_free(check->schema);
	check->schema = NULL;
}

/* *out_needed: the run exists and has no such step yet. Otherwise the change is decided without the
 * tensors. */
static int find_run(struct db *db, const struct run_ref *run, uint64_t step,
	struct run_row *out_run, bool *out_needed, struct error *err)
{
	struct error absent;
	struct step_row row;
	int64_t bucket;
	*out_needed = false;
	if (bucket_row_find(db, run->bucket, &bucket, &absent) != 0)
		return 0; /* the change finds out why */
	const int has_run = run_row_find(db, bucket, run->name, out_run, err);
	if (has_run != 1)
		return has_run;
	const int has_step = step_row_find(db, out_run->id, step, &row, err);
	*out_needed = has_step == 0;
	return has_step < 0 ? -1 : 0;
}

/* A step leads readers to bytes that this request does not send, so each of them is read, unless it
 * was read since the start. */
static int prove_objects(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err)
{
	for (size_t i = 0; i < step->form_count; i++)
		for (size_t k = 0; k < step->forms[i].object_count; k++)
			if (prove_object(store, bucket, &step->forms[i].objects[k], err) != 0)
				return -1;
	return 0;
}

/* Objects that are not there as declared are left for the change to judge. */
static int prove_object(
	struct store *store, int64_t bucket, const struct step_object *object, struct error *err)
{
	struct content_proof *proof = content_proof_new(store);
	struct error ignored = {0};
	struct version version;
	struct db *db = store_snapshot_take(store, err);
	int result = db == NULL ? -1 : 0;
	if (db != NULL && step_find_object(db, bucket, object, &version, &ignored) == 1)
		result = content_proof_add(proof, db, &version, err);
	if (db != NULL)
		store_snapshot_give(store, db);
	if (result == 0)
		result = content_proof_end(proof, object->key, err);
	content_proof_free(proof);
	return result;
}

static int check_tensors(struct store *store, const struct run_row *run, struct step_message *step,
	struct step_part_set *parts, struct step_check *check, struct error *err)
{
	const struct step_form *const anchor = step_message_form(step, STEP_ANCHOR);
	struct schema *spelled = anchor == NULL ? NULL : schema_new();
	int result = -1;
	if (run->has_schema && load_schema(store, run, &check->schema, err) != 0)
		goto out;
	if (anchor != NULL && read_anchor(store, run->bucket, anchor, spelled, err) != 0)
		goto out;
	if (anchor != NULL && check->schema != NULL &&
		schema_check(check->schema, spelled, err) != 0)
		goto out;
	if (check->schema == NULL) {
		check->schema = spelled;
		spelled = NULL;
	}
	result = 0;
	if (check->schema != NULL) {
		check->schema_digest = schema_digest(check->schema);
		result = parts == NULL ? 0 : step_part_set_fill(parts, check->schema, step, err);
		if (result == 0)
			result = check_digests(step, check, err);
	}
out:
	schema_free(spelled);
	return result;
}

static int load_schema(
	struct store *store, const struct run_row *run, struct schema **out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct buffer text;
	buffer_init(&text, 2 * SAFETENSORS_HEADER_MAX_BYTES);
	const int result = run_row_load_schema(db, run, &text, err);
	store_reader_give(store, db);
	if (result == 0)
		*out = schema_parse(buffer_span(&text), err);
	buffer_release(&text);
	return *out == NULL ? -1 : 0;
}

/* Malformed shards are invalid. Only bytes that cannot be read back are a fault of the store. */
static int read_anchor(struct store *store, int64_t bucket, const struct step_form *anchor,
	struct schema *schema, struct error *err)
{
	bool *const is_shard = memory_new_array(anchor->object_count + 1, sizeof(*is_shard));
	int result = choose_shards(store, bucket, anchor, is_shard, err);
	for (size_t i = 0; i < anchor->object_count && result == 0; i++) {
		const struct step_object *const object = &anchor->objects[i];
		if (is_shard[i] && add_shard(store, bucket, object, schema, err) != 0)
			result = error_wrap(err, "reading '%.*s' of the anchor",
				(int)object->name.len, (const char *)object->name.data);
	}
	free(is_shard);
	if (result != 0)
		return -1;
	schema_finish(schema);
	if (schema_count(schema) == 0)
		return error_set(err, ERROR_INCOMPLETE_ANCHOR,
			"The anchor has no tensors: it needs a .safetensors object with at least one.");
	return 0;
}

static int choose_shards(struct store *store, int64_t bucket, const struct step_form *anchor,
	bool *out_is_shard, struct error *err)
{
	struct arena *const arena = arena_new(CHECK_ARENA_BYTES);
	struct span *const names = memory_new_array(anchor->object_count + 1, sizeof(*names));
	struct object index;
	size_t at[2];
	for (size_t i = 0; i < anchor->object_count; i++)
		names[i] = anchor->objects[i].name;
	const bool has_index = shard_rule_find_index(names, anchor->object_count, at) == 1;
	int result = 0;
	if (has_index)
		result = find_object(store, bucket, &anchor->objects[at[0]], arena, &index, err);
	if (result == 0)
		result = shard_choice_mark(store, has_index ? &index : NULL, names,
			anchor->object_count, out_is_shard, err);
	free(names);
	arena_free(arena);
	return result;
}

static int add_shard(struct store *store, int64_t bucket, const struct step_object *declared,
	struct schema *schema, struct error *err)
{
	struct arena *const arena = arena_new(CHECK_ARENA_BYTES);
	struct object object;
	struct shard_header header = {.tensors = NULL};
	int result = -1;
	const char *const name = arena_text(arena, declared->name);
	if (find_object(store, bucket, declared, arena, &object, err) == 0 &&
		shard_header_read(store, &object, name, &header, err) == 0)
		result = schema_add(schema, header.tensors, err);
	shard_header_release(&header);
	arena_free(arena);
	return result;
}

static int find_object(struct store *store, int64_t bucket, const struct step_object *declared,
	struct arena *arena, struct object *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct version version;
	const int result = step_resolve_object(db, bucket, declared, &version, err);
	store_reader_give(store, db);
	return result != 0 ? -1 : object_find_sequence(store, version.sequence, arena, out, err);
}

static int check_digests(
	const struct step_message *step, const struct step_check *check, struct error *err)
{
	static const struct digest128 none;
	ASSERT(check->schema != NULL);
	if (!digest128_equal(&step->schema_digest, &none) &&
		!digest128_equal(&step->schema_digest, &check->schema_digest)) {
		char ours[DIGEST128_TEXT_BYTES];
		char theirs[DIGEST128_TEXT_BYTES];
		digest128_format(&check->schema_digest, ours);
		digest128_format(&step->schema_digest, theirs);
		return error_set(err, ERROR_SCHEMA_MISMATCH,
			"The step's schema digest is %s, but the run's is %s.", theirs, ours);
	}
	if (step->tensor_digests.len == 0)
		return 0;
	const size_t count = schema_count(check->schema);
	if (step->tensor_digests.len != count * sizeof(struct digest128))
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"The step has %zu tensor digests; the run's schema has %zu tensors.",
			step->tensor_digests.len / sizeof(struct digest128), count);
	const struct digest128 digest = schema_checkpoint_digest(
		check->schema, (const struct digest128 *)step->tensor_digests.data);
	if (digest128_equal(&digest, &step->digest))
		return 0;
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"The step's checkpoint digest does not follow from its tensor digests.");
}
