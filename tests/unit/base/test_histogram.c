#include "tests/unit/unit.h"

#include <pthread.h>

#include "base/histogram.h"

enum { THREADS = 4, OBSERVATIONS = 10000 };

static const int64_t bounds[] = {10, 1000};
static const struct histogram_plan bytes = {
	.name = "size_bytes", .help = "Sizes.", .bounds = bounds, .count = 2};
static const struct histogram_plan seconds = {
	.name = "took_seconds", .help = "Times.", .bounds = bounds, .count = 2, .is_micros = true};

static void expect_text(const struct histogram *histogram, const struct histogram_plan *plan,
	const char *labels, const char *text)
{
	struct buffer out;
	buffer_init(&out, 10000);
	histogram_print(histogram, plan, span_text(labels), &out);
	ck_assert_str_eq(buffer_text(&out), text);
	buffer_release(&out);
}

START_TEST(buckets_count_what_is_at_most_their_bound)
{
	struct histogram histogram = {.sum = 0};
	static const int64_t values[] = {-5, 0, 10, 11, 1000, 1001};
	ck_assert_uint_eq(histogram_count(&histogram), 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		histogram_observe(&histogram, &bytes, values[i]);
	ck_assert_uint_eq(histogram_count(&histogram), 6);
	expect_text(&histogram, &bytes, "a=\"b\"",
		"size_bytes_bucket{a=\"b\",le=\"10\"} 3\n"
		"size_bytes_bucket{a=\"b\",le=\"1000\"} 5\n"
		"size_bytes_bucket{a=\"b\",le=\"+Inf\"} 6\n"
		"size_bytes_sum{a=\"b\"} 2022\n"
		"size_bytes_count{a=\"b\"} 6\n");
}
END_TEST

START_TEST(microseconds_are_exported_as_seconds)
{
	struct histogram histogram = {.sum = 0};
	histogram_observe(&histogram, &seconds, 7);
	histogram_observe(&histogram, &seconds, 2500000);
	expect_text(&histogram, &seconds, "",
		"took_seconds_bucket{le=\"1e-05\"} 1\n"
		"took_seconds_bucket{le=\"0.001\"} 1\n"
		"took_seconds_bucket{le=\"+Inf\"} 2\n"
		"took_seconds_sum 2.500007\n"
		"took_seconds_count 2\n");
}
END_TEST

static void *observe_many(void *argument)
{
	for (int i = 0; i < OBSERVATIONS; i++)
		histogram_observe(argument, &bytes, i % 20);
	return NULL;
}

START_TEST(threads_lose_no_observation)
{
	struct histogram histogram = {.sum = 0};
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, observe_many, &histogram), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(histogram_count(&histogram), THREADS * OBSERVATIONS);
	ck_assert_int_eq(histogram.counts[0], THREADS * OBSERVATIONS / 20 * 11);
}
END_TEST

Suite *test_histogram_suite(void);
Suite *test_histogram_suite(void)
{
	Suite *const suite = suite_create("histogram");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, buckets_count_what_is_at_most_their_bound);
	tcase_add_test(tc, microseconds_are_exported_as_seconds);
	tcase_add_test(tc, threads_lose_no_observation);
	suite_add_tcase(suite, tc);
	return suite;
}
