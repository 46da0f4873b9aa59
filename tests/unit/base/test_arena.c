#include "tests/unit/unit.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"

START_TEST(takes_are_zeroed_aligned_and_apart)
{
	struct arena *const arena = arena_new(1024 * 1024);
	const uint8_t zeros[5000] = {0};
	for (size_t size = 0; size < 5000; size += 97) {
		uint8_t *const taken = arena_take(arena, size);
		ck_assert_ptr_nonnull(taken);
		ck_assert_uint_eq((uintptr_t)taken % 16, 0);
		ck_assert(memcmp(taken, zeros, size) == 0);
		memset(taken, 0xff, size);
	}
	ck_assert(!arena_overflowed(arena));
	arena_free(arena);
}
END_TEST

START_TEST(cap_is_exact_and_overflow_is_told)
{
	struct arena *const arena = arena_new(64);
	ck_assert_ptr_nonnull(arena_take(arena, 48));
	ck_assert(!arena_overflowed(arena));
	ck_assert_ptr_null(arena_take(arena, 17));
	ck_assert(arena_overflowed(arena));
	ck_assert_ptr_nonnull(arena_take(arena, 16));
	ck_assert(arena_overflowed(arena));
	arena_free(arena);
}
END_TEST

START_TEST(large_takes_are_one_piece)
{
	struct arena *const arena = arena_new(40 * 1024 * 1024);
	uint8_t *const large = arena_take(arena, 30 * 1024 * 1024);
	ck_assert_ptr_nonnull(large);
	large[30 * 1024 * 1024 - 1] = 1;
	ck_assert_ptr_nonnull(arena_take(arena, 1));
	arena_free(arena);
}
END_TEST

static const struct {
	size_t count, bytes;
} absurd_rows[] = {{SIZE_MAX, 2}, {SIZE_MAX, 1}, {SIZE_MAX / 2 + 1, 1}, {SIZE_MAX / 16, 17},
	{1, SIZE_MAX - 14}};

START_TEST(absurd_sizes_overflow)
{
	struct arena *const arena = arena_new(SIZE_MAX);
	ck_assert_ptr_null(arena_take_array(arena, absurd_rows[_i].count, absurd_rows[_i].bytes));
	ck_assert(arena_overflowed(arena));
	arena_free(arena);
}
END_TEST

START_TEST(empty_arrays_are_no_failure)
{
	struct arena *const arena = arena_new(100);
	ck_assert_ptr_nonnull(arena_take_array(arena, 0, 1000));
	ck_assert(!arena_overflowed(arena));
	arena_free(arena);
}
END_TEST

START_TEST(texts_and_copies)
{
	struct arena *const arena = arena_new(1000);
	ck_assert_str_eq(arena_text(arena, span_of("abcd", 3)), "abc");
	ck_assert_str_eq(arena_text(arena, span_of(NULL, 0)), "");
	const struct span copy = arena_copy(arena, span_of("a\0b", 3));
	ck_assert(span_equal(copy, span_of("a\0b", 3)));
	ck_assert_str_eq(arena_format(arena, "%s-%03d", "n", 7), "n-007");
	ck_assert(!arena_overflowed(arena));
	ck_assert_ptr_null(arena_copy(arena, span_of("", 1000)).data);
	ck_assert(arena_overflowed(arena));
	arena_free(arena);
}
END_TEST

START_TEST(format_past_the_cap_is_null)
{
	struct arena *const arena = arena_new(16);
	ck_assert_ptr_null(arena_format(arena, "%0100d", 1));
	ck_assert(arena_overflowed(arena));
	arena_free(arena);
	arena_free(NULL);
}
END_TEST

Suite *test_arena_suite(void);
Suite *test_arena_suite(void)
{
	Suite *const suite = suite_create("arena");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, takes_are_zeroed_aligned_and_apart);
	tcase_add_test(tc, cap_is_exact_and_overflow_is_told);
	tcase_add_test(tc, large_takes_are_one_piece);
	tcase_add_loop_test(
		tc, absurd_sizes_overflow, 0, sizeof absurd_rows / sizeof absurd_rows[0]);
	tcase_add_test(tc, empty_arrays_are_no_failure);
	tcase_add_test(tc, texts_and_copies);
	tcase_add_test(tc, format_past_the_cap_is_null);
	suite_add_tcase(suite, tc);
	return suite;
}
