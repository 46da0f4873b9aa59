#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/digest/xxh3.h"

/* Published vectors of XXH3 with seed 0. */
static const struct {
	const char *input;
	uint64_t bits64;
	const char *text;
} rows[] = {
	{"", UINT64_C(0x2d06800538d394c2), "xxh3-128:99aa06d3014798d86001c324468d497f"},
	{"abc", UINT64_C(0x78af5f94892f3950), "xxh3-128:06b05ab6733a618578af5f94892f3950"},
};

START_TEST(digests_are_the_published_ones)
{
	char text[DIGEST128_TEXT_BYTES];
	const struct digest128 digest = xxh3_128(span_text(rows[_i].input));
	digest128_format(&digest, text);
	ck_assert_str_eq(text, rows[_i].text);
	ck_assert(xxh3_64(span_text(rows[_i].input)) == rows[_i].bits64);
}
END_TEST

START_TEST(stream_gives_the_digest_of_the_whole)
{
	enum { LEN = 100000 };
	uint8_t *const bytes = malloc(LEN);
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i % 251);
	const struct digest128 whole = xxh3_128(span_of(bytes, LEN));
	for (size_t at = 0, piece = 0; at < LEN; at += piece++)
		xxh3_stream_add(stream, span_slice(span_of(bytes, LEN), at, piece));
	const struct digest128 streamed = xxh3_stream_result(stream);
	const struct digest128 again = xxh3_stream_result(stream);
	ck_assert(digest128_equal(&streamed, &whole));
	ck_assert(digest128_equal(&again, &whole));
	ck_assert(xxh3_stream_result_64(stream) == xxh3_64(span_of(bytes, LEN)));
	xxh3_stream_reset(stream);
	xxh3_stream_add(stream, span_of(NULL, 0));
	const struct digest128 nothing = xxh3_stream_result(stream);
	const struct digest128 empty = xxh3_128(span_of(NULL, 0));
	ck_assert(digest128_equal(&nothing, &empty));
	ck_assert(!digest128_equal(&nothing, &whole));
	xxh3_stream_free(stream);
	xxh3_stream_free(NULL);
	free(bytes);
}
END_TEST

/* Published vectors of XXH64 with seed 0. */
START_TEST(the_older_digest)
{
	struct xxh64_stream *const stream = xxh64_stream_new();
	ck_assert(xxh64_stream_result(stream) == UINT64_C(0xef46db3751d8e999));
	xxh64_stream_add(stream, span_text("ab"));
	xxh64_stream_add(stream, span_of(NULL, 0));
	xxh64_stream_add(stream, span_text("c"));
	ck_assert(xxh64_stream_result(stream) == UINT64_C(0x44bc2cf5ad770999));
	xxh64_stream_reset(stream);
	ck_assert(xxh64_stream_result(stream) == UINT64_C(0xef46db3751d8e999));
	xxh64_stream_free(stream);
	xxh64_stream_free(NULL);
}
END_TEST

/* Stored packs have checksums of the distribution's library, so the results must be the same. */
START_TEST(every_length_agrees_with_the_library)
{
	uint8_t bytes[3000];
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * i >> 3);
	for (size_t len = 0; len <= sizeof bytes; len += len < 300 ? 1 : 7) {
		ck_assert(xxh3_64(span_of(bytes, len)) == XXH3_64bits(bytes, len));
		xxh3_stream_reset(stream);
		xxh3_stream_add(stream, span_of(bytes, len / 2));
		xxh3_stream_add(stream, span_of(bytes + len / 2, len - len / 2));
		XXH128_canonical_t expected;
		XXH128_canonicalFromHash(&expected, XXH3_128bits(bytes, len));
		const struct digest128 actual = xxh3_stream_result(stream);
		ck_assert_mem_eq(actual.bytes, expected.digest, sizeof expected.digest);
	}
	xxh3_stream_free(stream);
}
END_TEST

START_TEST(text_form_parses_back)
{
	struct digest128 digest;
	char again[DIGEST128_TEXT_BYTES];
	ck_assert(digest128_parse(span_text("xxh3-128:00112233445566778899aabbccddeeff"), &digest));
	ck_assert_mem_eq(digest.bytes,
		"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);
	digest128_format(&digest, again);
	ck_assert_str_eq(again, "xxh3-128:00112233445566778899aabbccddeeff");
}
END_TEST

static const char *const bad_texts[] = {
	"",
	"xxh3-128:",
	"00112233445566778899aabbccddeeff",
	"xxh3-128:00112233445566778899aabbccddeef",
	"xxh3-128:00112233445566778899aabbccddeefff",
	"xxh3-128:00112233445566778899AABBCCDDEEFF",
	"XXH3-128:00112233445566778899aabbccddeeff",
	"xxh3-129:00112233445566778899aabbccddeeff",
	"xxh3-128:00112233445566778899aabbccddeefg",
	" xxh3-128:00112233445566778899aabbccddeef",
};

START_TEST(other_texts_are_refused)
{
	struct digest128 digest = {{0xaa}};
	ck_assert(!digest128_parse(span_text(bad_texts[_i]), &digest));
	ck_assert_uint_eq(digest.bytes[0], 0xaa);
}
END_TEST

Suite *test_xxh3_suite(void);
Suite *test_xxh3_suite(void)
{
	Suite *const suite = suite_create("xxh3");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, digests_are_the_published_ones, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, stream_gives_the_digest_of_the_whole);
	tcase_add_test(tc, the_older_digest);
	tcase_add_test(tc, every_length_agrees_with_the_library);
	tcase_add_test(tc, text_form_parses_back);
	tcase_add_loop_test(tc, other_texts_are_refused, 0, sizeof bad_texts / sizeof bad_texts[0]);
	suite_add_tcase(suite, tc);
	return suite;
}
