#include "tests/unit/unit.h"

#include "storage/versions/part_ends.h"
#include "storage/versions/part_map.h"

static struct buffer map;

static void set_up(void)
{
	buffer_init(&map, 4096);
}

static void tear_down(void)
{
	buffer_release(&map);
}

static void add(uint32_t number, uint64_t end)
{
	const struct part_map_entry entry = {
		.number = number, .end = end, .sum = end * 31 + number};
	part_map_add(&map, &entry);
}

/* Parts 2, 3, 7 and 9, of 10, 0, 5 and 1 bytes. */
static void fill(void)
{
	add(2, 10);
	add(3, 10);
	add(7, 15);
	add(9, 16);
}

START_TEST(offsets_find_their_parts)
{
	static const size_t wanted[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 3, 4, 4};
	fill();
	ck_assert(part_map_is_sound(buffer_span(&map)));
	ck_assert_uint_eq(part_map_count(buffer_span(&map)), 4);
	for (size_t offset = 0; offset < sizeof(wanted) / sizeof(wanted[0]); offset++)
		ck_assert_uint_eq(part_map_find(buffer_span(&map), offset), wanted[offset]);
}
END_TEST

START_TEST(numbers_find_their_parts)
{
	static const size_t wanted[] = {0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 4};
	fill();
	for (uint32_t number = 0; number < sizeof(wanted) / sizeof(wanted[0]); number++)
		ck_assert_uint_eq(part_map_find_number(buffer_span(&map), number), wanted[number]);
	const struct part_map_entry entry = part_map_entry(buffer_span(&map), 2);
	ck_assert(entry.number == 7 && entry.start == 10 && entry.end == 15 &&
		entry.sum == 15 * 31 + 7);
	ck_assert_uint_eq(part_map_entry(buffer_span(&map), 0).start, 0);
}
END_TEST

static const struct {
	uint32_t numbers[2];
	uint64_t ends[2];
	size_t cut; /* bytes cut off the end */
} unsound[] = {
	{{2, 2}, {1, 2}, 0},
	{{2, 1}, {1, 2}, 0},
	{{0, 1}, {1, 2}, 0},
	{{1, 2}, {2, 1}, 0},
	{{1, 2}, {1, (uint64_t)1 << 63}, 0},
	{{1, 2}, {1, 2}, 1},
	{{1, 2}, {1, 2}, 2 * PART_MAP_ENTRY_BYTES},
};

START_TEST(what_is_no_map_is_told)
{
	add(unsound[_i].numbers[0], unsound[_i].ends[0]);
	add(unsound[_i].numbers[1], unsound[_i].ends[1]);
	ck_assert(!part_map_is_sound(span_slice(buffer_span(&map), 0, map.len - unsound[_i].cut)));
}
END_TEST

/* Parts of a derived version, one of them empty: the bytes that are left of the part with a
 * byte. */
START_TEST(what_is_left_of_a_part)
{
	uint64_t all[] = {10, 10, 25};
	struct part_ends ends = {.ends = all, .count = 3};
	ck_assert_uint_eq(part_ends_left(&ends, 0), 10);
	ck_assert_uint_eq(part_ends_left(&ends, 9), 1);
	ck_assert_uint_eq(part_ends_left(&ends, 10), 15);
	ck_assert_uint_eq(part_ends_left(&ends, 24), 1);
	ck_assert_uint_eq(part_ends_left(&ends, 25), UINT64_MAX);
}
END_TEST

Suite *test_part_map_suite(void);

Suite *test_part_map_suite(void)
{
	Suite *const suite = suite_create("part_map");
	TCase *const tests = tcase_create("part_map");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, offsets_find_their_parts);
	tcase_add_test(tests, numbers_find_their_parts);
	tcase_add_loop_test(tests, what_is_no_map_is_told, 0, sizeof(unsound) / sizeof(unsound[0]));
	tcase_add_test(tests, what_is_left_of_a_part);
	suite_add_tcase(suite, tests);
	return suite;
}
