#include "weights/model/tensor_pass.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/pair_fixture.h"
#include "weights/model/memory_source.h"

Suite *test_tensor_pass_suite(void);

static struct pair_fixture pair;
static struct checkpoint *checkpoints[2];
static struct tensor_source *sources[2];

static void setup(void)
{
	pair_fixture_setup(&pair, 2, false);
	for (unsigned i = 0; i < 2; i++) {
		checkpoints[i] = pair_fixture_open(&pair, i);
		sources[i] = checkpoint_source_new(checkpoints[i]);
	}
}

static void teardown(void)
{
	for (unsigned i = 0; i < 2; i++) {
		tensor_source_free(sources[i]);
		checkpoint_close(checkpoints[i]);
	}
	pair_fixture_teardown(&pair);
}

/* The blocks that a walk has seen: bytes of each tensor, and whether a block was misplaced. */
struct seen {
	_Atomic uint64_t bytes[4];
	_Atomic bool misplaced;
	size_t fail_tensor;
	uint64_t fail_from;
	bool fails;
};

static int look(void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	struct seen *const seen = state;
	(void)worker;
	const struct span wanted[2] = {checkpoint_tensor(checkpoints[0], block->tensor),
		checkpoint_tensor(checkpoints[1], block->tensor)};
	if (seen->fails && block->tensor == seen->fail_tensor && block->number >= seen->fail_from)
		return error_set(
			err, ERROR_NO_SPACE, "block %llu", (unsigned long long)block->number);
	seen->bytes[block->tensor] += block->next.len;
	if (!span_equal(block->base, span_slice(wanted[0], (size_t)block->at, block->base.len)) ||
		!span_equal(block->next, span_slice(wanted[1], (size_t)block->at, block->next.len)))
		seen->misplaced = true;
	return 0;
}

START_TEST(every_block_is_seen_once_and_hashed)
{
	static const unsigned threads[] = {1, 2, 5, 5};
	struct error err = {0};
	struct seen seen = {0};
	struct digest128 digests[2][4];
	const struct tensor_pass pass = {
		.base = sources[0],
		.next = sources[1],
		.threads = threads[_i],
		.keeps_tensors = _i == 3,
		.block = look,
		.state = &seen,
		.base_digests = digests[0],
		.next_digests = digests[1],
	};
	ck_assert_msg(tensor_pass_run(&pass, &err) == 0, "%s", err.text);
	ck_assert(!seen.misplaced);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(seen.bytes[i], checkpoint_tensor(checkpoints[0], i).len);
		for (unsigned side = 0; side < 2; side++) {
			const struct digest128 wanted =
				xxh3_128(checkpoint_tensor(checkpoints[side], i));
			ck_assert(digest128_equal(&digests[side][i], &wanted));
		}
	}
}
END_TEST

START_TEST(what_is_known_is_not_hashed_again)
{
	struct error err = {0};
	struct digest128 base[4];
	struct digest128 next[4] = {{{0}}};
	bool same[4] = {false, false, true, false};
	for (size_t i = 0; i < 4; i++)
		base[i] = (struct digest128){{(uint8_t)i, 7}};
	const struct tensor_pass pass = {.next = sources[1],
		.threads = 3,
		.same = same,
		.known_base = base,
		.next_digests = next};
	ck_assert_msg(tensor_pass_run(&pass, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < 4; i++) {
		const struct digest128 made = xxh3_128(checkpoint_tensor(checkpoints[1], i));
		ck_assert(digest128_equal(&next[i], same[i] ? &base[i] : &made));
	}
}
END_TEST

/* Other threads wait for their turn at the digest, behind blocks that never come. */
START_TEST(a_failure_ends_the_walk_with_the_first_block_that_failed)
{
	struct digest128 digests[4];
	for (uint64_t from = 0; from < PAIR_LARGE_BLOCKS; from++) {
		struct error err = {0};
		struct seen seen = {.fails = true, .fail_tensor = 1, .fail_from = from};
		const struct tensor_pass pass = {
			.base = sources[0],
			.next = sources[1],
			.threads = 5,
			.block = look,
			.state = &seen,
			.next_digests = digests,
		};
		ck_assert(span_equal_text(schema_tensor(sources[0]->schema, 1)->name, "large"));
		ck_assert_int_eq(tensor_pass_run(&pass, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
		ck_assert_int_eq(err.text[strlen(err.text) - 1], (int)('0' + from));
	}
}
END_TEST

START_TEST(cursors_begin_at_any_block)
{
	struct error err = {0};
	struct tensor_cursor *cursor = NULL;
	const struct span whole = checkpoint_tensor(checkpoints[1], 1);
	const uint64_t block_bytes = tensor_source_block_bytes(sources[1], 1);
	ck_assert_uint_eq(tensor_source_blocks(sources[1], 1), PAIR_LARGE_BLOCKS);
	for (uint64_t block = PAIR_LARGE_BLOCKS; block-- > 0;) {
		struct span out;
		ck_assert_int_eq(tensor_source_move(sources[1], &cursor, 1, block, &err), 0);
		ck_assert_int_eq(tensor_cursor_next(cursor, &out, &err), 1);
		ck_assert(span_equal(out,
			span_slice(whole, (size_t)(block * block_bytes), (size_t)block_bytes)));
		ck_assert_int_eq(tensor_cursor_next(cursor, &out, &err),
			block + 1 < PAIR_LARGE_BLOCKS ? 1 : 0);
	}
	tensor_cursor_close(cursor);
}
END_TEST

/* Makes the base's bytes those of `next`. */
static int overwrite(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	uint8_t *const *const tensors = state;
	(void)worker;
	(void)err;
	memcpy(tensors[block->tensor] + block->at, block->next.data, block->next.len);
	return 0;
}

START_TEST(a_base_may_be_overwritten_once_it_is_hashed)
{
	struct error err = {0};
	struct digest128 digests[2][4];
	uint8_t *tensors[4];
	for (size_t i = 0; i < 4; i++) {
		const struct span from = checkpoint_tensor(checkpoints[0], i);
		tensors[i] = memory_copy(from.data, from.len);
	}
	struct tensor_source *const base = memory_source_new(
		checkpoint_schema(checkpoints[0]), (const uint8_t *const *)tensors);
	const struct tensor_pass pass = {
		.base = base,
		.next = sources[1],
		.threads = 1 + 2 * (unsigned)_i,
		.block = overwrite,
		.hashes_first = true,
		.state = tensors,
		.base_digests = digests[0],
		.next_digests = digests[1],
	};
	ck_assert_msg(tensor_pass_run(&pass, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < 4; i++) {
		for (unsigned side = 0; side < 2; side++) {
			const struct digest128 digest =
				xxh3_128(checkpoint_tensor(checkpoints[side], i));
			ck_assert(digest128_equal(&digest, &digests[side][i]));
		}
		ck_assert_mem_eq(tensors[i], checkpoint_tensor(checkpoints[1], i).data,
			checkpoint_tensor(checkpoints[1], i).len);
		free(tensors[i]);
	}
	tensor_source_free(base);
}
END_TEST

Suite *test_tensor_pass_suite(void)
{
	Suite *const suite = suite_create("tensor_pass");
	TCase *const tcase = tcase_create("tensor_pass");
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_block_is_seen_once_and_hashed, 0, 4);
	tcase_add_test(tcase, what_is_known_is_not_hashed_again);
	tcase_add_test(tcase, a_failure_ends_the_walk_with_the_first_block_that_failed);
	tcase_add_test(tcase, cursors_begin_at_any_block);
	tcase_add_loop_test(tcase, a_base_may_be_overwritten_once_it_is_hashed, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}
