/* The files that each of many ranks publishes: together the whole checkpoint, each file once. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/publish/rank_share.h"

static const char INDEX[] = "{\"weight_map\":{\"1\":\"a.safetensors\",\"2\":\"b.safetensors\","
			    "\"3\":\"c.safetensors\",\"4\":\"d.safetensors\"}}";

static char *scratch;
static const struct checkpoint_choice *chosen;

static void set_up(void)
{
	scratch = unit_scratch_make();
	chosen = NULL;
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

/* Puts files into the checkpoint; a space separates the names. */
static void put_all(const char *names)
{
	struct span rest = span_text(names);
	struct span name;
	struct error err = {0};
	while (rest.len > 0 && span_split(&rest, ' ', &name)) {
		struct buffer path;
		buffer_init(&path, 4096);
		buffer_format(
			&path, "%s/trained/%.*s", scratch, (int)name.len, (const char *)name.data);
		const bool is_index = span_equal_text(name, RANK_SHARE_INDEX_NAME);
		ck_assert_int_eq(
			file_make_parent(file_system(), buffer_text(&path), 0755, &err), 0);
		ck_assert_int_eq(file_place(file_system(), buffer_text(&path),
					 is_index ? span_text(INDEX) : name, 0600, &err),
			0);
		buffer_release(&path);
	}
}

static int copy(uint64_t rank, uint64_t ranks, struct error *err)
{
	char *const from = folder_files_join(scratch, "trained");
	char *const to = folder_files_join(scratch, "copy");
	ck_assert_int_eq(file_remove_tree(file_system(), to, err), 0);
	const struct rank_share_params params = {.files = file_system(),
		.checkpoint = from,
		.rank = rank,
		.ranks = ranks,
		.choice = chosen,
		.to = to};
	const int result = rank_share_copy(&params, err);
	free(to);
	free(from);
	return result;
}

