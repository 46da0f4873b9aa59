/* Tests that the sweeper removes the remains of uploads that have ended. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/uploads/upload_row.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

static struct store_fixture fixture;
static struct error err;
static struct upload_ref ref;
static struct upload_listed_part listed;

/* An upload of one part, still open. */
static void begin(void)
{
	struct upload_create_params params = {.bucket = fixture_bucket("weights"),
		.key = span_text("model"),
		.initiator = span_text("main")};
	struct uploaded_part part;
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text("bytes"), NULL, &part, &err),
		0);
	listed = fixture_upload_listed(&part);
}

static void set_up(void)
{
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
	begin();
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int complete(void)
{
	return fixture_upload_complete_parts(fixture.store, &ref, &listed, 1, &err);
}

/* More rows than one slice removes. */
START_TEST(all_parts_that_are_not_listed_go)
{
	static const char SQL_MORE[] =
		"WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
		" INSERT INTO parts (part_set, number, size, md5, digest, file_hash, sum, checksum_value, modified_ms)"
		" SELECT p.part_set, n.i, p.size, p.md5, p.digest, p.file_hash, p.sum, p.checksum_value, p.modified_ms FROM parts p, n";
	ck_assert_msg(fixture_run(fixture.store, SQL_MORE, &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE part_sets SET row_count = row_count + 2999", &err),
		0);
	ck_assert_msg(complete() == 0, "%s", err.text);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM parts"), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT row_count - (SELECT COUNT(*) FROM segments) FROM part_sets"),
		1);
	ck_assert(fixture_holds(&fixture, "weights", "model", span_text("bytes")));
}
END_TEST

START_TEST(a_result_is_kept_for_a_day)
{
	ck_assert_msg(complete() == 0, "%s", err.text);
	fixture.clock.now_ms += UPLOAD_KEPT_MS - 1000;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(complete(), 0);
	fixture.clock.now_ms += 2000;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(complete(), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
}
END_TEST

/* The older upload is removed, and no other one with it. */
START_TEST(each_result_is_kept_for_its_own_day)
{
	const struct upload_ref older = ref;
	const struct upload_listed_part part_of_older = listed;
	ck_assert_msg(complete() == 0, "%s", err.text);
	fixture.clock.now_ms += UPLOAD_KEPT_MS - 1000;
	begin();
	ck_assert_msg(complete() == 0, "%s", err.text);
	fixture.clock.now_ms += 2000;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(complete(), 0);
	ref = older;
	listed = part_of_older;
	ck_assert_int_eq(complete(), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
}
END_TEST

START_TEST(an_open_upload_stays)
{
	fixture.clock.now_ms += (int64_t)100 * UPLOAD_KEPT_MS;
	fixture_sweep(fixture.store);
	ck_assert_msg(complete() == 0, "%s", err.text);
}
END_TEST

Suite *test_upload_sweep_suite(void);
Suite *test_upload_sweep_suite(void)
{
	Suite *const suite = suite_create("upload_sweep");
	TCase *const tests = tcase_create("upload_sweep");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, all_parts_that_are_not_listed_go);
	tcase_add_test(tests, a_result_is_kept_for_a_day);
	tcase_add_test(tests, each_result_is_kept_for_its_own_day);
	tcase_add_test(tests, an_open_upload_stays);
	suite_add_tcase(suite, tests);
	return suite;
}
