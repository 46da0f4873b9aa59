#include "tests/unit/unit.h"

#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

START_TEST(add_set_and_get)
{
	struct metrics *const metrics = metrics_new();
	ck_assert_int_eq(metrics_get(metrics, METRIC_REQUESTS), 0);
	metrics_add(metrics, METRIC_REQUESTS, 5);
	metrics_add(metrics, METRIC_REQUESTS, -2);
	metrics_set(metrics, METRIC_CONNECTIONS, 7);
	ck_assert_int_eq(metrics_get(metrics, METRIC_REQUESTS), 3);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CONNECTIONS), 7);
	metrics_free(metrics);
}
END_TEST

START_TEST(no_registry_is_fine)
{
	struct buffer out;
	buffer_init(&out, 100000);
	metrics_add(NULL, METRIC_REQUESTS, 1);
	metrics_set(NULL, METRIC_REQUESTS, 1);
	ck_assert_int_eq(metrics_get(NULL, METRIC_REQUESTS), 0);
	metrics_print(NULL, &out);
	buffer_release(&out);
	metrics_free(NULL);
}
END_TEST

static void expect(const struct buffer *out, const char *text)
{
	ck_assert_msg(strstr(buffer_text(out), text) != NULL, "%s is not in:\n%s", text,
		buffer_text(out));
}

START_TEST(prints_prometheus_text)
{
	struct metrics *const metrics = metrics_new();
	struct buffer out;
	size_t lines = 0;
	buffer_init(&out, 100000);
	metrics_add(metrics, METRIC_REQUESTS, 12);
	metrics_set(metrics, METRIC_CONNECTIONS, 3);
	metrics_print(metrics, &out);
	expect(&out,
		"# HELP deltabucket_requests_total Requests answered.\n"
		"# TYPE deltabucket_requests_total counter\ndeltabucket_requests_total 12\n");
	expect(&out, "# TYPE deltabucket_connections gauge\ndeltabucket_connections 3\n");
	expect(&out, "# TYPE deltabucket_work_duration_seconds histogram\n");
	for (const char *at = buffer_text(&out); *at != '\0'; at++)
		lines += *at == '\n' ? 1 : 0;
	ck_assert_uint_eq(lines, 3 * METRIC_COUNT + 2); /* no work has ended yet */
	buffer_release(&out);
	metrics_free(metrics);
}
END_TEST

START_TEST(work_is_timed_by_kind)
{
	struct metrics *const metrics = metrics_new();
	struct buffer out;
	buffer_init(&out, 100000);
	metrics_work(metrics, METRIC_WORK_GC_ROUND, clock_monotonic_us() - 20 * 1000 * 1000);
	metrics_work(metrics, METRIC_WORK_GC_ROUND, clock_monotonic_us() + 1000 * 1000);
	metrics_work(NULL, METRIC_WORK_GC_ROUND, 0);
	ck_assert_uint_eq(metrics_work_count(metrics, METRIC_WORK_GC_ROUND), 2);
	ck_assert_uint_eq(metrics_work_count(metrics, METRIC_WORK_COMMIT), 0);
	ck_assert_uint_eq(metrics_work_count(NULL, METRIC_WORK_COMMIT), 0);
	metrics_print(metrics, &out);
	expect(&out, "_bucket{work=\"gc_round\",le=\"0.001\"} 1\n");
	expect(&out, "_bucket{work=\"gc_round\",le=\"15\"} 1\n");
	expect(&out, "_bucket{work=\"gc_round\",le=\"60\"} 2\n");
	expect(&out, "deltabucket_work_duration_seconds_count{work=\"gc_round\"} 2\n");
	ck_assert_ptr_null(strstr(buffer_text(&out), "\"commit\""));
	buffer_release(&out);
	metrics_free(metrics);
}
END_TEST

Suite *test_metrics_suite(void);
Suite *test_metrics_suite(void)
{
	Suite *const suite = suite_create("metrics");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, add_set_and_get);
	tcase_add_test(tc, no_registry_is_fine);
	tcase_add_test(tc, prints_prometheus_text);
	tcase_add_test(tc, work_is_timed_by_kind);
	suite_add_tcase(suite, tc);
	return suite;
}
