#include "tests/unit/unit.h"

#include <signal.h>
#include <unistd.h>

#include "client/terminal/interrupt.h"

/* A batch system may send any signal to all processes of a job. */
START_TEST(a_stop_is_noticed_after_a_signal_that_means_nothing)
{
	struct stop *const stop = stop_new();
	struct interrupt *const interrupt = interrupt_start(stop);
	kill(getpid(), SIGUSR2);
	ck_assert(stop_sleep(stop, 200));
	kill(getpid(), SIGTERM);
	ck_assert(!stop_sleep(stop, 20000));
	ck_assert_int_eq(stop_reason(stop), SIGTERM);
	interrupt_end(interrupt);
	stop_free(stop);
}
END_TEST

Suite *test_interrupt_suite(void);

Suite *test_interrupt_suite(void)
{
	Suite *const suite = suite_create("interrupt");
	TCase *const tests = tcase_create("interrupt");
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_stop_is_noticed_after_a_signal_that_means_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}