static void expect_size(uint64_t rank, uint64_t ranks, const struct folder_files *files)
{
	struct error err = {0};
	uint64_t size;
	uint64_t wanted = 0;
	char *const from = folder_files_join(scratch, "trained");
	const struct rank_share_params params = {
		.checkpoint = from, .rank = rank, .ranks = ranks, .choice = chosen};
	for (size_t i = 0; i < files->count; i++)
		wanted += files->files[i].size;
	ck_assert_msg(rank_share_size(&params, &size, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(size, wanted);
	free(from);
}

static void expect_share(uint64_t rank, uint64_t ranks, const char *names)
{
	struct error err = {0};
	struct folder_files found;
	struct buffer list;
	ck_assert_msg(copy(rank, ranks, &err) == 0, "%s", err.text);
	char *const folder = folder_files_join(scratch, "copy");
	ck_assert_int_eq(folder_files_read(folder, &found, &err), 0);
	buffer_init(&list, 4096);
	for (size_t i = 0; i < found.count; i++)
		buffer_format(&list, i == 0 ? "%s" : " %s", found.files[i].name);
	ck_assert_str_eq(buffer_text(&list), names);
	expect_size(rank, ranks, &found);
	buffer_release(&list);
	folder_files_release(&found);
	free(folder);
}

START_TEST(ranks_that_share_a_folder_take_turns)
{
	put_all("a.safetensors b.safetensors c.safetensors d.safetensors config.json .cache sub/.x"
		" sub/e.safetensors " RANK_SHARE_INDEX_NAME);
	expect_share(0, 2,
		RANK_SHARE_INDEX " a.safetensors c.safetensors config.json"
				 " sub/e.safetensors");
	expect_share(1, 2, "b.safetensors d.safetensors");
	expect_share(3, 4, "d.safetensors");
}
END_TEST

START_TEST(ranks_with_their_own_shards_take_them_all)
{
	put_all("b.safetensors c.safetensors config.json " RANK_SHARE_INDEX_NAME);
	expect_share(1, 2, "b.safetensors c.safetensors");
	expect_share(0, 2, RANK_SHARE_INDEX " b.safetensors c.safetensors config.json");
}
END_TEST

START_TEST(without_an_index_every_shard_is_the_ranks_own)
{
	put_all("a.safetensors b.safetensors config.json");
	expect_share(1, 2, "a.safetensors b.safetensors");
}
END_TEST

/* Whether the index finds all of its shards in the folder or only this rank's. */
START_TEST(shards_of_an_older_layout_are_not_published)
{
	put_all("a-old.safetensors b.safetensors z-old.safetensors " RANK_SHARE_INDEX_NAME);
	expect_share(1, 2, "b.safetensors");
	put_all("a.safetensors c.safetensors d.safetensors");
	expect_share(0, 2, RANK_SHARE_INDEX " a.safetensors c.safetensors");
	expect_share(1, 2, "b.safetensors d.safetensors");
}
END_TEST

static bool wants_any(void *chooser, const char *path, uint64_t size)
{
	(void)chooser;
	(void)path;
	(void)size;
	return true;
}

static bool wants_none(void *chooser, const char *path, uint64_t size)
{
	(void)chooser;
	(void)path;
	(void)size;
	return false;
}

/* A file that the copy of rank 0 would turn into a shard is refused by every rank, not dropped. */
START_TEST(what_the_index_does_not_name_is_refused_if_it_is_wanted)
{
	static const struct checkpoint_choice all = {.wants = wants_any, .wants_other = wants_any};
	static const struct checkpoint_choice shards = {
		.wants = wants_any, .wants_other = wants_none};
	put_all("a.safetensors b.safetensors c.safetensors d.safetensors sub/e.safetensors " RANK_SHARE_INDEX_NAME);
	chosen = &all;
	expect_share(0, 2, RANK_SHARE_INDEX " a.safetensors c.safetensors sub/e.safetensors");
	put_all("stray.safetensors");
	for (uint64_t rank = 0; rank < 2; rank++) {
		struct error err = {0};
		ck_assert_int_eq(copy(rank, 2, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
		ck_assert_ptr_ne(strstr(err.text, "stray.safetensors is not in the index"), NULL);
	}
	chosen = &shards;
	expect_share(0, 2, RANK_SHARE_INDEX " a.safetensors c.safetensors");
	expect_share(1, 2, "b.safetensors d.safetensors");
}
END_TEST

START_TEST(an_index_of_shards_in_sub_folders_is_refused)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, "trained/" RANK_SHARE_INDEX_NAME);
	put_all("a.safetensors sub/b.safetensors");
	ck_assert_int_eq(
		file_place(file_system(), path,
			span_text(
				"{\"weight_map\":{\"1\":\"a.safetensors\",\"2\":\"sub/b.safetensors\"}}"),
			0600, &err),
		0);
	ck_assert_int_eq(copy(1, 2, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_ptr_ne(strstr(err.text, "names the shard sub/b.safetensors"), NULL);
	free(path);
}
END_TEST

/* Every rank is refused at once: ranks that have a shard would wait for the others in vain. */
START_TEST(more_ranks_than_shards_are_told_all)
{
	put_all("a.safetensors b.safetensors c.safetensors d.safetensors " RANK_SHARE_INDEX_NAME);
	for (uint64_t rank = 0; rank < 5; rank++) {
		struct error err = {0};
		ck_assert_int_eq(copy(rank, 5, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
		ck_assert_ptr_ne(strstr(err.text, "there are 4 shards for 5 ranks"), NULL);
	}
}
END_TEST

/* The real table, but the trainer writes into its first shard when the copy's folder is made. */
static int make_folder_and_write(const struct file_ops *ops, const char *path, mode_t mode)
{
	struct error err = {0};
	char *const shard = folder_files_join(scratch, "trained/a.safetensors");
	(void)ops;
	ck_assert_int_eq(file_place(file_system(), shard, span_text("others"), 0600, &err), 0);
	free(shard);
	return file_system()->mkdir(file_system(), path, mode);
}

START_TEST(shards_that_change_meanwhile_are_no_share)
{
	struct error err = {0};
	struct file_ops writing = *file_system();
	char *const from = folder_files_join(scratch, "trained");
	char *const to = folder_files_join(scratch, "copy");
	writing.mkdir = make_folder_and_write;
	put_all("a.safetensors b.safetensors c.safetensors d.safetensors " RANK_SHARE_INDEX_NAME);
	const struct rank_share_params params = {
		.files = &writing, .checkpoint = from, .ranks = 2, .to = to};
	ck_assert_int_eq(rank_share_copy(&params, &err), -1);
	ck_assert_msg(err.kind == ERROR_INVALID &&
			strstr(err.text, "changed while it was being published") != NULL,
		"%s", err.text);
	free(to);
	free(from);
}
END_TEST

START_TEST(a_rank_without_a_shard_is_told)
{
	struct error err = {0};
	put_all("a.safetensors b.safetensors c.safetensors d.safetensors " RANK_SHARE_INDEX_NAME);
	ck_assert_int_eq(copy(4, 5, &err), -1);
	ck_assert_msg(err.kind == ERROR_NOT_FOUND, "%s", err.text);
}
END_TEST

Suite *test_rank_share_suite(void);
Suite *test_rank_share_suite(void)
{
	Suite *const suite = suite_create("rank_share");
	TCase *const tests = tcase_create("rank_share");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, ranks_that_share_a_folder_take_turns);
	tcase_add_test(tests, ranks_with_their_own_shards_take_them_all);
	tcase_add_test(tests, without_an_index_every_shard_is_the_ranks_own);
	tcase_add_test(tests, shards_of_an_older_layout_are_not_published);
	tcase_add_test(tests, a_rank_without_a_shard_is_told);
	tcase_add_test(tests, what_the_index_does_not_name_is_refused_if_it_is_wanted);
	tcase_add_test(tests, an_index_of_shards_in_sub_folders_is_refused);
	tcase_add_test(tests, more_ranks_than_shards_are_told_all);
	tcase_add_test(tests, shards_that_change_meanwhile_are_no_share);
	suite_add_tcase(suite, tests);
	return suite;
}
