#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/little_endian.h"
#include "storage/derive/derive_worker.h"
#include "storage/objects/object_part.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version.h"
#include "storage/versions/version_list.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum {
	LARGE = 200000,
	STEPS = 9,
	PATIENCE_MS = 120000,
	PART_BYTES = 5 * 1024 * 1024,
	LONG = 4 * 1024 * 1024
};

static struct store_fixture fixture;
static struct derived_checkpoint steps[STEPS];

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	fixture.derives = true;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	for (unsigned i = 0; i < STEPS; i++)
		derived_checkpoint_make(&steps[i], LARGE, i);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < STEPS; i++)
		derived_checkpoint_release(&steps[i]);
	store_fixture_close(&fixture);
}

static void wait_until_settled(void)
{
	const struct clock_source *const clock = clock_system();
	const int64_t until = clock->monotonic_ms(clock) + PATIENCE_MS;
	while (fixture_count(fixture.store, "SELECT count(*) FROM derive_waiting") > 0) {
		ck_assert_int_lt(clock->monotonic_ms(clock), until);
		usleep(20000);
	}
}

static const char *key_of(unsigned step)
{
	return arena_format(fixture.arena, "run/step_%06u/model.safetensors", step);
}

static void put_series(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		derived_fixture_put(&fixture, "b", key_of(i), &steps[i]);
	wait_until_settled();
}

static int64_t derived(void)
{
	return fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 3");
}

static void check_holds(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		ck_assert(fixture_holds(&fixture, "b", key_of(i), buffer_span(&steps[i].bytes)));
}

