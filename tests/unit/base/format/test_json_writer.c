#include "tests/unit/unit.h"

#include "base/format/json_node.h"
#include "tests/unit/base/abort_check.h"

static struct buffer out;
static struct json_writer writer;

static void set_up(void)
{
	buffer_init(&out, 100000);
	json_writer_init(&writer, &out);
}

static void tear_down(void)
{
	buffer_release(&out);
}

START_TEST(everything_in_one_object)
{
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "t", span_text("x"));
	json_writer_u64(&writer, "u", UINT64_MAX);
	json_writer_i64(&writer, "i", INT64_MIN);
	json_writer_bool(&writer, "b", true);
	json_writer_bool(&writer, "c", false);
	json_writer_null(&writer, "z");
	json_writer_raw(&writer, "r", span_text("{\"k\":1}"));
	json_writer_array(&writer, "a");
	json_writer_u64(&writer, NULL, 1);
	json_writer_object(&writer, NULL);
	json_writer_end(&writer, '}');
	json_writer_array(&writer, NULL);
	json_writer_end(&writer, ']');
	json_writer_u64(&writer, NULL, 2);
	json_writer_end(&writer, ']');
	json_writer_object(&writer, "o");
	json_writer_null(&writer, "k");
	json_writer_end(&writer, '}');
	json_writer_end(&writer, '}');
	ck_assert_str_eq(buffer_text(&out),
		"{\"t\":\"x\",\"u\":18446744073709551615,\"i\":-9223372036854775808,\"b\":true,\"c\":false,\"z\":null,"
		"\"r\":{\"k\":1},\"a\":[1,{},[],2],\"o\":{\"k\":null}}");
}
END_TEST

START_TEST(bare_value_at_the_root)
{
	json_writer_text(&writer, NULL, span_text("x"));
	ck_assert_str_eq(buffer_text(&out), "\"x\"");
}
END_TEST

START_TEST(control_characters_and_quotes_are_escaped)
{
	json_writer_text(&writer, NULL, span_of("\"\\/\b\f\n\r\t\x01\x1f\x7f\0.", 13));
	ck_assert_str_eq(
		buffer_text(&out), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u0000.\"");
}
END_TEST

START_TEST(names_are_escaped_too)
{
	json_writer_object(&writer, NULL);
	json_writer_null(&writer, "a\"\n");
	json_writer_end(&writer, '}');
	ck_assert_str_eq(buffer_text(&out), "{\"a\\\"\\n\":null}");
}
END_TEST

START_TEST(utf8_stays_and_other_bytes_are_replaced)
{
	json_writer_text(&writer, NULL,
		span_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xff|\xc3|\xed\xa0\x80"));
	ck_assert_str_eq(buffer_text(&out),
		"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(all_bytes_parse_back)
{
	struct error err = {0};
	uint8_t bytes[256];
	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)i;
	json_writer_text(&writer, NULL, span_of(bytes, sizeof bytes));
	struct json_node *const root = json_node_parse(buffer_span(&out), "what was written", &err);
	struct span text;
	ck_assert_msg(root != NULL, "%s", err.text);
	ck_assert(json_node_text(root, &text) &&
		span_equal(span_slice(text, 0, 128), span_of(bytes, 128)));
	json_node_free(root);
}
END_TEST

START_TEST(nesting_of_64_is_written)
{
	struct error err = {0};
	for (int i = 0; i < 64; i++) {
		json_writer_array(&writer, NULL);
		json_writer_u64(&writer, NULL, 1);
	}
	for (int i = 0; i < 64; i++) {
		json_writer_u64(&writer, NULL, 2);
		json_writer_end(&writer, ']');
	}
	struct json_node *const root = json_node_parse(buffer_span(&out), "what was written", &err);
	ck_assert_msg(root != NULL, "%s", err.text);
	ck_assert_uint_eq(json_node_count(root), 3);
	json_node_free(root);
}
END_TEST

static void nest_65(void *argument)
{
	(void)argument;
	for (int i = 0; i < 65; i++)
		json_writer_array(&writer, NULL);
}

static void end_too_often(void *argument)
{
	(void)argument;
	json_writer_end(&writer, '}');
}

START_TEST(misuse_aborts)
{
	abort_check(nest_65, NULL);
	abort_check(end_too_often, NULL);
}
END_TEST

Suite *test_json_writer_suite(void);
Suite *test_json_writer_suite(void)
{
	Suite *const suite = suite_create("json_writer");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, everything_in_one_object);
	tcase_add_test(tc, bare_value_at_the_root);
	tcase_add_test(tc, control_characters_and_quotes_are_escaped);
	tcase_add_test(tc, names_are_escaped_too);
	tcase_add_test(tc, utf8_stays_and_other_bytes_are_replaced);
	tcase_add_test(tc, all_bytes_parse_back);
	tcase_add_test(tc, nesting_of_64_is_written);
	tcase_add_test(tc, misuse_aborts);
	suite_add_tcase(suite, tc);
	return suite;
}
