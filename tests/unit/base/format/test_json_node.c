#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"

static struct json_node *parse(const char *text)
{
	struct error err = {0};
	struct json_node *const root = json_node_parse(span_text(text), "the test text", &err);
	ck_assert_msg(root != NULL, "%s", err.text);
	return root;
}

START_TEST(wiped_texts_are_zeros)
{
	static const uint8_t zeros[6];
	struct json_node *const root =
		parse("{\"s\":\"secret\",\"a\":[{\"t\":\"tokens\"}],\"n\":1}");
	struct span texts[2];
	const struct json_node *const inner = json_node_at(json_node_member(root, "a"), 0);
	ck_assert(json_node_text(json_node_member(root, "s"), &texts[0]));
	ck_assert(json_node_text(json_node_member(inner, "t"), &texts[1]));
	json_node_wipe(root);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(texts[i].len, sizeof(zeros));
		ck_assert_mem_eq(texts[i].data, zeros, sizeof(zeros));
	}
	json_node_free(root);
	json_node_wipe(NULL);
}
END_TEST

START_TEST(members_and_types)
{
	struct json_node *const root = parse(
		"{\"t\":\"x\",\"n\":5,\"m\":-5,\"b\":true,\"f\":false,\"z\":null,\"a\":[1,2],\"o\":{}}");
	struct span text;
	uint64_t number = 0;
	int64_t signed_number = 0;
	bool flag = false;
	ck_assert(json_node_is_object(root));
	ck_assert_uint_eq(json_node_count(root), 8);
	ck_assert(json_node_text(json_node_member(root, "t"), &text) && span_equal_text(text, "x"));
	ck_assert(json_node_is_text(json_node_member(root, "t")));
	ck_assert(json_node_u64(json_node_member(root, "n"), &number) && number == 5);
	ck_assert(
		json_node_i64(json_node_member(root, "m"), &signed_number) && signed_number == -5);
	ck_assert(json_node_bool(json_node_member(root, "b"), &flag) && flag);
	ck_assert(json_node_bool(json_node_member(root, "f"), &flag) && !flag);
	ck_assert(json_node_is_null(json_node_member(root, "z")));
	const struct json_node *const array = json_node_member(root, "a");
	ck_assert(json_node_is_array(array) && json_node_count(array) == 2);
	ck_assert(json_node_u64(json_node_at(array, 1), &number) && number == 2);
	ck_assert_ptr_null(json_node_at(array, 2));
	ck_assert_ptr_null(json_node_member(root, "absent"));
	ck_assert_ptr_null(json_node_member(array, "t"));
	ck_assert_uint_eq(json_node_count(json_node_member(root, "o")), 0);
	json_node_free(root);
	json_node_free(NULL);
}
END_TEST

START_TEST(absent_nodes_are_of_no_type)
{
	struct span text;
	uint64_t number;
	int64_t signed_number;
	bool flag;
	ck_assert(!json_node_is_object(NULL) && !json_node_is_array(NULL) &&
		!json_node_is_text(NULL) && !json_node_is_null(NULL));
	ck_assert_uint_eq(json_node_count(NULL), 0);
	ck_assert_ptr_null(json_node_member(NULL, "a"));
	ck_assert_ptr_null(json_node_at(NULL, 0));
	ck_assert(!json_node_text(NULL, &text) && !json_node_u64(NULL, &number) &&
		!json_node_i64(NULL, &signed_number) && !json_node_bool(NULL, &flag));
}
END_TEST

static const struct {
	const char *text;
	bool valid;
	uint64_t value;
} number_rows[] = {
	{"0", true, 0},
	{"9223372036854775807", true, INT64_MAX},
	{"1.0", false, 0},
	{"1e3", false, 0},
	{"-1", false, 0},
	{"1.5", false, 0},
	{"\"1\"", false, 0},
	{"true", false, 0},
	{"null", false, 0},
	{"[1]", false, 0},
};

START_TEST(whole_numbers_are_as_written)
{
	uint64_t value = 4711;
	struct json_node *const root = parse(number_rows[_i].text);
	ck_assert_int_eq(json_node_u64(root, &value), number_rows[_i].valid);
	ck_assert(value == (number_rows[_i].valid ? number_rows[_i].value : 4711));
	json_node_free(root);
}
END_TEST

static const char *const bad_rows[] = {
	"",
	" ",
	"{",
	"}",
	"[1,]",
	"{\"a\":1,}",
	"{\"a\":1} x",
	"{\"a\":1}{}",
	"{\"a\":1,\"a\":2}",
	"{\"o\":{\"a\":1,\"b\":2,\"a\":3}}",
	"{a:1}",
	"'a'",
	"{\"a\":01}",
	"NaN",
	"[Infinity]",
	"9223372036854775808",
	"99999999999999999999999",
	"1e999",
	"\"\\ud800\"",
	"\"\xff\"",
	"\"\xc0\xaf\"",
	"\"tab\there\"",
	"{\"a\\u0000b\":1}",
	"nul",
	"\"open",
	"\"\\x\"",
	"[1 2]",
	"-",
	"+1",
	".5",
	"/**/1",
	"\xef\xbb\xbf{}",
};

START_TEST(malformed_text_is_invalid_and_located)
{
	struct error err = {0};
	ck_assert_msg(json_node_parse(span_text(bad_rows[_i]), "the test text", &err) == NULL,
		"%s was taken", bad_rows[_i]);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(strstr(err.text, "the test text") != NULL && strstr(err.text, "line ") != NULL &&
		strstr(err.text, "column ") != NULL);
}
END_TEST

