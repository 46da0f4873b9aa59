#include "api/hub/batch_lines.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define HASH               \
	"0706050403020100" \
	"0f0e0d0c0b0a0908" \
	"1716151413121110" \
	"1f1e1d1c1b1a1918"
#define ADD  "\"type\":\"addFile\",\"path\":\"p\",\"xetHash\":\"" HASH "\""
#define COPY "\"type\":\"copyFile\",\"path\":\"p\",\"xetHash\":\"" HASH "\""

static struct arena *arena;

static void set_up(void)
{
	arena = arena_new(4 * 1024 * 1024);
}

static void tear_down(void)
{
	arena_free(arena);
}

static int parse(const char *text, struct batch_lines *out, struct error *err)
{
	return batch_lines_parse(span_text(text), "main", span_text("team"), arena, out, err);
}

START_TEST(lines_of_all_types_are_read)
{
	static const char text[] =
		"{" ADD
		",\"mtime\":1700000000123,\"contentType\":\"text/plain\",\"size\":7,\"more\":[1]}\n"
		"\r\n"
		"{" COPY
		",\"sourceRepoType\":\"bucket\",\"sourceRepoId\":\"main/b\",\"mtime\":null}\r\n"
		"{" COPY ",\"sourceRepoType\":\"bucket\",\"sourceRepoId\":\"ns/b\"}\n"
		"{" COPY ",\"sourceRepoType\":\"bucket\",\"sourceRepoId\":\"me/b\"}\n"
		"{\"type\":\"judgeDelete\",\"path\":\"e\"}\n"
		"{\"type\":\"deleteFile\",\"path\":\"d/\xc3\xbc\"}"; /* no newline at the end */
	struct batch_lines out;
	struct error err = {0};
	struct chunk_id hash;
	ck_assert_msg(parse(text, &out, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < CHUNK_ID_BYTES; i++)
		hash.bytes[i] = (uint8_t)i;
	ck_assert_uint_eq(out.count, 6);
	const struct batch_line *const lines = out.lines;
	ck_assert_int_eq(lines[0].kind, BATCH_ADD);
	ck_assert(span_equal_text(lines[0].path, "p"));
	ck_assert(chunk_id_equal(&lines[0].file, &hash));
	ck_assert(lines[0].has_mtime && lines[0].mtime_ms == 1700000000123);
	ck_assert(lines[0].has_size && lines[0].size == 7);
	ck_assert(span_equal_text(lines[0].content_type, "text/plain"));
	ck_assert_int_eq(lines[1].kind, BATCH_COPY);
	ck_assert(span_equal_text(lines[1].source.name, "b"));
	ck_assert(!lines[1].has_mtime && !lines[1].has_size);
	ck_assert(span_equal_text(lines[2].source.name, "ns--b"));
	ck_assert(span_equal_text(lines[3].source.name, "team--b"));
	ck_assert_int_eq(lines[4].kind, BATCH_JUDGE_DELETE);
	ck_assert_int_eq(lines[5].kind, BATCH_DELETE);
	ck_assert(span_equal_text(lines[5].path, "d/\xc3\xbc"));
	for (size_t i = 0; i < out.count; i++)
		ck_assert(!lines[i].is_refused);
}
END_TEST

static const struct {
	const char *text;
	int64_t ms;
} times[] = {
	{"1700000000", 1700000000000},
	{"1700000000123", 1700000000123},
	{"99999999999", 99999999999000},
	{"100000000000", 100000000000},
	{"0", 0},
	{"-5", 0},
};

START_TEST(times_in_seconds_are_known_by_their_size)
{
	struct batch_lines out;
	struct error err = {0};
	const char *const text = arena_format(arena, "{" ADD ",\"mtime\":%s}", times[_i].text);
	ck_assert_msg(parse(text, &out, &err) == 0, "%s", err.text);
	ck_assert(out.lines[0].has_mtime);
	ck_assert_int_eq(out.lines[0].mtime_ms, times[_i].ms);
}
END_TEST

static const char *const sources[] = {
	"\"sourceRepoType\":\"model\",\"sourceRepoId\":\"ns/b\"",
	"\"sourceRepoType\":\"bucket\",\"sourceRepoId\":\"b\"",
	"\"sourceRepoType\":\"bucket\",\"sourceRepoId\":\"/b\"",
};

START_TEST(copies_from_what_is_no_bucket_fail_alone)
{
	struct batch_lines out;
	struct error err = {0};
	const char *const text = arena_format(arena, "{" COPY ",%s}\n{" ADD "}", sources[_i]);
	ck_assert_msg(parse(text, &out, &err) == 0, "%s", err.text);
	ck_assert(out.lines[0].is_refused && out.lines[0].error.kind == ERROR_NOT_FOUND);
	ck_assert(!out.lines[1].is_refused);
}
END_TEST

static const char *const malformed[] = {
	"x",
	"[]",
	"{}",
	"{\"type\":\"other\",\"path\":\"p\"}",
	"{\"type\":7}",
	"{\"type\":\"deleteFile\"}",
	"{\"type\":\"deleteFile\",\"path\":7}",
	"{\"type\":\"deleteFile\",\"path\":\"\"}",
	"{\"type\":\"deleteFile\",\"path\":\"/p\"}",
	"{\"type\":\"deleteFile\",\"path\":\"a/../b\"}",
	"{\"type\":\"deleteFile\",\"path\":\"a\\u0000b\"}",
	"{\"type\":\"deleteFile\",\"path\":\"p\"} x",
	"{\"type\":\"deleteFile\",\"path\":\"p\"",
	"{\"type\":\"addFile\",\"path\":\"p\"}",
	"{\"type\":\"addFile\",\"path\":\"p\",\"xetHash\":\"00\"}",
	"{\"type\":\"addFile\",\"path\":\"p\",\"xetHash\":\""
	"0706050403020100"
	"0F0E0D0C0B0A0908"
	"1716151413121110"
	"1F1E1D1C1B1A1918"
	"\"}",
	"{" ADD ",\"mtime\":\"1\"}",
	"{" ADD ",\"mtime\":1.5}",
	"{" ADD ",\"size\":-1}",
	"{" ADD ",\"contentType\":\"a\\r\\nb\"}",
	"{" ADD ",\"contentType\":5}",
	"{" COPY ",\"sourceRepoId\":\"ns/b\"}",
	"{" COPY ",\"sourceRepoType\":\"bucket\"}",
	"{" COPY ",\"sourceRepoType\":1,\"sourceRepoId\":\"ns/b\"}",
};

START_TEST(a_malformed_line_is_named)
{
	struct batch_lines out;
	struct error err = {0};
	const char *const text = arena_format(arena,
		"{\"type\":\"deleteFile\",\"path\":\"p\"}\n\n%s\n{\"type\":\"deleteFile\",\"path\":\"q\"}",
		malformed[_i]);
	ck_assert_int_eq(parse(text, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, "Line 3 ") != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_batch_has_up_to_a_thousand_lines)
{
	static const char line[] = "{\"type\":\"deleteFile\",\"path\":\"p\"}\n\n";
	struct batch_lines out;
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 1024 * 1024);
	for (int i = 0; i < BATCH_LINES_MAX; i++)
		buffer_add_text(&text, line);
	ck_assert_int_eq(
		batch_lines_parse(buffer_span(&text), "main", span_text("team"), arena, &out, &err),
		0);
	ck_assert_uint_eq(out.count, BATCH_LINES_MAX);
	buffer_add_text(&text, line);
	ck_assert_int_eq(
		batch_lines_parse(buffer_span(&text), "main", span_text("team"), arena, &out, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(parse("", &out, &err), 0);
	ck_assert_uint_eq(out.count, 0);
	buffer_release(&text);
}
END_TEST

Suite *test_batch_lines_suite(void);
Suite *test_batch_lines_suite(void)
{
	Suite *const suite = suite_create("batch_lines");
	TCase *const tests = tcase_create("batch_lines");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, lines_of_all_types_are_read);
	tcase_add_loop_test(tests, times_in_seconds_are_known_by_their_size, 0,
		sizeof(times) / sizeof(times[0]));
	tcase_add_loop_test(tests, copies_from_what_is_no_bucket_fail_alone, 0,
		sizeof(sources) / sizeof(sources[0]));
	tcase_add_loop_test(
		tests, a_malformed_line_is_named, 0, sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tests, a_batch_has_up_to_a_thousand_lines);
	suite_add_tcase(suite, tests);
	return suite;
}
