#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/byte_planes.h"
#include "base/memory.h"

unit_suite_fn test_byte_planes_suite;

static const struct {
	size_t width;
	size_t len;
	uint8_t content[12];
	uint8_t split[12];
} vectors[] = {
	{4, 10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 4, 8, 1, 5, 9, 2, 6, 3, 7}},
	{4, 12, {0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33},
		{0x10, 0x20, 0x30, 0x11, 0x21, 0x31, 0x12, 0x22, 0x32, 0x13, 0x23, 0x33}},
	{2, 5, {0, 1, 2, 3, 4}, {0, 2, 4, 1, 3}},
	{2, 1, {7}, {7}},
	{4, 3, {7, 8, 9}, {7, 8, 9}},
	{4, 0, {0}, {0}},
};

static const size_t widths[] = {1, 2, 4, 8};

static void join(const uint8_t *split, size_t width, uint8_t *into, size_t len)
{
	const uint8_t *planes[BYTE_PLANES_MAX] = {split};
	for (size_t k = 1; k < width; k++)
		planes[k] = planes[k - 1] + byte_planes_length(len, width, k - 1);
	byte_planes_join(planes, width, into, len);
}

START_TEST(vectors_split_and_join)
{
	uint8_t split[12] = {0}, joined[12] = {0};
	byte_planes_split(span_of(vectors[_i].content, vectors[_i].len), vectors[_i].width, split);
	ck_assert_mem_eq(split, vectors[_i].split, sizeof split);
	join(split, vectors[_i].width, joined, vectors[_i].len);
	ck_assert_mem_eq(joined, vectors[_i].content, sizeof joined);
}
END_TEST

START_TEST(every_length_splits_by_position_and_joins_again)
{
	enum { MOST = 600 };
	const size_t width = widths[_i];
	uint8_t *const content = memory_new(MOST);
	for (size_t i = 0; i < MOST; i++)
		content[i] = (uint8_t)(i * 151 + i / 256 * 7);
	for (size_t len = 0; len <= MOST; len++) {
		uint8_t *const split = memory_new(len + 1);
		uint8_t *const joined = memory_new(len + 1);
		byte_planes_split(span_of(content, len), width, split);
		size_t at = 0, wrong = 0;
		for (size_t k = 0; k < width; k++) {
			for (size_t i = k; i < len; i += width)
				wrong += split[at++] != content[i] ? 1 : 0;
		}
		ck_assert_uint_eq(wrong, 0);
		join(split, width, joined, len);
		ck_assert(len == 0 || memcmp(joined, content, len) == 0);
		ck_assert_uint_eq(split[len] + joined[len], 0);
		free(split);
		free(joined);
	}
	free(content);
}
END_TEST

Suite *test_byte_planes_suite(void)
{
	Suite *const suite = suite_create("byte_planes");
	TCase *const tests = tcase_create("split");
	tcase_add_loop_test(tests, vectors_split_and_join, 0, sizeof vectors / sizeof *vectors);
	tcase_add_loop_test(tests, every_length_splits_by_position_and_joins_again, 0,
		sizeof widths / sizeof *widths);
	suite_add_tcase(suite, tests);
	return suite;
}
