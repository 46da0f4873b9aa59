#include "chunker/gear_marks.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk.h"
#include "chunker/gear_table.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_gear_marks_suite(void);

enum { BYTES = 300000 };

/* The definition: a mark is where the top 16 bits of the hash over all bytes so far are zero. */
START_TEST(marks_are_where_the_rolled_hash_begins_with_zeros)
{
	uint8_t *const content = vectors_splitmix(5, BYTES);
	uint64_t *const marks = memory_new_array(gear_marks_words(BYTES), sizeof(*marks));
	const size_t len = BYTES - GEAR_MARKS_BEFORE - (size_t)_i;
	gear_marks_find(span_of(content + GEAR_MARKS_BEFORE, len), marks);
	uint64_t hash = 0;
	size_t found = 0;
	size_t wrong = 0;
	for (size_t i = 0; i < GEAR_MARKS_BEFORE + len; i++) {
		hash = (hash << 1) + gear_table[content[i]];
		if (i < GEAR_MARKS_BEFORE)
			continue;
		const size_t at = i - GEAR_MARKS_BEFORE;
		wrong += (marks[at / 64] >> at % 64 & 1) != (hash >> 48 == 0);
		found += hash >> 48 == 0;
	}
	ck_assert_uint_gt(found, 0);
	ck_assert_uint_eq(wrong, 0);
	free(marks);
	free(content);
}
END_TEST

/* With marks set by hand: a chunk ends at the first mark that is not too early, at the longest
 * length of a chunk, or not in this stretch. */
START_TEST(an_end_is_the_first_mark_that_a_chunk_may_have)
{
	enum { LEN = 200000 };
	uint64_t *const marks = memory_new_array(gear_marks_words(LEN), sizeof(*marks));
	ck_assert_uint_eq(gear_marks_end(marks, LEN, 0), CHUNK_MAX_BYTES);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, 1000), CHUNK_MAX_BYTES - 1000);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, CHUNK_MAX_BYTES - 1), 1);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, -(LEN - CHUNK_MAX_BYTES)), LEN);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, -(LEN - CHUNK_MAX_BYTES) - 1), 0);
	marks[8190 / 64] |= UINT64_C(1) << 8190 % 64;
	ck_assert_uint_eq(gear_marks_end(marks, LEN, 0), CHUNK_MAX_BYTES);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, 1), 8191);
	marks[8191 / 64] |= UINT64_C(1) << 8191 % 64;
	ck_assert_uint_eq(gear_marks_end(marks, LEN, 0), 8192);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, CHUNK_MIN_BYTES), 8191);
	ck_assert_uint_eq(gear_marks_end(marks, 8190, CHUNK_MIN_BYTES), 0);
	ck_assert_uint_eq(gear_marks_end(marks, LEN, -1), CHUNK_MAX_BYTES + 1);
	free(marks);
}
END_TEST

Suite *test_gear_marks_suite(void)
{
	Suite *const suite = suite_create("gear_marks");
	TCase *const tests = tcase_create("gear_marks");
	tcase_add_loop_test(tests, marks_are_where_the_rolled_hash_begins_with_zeros, 0, 4);
	tcase_add_test(tests, an_end_is_the_first_mark_that_a_chunk_may_have);
	suite_add_tcase(suite, tests);
	return suite;
}
