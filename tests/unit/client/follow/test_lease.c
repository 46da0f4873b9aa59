/* The reports of a worker to the server: their content, and when they come. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/lock.h"
#include "client/follow/lease.h"
#include "client/remote/run_name.h"
#include "client/work/output.h"
#include "tests/unit/client/web_fixture.h"

enum {
	SHORT_LEASE_S = 3,
	LONG_LEASE_S = 60,
	REPORTS_MAX = 64,
	GOODBYE_MS = 60000,
	PASSING_US = 50000
};

struct reports {
	pthread_mutex_t mutex;
	pthread_cond_t came;
	unsigned lease_s;
	unsigned report_s; /* 0: like an older server, it does not say */
	unsigned passing_s;
	int refused; /* number of reports to answer with 503 */
	size_t count;
	int64_t at_ms[REPORTS_MAX];
	char last[1024];
};

static struct reports reports;
static struct web *web;
static struct run_name run;
static struct remote_options remote;

static int64_t now_ms(void)
{
	const struct clock_source *const clock = clock_system();
	return clock->monotonic_ms(clock);
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	struct reports *const all = owner;
	pthread_mutex_lock(&all->mutex);
	ck_assert_uint_lt(all->count, REPORTS_MAX);
	ck_assert_uint_lt(request->body.len, sizeof all->last);
	all->at_ms[all->count++] = now_ms();
	memcpy(all->last, request->body.data, request->body.len);
	all->last[request->body.len] = '\0';
	reply->status = all->refused > 0 ? 503 : 200;
	all->refused -= all->refused > 0;
	buffer_format(&reply->body, "{\"lease_s\":%u", all->lease_s);
	if (all->report_s > 0)
		buffer_format(&reply->body, ",\"report_s\":%u,\"passing_s\":%u", all->report_s,
			all->passing_s);
	buffer_add_text(&reply->body, "}");
	pthread_cond_broadcast(&all->came);
	pthread_mutex_unlock(&all->mutex);
}

static void await(size_t count)
{
	pthread_mutex_lock(&reports.mutex);
	while (reports.count < count)
		pthread_cond_wait(&reports.came, &reports.mutex);
	pthread_mutex_unlock(&reports.mutex);
}

static size_t count(void)
{
	pthread_mutex_lock(&reports.mutex);
	const size_t so_far = reports.count;
	pthread_mutex_unlock(&reports.mutex);
	return so_far;
}

static struct lease *begin(unsigned lease_s)
{
	reports.lease_s = lease_s;
	const struct lease_params params = {
		.remote = &remote, .run = &run, .id = "w1", .goodbye_ms = GOODBYE_MS};
	struct lease *const lease = lease_start(&params);
	ck_assert_ptr_ne(lease, NULL);
	return lease;
}

static void set_up(void)
{
	struct error err = {0};
	reports = (struct reports){.count = 0};
	pthread_mutex_init(&reports.mutex, NULL);
	pthread_cond_init(&reports.came, NULL);
	ck_assert_int_eq(run_name_init(&run, "b/r", &err), 0);
	web = web_start(answer, &reports);
	remote = (struct remote_options){.endpoint = web_endpoint(web)};
}

static void tear_down(void)
{
	web_stop(web);
	run_name_release(&run);
	pthread_cond_destroy(&reports.came);
	pthread_mutex_destroy(&reports.mutex);
}

/* A worker that does not report for the length of its lease counts as lost. That must not happen
 * while it lives. */
START_TEST(a_lease_is_renewed_well_before_it_ends)
{
	struct lease *const lease = begin(SHORT_LEASE_S);
	await(3);
	lease_stop(lease, false);
	for (size_t i = 1; i < 3; i++)
		ck_assert_int_lt(
			reports.at_ms[i] - reports.at_ms[i - 1], SHORT_LEASE_S * 1000 * 5 / 6);
}
END_TEST

START_TEST(reports_come_as_often_as_the_server_asks)
{
	reports.report_s = 1;
	struct lease *const lease = begin(24 * 3600);
	await(3);
	lease_stop(lease, false);
	for (size_t i = 1; i < 3; i++)
		ck_assert_int_ge(reports.at_ms[i] - reports.at_ms[i - 1], 1000);
}
END_TEST

