/* What a walk found is judged again when it goes. Damage and many uploads do not stop a walk. A day
 * has one second here. */
#include "storage/upkeep/lifecycle_change.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "storage/buckets/lifecycle_document.h"
#include "storage/objects/object_put.h"
#include "storage/upkeep/lifecycle_worker.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"
#include "tests/unit/unit.h"

enum { DAY = 1000 };

static struct store_fixture fixture;
static struct metrics *metrics;
static struct error err;

static void set_up(void)
{
	memset(&fixture, 0, sizeof fixture);
	metrics = metrics_new();
	fixture.metrics = metrics;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bkt", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "other", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(metrics);
}

static void set_rule(const char *bucket, struct lifecycle_rule rule)
{
	struct buffer json;
	rule.enabled = true;
	const struct lifecycle lifecycle = {&rule, 1};
	buffer_init(&json, 64 * 1024);
	lifecycle_document_print(&lifecycle, &json);
	const struct bucket_document document = {BUCKET_LIFECYCLE, buffer_span(&json)};
	const struct bucket_edit edit = {.documents = &document, .document_count = 1};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, bucket, &edit, &err), 0);
	buffer_release(&json);
}

static void set_versioning(enum bucket_versioning versioning)
{
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = versioning};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "bkt", &edit, &err), 0);
}

static int64_t put_into(const char *bucket, const char *key)
{
	struct object_put_params params = {.bucket = fixture_bucket(bucket), .key = span_text(key)};
	struct object object;
	ck_assert_msg(
		fixture_put_object(fixture.store, &params, span_text("bytes"), &object, &err) == 0,
		"%s", err.text);
	return object.sequence;
}

static int64_t put(const char *key)
{
	return put_into("bkt", key);
}

static void pass_days(unsigned days)
{
	fixture.clock.now_ms += (int64_t)days * DAY;
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store, sql);
}

static int64_t shown(void)
{
	return count("SELECT COUNT(*) FROM versions WHERE state <> 0");
}

static uint64_t judge(const struct lifecycle_item *items, size_t items_count)
{
	uint64_t removed = 0;
	const struct lifecycle_batch batch = {
		.bucket = 1, .day_ms = DAY, .items = items, .count = items_count};
	ck_assert_msg(
		lifecycle_change_run(fixture.store, &batch, &removed, &err) == 0, "%s", err.text);
	return removed;
}

static uint64_t judge_version(enum lifecycle_kind kind, int64_t sequence)
{
	const struct lifecycle_item item = {.kind = kind, .sequence = sequence};
	return judge(&item, 1);
}

static uint64_t walk(void)
{
	uint64_t removed = 0;
	ck_assert_msg(
		lifecycle_worker_walk(fixture.store, DAY, &removed, &err) == 0, "%s", err.text);
	return removed;
}

START_TEST(an_object_goes_only_when_it_is_due)
{
	const int64_t sequence = put("k");
	ck_assert_uint_eq(judge_version(LIFECYCLE_CURRENT, sequence), 0); /* no rules */
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 2});
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_CURRENT, sequence), 0);
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, sequence), 0);
	ck_assert_uint_eq(judge_version(LIFECYCLE_CURRENT, sequence), 1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_CURRENT, sequence), 0);
	ck_assert_int_eq(shown(), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_LIFECYCLE_REMOVED), 1);
}
END_TEST

START_TEST(an_older_version_goes_only_when_it_is_due)
{
	set_versioning(BUCKET_VERSIONED);
	const int64_t first = put("k");
	pass_days(5);
	const int64_t second = put("k");
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1, .noncurrent_days = 2});
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 0);
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_CURRENT, first), 0);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, second), 0);
	ck_assert_int_eq(shown(), 2);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 1);
	ck_assert_int_eq(shown(), 1);
}
END_TEST

START_TEST(an_older_version_goes_only_behind_enough_newer_ones)
{
	set_versioning(BUCKET_VERSIONED);
	const int64_t first = put("k");
	put("k");
	put("l");
	put("l");
	put("k");
	set_rule("bkt", (struct lifecycle_rule){.noncurrent_days = 1, .noncurrent_newer = 2});
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 0);
	put("k");
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 1);
}
END_TEST

