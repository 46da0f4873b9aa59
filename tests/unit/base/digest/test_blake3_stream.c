#include "base/digest/blake3_stream.h"

#include <check.h>
#include <string.h>

#include "base/encode.h"
#include "tests/unit/unit.h"

Suite *test_blake3_stream_suite(void);

/* From the official test vectors: input bytes 0, 1, ..., 250, 0, ...; the key is "whats the Elvish
 * word for friend". */
static const struct {
	size_t len;
	const char *hash;
	const char *keyed;
} rows[] = {
	{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"},
	{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		"6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b"},
	{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
		"357dc55de0c7e382c900fd6e320acc04146be01db6a8ce7210b7189bd664ea69"},
};

static void expect(const uint8_t bytes[BLAKE3_BYTES], const char *hex)
{
	char text[2 * BLAKE3_BYTES + 1];
	encode_hex(span_of(bytes, BLAKE3_BYTES), text);
	ck_assert_str_eq(text, hex);
}

START_TEST(official_vectors)
{
	static const char key[] = "whats the Elvish word for friend";
	uint8_t input[1025];
	uint8_t out[BLAKE3_BYTES];
	for (size_t i = 0; i < sizeof(input); i++)
		input[i] = (uint8_t)(i % 251);
	const struct span content = span_of(input, rows[_i].len);
	blake3(NULL, content, out);
	expect(out, rows[_i].hash);
	blake3((const uint8_t *)key, content, out);
	expect(out, rows[_i].keyed);
	struct blake3_stream *const stream = blake3_stream_new(NULL);
	for (unsigned again = 0; again < 2; again++) {
		blake3_stream_add(stream, span_slice(content, 0, 1));
		blake3_stream_add(stream, span_slice(content, 1, content.len));
		blake3_stream_result(stream, out);
		expect(out, rows[_i].hash);
		blake3_stream_reset(stream);
	}
	blake3_stream_free(stream);
}
END_TEST

Suite *test_blake3_stream_suite(void)
{
	Suite *const suite = suite_create("blake3_stream");
	TCase *const tcase = tcase_create("blake3_stream");
	tcase_add_loop_test(tcase, official_vectors, 0, sizeof(rows) / sizeof(rows[0]));
	suite_add_tcase(suite, tcase);
	return suite;
}
