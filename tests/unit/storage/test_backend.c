#include "storage/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

static const char name_a[] = "aa000000000000000000000000000001.pack";
static const char name_b[] = "bb000000000000000000000000000002.pack";
static const char name_index[] = "aa000000000000000000000000000001.index";

struct opened {
	char *scratch;
	char folder[4096];
	struct file_faults faults;
	struct backend *backend;
	const struct backend_ops *ops;
};

static void opened_open(struct opened *const opened, const int kind)
{
	struct error err = {0};
	opened->scratch = unit_scratch_make();
	snprintf(opened->folder, sizeof opened->folder, "%s/new/packs", opened->scratch);
	file_faults_init(&opened->faults, 0, 0, 0);
	opened->backend = kind == PACK_FIXTURE_MEMORY ? backend_memory_new() : backend_folder_open(opened->folder, &opened->faults.ops, &err);
	ck_assert_msg(opened->backend != NULL, "%s", err.text);
	opened->ops = opened->backend->ops;
}

static void opened_close(struct opened *const opened)
{
	opened->ops->free(opened->backend);
	unit_scratch_remove(opened->scratch);
}

static struct backend_file *opened_create(struct opened *const opened, const char *const name, const char *const text)
{
	struct error err = {0};
	struct backend_file *file;
	ck_assert_msg(opened->ops->create(opened->backend, name, &file, &err) == 0, "%s", err.text);
	ck_assert_int_eq(opened->ops->append(file, span_text(text), 0, &err), 0);
	return file;
}

static void expect_content(const struct opened *const opened, struct backend_file *const file, const char *const text)
{
	struct error err = {0};
	uint64_t size;
	char got[64] = {0};
	const size_t half = strlen(text) / 2;
	const struct iovec parts[] = { { got, half }, { got + half, strlen(text) - half } };
	ck_assert_int_eq(opened->ops->size(file, &size, &err), 0);
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_msg(opened->ops->read(file, parts, 2, 0, &err) == 0, "%s", err.text);
	ck_assert_str_eq(got, text);
}

START_TEST(what_is_appended_is_read)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	struct backend_file *file = opened_create(&opened, name_a, "hello ");
	ck_assert_int_eq(opened.ops->append(file, span_text("world"), 6, &err), 0);
	ck_assert_int_eq(opened.ops->sync(file, &err), 0);
	expect_content(&opened, file, "hello world");
	opened.ops->close(file);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), 0);
	expect_content(&opened, file, "hello world");
	ck_assert_int_eq(opened.ops->append(file, span_text("there"), 6, &err), 0);
	expect_content(&opened, file, "hello there");
	ck_assert_int_eq(opened.ops->truncate(file, 5, &err), 0);
	expect_content(&opened, file, "hello");
	opened.ops->close(file);
	opened_close(&opened);
}
END_TEST

START_TEST(reading_past_the_end_is_corrupt)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	struct backend_file *const file = opened_create(&opened, name_a, "0123456789");
	char got[8];
	const struct iovec parts[] = { { got, 4 }, { got + 4, 4 } };
	ck_assert_int_eq(opened.ops->read(file, parts, 2, 2, &err), 0);
	ck_assert_mem_eq(got, "23456789", 8);
	ck_assert_int_eq(opened.ops->read(file, parts, 2, 3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(opened.ops->read(file, parts, 2, UINT64_C(1) << 40, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	opened.ops->close(file);
	opened_close(&opened);
}
END_TEST

START_TEST(names_are_taken_or_absent)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	struct backend_file *file;
	struct buffer bytes;
	buffer_init(&bytes, 100);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(opened.ops->get(opened.backend, name_a, &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	opened.ops->close(opened_create(&opened, name_a, "x"));
	ck_assert_int_eq(opened.ops->create(opened.backend, name_a, &file, &err), -1);
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), -1);
	opened_close(&opened);
}
END_TEST

START_TEST(an_open_file_outlives_its_name)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	struct backend_file *const file = opened_create(&opened, name_a, "still here");
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_a, &err), 0);
	opened.ops->close(opened_create(&opened, name_a, "another"));
	expect_content(&opened, file, "still here");
	opened.ops->close(file);
	opened_close(&opened);
}
END_TEST

