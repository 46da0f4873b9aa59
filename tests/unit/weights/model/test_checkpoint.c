#include "weights/model/checkpoint.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_checkpoint_suite(void);

static const struct fixture_tensor tensor_a = {.name = "a", .dtype = DTYPE_BF16, .shape = {3, 5}};
static const struct fixture_tensor tensor_b = {.name = "b", .dtype = DTYPE_F32, .scalar = true};
static const struct fixture_tensor tensor_c = {.name = "c", .dtype = DTYPE_U8, .empty = true};

static char *scratch;

static void setup(void)
{
	scratch = unit_scratch_make();
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
}

static void write_shard(const char *name, const struct fixture_tensor *tensors, size_t count)
{
	char *const path = fixture_path(scratch, name);
	fixture_write_tensors(path, tensors, count, true);
	free(path);
}

static void write_text(const char *name, const char *text)
{
	char *const path = fixture_path(scratch, name);
	fixture_write_text(path, text);
	free(path);
}

static struct checkpoint *open_good(const char *path)
{
	struct error err = {0};
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	return checkpoint;
}

static void expect_refusal(const char *path, enum error_kind kind, const char *message)
{
	struct error err = {0};
	ck_assert_ptr_null(checkpoint_open(path, &err));
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s", err.text);
}

static void expect_files(
	const struct checkpoint *checkpoint, const char *const *names, size_t count)
{
	ck_assert_uint_eq(checkpoint_file_count(checkpoint), count);
	for (size_t i = 0; i < count; i++)
		ck_assert_str_eq(checkpoint_file(checkpoint, i)->path, names[i]);
}

START_TEST(a_single_file)
{
	const struct fixture_tensor tensors[] = {tensor_a, tensor_b, tensor_c};
	static const char *const names[] = {"model.safetensors"};
	write_shard("step.safetensors", tensors, 3);
	char *const path = fixture_path(scratch, "step.safetensors");
	struct checkpoint *const checkpoint = open_good(path);
	struct buffer bytes = fixture_read(path);
	ck_assert(!checkpoint_is_folder(checkpoint));
	expect_files(checkpoint, names, 1);
	const struct checkpoint_file *const file = checkpoint_file(checkpoint, 0);
	ck_assert_str_eq(file->full_path, path);
	ck_assert_uint_eq(file->size, bytes.len);
	ck_assert_uint_eq(checkpoint_bytes(checkpoint), bytes.len);
	ck_assert(span_equal(file->bytes, buffer_span(&bytes)));
	ck_assert_uint_eq(file->header.len + file->data.len, bytes.len);
	ck_assert_uint_eq(file->data.len, 34);
	ck_assert_uint_eq(schema_count(checkpoint_schema(checkpoint)), 3);
	/* F32 comes before BF16 in the file; the schema is sorted by name. */
	ck_assert(span_equal(
		checkpoint_tensor(checkpoint, 0), span_of(bytes.data + bytes.len - 30, 30)));
	ck_assert(span_equal(
		checkpoint_tensor(checkpoint, 1), span_of(bytes.data + bytes.len - 34, 4)));
	ck_assert_uint_eq(checkpoint_tensor(checkpoint, 2).len, 0);
	struct digest128 digest;
	ck_assert_int_eq(checkpoint_file_digests(checkpoint, 1, NULL, &digest, NULL), 0);
	const struct digest128 expected = xxh3_128(buffer_span(&bytes));
	ck_assert(digest128_equal(&digest, &expected));
	checkpoint_close(checkpoint);
	buffer_release(&bytes);
	free(path);
}
END_TEST

START_TEST(a_folder_without_an_index)
{
	static const char *const names[] = {"b.json", "model-1.safetensors", "model-2.safetensors",
		"sub/deep/x.safetensors", "sub/y"};
	write_shard("model-1.safetensors", &tensor_a, 1);
	write_shard("model-2.safetensors", &tensor_b, 1);
	write_text("b.json", "{}");
	write_text("sub/y", "");
	write_text("sub/deep/x.safetensors", "not looked into");
	write_text(".hidden", "x");
	write_text("sub/.cache/z", "x");
	struct checkpoint *const checkpoint = open_good(scratch);
	ck_assert(checkpoint_is_folder(checkpoint));
	expect_files(checkpoint, names, 5);
	ck_assert_ptr_nonnull(checkpoint_file(checkpoint, 1)->shard);
	ck_assert_ptr_null(checkpoint_file(checkpoint, 0)->shard);
	ck_assert_ptr_null(checkpoint_file(checkpoint, 3)->shard);
	ck_assert_uint_eq(checkpoint_file(checkpoint, 4)->size, 0);
	ck_assert_uint_eq(schema_count(checkpoint_schema(checkpoint)), 2);
	checkpoint_close(checkpoint);
}
END_TEST

static bool wants_all(void *chooser, const char *path, uint64_t size)
{
	(void)chooser;
	(void)path;
	(void)size;
	return true;
}

