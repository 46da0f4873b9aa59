/* The totals of buckets equal a count after any operation on keys. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/objects/object_copy.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version_list.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { LARGE = 70 * 1000, KEYS = 5, OPERATIONS = 400 };

static struct store_fixture fixture;
static uint8_t *noise;
static uint64_t random_state;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 5);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "one", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "two", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static struct bucket_totals totals_of(const char *name)
{
	struct error err = {0};
	struct bucket bucket;
	struct bucket_totals totals;
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket(name), fixture.arena, &bucket, &err), 0);
	ck_assert_msg(
		bucket_totals_find(fixture.store, &bucket, 1, &totals, &err) == 0, "%s", err.text);
	return totals;
}

static void expect_totals(const char *name, int64_t files, int64_t bytes)
{
	const struct bucket_totals totals = totals_of(name);
	ck_assert_int_eq(totals.files, files);
	ck_assert_int_eq(totals.bytes, bytes);
}

static void expect_counted(const char *what, int step)
{
	static const char wrong[] =
		"SELECT COUNT(*) FROM bucket_totals t WHERE t.files <> (SELECT COUNT(*) FROM versions v WHERE v.bucket = t.bucket AND v.state = 1"
		" AND v.is_marker = 0) OR t.bytes <> (SELECT COALESCE(SUM(size), 0) FROM versions v WHERE v.bucket = t.bucket AND v.state = 1"
		" AND v.is_marker = 0)";
	ck_assert_msg(
		fixture_count(fixture.store, wrong) == 0, "after operation %d, %s", step, what);
}

static unsigned below(unsigned limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % limit;
}

static const char *any_bucket(void)
{
	return below(2) == 0 ? "one" : "two";
}

static const char *any_key(void)
{
	static const char *const keys[KEYS] = {"a", "b", "c/d", "c/e", "f"};
	return keys[below(KEYS)];
}

static void put(const char *bucket, const char *key)
{
	struct error err = {0};
	static const unsigned sizes[] = {1, 1025, LARGE, 1000};
	ck_assert_msg(fixture_put(fixture.store, bucket, key,
			      span_of(noise, below(sizes[below(4)])), &err) == 0,
		"%s", err.text);
}

static void delete_current(const char *bucket, const char *key)
{
	struct error err = {0};
	ck_assert_msg(fixture_delete(fixture.store, bucket, key, NULL, &err) == 0, "%s", err.text);
}

static void delete_any_version(const char *bucket, const char *key)
{
	struct error err = {0};
	struct version_list list;
	const struct version_list_params params = {
		.bucket = fixture_bucket(bucket), .prefix = span_text(key), .limit = 100};
	ck_assert_msg(version_list(fixture.store, &params, fixture.arena, &list, &err) == 0, "%s",
		err.text);
	if (list.entry_count == 0)
		return;
	const struct version_entry *const entry = &list.entries[below((unsigned)list.entry_count)];
	struct object_delete_item item = {.key = entry->object.key};
	ck_assert(version_ref_parse(span_text(entry->version), &item.ref));
	ck_assert_msg(
		fixture_delete_items(fixture.store, bucket, &item, 1, &err) == 0, "%s", err.text);
}

static void copy(const char *bucket, const char *key)
{
	struct error err = {0};
	struct object source;
	struct object made;
	if (fixture_find(&fixture, any_bucket(), any_key(), &source, &err) != 0)
		return;
	struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket(bucket), .key = span_text(key)};
	ck_assert_msg(fixture_copy(fixture.store, &params, &made, &err) == 0, "%s", err.text);
}

static void upload(const char *bucket, const char *key)
{
	struct error err = {0};
	struct upload_create_params params = {
		.bucket = fixture_bucket(bucket), .key = span_text(key)};
	struct upload_ref ref;
	struct uploaded_part made;
	struct upload_fault fault;
	struct upload_result result;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &ref, &err) == 0, "%s", err.text);
	ck_assert_msg(fixture_upload_put(fixture.store, &ref, 1, span_of(noise, LARGE / 2), NULL,
			      &made, &err) == 0,
		"%s", err.text);
	struct upload_listed_part listed = {.number = 1};
	memcpy(listed.etag, made.etag, sizeof(listed.etag));
	struct upload_complete_params complete = {.ref = ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(fixture.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
}

static void switch_versioning(const char *bucket, const char *key)
{
	struct error err = {0};
	(void)key;
	const struct bucket_edit edit = {
		.sets_versioning = true, .versioning = (enum bucket_versioning)(1 + below(2))};
	ck_assert_msg(fixture_edit_bucket(fixture.store, bucket, &edit, &err) == 0, "%s", err.text);
}

static const struct {
	const char *name;
	void (*run)(const char *bucket, const char *key);
} operations[] = {
	{"put", put},
	{"put", put},
	{"delete", delete_current},
	{"delete a version", delete_any_version},
	{"delete a version", delete_any_version},
	{"copy", copy},
	{"upload", upload},
	{"versioning", switch_versioning},
};

START_TEST(totals_are_what_a_count_finds_after_anything)
{
	random_state = (uint64_t)_i + 1;
	for (int step = 0; step < OPERATIONS; step++) {
		/* Versioning begins late, so that buckets without it are tried as well. */
		const unsigned kinds = sizeof(operations) / sizeof(operations[0]) -
			(step < OPERATIONS / 2 ? 1 : 0);
		const unsigned kind = below(kinds);
		operations[kind].run(any_bucket(), any_key());
		expect_counted(operations[kind].name, step);
	}
	store_fixture_reopen(&fixture);
	expect_counted("reopening", OPERATIONS);
}
END_TEST