/* Catalogs of version 0.1 do not say when a version ceased to be current. */
START_TEST(an_older_version_without_a_moment_is_as_old_as_itself)
{
	set_versioning(BUCKET_VERSIONED);
	const int64_t first = put("k");
	put("k");
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE versions SET retired_ms = NULL", &err), 0);
	set_rule("bkt", (struct lifecycle_rule){.noncurrent_days = 1});
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 0);
	pass_days(1);
	ck_assert_uint_eq(judge_version(LIFECYCLE_OLDER, first), 1);
}
END_TEST

START_TEST(a_marker_has_its_own_id_and_moment)
{
	set_versioning(BUCKET_VERSIONED);
	put("k");
	put("l");
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1});
	pass_days(3);
	ck_assert_uint_eq(walk(), 2);
	ck_assert_int_eq(
		count("SELECT COUNT(DISTINCT id) FROM versions WHERE is_marker = 1 AND id <> zeroblob(16)"),
		2);
	ck_assert_int_eq(count("SELECT MIN(modified_ms) FROM versions WHERE is_marker = 1"),
		fixture.clock.now_ms);
	ck_assert_int_eq(count("SELECT MIN(retired_ms) FROM versions WHERE is_marker = 0"),
		fixture.clock.now_ms);
}
END_TEST

START_TEST(keys_of_the_server_stay)
{
	put("run/anchors/step_000005/model");
	put("plain");
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1});
	ck_assert_int_eq(fixture_open_run(fixture.store, "bkt", "run", NULL, &err), 0);
	pass_days(2);
	ck_assert_uint_eq(walk(), 1);
	ck_assert_int_eq(shown(), 1);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM versions WHERE key = CAST('plain' AS BLOB)"), 0);
}
END_TEST

START_TEST(a_version_that_cannot_be_read_is_passed_over)
{
	const struct lifecycle_item items[] = {{.kind = LIFECYCLE_CURRENT, .sequence = put("a")},
		{.kind = LIFECYCLE_CURRENT, .sequence = put("b")}};
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1});
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE versions SET size = size + 1 WHERE key = x'61'", &err),
		0);
	pass_days(2);
	ck_assert_uint_eq(judge(items, 2), 1);
	ck_assert_int_eq(shown(), 1);
	ck_assert_uint_eq(walk(), 0);
}
END_TEST

static struct upload_ref begin(const char *key)
{
	struct upload_create_params params = {.bucket = fixture_bucket("bkt"),
		.key = span_text(key),
		.initiator = span_text("main")};
	struct upload_ref ref;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &ref, &err) == 0, "%s", err.text);
	return ref;
}

START_TEST(an_upload_goes_only_when_it_is_due_with_its_parts)
{
	const struct upload_ref ref = begin("k");
	const struct lifecycle_item item = {
		.kind = LIFECYCLE_UPLOAD, .key = span_text("k"), .upload = ref.id};
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text("part"), NULL, NULL, &err), 0);
	set_rule("bkt", (struct lifecycle_rule){.abort_days = 1});
	ck_assert_uint_eq(judge(&item, 1), 0);
	pass_days(1);
	ck_assert_uint_eq(judge(&item, 1), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM uploads"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM part_sets"), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM parts"), 0);
}
END_TEST

/* Its parts belong to an object by now. */
START_TEST(an_upload_that_is_completed_stays)
{
	const struct upload_ref ref = begin("k");
	const struct lifecycle_item item = {
		.kind = LIFECYCLE_UPLOAD, .key = span_text("k"), .upload = ref.id};
	struct uploaded_part part;
	struct upload_result result;
	struct upload_fault fault;
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text("part"), NULL, &part, &err),
		0);
	struct upload_listed_part listed = {.number = 1};
	memcpy(listed.etag, part.etag, sizeof listed.etag);
	struct upload_complete_params params = {.ref = ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
	set_rule("bkt", (struct lifecycle_rule){.abort_days = 1});
	pass_days(5);
	ck_assert_uint_eq(judge(&item, 1), 0);
	ck_assert(fixture_holds(&fixture, "bkt", "k", span_text("part")));
}
END_TEST

