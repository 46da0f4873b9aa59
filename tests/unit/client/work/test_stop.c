/* A word to stop ends sleeps and calls, comes once, and stays. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "client/work/stop.h"

enum { CLIENTS = 300 };

static void *give_soon(void *argument)
{
	usleep(50 * 1000);
	stop_give(argument, STOP_CANCELLED);
	return NULL;
}

START_TEST(a_sleep_ends_when_the_word_comes)
{
	struct stop *const stop = stop_new();
	struct error err = {0};
	pthread_t giver;
	ck_assert(stop_sleep(stop, 1));
	ck_assert_int_eq(stop_check(stop, &err), 0);
	ck_assert_int_eq(pthread_create(&giver, NULL, give_soon, stop), 0);
	ck_assert(!stop_sleep(stop, 20000));
	pthread_join(giver, NULL);
	ck_assert_int_eq(stop_check(stop, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_str_eq(err.text, "cancelled by the caller");
	stop_free(stop);
}
END_TEST

START_TEST(the_first_reason_counts)
{
	struct stop *const stop = stop_new();
	struct error err = {0};
	stop_give(stop, SIGTERM);
	stop_give(stop, STOP_CANCELLED);
	ck_assert_int_eq(stop_reason(stop), SIGTERM);
	ck_assert_int_eq(stop_check(stop, &err), -1);
	ck_assert_str_eq(err.text, "interrupted by a signal");
	stop_free(stop);
}
END_TEST

/* More clients than any list of a fixed size would hold; some are forgotten in between. */
START_TEST(every_watched_client_is_cancelled)
{
	struct stop *const stop = stop_new();
	struct http_client *clients[CLIENTS];
	struct error err = {0};
	for (size_t i = 0; i < CLIENTS; i++) {
		clients[i] = http_client_new(
			&(struct http_client_options){.endpoint = "http://127.0.0.1:9"}, &err);
		ck_assert_ptr_nonnull(clients[i]);
		stop_watch(stop, clients[i]);
	}
	for (size_t i = 0; i < CLIENTS; i += 2)
		stop_forget(stop, clients[i]);
	stop_give(stop, STOP_CANCELLED);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct http_response response = {0};
		const struct http_request request = {.method = "GET", .target = "/"};
		ck_assert_int_eq(http_client_send(clients[i], &request, &response, &err), -1);
		ck_assert_int_eq(err.kind, i % 2 == 0 ? ERROR_UPSTREAM : ERROR_BUSY);
		http_response_release(&response);
		if (i % 2 != 0)
			stop_forget(stop, clients[i]);
		http_client_free(clients[i]);
	}
	stop_free(stop);
}
END_TEST

Suite *test_stop_suite(void);

Suite *test_stop_suite(void)
{
	Suite *const suite = suite_create("stop");
	TCase *const tests = tcase_create("stop");
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_sleep_ends_when_the_word_comes);
	tcase_add_test(tests, the_first_reason_counts);
	tcase_add_test(tests, every_watched_client_is_cancelled);
	suite_add_tcase(suite, tests);
	return suite;
}