START_TEST(totals_say_what_is_shown)
{
	struct error err = {0};
	expect_totals("one", 0, 0);
	ck_assert_int_eq(fixture_put(fixture.store, "one", "a", span_of(noise, 100), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "one", "b", span_of(noise, 5000), &err), 0);
	expect_totals("one", 2, 5100);
	ck_assert_int_eq(fixture_put(fixture.store, "one", "a", span_of(noise, 7), &err), 0);
	expect_totals("one", 2, 5007);
	ck_assert_int_eq(fixture_delete(fixture.store, "one", "b", NULL, &err), 0);
	expect_totals("one", 1, 7);
	expect_totals("two", 0, 0);
}
END_TEST

START_TEST(totals_tell_when_they_changed_last)
{
	struct error err = {0};
	const int64_t made_ms = totals_of("one").updated_ms;
	ck_assert_int_eq(made_ms, 1700000000000);
	fixture.clock.now_ms += 5000;
	ck_assert_int_eq(fixture_put(fixture.store, "one", "a", span_of(noise, 100), &err), 0);
	ck_assert_int_eq(totals_of("one").updated_ms, made_ms + 5000);
	fixture.clock.now_ms += 5000;
	ck_assert_int_eq(fixture_delete(fixture.store, "one", "a", NULL, &err), 0);
	ck_assert_int_eq(totals_of("one").updated_ms, made_ms + 10000);
	fixture.clock.now_ms -= 60000; /* the clock goes back, updated_ms does not */
	ck_assert_int_eq(fixture_put(fixture.store, "one", "a", span_of(noise, 100), &err), 0);
	ck_assert_int_eq(totals_of("one").updated_ms, made_ms + 10001);
	ck_assert_int_eq(totals_of("two").updated_ms, made_ms);
}
END_TEST

static int64_t bytes_of(const char *owner)
{
	struct error err = {0};
	int64_t bytes = -1;
	ck_assert_msg(bucket_bytes_of(fixture.store, span_text(owner), &bytes, &err) == 0, "%s",
		err.text);
	return bytes;
}

START_TEST(an_owner_has_what_all_the_buckets_hold)
{
	struct error err = {0};
	ck_assert_int_eq(bytes_of("main"), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "three", "other", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "one", "a", span_of(noise, 5000), &err), 0);
	ck_assert_int_eq(bytes_of("main"), 5000);
	ck_assert_int_eq(fixture_put(fixture.store, "two", "a", span_of(noise, 5000), &err), 0);
	ck_assert_int_eq(bytes_of("main"), 10000); /* content counts in each bucket that has it */
	ck_assert_int_eq(fixture_put(fixture.store, "three", "a", span_of(noise, 300), &err), 0);
	ck_assert_int_eq(bytes_of("main"), 10000);
	ck_assert_int_eq(bytes_of("other"), 300);
	ck_assert_int_eq(bytes_of("nobody"), 0);
}
END_TEST

Suite *test_bucket_totals_suite(void);
Suite *test_bucket_totals_suite(void)
{
	Suite *const suite = suite_create("bucket_totals");
	TCase *const tests = tcase_create("bucket_totals");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, totals_are_what_a_count_finds_after_anything, 0, 3);
	tcase_add_test(tests, totals_say_what_is_shown);
	tcase_add_test(tests, an_owner_has_what_all_the_buckets_hold);
	tcase_add_test(tests, totals_tell_when_they_changed_last);
	suite_add_tcase(suite, tests);
	return suite;
}
