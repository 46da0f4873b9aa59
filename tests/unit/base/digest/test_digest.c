#include "tests/unit/unit.h"

#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"

static const char *hex(const uint8_t *bytes, size_t len)
{
	static char text[2 * DIGEST_MAX_BYTES + 1];
	encode_hex(span_of(bytes, len), text);
	return text;
}

/* FIPS 180-4. */
static const struct {
	const char *input, *sha256;
} rows[] = {
	{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
};

START_TEST(published_vectors)
{
	uint8_t out[SHA256_BYTES];
	const struct span input = span_text(rows[_i].input);
	struct sha256_stream *const sha = sha256_stream_new();
	/* the second round proves that a result resets the stream */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < input.len; i++)
			sha256_stream_add(sha, span_slice(input, i, 1));
		sha256_stream_result(sha, out);
		ck_assert_str_eq(hex(out, SHA256_BYTES), rows[_i].sha256);
	}
	sha256(input, out);
	ck_assert_str_eq(hex(out, SHA256_BYTES), rows[_i].sha256);
	sha256_stream_free(sha);
}
END_TEST

/* For "abc": FIPS 180-4. */
static const struct {
	enum digest_kind kind;
	const char *result;
} kinds[] = {
	{DIGEST_SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
	{DIGEST_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{DIGEST_SHA512,
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
};

START_TEST(streams_of_any_kind)
{
	uint8_t out[DIGEST_MAX_BYTES];
	struct digest_stream *const stream = digest_stream_new(kinds[_i].kind);
	for (int round = 0; round < 2; round++) {
		digest_stream_add(stream, span_text("a"));
		digest_stream_add(stream, span_of(NULL, 0));
		digest_stream_add(stream, span_text("bc"));
		digest_stream_result(stream, out);
		ck_assert_str_eq(hex(out, digest_stream_bytes(stream)), kinds[_i].result);
	}
	digest_stream_free(stream);
	digest_stream_free(NULL);
}
END_TEST

/* RFC 4231, cases 1, 2 and 6. */
START_TEST(hmac_vectors)
{
	uint8_t out[SHA256_BYTES];
	uint8_t key[131];
	memset(key, 0x0b, 20);
	hmac_sha256(span_of(key, 20), span_text("Hi There"), out);
	ck_assert_str_eq(hex(out, SHA256_BYTES),
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_sha256(span_text("Jefe"), span_text("what do ya want for nothing?"), out);
	ck_assert_str_eq(hex(out, SHA256_BYTES),
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	hmac_sha256(span_of(key, sizeof key),
		span_text("Test Using Larger Than Block-Size Key - Hash Key First"), out);
	ck_assert_str_eq(hex(out, SHA256_BYTES),
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
END_TEST

START_TEST(hmac_of_nothing_with_no_key)
{
	uint8_t out[SHA256_BYTES];
	hmac_sha256(span_of(NULL, 0), span_of(NULL, 0), out);
	ck_assert_str_eq(hex(out, SHA256_BYTES),
		"b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
END_TEST

Suite *test_digest_suite(void);
Suite *test_digest_suite(void)
{
	Suite *const suite = suite_create("digest");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, published_vectors, 0, sizeof rows / sizeof rows[0]);
	tcase_add_loop_test(tc, streams_of_any_kind, 0, sizeof kinds / sizeof kinds[0]);
	tcase_add_test(tc, hmac_vectors);
	tcase_add_test(tc, hmac_of_nothing_with_no_key);
	suite_add_tcase(suite, tc);
	return suite;
}
