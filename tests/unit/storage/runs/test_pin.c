/* Pins in the catalog: how many there may be, for how long they last, and what follows from
 * them. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/run_tables/pin_row.h"
#include "storage/runs/pin.h"
#include "storage/step_jobs/fleet_worker.h"
#include "tests/unit/storage/run_fixture.h"

enum { MANY = 1100 };

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", NULL, &err), 0);
	for (unsigned step = 0; step <= 3; step++) {
		const struct step_message message =
			run_fixture_prepare(&fixture, step, step == 0, step == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &message);
	}
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int put(const char *name, uint64_t step, uint64_t ttl_s)
{
	const struct pin_message pin = {.name = span_text(name), .step = step, .ttl_s = ttl_s};
	return fixture_call(pin_put_call(fixture.store, &run_fixture_ref, &pin), &err);
}

static int take_away(const char *name)
{
	return fixture_call(
		pin_remove_call(fixture.store, &run_fixture_ref, span_text(name)), &err);
}

/* Adds pins p1, p2, ... of a run, all of step 0. */
static void add_many(int64_t run, int count, const char *expires)
{
	ck_assert_int_eq(
		fixture_run(fixture.store,
			arena_format(fixture.arena,
				"INSERT INTO pins (run, name, step, expires_ms, created_ms)"
				" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
				" SELECT %lld, CAST('p' || i AS BLOB), 0, %s, 0 FROM n",
				count, (long long)run, expires),
			&err),
		0);
}

static int64_t count(const char *where)
{
	return fixture_count(fixture.store,
		arena_format(fixture.arena, "SELECT COUNT(*) FROM pins WHERE %s", where));
}

START_TEST(a_run_with_all_its_pins_may_move_them)
{
	add_many(1, PINS_OF_RUN_MAX - 1, "NULL");
	add_many(2, 5, "NULL");
	ck_assert_int_eq(put("last", 1, 0), 0);
	ck_assert_int_eq(put("beyond", 1, 0), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(put("p7", 2, 0), 0);
	ck_assert_int_eq(count("step = 2"), 1);
	ck_assert_int_eq(take_away("p8"), 0);
	ck_assert_int_eq(put("beyond", 1, 0), 0);
	ck_assert_int_eq(count("run = 2"), 5);
}
END_TEST

START_TEST(a_pin_that_is_put_again_lasts_as_it_says_now)
{
	const int64_t now = fixture.clock.now_ms;
	struct pin_message pin;
	ck_assert_int_eq(put("a", 1, 1), 0);
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), 0);
	ck_assert_int_eq(pin.expires_ms, now + 1000);
	ck_assert_int_eq(put("a", 2, 60), 0);
	fixture.clock.now_ms += 59999;
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), 0);
	ck_assert(pin.expires_ms == now + 60000 && pin.step == 2);
	fixture.clock.now_ms += 1;
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(put("a", 2, 0), 0);
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), 0);
	ck_assert_int_eq(pin.expires_ms, 0);
}
END_TEST

START_TEST(a_pinned_step_gets_an_anchor)
{
	ck_assert_int_eq(put("a", 2, 0), 0);
	ck_assert_int_eq(put("b", 0, 0), 0); /* the step has its own anchor */
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM steps WHERE wants_made IS NOT NULL"),
		1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT step FROM steps WHERE wants_made IS NOT NULL"),
		2);
}
END_TEST

START_TEST(pins_of_other_runs_and_steps_are_others)
{
	char name[PIN_NAME_BYTES];
	add_many(2, 3, "NULL");
	ck_assert_int_eq(put("p1", 2, 0), 0);
	ck_assert_int_eq(put("q", 2, 0), 0);
	struct db *const db = store_reader_take(fixture.store, &err);
	const int64_t now = fixture.clock.now_ms;
	ck_assert_int_eq(pin_row_find_step(db, 1, 1, now, name, &err), 0);
	ck_assert_int_eq(pin_row_find_step(db, 1, 3, now, name, &err), 0);
	ck_assert_int_eq(pin_row_find_step(db, 1, 2, now, name, &err), 1);
	store_reader_give(fixture.store, db);
	ck_assert_str_eq(name, "p1");
	ck_assert_int_eq(take_away("p1"), 0);
	ck_assert_int_eq(take_away("p2"), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(count("run = 2"), 3);
	ck_assert_int_eq(count("run = 1"), 1);
}
END_TEST

START_TEST(a_round_takes_all_that_are_over)
{
	const char *const now =
		arena_format(fixture.arena, "%lld", (long long)fixture.clock.now_ms);
	add_many(1, MANY, now);
	add_many(2, 5, arena_format(fixture.arena, "%s + 1", now));
	ck_assert_int_eq(put("lasts", 1, 0), 0);
	ck_assert_int_eq(fleet_worker_round(fixture.store, false, &err), 0);
	ck_assert_int_eq(count("run = 1"), 1);
	ck_assert_int_eq(count("run = 2"), 5);
}
END_TEST

START_TEST(an_ended_run_leaves_none_and_takes_none_of_others)
{
	add_many(1, MANY, "NULL");
	add_many(2, 5, "NULL");
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("run = 1"), 0);
	ck_assert_int_eq(count("run = 2"), 5);
}
END_TEST

Suite *test_pin_suite(void);
Suite *test_pin_suite(void)
{
	Suite *const suite = suite_create("pin");
	TCase *const tests = tcase_create("pin");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_run_with_all_its_pins_may_move_them);
	tcase_add_test(tests, a_pin_that_is_put_again_lasts_as_it_says_now);
	tcase_add_test(tests, a_pinned_step_gets_an_anchor);
	tcase_add_test(tests, pins_of_other_runs_and_steps_are_others);
	tcase_add_test(tests, a_round_takes_all_that_are_over);
	tcase_add_test(tests, an_ended_run_leaves_none_and_takes_none_of_others);
	suite_add_tcase(suite, tests);
	return suite;
}
