#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"

enum { LARGE = 3000000 };

static struct store_fixture fixture;
static uint8_t *noise;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 11);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "from", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "to", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static const struct object_header kept_headers[] = {
	{{(const uint8_t *)"content-type", 12}, {(const uint8_t *)"text/plain", 10}}};
static const uint8_t kept_tags[] = {1, 0, 'k', 1, 0, 'v'};

static struct object source_of(size_t len)
{
	struct error err = {0};
	struct object object;
	struct object_put_params params = {.bucket = bucket_named(span_text("from")),
		.key = span_text("k"),
		.checksum = CHECKSUM_CRC32,
		.facts = {.headers = kept_headers,
			.header_count = 1,
			.tags = span_of(kept_tags, sizeof(kept_tags)),
			.acl = ACL_PUBLIC_READ,
			.storage_class = STORAGE_GLACIER}};
	ck_assert_int_eq(
		fixture_put_object(fixture.store, &params, span_of(noise, len), &object, &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "from", "k", &object, &err), 0);
	return object;
}

static const size_t sizes[] = {0, 700, LARGE};

START_TEST(a_copy_outlives_its_source_and_writes_no_bytes)
{
	struct error err = {0};
	struct object copy;
	struct object found;
	const struct object source = source_of(sizes[_i]);
	const int64_t packs =
		fixture_count(fixture.store, "SELECT COALESCE(SUM(length), 0) FROM packs");
	struct object_copy_params params = {
		.source = &source, .bucket = bucket_named(span_text("to")), .key = span_text("c")};
	ck_assert_msg(fixture_copy(fixture.store, &params, &copy, &err) == 0, "%s", err.text);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COALESCE(SUM(length), 0) FROM packs"), packs);
	ck_assert_int_eq(fixture_delete(fixture.store, "from", "k", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert(fixture_holds(&fixture, "to", "c", span_of(noise, sizes[_i])));
	ck_assert_int_eq(fixture_find(&fixture, "to", "c", &found, &err), 0);
	ck_assert_str_eq(found.etag, source.etag);
	ck_assert(found.has_digest && digest128_equal(&found.digest, &source.digest));
	ck_assert(checksum_equal(&found.checksum, &source.checksum));
	ck_assert_uint_eq(found.header_count, 1);
	ck_assert(span_equal_text(found.headers[0].value, "text/plain"));
	ck_assert(span_equal(found.tags, span_of(kept_tags, sizeof(kept_tags))));
	ck_assert(found.acl == ACL_PRIVATE); /* an ACL is never copied */
	ck_assert_int_eq(found.storage_class, STORAGE_STANDARD);
	ck_assert_int_eq(fixture_delete(fixture.store, "to", "c", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT (SELECT COUNT(*) FROM part_sets) + (SELECT COUNT(*) FROM segments)"),
		0);
}
END_TEST

START_TEST(a_copy_onto_itself_replaces_what_is_said_of_the_bytes)
{
	struct error err = {0};
	struct object copy;
	struct object found;
	const struct object source = source_of(sizes[_i]);
	const struct object_header header = {span_text("x-amz-meta-a"), span_text("b")};
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("from")),
		.key = span_text("k"),
		.replaces_headers = true,
		.replaces_tags = true,
		.facts = {.headers = &header, .header_count = 1, .acl = ACL_PUBLIC_READ}};
	ck_assert_msg(fixture_copy(fixture.store, &params, &copy, &err) == 0, "%s", err.text);
	ck_assert(fixture_holds(&fixture, "from", "k", span_of(noise, sizes[_i])));
	ck_assert_int_eq(fixture_find(&fixture, "from", "k", &found, &err), 0);
	ck_assert_uint_eq(found.header_count, 1);
	ck_assert(span_equal_text(found.headers[0].name, "x-amz-meta-a"));
	ck_assert_uint_eq(found.tags.len, 0);
	ck_assert(found.acl == ACL_PUBLIC_READ);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
}
END_TEST

START_TEST(another_checksum_is_computed_from_the_bytes)
{
	struct error err = {0};
	struct object copy;
	struct checksum expected;
	const struct object source = source_of(sizes[_i]);
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("to")),
		.key = span_text("c"),
		.checksum = CHECKSUM_SHA256};
	ck_assert_msg(fixture_copy(fixture.store, &params, &copy, &err) == 0, "%s", err.text);
	checksum_of(CHECKSUM_SHA256, span_of(noise, sizes[_i]), &expected);
	ck_assert(checksum_equal(&copy.checksum, &expected));
}
END_TEST

START_TEST(conditions_are_judged_on_the_destination)
{
	struct error err = {0};
	struct object copy;
	const struct object source = source_of(700);
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("to")),
		.key = span_text("c"),
		.conditions.if_none_match = span_text("*")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), 0);
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	params.conditions = (struct object_conditions){.if_match = span_text("\"x\"")};
	params.key = span_text("absent");
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	params = (struct object_copy_params){.source = &source,
		.bucket = bucket_named(span_text("nowhere")),
		.key = span_text("c")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	params.bucket = bucket_named(span_text("to"));
	params.key = span_text("");
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_source_that_is_gone_is_no_key)
{
	struct error err = {0};
	struct object copy;
	const struct object source = source_of(sizes[_i]);
	ck_assert_int_eq(fixture_delete(fixture.store, "from", "k", NULL, &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = bucket_named(span_text("to")), .key = span_text("c")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	params.checksum = CHECKSUM_SHA1;
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
}
END_TEST

START_TEST(damaged_inline_bytes_are_not_copied)
{
	struct error err = {0};
	struct object copy;
	const struct object source = source_of(700);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE inline_bytes SET bytes = x'00'", &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = bucket_named(span_text("to")), .key = span_text("c")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

Suite *test_object_copy_suite(void);
Suite *test_object_copy_suite(void)
{
	const int last = sizeof(sizes) / sizeof(sizes[0]);
	Suite *const suite = suite_create("object_copy");
	TCase *const tests = tcase_create("object_copy");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_copy_outlives_its_source_and_writes_no_bytes, 0, last);
	tcase_add_loop_test(tests, a_copy_onto_itself_replaces_what_is_said_of_the_bytes, 0, last);
	tcase_add_loop_test(tests, another_checksum_is_computed_from_the_bytes, 0, last);
	tcase_add_test(tests, conditions_are_judged_on_the_destination);
	tcase_add_loop_test(tests, a_source_that_is_gone_is_no_key, 0, last);
	tcase_add_test(tests, damaged_inline_bytes_are_not_copied);
	suite_add_tcase(suite, tests);
	return suite;
}
