#include "tests/unit/unit.h"

#include <nettle/md5.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/md5.h"
#include "base/encode.h"

/* RFC 1321, A.5. */
static const struct {
	const char *input, *result;
} rows[] = {
	{"", "d41d8cd98f00b204e9800998ecf8427e"},
	{"a", "0cc175b9c0f1b6a831c399e269772661"},
	{"abc", "900150983cd24fb0d6963f7d28e17f72"},
	{"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
	{"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
	{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		"d174ab98d277d9f5a5611c2c9f419d9f"},
	{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		"57edf4a22be3c955ac49da2e2107b67a"},
};

START_TEST(published_vectors)
{
	uint8_t out[MD5_BYTES];
	char text[2 * MD5_BYTES + 1];
	const struct span input = span_text(rows[_i].input);
	struct md5_stream *const stream = md5_stream_new();
	/* later rounds prove that a result resets the stream */
	for (size_t piece = 1; piece < 70; piece += 17) {
		for (size_t at = 0; at < input.len; at += piece)
			md5_stream_add(stream, span_slice(input, at, piece));
		md5_stream_add(stream, span_of(NULL, 0));
		md5_stream_result(stream, out);
		encode_hex(span_of(out, sizeof out), text);
		ck_assert_str_eq(text, rows[_i].result);
	}
	md5_stream_free(stream);
	md5_stream_free(NULL);
}
END_TEST

static void check_digest(struct md5_stream *stream, struct span whole)
{
	struct md5_ctx other;
	uint8_t expected[MD5_BYTES];
	uint8_t actual[MD5_BYTES];
	md5_init(&other);
	md5_update(&other, whole.len, whole.data);
	md5_digest(&other, sizeof expected, expected);
	md5_stream_result(stream, actual);
	ck_assert_msg(memcmp(actual, expected, sizeof actual) == 0, "%zu bytes", whole.len);
}

START_TEST(every_length_ends_well)
{
	uint8_t bytes[200];
	struct md5_stream *const stream = md5_stream_new();
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t len = 0; len <= sizeof bytes; len++) {
		md5_stream_add(stream, span_of(bytes, len / 3));
		md5_stream_add(stream, span_of(bytes + len / 3, len - len / 3));
		check_digest(stream, span_of(bytes, len));
	}
	md5_stream_free(stream);
}
END_TEST

/* Streams at different places of a block that get pieces of different lengths, some of them
 * empty. */
START_TEST(streams_side_by_side)
{
	enum { WHOLE = 40000 };
	uint8_t *const bytes = malloc(WHOLE);
	struct md5_stream *streams[MD5_LANES];
	size_t at[MD5_LANES] = {0};
	unsigned seed = 3;
	for (size_t i = 0; i < WHOLE; i++)
		bytes[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	for (size_t i = 0; i < MD5_LANES; i++)
		streams[i] = md5_stream_new();
	for (int round = 0; round < 40; round++) {
		struct span pieces[MD5_LANES];
		for (size_t i = 0; i < MD5_LANES; i++) {
			seed = seed * 1664525 + 1013904223;
			pieces[i] = span_slice(span_of(bytes, WHOLE), at[i], (seed >> 10) % 1000);
			at[i] += pieces[i].len;
		}
		md5_streams_add(streams, pieces, MD5_LANES);
	}
	for (size_t i = 0; i < MD5_LANES; i++) {
		check_digest(streams[i], span_of(bytes, at[i]));
		md5_stream_free(streams[i]);
	}
	free(bytes);
}
END_TEST

Suite *test_md5_suite(void);
Suite *test_md5_suite(void)
{
	Suite *const suite = suite_create("md5");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, published_vectors, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, every_length_ends_well);
	tcase_add_test(tc, streams_side_by_side);
	suite_add_tcase(suite, tc);
	return suite;
}
