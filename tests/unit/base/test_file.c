#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"

static char *folder;

static void set_up(void)
{
	folder = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

/* A path in the scratch folder, valid until the fourth call after this one. */
static const char *in_folder(const char *name)
{
	static char paths[4][8192];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
	return paths[turn];
}

static void put(const char *path, const char *text)
{
	struct error err = {0};
	ck_assert_msg(file_publish(file_system(), path, span_text(text), 0600, &err) == 0, "%s",
		err.text);
}

static void check_content(const char *path, const char *text)
{
	struct error err = {0};
	struct buffer content;
	buffer_init(&content, 1 << 20);
	ck_assert_msg(file_read_all(path, &content, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&content), text);
	buffer_release(&content);
}

START_TEST(publish_writes_and_replaces)
{
	struct stat facts;
	char **names;
	size_t count;
	struct error err = {0};
	put(in_folder("a"), "old");
	check_content(in_folder("a"), "old");
	put(in_folder("a"), "");
	check_content(in_folder("a"), "");
	put(in_folder("a"), "new");
	check_content(in_folder("a"), "new");
	ck_assert_int_eq(stat(in_folder("a"), &facts), 0);
	ck_assert_uint_eq(facts.st_mode & 0777, 0600);
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	file_names_free(names, count);
}
END_TEST

START_TEST(publish_names_the_path_it_cannot_write)
{
	struct error err = {0};
	ck_assert_int_eq(
		file_publish(file_system(), in_folder("no/such"), span_text("x"), 0600, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "no/such"));
	char *const long_path = malloc(5001);
	memset(long_path, 'x', 5000);
	long_path[5000] = '\0';
	ck_assert_int_eq(file_publish(file_system(), long_path, span_text("x"), 0600, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(long_path);
}
END_TEST

START_TEST(publish_works_on_a_bare_name)
{
	char *const here = getcwd(NULL, 0);
	ck_assert_int_eq(chdir(folder), 0);
	put("bare", "x");
	check_content("bare", "x");
	ck_assert_int_eq(chdir(here), 0);
	free(here);
}
END_TEST

START_TEST(write_and_read_at_offsets)
{
	struct error err = {0};
	char got[4] = "";
	const struct iovec none = {.iov_base = got, .iov_len = 0};
	const struct iovec three = {.iov_base = got, .iov_len = 3};
	const int fd = open(in_folder("f"), O_RDWR | O_CREAT, 0600);
	ck_assert_int_eq(file_write_at(file_system(), fd, span_text("cdef"), 2, "f", &err), 0);
	ck_assert_int_eq(file_write_at(file_system(), fd, span_text("ab"), 0, "f", &err), 0);
	ck_assert_int_eq(file_write_at(file_system(), fd, span_of(NULL, 0), 0, "f", &err), 0);
	ck_assert_int_eq(file_sync(file_system(), fd, "f", &err), 0);
	ck_assert_int_eq(file_read_at(file_system(), fd, three, 1, "f", &err), 0);
	ck_assert_str_eq(got, "bcd");
	ck_assert_int_eq(file_read_at(file_system(), fd, three, 4, "f", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(file_read_at(file_system(), fd, none, 100, "f", &err), 0);
	close(fd);
	ck_assert_int_eq(file_read_at(file_system(), fd, three, 0, "f", &err), -1);
	ck_assert_int_eq(err.os_errno, EBADF);
}
END_TEST

/* A disk that writes and reads one byte at a time, with an interruption before each byte. */
struct slow_disk {
	struct file_ops ops;
	bool interrupted;
};

static bool interrupt(struct slow_disk *disk)
{
	disk->interrupted = !disk->interrupted;
	errno = EINTR;
	return disk->interrupted;
}

static ssize_t slow_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	return interrupt(ops->state)
		? -1
		: file_system()->pwrite(file_system(), fd, data, len > 0 ? 1 : 0, offset);
}

static ssize_t slow_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	const struct iovec first = {parts[0].iov_base, 1};
	(void)count;
	return interrupt(ops->state) ? -1
				     : file_system()->preadv(file_system(), fd, &first, 1, offset);
}

START_TEST(short_transfers_and_interruptions_are_gone_on_with)
{
	struct slow_disk disk = {.ops = *file_system()};
	struct error err = {0};
	char got[12] = "";
	const struct iovec into = {.iov_base = got, .iov_len = 11};
	disk.ops.pwrite = slow_pwrite;
	disk.ops.preadv = slow_preadv;
	disk.ops.state = &disk;
	const int fd = open(in_folder("f"), O_RDWR | O_CREAT, 0600);
	ck_assert_int_eq(file_write_at(&disk.ops, fd, span_text("hello world"), 0, "f", &err), 0);
	ck_assert_int_eq(file_read_at(&disk.ops, fd, into, 0, "f", &err), 0);
	ck_assert_str_eq(got, "hello world");
	close(fd);
}
END_TEST

START_TEST(read_all_keeps_to_the_cap)
{
	struct error err = {0};
	struct buffer out;
	put(in_folder("f"), "12345678");
	buffer_init(&out, 8);
	ck_assert_int_eq(file_read_all(in_folder("f"), &out, &err), 0);
	ck_assert_str_eq(buffer_text(&out), "12345678");
	buffer_release(&out);
	buffer_init(&out, 7);
	ck_assert_int_eq(file_read_all(in_folder("f"), &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_release(&out);
	buffer_init(&out, 7);
	ck_assert_int_eq(file_read_all(in_folder("absent"), &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	buffer_release(&out);
}
END_TEST

START_TEST(read_all_reads_more_than_one_piece)
{
	enum { LEN = 300 * 1024 };
	struct error err = {0};
	struct buffer out;
	uint8_t *const bytes = malloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i * 7 >> 3);
	ck_assert_int_eq(
		file_publish(file_system(), in_folder("f"), span_of(bytes, LEN), 0600, &err), 0);
	buffer_init(&out, LEN);
	ck_assert_int_eq(file_read_all(in_folder("f"), &out, &err), 0);
	ck_assert(span_equal(buffer_span(&out), span_of(bytes, LEN)));
	buffer_release(&out);
	free(bytes);
}
END_TEST

START_TEST(make_folder_makes_parents_and_is_repeatable)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("a/b//c/"), 0700, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("a/b/c"), 0700, &err), 0);
	ck_assert(file_exists(in_folder("a/b/c")));
	put(in_folder("file"), "x");
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("file"), 0700, &err), -1);
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("file/below"), 0700, &err), -1);
	ck_assert_int_eq(file_make_folder(file_system(), "", 0700, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(file_make_folder(file_system(), "/", 0700, &err), 0);
}
END_TEST

START_TEST(size_and_existence)
{
	struct error err = {0};
	uint64_t size = 0;
	put(in_folder("f"), "12345");
	ck_assert(file_exists(in_folder("f")));
	ck_assert(!file_exists(in_folder("g")));
	ck_assert_int_eq(file_size(in_folder("f"), &size, &err), 0);
	ck_assert_uint_eq(size, 5);
	ck_assert_int_eq(file_size(in_folder("g"), &size, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(file_size(folder, &size, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(clone_copies_and_does_not_replace)
{
	enum { LEN = 200 * 1024 + 7 };
	struct error err = {0};
	struct buffer copy;
	uint8_t *const bytes = malloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i ^ i >> 9);
	ck_assert_int_eq(
		file_publish(file_system(), in_folder("from"), span_of(bytes, LEN), 0640, &err), 0);
	ck_assert_msg(file_clone(file_system(), in_folder("from"), in_folder("to"), &err) == 0,
		"%s", err.text);
	buffer_init(&copy, LEN);
	ck_assert_int_eq(file_read_all(in_folder("to"), &copy, &err), 0);
	ck_assert(span_equal(buffer_span(&copy), span_of(bytes, LEN)));
	put(in_folder("other"), "kept");
	ck_assert_int_eq(
		file_clone(file_system(), in_folder("from"), in_folder("other"), &err), -1);
	check_content(in_folder("other"), "kept");
	ck_assert_int_eq(
		file_clone(file_system(), in_folder("absent"), in_folder("never"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert(!file_exists(in_folder("never")));
	buffer_release(&copy);
	free(bytes);
}
END_TEST

/* /proc files have no size: only a plain read finds their content. */
START_TEST(clone_reads_files_without_a_size)
{
	struct error err = {0};
	uint64_t size = 0;
	ck_assert_msg(
		file_clone(file_system(), "/proc/self/status", in_folder("status"), &err) == 0,
		"%s", err.text);
	ck_assert_int_eq(file_size(in_folder("status"), &size, &err), 0);
	ck_assert_uint_gt(size, 100);
}
END_TEST

START_TEST(remove_tree_takes_all_but_what_links_point_to)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("tree/a/b"), 0700, &err), 0);
	put(in_folder("tree/a/b/f"), "x");
	put(in_folder("outside"), "kept");
	ck_assert_int_eq(symlink(in_folder("outside"), in_folder("tree/a/link")), 0);
	ck_assert_int_eq(symlink(folder, in_folder("tree/up")), 0);
	ck_assert_msg(
		file_remove_tree(file_system(), in_folder("tree"), &err) == 0, "%s", err.text);
	ck_assert(!file_exists(in_folder("tree")));
	check_content(in_folder("outside"), "kept");
	ck_assert_int_eq(file_remove_tree(file_system(), in_folder("tree"), &err), 0);
	ck_assert_int_eq(file_remove_tree(file_system(), in_folder("outside"), &err), 0);
	ck_assert(!file_exists(in_folder("outside")));
}
END_TEST

START_TEST(list_is_sorted_by_bytes)
{
	struct error err = {0};
	char **names;
	size_t count = 99;
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
	file_names_free(names, count);
	put(in_folder("b"), "");
	put(in_folder("a-"), "");
	put(in_folder("B"), "");
	put(in_folder(".hidden"), "");
	ck_assert_int_eq(file_make_folder(file_system(), in_folder("a"), 0700, &err), 0);
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	ck_assert_uint_eq(count, 5);
	static const char *const wanted[] = {".hidden", "B", "a", "a-", "b"};
	for (size_t i = 0; i < count; i++)
		ck_assert_str_eq(names[i], wanted[i]);
	file_names_free(names, count);
	ck_assert_int_eq(file_list(in_folder("absent"), &names, &count, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(reserve_takes_the_room_or_tells_that_there_is_none)
{
	enum { SIZE = 1 << 20 };
	struct error err = {0};
	struct statvfs disk;
	struct stat facts;
	const char *const path = in_folder("reserved");
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	ck_assert_int_eq(file_reserve(fd, 0, path, &err), 0);
	ck_assert_int_eq(file_reserve(fd, SIZE, path, &err), 0);
	ck_assert_int_eq(fstat(fd, &facts), 0);
	ck_assert_int_eq(facts.st_size, SIZE);
	ck_assert_int_ge(facts.st_blocks * 512, SIZE);
	ck_assert_int_eq(fstatvfs(fd, &disk), 0);
	ck_assert_int_eq(
		file_reserve(fd, (uint64_t)(disk.f_blocks + 1) * disk.f_frsize, path, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	close(fd);
}
END_TEST

START_TEST(sync_folder_names_what_is_missing)
{
	struct error err = {0};
	ck_assert_int_eq(file_sync_folder(file_system(), folder, &err), 0);
	ck_assert_int_eq(file_sync_folder(file_system(), in_folder("absent"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

Suite *test_file_suite(void);
Suite *test_file_suite(void)
{
	Suite *const suite = suite_create("file");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, publish_writes_and_replaces);
	tcase_add_test(tc, publish_names_the_path_it_cannot_write);
	tcase_add_test(tc, publish_works_on_a_bare_name);
	tcase_add_test(tc, write_and_read_at_offsets);
	tcase_add_test(tc, short_transfers_and_interruptions_are_gone_on_with);
	tcase_add_test(tc, read_all_keeps_to_the_cap);
	tcase_add_test(tc, read_all_reads_more_than_one_piece);
	tcase_add_test(tc, make_folder_makes_parents_and_is_repeatable);
	tcase_add_test(tc, size_and_existence);
	tcase_add_test(tc, clone_copies_and_does_not_replace);
	tcase_add_test(tc, clone_reads_files_without_a_size);
	tcase_add_test(tc, remove_tree_takes_all_but_what_links_point_to);
	tcase_add_test(tc, list_is_sorted_by_bytes);
	tcase_add_test(tc, reserve_takes_the_room_or_tells_that_there_is_none);
	tcase_add_test(tc, sync_folder_names_what_is_missing);
	suite_add_tcase(suite, tc);
	return suite;
}