/* Is asked about files that look like shards and are not, with their sizes. */
static bool wants_no_consolidated(void *chooser, const char *path, uint64_t size)
{
	const bool is_stale = strcmp(path, "model-00009-of-00009.safetensors") == 0;
	(void)chooser;
	ck_assert(is_stale || strcmp(path, "consolidated.safetensors") == 0);
	ck_assert(is_stale ? size == 5 : size > 8);
	return is_stale;
}

START_TEST(the_index_says_what_is_a_shard)
{
	static const char *const names[] = {"consolidated.safetensors", "model-00009-of-00009.safetensors",
		"model-1.safetensors", "model.safetensors.index.json", "part/model-2.safetensors"};
	static const char *const chosen[] = {"model-00009-of-00009.safetensors",
		"model-1.safetensors", "model.safetensors.index.json", "part/model-2.safetensors"};
	write_shard("model-1.safetensors", &tensor_a, 1);
	write_shard("part/model-2.safetensors", &tensor_b, 1);
	/* left from an older layout, broken, and never parsed */
	write_text("model-00009-of-00009.safetensors", "stale");
	write_shard("consolidated.safetensors", &tensor_a, 1);
	write_text("model.safetensors.index.json",
		"{\"metadata\":{\"total_size\":34},\"weight_map\":{\"a\":\"model-1.safetensors\",\"b\":\"part/model-2.safetensors\"}}");
	struct checkpoint *checkpoint = open_good(scratch);
	expect_files(checkpoint, names, 5);
	ck_assert_ptr_null(checkpoint_file(checkpoint, 0)->shard);
	ck_assert_ptr_null(checkpoint_file(checkpoint, 1)->shard);
	ck_assert(span_equal_text(checkpoint_file(checkpoint, 1)->bytes, "stale"));
	ck_assert_ptr_nonnull(checkpoint_file(checkpoint, 4)->shard);
	ck_assert_uint_eq(schema_count(checkpoint_schema(checkpoint)), 2);
	checkpoint_close(checkpoint);
	const struct checkpoint_choice choice = {
		.wants = wants_all, .wants_other = wants_no_consolidated};
	checkpoint = checkpoint_open_chosen(scratch, &choice, NULL);
	ck_assert_ptr_nonnull(checkpoint);
	expect_files(checkpoint, chosen, 4);
	checkpoint_close(checkpoint);
}
END_TEST

