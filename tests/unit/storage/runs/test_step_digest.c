/* Objects from multipart uploads: they have no digest until a step needs it. */
#include "tests/unit/unit.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "storage/core/committer.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_read.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { VALUES = 1500000 };

static struct store_fixture fixture;
static uint8_t *shard;
static size_t shard_len;

static void make_shard(void)
{
	char json[128];
	const int json_len = snprintf(json, sizeof(json),
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", VALUES,
		VALUES);
	const uint64_t le = htole64((uint64_t)json_len);
	shard = fixture_noise(8 + (size_t)json_len + VALUES, 3);
	shard_len = 8 + (size_t)json_len + VALUES;
	memcpy(shard, &le, 8);
	memcpy(shard + 8, json, (size_t)json_len);
}

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	make_shard();
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "shard", span_of(shard, shard_len), &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(shard);
}

/* Puts the same bytes again, under the same key, in a version without a digest. */
static int apply_forget(struct change *change, struct db *db, struct error *err)
{
	struct arena *const arena = arena_new(100000);
	struct version version;
	struct version twin;
	(void)change;
	ck_assert_int_eq(version_find_current(db, 1, span_text("shard"), arena, &version, err), 1);
	ck_assert_int_eq(version.kind, VERSION_SINGLE);
	twin = version;
	twin.has_digest = false;
	twin.has_file_hash = false;
	random_bytes(twin.id, VERSION_ID_BYTES);
	const int result = part_set_share(db, version.part_set, err) != 0
		? -1
		: version_push(db, BUCKET_UNVERSIONED, &version, &twin, err);
	arena_free(arena);
	return result;
}

static struct object forget_digest(void)
{
	struct error err = {0};
	struct object object;
	struct change change = {.apply = apply_forget};
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "shard", &object, &err), 0);
	ck_assert(!object.has_digest && !object.has_file_hash);
	return object;
}

static struct step_object declared;

static struct step_message make_step(void)
{
	struct step_message step = {
		.epoch = 1, .digest = xxh3_128(span_text("checkpoint")), .form_count = 1};
	step.files = arena_take(fixture.arena, sizeof(*step.files));
	step.files[0] = (struct step_file){
		span_text("model.safetensors"), shard_len, xxh3_128(span_text("file"))};
	step.file_count = 1;
	declared = (struct step_object){.name = span_text("model.safetensors"),
		.key = span_text("shard"),
		.size = shard_len,
		.digest = xxh3_128(span_of(shard, shard_len))};
	step.forms[0] = (struct step_form){.kind = STEP_ANCHOR,
		.format = span_text("full"),
		.objects = &declared,
		.object_count = 1};
	return step;
}

static int publish(const struct step_message *step, struct error *err)
{
	return fixture_call(run_publish_call(fixture.store, &run_fixture_ref, step), err);
}

START_TEST(an_object_without_a_digest_is_read_once_and_published)
{
	struct error err = {0};
	struct object object = forget_digest();
	const struct step_message step = make_step();
	const struct digest128 right = declared.digest;
	declared.digest = xxh3_128(span_text("other bytes"));
	ck_assert_int_eq(publish(&step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	ck_assert_int_eq(
		object_find_sequence(fixture.store, object.sequence, fixture.arena, &object, &err),
		0);
	/* the next try does not need to read the object */
	ck_assert(object.has_digest && digest128_equal(&object.digest, &right));
	declared.digest = right;
	ck_assert_msg(publish(&step, &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "shard", NULL, &err), 0);
	/* invariant 6 */
	ck_assert_int_eq(
		object_find_sequence(fixture.store, object.sequence, fixture.arena, &object, &err),
		0);
	ck_assert(!object.is_current);
}
END_TEST

/* Like an upload of one part: the digest is unknown. */
static struct step_object upload(const char *name, const char *key, struct span bytes)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_fault fault;
	struct upload_result result;
	struct uploaded_part part;
	struct upload_listed_part listed = {.number = 1};
	struct upload_create_params create = {
		.bucket = fixture_bucket("bucket"), .key = span_text(key)};
	struct upload_complete_params complete = {.parts = &listed, .part_count = 1};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	ck_assert_int_eq(fixture_upload_put(fixture.store, &ref, 1, bytes, NULL, &part, &err), 0);
	memcpy(listed.etag, part.etag, sizeof(part.etag));
	complete.ref = ref;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &complete, &result, &fault, &err), 0);
	return (struct step_object){.name = span_text(name),
		.key = span_text(key),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
}

START_TEST(each_object_of_each_form_gets_its_digest)
{
	struct error err = {0};
	const struct span bytes = span_of(shard, shard_len);
	struct step_object anchor[2] = {upload("model.safetensors", "anchor", bytes),
		upload("config.json", "config", span_text("{}"))};
	struct step_object delta = upload("delta.safetensors", "delta", span_text("some bytes"));
	struct step_message step = make_step();
	ck_assert_int_eq(publish(&step, &err), 0);
	step.step = 1;
	step.has_base = true;
	step.base_digest = step.digest;
	step.forms[0].objects = anchor;
	step.forms[0].object_count = 2;
	step.forms[1] = (struct step_form){.kind = STEP_DELTA,
		.format = span_text("ulp-class"),
		.objects = &delta,
		.object_count = 1};
	step.form_count = 2;
	ck_assert_msg(publish(&step, &err) == 0, "%s", err.text);
}
END_TEST

START_TEST(bytes_that_cannot_be_read_are_the_stores_fault)
{
	struct error err = {0};
	const struct step_message step = make_step();
	const struct object object = forget_digest();
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE segments SET bytes = bytes + 1", &err), 0);
	ck_assert_int_eq(publish(&step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	(void)object;
}
END_TEST

START_TEST(a_delete_marker_is_no_object_for_a_step)
{
	struct error err = {0};
	struct object object;
	const struct step_message step = make_step();
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "shard", &object, &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "shard", NULL, &err), 0);
	ck_assert_int_eq(publish(&step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	char id[2 * VERSION_ID_BYTES + 1];
	for (size_t i = 0; i < VERSION_ID_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", object.version[i]);
	declared.version = span_text(id); /* the older version is an object */
	ck_assert_msg(publish(&step, &err) == 0, "%s", err.text);
	struct object_delete_item item = {.key = span_text("shard"), .ref.kind = VERSION_REF_NULL};
	ck_assert_int_eq(fixture_delete_items(fixture.store, "bucket", &item, 1, &err), 0);
	ck_assert_int_eq(
		object_find_sequence(fixture.store, object.sequence, fixture.arena, &object, &err),
		0);
	const struct version_ref null = {.kind = VERSION_REF_NULL};
	ck_assert_int_eq(object_find(fixture.store,
				 &(struct object_ref){.bucket = fixture_bucket("bucket"),
					 .key = span_text("shard"),
					 .version = null},
				 fixture.arena, &object, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_VERSION);
}
END_TEST

Suite *test_step_digest_suite(void);
Suite *test_step_digest_suite(void)
{
	Suite *const suite = suite_create("step_digest");
	TCase *const tests = tcase_create("step_digest");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, an_object_without_a_digest_is_read_once_and_published);
	tcase_add_test(tests, each_object_of_each_form_gets_its_digest);
	tcase_add_test(tests, bytes_that_cannot_be_read_are_the_stores_fault);
	tcase_add_test(tests, a_delete_marker_is_no_object_for_a_step);
	suite_add_tcase(suite, tests);
	return suite;
}
