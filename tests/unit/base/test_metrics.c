#include "tests/unit/unit.h"

#include <string.h>

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

START_TEST(prints_prometheus_text)
{
	struct metrics *const metrics = metrics_new();
	struct buffer out;
	size_t lines = 0;
	buffer_init(&out, 100000);
	metrics_add(metrics, METRIC_REQUESTS, 12);
	metrics_set(metrics, METRIC_CONNECTIONS, 3);
	metrics_print(metrics, &out);
	const char *const text = buffer_text(&out);
	ck_assert_ptr_nonnull(strstr(text,
		"# HELP deltabucket_requests requests answered\n# TYPE deltabucket_requests counter\ndeltabucket_requests 12\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "# TYPE deltabucket_connections gauge\ndeltabucket_connections 3\n"));
	for (const char *at = text; *at != '\0'; at++)
		lines += *at == '\n' ? 1 : 0;
	ck_assert_uint_eq(lines, 3 * METRIC_COUNT);
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
	suite_add_tcase(suite, tc);
	return suite;
}
