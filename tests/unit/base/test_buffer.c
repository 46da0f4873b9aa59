#include "tests/unit/unit.h"

#include <string.h>

#include "base/buffer.h"
#include "tests/unit/base/abort_check.h"

START_TEST(adds_join_in_order_and_stay_terminated)
{
	struct buffer buffer;
	buffer_init(&buffer, 100);
	ck_assert_str_eq(buffer_text(&buffer), "");
	buffer_add_text(&buffer, "ab");
	buffer_add(&buffer, "c\0d", 3);
	buffer_add_byte(&buffer, 'e');
	buffer_add_span(&buffer, span_text("f"));
	buffer_add_span(&buffer, span_of(NULL, 0));
	buffer_format(&buffer, "-%d-%s", 42, "x");
	ck_assert(span_equal(buffer_span(&buffer),
		span_of("ab"
			"c\0d"
			"e"
			"f"
			"-42-x",
			12)));
	ck_assert_int_eq(buffer.data[buffer.len], 0);
	ck_assert(!buffer_failed(&buffer));
	buffer_release(&buffer);
}
END_TEST

START_TEST(grows_to_the_cap_and_not_beyond)
{
	struct buffer buffer;
	struct error err = {0};
	buffer_init(&buffer, 1000);
	for (int i = 0; i < 1000; i++)
		buffer_add_byte(&buffer, (uint8_t)i);
	ck_assert_int_eq(buffer_check(&buffer, "the list", &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NONE);
	buffer_add_byte(&buffer, 'x');
	ck_assert(buffer_failed(&buffer));
	ck_assert_uint_eq(buffer.len, 1000);
	for (size_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(buffer.data[i], i & 255);
	ck_assert_int_eq(buffer_check(&buffer, "the list", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	ck_assert_str_eq(err.text, "the list is over 1000 bytes");
	buffer_release(&buffer);
}
END_TEST

/* After bytes that did not fit, smaller ones that would fit must not be added either. */
START_TEST(failing_is_sticky_until_reset)
{
	struct buffer buffer;
	buffer_init(&buffer, 4);
	buffer_add_text(&buffer, "ab");
	buffer_format(&buffer, "%s", "cde");
	buffer_add_text(&buffer, "f");
	ck_assert_str_eq(buffer_text(&buffer), "ab");
	ck_assert_ptr_null(buffer_reserve(&buffer, 1));
	buffer_reset(&buffer);
	ck_assert(!buffer_failed(&buffer));
	buffer_add_text(&buffer, "fghi");
	ck_assert_str_eq(buffer_text(&buffer), "fghi");
	buffer_release(&buffer);
}
END_TEST

START_TEST(reserve_and_commit)
{
	struct buffer buffer;
	buffer_init(&buffer, 300);
	buffer_add_text(&buffer, "a");
	uint8_t *const room = buffer_reserve(&buffer, 299);
	ck_assert_ptr_nonnull(room);
	memset(room, 'b', 299);
	buffer_commit(&buffer, 2);
	ck_assert_str_eq(buffer_text(&buffer), "abb");
	ck_assert_ptr_null(buffer_reserve(&buffer, 298));
	ck_assert(buffer_failed(&buffer));
	buffer_release(&buffer);
}
END_TEST

START_TEST(absurd_sizes_fail_cleanly)
{
	struct buffer buffer;
	buffer_init(&buffer, SIZE_MAX);
	buffer_add_text(&buffer, "a");
	ck_assert(!buffer_failed(&buffer));
	ck_assert_ptr_null(buffer_reserve(&buffer, SIZE_MAX));
	ck_assert_str_eq(buffer_text(&buffer), "a");
	buffer_release(&buffer);
	buffer_init(&buffer, 0);
	ck_assert_ptr_nonnull(buffer_reserve(&buffer, 0));
	buffer_add_byte(&buffer, 'a');
	ck_assert(buffer_failed(&buffer));
	buffer_release(&buffer);
}
END_TEST

START_TEST(front_is_removed)
{
	struct buffer buffer;
	buffer_init(&buffer, 100);
	buffer_add_text(&buffer, "abcdef");
	buffer_remove_front(&buffer, 2);
	ck_assert_str_eq(buffer_text(&buffer), "cdef");
	buffer_remove_front(&buffer, 0);
	buffer_remove_front(&buffer, 4);
	ck_assert_uint_eq(buffer.len, 0);
	ck_assert_str_eq(buffer_text(&buffer), "");
	buffer_release(&buffer);
}
END_TEST

START_TEST(zeroed_may_be_released)
{
	struct buffer buffer = {0};
	buffer_release(&buffer);
	buffer_release(&buffer);
	ck_assert_str_eq(buffer_text(&buffer), "");
}
END_TEST

START_TEST(wiped_memory_is_zero_and_usable)
{
	struct buffer buffer;
	buffer_init(&buffer, 1000);
	buffer.is_secret = true;
	buffer_add_text(&buffer, "it grows without losing a byte: ");
	buffer_reserve(&buffer, 1000 - buffer.len);
	ck_assert_str_eq(buffer_text(&buffer), "it grows without losing a byte: ");
	const uint8_t *const memory = buffer.data;
	buffer_add_text(&buffer, "a secret of many bytes");
	buffer_remove_front(&buffer, 12); /* leaves old bytes behind the end */
	buffer_wipe(&buffer);
	ck_assert_uint_eq(buffer.len, 0);
	for (size_t i = 0; i < buffer.capacity; i++)
		ck_assert_uint_eq(memory[i], 0);
	buffer_add_text(&buffer, "x");
	ck_assert_str_eq(buffer_text(&buffer), "x");
	ck_assert_ptr_eq(buffer.data, memory);
	buffer_release(&buffer);
	buffer_wipe(&buffer);
}
END_TEST

static void commit_too_much(void *argument)
{
	struct buffer *const buffer = argument;
	buffer_reserve(buffer, 10);
	buffer_commit(buffer, buffer->capacity);
}

START_TEST(committing_more_than_reserved_aborts)
{
	struct buffer buffer;
	buffer_init(&buffer, 1000);
	abort_check(commit_too_much, &buffer);
}
END_TEST

Suite *test_buffer_suite(void);
Suite *test_buffer_suite(void)
{
	Suite *const suite = suite_create("buffer");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, adds_join_in_order_and_stay_terminated);
	tcase_add_test(tc, grows_to_the_cap_and_not_beyond);
	tcase_add_test(tc, failing_is_sticky_until_reset);
	tcase_add_test(tc, reserve_and_commit);
	tcase_add_test(tc, absurd_sizes_fail_cleanly);
	tcase_add_test(tc, front_is_removed);
	tcase_add_test(tc, zeroed_may_be_released);
	tcase_add_test(tc, wiped_memory_is_zero_and_usable);
	tcase_add_test(tc, committing_more_than_reserved_aborts);
	suite_add_tcase(suite, tc);
	return suite;
}
