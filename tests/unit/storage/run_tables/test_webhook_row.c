/* Events that wait to be sent to webhooks. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "storage/run_tables/webhook_row.h"
#include "storage/start/catalog.h"

static char *folder;
static struct db *db;
static struct arena *arena;
static struct error err;

static void set_up(void)
{
	char path[512];
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/catalog.db", folder);
	db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_int_eq(db_begin(db, &err), 0);
	arena = arena_new(1024 * 1024);
}

static void tear_down(void)
{
	arena_free(arena);
	db_rollback(db);
	db_close(db);
	unit_scratch_remove(folder);
}

static uint64_t add(int64_t run, const char *body, int64_t due_ms)
{
	uint64_t dropped = 99;
	ck_assert_msg(webhook_row_add(db, run, span_text(body), due_ms, &dropped, &err) == 0, "%s",
		err.text);
	return dropped;
}

enum { LATE_MS = 1000 };

static struct webhook_event first_of(int64_t run)
{
	struct webhook_event event;
	ck_assert_int_eq(webhook_row_find_due(db, run, LATE_MS, arena, &event, &err), 1);
	return event;
}

static void expect_first(int64_t run, const char *body)
{
	const struct webhook_event event = first_of(run);
	ck_assert_msg(span_equal_text(event.body, body), "%.*s", (int)event.body.len,
		(const char *)event.body.data);
}

START_TEST(what_of_a_run_is_due_first_comes_first)
{
	struct webhook_event event;
	ck_assert_int_eq(webhook_row_find_due(db, 1, LATE_MS, arena, &event, &err), 0);
	add(1, "late", 300);
	add(2, "of another run", 50);
	add(1, "early", 100);
	add(1, "as early", 100);
	expect_first(1, "early");
	ck_assert(first_of(1).run == 1 && first_of(1).attempts == 0 && first_of(1).due_ms == 100);
	ck_assert_int_eq(webhook_row_find_due(db, 1, 99, arena, &event, &err), 0);
	ck_assert_int_eq(webhook_row_find_due(db, 1, 100, arena, &event, &err), 1);
	ck_assert_int_eq(webhook_row_remove(db, first_of(1).id, &err), 0);
	expect_first(1, "as early");
	ck_assert_int_eq(webhook_row_postpone(db, first_of(1).id, 400, &err), 0);
	expect_first(1, "late");
	ck_assert_int_eq(webhook_row_remove(db, first_of(1).id, &err), 0);
	expect_first(1, "as early");
	ck_assert(first_of(1).attempts == 1 && first_of(1).due_ms == 400);
}
END_TEST

START_TEST(runs_of_which_something_waits)
{
	struct webhook_run run = {.run = 99, .account = 99};
	ck_assert_int_eq(webhook_row_next_run(db, 0, &run, &err), 0);
	ck_assert_int_eq(
		db_run_script(db,
			"INSERT INTO accounts (id, namespace, created_ms) VALUES (5, 'a', 0);"
			"INSERT INTO buckets (id, name, account, created_ms) VALUES (7, 'b', 5, 0);"
			"INSERT INTO runs (id, bucket, name, epoch, keep_steps, steps, bytes, created_ms) VALUES (2, 7, 'r', 0, 0, 0, 0, 0)",
			&err),
		0);
	add(3, "of a run that is gone", 2 * LATE_MS);
	add(2, "one", 100);
	add(2, "two", 100);
	ck_assert_int_eq(webhook_row_next_run(db, 0, &run, &err), 1);
	ck_assert(run.run == 2 && run.account == 5);
	ck_assert_int_eq(webhook_row_next_run(db, 2, &run, &err), 1);
	ck_assert(run.run == 3 && run.account == 0);
	ck_assert_int_eq(webhook_row_next_run(db, 3, &run, &err), 0);
}
END_TEST

START_TEST(the_oldest_of_too_many_goes)
{
	char body[16];
	add(2, "of another run", 50);
	for (int i = 0; i < WEBHOOK_EVENTS_MAX; i++) {
		snprintf(body, sizeof body, "%d", i);
		ck_assert_uint_eq(add(1, body, 100), 0);
	}
	ck_assert_uint_eq(add(2, "more of it", 60), 0);
	ck_assert_uint_eq(add(1, "newest", 100), 1);
	expect_first(2, "of another run");
	expect_first(1, "1");
}
END_TEST

START_TEST(a_run_takes_its_own_events_along)
{
	struct webhook_event event;
	for (int64_t run = 1; run <= 3; run++)
		add(run, run == 2 ? "two" : "other", run == 2 ? 50 : 100);
	ck_assert_int_eq(webhook_row_remove_of_run(db, 2, &err), 0);
	ck_assert_int_eq(webhook_row_find_due(db, 2, LATE_MS, arena, &event, &err), 0);
	expect_first(1, "other");
	expect_first(3, "other");
}
END_TEST

Suite *test_webhook_row_suite(void);
Suite *test_webhook_row_suite(void)
{
	Suite *const suite = suite_create("webhook_row");
	TCase *const tests = tcase_create("webhook_row");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_of_a_run_is_due_first_comes_first);
	tcase_add_test(tests, runs_of_which_something_waits);
	tcase_add_test(tests, the_oldest_of_too_many_goes);
	tcase_add_test(tests, a_run_takes_its_own_events_along);
	suite_add_tcase(suite, tests);
	return suite;
}