/* Of two steps that it takes, the server hears when the worker serves them. */
START_TEST(a_worker_of_a_large_fleet_tells_of_a_step_once)
{
	struct lease_facts facts = {.state = REPLICA_READY, .has_step = true, .step = 7};
	reports.report_s = LONG_LEASE_S / 4;
	reports.passing_s = LONG_LEASE_S / 4;
	struct lease *const lease = begin(LONG_LEASE_S);
	await(1);
	lease_say(lease, &facts);
	await(2);
	facts.has_wanted = true;
	facts.wanted = 8;
	for (enum replica_state state = REPLICA_FETCHING; state <= REPLICA_STAGING; state++) {
		facts.state = state;
		lease_say(lease, &facts);
		usleep(PASSING_US); /* so that a report of it could come */
	}
	lease_say(
		lease, &(struct lease_facts){.state = REPLICA_READY, .has_step = true, .step = 8});
	await(3);
	lease_stop(lease, false);
	ck_assert_uint_eq(count(), 3);
	ck_assert_ptr_ne(strstr(reports.last, "\"state\":\"ready\",\"step\":8"), NULL);
}
END_TEST

START_TEST(a_report_that_failed_comes_again_before_long)
{
	reports.refused = 1;
	struct lease *const lease = begin(LONG_LEASE_S);
	await(2);
	lease_stop(lease, false);
	ck_assert_int_lt(reports.at_ms[1] - reports.at_ms[0], LONG_LEASE_S * 1000 / 6);
}
END_TEST

/* A change is reported without waiting for the renewal, and at the end the last change is reported
 * too. */
START_TEST(what_changes_is_told_at_once)
{
	const struct lease_facts ready = {.state = REPLICA_READY, .has_step = true, .step = 7};
	const struct lease_facts broken = {.state = REPLICA_ERROR, .error = "no space"};
	struct lease *const lease = begin(LONG_LEASE_S);
	await(1);
	lease_say(lease, &ready);
	await(2);
	ck_assert_int_lt(reports.at_ms[1] - reports.at_ms[0], LONG_LEASE_S * 1000 / 6);
	ck_assert_ptr_ne(strstr(reports.last, "\"state\":\"ready\",\"step\":7"), NULL);
	lease_say(lease, &broken);
	lease_stop(lease, false);
	ck_assert_uint_eq(count(), 3);
	ck_assert_ptr_ne(strstr(reports.last, "\"state\":\"error\""), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "no space"), NULL);
}
END_TEST

START_TEST(a_worker_that_is_well_again_tells_of_no_failure)
{
	const struct lease_facts broken = {.state = REPLICA_ERROR, .error = "no space"};
	const struct lease_facts ready = {.state = REPLICA_READY, .has_step = true, .step = 7};
	struct lease *const lease = begin(LONG_LEASE_S);
	await(1);
	lease_say(lease, &broken);
	await(2);
	ck_assert_ptr_ne(strstr(reports.last, "no space"), NULL);
	lease_say(lease, &ready);
	lease_stop(lease, false);
	ck_assert_uint_eq(count(), 3);
	ck_assert_ptr_ne(strstr(reports.last, "\"state\":\"ready\",\"step\":7"), NULL);
	ck_assert_ptr_eq(strstr(reports.last, "no space"), NULL);
}
END_TEST

/* The server forgets such a worker at once, and shows one that fails as long as its lease runs. */
START_TEST(a_worker_that_ends_in_order_signs_off)
{
	struct lease *lease = begin(LONG_LEASE_S);
	await(1);
	lease_stop(lease, true);
	ck_assert_ptr_ne(strstr(web_trace(web), "DELETE /v1/runs/b/r/replicas/w1\n"), NULL);
	web_forget_trace(web);
	lease = begin(LONG_LEASE_S);
	lease_stop(lease, false);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
}
END_TEST

