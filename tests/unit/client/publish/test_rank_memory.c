/* What a rank publishes from memory: its shard, its files, and the index that deltas need. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/publish/rank_share.h"
#include "weights/model/shard_index.h"

#define SHARD "model-00001-of-00002.safetensors"

static const char INDEX[] = "{\"metadata\":{},\"weight_map\":{\"others\":\"model-00002-of-00002."
			    "safetensors\",\"v\":\"" SHARD "\",\"w\":\"" SHARD "\"}}";
static const uint64_t shape[] = {4};
static const struct memory_tensor tensors[] = {
	{{(const uint8_t *)"w", 1}, DTYPE_U8, shape, 1, {(const uint8_t *)"abcd", 4}},
	{{(const uint8_t *)"v", 1}, DTYPE_U8, shape, 1, {(const uint8_t *)"efgh", 4}}};

static char *scratch;
static struct memory_file files[2];
static struct memory_parts parts;

static void set_up(void)
{
	scratch = unit_scratch_make();
	files[0] = (struct memory_file){"config.json", span_text("{}")};
	files[1] = (struct memory_file){RANK_SHARE_INDEX_NAME, span_text(INDEX)};
	parts = (struct memory_parts){tensors, 2, files, 2, NULL};
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

static void begin(struct rank_memory *memory, uint64_t rank, uint64_t ranks)
{
	const struct rank_order order = {.rank = rank, .ranks = ranks};
	struct error err = {0};
	ck_assert_msg(rank_memory_init(memory, &parts, &order, &err) == 0, "%s", err.text);
}

static void expect_refused(uint64_t ranks, const char *said)
{
	const struct rank_order order = {.rank = 0, .ranks = ranks};
	struct rank_memory memory;
	struct error err = {0};
	ck_assert_int_eq(rank_memory_init(&memory, &parts, &order, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, said) != NULL, "%s", err.text);
	rank_memory_release(&memory);
}

/* Every rank may pass the files, as in a program that all ranks run. */
START_TEST(rank_0_alone_has_the_files)
{
	struct rank_memory memory;
	begin(&memory, 0, 2);
	ck_assert_str_eq(memory.shard, SHARD);
	ck_assert_uint_eq(rank_memory_file_count(&memory), 2);
	ck_assert(span_equal_text(*rank_memory_file(&memory, "config.json"), "{}"));
	ck_assert(span_equal_text(*rank_memory_file(&memory, RANK_SHARE_INDEX), INDEX));
	rank_memory_release(&memory);
	begin(&memory, 1, 2);
	ck_assert_str_eq(memory.shard, "model-00002-of-00002.safetensors");
	ck_assert_uint_eq(rank_memory_file_count(&memory), 0);
	ck_assert_ptr_eq(rank_memory_file(&memory, "config.json"), NULL);
	rank_memory_release(&memory);
}
END_TEST

START_TEST(rank_0_needs_an_index_that_is_right)
{
	parts.file_count = 1;
	expect_refused(2, RANK_SHARE_INDEX_NAME);
	parts.file_count = 2;
	files[1].bytes = span_text("{\"weight_map\":{\"w\":\"" SHARD "\"}}");
	expect_refused(2, "the tensor v is in " SHARD);
	files[1].bytes =
		span_text("{\"weight_map\":{\"v\":\"x.safetensors\",\"w\":\"" SHARD "\"}}");
	expect_refused(2, "the tensor v is in " SHARD);
	files[1].bytes = span_text("{}");
	expect_refused(2, "");
	files[0].path = "../config.json";
	expect_refused(1, "../config.json");
}
END_TEST

START_TEST(a_single_rank_gets_its_index)
{
	struct rank_memory memory;
	struct error err = {0};
	parts.file_count = 1;
	begin(&memory, 0, 1);
	struct shard_index *const index = shard_index_parse(
		*rank_memory_file(&memory, RANK_SHARE_INDEX), RANK_SHARE_INDEX_NAME, &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert_uint_eq(shard_index_count(index), 2);
	ck_assert(span_equal_text(shard_index_file(index, 0), "model-00001-of-00001.safetensors"));
	shard_index_free(index);
	rank_memory_release(&memory);
}
END_TEST

static void write_copy(const struct rank_memory *memory, const char *folder)
{
	const struct rank_memory_copy copy = {
		.files = file_system(), .folder = folder, .threads = 1};
	struct error err = {0};
	ck_assert_msg(rank_memory_write(memory, &copy, &err) == 0, "%s", err.text);
}

/* The state folder remembers the one, and the next call may find the other. */
START_TEST(a_copy_has_the_mark_of_what_lies_in_memory)
{
	struct rank_memory memory;
	struct rank_share ours;
	struct rank_share copied;
	struct folder_files found;
	struct error err = {0};
	char *const folder = folder_files_join(scratch, "copy");
	begin(&memory, 0, 2);
	write_copy(&memory, folder);
	write_copy(&memory, folder); /* over what is there */
	ck_assert_int_eq(folder_files_read(folder, &found, &err), 0);
	ck_assert_uint_eq(found.count, 3);
	ck_assert_str_eq(found.files[0].name, RANK_SHARE_INDEX);
	ck_assert_int_eq(rank_share_open_memory(&ours, &memory, 1, NULL, &err), 0);
	ck_assert_msg(rank_share_open(&copied, folder, 1, NULL, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(ours.file_count, 3);
	ck_assert(digest128_equal(&ours.mark.digest, &copied.mark.digest));
	ck_assert(digest128_equal(&ours.mark.content, &copied.mark.content));
	rank_share_release(&copied);
	rank_share_release(&ours);
	rank_memory_release(&memory);
	folder_files_release(&found);
	free(folder);
}
END_TEST

Suite *test_rank_memory_suite(void);
Suite *test_rank_memory_suite(void)
{
	Suite *const suite = suite_create("rank_memory");
	TCase *const tests = tcase_create("rank_memory");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, rank_0_alone_has_the_files);
	tcase_add_test(tests, rank_0_needs_an_index_that_is_right);
	tcase_add_test(tests, a_single_rank_gets_its_index);
	tcase_add_test(tests, a_copy_has_the_mark_of_what_lies_in_memory);
	suite_add_tcase(suite, tests);
	return suite;
}