/* Many uploads of one key come before those that are due: more than one slice of each. */
START_TEST(a_walk_goes_on_over_slices_of_uploads)
{
	static const char SQL_MORE[] =
		"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
		" INSERT INTO uploads (upload_id, bucket, key, state, created_ms, initiator, headers, acl, storage_class, checksum_kind, etag_policy, part_set,"
		" revision) SELECT randomblob(16), u.bucket, u.key, 0, u.created_ms, u.initiator, u.headers, 0, 0, u.checksum_kind, u.etag_policy,"
		" 1000 * u.id + n.i, 0 FROM n, uploads u";
	begin("kept");
	begin("logs/k");
	ck_assert_msg(fixture_run(fixture.store, SQL_MORE, &err) == 0, "%s", err.text);
	set_rule("bkt",
		(struct lifecycle_rule){
			.has_prefix = true, .prefix = span_text("logs/"), .abort_days = 1});
	pass_days(1);
	ck_assert_uint_eq(walk(), 601);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM uploads WHERE key = CAST('kept' AS BLOB)"), 601);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM uploads"), 601);
}
END_TEST

START_TEST(a_bucket_that_fails_keeps_no_other_waiting)
{
	uint64_t removed = 0;
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1});
	set_rule("other", (struct lifecycle_rule){.expire_days = 1});
	put("k");
	put_into("other", "k");
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE bucket_documents SET document = x'7b' WHERE bucket = 1", &err),
		0);
	pass_days(2);
	ck_assert_int_eq(lifecycle_worker_walk(fixture.store, DAY, &removed, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_uint_eq(removed, 1);
	ck_assert_int_eq(count("SELECT SUM(bucket) FROM versions"), 1);
}
END_TEST

START_TEST(a_change_that_fails_is_told)
{
	uint64_t removed = 0;
	set_rule("bkt", (struct lifecycle_rule){.expire_days = 1});
	put("k");
	pass_days(2);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"CREATE TRIGGER fault BEFORE DELETE ON versions BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END",
			&err),
		0);
	ck_assert_int_eq(lifecycle_worker_walk(fixture.store, DAY, &removed, &err), -1);
	ck_assert_uint_eq(removed, 0);
	ck_assert_int_eq(shown(), 1);
	ck_assert_int_eq(fixture_run(fixture.store, "DROP TRIGGER fault", &err), 0);
	ck_assert_uint_eq(walk(), 1);
}
END_TEST

static void await_none(void)
{
	const struct timespec moment = {0, 1000000};
	for (int i = 0; i < 20000 && shown() > 0; i++)
		nanosleep(&moment, NULL);
	ck_assert_int_eq(shown(), 0);
}

START_TEST(the_worker_walks_again_and_again)
{
	set_rule("bkt", (struct lifecycle_rule){.has_expire_date = true, .expire_date_ms = 1000});
	struct lifecycle_worker *const worker = lifecycle_worker_start(fixture.store, 2, DAY);
	for (int i = 0; i < 3; i++) {
		put("k");
		await_none();
	}
	lifecycle_worker_stop(worker);
}
END_TEST

Suite *test_lifecycle_change_suite(void);
Suite *test_lifecycle_change_suite(void)
{
	Suite *const suite = suite_create("lifecycle_change");
	TCase *const tests = tcase_create("lifecycle_change");
	tcase_set_timeout(tests, 20);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, an_object_goes_only_when_it_is_due);
	tcase_add_test(tests, an_older_version_goes_only_when_it_is_due);
	tcase_add_test(tests, an_older_version_goes_only_behind_enough_newer_ones);
	tcase_add_test(tests, an_older_version_without_a_moment_is_as_old_as_itself);
	tcase_add_test(tests, a_marker_has_its_own_id_and_moment);
	tcase_add_test(tests, keys_of_the_server_stay);
	tcase_add_test(tests, a_version_that_cannot_be_read_is_passed_over);
	tcase_add_test(tests, an_upload_goes_only_when_it_is_due_with_its_parts);
	tcase_add_test(tests, an_upload_that_is_completed_stays);
	tcase_add_test(tests, a_walk_goes_on_over_slices_of_uploads);
	tcase_add_test(tests, a_bucket_that_fails_keeps_no_other_waiting);
	tcase_add_test(tests, a_change_that_fails_is_told);
	tcase_add_test(tests, the_worker_walks_again_and_again);
	suite_add_tcase(suite, tests);
	return suite;
}
