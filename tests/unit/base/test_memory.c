#include "tests/unit/unit.h"

#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A list grows one by one and keeps its elements; its capacity doubles from 16 on. */
START_TEST(room_doubles_and_keeps_the_elements)
{
	enum { ELEMENTS = 100 };
	int *list = NULL;
	size_t capacity = 0;
	for (int i = 0; i < ELEMENTS; i++) {
		list = memory_make_room(list, (size_t)i, &capacity, sizeof(*list));
		ck_assert_uint_eq(capacity, i < 16 ? 16 : i < 32 ? 32 : i < 64 ? 64 : 128);
		list[i] = i;
	}
	for (int i = 0; i < ELEMENTS; i++)
		ck_assert_int_eq(list[i], i);
	free(list);
}
END_TEST

static void overflow_room(void *list)
{
	size_t capacity = SIZE_MAX / 4;
	free(memory_make_room(list, capacity, &capacity, sizeof(int)));
}

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

static void overflow_array(void *argument)
{
	free(memory_new_array(SIZE_MAX / 2, (size_t)(uintptr_t)argument));
}

static void overflow_grow(void *argument)
{
	free(memory_grow(NULL, SIZE_MAX / 2, (size_t)(uintptr_t)argument));
}

START_TEST(overflowing_sizes_abort)
{
	abort_check(overflow_array, (void *)(uintptr_t)3);
	abort_check(overflow_grow, (void *)(uintptr_t)3);
	int *const list = memory_new(sizeof(*list));
	abort_check(overflow_room, list);
	free(list);
}
END_TEST

static size_t resident_bytes(void)
{
	size_t total = 0;
	size_t resident = 0;
	FILE *const file = fopen("/proc/self/statm", "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%zu %zu", &total, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Sanitizers and valgrind, under which loops leap, have heaps of their own. */
static bool is_plain_heap(void)
{
	return unit_stride(2) == 1;
}

/* free alone does not return memory that lies before a block in use. The same memory is used and
 * freed several times. */
START_TEST(memory_that_was_freed_goes_back)
{
	enum { BLOCKS = 1024, BLOCK_BYTES = 64 * 1024, SPARED_BYTES = 32 * 1024 * 1024 };
	static void *blocks[BLOCKS];
	void *last = NULL;
	struct memory_rest rest = {0};
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < BLOCKS; i++)
			memset(blocks[i] = memory_new(BLOCK_BYTES), 1, BLOCK_BYTES);
		if (last == NULL)
			last = memory_new(BLOCK_BYTES); /* too large for a hole before them */
		for (size_t i = 0; i < BLOCKS; i++)
			free(blocks[i]);
		const size_t before = resident_bytes();
		memory_give_back(&rest);
		if (is_plain_heap())
			ck_assert_uint_lt(resident_bytes() + SPARED_BYTES, before);
	}
	free(last);
}
END_TEST

/* A first call while memory is in use must not make later calls blind. */
START_TEST(memory_goes_back_after_a_look_at_a_busy_time)
{
	enum { BLOCKS = 2048, BLOCK_BYTES = 64 * 1024, SPARED_BYTES = 64 * 1024 * 1024 };
	static void *blocks[BLOCKS];
	struct memory_rest rest = {0};
	for (size_t i = 0; i < BLOCKS; i++)
		memset(blocks[i] = memory_new(BLOCK_BYTES), 1, BLOCK_BYTES);
	void *const last = memory_new(BLOCK_BYTES);
	for (size_t i = 0; i < BLOCKS; i++) {
		free(blocks[i]);
		if (i == BLOCKS / 4)
			memory_give_back(&rest);
	}
	const size_t before = resident_bytes();
	memory_give_back(&rest);
	if (is_plain_heap())
		ck_assert_uint_lt(resident_bytes() + SPARED_BYTES, before);
	free(last);
}
END_TEST

Suite *test_memory_suite(void);
Suite *test_memory_suite(void)
{
	Suite *const suite = suite_create("memory");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, memory_that_was_freed_goes_back);
	tcase_add_test(tc, memory_goes_back_after_a_look_at_a_busy_time);
	tcase_add_test(tc, new_is_zeroed);
	tcase_add_test(tc, nothing_is_still_a_pointer);
	tcase_add_test(tc, grow_keeps_what_was_there);
	tcase_add_test(tc, room_doubles_and_keeps_the_elements);
	tcase_add_test(tc, copies_are_equal_and_apart);
	tcase_add_test(tc, overflowing_sizes_abort);
	suite_add_tcase(suite, tc);
	return suite;
}