START_TEST(put_replaces_the_whole)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	struct buffer bytes;
	buffer_init(&bytes, 100);
	ck_assert_int_eq(opened.ops->put(opened.backend, name_index, span_text("a longer first text"), &err), 0);
	ck_assert_int_eq(opened.ops->put(opened.backend, name_index, span_text("short"), &err), 0);
	ck_assert_int_eq(opened.ops->get(opened.backend, name_index, &bytes, &err), 0);
	ck_assert_str_eq(buffer_text(&bytes), "short");
	buffer_release(&bytes);
	buffer_init(&bytes, 3);
	ck_assert_int_eq(opened.ops->get(opened.backend, name_index, &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_release(&bytes);
	opened_close(&opened);
}
END_TEST

struct listing {
	struct opened *opened;
	unsigned seen_a;
	unsigned seen_b;
	unsigned others;
};

static int listing_take(void *const taker, const char *const name, const uint64_t size, struct error *const err)
{
	(void)size;
	struct listing *const listing = taker;
	unsigned *const seen = strcmp(name, name_a) == 0 ? &listing->seen_a : strcmp(name, name_b) == 0 ? &listing->seen_b : &listing->others;
	++*seen;
	return listing->opened->ops->remove(listing->opened->backend, name, err);
}

static int listing_refuse(void *const taker, const char *const name, const uint64_t size, struct error *const err)
{
	(void)size;
	(void)taker;
	return error_set(err, ERROR_INVALID, "refused %s", name);
}

START_TEST(list_names_all_and_stops_on_failure)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, _i);
	opened.ops->close(opened_create(&opened, name_a, "a"));
	opened.ops->close(opened_create(&opened, name_b, "b"));
	ck_assert_int_eq(opened.ops->list(opened.backend, listing_refuse, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	struct listing listing = { .opened = &opened };
	ck_assert_int_eq(opened.ops->list(opened.backend, listing_take, &listing, &err), 0);
	ck_assert_uint_eq(listing.seen_a, 1);
	ck_assert_uint_eq(listing.seen_b, 1);
	ck_assert_uint_eq(listing.others, 0);
	listing = (struct listing){ .opened = &opened };
	ck_assert_int_eq(opened.ops->list(opened.backend, listing_take, &listing, &err), 0);
	ck_assert_uint_eq(listing.seen_a + listing.seen_b, 0);
	opened_close(&opened);
}
END_TEST

/* The n-th system call fails, for every n until none does: the old bytes or the new, never a mix. */
START_TEST(a_put_that_fails_leaves_old_or_new)
{
	struct opened opened;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	const bool is_derived = _i == 1;
	int (*const put)(struct backend *, const char *, struct span, struct error *) =
		is_derived ? opened.backend->ops->put_derived : opened.backend->ops->put;
	struct error err = {0};
	ck_assert_int_eq(put(opened.backend, name_index, span_text("old bytes"), &err), 0);
	for (int n = 0;; n++) {
		file_faults_init(&opened.faults, FILE_FAULT_OPEN | FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME, n, ENOSPC);
		const int result = put(opened.backend, name_index, span_text("new"), &err);
		file_faults_init(&opened.faults, 0, 0, 0);
		struct buffer bytes;
		buffer_init(&bytes, 100);
		struct error get = {0};
		ck_assert_int_eq(opened.ops->get(opened.backend, name_index, &bytes, &get), 0);
		const bool is_new = strcmp(buffer_text(&bytes), "new") == 0;
		ck_assert(is_new || strcmp(buffer_text(&bytes), "old bytes") == 0);
		buffer_release(&bytes);
		if (result == 0) {
			ck_assert(is_new);
			ck_assert_int_eq(n, (is_derived ? 3 : 6)); /* open, write, rename; else also sync, and open and sync of the folder */
			break;
		}
		ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	}
	opened_close(&opened);
}
END_TEST

/* The folder xx that both are in is made durable by the first. */
START_TEST(a_second_file_costs_two_syncs)
{
	struct opened opened;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	struct error err = {0};
	struct backend_file *const first = opened_create(&opened, "ab00000000000000000000000000000f.pack", "text");
	file_faults_init(&opened.faults, FILE_FAULT_SYNC, 2, EIO);
	ck_assert_int_eq(opened.ops->sync(first, &err), -1); /* the third, of the folder above */
	file_faults_init(&opened.faults, 0, 0, 0);
	ck_assert_int_eq(opened.ops->sync(first, &err), 0);
	struct backend_file *const second = opened_create(&opened, "ab00000000000000000000000000001f.pack", "text");
	file_faults_init(&opened.faults, FILE_FAULT_SYNC, 2, EIO);
	ck_assert_int_eq(opened.ops->sync(second, &err), 0);
	file_faults_init(&opened.faults, 0, 0, 0);
	opened.ops->close(first);
	opened.ops->close(second);
	opened_close(&opened);
}
END_TEST

START_TEST(failing_calls_are_reported)
{
	static const int kinds[] = { FILE_FAULT_OPEN, FILE_FAULT_WRITE, FILE_FAULT_SYNC, FILE_FAULT_UNLINK };
	struct opened opened;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	struct error err = {0};
	struct backend_file *const file = opened_create(&opened, name_a, "text");
	struct backend_file *other;
	file_faults_init(&opened.faults, kinds[_i], 0, EIO);
	opened.faults.sticky = true;
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &other, &err), kinds[_i] == FILE_FAULT_OPEN ? -1 : 0);
	if (kinds[_i] != FILE_FAULT_OPEN)
		opened.ops->close(other);
	ck_assert_int_eq(opened.ops->append(file, span_text("text"), 4, &err), kinds[_i] == FILE_FAULT_WRITE ? -1 : 0);
	ck_assert_int_eq(opened.ops->truncate(file, 0, &err), kinds[_i] == FILE_FAULT_WRITE ? -1 : 0);
	ck_assert_int_eq(opened.ops->sync(file, &err), kinds[_i] == FILE_FAULT_SYNC || kinds[_i] == FILE_FAULT_OPEN ? -1 : 0);
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_a, &err), kinds[_i] == FILE_FAULT_UNLINK ? -1 : 0);
	ck_assert_int_eq(err.kind, ERROR_IO);
	opened.ops->close(file);
	opened_close(&opened);
}
END_TEST

Suite *test_backend_suite(void);
Suite *test_backend_suite(void)
{
	Suite *const suite = suite_create("backend");
	TCase *const tcase = tcase_create("backend");
	tcase_add_loop_test(tcase, what_is_appended_is_read, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, reading_past_the_end_is_corrupt, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, names_are_taken_or_absent, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, an_open_file_outlives_its_name, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, put_replaces_the_whole, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, list_names_all_and_stops_on_failure, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, a_put_that_fails_leaves_old_or_new, 0, 2);
	tcase_add_test(tcase, a_second_file_costs_two_syncs);
	tcase_add_loop_test(tcase, failing_calls_are_reported, 0, 4);
	suite_add_tcase(suite, tcase);
	return suite;
}
