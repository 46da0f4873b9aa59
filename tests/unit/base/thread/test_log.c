#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/json_node.h"
#include "base/thread/lock.h"
#include "base/thread/log.h"

static struct clock_fake fake_clock;
static FILE *sink;
static struct buffer lines;

static void set_up(void)
{
	clock_fake_init(&fake_clock, INT64_C(784111777042));
	sink = tmpfile();
	ck_assert_ptr_nonnull(sink);
	buffer_init(&lines, 16 * 1024 * 1024);
}

static void tear_down(void)
{
	fclose(sink);
	buffer_release(&lines);
}

static struct log *make_log(enum log_level level, bool json)
{
	return log_new(fileno(sink), level, json, &fake_clock.source);
}

static const char *written(void)
{
	char piece[4096];
	off_t at = 0;
	buffer_reset(&lines);
	for (ssize_t got; (got = pread(fileno(sink), piece, sizeof piece, at)) > 0; at += got)
		buffer_add(&lines, piece, (size_t)got);
	return buffer_text(&lines);
}

START_TEST(text_line)
{
	struct log *const log = make_log(LOG_INFO, false);
	const struct log_field fields[] = {log_text("method", "GET"), log_number("status", 200),
		log_number("delta", -5), log_span("key", span_of("abc", 2))};
	log_event(log, LOG_INFO, "req1", "request", fields, 4);
	log_event(log, LOG_ERROR, NULL, "bare", NULL, 0);
	ck_assert_str_eq(written(),
		"1994-11-06T08:49:37.042Z info req1 request method=GET status=200 delta=-5 key=ab\n"
		"1994-11-06T08:49:37.042Z error - bare\n");
	log_free(log);
}
END_TEST

static const struct {
	const char *value, *printed;
} value_rows[] = {
	{"plain/path-1", "plain/path-1"},
	{"", "\"\""},
	{"two words", "\"two words\""},
	{"a=b", "\"a=b\""},
	{"say \"hi\"", "\"say \\\"hi\\\"\""},
	{"back\\slash", "\"back\\\\slash\""},
	{"a\nb\r\t\x1b[2J\x7f", "\"a\\x0ab\\x0d\\x09\\x1b[2J\\x7f\""},
	{"\xc3\xa4", "\"\xc3\xa4\""},
	{"\xff\xc3", "\"\\xff\\xc3\""},
	{"\xc2\x9b"
	 "2J",
		"\"\\xc2\\x9b2J\""},
};

START_TEST(text_values_cannot_forge_fields_or_lines)
{
	char wanted[200];
	struct log *const log = make_log(LOG_INFO, false);
	const struct log_field field = log_text("v", value_rows[_i].value);
	log_event(log, LOG_INFO, NULL, "e", &field, 1);
	snprintf(wanted, sizeof wanted, "1994-11-06T08:49:37.042Z info - e v=%s\n",
		value_rows[_i].printed);
	ck_assert_str_eq(written(), wanted);
	log_free(log);
}
END_TEST

START_TEST(held_lines_leave_in_order)
{
	struct log *const log = make_log(LOG_INFO, false);
	log_hold(log);
	log_event(log, LOG_INFO, NULL, "first", NULL, 0);
	ck_assert_str_eq(written(), "");
	log_event(log, LOG_WARNING, NULL, "second", NULL, 0);
	const char *const both =
		"1994-11-06T08:49:37.042Z info - first\n1994-11-06T08:49:37.042Z warning - second\n";
	ck_assert_str_eq(written(), both);
	log_event(log, LOG_INFO, NULL, "third", NULL, 0);
	ck_assert_str_eq(written(), both);
	log_flush(log);
	ck_assert_uint_eq(strlen(written()),
		strlen(both) + strlen("1994-11-06T08:49:37.042Z info - third\n"));
	log_event(log, LOG_INFO, NULL, "fourth", NULL, 0);
	log_free(log);
	ck_assert_ptr_nonnull(
		strstr(written(), " third\n1994-11-06T08:49:37.042Z info - fourth\n"));
}
END_TEST

START_TEST(held_lines_are_bounded)
{
	struct log *const log = make_log(LOG_INFO, false);
	char text[1000];
	memset(text, 'x', sizeof text);
	const struct log_field field = log_span("v", span_of(text, sizeof text));
	log_hold(log);
	for (int i = 0; i < 100; i++)
		log_event(log, LOG_INFO, NULL, "e", &field, 1);
	ck_assert_uint_gt(strlen(written()), 60 * 1000);
	log_free(log);
	ck_assert_uint_gt(strlen(written()), 100 * 1000);
}
END_TEST

