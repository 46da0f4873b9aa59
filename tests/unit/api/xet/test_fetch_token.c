#include "api/xet/fetch_token.h"

#include <stdio.h>
#include <string.h>

#include "api/xet/multipart_source.h"
#include "api/xet/xet_range.h"
#include "base/encode.h"
#include "storage/packs/assemble.h"
#include "tests/unit/unit.h"

static const uint8_t key[FETCH_KEY_BYTES] = {1, 2, 3};

static struct fetch_token make_token(size_t spans)
{
	struct fetch_token token = {.expires_s = 1800000000,
		.bucket = 77,
		.as_stored = spans % 2 == 0,
		.total = 1000000,
		.span_count = spans};
	token.key_id_len = spans == FETCH_SPANS_MAX ? FETCH_KEY_ID_MAX : spans - 1;
	memset(token.key_id, 'k', token.key_id_len);
	for (size_t i = 0; i < spans; i++)
		token.spans[i] = (struct fetch_span){.pack = {{(uint8_t)(i / 2)}},
			.first = (uint32_t)(10 * i),
			.count = 5,
			.offset = (uint32_t)(1000 * i),
			.length = 900};
	return token;
}

static struct span print(const struct fetch_token *token, struct buffer *text)
{
	buffer_init(text, 100000);
	fetch_token_print(token, key, text);
	ck_assert(!buffer_failed(text));
	return buffer_span(text);
}

START_TEST(tokens_go_there_and_back)
{
	static const size_t counts[] = {1, 2, 3, FETCH_SPANS_MAX};
	const struct fetch_token token = make_token(counts[_i]);
	struct fetch_token back;
	struct buffer text;
	ck_assert(fetch_token_parse(print(&token, &text), key, &back));
	ck_assert_int_eq(back.expires_s, token.expires_s);
	ck_assert_int_eq(back.bucket, token.bucket);
	ck_assert_int_eq(back.as_stored, token.as_stored);
	ck_assert_uint_eq(back.total, token.total);
	ck_assert_uint_eq(back.key_id_len, token.key_id_len);
	ck_assert_mem_eq(back.key_id, token.key_id, token.key_id_len);
	ck_assert_uint_eq(back.span_count, token.span_count);
	ck_assert_mem_eq(back.spans, token.spans, token.span_count * sizeof(token.spans[0]));
	buffer_release(&text);
}
END_TEST

START_TEST(shared_tokens_name_no_key)
{
	struct fetch_token token = make_token(1);
	struct fetch_token back;
	struct buffer text;
	uint8_t bytes[64] = {2, 4 | 2};
	token.is_shared = true;
	ck_assert(fetch_token_parse(print(&token, &text), key, &back));
	ck_assert(back.is_shared);
	ck_assert_uint_eq(back.key_id_len, 0);
	buffer_release(&text);
	/* An inline token; total 9, no key, version 1, length 9. */
	bytes[18] = 9;
	bytes[23] = 1;
	bytes[31] = 9;
	ck_assert(fetch_token_decode(span_of(bytes, 35), &back));
	ck_assert(back.is_shared);
	memmove(bytes + 24, bytes + 23, 12);
	bytes[22] = 1; /* a key */
	ck_assert(!fetch_token_decode(span_of(bytes, 36), &back));
	bytes[1] = 2;
	ck_assert(fetch_token_decode(span_of(bytes, 36), &back));
	bytes[1] = 8 | 2;
	ck_assert(!fetch_token_decode(span_of(bytes, 36), &back));
}
END_TEST

START_TEST(inline_tokens_go_there_and_back)
{
	const struct fetch_token token = {.expires_s = 5,
		.bucket = 6,
		.key_id = "key",
		.key_id_len = 3,
		.version = 7,
		.total = 108,
		.span_count = 1,
		.spans = {{.length = 108}}};
	struct fetch_token back;
	struct buffer text;
	ck_assert(fetch_token_parse(print(&token, &text), key, &back));
	ck_assert_int_eq(back.version, 7);
	ck_assert_uint_eq(back.key_id_len, 3);
	ck_assert_uint_eq(back.span_count, 1);
	ck_assert_uint_eq(back.spans[0].offset, 0);
	ck_assert_uint_eq(back.spans[0].length, 108);
	buffer_release(&text);
}
END_TEST

/* The places of records would tell how much other callers write. */
START_TEST(nothing_of_a_token_can_be_read)
{
	const struct fetch_token token = {.expires_s = 5,
		.bucket = 77,
		.version = 12345,
		.total = 108,
		.span_count = 1,
		.spans = {{.length = 108}}};
	static const uint8_t numbers[][8] = {{5}, {77}, {0x39, 0x30}};
	uint8_t bytes[FETCH_TOKEN_MAX_BYTES];
	struct buffer text;
	size_t len;
	ck_assert(decode_base64_url(print(&token, &text), bytes, sizeof(bytes), &len));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		ck_assert_ptr_null(memmem(bytes, len, numbers[i], sizeof(numbers[i])));
	buffer_release(&text);
}
END_TEST

/* No character may differ or be missing, and the key must be the right one. */
START_TEST(altered_tokens_are_refused)
{
	const struct fetch_token token = make_token(3);
	struct fetch_token back;
	struct buffer text;
	print(&token, &text);
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t right = text.data[i];
		text.data[i] = right == 'A' ? 'B' : 'A';
		ck_assert(!fetch_token_parse(buffer_span(&text), key, &back));
		text.data[i] = right;
		ck_assert(!fetch_token_parse(span_slice(buffer_span(&text), 0, i), key, &back));
	}
	uint8_t other[FETCH_KEY_BYTES] = {1, 2, 4};
	ck_assert(!fetch_token_parse(buffer_span(&text), other, &back));
	ck_assert(fetch_token_parse(buffer_span(&text), key, &back));
	buffer_release(&text);
}
END_TEST

