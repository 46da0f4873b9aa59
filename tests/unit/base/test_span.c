#include "tests/unit/unit.h"

#include "base/span.h"

#define LITERAL(text)                                     \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

START_TEST(equality)
{
	ck_assert(span_equal(span_text("abc"), span_of("abc", 3)));
	ck_assert(!span_equal(span_text("abc"), span_text("abd")));
	ck_assert(!span_equal(span_text("abc"), span_text("ab")));
	ck_assert(span_equal(span_of(NULL, 0), span_text("")));
	ck_assert(span_equal_text(span_of("a\0b", 1), "a"));
	ck_assert(!span_equal_text(span_of("a\0b", 3), "a"));
	ck_assert(span_equal_text(span_text(NULL), ""));
}
END_TEST

START_TEST(case_is_ignored_for_ascii_only)
{
	ck_assert(span_equal_nocase(span_text("Content-TYPE"), "content-type"));
	ck_assert(!span_equal_nocase(span_text("content-typ"), "content-type"));
	ck_assert(!span_equal_nocase(span_text("\xc3\x84"), "\xc3\xa4"));
	ck_assert(!span_equal_nocase(span_text("["), "{"));
}
END_TEST

START_TEST(starts_and_ends)
{
	ck_assert(span_starts(span_text("models/a"), span_text("models/")));
	ck_assert(span_starts(span_text("models/a"), span_text("")));
	ck_assert(!span_starts(span_text("mod"), span_text("models/")));
	ck_assert(span_ends_text(span_text("a.safetensors"), ".safetensors"));
	ck_assert(span_ends_text(span_text("a"), ""));
	ck_assert(!span_ends_text(span_text("s"), ".safetensors"));
	ck_assert(!span_ends_text(span_text("a.safetensor5"), ".safetensors"));
}
END_TEST

static const struct {
	struct span a, b;
	int sign;
} order_rows[] = {
	{LITERAL("a"), LITERAL("a"), 0},
	{LITERAL("a"), LITERAL("b"), -1},
	{LITERAL("a"), LITERAL("aa"), -1},
	{LITERAL(""), LITERAL("a"), -1},
	{LITERAL("\xff"), LITERAL("a"), 1},
	{LITERAL("a\0b"), LITERAL("a"), 1},
	{LITERAL("a/b"), LITERAL("a-b"), 1},
	{{NULL, 0}, LITERAL(""), 0},
};

START_TEST(order_is_by_bytes_then_length)
{
	const int forth = span_compare(order_rows[_i].a, order_rows[_i].b);
	const int back = span_compare(order_rows[_i].b, order_rows[_i].a);
	ck_assert_int_eq((forth > 0) - (forth < 0), order_rows[_i].sign);
	ck_assert_int_eq((back > 0) - (back < 0), -order_rows[_i].sign);
}
END_TEST

START_TEST(slices_are_clipped)
{
	const struct span whole = span_text("012345");
	ck_assert(span_equal_text(span_slice(whole, 2, 3), "234"));
	ck_assert(span_equal_text(span_slice(whole, 4, SIZE_MAX), "45"));
	ck_assert_uint_eq(span_slice(whole, 6, 1).len, 0);
	ck_assert_uint_eq(span_slice(whole, SIZE_MAX, SIZE_MAX).len, 0);
	ck_assert_uint_eq(span_slice(span_of(NULL, 0), 0, 1).len, 0);
}
END_TEST

START_TEST(trim_takes_spaces_and_tabs)
{
	ck_assert(span_equal_text(span_trim(span_text(" \t a b \t")), "a b"));
	ck_assert_uint_eq(span_trim(span_text(" \t ")).len, 0);
	ck_assert(span_equal_text(span_trim(span_text("\na\n")), "\na\n"));
	ck_assert_uint_eq(span_trim(span_of(NULL, 0)).len, 0);
}
END_TEST

START_TEST(split_gives_every_piece_once)
{
	static const char *const wanted[] = {"", "a", "", "b", ""};
	struct span rest = span_text("/a//b/");
	struct span piece;
	size_t count = 0;
	for (; span_split(&rest, '/', &piece); count++) {
		ck_assert_uint_lt(count, 5);
		ck_assert(span_equal_text(piece, wanted[count]));
	}
	ck_assert_uint_eq(count, 5);
	rest = span_text("whole");
	ck_assert(span_split(&rest, ',', &piece) && span_equal_text(piece, "whole"));
	ck_assert(!span_split(&rest, ',', &piece));
}
END_TEST

