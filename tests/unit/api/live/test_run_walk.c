/* The walk over the runs of all buckets, as GET /-/overview makes it to count them for
 * a key that is not the root key. */
#include "tests/unit/api/face_fixture.h"

#include "storage/core/committer.h"
#include "storage/core/store.h"

enum { MANY_RUNS = 3000, ARENA_BYTES = 64 * 1024 };

static struct face_fixture fixture;

static int add_runs(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	return db_run_script(db,
		arena_format(fixture.arena,
			"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
			" INSERT INTO runs (bucket, name, epoch, keep_steps, steps, bytes, created_ms)"
			" SELECT id, CAST('a-run-with-a-name-of-some-length-' || i AS BLOB), 1, 0, 0, 0, 0"
			" FROM n, buckets",
			MANY_RUNS),
		err);
}

static void setup(void)
{
	struct error err = {0};
	struct change change = {.apply = add_runs};
	face_fixture_open(&fixture);
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

START_TEST(a_long_walk_fits_the_memory_of_a_short_one)
{
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_GET, "/-/overview");
	fake_exchange_add(fake, "Authorization",
		arena_format(fixture.arena, "Bearer %s", face_fixture_key(&fixture, "main", NULL)));
	struct arena *const own = fake->exchange.arena;
	struct arena *const small = arena_new(ARENA_BYTES);
	fake->exchange.arena = small;
	ck_assert_int_eq(fake_exchange_run(fake, span_text("")), 200);
	face_fixture_assert_holds(fake, arena_format(fixture.arena, "\"runs\":%d,", MANY_RUNS));
	ck_assert(!arena_overflowed(small));
	fake->exchange.arena = own;
	fake_exchange_free(fake);
	arena_free(small);
}
END_TEST

Suite *test_run_walk_suite(void);
Suite *test_run_walk_suite(void)
{
	Suite *const suite = suite_create("run_walk");
	TCase *const tests = tcase_create("run_walk");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_long_walk_fits_the_memory_of_a_short_one);
	suite_add_tcase(suite, tests);
	return suite;
}
