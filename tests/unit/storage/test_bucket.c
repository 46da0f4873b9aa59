#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static const struct {
	const char *name;
	const char *namespace;
	bool good;
} names[] = {
	{"abc", "main", true},
	{"a.b-c9", "main", true},
	{"123456789012345678901234567890123456789012345678901234567890123", "main", true},
	{"1234567890123456789012345678901234567890123456789012345678901234", "main", false},
	{"ab", "main", false},
	{"", "main", false},
	{"Abc", "main", false},
	{"a_c", "main", false},
	{"abc-", "main", false},
	{".abc", "main", false},
	{"a..b", "main", false},
	{"a.-b", "main", false},
	{"a-.b", "main", false},
	{"192.168.5.4", "main", false},
	{"192.168.5.4x", "main", true},
	{"1.2.3", "main", true},
	{"xn--abc", "xn", false},
	{"sthree-abc", "main", false},
	{"abc-s3alias", "main", false},
	{"abc--ol-s3", "abc", false},
	{"abc--x-s3", "abc", false},
	{"team--model", "team", true},
	{"team--model", "main", false},
	{"team--a--b", "team", true},
	{"api", "main", false},
	{"console", "main", false},
	{"v1", "main", false},
	{"xet", "main", false},
	{"health", "main", false},
	{"buckets", "main", false},
};

START_TEST(names_follow_the_rules)
{
	struct error err = {0};
	const int result = bucket_check_name(span_text(names[_i].name), span_text(names[_i].namespace), &err);
	ck_assert_msg(result == (names[_i].good ? 0 : -1), "%s", names[_i].name);
	ck_assert_int_eq(err.kind, names[_i].good ? ERROR_NONE : ERROR_BAD_NAME);
}
END_TEST

START_TEST(a_bucket_has_one_owner)
{
	struct error err = {0};
	struct bucket bucket;
	ck_assert_int_eq(bucket_find(fixture.store, span_text("abc"), fixture.arena, &bucket, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_OWNED);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_TAKEN);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(bucket_find(fixture.store, span_text("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert(span_equal_text(bucket.name, "abc"));
	ck_assert(span_equal_text(bucket.owner, "main"));
	ck_assert_int_eq(bucket.created_ms, 1700000000000);
}
END_TEST

START_TEST(only_an_empty_bucket_is_deleted)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "abc", "k", span_text("x"), &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_NOT_EMPTY);
	ck_assert_int_eq(fixture_delete(fixture.store, "abc", "k", NULL, &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "abc", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	struct settled *const settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_delete_start(fixture.store, span_text("abc"), span_text("run"), settled_done, settled), settled,
		NULL, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "abc", "k", NULL, &err), 0);
}
END_TEST

START_TEST(listing_filters_and_pages)
{
	struct error err = {0};
	struct bucket *buckets;
	size_t count;
	static const char *const mine[] = {"aaa", "model-1", "model-2", "model-3", "zzz"};
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(fixture_create_bucket(fixture.store, mine[i], "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "model-0", "other", &err), 0);
	ck_assert_int_eq(bucket_list(fixture.store, span_text("main"), span_text("model-"), span_text(""), 2, fixture.arena, &buckets, &count,
		&err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(buckets[0].name, "model-1") && span_equal_text(buckets[1].name, "model-2"));
	ck_assert_int_eq(bucket_list(fixture.store, span_text("main"), span_text("model-"), buckets[1].name, 2, fixture.arena, &buckets, &count,
		&err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(buckets[0].name, "model-3"));
	ck_assert_int_eq(bucket_list(fixture.store, span_text(""), span_text(""), span_text(""), 100, fixture.arena, &buckets, &count, &err),
		0);
	ck_assert_uint_eq(count, 6);
	ck_assert(span_equal_text(buckets[1].owner, "other"));
}
END_TEST

Suite *test_bucket_suite(void);
Suite *test_bucket_suite(void)
{
	Suite *const suite = suite_create("bucket");
	TCase *const plain = tcase_create("names");
	tcase_add_loop_test(plain, names_follow_the_rules, 0, sizeof(names) / sizeof(names[0]));
	suite_add_tcase(suite, plain);
	TCase *const tests = tcase_create("bucket");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_bucket_has_one_owner);
	tcase_add_test(tests, only_an_empty_bucket_is_deleted);
	tcase_add_test(tests, listing_filters_and_pages);
	suite_add_tcase(suite, tests);
	return suite;
}
