#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/db/db.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/objects/object_row.h"
#include "storage/open/store_open.h"
#include "storage/start/store_start.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static const size_t sizes[] = {0, 1, 1024, 1025, 100000, 262144, 262145, 3000000};

START_TEST(put_then_get_gives_the_bytes_back)
{
	struct error err = {0};
	const size_t len = sizes[_i];
	uint8_t *const bytes = fixture_noise(len, 7);
	ck_assert_msg(fixture_put(fixture.store, "weights", "a/model.bin", span_of(bytes, len),
			      &err) == 0,
		"%s", err.text);
	ck_assert(fixture_holds(&fixture, "weights", "a/model.bin", span_of(bytes, len)));
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "weights", "a/model.bin", span_of(bytes, len)));
	struct object object;
	ck_assert_int_eq(fixture_find(&fixture, "weights", "a/model.bin", &object, &err), 0);
	const struct digest128 digest = xxh3_128(span_of(bytes, len));
	ck_assert(digest128_equal(&object.digest, &digest));
	ck_assert_uint_eq(object.size, len);
	ck_assert(object.is_current);
	free(bytes);
}
END_TEST

static const struct {
	uint64_t offset;
	uint64_t length;
} ranges[] = {{0, 1}, {2999999, 1}, {0, 3000000}, {1, 2999999}, {123456, 1500000},
	{1048576, 131072}, {2500000, 0}, {3000000, 0}};

START_TEST(any_range_reads_as_it_was_put)
{
	struct error err = {0};
	struct object object;
	struct buffer read;
	uint8_t *const bytes = fixture_noise(3000000, 8);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "k", span_of(bytes, 3000000), &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	buffer_init(&read, 4000000);
	ck_assert_msg(fixture_read(fixture.store, &object, ranges[_i].offset, ranges[_i].length,
			      &read, &err) == 0,
		"%s", err.text);
	ck_assert(span_equal(
		buffer_span(&read), span_of(bytes + ranges[_i].offset, (size_t)ranges[_i].length)));
	ck_assert_ptr_null(object_open(fixture.store, &object, 2999999, 2, &err));
	ck_assert_int_eq(err.kind, ERROR_RANGE);
	ck_assert_ptr_null(object_open(fixture.store, &object, UINT64_MAX, 2, &err));
	ck_assert_int_eq(err.kind, ERROR_RANGE);
	buffer_release(&read);
	free(bytes);
}
END_TEST

START_TEST(inline_objects_read_by_range_too)
{
	struct error err = {0};
	struct object object;
	struct buffer read;
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "k", span_text("hello world"), &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	ck_assert_str_eq(object.etag, "5eb63bbbe01eeed093cb22bb8f5acdc3");
	buffer_init(&read, 200000);
	ck_assert_int_eq(fixture_read(fixture.store, &object, 6, 3, &read, &err), 0);
	ck_assert_str_eq(buffer_text(&read), "wor");
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM inline_bytes"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM part_sets"), 0);
	buffer_release(&read);
}
END_TEST