START_TEST(find_gives_first_place_or_minus_one)
{
	ck_assert_int_eq(span_find(span_text("a=b=c"), '='), 1);
	ck_assert_int_eq(span_find(span_text("abc"), '='), -1);
	ck_assert_int_eq(span_find(span_of("a\0", 2), '\0'), 1);
	ck_assert_int_eq(span_find(span_of(NULL, 0), 'a'), -1);
}
END_TEST

static const struct {
	const char *text;
	bool valid;
	uint64_t value;
} number_rows[] = {
	{"0", true, 0},
	{"007", true, 7},
	{"18446744073709551615", true, UINT64_MAX},
	{"18446744073709551616", false, 0},
	{"99999999999999999999", false, 0},
	{"", false, 0},
	{"-1", false, 0},
	{"+1", false, 0},
	{" 1", false, 0},
	{"1 ", false, 0},
	{"1.0", false, 0},
	{"0x10", false, 0},
	{"1e3", false, 0},
};

START_TEST(numbers_are_digits_only)
{
	uint64_t value = 4711;
	ck_assert_int_eq(
		span_parse_u64(span_text(number_rows[_i].text), &value), number_rows[_i].valid);
	ck_assert_uint_eq(value, number_rows[_i].valid ? number_rows[_i].value : 4711);
}
END_TEST

START_TEST(secrets_compare_by_content)
{
	ck_assert(span_equal_secret(span_text("secret"), span_text("secret")));
	ck_assert(!span_equal_secret(span_text("secret"), span_text("secreT")));
	ck_assert(!span_equal_secret(span_text("Secret"), span_text("secret")));
	ck_assert(!span_equal_secret(span_text("secret"), span_text("secrets")));
	ck_assert(span_equal_secret(span_of(NULL, 0), span_text("")));
}
END_TEST

static const struct {
	struct span text;
	bool valid;
} utf8_rows[] = {
	{LITERAL(""), true},
	{LITERAL("plain\x00\x7f"), true},
	{LITERAL("\xc3\xa4"), true},
	{LITERAL("\xe2\x82\xac"), true},
	{LITERAL("\xf0\x9f\x98\x80"), true},
	{LITERAL("\xf4\x8f\xbf\xbf"), true},
	{LITERAL("\xed\x9f\xbf\xee\x80\x80"), true},
	{LITERAL("\x80"), false},
	{LITERAL("\xc3"), false},
	{LITERAL("\xc3("), false},
	{LITERAL("\xc0\xaf"), false},
	{LITERAL("\xc1\xbf"), false},
	{LITERAL("\xe0\x80\xaf"), false},
	{LITERAL("\xe2\x82"), false},
	{LITERAL("\xed\xa0\x80"), false},
	{LITERAL("\xf0\x80\x80\xaf"), false},
	{LITERAL("\xf4\x90\x80\x80"), false},
	{LITERAL("\xf5\x80\x80\x80"), false},
	{LITERAL("\xff"), false},
	{LITERAL("ok\xf0\x9f\x98"), false},
	{LITERAL("\xe2\x82\x41"), false},
};

START_TEST(utf8_is_well_formed_or_refused)
{
	ck_assert_int_eq(span_is_utf8(utf8_rows[_i].text), utf8_rows[_i].valid);
}
END_TEST

START_TEST(utf8_length_is_of_one_sequence)
{
	ck_assert_uint_eq(span_utf8_length(span_text("ab")), 1);
	ck_assert_uint_eq(span_utf8_length(span_text("\xe2\x82\xac\xe2")), 3);
	ck_assert_uint_eq(span_utf8_length(span_text("\xff")), 0);
	ck_assert_uint_eq(span_utf8_length(span_of(NULL, 0)), 0);
}
END_TEST

Suite *test_span_suite(void);
Suite *test_span_suite(void)
{
	Suite *const suite = suite_create("span");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, equality);
	tcase_add_test(tc, case_is_ignored_for_ascii_only);
	tcase_add_test(tc, starts_and_ends);
	tcase_add_loop_test(
		tc, order_is_by_bytes_then_length, 0, sizeof order_rows / sizeof order_rows[0]);
	tcase_add_test(tc, slices_are_clipped);
	tcase_add_test(tc, trim_takes_spaces_and_tabs);
	tcase_add_test(tc, split_gives_every_piece_once);
	tcase_add_test(tc, find_gives_first_place_or_minus_one);
	tcase_add_loop_test(
		tc, numbers_are_digits_only, 0, sizeof number_rows / sizeof number_rows[0]);
	tcase_add_test(tc, secrets_compare_by_content);
	tcase_add_loop_test(
		tc, utf8_is_well_formed_or_refused, 0, sizeof utf8_rows / sizeof utf8_rows[0]);
	tcase_add_test(tc, utf8_length_is_of_one_sequence);
	suite_add_tcase(suite, tc);
	return suite;
}
