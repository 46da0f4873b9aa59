/* The steps that are kept for readers of paths: for how long, how ranges are joined, and that runs
 * do not mix. */
#include "storage/run_tables/path_hold.h"

#include "tests/unit/unit.h"

Suite *test_path_hold_suite(void);

enum { MINUTE_MS = 60 * 1000, MANY_RUNS = 100, SLICE_RANGES = 4 };

static struct clock_fake now;
static struct path_hold *hold;
static struct step_range held[PATH_HOLD_RANGES_MAX];

static void set_up(void)
{
	clock_fake_init(&now, 0);
	hold = path_hold_new(&now.source);
}

static void tear_down(void)
{
	path_hold_free(hold);
}

static void add(int64_t run, uint64_t first, uint64_t last)
{
	path_hold_add(hold, run, (struct step_range){first, last});
}

/* The run has `count` ranges, and the first one is as given. */
static void expect(int64_t run, size_t count, uint64_t first, uint64_t last)
{
	ck_assert_uint_eq(path_hold_ranges(hold, run, held), count);
	ck_assert(count == 0 || (held[0].first == first && held[0].last == last));
}

START_TEST(a_range_is_held_for_a_quarter_of_an_hour)
{
	now.now_ms = MINUTE_MS - 1; /* at the end of its minute */
	add(1, 3, 5);
	now.now_ms += PATH_HOLD_MS;
	expect(1, 1, 3, 5);
	now.now_ms += 1;
	expect(1, 0, 0, 0);
}
END_TEST

/* The slice of an old minute is used again. */
START_TEST(a_new_minute_begins_empty)
{
	add(1, 3, 5);
	now.now_ms += 16 * MINUTE_MS;
	add(1, 100, 100);
	expect(1, 1, 100, 100);
	now.now_ms += 15 * MINUTE_MS;
	expect(1, 1, 100, 100);
	now.now_ms += MINUTE_MS;
	expect(1, 0, 0, 0);
}
END_TEST

START_TEST(minutes_are_told_as_one)
{
	add(1, 7, 9);
	now.now_ms += MINUTE_MS;
	add(1, 3, 6);
	now.now_ms += MINUTE_MS;
	add(1, 20, 21);
	expect(1, 2, 3, 9);
	ck_assert(held[1].first == 20 && held[1].last == 21);
}
END_TEST

START_TEST(every_minute_may_be_full)
{
	for (uint64_t minute = 0; minute < 16; minute++, now.now_ms += MINUTE_MS)
		for (uint64_t i = 0; i < SLICE_RANGES; i++)
			add(1, 1000 * minute + 10 * i, 1000 * minute + 10 * i);
	now.now_ms -= MINUTE_MS;
	expect(1, 16 * SLICE_RANGES, 0, 0);
	ck_assert_uint_eq(held[16 * SLICE_RANGES - 1].first, 15030);
}
END_TEST

/* A range that is added to 10, 20, 30 and 40, and the range that results: it is joined with the
 * nearest one below it, or with the first. */
static const struct {
	struct step_range added;
	size_t at;
	struct step_range made;
} full[] = {
	{{50, 52}, 3, {40, 52}},
	{{35, 36}, 2, {30, 36}},
	{{25, 25}, 1, {20, 25}},
	{{15, 15}, 0, {10, 15}},
	{{5, 6}, 0, {5, 10}},
	{{41, 44}, 3, {40, 44}},
	{{20, 20}, 1, {20, 20}},
};

START_TEST(where_more_would_be_needed_ranges_grow_together)
{
	for (uint64_t step = 10; step <= 40; step += 10)
		add(1, step, step);
	path_hold_add(hold, 1, full[_i].added);
	ck_assert_uint_eq(path_hold_ranges(hold, 1, held), SLICE_RANGES);
	for (size_t i = 0; i < SLICE_RANGES; i++) {
		ck_assert_uint_eq(
			held[i].first, i == full[_i].at ? full[_i].made.first : 10 * (i + 1));
		ck_assert_uint_eq(
			held[i].last, i == full[_i].at ? full[_i].made.last : 10 * (i + 1));
	}
}
END_TEST

START_TEST(runs_do_not_mix)
{
	for (int64_t run = MANY_RUNS; run > 0; run--) /* each comes before all earlier ones */
		add(run * 2, (uint64_t)run, (uint64_t)run);
	for (int64_t run = 1; run <= MANY_RUNS; run++) {
		expect(run * 2, 1, (uint64_t)run, (uint64_t)run);
		expect(run * 2 + 1, 0, 0, 0);
	}
}
END_TEST

/* Some of many runs have expired. The others stay, whichever of their minutes still counts. */
START_TEST(tidying_takes_only_what_is_over)
{
	for (int64_t run = 1; run <= MANY_RUNS; run++)
		add(run, (uint64_t)run, (uint64_t)run);
	now.now_ms += 10 * MINUTE_MS;
	for (int64_t run = 3; run <= MANY_RUNS; run += 3)
		add(run, 500, 500);
	now.now_ms += 6 * MINUTE_MS;
	path_hold_tidy(hold);
	for (int64_t run = 1; run <= MANY_RUNS; run++)
		expect(run, run % 3 == 0, 500, 500);
	add(1, 7, 7);
	expect(1, 1, 7, 7);
	now.now_ms += 20 * MINUTE_MS;
	path_hold_tidy(hold);
	expect(1, 0, 0, 0);
	expect(3, 0, 0, 0);
}
END_TEST

Suite *test_path_hold_suite(void)
{
	Suite *suite = suite_create("path_hold");
	TCase *all = tcase_create("all");
	tcase_add_checked_fixture(all, set_up, tear_down);
	tcase_add_test(all, a_range_is_held_for_a_quarter_of_an_hour);
	tcase_add_test(all, a_new_minute_begins_empty);
	tcase_add_test(all, minutes_are_told_as_one);
	tcase_add_test(all, every_minute_may_be_full);
	tcase_add_loop_test(all, where_more_would_be_needed_ranges_grow_together, 0,
		sizeof full / sizeof *full);
	tcase_add_test(all, runs_do_not_mix);
	tcase_add_test(all, tidying_takes_only_what_is_over);
	suite_add_tcase(suite, all);
	return suite;
}
