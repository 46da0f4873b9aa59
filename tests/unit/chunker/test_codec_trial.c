#include "chunker/codec_trial.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_codec_trial_suite(void);

static enum codec best(const uint8_t *bytes, size_t len)
{
	struct compressor *const compressor = compressor_new();
	const enum codec codec = codec_trial_best(compressor, span_of(bytes, len));
	ck_assert(codec == CODEC_RAW || codec_trial_compressible(compressor, span_of(bytes, len)));
	compressor_free(compressor);
	return codec;
}

START_TEST(random_bytes_stay_raw)
{
	static const size_t lengths[] = {
		0, 1, 63, 64, 1000, 4095, 4096, 4097, 8192, 65536, CHUNK_MAX_BYTES};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (uint64_t seed = 0; seed < 20; seed++) {
			uint8_t *const bytes = vectors_splitmix(seed, lengths[i]);
			ck_assert_int_eq(best(bytes, lengths[i]), CODEC_RAW);
			free(bytes);
		}
	}
}
END_TEST

/* A chunk may begin at any byte of an element, so every start must work. */
START_TEST(bf16_weights_take_two_planes_from_any_start)
{
	enum { COUNT = 40000 };
	uint8_t *const weights = vectors_weights(7, 2, COUNT);
	for (size_t start = 0; start < 4; start++)
		ck_assert_int_eq(best(weights + start, 2 * COUNT - 4), CODEC_PLANES2);
	free(weights);
}
END_TEST

START_TEST(fp32_weights_take_four_planes_from_any_start)
{
	enum { COUNT = 30000 };
	uint8_t *const weights = vectors_weights(8, 4, COUNT);
	for (size_t start = 0; start < 4; start++)
		ck_assert_int_eq(best(weights + start, 4 * COUNT - 4), CODEC_PLANES4);
	free(weights);
}
END_TEST

START_TEST(text_takes_zstd)
{
	uint8_t *const text = vectors_words(9, 100000);
	ck_assert_int_eq(best(text, 100000), CODEC_ZSTD);
	ck_assert_int_eq(best(text, 1000), CODEC_ZSTD);
	free(text);
}
END_TEST

/* Every byte value is equally frequent, but the content repeats: counts do not show that, matches
 * do. */
START_TEST(repeated_random_bytes_take_zstd)
{
	uint8_t *const bytes = vectors_splitmix(10, 65536);
	for (size_t i = 512; i < 65536; i++)
		bytes[i] = bytes[i % 512];
	ck_assert_int_eq(best(bytes, 65536), CODEC_ZSTD);
	free(bytes);
}
END_TEST

START_TEST(zeros_take_a_codec)
{
	uint8_t *const zeros = memory_new(CHUNK_MAX_BYTES);
	ck_assert_int_eq(best(zeros, CHUNK_MAX_BYTES), CODEC_ZSTD);
	ck_assert_int_eq(best(zeros, 64), CODEC_ZSTD);
	free(zeros);
}
END_TEST

START_TEST(too_few_bytes_stay_raw)
{
	static const uint8_t zeros[63] = {0};
	ck_assert_int_eq(best(zeros, sizeof(zeros)), CODEC_RAW);
}
END_TEST

Suite *test_codec_trial_suite(void)
{
	Suite *const suite = suite_create("codec_trial");
	TCase *const tests = tcase_create("best");
	tcase_add_test(tests, random_bytes_stay_raw);
	tcase_add_test(tests, bf16_weights_take_two_planes_from_any_start);
	tcase_add_test(tests, fp32_weights_take_four_planes_from_any_start);
	tcase_add_test(tests, text_takes_zstd);
	tcase_add_test(tests, repeated_random_bytes_take_zstd);
	tcase_add_test(tests, zeros_take_a_codec);
	tcase_add_test(tests, too_few_bytes_stay_raw);
	suite_add_tcase(suite, tests);
	return suite;
}