START_TEST(json_line)
{
	struct log *const log = make_log(LOG_INFO, true);
	const struct log_field fields[] = {
		log_text("path", "a \"b\"\n\xff"), log_number("status", 404)};
	log_event(log, LOG_WARNING, "req1", "request", fields, 2);
	ck_assert_str_eq(written(),
		"{\"time\":\"1994-11-06T08:49:37.042Z\",\"level\":\"warning\",\"request_id\":\"req1\",\"event\":\"request\","
		"\"path\":\"a \\\"b\\\"\\n\xef\xbf\xbd\",\"status\":404}\n");
	log_free(log);
}
END_TEST

START_TEST(levels_above_the_chosen_one_are_silent)
{
	struct log *const log = make_log(LOG_WARNING, false);
	ck_assert(log_wants(log, LOG_ERROR) && log_wants(log, LOG_WARNING));
	ck_assert(!log_wants(log, LOG_INFO) && !log_wants(log, LOG_DEBUG));
	log_event(log, LOG_INFO, NULL, "unheard", NULL, 0);
	ck_assert_str_eq(written(), "");
	log_free(log);
}
END_TEST

START_TEST(no_log_is_fine)
{
	const struct error err = {.kind = ERROR_IO, .os_errno = 5, .text = "text"};
	ck_assert(!log_wants(NULL, LOG_ERROR));
	log_event(NULL, LOG_ERROR, NULL, "e", NULL, 0);
	log_failure(NULL, LOG_ERROR, NULL, "e", &err);
	log_free(NULL);
}
END_TEST

START_TEST(failure_has_kind_and_message)
{
	struct log *const log = make_log(LOG_ERROR, false);
	struct error err = {0};
	error_set(&err, ERROR_HEAD_MOVED, "step 5 does not follow");
	log_failure(log, LOG_ERROR, "r", "publish", &err);
	ck_assert_str_eq(written(),
		"1994-11-06T08:49:37.042Z error r publish error=head_moved message=\"step 5 does not follow\"\n");
	log_free(log);
}
END_TEST

START_TEST(long_values_and_lines_are_cut_and_stay_lines)
{
	struct error err = {0};
	struct log_field fields[40];
	char *const value = malloc(10001);
	struct log *const log = make_log(LOG_INFO, true);
	memset(value, '\x01', 10000);
	value[10000] = '\0';
	for (size_t i = 0; i < 40; i++)
		fields[i] = log_text("v", value);
	log_event(log, LOG_INFO, NULL, "one", fields, 1);
	log_event(log, LOG_INFO, NULL, "many", fields, 40);
	struct span rest = span_text(written());
	struct span line;
	ck_assert(span_split(&rest, '\n', &line));
	struct json_node *const one = json_node_parse(line, "line 1", &err);
	struct span text;
	ck_assert(json_node_text(json_node_member(one, "v"), &text));
	ck_assert_uint_eq(text.len, 4096);
	ck_assert(span_split(&rest, '\n', &line));
	struct json_node *const many = json_node_parse(line, "line 2", &err);
	ck_assert_ptr_nonnull(json_node_member(many, "truncated"));
	ck_assert_ptr_null(json_node_member(many, "v"));
	ck_assert_uint_eq(rest.len, 0);
	json_node_free(one);
	json_node_free(many);
	log_free(log);
	free(value);
}
END_TEST

static void *write_many(void *argument)
{
	const struct log_field field = log_text(
		"v", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	for (int i = 0; i < 500; i++)
		log_event(argument, LOG_INFO, NULL, "e", &field, 1);
	return NULL;
}

START_TEST(lines_of_threads_do_not_mix)
{
	pthread_t threads[3];
	struct log *const log = make_log(LOG_INFO, false);
	for (int i = 0; i < 3; i++)
		lock_thread_start(&threads[i], "writer", write_many, log);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	struct span rest = span_text(written());
	struct span line;
	struct span first = {NULL, 0};
	int count = 0;
	while (span_split(&rest, '\n', &line) && line.len > 0) {
		first = count++ == 0 ? line : first;
		ck_assert(span_equal(line, first));
	}
	ck_assert_int_eq(count, 1500);
	log_free(log);
}
END_TEST

Suite *test_log_suite(void);
Suite *test_log_suite(void)
{
	Suite *const suite = suite_create("log");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, text_line);
	tcase_add_loop_test(tc, text_values_cannot_forge_fields_or_lines, 0,
		sizeof value_rows / sizeof value_rows[0]);
	tcase_add_test(tc, held_lines_leave_in_order);
	tcase_add_test(tc, held_lines_are_bounded);
	tcase_add_test(tc, json_line);
	tcase_add_test(tc, levels_above_the_chosen_one_are_silent);
	tcase_add_test(tc, no_log_is_fine);
	tcase_add_test(tc, failure_has_kind_and_message);
	tcase_add_test(tc, long_values_and_lines_are_cut_and_stay_lines);
	tcase_add_test(tc, lines_of_threads_do_not_mix);
	suite_add_tcase(suite, tc);
	return suite;
}
