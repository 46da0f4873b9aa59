#include "weights/model/memory_source.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/pair_fixture.h"

Suite *test_memory_source_suite(void);

enum { TENSORS = 4 };

static struct pair_fixture pair;
static struct checkpoint *checkpoint;
static uint8_t *copies[TENSORS];
static const uint8_t *tensors[TENSORS];

/* The copies begin at odd addresses. */
static void setup(void)
{
	pair_fixture_setup(&pair, 1, false);
	checkpoint = pair_fixture_open(&pair, 0);
	ck_assert_uint_eq(schema_count(checkpoint_schema(checkpoint)), TENSORS);
	for (size_t i = 0; i < TENSORS; i++) {
		const struct span bytes = checkpoint_tensor(checkpoint, i);
		copies[i] = memory_new(bytes.len + 1);
		memcpy(copies[i] + 1, bytes.data, bytes.len);
		tensors[i] = copies[i] + 1;
	}
}

static void teardown(void)
{
	for (size_t i = 0; i < TENSORS; i++)
		free(copies[i]);
	checkpoint_close(checkpoint);
	pair_fixture_teardown(&pair);
}

START_TEST(digests_are_those_of_the_checkpoint)
{
	struct error err = {0};
	struct digest128 ours[TENSORS];
	struct digest128 theirs[TENSORS];
	struct tensor_source *const memory =
		memory_source_new(checkpoint_schema(checkpoint), tensors);
	struct tensor_source *const mapped = checkpoint_source_new(checkpoint);
	ck_assert_int_eq(tensor_source_digests(memory, (unsigned)_i, ours, &err), 0);
	ck_assert_int_eq(tensor_source_digests(mapped, 1, theirs, &err), 0);
	ck_assert_mem_eq(ours, theirs, sizeof(ours));
	tensor_source_free(memory);
	tensor_source_free(mapped);
}
END_TEST

START_TEST(a_read_begins_at_any_block_and_sees_changes)
{
	struct error err = {0};
	struct span block;
	struct tensor_source *const source =
		memory_source_new(checkpoint_schema(checkpoint), tensors);
	const size_t large = (size_t)schema_find(source->schema, span_text("large"));
	const uint64_t bytes = tensor_source_block_bytes(source, large);
	struct tensor_cursor *cursor = NULL;
	ck_assert(tensor_source_splits(source, large));
	for (uint64_t i = PAIR_LARGE_BLOCKS; i-- > 0;) {
		ck_assert_int_eq(tensor_source_move(source, &cursor, large, i, &err), 0);
		ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 1);
		ck_assert_ptr_eq(block.data, tensors[large] + i * bytes);
	}
	copies[large][1 + bytes] ^= 1;
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 1);
	ck_assert_uint_eq(block.data[0], checkpoint_tensor(checkpoint, large).data[bytes] ^ 1);
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 1);
	ck_assert_uint_eq(block.len, checkpoint_tensor(checkpoint, large).len - 2 * bytes);
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 0);
	tensor_cursor_close(cursor);
	tensor_source_free(source);
}
END_TEST

START_TEST(empty_and_scalar_tensors_are_read)
{
	static const uint64_t none[] = {3, 0};
	static const uint8_t scalar[] = {1, 2, 3, 4};
	static const uint8_t *const data[] = {NULL, scalar};
	const struct schema_tensor list[] = {
		{span_text("none"), DTYPE_BF16, 2, none, 0},
		{span_text("scalar"), DTYPE_F32, 0, NULL, 4},
	};
	struct error err = {0};
	struct span block;
	struct schema *const schema = schema_of_tensors(list, 2, &err);
	struct tensor_source *const source = memory_source_new(schema, data);
	struct tensor_cursor *cursor = tensor_source_open(source, 0, &err);
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 0);
	ck_assert_int_eq(tensor_source_move(source, &cursor, 1, 0, &err), 0);
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 1);
	ck_assert(span_equal(block, span_of(scalar, sizeof(scalar))));
	ck_assert_int_eq(tensor_cursor_next(cursor, &block, &err), 0);
	tensor_cursor_close(cursor);
	tensor_source_free(source);
	schema_free(schema);
}
END_TEST

Suite *test_memory_source_suite(void)
{
	Suite *const suite = suite_create("memory_source");
	TCase *const tcase = tcase_create("memory_source");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, digests_are_those_of_the_checkpoint, 1, 4);
	tcase_add_test(tcase, a_read_begins_at_any_block_and_sees_changes);
	tcase_add_test(tcase, empty_and_scalar_tensors_are_read);
	suite_add_tcase(suite, tcase);
	return suite;
}
