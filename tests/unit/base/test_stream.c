#include "tests/unit/unit.h"

#include <string.h>

#include "base/stream.h"

/* Gives some letters, a few at a time, and then ends or fails. */
struct letters {
	struct body_source source; /* must be first */
	size_t left;
	size_t piece;
	bool fails;
};

static ptrdiff_t letters_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct letters *const letters = (struct letters *)source;
	size_t len = letters->left < letters->piece ? letters->left : letters->piece;
	len = len < capacity ? len : capacity;
	if (len == 0 && letters->fails)
		return error_set(err, ERROR_IO, "the disk is gone");
	for (size_t i = 0; i < len; i++)
		into[i] = (uint8_t)('a' + --letters->left);
	return (ptrdiff_t)len;
}

static struct letters letters_of(size_t count, bool fails)
{
	return (struct letters){
		.source = {.read = letters_read}, .left = count, .piece = 2, .fails = fails};
}

START_TEST(reads_all_of_what_was_asked_for_and_no_more)
{
	struct letters letters = letters_of(7, false);
	struct error err = {0};
	uint8_t into[8] = "........";
	ck_assert_int_eq(body_source_read_whole(&letters.source, into, 0, &err), 0);
	ck_assert_uint_eq(letters.left, 7);
	ck_assert_int_eq(body_source_read_whole(&letters.source, into, 5, &err), 0);
	ck_assert_int_eq(memcmp(into, "gfedc...", 8), 0);
	ck_assert_uint_eq(letters.left, 2);
}
END_TEST

START_TEST(a_short_source_is_corrupt_and_a_failure_stays_what_it_is)
{
	struct letters ends = letters_of(3, false);
	struct letters fails = letters_of(3, true);
	struct error err = {0};
	uint8_t into[8];
	ck_assert_int_eq(body_source_read_whole(&ends.source, into, 4, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(body_source_read_whole(&fails.source, into, 4, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
}
END_TEST

Suite *test_stream_suite(void);
Suite *test_stream_suite(void)
{
	Suite *const suite = suite_create("stream");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, reads_all_of_what_was_asked_for_and_no_more);
	tcase_add_test(tc, a_short_source_is_corrupt_and_a_failure_stays_what_it_is);
	suite_add_tcase(suite, tc);
	return suite;
}
