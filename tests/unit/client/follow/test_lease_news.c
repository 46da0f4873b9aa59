/* What a worker tells at once, what only when it lasts, and what it does not repeat. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "client/follow/lease_news.h"

enum { SECOND_MS = 1000, REPORT_S = 100, PASSING_S = 40, LEASE_S = 400, NONE = -1 };

static struct lease_news news;
static int64_t now_ms;

static const struct lease_news_answer busy = {
	.lease_s = LEASE_S, .report_s = REPORT_S, .passing_s = PASSING_S};

static void set_up(void)
{
	now_ms = 5000;
	lease_news_init(&news, now_ms);
}

static void say(enum replica_state state, int64_t step, int64_t wanted)
{
	const struct lease_news_facts facts = {.state = state,
		.has_step = step != NONE,
		.step = step != NONE ? (uint64_t)step : 0,
		.has_wanted = wanted != NONE,
		.wanted = wanted != NONE ? (uint64_t)wanted : 0};
	lease_news_say(&news, &facts, now_ms);
}

static void fail_with(const char *sentence)
{
	struct lease_news_facts facts = {.state = REPLICA_ERROR, .has_step = true, .step = 7};
	snprintf(facts.error, sizeof facts.error, "%s", sentence);
	lease_news_say(&news, &facts, now_ms);
}

static int64_t pause_s(void)
{
	return lease_news_pause_ms(&news, now_ms) / SECOND_MS;
}

static void pass(int64_t seconds)
{
	now_ms += seconds * SECOND_MS;
}

/* Reports what is so now. */
static void tell(const struct lease_news_answer *answer)
{
	lease_news_begin(&news);
	lease_news_taken(&news, answer, 0, now_ms);
}

static void hold(int64_t step)
{
	say(REPLICA_READY, step, NONE);
	tell(&busy);
}

START_TEST(what_is_told_is_repeated_as_often_as_the_server_asks)
{
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	ck_assert_int_eq(pause_s(), REPORT_S);
	pass(REPORT_S - 1);
	ck_assert_int_eq(pause_s(), 1);
	pass(1);
	ck_assert_int_eq(pause_s(), 0);
	ck_assert(!lease_news_is_left(&news));
	hold(7);
	pass(30);
	say(REPLICA_READY, 7, NONE); /* nothing new */
	ck_assert_int_eq(pause_s(), REPORT_S - 30);
}
END_TEST

/* A fleet that was started at once reports at all times. */
START_TEST(the_time_of_repeats_is_spread)
{
	lease_news_begin(&news);
	lease_news_taken(&news, &busy, UINT32_MAX, now_ms);
	ck_assert_int_eq(pause_s(), REPORT_S * 5 / 4);
	lease_news_begin(&news);
	lease_news_taken(&news, &busy, UINT32_MAX / 2, now_ms);
	ck_assert_int_eq(pause_s(), REPORT_S * 9 / 8);
}
END_TEST

/* As with servers that do not say: each third of the lease, and every change. */
START_TEST(an_older_server_hears_all)
{
	const struct lease_news_answer older = {.lease_s = 120};
	const struct lease_news_answer silent = {.lease_s = 0};
	tell(&older);
	ck_assert_int_eq(pause_s(), 40);
	say(REPLICA_FETCHING, NONE, 3);
	ck_assert_int_eq(pause_s(), 0);
	tell(&older);
	say(REPLICA_STAGING, NONE, 3);
	ck_assert_int_eq(pause_s(), 0);
	tell(&silent);
	ck_assert_int_eq(pause_s(), 10);
}
END_TEST

START_TEST(a_step_costs_one_report)
{
	hold(7);
	say(REPLICA_FETCHING, 7, 8);
	ck_assert_int_eq(pause_s(), PASSING_S);
	pass(PASSING_S - 1);
	say(REPLICA_STAGING, 7, 8);
	ck_assert_int_eq(pause_s(), PASSING_S);
	pass(PASSING_S - 1);
	say(REPLICA_STAGING, 8, 8); /* its command runs */
	ck_assert_int_eq(pause_s(), REPORT_S - 2 * (PASSING_S - 1));
	say(REPLICA_READY, 8, NONE);
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	ck_assert_int_eq(pause_s(), REPORT_S);
}
END_TEST

START_TEST(what_lasts_is_told)
{
	hold(7);
	say(REPLICA_FETCHING, 7, 8);
	pass(PASSING_S);
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_FETCHING, 7, 8);
	ck_assert_int_eq(pause_s(), REPORT_S);
	ck_assert(!lease_news_is_left(&news));
	say(REPLICA_STAGING, 7, 8);
	ck_assert(lease_news_is_left(&news)); /* a worker that ends tells all */
}
END_TEST