START_TEST(a_report_says_what_is_held_and_wanted)
{
	struct lease_facts facts = {.state = REPLICA_FETCHING,
		.has_step = true,
		.step = 7,
		.has_wanted = true,
		.wanted = 9,
		.has_pause = true,
		.pause_ms = 41};
	const struct lease_params params = {.remote = &remote,
		.run = &run,
		.id = "w 1",
		.tensors = "rank 0/2",
		.goodbye_ms = GOODBYE_MS};
	memset(&facts.digest, 0x5a, sizeof facts.digest);
	reports.lease_s = LONG_LEASE_S;
	struct lease *const lease = lease_start(&params);
	lease_say(lease, &facts);
	lease_stop(lease, false);
	ck_assert_ptr_ne(strstr(web_trace(web), "PUT /v1/runs/b/r/replicas/w%201 "), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "\"state\":\"fetching\",\"step\":7"), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "5a5a5a5a"), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "\"wanted\":9"), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "\"tensors\":\"rank 0/2\""), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "\"host\":\""), NULL);
	ck_assert_ptr_ne(strstr(reports.last, "\"pause_ms\":41"), NULL);
}
END_TEST

/* Puts into `said` what a worker notes whose reports the server refuses three times. With
 * `is_let_in` the worker may follow. */
static void hear_of_refusals(bool is_let_in, char *said, size_t size)
{
	const struct output output = {0};
	const struct lease_params params = {.remote = &remote,
		.run = &run,
		.id = "w1",
		.output = &output,
		.goodbye_ms = GOODBYE_MS};
	const struct lease_facts ready = {.state = REPLICA_READY};
	FILE *const to = tmpfile();
	const int kept = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(to), STDERR_FILENO), 0);
	reports.refused = 3;
	struct lease *const lease = lease_start(&params);
	if (is_let_in)
		lease_let_in(lease);
	for (size_t sent = 1; sent <= 3; sent++) {
		await(sent);
		lease_say(lease, &ready);
	}
	lease_stop(lease, false);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(to);
	said[fread(said, 1, size - 1, to)] = '\0';
	fclose(to);
}

/* A token may allow following and not reporting. A worker that may not even follow is told so by
 * the follower. */
START_TEST(a_report_that_is_not_taken_is_told_of_once_by_who_may_follow)
{
	static const char WORDS[] = "does not accept this worker's report (following continues)";
	char said[4096];
	hear_of_refusals(_i == 1, said, sizeof said);
	const char *const first = strstr(said, WORDS);
	ck_assert_msg((first != NULL) == (_i == 1), "%s", said);
	ck_assert(first == NULL || strstr(first + 1, WORDS) == NULL);
}
END_TEST

/* Two workers on one host have two ids, and a worker that starts again has the same id. */
START_TEST(a_folder_has_an_id)
{
	char *const id = lease_default_id("/somewhere/a");
	char *const again = lease_default_id("/somewhere/a");
	char *const other = lease_default_id("/somewhere/b");
	ck_assert_str_eq(id, again);
	ck_assert_str_ne(id, other);
	ck_assert_uint_eq(
		strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."),
		strlen(id));
	free(other);
	free(again);
	free(id);
}
END_TEST

Suite *test_lease_suite(void);

Suite *test_lease_suite(void)
{
	Suite *const suite = suite_create("lease");
	TCase *const tests = tcase_create("lease");
	tcase_set_timeout(tests, 30);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_lease_is_renewed_well_before_it_ends);
	tcase_add_test(tests, reports_come_as_often_as_the_server_asks);
	tcase_add_test(tests, a_worker_of_a_large_fleet_tells_of_a_step_once);
	tcase_add_test(tests, a_report_that_failed_comes_again_before_long);
	tcase_add_test(tests, what_changes_is_told_at_once);
	tcase_add_test(tests, a_worker_that_is_well_again_tells_of_no_failure);
	tcase_add_test(tests, a_worker_that_ends_in_order_signs_off);
	tcase_add_test(tests, a_report_says_what_is_held_and_wanted);
	tcase_add_loop_test(
		tests, a_report_that_is_not_taken_is_told_of_once_by_who_may_follow, 0, 2);
	tcase_add_test(tests, a_folder_has_an_id);
	suite_add_tcase(suite, tests);
	return suite;
}
