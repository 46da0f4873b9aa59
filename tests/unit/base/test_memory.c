#include "tests/unit/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/base/abort_check.h"

START_TEST(new_is_zeroed)
{
	const uint8_t zeros[1000] = {0};
	uint8_t *const one = memory_new(sizeof zeros);
	uint8_t *const many = memory_new_array(10, 100);
	ck_assert_mem_eq(one, zeros, sizeof zeros);
	ck_assert_mem_eq(many, zeros, sizeof zeros);
	free(one);
	free(many);
}
END_TEST

START_TEST(nothing_is_still_a_pointer)
{
	void *const none = memory_new(0);
	void *const empty = memory_new_array(0, 8);
	void *const grown = memory_grow(NULL, 0, 8);
	ck_assert_ptr_nonnull(none);
	ck_assert_ptr_nonnull(empty);
	ck_assert_ptr_nonnull(grown);
	free(none);
	free(empty);
	free(grown);
}
END_TEST

START_TEST(grow_keeps_what_was_there)
{
	int *numbers = memory_grow(NULL, 2, sizeof *numbers);
	numbers[0] = 7;
	numbers[1] = 8;
	numbers = memory_grow(numbers, 1000, sizeof *numbers);
	ck_assert_int_eq(numbers[0], 7);
	ck_assert_int_eq(numbers[1], 8);
	free(numbers);
}
END_TEST

START_TEST(copies_are_equal_and_apart)
{
	char text[] = "text";
	char *const copy = memory_copy_text(text);
	uint8_t *const bytes = memory_copy("a\0b", 3);
	text[0] = 'n';
	ck_assert_str_eq(copy, "text");
	ck_assert_mem_eq(bytes, "a\0b", 3);
	ck_assert_ptr_null(memory_copy_text(NULL));
	free(copy);
	free(bytes);
}
END_TEST

static void overflow_array(void *const argument)
{
	free(memory_new_array(SIZE_MAX / 2, (size_t)(uintptr_t)argument));
}

static void overflow_grow(void *const argument)
{
	free(memory_grow(NULL, SIZE_MAX / 2, (size_t)(uintptr_t)argument));
}

START_TEST(overflowing_sizes_abort)
{
	abort_check(overflow_array, (void *)(uintptr_t)3);
	abort_check(overflow_grow, (void *)(uintptr_t)3);
}
END_TEST

Suite *test_memory_suite(void);
Suite *test_memory_suite(void)
{
	Suite *const suite = suite_create("memory");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, new_is_zeroed);
	tcase_add_test(tc, nothing_is_still_a_pointer);
	tcase_add_test(tc, grow_keeps_what_was_there);
	tcase_add_test(tc, copies_are_equal_and_apart);
	tcase_add_test(tc, overflowing_sizes_abort);
	suite_add_tcase(suite, tc);
	return suite;
}
