#include "weights/model/json_scan.h"

#include <check.h>
#include <string.h>

#include "base/memory.h"

Suite *test_json_scan_suite(void);

static bool skips(const char *text)
{
	struct json_scan scan;
	json_scan_init(&scan, span_text(text));
	return json_scan_skip(&scan) && json_scan_done(&scan);
}

static const char *const good[] = {
	"null",
	"true",
	"false",
	"0",
	"-0",
	"-1.5e+10",
	"1E5",
	"\"\"",
	"\"a\\u00e4\\n\"",
	"[]",
	"{}",
	"[[],{}]",
	"[1,2,[3,{\"a\":[]}]]",
	"{\"a\":1,\"b\":{\"c\":[null,true]}}",
	" \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
	"[{\"a\":1},{\"b\":2}]",
	"\"\\ud83d\\ude00\"",
};
static const char *const bad[] = {
	"",
	"nul",
	"01",
	"-",
	"1.",
	"1e",
	".5",
	"+1",
	"\"",
	"\"\\x\"",
	"\"\\u12g4\"",
	"\"\\ud800\"",
	"\"\\ude00\"",
	"\"\\ud800\\u0041\"",
	"\"\n\"",
	"[",
	"]",
	"[1",
	"[1,]",
	"[,1]",
	"[1 2]",
	"{",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{a:1}",
	"{\"a\":1,2:3}",
	"[1}",
	"{\"a\":1]",
	"1 2",
	"[] x",
	"'a'",
	"/**/1",
};

START_TEST(whole_values_are_skipped)
{
	ck_assert_msg(skips(good[_i]), "%s", good[_i]);
}
END_TEST

START_TEST(malformed_values_are_faults)
{
	ck_assert_msg(!skips(bad[_i]), "%s", bad[_i]);
}
END_TEST

START_TEST(depth_is_bounded)
{
	char text[1024] = {0};
	memset(text, '[', 128);
	memset(text + 128, ']', 128);
	ck_assert(skips(text));
	memset(text, '[', 129);
	memset(text + 129, ']', 129);
	ck_assert(!skips(text));
}
END_TEST

static struct span scan_text(const char *json, struct buffer *strings)
{
	struct json_scan scan;
	struct span text = {0};
	buffer_init(strings, strlen(json) + 1);
	ck_assert_ptr_nonnull(buffer_reserve(strings, strlen(json)));
	json_scan_init(&scan, span_text(json));
	ck_assert(json_scan_string(&scan, strings, &text));
	ck_assert(json_scan_done(&scan));
	return text;
}

START_TEST(escapes_become_utf8)
{
	static const struct {
		const char *json;
		const char *text;
	} rows[] = {
		{"\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "a\"b\\c/d\b\f\n\r\t"},
		{"\"\\u0041\\u00e4\\u20ac\"", "A\xc3\xa4\xe2\x82\xac"},
		{"\"\\uD83D\\uDE00\"", "\xf0\x9f\x98\x80"},
		{"\"\xc3\xa4\"", "\xc3\xa4"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer strings;
		ck_assert(span_equal_text(scan_text(rows[i].json, &strings), rows[i].text));
		buffer_release(&strings);
	}
	struct buffer strings;
	ck_assert(span_equal(scan_text("\"\\u0000\"", &strings), span_of("", 1)));
	buffer_release(&strings);
}
END_TEST

START_TEST(numbers_are_whole_and_in_range)
{
	static const char *const refused[] = {
		"-1", "-0", "1.0", "1e3", "01", "18446744073709551616", "\"1\"", "", "null"};
	struct json_scan scan;
	uint64_t value = 7;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		json_scan_init(&scan, span_text(refused[i]));
		ck_assert_msg(!json_scan_u64(&scan, &value), "%s", refused[i]);
		ck_assert_ptr_nonnull(scan.fault);
	}
	json_scan_init(&scan, span_text(" 18446744073709551615"));
	ck_assert(json_scan_u64(&scan, &value));
	ck_assert_uint_eq(value, UINT64_MAX);
}
END_TEST

START_TEST(quoting_is_serde_json_s)
{
	struct buffer out;
	buffer_init(&out, 1000);
	json_scan_quote(span_of("a\"b\\\b\f\n\r\t\x01\x1f/\x7f\xc3\xa4\0z", 17), &out);
	ck_assert_str_eq(buffer_text(&out),
		"\"a\\\"b\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\x7f\xc3\xa4\\u0000z\"");
	buffer_release(&out);
}
END_TEST

Suite *test_json_scan_suite(void)
{
	Suite *const suite = suite_create("json_scan");
	TCase *const tcase = tcase_create("json_scan");
	tcase_add_loop_test(tcase, whole_values_are_skipped, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(tcase, malformed_values_are_faults, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, depth_is_bounded);
	tcase_add_test(tcase, escapes_become_utf8);
	tcase_add_test(tcase, numbers_are_whole_and_in_range);
	tcase_add_test(tcase, quoting_is_serde_json_s);
	suite_add_tcase(suite, tcase);
	return suite;
}
