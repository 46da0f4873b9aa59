#include "weights/codec/element_scan.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_element_scan_suite(void);

typedef size_t scan_fn(const uint8_t *base, const uint8_t *next, size_t count, uint16_t *positions);
static scan_fn *const scans[] = {element_scan, element_scan_portable};

enum { MOST = ELEMENT_SCAN_BLOCK };

/* Two arrays at odd addresses, so that alignment does not matter. Each element changes with a
 * chance of `share` in 65536. */
static void make_pair(
	size_t count, unsigned share, uint8_t **out_memory, uint8_t **out_base, uint8_t **out_next)
{
	uint64_t state = count * 77 + share;
	*out_memory = memory_new(4 * count + 4);
	*out_base = *out_memory + 1;
	*out_next = *out_base + 2 * count + 1;
	for (size_t i = 0; i < count; i++) {
		const uint16_t value = fixture_random(&state);
		const bool change = fixture_random(&state) < share;
		const uint16_t changed =
			(uint16_t)(value ^ (change ? 1u << (fixture_random(&state) % 16) : 0));
		memcpy(*out_base + 2 * i, &value, 2);
		memcpy(*out_next + 2 * i, &changed, 2);
	}
}

static void expect_scan(scan_fn *scan, const uint8_t *base, const uint8_t *next, size_t count)
{
	/* exactly the room that the header asks for, so that a sanitizer sees a write behind it */
	uint16_t *const positions = memory_new_array(count, sizeof(uint16_t));
	const size_t found = scan(base, next, count, positions);
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		if (memcmp(base + 2 * i, next + 2 * i, 2) == 0)
			continue;
		ck_assert_uint_lt(at, found);
		ck_assert_uint_eq(positions[at++], i);
	}
	ck_assert_uint_eq(found, at);
	free(positions);
}

START_TEST(every_length_finds_every_change)
{
	static const unsigned shares[] = {0, 655, 6000, 32768, 65536};
	for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
		for (size_t count = 0; count <= 200; count++) {
			uint8_t *memory;
			uint8_t *base;
			uint8_t *next;
			make_pair(count, shares[s], &memory, &base, &next);
			expect_scan(scans[_i], base, next, count);
			free(memory);
		}
	}
}
END_TEST

START_TEST(each_single_change_is_found)
{
	enum { COUNT = 131 };
	uint8_t base[2 * COUNT] = {0};
	for (size_t byte = 0; byte < sizeof(base); byte++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t next[2 * COUNT] = {0};
			uint16_t positions[COUNT];
			next[byte] = (uint8_t)(1u << bit);
			ck_assert_uint_eq(scans[_i](base, next, COUNT, positions), 1);
			ck_assert_uint_eq(positions[0], byte / 2);
		}
	}
}
END_TEST

START_TEST(a_whole_block_is_scanned)
{
	uint8_t *memory;
	uint8_t *base;
	uint8_t *next;
	make_pair(MOST, _i % 2 == 0 ? 655 : 65536, &memory, &base, &next);
	expect_scan(scans[_i / 2], base, next, MOST);
	free(memory);
}
END_TEST

START_TEST(bits_count_and_not_numbers)
{
	/* As numbers 0.0 and -0.0 are equal and two NaNs differ. Weights are compared by their
	 * bits. */
	static const uint16_t base[] = {0x0000, 0x7fc0, 0x7fc0, 0x0001};
	static const uint16_t next[] = {0x8000, 0x7fc0, 0xffc1, 0x0001};
	uint16_t positions[4];
	ck_assert_uint_eq(scans[_i]((const uint8_t *)base, (const uint8_t *)next, 4, positions), 2);
	ck_assert_uint_eq(positions[0], 0);
	ck_assert_uint_eq(positions[1], 2);
}
END_TEST

START_TEST(elements_of_every_width_are_counted)
{
	static const unsigned widths[] = {1, 2, 4, 8};
	enum { BYTES = 9000 };
	uint8_t *const base = memory_new(BYTES);
	uint8_t *const next = memory_new(BYTES);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		const unsigned width = widths[i];
		memset(next, 0, BYTES);
		ck_assert_uint_eq(element_scan_count(base, next, BYTES, width), 0);
		next[0] = 1;
		next[width - 1] = 1;
		next[4096] = 1;
		next[BYTES - 1] = 1;
		ck_assert_uint_eq(element_scan_count(base, next, BYTES, width), 3);
		ck_assert_uint_eq(element_scan_count(base, next, 0, width), 0);
		memset(next, 1, BYTES);
		for (size_t bytes = 0; bytes < 200; bytes += width)
			ck_assert_uint_eq(
				element_scan_count(base, next, bytes, width), bytes / width);
	}
	free(base);
	free(next);
}
END_TEST

Suite *test_element_scan_suite(void)
{
	Suite *const suite = suite_create("element_scan");
	TCase *const tcase = tcase_create("element_scan");
	tcase_add_loop_test(tcase, every_length_finds_every_change, 0, 2);
	tcase_add_loop_test(tcase, each_single_change_is_found, 0, 2);
	tcase_add_loop_test(tcase, a_whole_block_is_scanned, 0, 4);
	tcase_add_loop_test(tcase, bits_count_and_not_numbers, 0, 2);
	tcase_add_test(tcase, elements_of_every_width_are_counted);
	suite_add_tcase(suite, tcase);
	return suite;
}
