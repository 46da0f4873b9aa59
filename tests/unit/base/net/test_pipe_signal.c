#include "tests/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/net/pipe_signal.h"

static int ends[2];

static void set_up(void)
{
	signal(SIGPIPE, SIG_DFL); /* which ends the process */
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
}

static void tear_down(void)
{
	close(ends[1]);
}

static bool is_blocked(void)
{
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, SIGPIPE) == 1;
}

static bool is_pending(void)
{
	sigset_t pending;
	sigpending(&pending);
	return sigismember(&pending, SIGPIPE) == 1;
}

START_TEST(a_write_to_nobody_ends_nothing)
{
	struct pipe_signal held;
	pipe_signal_hold(&held);
	ck_assert_int_eq(write(ends[1], "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(is_pending());
	pipe_signal_let_go(&held);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert(!is_pending());
	ck_assert(!is_blocked());
}
END_TEST

/* What waited before, in a thread that blocks the signal, is the caller's. */
START_TEST(the_signal_of_the_caller_stays)
{
	sigset_t pipe_alone;
	struct pipe_signal held;
	sigemptyset(&pipe_alone);
	sigaddset(&pipe_alone, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_alone, NULL);
	raise(SIGPIPE);
	pipe_signal_hold(&held);
	ck_assert_int_eq(write(ends[1], "x", 1), -1);
	pipe_signal_let_go(&held);
	ck_assert(is_pending());
	ck_assert(is_blocked());
}
END_TEST

Suite *test_pipe_signal_suite(void);

Suite *test_pipe_signal_suite(void)
{
	Suite *const suite = suite_create("pipe_signal");
	TCase *const tc = tcase_create("pipe_signal");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_write_to_nobody_ends_nothing);
	tcase_add_test(tc, the_signal_of_the_caller_stays);
	suite_add_tcase(suite, tc);
	return suite;
}
