/* Tensors in memory are the same checkpoint as the file that has them: header, digests, order. */
#include "weights/model/memory_checkpoint.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_memory_checkpoint_suite(void);

enum { TENSORS = 4, PARALLEL = 2 };

static const uint8_t A[30] = {1, 2, 3, 4, 5};
static const uint8_t B[4] = {9, 8, 7, 6};
static const uint8_t D[7] = {70, 71, 72, 73, 74, 75, 76};
static const uint64_t SHAPE_A[] = {3, 5};
static const uint64_t SHAPE_C[] = {0};
static const uint64_t SHAPE_D[] = {7};
static char *scratch;

static void setup(void)
{
	scratch = unit_scratch_make();
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
}

/* In an order that is neither that of the names nor that of the data. */
static void fill(struct memory_tensor tensors[TENSORS])
{
	tensors[0] =
		(struct memory_tensor){span_text("d"), DTYPE_U8, SHAPE_D, 1, span_of(D, sizeof D)};
	tensors[1] = (struct memory_tensor){
		span_text("a"), DTYPE_BF16, SHAPE_A, 2, span_of(A, sizeof A)};
	tensors[2] = (struct memory_tensor){span_text("c"), DTYPE_F64, SHAPE_C, 1, {0}};
	tensors[3] =
		(struct memory_tensor){span_text("b"), DTYPE_F32, NULL, 0, span_of(B, sizeof B)};
}

static void write_same(void)
{
	const struct fixture_tensor tensors[TENSORS] = {
		{.name = "d", .dtype = DTYPE_U8, .shape = {7}, .data = D},
		{.name = "a", .dtype = DTYPE_BF16, .shape = {3, 5}, .data = A},
		{.name = "c", .dtype = DTYPE_F64, .empty = true},
		{.name = "b", .dtype = DTYPE_F32, .scalar = true, .data = B},
	};
	char *const shard = fixture_path(scratch, "m/model.safetensors");
	char *const config = fixture_path(scratch, "m/config.json");
	char *const token = fixture_path(scratch, "m/sub/tokens.txt");
	fixture_write_text(config, "{}");
	fixture_write_text(token, "a b");
	fixture_write_tensors(shard, tensors, TENSORS, true);
	free(token);
	free(config);
	free(shard);
}

static void expect_same_files(const struct checkpoint *ours, const struct checkpoint *file)
{
	struct error err = {0};
	struct digest128 digests[2][8];
	const size_t count = checkpoint_file_count(file);
	ck_assert_uint_eq(checkpoint_file_count(ours), count);
	ck_assert_int_eq(checkpoint_file_digests(ours, PARALLEL, NULL, digests[0], &err), 0);
	ck_assert_int_eq(checkpoint_file_digests(file, PARALLEL, NULL, digests[1], &err), 0);
	for (size_t i = 0; i < count; i++) {
		const struct checkpoint_file *const a = checkpoint_file(ours, i);
		const struct checkpoint_file *const b = checkpoint_file(file, i);
		ck_assert_str_eq(a->path, b->path);
		ck_assert_uint_eq(a->size, b->size);
		ck_assert(span_equal(a->header, b->header));
		ck_assert(digest128_equal(&digests[0][i], &digests[1][i]));
	}
}

static void expect_same_tensors(const struct checkpoint *ours, const struct checkpoint *file)
{
	struct error err = {0};
	struct digest128 digests[2][TENSORS];
	ck_assert_int_eq(schema_check(checkpoint_schema(file), checkpoint_schema(ours), &err), 0);
	ck_assert_int_eq(checkpoint_tensor_digests(ours, PARALLEL, NULL, digests[0], &err), 0);
	ck_assert_int_eq(checkpoint_tensor_digests(file, PARALLEL, NULL, digests[1], &err), 0);
	ck_assert_mem_eq(digests[0], digests[1], sizeof digests[0]);
	for (size_t i = 0; i < TENSORS; i++)
		ck_assert(span_equal(checkpoint_tensor(ours, i), checkpoint_tensor(file, i)));
}

