#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/compress.h"
#include "base/random.h"

enum { LEN = 50000 };

static struct compressor *compressor;
static uint8_t plain[LEN];
static uint8_t packed[LEN + 1024];
static uint8_t back[LEN + 1];
static size_t packed_len;

static void set_up(void)
{
	compressor = compressor_new();
	for (size_t i = 0; i < LEN; i++)
		plain[i] = (uint8_t)(i % 100);
	packed_len = compress_zstd(compressor, span_of(plain, LEN), packed, sizeof packed, 3);
	ck_assert_uint_gt(packed_len, 0);
	ck_assert_uint_lt(packed_len, LEN / 10);
}

static void tear_down(void)
{
	compressor_free(compressor);
}

START_TEST(comes_back_whole)
{
	struct error err = {0};
	ck_assert_msg(
		decompress_zstd(compressor, span_of(packed, packed_len), back, LEN, &err) == 0,
		"%s", err.text);
	ck_assert_mem_eq(back, plain, LEN);
}
END_TEST

START_TEST(empty_comes_back_empty)
{
	struct error err = {0};
	const size_t len = compress_zstd(compressor, span_of(NULL, 0), packed, sizeof packed, 1);
	ck_assert_uint_gt(len, 0);
	ck_assert_int_eq(decompress_zstd(compressor, span_of(packed, len), back, 0, &err), 0);
}
END_TEST

START_TEST(what_does_not_fit_gives_zero)
{
	random_bytes(plain, LEN);
	ck_assert_uint_eq(compress_zstd(compressor, span_of(plain, LEN), packed, 1000, 1), 0);
	ck_assert_uint_le(compress_bound(LEN), sizeof packed);
	ck_assert_uint_gt(
		compress_zstd(compressor, span_of(plain, LEN), packed, compress_bound(LEN), 1), 0);
}
END_TEST

static void check_corrupt(struct span from, size_t len)
{
	struct error err = {0};
	ck_assert_int_eq(decompress_zstd(compressor, from, back, len, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}

START_TEST(anything_else_is_corrupt)
{
	check_corrupt(span_of(packed, packed_len), LEN - 1);
	check_corrupt(span_of(packed, packed_len), LEN + 1);
	check_corrupt(span_of(packed, packed_len - 1), LEN);
	check_corrupt(span_of(packed, 3), LEN);
	check_corrupt(span_of(NULL, 0), 0);
	check_corrupt(span_of(plain, LEN), LEN);
	memset(packed + packed_len, 0, 10);
	check_corrupt(span_of(packed, packed_len + 10), LEN);
}
END_TEST

START_TEST(two_frames_are_not_one)
{
	const size_t half =
		compress_zstd(compressor, span_of(plain, LEN / 2), packed, sizeof packed, 3);
	const size_t rest = compress_zstd(compressor, span_of(plain + LEN / 2, LEN / 2),
		packed + half, sizeof packed - half, 3);
	check_corrupt(span_of(packed, half + rest), LEN);
}
END_TEST

Suite *test_compress_suite(void);
Suite *test_compress_suite(void)
{
	Suite *const suite = suite_create("compress");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, comes_back_whole);
	tcase_add_test(tc, empty_comes_back_empty);
	tcase_add_test(tc, what_does_not_fit_gives_zero);
	tcase_add_test(tc, anything_else_is_corrupt);
	tcase_add_test(tc, two_frames_are_not_one);
	suite_add_tcase(suite, tc);
	return suite;
}