START_TEST(test_a_series)
{
	put_series(0, STEPS);
	ck_assert_int_eq(derived(), STEPS - 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT max(depth) FROM derivations"), 2);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 0);
	fixture_sweep(fixture.store);
	const int64_t bytes = fixture_count(fixture.store, "SELECT sum(bytes) FROM segments");
	ck_assert_msg(bytes < (int64_t)steps[0].bytes.len * 3 / 2,
		"%d checkpoints of %zu bytes take %lld", STEPS, steps[0].bytes.len,
		(long long)bytes);
	check_holds(0, STEPS);
	store_fixture_reopen(&fixture);
	check_holds(0, STEPS);
}
END_TEST

/* Not even until the next start. */
START_TEST(test_local_files_go_with_the_work)
{
	struct error err = {0};
	char **names;
	size_t count;
	put_series(0, 3);
	ck_assert_int_eq(derived(), 2);
	store_fixture_stop(&fixture);
	char *const scratch = store_fixture_path(&fixture, "scratch");
	ck_assert_msg(file_list(scratch, &names, &count, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(count, 0);
	file_names_free(names, count);
	free(scratch);
	store_fixture_start(&fixture);
}
END_TEST

START_TEST(test_it_goes_on_after_a_restart)
{
	put_series(0, 3);
	fixture.derives = false;
	store_fixture_reopen(&fixture);
	for (unsigned i = 3; i < 6; i++)
		derived_fixture_put(&fixture, "b", key_of(i), &steps[i]); /* not noted */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_waiting"), 0);
	fixture.derives = true;
	store_fixture_reopen(&fixture);
	put_series(6, STEPS);
	ck_assert_int_eq(derived(), 2 + STEPS - 6);
	check_holds(0, STEPS);
}
END_TEST

START_TEST(test_what_waits_survives_a_restart)
{
	for (unsigned i = 0; i < 4; i++)
		derived_fixture_put(&fixture, "b", key_of(i), &steps[i]);
	store_fixture_reopen(&fixture);
	wait_until_settled();
	ck_assert_int_eq(derived(), 3);
	check_holds(0, 4);
}
END_TEST

START_TEST(test_deleting_in_any_order)
{
	struct error err = {0};
	put_series(0, 6);
	/* the root */
	ck_assert_int_eq(fixture_delete(fixture.store, "b", key_of(0), NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", key_of(1), NULL, &err), 0);
	fixture_sweep(fixture.store);
	check_holds(2, 6);
	put_series(6, STEPS);
	check_holds(2, STEPS);
	for (unsigned i = 2; i < STEPS; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "b", key_of(i), NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM segments"), 0);
	put_series(0, 2); /* the series begins again */
	ck_assert_int_eq(derived(), 1);
	check_holds(0, 2);
}
END_TEST

START_TEST(test_versions_of_one_key)
{
	struct error err = {0};
	struct version_list list;
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "b", &edit, &err), 0);
	for (unsigned i = 0; i < 4; i++)
		derived_fixture_put(&fixture, "b", "m.safetensors", &steps[i]);
	wait_until_settled();
	ck_assert_int_eq(derived(), 3);
	const struct version_list_params params = {.bucket = fixture_bucket("b"), .limit = 10};
	ck_assert_int_eq(version_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert_uint_eq(list.entry_count, 4);
	for (unsigned i = 0; i < 4; i++) {
		struct object_ref ref = {
			.bucket = fixture_bucket("b"), .key = span_text("m.safetensors")};
		struct object object;
		struct buffer read;
		buffer_init(&read, steps[3 - i].bytes.len + 100000);
		ck_assert(version_ref_parse(span_text(list.entries[i].version), &ref.version));
		ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), 0);
		ck_assert_int_eq(
			fixture_read(fixture.store, &object, 0, object.size, &read, &err), 0);
		ck_assert(span_equal(buffer_span(&read), buffer_span(&steps[3 - i].bytes)));
		buffer_release(&read);
	}
}
END_TEST

START_TEST(test_overwriting_without_versions_leaves_nothing)
{
	for (unsigned i = 0; i < 4; i++) {
		derived_fixture_put(&fixture, "b", "m.safetensors", &steps[i]);
		wait_until_settled();
	}
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 1);
	ck_assert(fixture_holds(&fixture, "b", "m.safetensors", buffer_span(&steps[3].bytes)));
}
END_TEST

START_TEST(test_what_is_left_alone)
{
	struct error err = {0};
	struct derived_checkpoint other;
	uint8_t *const noise = fixture_noise(200000, 4);
	derived_checkpoint_make(&other, LARGE + 1, 1);
	derived_fixture_put(&fixture, "b", key_of(0), &steps[0]);
	/* another schema */
	derived_fixture_put(&fixture, "b", key_of(1), &other);
	derived_fixture_put(&fixture, "b", "run/step_000002/other.safetensors", &steps[2]);
	derived_fixture_put(&fixture, "b", "run/step_000002/model.bin", &steps[2]);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", key_of(3), span_of(noise, 200000), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "b", key_of(4), span_of(noise, 100), &err), 0);
	wait_until_settled();
	ck_assert_int_eq(derived(), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_series"), 3);
	derived_checkpoint_release(&other);
	free(noise);
}
END_TEST

/* The checkpoint with metadata in its header. */
static void put_marked(
	const char *key, const struct derived_checkpoint *checkpoint, const char *metadata)
{
	struct error err = {0};
	struct buffer bytes;
	const size_t len = strlen(metadata) + strlen("\"__metadata__\":{},");
	uint8_t length[8];
	buffer_init(&bytes, checkpoint->bytes.len + 1000);
	little_endian_put(length, checkpoint->header - 8 + len, 8);
	buffer_add(&bytes, length, 8);
	buffer_format(&bytes, "{\"__metadata__\":{%s},", metadata);
	buffer_add_span(
		&bytes, span_slice(buffer_span(&checkpoint->bytes), 9, checkpoint->bytes.len));
	ck_assert_int_eq(fixture_put(fixture.store, "b", key, buffer_span(&bytes), &err), 0);
	buffer_release(&bytes);
}

/* They are safetensors files too, and are read once. */
START_TEST(test_deltas_of_checkpoints_stay_plain)
{
	static const char *const marks[] = {
		"\"delta_encoding\":\"x\"", "\"format\":\"sparse_weight_patch\""};
	for (unsigned i = 0; i < 4; i++)
		put_marked(key_of(i), &steps[i], marks[i / 2]);
	wait_until_settled();
	ck_assert_int_eq(derived(), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_series"), 0);
	for (unsigned i = 0; i < 3; i++)
		put_marked(key_of(i), &steps[i], "\"format\":\"pt\"");
	wait_until_settled();
	ck_assert_int_eq(derived(), 2);
}
END_TEST

/* Nothing takes it up: the worker has stopped. */
START_TEST(test_what_is_noted)
{
	enum { LEAST = 64 * 1024 };
	struct error err = {0};
	uint8_t *noise = fixture_noise(LEAST, 4);
	derive_worker_quiesce(store_parts(fixture.store)->derive_worker);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "a.safetensors", span_of(noise, LEAST - 1), &err),
		0);
	ck_assert_int_eq(fixture_put(fixture.store, "b", "a.bin", span_of(noise, LEAST), &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_waiting"), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "b.safetensors", span_of(noise, LEAST), &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_waiting"), 1);
	free(noise);
}
END_TEST

/* It stays as it is, and keeps no other waiting. */
START_TEST(test_what_cannot_be_read_is_left_alone)
{
	struct error err = {0};
	fixture.derives = false;
	store_fixture_reopen(&fixture);
	for (unsigned i = 0; i < 3; i++)
		derived_fixture_put(&fixture, "b", key_of(i), &steps[i]);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO derive_waiting (version) SELECT sequence FROM versions", &err),
		0);
	fixture.derives = true;
	damage_fixture_flip_object(&fixture, "b", key_of(0));
	wait_until_settled();
	ck_assert_int_eq(derived(), 1);
	check_holds(1, 3);
}
END_TEST

/* A start forgets the series whose root is gone, and no other. */
START_TEST(test_series_go_with_their_roots)
{
	struct error err = {0};
	put_series(0, 2);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_series"), 1);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_series"), 1);
	put_series(2, 4);
	ck_assert_int_eq(derived(), 3);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "b", key_of(i), NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM derive_series"), 0);
}
END_TEST

