#include "tests/unit/unit.h"

#include "base/thread/worker_thread.h"

/* Counts the rounds, and lets a test wait for them. */
struct worker {
	struct worker_thread thread;
	struct lock_condition counted;
	int rounds; /* guarded by the thread's lock, like all fields below */
	int lasts;
	int64_t sleeps_ms; /* the result of a round */
	uint64_t bytes;    /* spent by a round, at this rate */
	uint64_t rate;
	bool was_cut_short; /* used by the thread alone until it has stopped */
};

static int64_t count_round(void *owner)
{
	struct worker *const worker = owner;
	lock_enter(&worker->thread.lock);
	worker->rounds++;
	const int64_t sleeps_ms = worker->sleeps_ms;
	lock_broadcast(&worker->counted);
	lock_leave(&worker->thread.lock);
	worker->was_cut_short = !worker_thread_spend(&worker->thread, worker->bytes, worker->rate);
	return sleeps_ms;
}

static void count_last(void *owner)
{
	struct worker *const worker = owner;
	worker->lasts++;
}

static void worker_start(struct worker *worker, int64_t first_ms)
{
	const struct worker_thread_plan plan = {
		.name = "worker", .first_ms = first_ms, .round = count_round, .last = count_last};
	lock_condition_init(&worker->counted);
	worker_thread_start(&worker->thread, &plan, worker);
}

static void wait_for_rounds(struct worker *worker, int rounds)
{
	lock_enter(&worker->thread.lock);
	while (worker->rounds < rounds)
		lock_wait(&worker->thread.lock, &worker->counted);
	lock_leave(&worker->thread.lock);
}

static void worker_release(struct worker *worker)
{
	worker_thread_release(&worker->thread);
	lock_condition_release(&worker->counted);
}

static void worker_end(struct worker *worker)
{
	worker_thread_stop(&worker->thread);
	worker_release(worker);
}

START_TEST(rounds_follow_each_other_until_the_stop)
{
	static const int64_t sleeps[] = {0, 1};
	struct worker worker = {.sleeps_ms = sleeps[_i]};
	worker_start(&worker, 0);
	wait_for_rounds(&worker, 3);
	worker_end(&worker);
	const int rounds = worker.rounds;
	ck_assert_int_eq(worker.lasts, 1);
	ck_assert_int_ge(rounds, 3);
}
END_TEST

START_TEST(each_wake_makes_a_round)
{
	struct worker worker = {.sleeps_ms = WORKER_THREAD_UNTIL_WOKEN};
	worker_start(&worker, WORKER_THREAD_UNTIL_WOKEN);
	for (int round = 1; round <= 3; round++) {
		worker_thread_wake(&worker.thread);
		wait_for_rounds(&worker, round);
	}
	worker_end(&worker);
	ck_assert_int_eq(worker.rounds, 3);
}
END_TEST

START_TEST(a_wake_cuts_a_long_sleep)
{
	struct worker worker = {.sleeps_ms = 3600 * 1000};
	worker_start(&worker, 3600 * 1000);
	worker_thread_wake(&worker.thread);
	wait_for_rounds(&worker, 1);
	worker_thread_wake(&worker.thread);
	wait_for_rounds(&worker, 2);
	worker_end(&worker);
	ck_assert_int_eq(worker.rounds, 2);
}
END_TEST

START_TEST(a_stop_before_the_first_round_leaves_the_last)
{
	static const int64_t firsts[] = {WORKER_THREAD_UNTIL_WOKEN, 3600 * 1000};
	struct worker worker = {.sleeps_ms = 0};
	worker_start(&worker, firsts[_i]);
	worker_end(&worker);
	ck_assert_int_eq(worker.rounds, 0);
	ck_assert_int_eq(worker.lasts, 1);
}
END_TEST

START_TEST(quiesce_ends_a_pause_and_wakes_begin_nothing)
{
	struct worker worker = {.bytes = 1 << 30, .rate = 1};
	worker_start(&worker, 0);
	wait_for_rounds(&worker, 1);
	worker_thread_wake(&worker.thread); /* ends no pause, but gets its round */
	ck_assert(!worker_thread_is_stopping(&worker.thread));
	worker_thread_quiesce(&worker.thread);
	ck_assert(worker_thread_is_stopping(&worker.thread));
	worker_thread_wake(&worker.thread);
	worker_thread_stop(&worker.thread);
	worker_thread_wake(&worker.thread); /* allowed until the release */
	ck_assert(worker.was_cut_short);
	ck_assert_int_eq(worker.rounds, 1);
	worker_release(&worker);
}
END_TEST

START_TEST(spending_waits_by_the_rate)
{
	static const struct {
		uint64_t bytes;
		uint64_t rate;
		bool holds;
	} cases[] = {{1 << 30, 0, false}, {1, 1, false}, {1 << 30, 1, true}};
	struct worker worker = {.bytes = cases[_i].bytes, .rate = cases[_i].rate};
	worker_start(&worker, 0);
	wait_for_rounds(&worker, cases[_i].holds ? 1 : 3);
	worker_thread_stop(&worker.thread);
	if (cases[_i].holds) {
		ck_assert_int_eq(worker.rounds, 1);
		ck_assert(worker.was_cut_short);
	}
	worker_release(&worker);
}
END_TEST

Suite *test_worker_thread_suite(void);
Suite *test_worker_thread_suite(void)
{
	Suite *const suite = suite_create("worker_thread");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, rounds_follow_each_other_until_the_stop, 0, 2);
	tcase_add_test(tc, each_wake_makes_a_round);
	tcase_add_test(tc, a_wake_cuts_a_long_sleep);
	tcase_add_loop_test(tc, a_stop_before_the_first_round_leaves_the_last, 0, 2);
	tcase_add_test(tc, quiesce_ends_a_pause_and_wakes_begin_nothing);
	tcase_add_loop_test(tc, spending_waits_by_the_rate, 0, 3);
	suite_add_tcase(suite, tc);
	return suite;
}
