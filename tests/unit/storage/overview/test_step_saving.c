/* What a reader of a delta was spared is counted behind its reply. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/thread/helpers.h"
#include "storage/core/store.h"
#include "storage/overview/step_saving.h"
#include "tests/unit/storage/run_fixture.h"

enum { JOBS = 16 /* more than there are helpers */, TICK_US = 1000, DELTA_BYTES = 1000 };

static struct store_fixture fixture;
static struct error err;
static atomic_bool is_held;
static atomic_int held;
static struct helper_job jobs[JOBS];
static struct helper_lane lanes[JOBS];

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
	fixture.metrics = metrics_new();
	store_fixture_reopen(&fixture);
	for (unsigned step = 0; step < 2; step++) {
		const struct step_message message =
			run_fixture_prepare(&fixture, step, step == 0, step == 0 ? 0 : DELTA_BYTES);
		run_fixture_publish_ok(&fixture, &message);
	}
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(fixture.metrics);
}

static void hold(struct helper_job *job)
{
	(void)job;
	atomic_fetch_add(&held, 1);
	while (atomic_load(&is_held))
		usleep(TICK_US);
	atomic_fetch_sub(&held, 1);
}

static void hold_helpers(void)
{
	atomic_store(&is_held, true);
	for (int i = 0; i < JOBS; i++) {
		jobs[i] = (struct helper_job){.run = hold};
		lanes[i] = (struct helper_lane){0};
		helpers_submit(store_helpers(fixture.store), &lanes[i], &jobs[i]);
	}
}

static void let_helpers_go(void)
{
	atomic_store(&is_held, false);
	while (helpers_waiting(store_helpers(fixture.store)) > 0 || atomic_load(&held) > 0)
		usleep(TICK_US);
}

START_TEST(a_reply_waits_neither_for_the_catalog_nor_for_helpers)
{
	const struct step_part_sent sent = {
		.run = run_fixture_ref, .from = 0, .step = 1, .bytes = DELTA_BYTES / 2};
	uint64_t full;
	ck_assert_int_eq(step_saving_find(fixture.store, &sent, &full, &err), 0);
	ck_assert_uint_gt(full, 0);
	hold_helpers();
	step_saving_count(fixture.store, &sent);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_FORM_BYTES_SENT), 0);
	let_helpers_go();
	while (metrics_get(fixture.metrics, METRIC_FORM_BYTES_SENT) == 0)
		usleep(TICK_US);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_FORM_BYTES_SENT), DELTA_BYTES / 2);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_FORM_FULL_BYTES_SENT), (int64_t)full);
}
END_TEST

START_TEST(what_is_gone_does_not_count)
{
	const struct step_part_sent sent = {
		.run = run_fixture_ref, .from = 6, .step = 7, .bytes = DELTA_BYTES};
	step_saving_count(fixture.store, &sent);
	store_fixture_reopen(&fixture); /* the end of the store waits for it */
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_FORM_BYTES_SENT), 0);
}
END_TEST

Suite *test_step_saving_suite(void);
Suite *test_step_saving_suite(void)
{
	Suite *const suite = suite_create("step_saving");
	TCase *const tests = tcase_create("step_saving");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_reply_waits_neither_for_the_catalog_nor_for_helpers);
	tcase_add_test(tests, what_is_gone_does_not_count);
	suite_add_tcase(suite, tests);
	return suite;
}
