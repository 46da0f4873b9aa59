/* Events that wait for their receivers. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "storage/catalog.h"
#include "storage/webhook_row.h"

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

static uint64_t add(const int64_t run, const char *const body, const int64_t due_ms)
{
	uint64_t dropped = 99;
	ck_assert_msg(webhook_row_add(db, run, span_text(body), due_ms, &dropped, &err) == 0, "%s", err.text);
	return dropped;
}

static struct webhook_event first(void)
{
	struct webhook_event event;
	ck_assert_int_eq(webhook_row_find_first(db, arena, &event, &err), 1);
	return event;
}

static void expect_first(const char *const body)
{
	const struct webhook_event event = first();
	ck_assert_msg(span_equal_text(event.body, body), "%.*s", (int)event.body.len, (const char *)event.body.data);
}

START_TEST(what_is_due_first_comes_first)
{
	struct webhook_event event;
	ck_assert_int_eq(webhook_row_find_first(db, arena, &event, &err), 0);
	add(1, "late", 300);
	add(2, "early", 100);
	add(1, "as early", 100);
	expect_first("early");
	ck_assert(first().run == 2 && first().attempts == 0 && first().due_ms == 100);
	ck_assert_int_eq(webhook_row_remove(db, first().id, &err), 0);
	expect_first("as early");
	ck_assert_int_eq(webhook_row_postpone(db, first().id, 400, &err), 0);
	expect_first("late");
	ck_assert_int_eq(webhook_row_remove(db, first().id, &err), 0);
	expect_first("as early");
	ck_assert(first().attempts == 1 && first().due_ms == 400);
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
	expect_first("of another run");
	ck_assert_int_eq(webhook_row_remove_of_run(db, 2, &err), 0);
	expect_first("1");
}
END_TEST

START_TEST(a_run_takes_its_own_events_along)
{
	for (int64_t run = 1; run <= 3; run++)
		add(run, run == 2 ? "two" : "other", run == 2 ? 50 : 100);
	ck_assert_int_eq(webhook_row_remove_of_run(db, 2, &err), 0);
	expect_first("other");
	ck_assert_int_eq(webhook_row_remove_of_run(db, 1, &err), 0);
	ck_assert_int_eq(first().run, 3);
}
END_TEST

Suite *test_webhook_row_suite(void);
Suite *test_webhook_row_suite(void)
{
	Suite *const suite = suite_create("webhook_row");
	TCase *const tests = tcase_create("webhook_row");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_is_due_first_comes_first);
	tcase_add_test(tests, the_oldest_of_too_many_goes);
	tcase_add_test(tests, a_run_takes_its_own_events_along);
	suite_add_tcase(suite, tests);
	return suite;
}
