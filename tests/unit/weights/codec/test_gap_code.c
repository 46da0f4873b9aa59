#include "tests/unit/unit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/gap_code.h"
#include "weights/codec/ulp_steps.h"
#include "weights/codec/varint.h"

unit_suite_fn test_gap_code_suite;

enum { MOST = 4096, ROOM = 8 * MOST };

static uint8_t room[ROOM];

START_TEST(a_gap_is_zeros_a_one_and_low_bits)
{
	static const struct {
		uint32_t gap;
		unsigned parameter;
		unsigned size;
		uint64_t bits;
	} codes[] = {
		{0, 0, 1, 1},
		{3, 0, 4, 8},
		{5, 1, 4, 0xc},
		{5, 2, 4, 0x6},
		{6, 2, 4, 0xa},
		{23, 0, 24, 1 << 23},
		{24, 0, 45, UINT64_C(24) << 24},
		{1 << 20, 0, 45, UINT64_C(1) << 44},
		{1 << 20, 20, 22, 2},
	};
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct bit_writer writer = {.at = room};
		gap_code_put(&writer, codes[i].gap, codes[i].parameter);
		ck_assert_uint_eq(gap_code_size(codes[i].gap, codes[i].parameter), codes[i].size);
		const struct span written = span_of(room, (size_t)(bit_writer_end(&writer) - room));
		struct bit_reader reader = bit_reader_open(written);
		ck_assert_uint_eq(written.len, (codes[i].size + 7) / 8);
		ck_assert_uint_eq(bit_reader_peek(&reader), codes[i].bits);
		ck_assert_uint_eq(gap_code_take(&reader, codes[i].parameter), codes[i].gap);
		ck_assert_uint_eq(bit_reader_at(&reader), codes[i].size);
	}
}
END_TEST

START_TEST(gaps_come_back_as_positions)
{
	static const uint32_t means[] = {0, 1, 5, 70, 250};
	uint32_t gaps[MOST];
	uint32_t positions[MOST];
	const uint32_t mean = means[_i];
	uint32_t end = 0;
	uint64_t bits = 0;
	for (uint32_t i = 0; i < MOST; i++) {
		gaps[i] = mean == 0 ? 0 : i * 2654435761u % (2 * mean);
		end += gaps[i] + 1;
	}
	const unsigned parameter = gap_code_parameter(end - MOST, MOST);
	for (size_t i = 0; i < MOST; i++)
		bits += gap_code_size(gaps[i], parameter);
	struct bit_writer writer = {.at = room};
	gap_code_write(&writer, gaps, MOST, parameter);
	const struct span written = span_of(room, (size_t)(bit_writer_end(&writer) - room));
	struct bit_reader reader = bit_reader_open(written);
	ck_assert_uint_eq(written.len, (bits + 7) / 8);
	for (unsigned other = 0; other <= GAP_CODE_PARAMETER_MAX; other++) {
		uint64_t others = 0;
		for (size_t i = 0; i < MOST; i++)
			others += gap_code_size(gaps[i], other);
		ck_assert_uint_le(bits, others + others / 10);
	}
	ck_assert(gap_code_read(&reader, parameter, MOST, end, positions));
	ck_assert_uint_eq(bit_reader_at(&reader), bits);
	ck_assert_uint_eq(positions[MOST - 1], end - 1);
	for (size_t i = 1; i < MOST; i++)
		ck_assert_uint_eq(positions[i] - positions[i - 1] - 1, gaps[i]);
	reader = bit_reader_open(written);
	ck_assert(!gap_code_read(&reader, parameter, MOST, end - 1, positions));
}
END_TEST

START_TEST(bits_behind_the_end_read_as_zero_and_show)
{
	static const uint8_t bytes[] = {0xff};
	struct bit_reader reader = bit_reader_open(span_of(bytes, 1));
	ck_assert_uint_eq(bit_reader_take(&reader, 12), 0xff);
	ck_assert_uint_eq(bit_reader_bytes(&reader), 2);
	ck_assert_uint_eq(bit_reader_take(&reader, 50), 0);
}
END_TEST