START_TEST(test_weights_that_have_nothing_in_common_stay_plain)
{
	struct derived_checkpoint other;
	derived_checkpoint_make(&other, LARGE, 0);
	uint8_t *const noise = fixture_noise(other.bytes.len, 9);
	memcpy(other.bytes.data + other.header, noise, other.bytes.len - other.header);
	derived_fixture_put(&fixture, "b", key_of(0), &steps[0]);
	derived_fixture_put(&fixture, "b", key_of(1), &other);
	wait_until_settled();
	ck_assert_int_eq(derived(), 0);
	ck_assert(fixture_holds(&fixture, "b", key_of(1), buffer_span(&other.bytes)));
	free(noise);
	derived_checkpoint_release(&other);
}
END_TEST

/* A checkpoint as a multipart upload of parts of PART_BYTES. */
static void put_in_parts(const char *key, struct span bytes)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_fault fault;
	struct upload_result result;
	struct upload_create_params create = {.bucket = fixture_bucket("b"),
		.key = span_text(key),
		.checksum = CHECKSUM_SHA256,
		.type = CHECKSUM_COMPOSITE};
	struct upload_listed_part listed[4] = {{.number = 0}};
	size_t count = 0;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &create, &ref, &err) == 0, "%s", err.text);
	for (size_t at = 0; at < bytes.len; at += PART_BYTES, count++) {
		struct uploaded_part part;
		ck_assert_int_eq(fixture_upload_put(fixture.store, &ref, (uint32_t)(2 * count + 1),
					 span_slice(bytes, at, PART_BYTES), NULL, &part, &err),
			0);
		listed[count] = (struct upload_listed_part){
			.number = part.number, .checksum = part.checksum};
		memcpy(listed[count].etag, part.etag, sizeof(part.etag));
	}
	struct upload_complete_params complete = {.ref = ref, .parts = listed, .part_count = count};
	ck_assert_msg(fixture_upload_complete(fixture.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
}

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "b", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static void check_same_parts(
	const struct object *object, const struct object_part *before, size_t count)
{
	const struct object_parts_range all = {.limit = 10};
	const struct object_parts_range second = {.after = before[0].number, .limit = 1};
	struct error err = {0};
	struct object_parts listed;
	struct object_part one;
	ck_assert_int_eq(
		object_list_parts(fixture.store, object, all, fixture.arena, &listed, &err), 0);
	ck_assert_uint_eq(listed.count, count);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(listed.parts[i].number, before[i].number);
		ck_assert_uint_eq(listed.parts[i].offset, before[i].offset);
		ck_assert_uint_eq(listed.parts[i].size, before[i].size);
		ck_assert(checksum_equal(&listed.parts[i].checksum, &before[i].checksum));
		ck_assert_int_eq(
			object_find_part(fixture.store, object, before[i].number, &one, &err), 0);
		ck_assert_uint_eq(one.offset, before[i].offset);
	}
	ck_assert_int_eq(object_find_part(fixture.store, object, 2, &one, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_PART);
	ck_assert_int_eq(
		object_list_parts(fixture.store, object, second, fixture.arena, &listed, &err), 0);
	ck_assert_uint_eq(listed.count, 1);
	ck_assert_uint_eq(listed.parts[0].number, before[1].number);
	ck_assert_int_eq(listed.truncated, count > 2);
}

/* Parts of a derived object in a new upload: one range within it, one that is all of it. */
static void check_part_copies(const struct object *source, struct span bytes)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_fault fault;
	struct upload_result result;
	struct uploaded_part parts[2];
	struct upload_create_params create = {
		.bucket = fixture_bucket("b"), .key = span_text("joined")};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	ck_assert_msg(fixture_upload_copy(fixture.store, &ref, 1, source, 0, source->size,
			      &parts[0], &err) == 0,
		"%s", err.text);
	ck_assert_msg(fixture_upload_copy(fixture.store, &ref, 2, source, 1234567, 7000000,
			      &parts[1], &err) == 0,
		"%s", err.text);
	struct upload_listed_part listed[2] = {{.number = 1}, {.number = 2}};
	for (size_t i = 0; i < 2; i++)
		memcpy(listed[i].etag, parts[i].etag, sizeof(parts[i].etag));
	struct upload_complete_params complete = {.ref = ref, .parts = listed, .part_count = 2};
	ck_assert_msg(fixture_upload_complete(fixture.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
	struct buffer both;
	buffer_init(&both, 3 * bytes.len);
	buffer_add_span(&both, bytes);
	buffer_add_span(&both, span_slice(bytes, 1234567, 7000000));
	ck_assert(fixture_holds(&fixture, "b", "joined", buffer_span(&both)));
	buffer_release(&both);
}

START_TEST(test_multipart_uploads)
{
	struct error err = {0};
	struct derived_checkpoint long_ones[2];
	const struct object_parts_range all = {.limit = 10};
	struct object_parts before;
	for (unsigned i = 0; i < 2; i++)
		derived_checkpoint_make(&long_ones[i], LONG, i);
	fixture.derives = false;
	store_fixture_reopen(&fixture);
	put_in_parts(key_of(1), buffer_span(&long_ones[1].bytes));
	const struct object plain = find(key_of(1));
	ck_assert(!plain.has_digest);
	ck_assert_int_eq(
		object_list_parts(fixture.store, &plain, all, fixture.arena, &before, &err), 0);
	ck_assert_uint_eq(before.count, 2);
	ck_assert_int_eq(before.parts[0].checksum.algorithm, CHECKSUM_SHA256);
	fixture.derives = true;
	store_fixture_reopen(&fixture);
	put_in_parts(key_of(2), buffer_span(&long_ones[0].bytes));
	put_in_parts(key_of(3), buffer_span(&long_ones[1].bytes));
	wait_until_settled();
	const struct object swapped = find(key_of(3));
	ck_assert_int_eq(derived(), 1);
	ck_assert_str_eq(swapped.etag, plain.etag);
	ck_assert_uint_eq(swapped.part_count, plain.part_count);
	const struct digest128 digest = xxh3_128(buffer_span(&long_ones[1].bytes));
	ck_assert(swapped.has_digest && digest128_equal(&swapped.digest, &digest));
	check_same_parts(&swapped, before.parts, before.count);
	check_part_copies(&swapped, buffer_span(&long_ones[1].bytes));
	ck_assert(fixture_holds(&fixture, "b", key_of(3), buffer_span(&long_ones[1].bytes)));
	for (unsigned i = 0; i < 2; i++)
		derived_checkpoint_release(&long_ones[i]);
}
END_TEST

/* Bytes that a Xet client may still name without asking stay as they are. Later they become a delta
 * like any others. */
START_TEST(test_promised_packs)
{
	struct error err = {0};
	const int64_t until_ms = fixture.clock.now_ms + 5000;
	const char *const promise = arena_format(fixture.arena,
		"INSERT INTO xorbs (hash, pack, first, count, promised_ms) SELECT id, number, 0, 1, %lld FROM packs",
		(long long)until_ms);
	fixture.derives = false;
	store_fixture_reopen(&fixture);
	for (unsigned i = 0; i < 2; i++)
		derived_fixture_put(&fixture, "b", key_of(i), &steps[i]);
	ck_assert_int_eq(fixture_run(fixture.store, promise, &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO derive_waiting (version) SELECT sequence FROM versions", &err),
		0);
	fixture.derives = true;
	store_fixture_reopen(&fixture);
	const char *const put_off = arena_format(fixture.arena,
		"SELECT count(*) FROM derive_waiting WHERE after_ms = %lld", (long long)until_ms);
	while (fixture_count(fixture.store, put_off) < 2)
		usleep(10000);
	atomic_store(&fixture.clock.now_ms, until_ms - 1);
	usleep(100000);
	ck_assert_int_eq(fixture_count(fixture.store, put_off), 2);
	ck_assert_int_eq(derived(), 0);
	atomic_store(&fixture.clock.now_ms, until_ms);
	wait_until_settled();
	ck_assert_int_eq(derived(), 1);
	check_holds(0, 2);
}
END_TEST

/* The file hash shows that the chunks of this object are not those that the bytes of its parts
 * give: they would not come back from a delta. */
START_TEST(test_copied_ranges_stay_plain)
{
	struct error err = {0};
	struct derived_checkpoint long_ones[2];
	struct upload_ref ref;
	struct upload_fault fault;
	struct upload_result result;
	struct uploaded_part part;
	struct buffer shifted;
	for (unsigned i = 0; i < 2; i++) {
		derived_checkpoint_make(&long_ones[i], LONG, i);
		/* chunks cut by length alone */
		memset(long_ones[i].bytes.data + long_ones[i].tensors[0].begin, 0, 1024 * 1024);
	}
	derived_fixture_put(&fixture, "b", key_of(1), &long_ones[0]);
	wait_until_settled();
	buffer_init(&shifted, long_ones[1].bytes.len + 1000);
	uint8_t *const noise = fixture_noise(777, 5);
	buffer_add(&shifted, noise, 777);
	buffer_add_span(&shifted, buffer_span(&long_ones[1].bytes));
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "shifted", buffer_span(&shifted), &err), 0);
	const struct object source = find("shifted");
	struct upload_create_params create = {
		.bucket = fixture_bucket("b"), .key = span_text(key_of(2))};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, 1, &source, 777,
				 long_ones[1].bytes.len, &part, &err),
		0);
	struct upload_listed_part listed = {.number = 1};
	memcpy(listed.etag, part.etag, sizeof(part.etag));
	struct upload_complete_params complete = {.ref = ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(fixture.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
	wait_until_settled();
	derived_fixture_put(&fixture, "b", key_of(3), &long_ones[1]);
	wait_until_settled();
	const struct object copied = find(key_of(2));
	const struct object single = find(key_of(3));
	/* otherwise this test shows nothing */
	ck_assert(copied.has_file_hash && !chunk_id_equal(&copied.file_hash, &single.file_hash));
	ck_assert_int_eq(derived(), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 1"), 1);
	buffer_release(&shifted);
	free(noise);
	for (unsigned i = 0; i < 2; i++)
		derived_checkpoint_release(&long_ones[i]);
}
END_TEST

Suite *test_derive_worker_suite(void);
Suite *test_derive_worker_suite(void)
{
	Suite *const suite = suite_create("derive_worker");
	TCase *const tests = tcase_create("derive_worker");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, test_a_series);
	tcase_add_test(tests, test_local_files_go_with_the_work);
	tcase_add_test(tests, test_it_goes_on_after_a_restart);
	tcase_add_test(tests, test_what_waits_survives_a_restart);
	tcase_add_test(tests, test_deleting_in_any_order);
	tcase_add_test(tests, test_versions_of_one_key);
	tcase_add_test(tests, test_overwriting_without_versions_leaves_nothing);
	tcase_add_test(tests, test_what_is_left_alone);
	tcase_add_test(tests, test_deltas_of_checkpoints_stay_plain);
	tcase_add_test(tests, test_what_is_noted);
	tcase_add_test(tests, test_what_cannot_be_read_is_left_alone);
	tcase_add_test(tests, test_series_go_with_their_roots);
	tcase_add_test(tests, test_weights_that_have_nothing_in_common_stay_plain);
	tcase_add_test(tests, test_multipart_uploads);
	tcase_add_test(tests, test_promised_packs);
	tcase_add_test(tests, test_copied_ranges_stay_plain);
	suite_add_tcase(suite, tests);
	return suite;
}
