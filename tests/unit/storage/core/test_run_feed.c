/* The feed of changes of runs: what readers learn of it, and when. */
#include "tests/unit/unit.h"

#include "storage/core/run_feed.h"

enum { ROOM = 8 };

static struct run_feed *feed;
static struct arena *arena;
static struct run_change changes[ROOM];

static void set_up(void)
{
	feed = run_feed_new();
	arena = arena_new(1024 * 1024);
}

static void tear_down(void)
{
	run_feed_free(feed);
	arena_free(arena);
}

static size_t read_since(uint64_t after, size_t limit)
{
	struct run_feed_page page = {.after = after, .until = run_feed_last(feed), .limit = limit};
	ck_assert(run_feed_read(feed, &page, arena, changes));
	return page.count;
}

static void note_end(const char *bucket, const char *name)
{
	run_feed_note_end(feed,
		&(struct run_change){.run = 5,
			.bucket_id = 3,
			.bucket = span_text(bucket),
			.name = span_text(name)});
}

START_TEST(notes_are_shown_together_and_each_run_once)
{
	run_feed_note(feed, 5);
	ck_assert_uint_eq(run_feed_last(feed), 0);
	run_feed_note(feed, 7);
	run_feed_note(feed, 5);
	run_feed_show(feed);
	ck_assert_uint_eq(read_since(0, ROOM), 2);
	ck_assert(changes[0].run == 5 && changes[1].run == 7);
	ck_assert_uint_eq(read_since(run_feed_last(feed), ROOM), 0);
}
END_TEST

START_TEST(pages_go_on_where_the_last_one_ended)
{
	for (int run = 1; run <= 3; run++)
		run_feed_note(feed, run);
	run_feed_show(feed);
	struct run_feed_page page = {.until = 3, .limit = 2};
	ck_assert(run_feed_read(feed, &page, arena, changes));
	ck_assert(page.count == 2 && page.after == 2);
	run_feed_note(feed, 1);
	run_feed_show(feed);
	ck_assert(run_feed_read(feed, &page, arena, changes));
	ck_assert(page.count == 1 && changes[0].run == 3 && page.after == 3);
}
END_TEST

START_TEST(the_end_of_a_run_keeps_its_names)
{
	run_feed_note(feed, 5);
	note_end("models", "policy");
	run_feed_show(feed);
	ck_assert_uint_eq(read_since(0, ROOM), 2);
	ck_assert(!changes[0].has_ended && changes[1].has_ended);
	ck_assert(span_equal_text(changes[1].bucket, "models"));
	ck_assert(span_equal_text(changes[1].name, "policy"));
	ck_assert_int_eq(changes[1].bucket_id, 3);
}
END_TEST

START_TEST(a_run_with_a_new_name_is_told_after_the_end_of_the_old_one)
{
	note_end("models", "policy");
	run_feed_note(feed, 5);
	run_feed_note(feed, 5);
	run_feed_show(feed);
	ck_assert_uint_eq(read_since(0, ROOM), 2);
	ck_assert(changes[0].has_ended && !changes[1].has_ended);
	ck_assert(changes[1].run == 5);
}
END_TEST

START_TEST(a_reader_too_far_behind_is_told)
{
	struct run_feed_page page = {.limit = ROOM};
	for (int i = 0; i < RUN_FEED_CHANGES; i++)
		note_end("b", "r");
	run_feed_show(feed);
	page.until = run_feed_last(feed);
	ck_assert(run_feed_read(feed, &page, arena, changes));
	page.after = 0;
	run_feed_note(feed, 5);
	ck_assert(!run_feed_read(feed, &page, arena, changes));
	ck_assert_uint_eq(page.count, 0);
	page.after = 1;
	ck_assert(run_feed_read(feed, &page, arena, changes));
}
END_TEST

Suite *test_run_feed_suite(void);
Suite *test_run_feed_suite(void)
{
	Suite *const suite = suite_create("run_feed");
	TCase *const tests = tcase_create("run_feed");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, notes_are_shown_together_and_each_run_once);
	tcase_add_test(tests, pages_go_on_where_the_last_one_ended);
	tcase_add_test(tests, the_end_of_a_run_keeps_its_names);
	tcase_add_test(tests, a_run_with_a_new_name_is_told_after_the_end_of_the_old_one);
	tcase_add_test(tests, a_reader_too_far_behind_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