START_TEST(another_index_serves_when_it_is_the_only_one)
{
	static const char *const names[] = {
		"diffusion.safetensors.index.json", "x.safetensors", "y.safetensors"};
	write_shard("x.safetensors", &tensor_a, 1);
	write_shard("y.safetensors", &tensor_a, 1);
	write_text(
		"diffusion.safetensors.index.json", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
	struct checkpoint *const checkpoint = open_good(scratch);
	expect_files(checkpoint, names, 3);
	ck_assert_ptr_null(checkpoint_file(checkpoint, 2)->shard);
	checkpoint_close(checkpoint);
	write_text("other.safetensors.index.json", "{\"weight_map\":{\"a\":\"y.safetensors\"}}");
	expect_refusal(scratch, ERROR_INVALID, "both indexes");
}
END_TEST

static const struct {
	const char *index;
	const char *message;
} bad_indexes[] = {
	{"{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"gone.safetensors\"}}",
		"which is missing"},
	{"{\"weight_map\":{\"a\":\"x.safetensors\",\"zz\":\"x.safetensors\"}}", "which lacks it"},
	{"{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "outside of its folder"},
	{"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "outside of its folder"},
	{"{\"weight_map\":{\"a\":\".x.safetensors\"}}", "outside of its folder"},
	{"{\"weight_map\":{\"a\":\"\"}}", "outside of its folder"},
	{"{\"weight_map\":{\"a\":\"x.safetensors\",\"a\":\"y.safetensors\"}}", "twice"},
	{"{\"weight_map\":{\"a\":1}}", "malformed"},
	{"{\"weight_map\":{},\"weight_map\":{}}", "twice"},
	{"{\"metadata\":{}}", "weight_map is missing"},
	{"{\"weight_map\":{}}", "no .safetensors"},
	{"{\"weight_map\":{\"a\":\"x.safetensors\"}} x", "behind the index"},
	{"", "malformed"},
	{"{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"y.safetensors\"}}",
		"'a' is given twice"},
	{"{\"weight_map\":{\"a\":\"config.json\"}}", "safetensors"},
};

START_TEST(bad_indexes_are_refused)
{
	const struct fixture_tensor both[] = {tensor_a, tensor_b};
	write_shard("x.safetensors", &tensor_a, 1);
	write_shard("y.safetensors", both, 2);
	write_text("config.json", "{\"hidden\":1}");
	write_text("model.safetensors.index.json", bad_indexes[_i].index);
	expect_refusal(scratch, ERROR_INVALID, bad_indexes[_i].message);
}
END_TEST

START_TEST(a_tensor_in_two_shards_is_refused)
{
	write_shard("x.safetensors", &tensor_a, 1);
	write_shard("y.safetensors", &tensor_a, 1);
	expect_refusal(scratch, ERROR_INVALID, "tensor 'a' is given twice");
}
END_TEST

START_TEST(what_is_no_checkpoint_is_refused)
{
	char *const path = fixture_path(scratch, "gone");
	expect_refusal(path, ERROR_NOT_FOUND, "gone");
	free(path);
	expect_refusal(scratch, ERROR_INVALID, "holds no .safetensors");
	write_text("config.json", "{}");
	expect_refusal(scratch, ERROR_INVALID, "holds no .safetensors");
	write_text("model.safetensors", "");
	expect_refusal(scratch, ERROR_INVALID, "at least 8 bytes");
	char *const model = fixture_path(scratch, "model.safetensors");
	fixture_write_raw(model, "{}", 1);
	expect_refusal(model, ERROR_INVALID, "has 11 bytes, and its header and tensors cover 10");
	free(model);
}
END_TEST

static bool wants_no_broken(void *chooser, const char *path, uint64_t size)
{
	(void)chooser;
	ck_assert(strcmp(path, "broken") != 0 || size == 0);
	return strcmp(path, "broken") != 0;
}

START_TEST(links_to_files_are_followed_and_to_folders_are_not)
{
	static const char *const names[] = {"model.safetensors"};
	char *const blobs = unit_scratch_make();
	char *const blob = fixture_path(blobs, "blob");
	char *const link = fixture_path(scratch, "model.safetensors");
	char *const loop = fixture_path(scratch, "loop");
	char *const broken = fixture_path(scratch, "broken");
	fixture_write_tensors(blob, &tensor_a, 1, false);
	ck_assert_int_eq(symlink(blob, link), 0);
	ck_assert_int_eq(symlink(scratch, loop), 0);
	struct checkpoint *const checkpoint = open_good(scratch);
	expect_files(checkpoint, names, 1);
	checkpoint_close(checkpoint);
	ck_assert_int_eq(symlink("nowhere", broken), 0);
	expect_refusal(scratch, ERROR_NOT_FOUND, "broken' is a link that leads nowhere");
	const struct checkpoint_choice choice = {.wants = wants_no_broken};
	struct checkpoint *const chosen = checkpoint_open_chosen(scratch, &choice, NULL);
	ck_assert_ptr_nonnull(chosen);
	expect_files(chosen, names, 1);
	checkpoint_close(chosen);
	free(blob);
	free(link);
	free(loop);
	free(broken);
	unit_scratch_remove(blobs);
}
END_TEST

START_TEST(digests_do_not_depend_on_threads_or_shards)
{
	const struct fixture_tensor tensors[] = {tensor_a, tensor_b, tensor_c};
	struct digest128 wholes[3];
	for (unsigned round = 0; round < 3; round++) {
		char *const folder = unit_scratch_make();
		char *const one = fixture_path(folder, "1.safetensors");
		char *const two = fixture_path(folder, "2.safetensors");
		fixture_write_tensors(one, tensors, round == 0 ? 3 : 1, round == 1);
		if (round > 0)
			fixture_write_tensors(two, tensors + 1, 2, false);
		struct checkpoint *const checkpoint = open_good(folder);
		struct digest128 digests[3];
		ck_assert_int_eq(
			checkpoint_tensor_digests(checkpoint, round * 3, NULL, digests, NULL), 0);
		for (size_t i = 0; i < 3; i++) {
			const struct digest128 expected =
				xxh3_128(checkpoint_tensor(checkpoint, i));
			ck_assert(digest128_equal(&digests[i], &expected));
		}
		wholes[round] = schema_checkpoint_digest(checkpoint_schema(checkpoint), digests);
		ck_assert(digest128_equal(&wholes[0], &wholes[round]));
		checkpoint_close(checkpoint);
		free(one);
		free(two);
		unit_scratch_remove(folder);
	}
}
END_TEST

Suite *test_checkpoint_suite(void)
{
	Suite *const suite = suite_create("checkpoint");
	TCase *const tcase = tcase_create("checkpoint");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_single_file);
	tcase_add_test(tcase, a_folder_without_an_index);
	tcase_add_test(tcase, the_index_says_what_is_a_shard);
	tcase_add_test(tcase, another_index_serves_when_it_is_the_only_one);
	tcase_add_loop_test(
		tcase, bad_indexes_are_refused, 0, sizeof(bad_indexes) / sizeof(bad_indexes[0]));
	tcase_add_test(tcase, a_tensor_in_two_shards_is_refused);
	tcase_add_test(tcase, what_is_no_checkpoint_is_refused);
	tcase_add_test(tcase, links_to_files_are_followed_and_to_folders_are_not);
	tcase_add_test(tcase, digests_do_not_depend_on_threads_or_shards);
	suite_add_tcase(suite, tcase);
	return suite;
}