/* A sealed token without sense is refused too: offsets must rise and lie in the xorb. */
START_TEST(unsound_tokens_are_refused)
{
	struct fetch_token back;
	for (int fault = 0; fault < 4; fault++) {
		struct fetch_token token = make_token(3);
		struct buffer text;
		if (fault == 0)
			token.spans[1].offset = 899;
		else if (fault == 1)
			token.total = 2899;
		else if (fault == 2)
			token.spans[2].length = 0;
		else
			token.spans[2].count = 0;
		ck_assert(!fetch_token_parse(print(&token, &text), key, &back));
		buffer_release(&text);
	}
}
END_TEST

static const struct range_case {
	const char *header;
	size_t count;  /* 0: refused */
	uint64_t from; /* of the first, in 1000 bytes; */
	uint64_t to;   /* 0: it has none of them */
} range_cases[] = {
	{"bytes=0-99", 1, 0, 100},
	{"bytes=0-18446744073709551614", 1, 0, 1000},
	{"bytes=0-18446744073709551615", 1, 0, 1000},
	{"bytes=0-99999999999999999999999", 1, 0, 1000},
	{"bytes=999-", 1, 999, 1000},
	{"bytes=1000-", 1, 0, 0},
	{"bytes=1000-1001", 1, 0, 0},
	{"bytes=-1", 1, 999, 1000},
	{"bytes=-5000", 1, 0, 1000},
	{"bytes=-0", 1, 0, 0},
	{"bytes=5-5", 1, 5, 6},
	{" bytes=5-6, 7-8 ,-3 ", 3, 5, 7},
	{"bytes=6-5", 0, 0, 0},
	{"bytes=", 0, 0, 0},
	{"bytes=-", 0, 0, 0},
	{"bytes=5", 0, 0, 0},
	{"bytes=a-5", 0, 0, 0},
	{"bytes=5-6,", 0, 0, 0},
	{"bytes=5-+6", 0, 0, 0},
	{"5-6", 0, 0, 0},
	{"chunks=5-6", 0, 0, 0},
	{"", 0, 0, 0},
	{"bytes=1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1",
		32, 1, 2},
	{"bytes=1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1,1-1",
		0, 0, 0},
};

START_TEST(ranges_are_parsed_strictly)
{
	const struct range_case *const test = &range_cases[_i];
	struct xet_range ranges[XET_RANGES_MAX];
	size_t count;
	uint64_t from;
	uint64_t to;
	ck_assert_int_eq(xet_range_parse(span_text(test->header), ranges, &count), test->count > 0);
	if (test->count == 0)
		return;
	ck_assert_uint_eq(count, test->count);
	ck_assert_int_eq(xet_range_resolve(&ranges[0], 1000, &from, &to), test->to > 0);
	if (test->to > 0) {
		ck_assert_uint_eq(from, test->from);
		ck_assert_uint_eq(to, test->to);
	}
	ck_assert(!xet_range_resolve(&ranges[0], 0, &from, &to));
}
END_TEST

START_TEST(multipart_bodies_are_framed)
{
	char boundary[MULTIPART_BOUNDARY_BYTES];
	char expected[1000];
	multipart_boundary(boundary);
	const int len = snprintf(expected, sizeof(expected),
		"--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes 0-4/99\r\n\r\nhello\r\n"
		"--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes 50-52/99\r\n\r\nyou\r\n--%s--\r\n",
		boundary, boundary, boundary);
	for (size_t piece = 1; piece < 400; piece++) {
		const struct multipart_part parts[] = {
			{0, 4, assemble_open_inline(span_text("hello"))},
			{50, 52, assemble_open_inline(span_text("you"))}};
		struct error err = {0};
		uint8_t body[1000];
		uint64_t length;
		size_t used = 0;
		ptrdiff_t got;
		struct body_source *const source =
			multipart_source_open(parts, 2, 99, boundary, &length);
		while ((got = source->read(source, body + used, piece, &err)) > 0)
			used += (size_t)got;
		source->close(source);
		ck_assert_uint_eq(length, (uint64_t)len);
		ck_assert_uint_eq(used, (size_t)len);
		ck_assert_mem_eq(body, expected, used);
	}
}
END_TEST

Suite *test_fetch_token_suite(void);
Suite *test_fetch_token_suite(void)
{
	Suite *const suite = suite_create("fetch_token");
	TCase *const plain = tcase_create("plain");
	tcase_add_loop_test(plain, tokens_go_there_and_back, 0, 4);
	tcase_add_test(plain, shared_tokens_name_no_key);
	tcase_add_test(plain, inline_tokens_go_there_and_back);
	tcase_add_test(plain, nothing_of_a_token_can_be_read);
	tcase_add_test(plain, altered_tokens_are_refused);
	tcase_add_test(plain, unsound_tokens_are_refused);
	tcase_add_loop_test(
		plain, ranges_are_parsed_strictly, 0, sizeof(range_cases) / sizeof(range_cases[0]));
	tcase_add_test(plain, multipart_bodies_are_framed);
	suite_add_tcase(suite, plain);
	return suite;
}
