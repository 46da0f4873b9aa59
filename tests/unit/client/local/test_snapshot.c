#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/snapshot.h"

static char *folder;

static void set_up(void)
{
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static char *put(const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_publish(file_system(), path, bytes, 0600, &err), 0);
	return path;
}

/* One BF16 tensor of two elements. */
static char *put_shard(const char *name, const char *values)
{
	static const char HEADER[] =
		"{\"w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}      ";
	struct buffer bytes;
	buffer_init(&bytes, 1024);
	const uint8_t length[8] = {sizeof HEADER - 1};
	buffer_add(&bytes, length, sizeof length);
	buffer_add_text(&bytes, HEADER);
	buffer_add(&bytes, values, 4);
	char *const path = put(name, buffer_span(&bytes));
	buffer_release(&bytes);
	return path;
}

START_TEST(a_file_becomes_a_folder_of_one)
{
	struct snapshot snapshot;
	struct error err = {0};
	char *const from = put_shard("run-7-final.safetensors", "abcd");
	char *const to = folder_files_join(folder, "copy");
	ck_assert_msg(snapshot_copy(file_system(), from, NULL, to, &err) == 0, "%s", err.text);
	ck_assert_msg(snapshot_open(&snapshot, to, NULL, 1, NULL, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(snapshot.file_count, 1);
	ck_assert(span_equal_text(snapshot.files[0].path, "model.safetensors"));
	ck_assert_uint_eq(snapshot.tensor_count, 1);
	ck_assert_uint_eq(snapshot.bytes, snapshot.files[0].size);
	snapshot_close(&snapshot);
	snapshot_close(&snapshot);
	free(to);
	free(from);
}
END_TEST

START_TEST(content_covers_files_that_hold_no_tensors)
{
	struct snapshot before;
	struct snapshot after;
	struct error err = {0};
	char *const shard = put_shard("m/model.safetensors", "abcd");
	free(put("m/sub/config.json", span_text("{}")));
	char *const from = folder_files_join(folder, "m");
	char *const one = folder_files_join(folder, "one");
	char *const two = folder_files_join(folder, "two");
	ck_assert_int_eq(snapshot_copy(file_system(), from, NULL, one, &err), 0);
	free(put("m/sub/config.json", span_text("{ }")));
	ck_assert_int_eq(snapshot_copy(file_system(), from, NULL, two, &err), 0);
	ck_assert_int_eq(snapshot_open(&before, one, NULL, 1, NULL, &err), 0);
	ck_assert_int_eq(snapshot_open(&after, two, NULL, 1, NULL, &err), 0);
	ck_assert_uint_eq(before.file_count, 2);
	ck_assert(digest128_equal(&before.digest, &after.digest));
	ck_assert(!digest128_equal(&before.content, &after.content));
	snapshot_close(&before);
	snapshot_close(&after);
	free(two);
	free(one);
	free(from);
	free(shard);
}
END_TEST

START_TEST(content_does_not_depend_on_the_order)
{
	struct step_file files[2] = {
		{.path = span_text("a"), .size = 1}, {.path = span_text("b"), .size = 2}};
	const struct step_file turned[2] = {files[1], files[0]};
	const struct digest128 content = snapshot_content(files, 2);
	const struct digest128 same = snapshot_content(turned, 2);
	ck_assert(digest128_equal(&content, &same));
	files[0].digest.bytes[0] = 1;
	const struct digest128 other = snapshot_content(files, 2);
	ck_assert(!digest128_equal(&content, &other));
}
END_TEST

START_TEST(what_is_no_checkpoint_is_not_copied)
{
	struct error err = {0};
	char *const from = put("x.safetensors", span_text("nonsense"));
	char *const to = folder_files_join(folder, "copy");
	ck_assert_int_eq(snapshot_copy(file_system(), from, NULL, to, &err), -1);
	ck_assert(!file_exists(to));
	free(to);
	free(from);
}
END_TEST

static void put_small_files(unsigned first, unsigned end)
{
	struct error err = {0};
	for (unsigned i = first; i < end; i++) {
		char name[32];
		snprintf(name, sizeof name, "m/%04u.txt", i);
		char *const path = folder_files_join(folder, name);
		ck_assert_int_eq(file_place(file_system(), path, span_text("x"), 0600, &err), 0);
		free(path);
	}
}

START_TEST(a_step_holds_so_many_files_and_no_more)
{
	struct snapshot snapshot;
	struct error err = {0};
	free(put_shard("m/model.safetensors", "abcd"));
	put_small_files(1, STEP_OBJECTS_MAX);
	char *const path = folder_files_join(folder, "m");
	ck_assert_msg(snapshot_open(&snapshot, path, NULL, 1, NULL, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(snapshot.file_count, STEP_OBJECTS_MAX);
	snapshot_close(&snapshot);
	put_small_files(STEP_OBJECTS_MAX, STEP_OBJECTS_MAX + 1);
	ck_assert_int_eq(snapshot_open(&snapshot, path, NULL, 1, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	free(path);
}
END_TEST

Suite *test_snapshot_suite(void);
Suite *test_snapshot_suite(void)
{
	Suite *const suite = suite_create("snapshot");
	TCase *const tests = tcase_create("snapshot");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_file_becomes_a_folder_of_one);
	tcase_add_test(tests, content_covers_files_that_hold_no_tensors);
	tcase_add_test(tests, content_does_not_depend_on_the_order);
	tcase_add_test(tests, what_is_no_checkpoint_is_not_copied);
	tcase_add_test(tests, a_step_holds_so_many_files_and_no_more);
	suite_add_tcase(suite, tests);
	return suite;
}
