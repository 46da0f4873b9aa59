#include "tests/unit/unit.h"

#include "base/thread/lock.h"
#include "tests/unit/base/abort_check.h"

struct shared {
	struct lock lock;
	struct lock_condition condition;
	int count;
	bool go;
};

static void shared_init(struct shared *shared)
{
	*shared = (struct shared){.count = 0};
	lock_init(&shared->lock, LOCK_LOG);
	lock_condition_init(&shared->condition);
}

static void shared_release(struct shared *shared)
{
	lock_condition_release(&shared->condition);
	lock_release(&shared->lock);
}

static void *count_up(void *argument)
{
	struct shared *const shared = argument;
	for (int i = 0; i < 10000; i++) {
		lock_enter(&shared->lock);
		shared->count++;
		lock_leave(&shared->lock);
	}
	return NULL;
}

START_TEST(one_thread_at_a_time)
{
	struct shared shared;
	pthread_t threads[4];
	shared_init(&shared);
	for (int i = 0; i < 4; i++)
		lock_thread_start(&threads[i], "a-name-longer-than-allowed", count_up, &shared);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(shared.count, 40000);
	shared_release(&shared);
}
END_TEST

static void *wait_for_go(void *argument)
{
	struct shared *const shared = argument;
	lock_enter(&shared->lock);
	while (!shared->go)
		lock_wait(&shared->lock, &shared->condition);
	lock_assert_held(&shared->lock);
	shared->count++;
	lock_leave(&shared->lock);
	return NULL;
}

START_TEST(broadcast_wakes_all)
{
	struct shared shared;
	pthread_t threads[3];
	shared_init(&shared);
	for (int i = 0; i < 3; i++)
		lock_thread_start(&threads[i], "waiter", wait_for_go, &shared);
	lock_enter(&shared.lock);
	shared.go = true;
	lock_broadcast(&shared.condition);
	lock_leave(&shared.lock);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(shared.count, 3);
	shared_release(&shared);
}
END_TEST

static void *say_go(void *argument)
{
	struct shared *const shared = argument;
	lock_enter(&shared->lock);
	shared->go = true;
	lock_signal(&shared->condition);
	lock_leave(&shared->lock);
	return NULL;
}

START_TEST(timed_wait_tells_signal_from_timeout)
{
	struct shared shared;
	pthread_t thread;
	bool in_time = true;
	shared_init(&shared);
	lock_enter(&shared.lock);
	ck_assert(!lock_wait_for(&shared.lock, &shared.condition, 5));
	ck_assert(!lock_wait_for(&shared.lock, &shared.condition, 0));
	ck_assert(!lock_wait_for(&shared.lock, &shared.condition, -1));
	lock_thread_start(&thread, "signaller", say_go, &shared);
	while (!shared.go && in_time)
		in_time = lock_wait_for(&shared.lock, &shared.condition, 60 * 1000);
	ck_assert(in_time && shared.go);
	lock_leave(&shared.lock);
	pthread_join(thread, NULL);
	shared_release(&shared);
}
END_TEST

START_TEST(rising_ranks_and_any_order_of_leaving)
{
	struct lock low, middle, high;
	lock_init(&low, LOCK_CONTROL);
	lock_init(&middle, LOCK_PACK_STORE);
	lock_init(&high, LOCK_LOG);
	lock_enter(&low);
	lock_enter(&middle);
	lock_leave(&low);
	lock_enter(&high);
	lock_leave(&middle);
	lock_leave(&high);
	lock_enter(&low);
	lock_leave(&low);
	lock_release(&low);
	lock_release(&middle);
	lock_release(&high);
}
END_TEST

#ifdef DELTABUCKET_DEV

static void enter_falling(void *argument)
{
	struct lock low, high;
	(void)argument;
	lock_init(&low, LOCK_CONTROL);
	lock_init(&high, LOCK_LOG);
	lock_enter(&high);
	lock_enter(&low);
}

static void enter_equal(void *argument)
{
	struct lock one, other;
	(void)argument;
	lock_init(&one, LOCK_EXCHANGE);
	lock_init(&other, LOCK_EXCHANGE);
	lock_enter(&one);
	lock_enter(&other);
}

static void leave_unheld(void *argument)
{
	struct lock lock;
	(void)argument;
	lock_init(&lock, LOCK_LOG);
	lock_leave(&lock);
}

static void assert_unheld(void *argument)
{
	struct lock lock;
	(void)argument;
	lock_init(&lock, LOCK_LOG);
	lock_assert_held(&lock);
}

START_TEST(wrong_order_aborts_in_development_builds)
{
	abort_check(enter_falling, NULL);
	abort_check(enter_equal, NULL);
	abort_check(leave_unheld, NULL);
	abort_check(assert_unheld, NULL);
}
END_TEST

#endif

Suite *test_lock_suite(void);
Suite *test_lock_suite(void)
{
	Suite *const suite = suite_create("lock");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, one_thread_at_a_time);
	tcase_add_test(tc, broadcast_wakes_all);
	tcase_add_test(tc, timed_wait_tells_signal_from_timeout);
	tcase_add_test(tc, rising_ranks_and_any_order_of_leaving);
#ifdef DELTABUCKET_DEV
	tcase_add_test(tc, wrong_order_aborts_in_development_builds);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}
