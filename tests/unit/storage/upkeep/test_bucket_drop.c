/* A bucket that is dropped with everything in it, and one that gets another name. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/buckets/lifecycle_cache.h"
#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "storage/upkeep/bucket_delete.h"
#include "storage/upkeep/gc.h"
#include "storage/upkeep/sweeper.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { LARGE = 600 * 1000, MANY = 450 };

static struct store_fixture fixture;
static uint8_t *noise;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 9);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static void put(const char *bucket, const char *key, size_t size)
{
	struct error err = {0};
	ck_assert_msg(fixture_put(fixture.store, bucket, key, span_of(noise, size), &err) == 0,
		"%s", err.text);
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store, sql);
}

static void make_history(void)
{
	struct error err = {0};
	const struct bucket_document document = {BUCKET_CORS, span_text("cors")};
	const struct bucket_grant grant = {.permissions = PERMISSION_READ};
	const struct bucket_edit edit = {.sets_versioning = true,
		.versioning = BUCKET_VERSIONED,
		.documents = &document,
		.document_count = 1,
		.replaces_grants = BUCKET_GRANTS_OF_ACL,
		.grants = &grant,
		.grant_count = 1};
	put("abc", "large", LARGE);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
	put("abc", "large", 2000);
	put("abc", "gone", 2000);
	ck_assert_int_eq(fixture_delete(fixture.store, "abc", "gone", NULL, &err), 0);
	for (int i = 0; i < MANY; i++) {
		char key[24];
		snprintf(key, sizeof(key), "many/%d", i);
		put("abc", key, 10);
	}
}

static void collect_garbage(void)
{
	struct error err = {0};
	struct gc_request request = {0};
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
}

START_TEST(a_dropped_bucket_gives_everything_back)
{
	struct error err = {0};
	make_history();
	ck_assert_int_eq(count("SELECT COUNT(*) FROM packs WHERE state = 1") > 0, 1);
	ck_assert_msg(fixture_drop_bucket(fixture.store, "abc", &err) == 0, "%s", err.text);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM inline_bytes"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM part_sets"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM segments"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM bucket_documents"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM bucket_grants"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM bucket_totals"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM gone_buckets"), 0);
	collect_garbage();
	ck_assert_int_eq(count("SELECT COUNT(*) FROM packs WHERE state = 1"), 0);
}
END_TEST

START_TEST(the_name_of_a_dropped_bucket_is_free_at_once)
{
	struct error err = {0};
	struct object object;
	struct bucket bucket;
	struct bucket_totals totals;
	make_history();
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_put(fixture.store, "abc", "k", span_text("x"), &err), -1);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "abc", "large", &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	put("abc", "large", 3000);
	fixture_sweep(fixture.store);
	ck_assert(fixture_holds(&fixture, "abc", "large", span_of(noise, 3000)));
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions"), 1);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket_totals_find(fixture.store, &bucket, 1, &totals, &err), 0);
	ck_assert(totals.files == 1 && totals.bytes == 3000);
}
END_TEST

START_TEST(a_drop_survives_a_restart_half_way)
{
	struct error err = {0};
	struct sweep sweep = {0};
	bool more = false;
	make_history();
	put("abc", "more", 10);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), 0);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(sweeper_slice(fixture.store, &sweep, &more, &err), 0);
	store_fixture_reopen(&fixture);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM gone_buckets"), 0);
}
END_TEST

START_TEST(open_uploads_go_with_a_dropped_bucket)
{
	struct error err = {0};
	struct upload_create_params params = {
		.bucket = fixture_bucket("abc"), .key = span_text("k")};
	struct upload_ref ref;
	struct uploaded_part part;
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_int_eq(fixture_upload_put(
				 fixture.store, &ref, 1, span_of(noise, LARGE), NULL, &part, &err),
		0);
	put("abc", "a", 10);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM uploads"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM part_sets"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions"), 0);
}
END_TEST

START_TEST(a_bucket_with_runs_is_not_dropped)
{
	struct error err = {0};
	put("abc", "a", 10);
	ck_assert_int_eq(fixture_open_run(fixture.store, "abc", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	fixture_sweep(fixture.store);
	ck_assert(fixture_holds(&fixture, "abc", "a", span_of(noise, 10)));
}
END_TEST

/* Versions that steps or other objects are made of outlive their bucket. A row that cannot be read
 * keeps nothing else from going. */
