#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/wire/message_text.h"
#include "wire/step_message.h"

#define ADOPT_DEFAULTS \
	"\"view_trl\":false,\"view_slime\":false,\"adopt\":\"\",\"adopt_prefix\":\"{run}/\",\"hot_load\":\"\",\"hot_load_prefix\":\"{run}/\",\"webhook\":\"\""

static const char full_run[] =
	"{\"bucket\":\"models\",\"run\":\"llm\",\"epoch\":3,\"head\":5,\"head_digest\":\"" DIGEST_A
	"\",\"schema_digest\":\"" DIGEST_B
	"\",\"steps\":6,\"bytes\":1234567890123,\"keep_steps\":100,\"settings\":{\"keep_steps\":100,\"lease_s\":30,\"verify\":false," ADOPT_DEFAULTS
	"},"
	"\"parent\":{\"run\":\"old\",\"step\":7,\"digest\":\"" DIGEST_A
	"\"},\"failed_adoption\":{\"publish\":\"step_000007\",\"created\":\"2026-01-02T03:04:06.000Z\",\"error\":\"why\"},\"rollback\":{\"step\":4,\"created\":\"2026-01-02T03:04:07.000Z\"},\"created\":\"2026-01-02T03:04:05.000Z\"}";
static const char new_run[] =
	"{\"bucket\":\"models\",\"run\":\"llm\",\"epoch\":0,\"head\":null,\"head_digest\":null,\"schema_digest\":null,"
	"\"steps\":0,\"bytes\":0,\"keep_steps\":0,\"settings\":{\"keep_steps\":0,\"lease_s\":120,\"verify\":true," ADOPT_DEFAULTS
	"},\"created\":\"2026-01-02T03:04:05.000Z\"}";

static struct arena *arena;
static struct error err;
static struct buffer out;

static void set_up(void)
{
	arena = arena_new(1024 * 1024);
	buffer_init(&out, 100000);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
	buffer_release(&out);
}

START_TEST(run_goes_there_and_back)
{
	static const char *const texts[] = {full_run, new_run};
	struct run_message run;
	ck_assert_msg(
		run_message_parse(span_text(texts[_i]), arena, &run, &err) == 0, "%s", err.text);
	ck_assert(span_equal_text(run.bucket, "models") && span_equal_text(run.run, "llm"));
	ck_assert_int_eq(run.has_head, _i == 0);
	ck_assert_int_eq(run.has_schema, _i == 0);
	if (_i == 0)
		ck_assert(run.epoch == 3 && run.head == 5 && run.steps == 6 &&
			run.bytes == UINT64_C(1234567890123) && run.settings.keep_steps == 100);
	ck_assert(span_equal_text(run.failed_adoption.error, _i == 0 ? "why" : ""));
	ck_assert_int_eq(run.rollback.is_on, _i == 0);
	ck_assert_uint_eq(run.rollback.step, _i == 0 ? 4 : 0);
	ck_assert(run.created_ms == INT64_C(1767323045000));
	run_message_print(&run, &out);
	ck_assert_str_eq(buffer_text(&out), texts[_i]);
}
END_TEST

static const struct {
	const char *old, *with;
} bad_run_rows[] = {
	{"\"bucket\":\"models\",", ""},
	{"\"run\":\"llm\",", ""},
	{"\"epoch\":3", "\"epoch\":\"3\""},
	{"\"head\":5", "\"head\":-1"},
	{"\"head_digest\":\"" DIGEST_A "\",", ""},
	{DIGEST_B, "xxh3-128:"},
	{"\"steps\":6,", ""},
	{"\"bytes\":1234567890123", "\"bytes\":1.5"},
	{"\"keep_steps\":100,\"settings\"", "\"settings\""},
	{"\"verify\":false", "\"verify\":0"},
	{"2026-01-02T03:04:05.000Z", "then"},
	{"\"step\":7,", ""},
	{"},\"created\"", ",\"created\""},
	{"\"publish\":\"step_000007\",", ""},
	{"\"error\":\"why\"", "\"error\":0"},
	{"\"step\":4,", ""},
	{"2026-01-02T03:04:07.000Z", "then"},
	{"2026-01-02T03:04:06.000Z", "then"},
	{"{", "[{"},
};

START_TEST(bad_runs_are_refused)
{
	struct run_message run;
	char *const text =
		message_text_replace(full_run, bad_run_rows[_i].old, bad_run_rows[_i].with);
	ck_assert_msg(
		run_message_parse(span_text(text), arena, &run, &err) == -1, "taken: %s", text);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

START_TEST(error_goes_there_and_back)
{
	struct error_message message;
	const struct error_message gone = {.code = span_text("collected"),
		.message = span_text("step 5 is \"gone\""),
		.has_anchor = true,
		.anchor = 9};
	error_message_print(&gone, "req-1", &out);
	ck_assert_str_eq(buffer_text(&out),
		"{\"error\":{\"code\":\"collected\",\"message\":\"step 5 is \\\"gone\\\"\",\"request_id\":\"req-1\",\"anchor\":9}}");
	ck_assert_int_eq(error_message_parse(buffer_span(&out), arena, &message, &err), 0);
	ck_assert(span_equal_text(message.code, "collected") &&
		span_equal_text(message.message, "step 5 is \"gone\""));
	ck_assert(message.has_anchor && message.anchor == 9);
}
END_TEST

START_TEST(error_without_anchor_and_id)
{
	struct error_message message;
	const struct error_message moved = {
		.code = span_text("head_moved"), .message = span_text("m")};
	error_message_print(&moved, NULL, &out);
	ck_assert_str_eq(
		buffer_text(&out), "{\"error\":{\"code\":\"head_moved\",\"message\":\"m\"}}");
	ck_assert_int_eq(error_message_parse(buffer_span(&out), arena, &message, &err), 0);
	ck_assert(!message.has_anchor);
}
END_TEST

static const char *const bad_errors[] = {
	"",
	"{}",
	"[]",
	"<html>",
	"{\"error\":\"text\"}",
	"{\"error\":{\"code\":\"c\"}}",
	"{\"error\":{\"message\":\"m\"}}",
	"{\"error\":{\"code\":1,\"message\":\"m\"}}",
	"{\"error\":{\"code\":\"c\",\"message\":\"m\",\"anchor\":\"9\"}}",
	"{\"error\":[\"code\"]}",
};

START_TEST(other_bodies_are_no_error_message)
{
	struct error_message message;
	ck_assert_int_eq(error_message_parse(span_text(bad_errors[_i]), arena, &message, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

Suite *test_run_message_suite(void);
Suite *test_run_message_suite(void)
{
	Suite *const suite = suite_create("run_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, run_goes_there_and_back, 0, 2);
	tcase_add_loop_test(
		tc, bad_runs_are_refused, 0, sizeof(bad_run_rows) / sizeof(bad_run_rows[0]));
	tcase_add_test(tc, error_goes_there_and_back);
	tcase_add_test(tc, error_without_anchor_and_id);
	tcase_add_loop_test(tc, other_bodies_are_no_error_message, 0,
		sizeof(bad_errors) / sizeof(bad_errors[0]));
	suite_add_tcase(suite, tc);
	return suite;
}