static void expect_steps(const int16_t *steps, size_t count)
{
	int16_t *const back = memory_new_array(count + 1, sizeof(*back));
	uint32_t *const places = memory_new_array(count + 1, sizeof(*places));
	struct bit_writer writer = {.at = room};
	ulp_steps_write(&writer, steps, count, places);
	const struct span written = span_of(room, (size_t)(bit_writer_end(&writer) - room));
	struct bit_reader reader = bit_reader_open(written);
	ck_assert(ulp_steps_read(&reader, count, back));
	ck_assert_uint_eq(bit_reader_bytes(&reader), written.len);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(back[i], steps[i]);
	free(back);
	free(places);
}

START_TEST(steps_of_every_length_come_back)
{
	int16_t steps[MOST];
	for (int from = 1; from <= 32768; from += MOST) {
		for (int i = 0; i < MOST; i++) {
			const int length = from + i > 32767 ? -32768 : from + i;
			steps[i] = (int16_t)(i % 3 == 0 && length > 0 ? -length : length);
		}
		expect_steps(steps, MOST);
	}
}
END_TEST

START_TEST(steps_in_any_mixture_come_back)
{
	static const unsigned shares[] = {0, 1, 30, 500, 1000};
	int16_t steps[MOST];
	uint32_t state = 5;
	for (size_t count = 0; count <= 130; count++) {
		for (size_t i = 0; i < count; i++) {
			state = state * 1664525 + 1013904223;
			const int length =
				state >> 16 < shares[_i] * 65 ? 2 + (int)(state >> 24) % 7 : 1;
			steps[i] = (int16_t)(state & 0x8000 ? length : -length);
		}
		expect_steps(steps, count);
	}
}
END_TEST

START_TEST(a_length_over_the_largest_is_refused)
{
	/* with parameter 2, a gap of 0 is the bits of 4 and two more; then only zeros follow */
	static const uint8_t bytes[16] = {0x04};
	int16_t steps[3];
	struct bit_reader reader = bit_reader_open(span_of(bytes, sizeof(bytes)));
	ck_assert(!ulp_steps_read(&reader, 2, steps));
}
END_TEST

START_TEST(varints_are_as_short_as_can_be)
{
	static const uint32_t values[] = {
		0, 1, 127, 128, 16383, 16384, 1 << 20, 1 << 21, UINT32_MAX};
	static const size_t sizes[] = {1, 1, 1, 2, 2, 3, 3, 4, 5};
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		uint8_t bytes[VARINT_BYTES_MAX];
		uint32_t value;
		struct span rest = span_of(bytes, varint_write(values[i], bytes));
		ck_assert_uint_eq(rest.len, sizes[i]);
		ck_assert(varint_read(&rest, &value));
		ck_assert_uint_eq(value, values[i]);
		ck_assert_uint_eq(rest.len, 0);
		rest = span_of(bytes, sizes[i] - 1);
		ck_assert(!varint_read(&rest, &value));
	}
	static const uint8_t bad[][6] = {
		{0x80, 0}, {0xff, 0xff, 0xff, 0xff, 0x10}, {0xff, 0xff, 0xff, 0xff, 0xff, 1}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint32_t value;
		struct span rest = span_of(bad[i], sizeof(bad[i]));
		ck_assert(!varint_read(&rest, &value));
	}
}
END_TEST

Suite *test_gap_code_suite(void)
{
	Suite *const suite = suite_create("gap_code");
	TCase *const tests = tcase_create("codes");
	tcase_add_test(tests, a_gap_is_zeros_a_one_and_low_bits);
	tcase_add_loop_test(tests, gaps_come_back_as_positions, 0, 5);
	tcase_add_test(tests, bits_behind_the_end_read_as_zero_and_show);
	tcase_add_test(tests, steps_of_every_length_come_back);
	tcase_add_loop_test(tests, steps_in_any_mixture_come_back, 0, 5);
	tcase_add_test(tests, a_length_over_the_largest_is_refused);
	tcase_add_test(tests, varints_are_as_short_as_can_be);
	suite_add_tcase(suite, tests);
	return suite;
}
