#include "tests/unit/unit.h"

#include "base/search.h"

static bool number_is_before(const void *element, const void *key)
{
	return *(const int *)element < *(const int *)key;
}

/* The bound must be the one that a walk from the front finds, for every key and every length. */
START_TEST(the_bound_is_that_of_a_walk)
{
	static const int numbers[] = {1, 3, 3, 3, 4, 8, 8, 9, 15, 16, 16};
	enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };
	for (size_t count = 0; count <= COUNT; count++)
		for (int key = 0; key <= 17; key++) {
			size_t expected = 0;
			while (expected < count && numbers[expected] < key)
				expected++;
			ck_assert_uint_eq(search_lower_bound(numbers, count, sizeof(*numbers),
						  number_is_before, &key),
				expected);
		}
}
END_TEST

START_TEST(an_empty_list_may_be_null)
{
	const int key = 7;
	ck_assert_uint_eq(search_lower_bound(NULL, 0, sizeof(int), number_is_before, &key), 0);
}
END_TEST

Suite *test_search_suite(void);
Suite *test_search_suite(void)
{
	Suite *const suite = suite_create("search");
	TCase *const tests = tcase_create("search");
	tcase_add_test(tests, the_bound_is_that_of_a_walk);
	tcase_add_test(tests, an_empty_list_may_be_null);
	suite_add_tcase(suite, tests);
	return suite;
}