START_TEST(errors_are_told_at_once_and_each_once)
{
	hold(7);
	fail_with("no space");
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_FETCHING, 7, 8); /* it tries again */
	pass(10);
	fail_with("no space");
	ck_assert_int_eq(pause_s(), REPORT_S - 10);
	fail_with("no route");
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_READY, 7, NONE);
	ck_assert_int_eq(pause_s(), 0);
}
END_TEST

/* What retention must know cannot wait, even of a state that passes. */
START_TEST(what_needs_other_steps_is_told_at_once)
{
	tell(&busy);
	say(REPLICA_FETCHING, NONE, 8);
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_STAGING, NONE, 8);
	ck_assert_int_eq(pause_s(), PASSING_S);
	say(REPLICA_FETCHING, NONE, 9);
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_STAGING, 9, 9); /* its first step */
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_STAGING, 8, 8); /* a rollback */
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	say(REPLICA_FETCHING, NONE, 9); /* its folder is gone */
	ck_assert_int_eq(pause_s(), 0);
}
END_TEST

START_TEST(news_that_came_while_a_report_was_under_way_are_told)
{
	say(REPLICA_READY, 7, NONE);
	lease_news_begin(&news);
	say(REPLICA_READY, 8, NONE);
	lease_news_taken(&news, &busy, 0, now_ms);
	ck_assert_int_eq(pause_s(), 0);
	lease_news_begin(&news);
	say(REPLICA_READY, 8, NONE);
	lease_news_taken(&news, &busy, 0, now_ms);
	ck_assert_int_eq(pause_s(), REPORT_S);
}
END_TEST

static void be_refused(int64_t expected_s)
{
	lease_news_begin(&news);
	lease_news_failed(&news, 0, now_ms);
	ck_assert_int_eq(pause_s(), expected_s);
	pass(expected_s);
}

START_TEST(what_failed_comes_again_later_and_later)
{
	static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 32};
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++)
		be_refused(pauses[i]);
	lease_news_begin(&news);
	lease_news_failed(&news, UINT32_MAX, now_ms);
	ck_assert_int_eq(pause_s(), 40);
	ck_assert(!lease_news_is_left(&news));
	say(REPLICA_READY, 7, NONE); /* news do not wait */
	ck_assert_int_eq(pause_s(), 0);
	tell(&busy);
	be_refused(1);
}
END_TEST

/* So that a large fleet does not run over a server that comes back. */
START_TEST(a_large_fleet_tries_again_more_seldom)
{
	const struct lease_news_answer large = {.lease_s = 2296, .report_s = 574};
	tell(&large);
	for (int i = 0; i < 8; i++) {
		lease_news_begin(&news);
		lease_news_failed(&news, 0, now_ms);
	}
	ck_assert_int_eq(pause_s(), 128);
	lease_news_begin(&news);
	lease_news_failed(&news, 0, now_ms);
	ck_assert_int_eq(pause_s(), 574 / 4);
}
END_TEST

/* Whatever a server says, a worker comes before its lease ends, and at all. */
START_TEST(answers_that_make_no_sense_do_no_harm)
{
	static const struct {
		struct lease_news_answer answer;
		int64_t pause_s;
	} rows[] = {
		{{.lease_s = 100, .report_s = 100}, 50},
		{{.lease_s = 100, .report_s = UINT64_MAX, .passing_s = UINT64_MAX}, 50},
		{{.lease_s = UINT64_MAX, .report_s = UINT64_MAX}, 7 * 24 * 3600 / 2},
		{{.lease_s = UINT64_MAX}, 7 * 24 * 3600 / 3},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		tell(&rows[i].answer);
		ck_assert_int_eq(pause_s(), rows[i].pause_s);
	}
}
END_TEST

Suite *test_lease_news_suite(void);

Suite *test_lease_news_suite(void)
{
	Suite *const suite = suite_create("lease_news");
	TCase *const tests = tcase_create("lease_news");
	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, what_is_told_is_repeated_as_often_as_the_server_asks);
	tcase_add_test(tests, the_time_of_repeats_is_spread);
	tcase_add_test(tests, an_older_server_hears_all);
	tcase_add_test(tests, a_step_costs_one_report);
	tcase_add_test(tests, what_lasts_is_told);
	tcase_add_test(tests, errors_are_told_at_once_and_each_once);
	tcase_add_test(tests, what_needs_other_steps_is_told_at_once);
	tcase_add_test(tests, news_that_came_while_a_report_was_under_way_are_told);
	tcase_add_test(tests, what_failed_comes_again_later_and_later);
	tcase_add_test(tests, a_large_fleet_tries_again_more_seldom);
	tcase_add_test(tests, answers_that_make_no_sense_do_no_harm);
	suite_add_tcase(suite, tests);
	return suite;
}