static char *nested(const char *open, size_t depth, const char *close)
{
	char *const text = calloc(1, depth * (strlen(open) + strlen(close)) + 1);
	for (size_t i = 0; i < depth; i++)
		memcpy(text + i * strlen(open), open, strlen(open));
	for (size_t i = 0; i < depth; i++)
		memcpy(text + depth * strlen(open) + i * strlen(close), close, strlen(close));
	return text;
}

static bool parses_nested(const char *open, size_t depth, const char *close)
{
	struct error err = {0};
	char *const text = nested(open, depth, close);
	struct json_node *const root = json_node_parse(span_text(text), "the test text", &err);
	const bool parsed = root != NULL;
	ck_assert(parsed || err.kind == ERROR_INVALID);
	json_node_free(root);
	free(text);
	return parsed;
}

START_TEST(nesting_ends_at_64)
{
	ck_assert(parses_nested("[", 64, "]"));
	ck_assert(!parses_nested("[", 65, "]"));
	ck_assert(!parses_nested("[\"]\\\"]\",", 65, "]"));
	ck_assert(!parses_nested("{\"a\":[", 33, "]}"));
	ck_assert(!parses_nested("[", 10 * 1000 * 1000, ""));
	ck_assert(!parses_nested("]", 1000, "["));
}
END_TEST

START_TEST(values_can_be_bounded)
{
	static const struct {
		const char *text;
		bool fits;
	} rows[] = {
		{"[1,2,3,4]", true},
		{"[1,2,3,4,5]", false},
		{"[[],[]]", true},
		{"[[],[],[]]", false},
		{"{\"a\":1,\"b\":{}}", true},
		{"[{},{},0]", false},
		{"\",,,,,,[[[[[{{{{\"", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		struct json_node *const root =
			json_node_parse_within(span_text(rows[i].text), 4, "the test text", &err);
		ck_assert_msg((root != NULL) == rows[i].fits, "%s", rows[i].text);
		ck_assert_int_eq(err.kind, rows[i].fits ? ERROR_NONE : ERROR_INVALID);
		json_node_free(root);
	}
}
END_TEST

START_TEST(brackets_in_texts_are_no_nesting)
{
	struct json_node *const root = parse(
		"[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"{{{{\"]");
	ck_assert_uint_eq(json_node_count(root), 1);
	json_node_free(root);
}
END_TEST

START_TEST(texts_may_hold_nul)
{
	struct json_node *const root = parse("\"a\\u0000b\"");
	struct span text;
	ck_assert(json_node_text(root, &text) && span_equal(text, span_of("a\0b", 3)));
	json_node_free(root);
}
END_TEST

START_TEST(members_come_in_the_order_written)
{
	static const char *const wanted[] = {"z", "a", "m", "", "b"};
	struct json_node *const root = parse("{\"z\":0,\"a\":1,\"m\":2,\"\":3,\"b\":4}");
	const struct json_node *value;
	struct span name;
	uint64_t count = 0;
	for (void *cursor = NULL; json_node_each(root, &cursor, &name, &value); count++) {
		uint64_t number = 99;
		ck_assert(span_equal_text(name, wanted[count]));
		ck_assert(json_node_u64(value, &number) && number == count);
	}
	ck_assert_uint_eq(count, 5);
	json_node_free(root);
}
END_TEST

START_TEST(empty_and_other_values_have_no_members)
{
	struct json_node *const root = parse("[{},5]");
	const struct json_node *value;
	struct span name;
	void *cursor = NULL;
	ck_assert(!json_node_each(json_node_at(root, 0), &cursor, &name, &value));
	ck_assert(!json_node_each(json_node_at(root, 1), &cursor, &name, &value));
	ck_assert(!json_node_each(NULL, &cursor, &name, &value));
	json_node_free(root);
}
END_TEST

START_TEST(print_is_compact_and_in_order)
{
	struct json_node *const root =
		parse(" { \"b\" : [ 1 , -2, true , null ] , \"a\" : \"\\u00e4\\n\\u0000\" } ");
	struct buffer out;
	buffer_init(&out, 1000);
	json_node_print(root, &out);
	ck_assert_str_eq(
		buffer_text(&out), "{\"b\":[1,-2,true,null],\"a\":\"\xc3\xa4\\n\\u0000\"}");
	buffer_reset(&out);
	json_node_print(json_node_member(root, "a"), &out);
	ck_assert_str_eq(buffer_text(&out), "\"\xc3\xa4\\n\\u0000\"");
	buffer_release(&out);
	json_node_free(root);
}
END_TEST

Suite *test_json_node_suite(void);
Suite *test_json_node_suite(void)
{
	Suite *const suite = suite_create("json_node");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, members_and_types);
	tcase_add_test(tc, wiped_texts_are_zeros);
	tcase_add_test(tc, absent_nodes_are_of_no_type);
	tcase_add_loop_test(
		tc, whole_numbers_are_as_written, 0, sizeof number_rows / sizeof number_rows[0]);
	tcase_add_loop_test(
		tc, malformed_text_is_invalid_and_located, 0, sizeof bad_rows / sizeof bad_rows[0]);
	tcase_add_test(tc, nesting_ends_at_64);
	tcase_add_test(tc, values_can_be_bounded);
	tcase_add_test(tc, brackets_in_texts_are_no_nesting);
	tcase_add_test(tc, texts_may_hold_nul);
	tcase_add_test(tc, members_come_in_the_order_written);
	tcase_add_test(tc, empty_and_other_values_have_no_members);
	tcase_add_test(tc, print_is_compact_and_in_order);
	suite_add_tcase(suite, tc);
	return suite;
}
