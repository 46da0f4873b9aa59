/* A commit whose sync fails: its sender is told of a failure, but the log holds its frames, and the
 * next start may take them. So nothing that they lead to may go before that start has judged. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/gc.h"
#include "storage/store_internal.h"
#include "tests/unit/storage/log_sync_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum { SMALL = 20000, LARGE = 500000, KEYS = 8 };

static struct store_fixture fixture;
static struct store_fixture next; /* the start after a kill, on a copy */

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	log_syncs_fail(0, NULL);
	store_fixture_close(&fixture);
}

static int put(const char *const key, const size_t size, const uint64_t seed, struct error *const err)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	const int result = fixture_put(fixture.store, "bucket", key, span_of(bytes, size), err);
	free(bytes);
	return result;
}

static void start_on(char *const folder)
{
	next = fixture;
	next.folder = folder;
	next.arena = arena_new(64 * 1024 * 1024);
	store_fixture_start(&next);
}

static void start_next(void)
{
	start_on(unit_scratch_copy(fixture.folder));
}

static void expect_next(const char *const key, const size_t size, const uint64_t seed)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_holds(&next, "bucket", key, span_of(bytes, size)), "%s", key);
	free(bytes);
}

static const size_t sizes[] = {300, SMALL, LARGE}; /* in the catalog, in the shared pack, in its own */

START_TEST(an_upload_in_doubt_is_whole_where_it_comes_back)
{
	struct error err = {0};
	ck_assert_int_eq(put("before", SMALL, 1, &err), 0);
	log_syncs_fail(1, NULL);
	ck_assert_int_eq(put("doubtful", sizes[_i], 2, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	start_next();
	expect_next("before", SMALL, 1);
	expect_next("doubtful", sizes[_i], 2); /* the kill left it in the log */
	store_fixture_close(&next);
	ck_assert_int_eq(put("after", SMALL, 3, &err), 0);
	start_next();
	expect_next("before", SMALL, 1);
	expect_next("after", SMALL, 3);
	store_fixture_close(&next);
}
END_TEST

static char *kept; /* the store's folder when the commit broke off */

static void keep_catalog(void)
{
	kept = unit_scratch_copy(fixture.folder);
}

/* Its packs become what they are now: as if the kill had come now, before another commit. */
static void bring_packs_up_to_date(void)
{
	char command[1024];
	ck_assert_ptr_ne(kept, NULL);
	snprintf(command, sizeof command, "rm -r '%s/packs' && cp -a '%s/packs' '%s/'", kept, fixture.folder, kept);
	ck_assert_int_eq(system(command), 0);
}

/* One pack of which little lives. */
START_TEST(a_compaction_in_doubt_leaves_both_files)
{
	struct error err = {0};
	struct gc_request request = {0};
	char key[2] = "a";
	for (unsigned i = 0; i < KEYS; i++, key[0]++)
		ck_assert_int_eq(put(key, SMALL, i, &err), 0);
	for (key[0] = 'b'; key[0] < 'a' + KEYS; key[0]++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	log_syncs_fail(1, keep_catalog);
	gc_run(store_gc(fixture.store), &request, &err);
	ck_assert_uint_eq(request.report.packs_compacted, 0);
	bring_packs_up_to_date();
	start_on(kept);
	ck_assert_int_eq(fixture_count(next.store, "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL"), 1);
	expect_next("a", SMALL, 0);
	store_fixture_close(&next);
	ck_assert_int_eq(gc_run(store_gc(fixture.store), &request, &err), 0);
	start_next();
	expect_next("a", SMALL, 0);
	store_fixture_close(&next);
}
END_TEST

Suite *test_commit_doubt_suite(void);

Suite *test_commit_doubt_suite(void)
{
	Suite *const suite = suite_create("commit_doubt");
	TCase *const tests = tcase_create("commit_doubt");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, an_upload_in_doubt_is_whole_where_it_comes_back, 0,
		sizeof sizes / sizeof sizes[0]);
	tcase_add_test(tests, a_compaction_in_doubt_leaves_both_files);
	suite_add_tcase(suite, tests);
	return suite;
}
