#include "tests/unit/unit.h"

#include <nettle/md5.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/md5_lanes.h"

enum { MOST_BLOCKS = 9, BUFFER_BYTES = MD5_BLOCK_BYTES * MOST_BLOCKS + 16 };

/* Compares random states and bytes with the rounds of another library. */
struct fixture {
	uint8_t bytes[MD5_LANES][BUFFER_BYTES];
	uint32_t states[MD5_LANES][MD5_STATE_WORDS];
	uint32_t expected[MD5_LANES][MD5_STATE_WORDS];
	struct md5_lane lanes[MD5_LANES];
	unsigned seed;
};

static unsigned next(struct fixture *fixture)
{
	fixture->seed = fixture->seed * 1664525 + 1013904223;
	return fixture->seed >> 8;
}

static void set_lane(struct fixture *fixture, size_t i, size_t blocks)
{
	for (size_t at = 0; at < BUFFER_BYTES; at++)
		fixture->bytes[i][at] = (uint8_t)next(fixture);
	for (size_t word = 0; word < MD5_STATE_WORDS; word++)
		fixture->expected[i][word] = fixture->states[i][word] =
			next(fixture) << 16 ^ next(fixture);
	const uint8_t *const data = fixture->bytes[i] + next(fixture) % 16;
	fixture->lanes[i] = (struct md5_lane){fixture->states[i], data, blocks};
	for (size_t block = 0; block < blocks; block++)
		nettle_md5_compress(fixture->expected[i], data + block * MD5_BLOCK_BYTES);
}

static void check_lanes(struct fixture *fixture, size_t way, size_t count)
{
	md5_lanes_advance_by(way, fixture->lanes, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(memcmp(fixture->states[i], fixture->expected[i],
				      sizeof fixture->expected[i]) == 0,
			"lane %zu of %zu, way %zu", i, count, way);
}

START_TEST(lanes_of_one_length)
{
	struct fixture *const fixture = calloc(1, sizeof *fixture);
	for (size_t way = 0; way < md5_lanes_ways(); way++)
		for (size_t count = 0; count <= MD5_LANES; count++)
			for (size_t blocks = 0; blocks <= 3; blocks++) {
				for (size_t i = 0; i < count; i++)
					set_lane(fixture, i, blocks);
				check_lanes(fixture, way, count);
			}
	free(fixture);
}
END_TEST

START_TEST(lanes_of_many_lengths)
{
	struct fixture *const fixture = calloc(1, sizeof *fixture);
	fixture->seed = 42;
	for (int round = 0; round < 300; round++) {
		const size_t count = 1 + next(fixture) % MD5_LANES;
		for (size_t i = 0; i < count; i++)
			set_lane(fixture, i, next(fixture) % (MOST_BLOCKS + 1));
		check_lanes(fixture, (size_t)round % md5_lanes_ways(), count);
	}
	free(fixture);
}
END_TEST

Suite *test_md5_lanes_suite(void);
Suite *test_md5_lanes_suite(void)
{
	Suite *const suite = suite_create("md5_lanes");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, lanes_of_one_length);
	tcase_add_test(tc, lanes_of_many_lengths);
	suite_add_tcase(suite, tc);
	return suite;
}
