#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/route/route_metrics.h"
#include "api/route/router.h"

enum { PAGE_MAX_BYTES = 4 * 1024 * 1024 };

static struct route_metrics *metrics;
static struct buffer page;

static void set_up(void)
{
	metrics = route_metrics_new();
	buffer_init(&page, PAGE_MAX_BYTES);
}

static void tear_down(void)
{
	buffer_release(&page);
	route_metrics_free(metrics);
}

static const struct route *find(const struct route *routes, const char *name, size_t skip)
{
	while (strcmp(routes->name, name) != 0 || skip-- > 0)
		routes++;
	return routes;
}

static void expect(const char *text)
{
	buffer_reset(&page);
	route_metrics_print(metrics, &page);
	ck_assert_msg(strstr(buffer_text(&page), text) != NULL, "%s is not in:\n%s", text,
		buffer_text(&page));
}

static size_t count_of(const char *text)
{
	size_t count = 0;
	for (const char *at = buffer_text(&page); (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

START_TEST(only_operations_that_were_used_have_series)
{
	const struct route_sample sample = {.face = &face_s3,
		.route = find(s3_routes, "GetObject", 0),
		.status = 206,
		.us = 3000,
		.reply_bytes = 20000};
	expect("# TYPE deltabucket_request_duration_seconds histogram\n");
	ck_assert_uint_eq(count_of("route="), 0);
	route_metrics_count(metrics, &sample);
	expect("deltabucket_request_duration_seconds_bucket"
	       "{face=\"s3\",route=\"GetObject\",le=\"0.005\"} 1\n");
	expect("deltabucket_request_duration_seconds_sum{face=\"s3\",route=\"GetObject\"} 0.003000\n");
	expect("deltabucket_reply_size_bytes_bucket"
	       "{face=\"s3\",route=\"GetObject\",le=\"16384\"} 0\n");
	expect("deltabucket_reply_size_bytes_sum{face=\"s3\",route=\"GetObject\"} 20000\n");
	expect("deltabucket_replies_total{face=\"s3\",route=\"GetObject\",status=\"2xx\"} 1\n");
	expect("deltabucket_replies_total{face=\"s3\",route=\"GetObject\",status=\"5xx\"} 0\n");
	ck_assert_uint_eq(count_of("route="), count_of("route=\"GetObject\""));
}
END_TEST

START_TEST(rows_of_one_operation_count_together)
{
	const struct route_sample samples[] = {
		{.face = &face_s3, .route = find(s3_routes, "OfBucket", 0), .status = 400},
		{.face = &face_s3, .route = find(s3_routes, "OfBucket", 7), .status = 400},
	};
	route_metrics_count(metrics, &samples[0]);
	route_metrics_count(metrics, &samples[1]);
	expect("deltabucket_request_duration_seconds_count{face=\"s3\",route=\"OfBucket\"} 2\n");
	ck_assert_uint_eq(count_of("_duration_seconds_count{face=\"s3\",route=\"OfBucket\"}"), 1);
}
END_TEST

START_TEST(every_row_has_an_operation)
{
	static const struct route *const tables[] = {
		admin_routes, steps_routes, hot_load_routes, hub_routes, xet_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct route *route = tables[i]; route->pattern != NULL; route++) {
			const struct route_sample sample = {
				.face = route->face, .route = route, .status = 200};
			char text[256];
			route_metrics_count(metrics, &sample);
			snprintf(text, sizeof(text), "_total{face=\"%s\",route=\"%s\",",
				route->face->name, route->name);
			expect(text);
		}
	ck_assert_uint_eq(count_of("route=\"none\""), 0);
}
END_TEST

START_TEST(requests_without_a_row_count_by_face)
{
	const struct route_sample samples[] = {{.face = &face_hub, .status = 404, .us = 1},
		{.face = &face_xet, .status = 405, .us = 1}};
	route_metrics_count(metrics, &samples[0]);
	route_metrics_count(metrics, &samples[1]);
	expect("deltabucket_replies_total{face=\"hub\",route=\"none\",status=\"4xx\"} 1\n");
	expect("deltabucket_replies_total{face=\"xet\",route=\"none\",status=\"4xx\"} 1\n");
}
END_TEST

START_TEST(waits_and_clients_that_left_have_no_duration)
{
	const struct route *const route = find(steps_routes, "LatestStep", 0);
	const struct route_sample samples[] = {
		{.face = &face_steps,
			.route = route,
			.status = 200,
			.waited = true,
			.us = 60000000},
		{.face = &face_steps, .route = route, .status = 0, .us = 1},
	};
	route_metrics_count(metrics, &samples[0]);
	route_metrics_count(metrics, &samples[1]);
	route_metrics_count(NULL, &samples[1]);
	expect("deltabucket_replies_total{face=\"steps\",route=\"LatestStep\",status=\"2xx\"} 1\n");
	expect("deltabucket_replies_total{face=\"steps\",route=\"LatestStep\",status=\"none\"} 1\n");
	ck_assert_uint_eq(count_of("duration_seconds_count"), 0);
}
END_TEST

Suite *test_route_metrics_suite(void);
Suite *test_route_metrics_suite(void)
{
	Suite *const suite = suite_create("route_metrics");
	TCase *const tcase = tcase_create("route_metrics");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, only_operations_that_were_used_have_series);
	tcase_add_test(tcase, rows_of_one_operation_count_together);
	tcase_add_test(tcase, every_row_has_an_operation);
	tcase_add_test(tcase, requests_without_a_row_count_by_face);
	tcase_add_test(tcase, waits_and_clients_that_left_have_no_duration);
	suite_add_tcase(suite, tcase);
	return suite;
}
