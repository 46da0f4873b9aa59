#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread/step_watch.h"

struct waiting {
	struct step_waiter waiter; /* must be first */
	atomic_int wakes;
};

static struct clock_fake now;
static struct step_watch *watch;

static void set_up(void)
{
	clock_fake_init(&now, 1000);
	watch = step_watch_start(&now.source);
}

static void tear_down(void)
{
	step_watch_stop(watch);
}

static void woken(struct step_waiter *waiter)
{
	atomic_fetch_add(&((struct waiting *)waiter)->wakes, 1);
}

static void wait_on(struct waiting *waiting, const char *run, uint64_t seen, int64_t wait_ms)
{
	waiting->waiter.wake = woken;
	step_watch_wait(
		watch, span_text("bucket"), span_text(run), seen, wait_ms, &waiting->waiter);
}

static void until_woken(const struct waiting *waiting)
{
	while (atomic_load(&waiting->wakes) == 0)
		usleep(1000);
}

START_TEST(a_publish_wakes_its_run_and_no_other)
{
	struct waiting one = {.wakes = 0};
	struct waiting two = {.wakes = 0};
	struct waiting other = {.wakes = 0};
	wait_on(&one, "run", 0, 60000);
	wait_on(&other, "other", 0, 60000);
	wait_on(&two, "run", 0, 60000);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 1);
	ck_assert_int_eq(two.wakes, 1);
	ck_assert_int_eq(other.wakes, 0);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 1);
	step_watch_published(watch, span_text("bucket2"), span_text("other"));
	ck_assert_int_eq(other.wakes, 0);
	step_watch_published(watch, span_text("bucket"), span_text("other"));
	ck_assert_int_eq(other.wakes, 1);
}
END_TEST

START_TEST(a_wait_can_be_ended)
{
	struct waiting one = {.wakes = 0};
	struct waiting other = {.wakes = 0};
	step_watch_cancel(watch, &one.waiter); /* it does not wait yet */
	ck_assert_int_eq(one.wakes, 0);
	wait_on(&one, "run", 0, 60000);
	wait_on(&other, "run", 0, 60000);
	step_watch_cancel(watch, &one.waiter);
	step_watch_cancel(watch, &one.waiter); /* it does not wait any more */
	ck_assert_int_eq(one.wakes, 1);
	ck_assert_int_eq(other.wakes, 0);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 1);
	ck_assert_int_eq(other.wakes, 1);
}
END_TEST

START_TEST(a_publish_between_look_and_wait_is_not_missed)
{
	struct waiting one = {.wakes = 0};
	const uint64_t seen = step_watch_generation(watch, span_text("bucket"), span_text("run"));
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	wait_on(&one, "run", seen, 60000);
	ck_assert_int_eq(one.wakes, 1);
	wait_on(&one, "run", step_watch_generation(watch, span_text("bucket"), span_text("run")),
		60000);
	ck_assert_int_eq(one.wakes, 1);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 2);
}
END_TEST

static const int64_t waits[] = {1, 49, 50, 51, 1000, 60000, 102400, 250000};

START_TEST(deadlines_wake_and_not_before)
{
	struct waiting one = {.wakes = 0};
	struct waiting later = {.wakes = 0};
	wait_on(&one, "run", 0, waits[_i]);
	wait_on(&later, "run", 0, waits[_i] + 200);
	atomic_fetch_add(&now.now_ms, waits[_i] - 1);
	usleep(120000); /* two ticks of the timer thread */
	ck_assert_int_eq(one.wakes, 0);
	atomic_fetch_add(&now.now_ms, 51);
	until_woken(&one);
	ck_assert_int_eq(later.wakes, 0);
	atomic_fetch_add(&now.now_ms, 300000);
	until_woken(&later);
	ck_assert_int_eq(one.wakes, 1);
}
END_TEST

START_TEST(no_time_to_wait_wakes_at_once)
{
	struct waiting one = {.wakes = 0};
	wait_on(&one, "run", 0, 0);
	ck_assert_int_eq(one.wakes, 1);
	wait_on(&one, "run", 0, -5);
	ck_assert_int_eq(one.wakes, 2);
}
END_TEST

START_TEST(closing_wakes_all_and_refuses_new_ones)
{
	enum { MANY = 10000 };
	struct waiting *const many = memory_new_array(MANY, sizeof(*many));
	char run[16];
	for (int i = 0; i < MANY; i++) {
		snprintf(run, sizeof(run), "run-%d", i % 300);
		wait_on(&many[i], run, 0, 60000 + i);
	}
	step_watch_published(watch, span_text("bucket"), span_text("run-7"));
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(many[i].wakes, i % 300 == 7);
	step_watch_wake_all(watch);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(many[i].wakes, 1);
	wait_on(&many[0], "run", 0, 60000);
	ck_assert_int_eq(many[0].wakes, 2);
	free(many);
}
END_TEST

static void wait_again(struct step_waiter *waiter)
{
	struct waiting *const waiting = (struct waiting *)waiter;
	if (atomic_fetch_add(&waiting->wakes, 1) == 0)
		step_watch_wait(watch, span_text("bucket"), span_text("run"),
			step_watch_generation(watch, span_text("bucket"), span_text("run")), 60000,
			waiter);
}

START_TEST(a_woken_waiter_may_wait_again_from_within)
{
	struct waiting one = {.waiter.wake = wait_again};
	step_watch_wait(watch, span_text("bucket"), span_text("run"), 0, 60000, &one.waiter);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 1);
	step_watch_published(watch, span_text("bucket"), span_text("run"));
	ck_assert_int_eq(one.wakes, 2);
}
END_TEST

Suite *test_step_watch_suite(void);
Suite *test_step_watch_suite(void)
{
	Suite *const suite = suite_create("step_watch");
	TCase *const tests = tcase_create("step_watch");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_publish_wakes_its_run_and_no_other);
	tcase_add_test(tests, a_wait_can_be_ended);
	tcase_add_test(tests, a_publish_between_look_and_wait_is_not_missed);
	tcase_add_loop_test(
		tests, deadlines_wake_and_not_before, 0, sizeof(waits) / sizeof(waits[0]));
	tcase_add_test(tests, no_time_to_wait_wakes_at_once);
	tcase_add_test(tests, closing_wakes_all_and_refuses_new_ones);
	tcase_add_test(tests, a_woken_waiter_may_wait_again_from_within);
	suite_add_tcase(suite, tests);
	return suite;
}