START_TEST(it_is_the_checkpoint_that_the_file_is)
{
	struct error err = {0};
	struct memory_tensor tensors[TENSORS];
	const struct memory_file files[] = {
		{"sub/tokens.txt", span_text("a b")}, {"config.json", span_text("{}")}};
	const struct memory_parts parts = {tensors, TENSORS, files, 2, NULL};
	fill(tensors);
	write_same();
	char *const path = fixture_path(scratch, "m");
	struct checkpoint *const file = checkpoint_open(path, &err);
	ck_assert_msg(file != NULL, "%s", err.text);
	struct checkpoint *const ours = memory_checkpoint_open(&parts, &err);
	ck_assert_msg(ours != NULL, "%s", err.text);
	ck_assert(checkpoint_is_folder(ours));
	ck_assert_uint_eq(checkpoint_bytes(ours), checkpoint_bytes(file));
	expect_same_files(ours, file);
	expect_same_tensors(ours, file);
	checkpoint_close(ours);
	checkpoint_close(file);
	free(path);
}
END_TEST

START_TEST(tensors_are_not_copied)
{
	struct error err = {0};
	struct memory_tensor tensors[TENSORS];
	const struct memory_parts parts = {tensors, TENSORS, NULL, 0, NULL};
	fill(tensors);
	struct checkpoint *const ours = memory_checkpoint_open(&parts, &err);
	ck_assert_msg(ours != NULL, "%s", err.text);
	ck_assert_ptr_eq(checkpoint_tensor(ours, 0).data, A);
	ck_assert_ptr_eq(checkpoint_tensor(ours, 3).data, D);
	checkpoint_close(ours);
}
END_TEST

static void expect_refused(const struct memory_parts *parts, const char *said)
{
	struct error err = {0};
	ck_assert_ptr_eq(memory_checkpoint_open(parts, &err), NULL);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, said) != NULL, "%s", err.text);
}

START_TEST(wrong_tensors_are_named)
{
	struct memory_tensor tensors[TENSORS];
	const struct memory_parts parts = {tensors, TENSORS, NULL, 0, NULL};
	fill(tensors);
	tensors[1].data.len -= 2;
	expect_refused(
		&parts, "the tensor 'a' has 28 bytes; its dtype BF16 and its shape ask for 30");
	fill(tensors);
	tensors[2].name = span_text("d");
	expect_refused(&parts, "'d' is given twice");
	fill(tensors);
	tensors[1].shape = (const uint64_t[]){UINT64_MAX, 2};
	expect_refused(&parts, "'a'");
}
END_TEST

static const struct {
	const char *first;
	const char *second;
	const char *said;
} FILES[] = {
	{"a.json", "a.json", "'a.json' is given twice"},
	{"a", "a/b", "'a/b' would lie in 'a'"},
	{"a", "../b", "'../b' has a name"},
	{"a", ".hidden", "'.hidden' has a name"},
	{"a", "more.safetensors", "'more.safetensors' would hold"},
	{"a", "model.safetensors.index.json", "'model.safetensors.index.json' would hold"},
};

START_TEST(wrong_files_are_named)
{
	struct memory_tensor tensors[TENSORS];
	const struct memory_file files[] = {
		{FILES[_i].first, span_text("1")}, {FILES[_i].second, span_text("2")}};
	const struct memory_parts parts = {tensors, TENSORS, files, 2, NULL};
	fill(tensors);
	expect_refused(&parts, FILES[_i].said);
}
END_TEST

Suite *test_memory_checkpoint_suite(void)
{
	Suite *const suite = suite_create("memory_checkpoint");
	TCase *const tests = tcase_create("memory_checkpoint");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, it_is_the_checkpoint_that_the_file_is);
	tcase_add_test(tests, tensors_are_not_copied);
	tcase_add_test(tests, wrong_tensors_are_named);
	tcase_add_loop_test(tests, wrong_files_are_named, 0, sizeof FILES / sizeof FILES[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