START_TEST(headers_come_back_as_given)
{
	struct error err = {0};
	struct object object;
	const struct object_header headers[] = {
		{span_text("content-type"), span_text("application/json")},
		{span_text("x-amz-meta-empty"), span_text("")},
		{span_text("x-amz-meta-step"), span_text("12")},
	};
	struct object_put_params params = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.facts = {.headers = headers, .header_count = 3}};
	ck_assert_int_eq(fixture_put_with(fixture.store, &params, span_text("x"), NULL, &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	ck_assert_uint_eq(object.header_count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert(span_equal(object.headers[i].name, headers[i].name));
		ck_assert(span_equal(object.headers[i].value, headers[i].value));
	}
}
END_TEST

START_TEST(refusals_before_any_byte)
{
	struct error err = {0};
	char long_key[OBJECT_KEY_MAX_BYTES + 2];
	char long_value[OBJECT_METADATA_MAX_BYTES + 2];
	memset(long_key, 'k', sizeof(long_key));
	memset(long_value, 'v', sizeof(long_value));
	long_key[OBJECT_KEY_MAX_BYTES + 1] = '\0';
	ck_assert_int_eq(fixture_put(fixture.store, "weights", long_key, span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_KEY_TOO_LONG);
	long_key[OBJECT_KEY_MAX_BYTES] = '\0';
	ck_assert_int_eq(fixture_put(fixture.store, "weights", long_key, span_text("x"), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(fixture_put(fixture.store, "absent", "k", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	struct object_header header = {
		span_text("x-amz-meta-v"), span_of(long_value, OBJECT_METADATA_MAX_BYTES)};
	struct object_put_params params = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.facts = {.headers = &header, .header_count = 1}};
	ck_assert_int_eq(fixture_put_with(fixture.store, &params, span_text("x"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_METADATA_TOO_LARGE);
	header.value.len--; /* the name counts without its prefix: v */
	ck_assert_int_eq(fixture_put_with(fixture.store, &params, span_text("x"), NULL, &err), 0);
}
END_TEST

START_TEST(a_wrong_content_md5_stores_nothing)
{
	struct error err = {0};
	struct object object;
	struct object_put_params params = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.has_content_md5 = true};
	ck_assert_int_eq(fixture_put_with(fixture.store, &params, span_text("x"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(overwriting_replaces_whole_and_frees_rows)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(2000000, 9);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "k", span_of(bytes, 2000000), &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "k", span_of(bytes, 1000000), &err), 0);
	ck_assert(fixture_holds(&fixture, "weights", "k", span_of(bytes, 1000000)));
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(DISTINCT part_set) FROM segments"), 1);
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "k", span_text("small"), &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM segments"), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "k", NULL, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM inline_bytes"), 0);
	free(bytes);
}
END_TEST

START_TEST(a_version_removed_between_find_and_open_is_no_key)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "k", span_text("old"), &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "k", NULL, &err), 0);
	ck_assert_ptr_null(object_open(fixture.store, &object, 0, 3, &err));
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

static const struct {
	const char *if_match;
	const char *if_none_match;
	const char *etag;
	enum error_kind kind;
} conditions[] = {
	{NULL, NULL, NULL, ERROR_NONE},
	{NULL, NULL, "abc", ERROR_NONE},
	{"\"abc\"", NULL, "abc", ERROR_NONE},
	{"abc", NULL, "abc", ERROR_NONE},
	{"W/\"abc\"", NULL, "abc", ERROR_NONE},
	{" \"x\" , \"abc\" ", NULL, "abc", ERROR_NONE},
	{"w/\"abc\"", NULL, "abc", ERROR_NONE},
	{"*", NULL, "abc", ERROR_NONE},
	{" * ", NULL, "abc", ERROR_NONE},
	/* "*" is not a wildcard when it is one of several */
	{"\"x\", *", NULL, "abc", ERROR_PRECONDITION},
	{"Wxabc", NULL, "abc", ERROR_PRECONDITION},
	{"xabc\"", NULL, "abc", ERROR_PRECONDITION},
	{"\"abcx", NULL, "abc", ERROR_PRECONDITION},
	{"\"", NULL, "\"", ERROR_NONE}, /* a lone quote quotes nothing */
	{"\"ABC\"", NULL, "abc", ERROR_PRECONDITION},
	{"\"ab\"", NULL, "abc", ERROR_PRECONDITION},
	{"\"abc\"", NULL, NULL, ERROR_NO_KEY},
	{"*", NULL, NULL, ERROR_NO_KEY},
	{NULL, "*", NULL, ERROR_NONE},
	{NULL, "*", "abc", ERROR_PRECONDITION},
	{NULL, "\"abc\"", "abc", ERROR_PRECONDITION},
	{NULL, "\"x\",W/\"abc\"", "abc", ERROR_PRECONDITION},
	{NULL, "\"x\"", "abc", ERROR_NONE},
	{NULL, "\"abc\"", NULL, ERROR_NONE},
	{"\"abc\"", "\"abc\"", "abc", ERROR_PRECONDITION},
};

START_TEST(conditions_are_judged_like_s3)
{
	struct error err = {.kind = ERROR_NONE};
	const struct object_conditions given = {.if_match = span_text(conditions[_i].if_match),
		.if_none_match = span_text(conditions[_i].if_none_match)};
	struct object object = {.size = 3};
	snprintf(object.etag, sizeof(object.etag), "%s",
		conditions[_i].etag != NULL ? conditions[_i].etag : "");
	const int result =
		object_conditions_check(&given, conditions[_i].etag != NULL ? &object : NULL, &err);
	ck_assert_int_eq(result, conditions[_i].kind == ERROR_NONE ? 0 : -1);
	ck_assert_int_eq(err.kind, conditions[_i].kind);
}
END_TEST

/* Bytes behind the end of a condition are not looked at. */
START_TEST(a_condition_ends_where_it_says)
{
	struct error err = {0};
	const struct object object = {.etag = "W"};
	const struct object_conditions given = {.if_match = span_of("W/", 1)};
	ck_assert_int_eq(object_conditions_check(&given, &object, &err), 0);
}
END_TEST

START_TEST(to_conditions_a_marker_is_no_object)
{
	struct error err = {0};
	const struct object marker = {
		.is_marker = true, .etag = "abc", .size = 3, .modified_ms = 1000};
	const struct object_conditions absent = {.if_none_match = span_text("*")};
	const struct object_conditions present[] = {{.if_match = span_text("*")},
		{.has_size = true, .size = 3}, {.has_modified = true, .modified_ms = 1000}};
	ck_assert_int_eq(object_conditions_check(&absent, &marker, &err), 0);
	for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++) {
		err = (struct error){0};
		ck_assert_int_eq(object_conditions_check(&present[i], &marker, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_NO_KEY);
		ck_assert_int_eq(object_conditions_check(&present[i], NULL, &err), -1);
	}
}
END_TEST

START_TEST(a_write_over_a_marker_finds_nothing_there)
{
	struct error err = {0};
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	struct object_put_params swap = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.conditions.if_match = span_text("*")};
	struct object_put_params create = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.conditions.if_none_match = span_text("*")};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "k", span_text("1"), &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "k", NULL, &err), 0);
	ck_assert_int_eq(fixture_put_with(fixture.store, &swap, span_text("2"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(fixture_put_with(fixture.store, &create, span_text("3"), NULL, &err), 0);
	ck_assert(fixture_holds(&fixture, "weights", "k", span_text("3")));
}
END_TEST

/* The memory of a request is freed before its conditions are judged. */
START_TEST(conditions_are_kept_by_who_takes_them)
{
	char texts[2][4] = {"abc", "xyz"};
	const struct object_conditions given = {.if_match = span_of(texts[0], 3),
		.if_none_match = span_of(texts[1], 3),
		.has_size = true,
		.size = 7};
	const struct object_conditions copy = object_conditions_copy(&given, fixture.arena);
	memset(texts, '-', sizeof(texts));
	ck_assert(span_equal_text(copy.if_match, "abc") &&
		span_equal_text(copy.if_none_match, "xyz"));
	ck_assert(copy.has_size && copy.size == 7 && !copy.has_modified);
}
END_TEST

START_TEST(conditional_puts_and_deletes)
{
	struct error err = {0};
	char etag[OBJECT_ETAG_BYTES];
	struct object_put_params create = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("latest"),
		.conditions.if_none_match = span_text("*")};
	ck_assert_int_eq(fixture_put_with(fixture.store, &create, span_text("1"), etag, &err), 0);
	ck_assert_int_eq(fixture_put_with(fixture.store, &create, span_text("2"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	struct object_put_params swap = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("latest"),
		.conditions.if_match = span_text(etag)};
	ck_assert_int_eq(fixture_put_with(fixture.store, &swap, span_text("2"), NULL, &err), 0);
	ck_assert_int_eq(fixture_put_with(fixture.store, &swap, span_text("3"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert(fixture_holds(&fixture, "weights", "latest", span_text("2")));
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "latest", etag, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "latest", "*", &err), 0);
	/* deleting an absent object succeeds */
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "latest", "*", &err), 0);
	ck_assert_int_eq(fixture_put_with(fixture.store, &swap, span_text("3"), NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(fixture_delete(fixture.store, "absent", "latest", NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

START_TEST(a_bucket_deleted_during_the_upload_takes_it_along)
{
	struct error err = {0};
	const struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	struct object_put *const put = object_put_open(fixture.store, &params, &err);
	ck_assert_ptr_nonnull(put);
	ck_assert_int_eq(object_put_write(put, span_text("bytes"), &err), SINK_TAKEN);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "weights", &err), 0);
	ck_assert_int_eq(fixture_call(object_put_call(put), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

/* Otherwise an upload could outlive the right to write: it could begin in a bucket of the caller's
 * own and end in a bucket that somebody else made since. */
START_TEST(a_bucket_made_anew_during_the_upload_does_not_get_it)
{
	struct error err = {0};
	const struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	struct object_put *const put = object_put_open(fixture.store, &params, &err);
	ck_assert_ptr_nonnull(put);
	ck_assert_int_eq(object_put_write(put, span_text("bytes"), &err), SINK_TAKEN);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "weights", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "other", &err), 0);
	ck_assert_int_eq(fixture_call(object_put_call(put), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	struct object object;
	err = (struct error){0};
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(an_aborted_upload_leaves_nothing)
{
	struct error err = {0};
	struct object object;
	uint8_t *const bytes = fixture_noise(90000, 3);
	const struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	struct object_put *const put = object_put_open(fixture.store, &params, &err);
	ck_assert_ptr_nonnull(put);
	ck_assert_int_eq(object_put_write(put, span_of(bytes, 90000), &err), SINK_TAKEN);
	call_free(object_put_call(put));
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	free(bytes);
}
END_TEST

/* A flipped bit anywhere in the data that a version leads to gives an error, never other bytes
 * (invariant 7). */
static const struct {
	const char *sql;
	bool inline_object;
} damages[] = {
	{"UPDATE versions SET size = size - 1", false},
	{"UPDATE versions SET key = CAST('j' AS BLOB) WHERE key = CAST('k' AS BLOB)", false},
	{"UPDATE versions SET contents = contents + 1", false},
	{"UPDATE versions SET headers = x'00'", false},
	{"UPDATE versions SET kind = 1", false},
	{"UPDATE versions SET part_set = 1", false},
	{"UPDATE segments SET part_set = part_set - 1", false},
	{"UPDATE segments SET first = first + 1", false},
	{"UPDATE segments SET bytes = bytes - 1", false},
	{"UPDATE segments SET pack = pack + 1000", false},
	{"UPDATE packs SET id = randomblob(16)", false},
	{"DELETE FROM segments", false},
	{"DELETE FROM segments WHERE start = (SELECT MAX(start) FROM segments)", false},
	{"UPDATE inline_bytes SET bytes = x'00'", true},
	{"DELETE FROM inline_bytes", true},
};

START_TEST(damaged_rows_are_noticed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(2000000, 4);
	const size_t len = damages[_i].inline_object ? 100 : 2000000;
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "k", span_of(bytes, len), &err), 0);
	const int64_t sequence = fixture_count(fixture.store, "SELECT sequence FROM versions");
	store_close(fixture.store);
	char *const path = store_fixture_path(&fixture, "catalog.db");
	struct db *const db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db_run_script(db, damages[_i].sql, &err) == 0, "%s", err.text);
	ck_assert_int_gt(db_changes(db), 0);
	db_close(db);
	free(path);
	const struct store_options options = {
		.folder = fixture.folder, .after_damage = AFTER_DAMAGE_SERVE};
	fixture.store = store_open(&options, &err);
	ck_assert_ptr_nonnull(fixture.store);
	struct object object;
	struct buffer read;
	buffer_init(&read, 4000000);
	int result = object_find_sequence(fixture.store, sequence, fixture.arena, &object, &err);
	if (result == 0)
		result = fixture_read(fixture.store, &object, 0, object.size, &read, &err);
	ck_assert_int_eq(result, -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	buffer_release(&read);
	free(bytes);
}
END_TEST

START_TEST(large_versions_are_dropped_in_slices)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "seed", span_text("x"), &err), 0);
	/* Many segments come from parts of others in disorder: pieces of 128 KiB of noise, then
	 * those pieces in reverse order. */
	enum { PIECE = 700000, PIECES = 8 };
	uint8_t *const bytes = fixture_noise((size_t)PIECE * PIECES, 5);
	for (size_t i = 0; i < PIECES; i++) {
		char key[8] = {'p', (char)('0' + i), 0};
		ck_assert_int_eq(fixture_put(fixture.store, "weights", key,
					 span_of(bytes + i * PIECE, PIECE), &err),
			0);
	}
	ck_assert(fixture_holds(&fixture, "weights", "p3", span_of(bytes + 3 * PIECE, PIECE)));
	for (size_t i = 0; i < PIECES; i++) {
		char key[8] = {'p', (char)('0' + i), 0};
		ck_assert_int_eq(fixture_delete(fixture.store, "weights", key, NULL, &err), 0);
	}
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM segments"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM part_sets"), 0);
	free(bytes);
}
END_TEST

Suite *test_object_suite(void);
Suite *test_object_suite(void)
{
	Suite *const suite = suite_create("object");
	TCase *const tests = tcase_create("object");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(
		tests, put_then_get_gives_the_bytes_back, 0, sizeof(sizes) / sizeof(sizes[0]));
	tcase_add_loop_test(
		tests, any_range_reads_as_it_was_put, 0, sizeof(ranges) / sizeof(ranges[0]));
	tcase_add_test(tests, inline_objects_read_by_range_too);
	tcase_add_test(tests, headers_come_back_as_given);
	tcase_add_test(tests, refusals_before_any_byte);
	tcase_add_test(tests, a_wrong_content_md5_stores_nothing);
	tcase_add_test(tests, overwriting_replaces_whole_and_frees_rows);
	tcase_add_test(tests, a_version_removed_between_find_and_open_is_no_key);
	tcase_add_loop_test(tests, conditions_are_judged_like_s3, 0,
		sizeof(conditions) / sizeof(conditions[0]));
	tcase_add_test(tests, conditional_puts_and_deletes);
	tcase_add_test(tests, a_condition_ends_where_it_says);
	tcase_add_test(tests, to_conditions_a_marker_is_no_object);
	tcase_add_test(tests, a_write_over_a_marker_finds_nothing_there);
	tcase_add_test(tests, conditions_are_kept_by_who_takes_them);
	tcase_add_test(tests, a_bucket_deleted_during_the_upload_takes_it_along);
	tcase_add_test(tests, a_bucket_made_anew_during_the_upload_does_not_get_it);
	tcase_add_test(tests, an_aborted_upload_leaves_nothing);
	tcase_add_loop_test(
		tests, damaged_rows_are_noticed, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(tests, large_versions_are_dropped_in_slices);
	suite_add_tcase(suite, tests);
	return suite;
}