START_TEST(pinned_and_damaged_versions_are_hidden_not_removed)
{
	struct error err = {0};
	put("abc", "damaged", 20);
	put("abc", "pinned", 20);
	put("abc", "plain", 20);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO scratch_versions (version) SELECT sequence FROM versions WHERE key = x'70696e6e6564'",
			&err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE versions SET size = size + 1 WHERE key = x'64616d61676564'", &err),
		0);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "abc", &err), 0);
	struct sweep sweep = {0};
	bool more = true;
	for (int i = 0; i < 3 && more; i++)
		ck_assert_msg(
			sweeper_slice(fixture.store, &sweep, &more, &err) == 0, "%s", err.text);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state = 0"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM gone_buckets"), 0);
}
END_TEST

START_TEST(a_drop_is_of_one_bucket_not_of_its_name)
{
	struct error err = {0};
	struct bucket bucket;
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), 0);
	ck_assert_int_eq(
		fixture_call(bucket_drop_call(fixture.store, bucket_ref_of(&bucket)), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
}
END_TEST

START_TEST(a_renamed_bucket_takes_all_along)
{
	struct error err = {0};
	struct bucket before;
	struct bucket after;
	struct span document;
	make_history();
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &before, &err), 0);
	ck_assert_msg(fixture_rename_bucket(fixture.store, "abc", "team--new", "team", &err) == 0,
		"%s", err.text);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &after, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(bucket_find(fixture.store, fixture_bucket("team--new"), fixture.arena,
				 &after, &err),
		0);
	ck_assert_int_eq(after.id, before.id);
	ck_assert_int_eq(after.created_ms, before.created_ms);
	ck_assert_int_eq(after.versioning, BUCKET_VERSIONED);
	ck_assert(span_equal_text(after.owner, "team"));
	ck_assert(fixture_holds(&fixture, "team--new", "large", span_of(noise, 2000)));
	ck_assert_int_eq(bucket_document_find(fixture.store, fixture_bucket("team--new"),
				 BUCKET_CORS, fixture.arena, &document, &err),
		0);
	ck_assert(span_equal_text(document, "cors"));
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
}
END_TEST

START_TEST(a_bucket_is_not_renamed_onto_another)
{
	struct error err = {0};
	put("abc", "a", 10);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "mine", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "theirs", "other", &err), 0);
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "abc", "mine", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_OWNED);
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "abc", "theirs", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_TAKEN);
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "abc", "abc", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_OWNED);
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "none", "new", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert(fixture_holds(&fixture, "abc", "a", span_of(noise, 10)));
}
END_TEST

static bool expires_in(const char *bucket)
{
	const struct lifecycle_subject subject = {
		.key = span_text("k"), .size = 10, .since_ms = 1700000000000};
	struct lifecycle_expiry expiry;
	static const struct span none = {NULL, 0};
	return lifecycle_cache_expires(store_parts(fixture.store)->lifecycle_cache,
		span_text(bucket), &subject, none, fixture.arena, &expiry);
}

START_TEST(rules_follow_a_renamed_bucket_and_end_with_a_dropped_one)
{
	struct error err = {0};
	const struct bucket_document rules = {BUCKET_LIFECYCLE,
		span_text(
			"{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,\"prefix\":\"\",\"tags\":[],\"expires_markers\":false,\"expire_days\":1}]}")};
	const struct bucket_edit edit = {.documents = &rules, .document_count = 1};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
	ck_assert(expires_in("abc"));
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "abc", "new", "main", &err), 0);
	ck_assert(!expires_in("abc"));
	ck_assert(expires_in("new"));
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "new", &err), 0);
	ck_assert(!expires_in("new"));
}
END_TEST

Suite *test_bucket_drop_suite(void);
Suite *test_bucket_drop_suite(void)
{
	Suite *const suite = suite_create("bucket_drop");
	TCase *const tests = tcase_create("bucket_drop");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_dropped_bucket_gives_everything_back);
	tcase_add_test(tests, the_name_of_a_dropped_bucket_is_free_at_once);
	tcase_add_test(tests, a_drop_survives_a_restart_half_way);
	tcase_add_test(tests, open_uploads_go_with_a_dropped_bucket);
	tcase_add_test(tests, a_bucket_with_runs_is_not_dropped);
	tcase_add_test(tests, pinned_and_damaged_versions_are_hidden_not_removed);
	tcase_add_test(tests, a_drop_is_of_one_bucket_not_of_its_name);
	tcase_add_test(tests, a_renamed_bucket_takes_all_along);
	tcase_add_test(tests, a_bucket_is_not_renamed_onto_another);
	tcase_add_test(tests, rules_follow_a_renamed_bucket_and_end_with_a_dropped_one);
	suite_add_tcase(suite, tests);
	return suite;
}
