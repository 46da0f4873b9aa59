#include "tests/unit/unit.h"

#include <string.h>

#include "base/encode.h"

#define LITERAL(text)                                     \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

START_TEST(hex_goes_there_and_back)
{
	uint8_t all[256];
	uint8_t back[256];
	char text[2 * 256 + 1];
	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	encode_hex(span_of(all, sizeof all), text);
	ck_assert_uint_eq(strlen(text), 512);
	ck_assert(strncmp(text, "000102030405060708090a0b0c0d0e0f10", 34) == 0);
	ck_assert(decode_hex(span_text(text), back, sizeof back));
	ck_assert_mem_eq(all, back, sizeof all);
	encode_hex(span_of(NULL, 0), text);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(hex_takes_any_case_and_nothing_else)
{
	uint8_t out[2];
	ck_assert(decode_hex(span_text("aBcD"), out, 2));
	ck_assert_mem_eq(out, "\xab\xcd", 2);
	ck_assert(!decode_hex(span_text("abc"), out, 2));
	ck_assert(!decode_hex(span_text("abcde"), out, 2));
	ck_assert(!decode_hex(span_text("abcdef"), out, 2));
	ck_assert(!decode_hex(span_text("ab"), out, 2));
	ck_assert(!decode_hex(span_text("abcg"), out, 2));
	ck_assert(!decode_hex(span_text("ab@d"), out, 2));
	ck_assert(!decode_hex(span_text("ab d"), out, 2));
	ck_assert(!decode_hex(span_text("abPQ"), out, 2));
}
END_TEST

/* RFC 4648, section 10. */
static const struct {
	const char *plain, *text;
} base64_rows[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xfb\xff\xbf", "+/+/"},
};

START_TEST(base64_goes_there_and_back)
{
	struct buffer text;
	uint8_t plain[16];
	size_t len = 99;
	buffer_init(&text, 100);
	encode_base64(span_text(base64_rows[_i].plain), &text);
	ck_assert_str_eq(buffer_text(&text), base64_rows[_i].text);
	ck_assert(decode_base64(span_text(base64_rows[_i].text), plain, sizeof plain, &len));
	ck_assert(span_equal_text(span_of(plain, len), base64_rows[_i].plain));
	buffer_release(&text);
}
END_TEST

static const struct span bad_base64_rows[] = {
	LITERAL("Z"),
	LITERAL("Zg"),
	LITERAL("Zg="),
	LITERAL("Zg==="),
	LITERAL("===="),
	LITERAL("Z==="),
	LITERAL("Zh=="),
	LITERAL("Zm9="),
	LITERAL("Zg==Zg=="),
	LITERAL("Zm9v\nYg"),
	LITERAL("Zm 9"),
	LITERAL("Zm-_"),
	LITERAL("Zm9\0"),
	LITERAL("=m9v"),
	LITERAL("Z=9v"),
	LITERAL("Zm=v"),
	LITERAL(" Zm9"),
	LITERAL("Zm9vYmFyZm9vYmFyZm9vYmFy"),
};

START_TEST(bad_base64_is_refused)
{
	uint8_t plain[16];
	size_t len = 99;
	ck_assert(!decode_base64(bad_base64_rows[_i], plain, sizeof plain, &len));
	ck_assert_uint_eq(len, 99);
}
END_TEST

START_TEST(base64_keeps_to_the_capacity)
{
	uint8_t plain[4] = {0, 0, 0, 0xaa};
	size_t len;
	ck_assert(!decode_base64(span_text("Zm9vYg=="), plain, 3, &len));
	ck_assert_uint_eq(plain[3], 0xaa);
	ck_assert(decode_base64(span_text("Zm9vYg=="), plain, 4, &len));
	ck_assert_uint_eq(len, 4);
}
END_TEST

static const struct {
	struct span plain;
	const char *text; /* the form for URLs; NULL: see `bad` */
	const char *bad;
} url_base64_rows[] = {
	{LITERAL(""), "", NULL},
	{LITERAL("f"), "Zg", NULL},
	{LITERAL("fo"), "Zm8", NULL},
	{LITERAL("foo"), "Zm9v", NULL},
	{LITERAL("\xfb\xff\xfe\xfb"), "-__--w", NULL},
	{LITERAL(""), NULL, "Z"},
	{LITERAL(""), NULL, "Zg=="},
	{LITERAL(""), NULL, "Zh"},
	{LITERAL(""), NULL, "+__-"},
	{LITERAL(""), NULL, "-/_-"},
	{LITERAL(""), NULL, "Zm9vZ"},
	{LITERAL(""), NULL, "Zm9vYmFyZm9vYmFyZm9vYmFy"},
};

START_TEST(base64_for_urls_goes_there_and_back)
{
	struct buffer text;
	uint8_t plain[16];
	size_t len = 99;
	buffer_init(&text, 100);
	if (url_base64_rows[_i].text != NULL) {
		encode_base64_url(url_base64_rows[_i].plain, &text);
		ck_assert_str_eq(buffer_text(&text), url_base64_rows[_i].text);
		ck_assert(decode_base64_url(buffer_span(&text), plain, sizeof plain, &len));
		ck_assert(span_equal(span_of(plain, len), url_base64_rows[_i].plain));
	} else {
		ck_assert(!decode_base64_url(
			span_text(url_base64_rows[_i].bad), plain, sizeof plain, &len));
		ck_assert_uint_eq(len, 99);
	}
	buffer_release(&text);
}
END_TEST

START_TEST(percent_escapes_all_but_unreserved)
{
	struct buffer out;
	buffer_init(&out, 1000);
	encode_percent(span_text("AZaz09-._~ /+%\xc3\xa4"), false, &out);
	ck_assert_str_eq(buffer_text(&out), "AZaz09-._~%20%2F%2B%25%C3%A4");
	buffer_reset(&out);
	encode_percent(span_of("a/b\0@[`{", 8), true, &out);
	ck_assert_str_eq(buffer_text(&out), "a/b%00%40%5B%60%7B");
	buffer_release(&out);
}
END_TEST

static const struct {
	const char *text;
	bool plus_is_space, valid;
	struct span plain;
} percent_rows[] = {
	{"a%20b+c", false, true, LITERAL("a b+c")},
	{"a%20b+c%2B", true, true, LITERAL("a b c+")},
	{"%c3%A4", false, true, LITERAL("\xc3\xa4")},
	{"%00", false, true, LITERAL("\0")},
	{"%2541", false, true, LITERAL("%41")},
	{"", false, true, LITERAL("")},
	{"%", false, false, LITERAL("")},
	{"a%4", false, false, LITERAL("")},
	{"%4g", false, false, LITERAL("")},
	{"%%41", false, false, LITERAL("")},
	{"% 41", false, false, LITERAL("")},
};

static const struct {
	const char *text;
	bool plus_is_space, keep_slash;
	const char *canonical; /* NULL: refused */
} recode_rows[] = {
	{"", false, false, ""},
	{"plain-._~/", false, true, "plain-._~/"},
	{"a/b", false, false, "a%2Fb"},
	{"%2f%2F", false, false, "%2F%2F"},
	{"%2f/", false, true, "//"},
	{"%41b%7e", false, false, "Ab~"},
	{"a+b", true, false, "a%20b"},
	{"a+b%2b", false, false, "a%2Bb%2B"},
	{"\xc3\xa4 %c3%A4", false, false, "%C3%A4%20%C3%A4"},
	{"%2541", false, false, "%2541"},
	{"a%00", false, false, NULL},
	{"a%4", false, false, NULL},
	{"%zz", false, false, NULL},
	{"%", false, false, NULL},
};

START_TEST(percent_is_made_canonical)
{
	struct buffer out;
	buffer_init(&out, 100);
	const bool good = recode_percent(span_text(recode_rows[_i].text),
		recode_rows[_i].plus_is_space, recode_rows[_i].keep_slash, &out);
	ck_assert_int_eq(good, recode_rows[_i].canonical != NULL);
	if (good)
		ck_assert_str_eq(buffer_text(&out), recode_rows[_i].canonical);
	ck_assert_int_eq(percent_is_valid(span_text(recode_rows[_i].text)), good);
	buffer_release(&out);
}
END_TEST

START_TEST(percent_holds_no_nul)
{
	struct buffer out;
	buffer_init(&out, 100);
	ck_assert(!recode_percent(span_of("a\0b", 3), false, false, &out));
	ck_assert(!percent_is_valid(span_of("a\0b", 3)));
	buffer_release(&out);
}
END_TEST

START_TEST(percent_decodes_or_refuses)
{
	struct buffer out;
	buffer_init(&out, 100);
	ck_assert_int_eq(decode_percent(span_text(percent_rows[_i].text),
				 percent_rows[_i].plus_is_space, &out),
		percent_rows[_i].valid);
	if (percent_rows[_i].valid)
		ck_assert(span_equal(buffer_span(&out), percent_rows[_i].plain));
	buffer_release(&out);
}
END_TEST

Suite *test_encode_suite(void);
Suite *test_encode_suite(void)
{
	Suite *const suite = suite_create("encode");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, hex_goes_there_and_back);
	tcase_add_test(tc, hex_takes_any_case_and_nothing_else);
	tcase_add_loop_test(
		tc, base64_goes_there_and_back, 0, sizeof base64_rows / sizeof base64_rows[0]);
	tcase_add_loop_test(
		tc, bad_base64_is_refused, 0, sizeof bad_base64_rows / sizeof bad_base64_rows[0]);
	tcase_add_test(tc, base64_keeps_to_the_capacity);
	tcase_add_loop_test(tc, base64_for_urls_goes_there_and_back, 0,
		sizeof url_base64_rows / sizeof url_base64_rows[0]);
	tcase_add_test(tc, percent_escapes_all_but_unreserved);
	tcase_add_loop_test(
		tc, percent_is_made_canonical, 0, sizeof recode_rows / sizeof recode_rows[0]);
	tcase_add_test(tc, percent_holds_no_nul);
	tcase_add_loop_test(
		tc, percent_decodes_or_refuses, 0, sizeof percent_rows / sizeof percent_rows[0]);
	suite_add_tcase(suite, tc);
	return suite;
}
