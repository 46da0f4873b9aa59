#include "tests/unit/unit.h"

#include <stdint.h>
#include <string.h>

#include "base/random.h"

START_TEST(fills_all_and_never_twice_the_same)
{
	uint8_t first[1000] = {0};
	uint8_t second[1000] = {0};
	const uint8_t zeros[32] = {0};
	random_bytes(first, sizeof first);
	random_bytes(second, sizeof second);
	ck_assert(memcmp(first, second, sizeof first) != 0);
	for (size_t at = 0; at + sizeof zeros <= sizeof first; at += sizeof zeros)
		ck_assert(memcmp(first + at, zeros, sizeof zeros) != 0);
}
END_TEST

START_TEST(touches_no_byte_more_than_asked)
{
	uint8_t bytes[3] = {1, 2, 3};
	random_bytes(bytes, 0);
	ck_assert_mem_eq(bytes, "\1\2\3", 3);
	random_bytes(bytes + 1, 1);
	ck_assert(bytes[0] == 1 && bytes[2] == 3);
}
END_TEST

Suite *test_random_suite(void);
Suite *test_random_suite(void)
{
	Suite *const suite = suite_create("random");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, fills_all_and_never_twice_the_same);
	tcase_add_test(tc, touches_no_byte_more_than_asked);
	suite_add_tcase(suite, tc);
	return suite;
}
