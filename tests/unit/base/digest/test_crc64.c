#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/crc64.h"

enum { BUFFER_BYTES = 8192 };

/* The definition: one bit at a time. */
static uint64_t crc_of_bits(struct span bytes)
{
	uint64_t crc = UINT64_MAX;
	for (size_t i = 0; i < bytes.len; i++) {
		crc ^= bytes.data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT64_C(0x9a6c9329ac4bc9b5) : 0);
	}
	return ~crc;
}

static void fill(uint8_t *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

START_TEST(check_value)
{
	const struct span input = span_text("123456789");
	ck_assert(crc64_nvme(0, input) == UINT64_C(0xae8b14860a799888));
	ck_assert(crc64_nvme_portable(0, input) == UINT64_C(0xae8b14860a799888));
	ck_assert(crc64_nvme(0, span_of(NULL, 0)) == 0);
	const uint8_t xorb[] = {0, 12, 0, 0, 0, 12, 0, 0, 'H', 'e', 'l', 'l', 'o', ' ', 'W', 'o',
		'r', 'l', 'd', '!'};
	/* as hf_xet sends it in its request for a grant */
	ck_assert(crc64_nvme(0, span_of(xorb, sizeof xorb)) == UINT64_C(3879687725877942381));
}
END_TEST

/* Every length around the strides, at every alignment. */
START_TEST(every_way_gives_the_definition)
{
	uint8_t bytes[1100 + 16];
	fill(bytes, sizeof bytes, 7);
	for (size_t len = 0; len <= 1100; len++) {
		const struct span input = span_of(bytes + len % 16, len);
		const uint64_t expected = crc_of_bits(input);
		ck_assert_msg(crc64_nvme(0, input) == expected, "%zu bytes", len);
		ck_assert_msg(
			crc64_nvme_portable(0, input) == expected, "%zu bytes, by tables", len);
	}
}
END_TEST

START_TEST(both_ways_agree_on_random_pieces)
{
	uint8_t *const bytes = malloc(BUFFER_BYTES);
	unsigned seed = 1;
	uint64_t fast = 0;
	uint64_t portable = 0;
	for (int i = 0; i < 2000; i++) {
		seed = seed * 1664525 + 1013904223;
		if (i % 100 == 0)
			fill(bytes, BUFFER_BYTES, seed);
		const size_t from = seed >> 8 & 63;
		const struct span piece = span_slice(
			span_of(bytes, BUFFER_BYTES), from, seed >> 14 & (BUFFER_BYTES - 1));
		fast = crc64_nvme(fast, piece);
		portable = crc64_nvme_portable(portable, piece);
		ck_assert(fast == portable);
	}
	free(bytes);
}
END_TEST

START_TEST(pieces_give_the_crc_of_the_whole)
{
	uint8_t bytes[1400];
	fill(bytes, sizeof bytes, 99);
	const struct span whole = span_of(bytes, sizeof bytes);
	const uint64_t expected = crc_of_bits(whole);
	for (size_t at = 0; at <= whole.len; at++)
		ck_assert(crc64_nvme(crc64_nvme(0, span_slice(whole, 0, at)),
				  span_slice(whole, at, whole.len)) == expected);
}
END_TEST

Suite *test_crc64_suite(void);
Suite *test_crc64_suite(void)
{
	Suite *const suite = suite_create("crc64");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, check_value);
	tcase_add_test(tc, every_way_gives_the_definition);
	tcase_add_test(tc, both_ways_agree_on_random_pieces);
	tcase_add_test(tc, pieces_give_the_crc_of_the_whole);
	suite_add_tcase(suite, tc);
	return suite;
}
