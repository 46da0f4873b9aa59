#include "weights/tensor_changes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/element_scan.h"

Suite *test_tensor_changes_suite(void);

enum { ELEMENTS = 3 * ELEMENT_SCAN_BLOCK + 1234 };

/* A budget that keeps all positions, one that runs out on the way, and none. */
static const int64_t budgets[] = {1 << 30, 1000, 0};

START_TEST(both_passes_agree_whatever_is_kept)
{
	uint16_t *const base = memory_new_array(ELEMENTS, 2);
	uint16_t *const next = memory_new_array(ELEMENTS, 2);
	uint16_t *const scratch = memory_new_array(ELEMENT_SCAN_BLOCK, 2);
	uint64_t state = 1;
	uint64_t changed = 0;
	for (size_t i = 0; i < ELEMENTS; i++) {
		base[i] = fixture_random(&state);
		const bool change = fixture_random(&state) < 700 && (i < 10 || i > 140000);
		next[i] = change ? (uint16_t)(base[i] + 1) : base[i];
		changed += change;
	}
	next[5] = (uint16_t)(base[5] + 1);
	next[150000] = (uint16_t)(base[150000] + 1);
	struct tensor_changes changes;
	struct tensor_hashes hashes = {xxh3_stream_new(), xxh3_stream_new()};
	const struct span left = span_of(base, 2 * ELEMENTS);
	const struct span right = span_of(next, 2 * ELEMENTS);
	_Atomic int64_t budget = budgets[_i];
	tensor_changes_find(&changes, left, right, &hashes, &budget, scratch);
	ck_assert_int_eq(changes.kept, _i == 0);
	const struct digest128 digests[] = {xxh3_stream_result(hashes.base), xxh3_stream_result(hashes.next)};
	const struct digest128 expected[] = {xxh3_128(left), xxh3_128(right)};
	ck_assert(digest128_equal(&digests[0], &expected[0]) && digest128_equal(&digests[1], &expected[1]));

	struct tensor_changes_cursor cursor = {0};
	uint64_t seen = 0;
	uint64_t largest_gap = 0;
	uint64_t follow = 0;
	for (uint64_t block = 0; block < tensor_changes_blocks(&changes); block++) {
		size_t count = 0;
		const uint16_t *const positions = tensor_changes_next(&changes, &cursor, scratch, &count);
		for (size_t i = 0; i < count; i++) {
			const uint64_t position = block * ELEMENT_SCAN_BLOCK + positions[i];
			ck_assert_uint_ge(position, follow);
			for (; follow < position; follow++)
				ck_assert_uint_eq(base[follow], next[follow]);
			ck_assert_uint_ne(base[position], next[position]);
			follow = position + 1;
		}
		seen += count;
	}
	ck_assert_uint_eq(seen, changes.count);
	ck_assert_uint_ge(changes.count, changed);
	follow = 0;
	for (uint64_t i = 0; i < ELEMENTS; i++) {
		if (base[i] == next[i])
			continue;
		largest_gap = i - follow > largest_gap ? i - follow : largest_gap;
		follow = i + 1;
	}
	ck_assert_uint_eq(changes.largest_gap, largest_gap);
	ck_assert_uint_gt(largest_gap, 65535);
	tensor_changes_release(&changes);
	xxh3_stream_free(hashes.base);
	xxh3_stream_free(hashes.next);
	free(base);
	free(next);
	free(scratch);
}
END_TEST

Suite *test_tensor_changes_suite(void)
{
	Suite *const suite = suite_create("tensor_changes");
	TCase *const tcase = tcase_create("tensor_changes");
	tcase_add_loop_test(tcase, both_passes_agree_whatever_is_kept, 0, 3);
	suite_add_tcase(suite, tcase);
	return suite;
}
