/* At the final path there is a whole result that was not there before, or nothing. */
#include "weights/model/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"

enum { LONG_BYTES = (8 << 20) + 12345 }; /* more than is written at once */

static char *scratch;
static char out[4096];
static struct file_faults faults;

static void set_up(void)
{
	scratch = unit_scratch_make();
	snprintf(out, sizeof(out), "%s/out", scratch);
	file_faults_init(&faults, 0, 0, EIO);
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

static struct staging *begin(bool is_folder)
{
	struct error err = {0};
	struct staging *const staging = staging_begin(&faults.ops, out, is_folder, &err);
	ck_assert_msg(staging != NULL, "%s", err.text);
	return staging;
}

static void put(struct staging *staging, const char *name, const char *text)
{
	struct error err = {0};
	ck_assert_msg(
		staging_put(staging, span_text(name), span_text(text), &err) == 0, "%s", err.text);
}

static bool holds(const char *name, const char *text)
{
	struct error err = {0};
	struct buffer bytes;
	char path[4200];
	snprintf(path, sizeof(path), "%s%s", out, name);
	buffer_init(&bytes, 100);
	const bool same =
		file_read_all(path, &bytes, &err) == 0 && strcmp(buffer_text(&bytes), text) == 0;
	buffer_release(&bytes);
	return same;
}

static size_t count_names(void)
{
	struct error err = {0};
	char **names;
	size_t count;
	ck_assert_int_eq(file_list(scratch, &names, &count, &err), 0);
	file_names_free(names, count);
	return count;
}

START_TEST(a_file_and_a_folder_appear_with_the_commit)
{
	struct error err = {0};
	const bool is_folder = _i == 1;
	struct staging *const staging = begin(is_folder);
	put(staging, "a", "one");
	if (is_folder)
		put(staging, "sub/deep/b", "two");
	ck_assert(!file_exists(out));
	ck_assert_msg(staging_commit(staging, &err) == 0, "%s", err.text);
	staging_free(staging);
	ck_assert(holds(is_folder ? "/a" : "", "one"));
	ck_assert(!is_folder || holds("/sub/deep/b", "two"));
	ck_assert_uint_eq(count_names(), 1);
}
END_TEST

START_TEST(what_is_not_committed_leaves_nothing)
{
	struct staging *const staging = begin(_i == 1);
	put(staging, "a", "one");
	staging_free(staging);
	staging_free(NULL);
	ck_assert_uint_eq(count_names(), 0);
}
END_TEST

/* Another program makes the target while the staging is built. */
START_TEST(what_came_meanwhile_is_not_replaced)
{
	struct error err = {0};
	struct staging *const staging = begin(_i == 1);
	put(staging, "a", "one");
	ck_assert_int_eq(file_place(file_system(), out, span_text("of others"), 0644, &err), 0);
	ck_assert_int_eq(staging_commit(staging, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	staging_free(staging);
	ck_assert(holds("", "of others"));
	ck_assert_uint_eq(count_names(), 1);
}
END_TEST

/* Each sync of a commit fails once. Nothing is then at the final path or beside it. */
START_TEST(a_sync_that_fails_leaves_nothing)
{
	struct error err = {0};
	bool failed = true;
	int syncs = 0;
	for (; failed; syncs++) {
		struct staging *const staging = begin(true);
		const struct staged_file *const file =
			staging_add(staging, span_text("sub/a"), &err);
		ck_assert_int_eq(
			file_write_at(&faults.ops, file->fd, span_text("one"), 0, file->path, &err),
			0);
		faults.kinds = FILE_FAULT_SYNC;
		faults.countdown = syncs;
		failed = staging_commit(staging, &err) != 0;
		faults.kinds = 0;
		staging_free(staging);
		ck_assert_msg(file_exists(out) == !failed, "sync %d", syncs);
		ck_assert_uint_eq(count_names(), failed ? 0 : 1);
	}
	/* the file, both folders and the folder around them; the fifth commit succeeds */
	ck_assert_int_eq(syncs, 5);
}
END_TEST

/* The bytes of staging_put are synced before the target gets its name. */
START_TEST(bytes_that_cannot_be_synced_are_not_put)
{
	struct error err = {0};
	struct staging *const staging = begin(_i == 1);
	faults.kinds = FILE_FAULT_SYNC;
	faults.countdown = 0;
	ck_assert_int_eq(staging_put(staging, span_text("sub/a"), span_text("one"), &err), -1);
	ck_assert_int_eq(err.os_errno, EIO);
	faults.kinds = 0;
	staging_free(staging);
	ck_assert_uint_eq(count_names(), 0);
}
END_TEST

START_TEST(long_bytes_are_written_whole)
{
	struct error err = {0};
	struct buffer read;
	uint8_t *const bytes = memory_new(LONG_BYTES);
	for (size_t i = 0; i < LONG_BYTES; i++)
		bytes[i] = (uint8_t)(i * 2654435761U >> 24);
	struct staging *const staging = begin(false);
	ck_assert_int_eq(staging_put(staging, span_text("a"), span_of(bytes, LONG_BYTES), &err), 0);
	ck_assert_int_eq(staging_commit(staging, &err), 0);
	staging_free(staging);
	buffer_init(&read, LONG_BYTES + 1);
	ck_assert_int_eq(file_read_all(out, &read, &err), 0);
	ck_assert(span_equal(buffer_span(&read), span_of(bytes, LONG_BYTES)));
	buffer_release(&read);
	free(bytes);
}
END_TEST

static const char *const elsewhere[] = {"../a", "/a", "a/../../b", "", "a//b", "./a"};

START_TEST(paths_that_lead_elsewhere_are_refused)
{
	struct error err = {0};
	struct staging *const staging = begin(true);
	ck_assert_int_eq(staging_put(staging, span_text(elsewhere[_i]), span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	staging_free(staging);
	ck_assert_uint_eq(count_names(), 0);
}
END_TEST

/* `OUT//` means OUT, as in a shell. */
START_TEST(slashes_behind_the_name_mean_nothing)
{
	struct error err = {0};
	char slashes[4200];
	snprintf(slashes, sizeof(slashes), "%s%s", out, _i == 0 ? "/" : "///");
	struct staging *const staging = staging_begin(&faults.ops, slashes, true, &err);
	ck_assert_msg(staging != NULL, "%s", err.text);
	put(staging, "a", "one");
	ck_assert_msg(staging_commit(staging, &err) == 0, "%s", err.text);
	staging_free(staging);
	ck_assert(holds("/a", "one"));
	ck_assert_uint_eq(count_names(), 1);
}
END_TEST

START_TEST(what_is_there_or_has_no_place_is_not_begun)
{
	struct error err = {0};
	char lost[4200];
	ck_assert_int_eq(file_place(file_system(), out, span_text("old"), 0644, &err), 0);
	ck_assert_ptr_eq(staging_begin(&faults.ops, out, _i == 1, &err), NULL);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	snprintf(lost, sizeof(lost), "%s/none/out", scratch);
	ck_assert_ptr_eq(staging_begin(&faults.ops, lost, _i == 1, &err), NULL);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_ptr_eq(staging_begin(&faults.ops, "", _i == 1, &err), NULL);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(holds("", "old"));
}
END_TEST

START_TEST(a_path_that_was_taken_is_refused)
{
	struct error err = {0};
	struct staging *const staging = begin(true);
	put(staging, "sub/a", "one");
	ck_assert_int_eq(staging_put(staging, span_text("sub/a"), span_text("two"), &err), -1);
	ck_assert_ptr_null(staging_add(staging, span_text("sub/a"), &err));
	staging_free(staging);
	ck_assert_uint_eq(count_names(), 0);
}
END_TEST

/* A scratch file has no name, and is closed at the end. */
START_TEST(scratch_files_leave_nothing)
{
	struct error err = {0};
	struct staging *const staging = begin(_i == 1);
	const int fd = staging_scratch(staging, &err);
	ck_assert_msg(fd >= 0, "%s", err.text);
	ck_assert_int_eq(file_write_at(&faults.ops, fd, span_text("one"), 0, "scratch", &err), 0);
	put(staging, "a", "two");
	ck_assert_msg(staging_commit(staging, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(count_names(), 1);
	staging_free(staging);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert(holds(_i == 1 ? "/a" : "", "two"));
}
END_TEST

START_TEST(a_scratch_file_that_cannot_lose_its_name_is_refused)
{
	struct error err = {0};
	struct staging *const staging = begin(false);
	faults.kinds = FILE_FAULT_UNLINK;
	ck_assert_int_eq(staging_scratch(staging, &err), -1);
	ck_assert_int_eq(err.os_errno, EIO);
	faults.kinds = 0;
	staging_free(staging);
	ck_assert_uint_eq(count_names(), 0);
}
END_TEST

/* A user who may not write there gets that message, not that the folder does not exist. */
START_TEST(the_root_folder_is_a_place)
{
	struct error err = {0};
	struct staging *const staging =
		staging_begin(&faults.ops, "/deltabucket-unit-out", true, &err);
	ck_assert_msg(
		staging != NULL || err.os_errno == EACCES || err.os_errno == EROFS, "%s", err.text);
	staging_free(staging);
}
END_TEST

Suite *test_staging_suite(void);

Suite *test_staging_suite(void)
{
	Suite *const suite = suite_create("staging");
	TCase *const tests = tcase_create("staging");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_file_and_a_folder_appear_with_the_commit, 0, 2);
	tcase_add_loop_test(tests, what_is_not_committed_leaves_nothing, 0, 2);
	tcase_add_loop_test(tests, what_came_meanwhile_is_not_replaced, 0, 2);
	tcase_add_test(tests, a_path_that_was_taken_is_refused);
	tcase_add_loop_test(tests, scratch_files_leave_nothing, 0, 2);
	tcase_add_test(tests, a_scratch_file_that_cannot_lose_its_name_is_refused);
	tcase_add_test(tests, the_root_folder_is_a_place);
	tcase_add_test(tests, a_sync_that_fails_leaves_nothing);
	tcase_add_loop_test(tests, bytes_that_cannot_be_synced_are_not_put, 0, 2);
	tcase_add_test(tests, long_bytes_are_written_whole);
	tcase_add_loop_test(tests, paths_that_lead_elsewhere_are_refused, 0,
		sizeof(elsewhere) / sizeof(elsewhere[0]));
	tcase_add_loop_test(tests, slashes_behind_the_name_mean_nothing, 0, 2);
	tcase_add_loop_test(tests, what_is_there_or_has_no_place_is_not_begun, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
