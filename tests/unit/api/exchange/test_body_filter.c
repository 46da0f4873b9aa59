#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include "api/exchange/body_filter.h"
#include "api/exchange/payload.h"
#include "base/digest/digest.h"
#include "base/memory.h"

struct probe { /* the inner sink; records its calls */
	struct body_sink sink;
	struct buffer taken;
	int waits; /* how often it answers SINK_WAIT first */
	int finished;
	int aborted;
	bool refuse_finish;
};

static enum sink_result probe_write(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct probe *const probe = (struct probe *)sink;
	(void)err;
	if (probe->waits-- > 0)
		return SINK_WAIT;
	buffer_add_span(&probe->taken, bytes);
	return SINK_TAKEN;
}

static int probe_finish(struct body_sink *sink, struct error *err)
{
	struct probe *const probe = (struct probe *)sink;
	probe->finished++;
	return probe->refuse_finish ? error_set(err, ERROR_NO_SPACE, "no room") : 0;
}

static void probe_abort(struct body_sink *sink)
{
	((struct probe *)sink)->aborted++;
}

struct bench {
	struct fake_exchange *fake;
	struct probe probe;
	struct body_sink *filter;
};

static void open_bench(
	struct bench *bench, bool has_length, uint64_t length, const char *signed_body)
{
	bench->fake = fake_exchange_new(NULL, METHOD_PUT, "/b/k");
	bench->fake->exchange.has_length = has_length;
	bench->fake->exchange.length = length;
	if (signed_body != NULL) {
		bench->fake->exchange.payload_rule = PAYLOAD_SHA256;
		sha256(span_text(signed_body), bench->fake->exchange.payload_sha256);
	}
	bench->probe = (struct probe){.sink = {probe_write, probe_finish, probe_abort}};
	buffer_init(&bench->probe.taken, 1000000);
	bench->filter = body_filter_new(&bench->fake->exchange, &bench->probe.sink);
}

static void close_bench(struct bench *bench)
{
	buffer_release(&bench->probe.taken);
	fake_exchange_free(bench->fake);
}

static enum sink_result write_text(struct bench *bench, const char *text, struct error *err)
{
	return bench->filter->write(bench->filter, span_text(text), err);
}

START_TEST(a_whole_signed_body_passes)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 10, "helloworld");
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_TAKEN);
	ck_assert_int_eq(write_text(&bench, "world", &err), SINK_TAKEN);
	ck_assert_int_eq(bench.filter->finish(bench.filter, &err), 0);
	ck_assert_int_eq(bench.probe.finished, 1);
	ck_assert_str_eq(buffer_text(&bench.probe.taken), "helloworld");
	close_bench(&bench);
}
END_TEST

START_TEST(bytes_that_had_to_wait_count_once)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 5, "hello");
	bench.probe.waits = 2;
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_WAIT);
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_WAIT);
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_TAKEN);
	ck_assert_int_eq(bench.filter->finish(bench.filter, &err), 0);
	close_bench(&bench);
}
END_TEST

START_TEST(another_body_than_the_signed_one_is_refused)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 5, "hello");
	ck_assert_int_eq(write_text(&bench, "hellO", &err), SINK_TAKEN);
	ck_assert_int_eq(bench.filter->finish(bench.filter, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_SHA256_MISMATCH);
	ck_assert_int_eq(bench.probe.finished, 0);
	bench.filter->abort(bench.filter);
	ck_assert_int_eq(bench.probe.aborted, 1);
	close_bench(&bench);
}
END_TEST

START_TEST(a_short_body_is_incomplete)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 6, NULL);
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_TAKEN);
	ck_assert_int_eq(bench.filter->finish(bench.filter, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INCOMPLETE_BODY);
	ck_assert_int_eq(bench.probe.finished, 0);
	bench.filter->abort(bench.filter);
	close_bench(&bench);
}
END_TEST

START_TEST(a_body_over_its_declared_length_is_refused)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 4, NULL);
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_FAILED);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	ck_assert_uint_eq(bench.probe.taken.len, 0);
	bench.filter->abort(bench.filter);
	ck_assert_int_eq(bench.probe.aborted, 1);
	close_bench(&bench);
}
END_TEST

START_TEST(a_body_without_length_is_bounded_by_the_limit)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, false, 0, NULL);
	struct api_context context = *bench.fake->exchange.context;
	context.put_max_bytes = 8;
	bench.fake->exchange.context = &context;
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_TAKEN);
	ck_assert_int_eq(write_text(&bench, "world", &err), SINK_FAILED);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	bench.filter->abort(bench.filter);
	close_bench(&bench);
}
END_TEST

START_TEST(a_failing_inner_finish_is_passed_on)
{
	struct bench bench;
	struct error err = {0};
	open_bench(&bench, true, 5, "hello");
	bench.probe.refuse_finish = true;
	ck_assert_int_eq(write_text(&bench, "hello", &err), SINK_TAKEN);
	ck_assert_int_eq(bench.filter->finish(bench.filter, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	bench.filter->abort(bench.filter);
	ck_assert_int_eq(bench.probe.aborted, 1);
	close_bench(&bench);
}
END_TEST

Suite *test_body_filter_suite(void);

Suite *test_body_filter_suite(void)
{
	Suite *const suite = suite_create("body_filter");
	TCase *const tcase = tcase_create("body_filter");
	tcase_add_test(tcase, a_whole_signed_body_passes);
	tcase_add_test(tcase, bytes_that_had_to_wait_count_once);
	tcase_add_test(tcase, another_body_than_the_signed_one_is_refused);
	tcase_add_test(tcase, a_short_body_is_incomplete);
	tcase_add_test(tcase, a_body_over_its_declared_length_is_refused);
	tcase_add_test(tcase, a_body_without_length_is_bounded_by_the_limit);
	tcase_add_test(tcase, a_failing_inner_finish_is_passed_on);
	suite_add_tcase(suite, tcase);
	return suite;
}
