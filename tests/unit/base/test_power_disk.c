/* The disk whose power other tests cut must forget what it should and keep what it should; and
 * base/file.h must keep its promises after a cut. */
#include "tests/unit/power_disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char *folder;
static struct power_disk *disk;
static const struct file_ops *files;

static const char *path_of(const char *name)
{
	static char paths[4][4096];
	static unsigned turn;
	char *const path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static void write_at(const char *name, const char *text, off_t at)
{
	struct error err = {0};
	const int fd = files->open(files, path_of(name), O_WRONLY | O_CREAT, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(file_write_at(files, fd, span_text(text), at, name, &err), 0);
	close(fd);
}

static void sync_file(const char *name)
{
	struct error err = {0};
	const int fd = files->open(files, path_of(name), O_WRONLY, 0);
	ck_assert_int_eq(file_sync(files, fd, name, &err), 0);
	close(fd);
}

static void sync_names(const char *name)
{
	struct error err = {0};
	ck_assert_int_eq(file_sync_folder(files, path_of(name), &err), 0);
}

static void set_up(void)
{
	folder = unit_scratch_make();
	files = file_system();
	write_at("old", "old bytes", 0);
	disk = power_disk_new(folder);
	files = power_disk_files(disk);
}

static void tear_down(void)
{
	power_disk_free(disk);
	unit_scratch_remove(folder);
}

/* NULL: there is no such file. Length and bytes, with zeros as '0'. */
static void expect(enum power_cut cut, const char *name, const char *text)
{
	struct error err = {0};
	struct buffer bytes;
	char path[4096];
	char *const survived = power_disk_cut(disk, cut);
	snprintf(path, sizeof path, "%s/%s", survived, name);
	buffer_init(&bytes, 1000);
	ck_assert_msg(file_exists(path) == (text != NULL), "%s after cut %d", name, cut);
	if (text != NULL)
		ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < bytes.len; i++)
		bytes.data[i] = bytes.data[i] == 0 ? '0' : bytes.data[i];
	if (text != NULL)
		ck_assert_str_eq(buffer_text(&bytes), text);
	buffer_release(&bytes);
	unit_scratch_remove(survived);
}

START_TEST(what_was_never_synced)
{
	write_at("new", "new", 0);
	write_at("old", "OLD", 0);
	write_at("old", "longer", 9);
	static const struct {
		const char *new;
		const char *old;
	} left[POWER_CUTS] = {
		[POWER_CUT_DROPS_ALL] = {NULL, "old bytes"},
		[POWER_CUT_KEEPS_ALL] = {"new", "OLD byteslonger"},
		[POWER_CUT_KEEPS_NAMES] = {"", "old bytes"},
		[POWER_CUT_KEEPS_LENGTHS] = {"000", "old bytes000000"},
		[POWER_CUT_KEEPS_CONTENT] = {NULL, "OLD byteslonger"},
		[POWER_CUT_KEEPS_UPPER] = {"", "old bytes"},
		[POWER_CUT_KEEPS_LOWER] = {NULL, "old bytes"},
	};
	expect((enum power_cut)_i, "new", left[_i].new);
	expect((enum power_cut)_i, "old", left[_i].old);
}
END_TEST

START_TEST(a_synced_file_wants_its_name_synced_too)
{
	write_at("new", "new", 0);
	sync_file("new");
	expect(POWER_CUT_DROPS_ALL, "new", NULL);
	expect(POWER_CUT_KEEPS_NAMES, "new", "new");
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "new", "new");
	write_at("new", "later", 0);
	expect(POWER_CUT_DROPS_ALL, "new", "new");
	expect(POWER_CUT_KEEPS_LENGTHS, "new", "new00");
	expect(POWER_CUT_KEEPS_CONTENT, "new", "later");
}
END_TEST

START_TEST(names_come_and_go_with_their_folder)
{
	ck_assert_int_eq(files->rename(files, path_of("old"), path_of("renamed")), 0);
	expect(POWER_CUT_DROPS_ALL, "old", "old bytes");
	expect(POWER_CUT_DROPS_ALL, "renamed", NULL);
	expect(POWER_CUT_KEEPS_NAMES, "old", NULL);
	expect(POWER_CUT_KEEPS_NAMES, "renamed", "old bytes");
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "old", NULL);
	expect(POWER_CUT_DROPS_ALL, "renamed", "old bytes");
	ck_assert_int_eq(files->unlink(files, path_of("renamed")), 0);
	/* which may have the inode number of the file that went */
	write_at("renamed", "another", 0);
	sync_file("renamed");
	expect(POWER_CUT_DROPS_ALL, "renamed", "old bytes");
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "renamed", "another");
}
END_TEST

START_TEST(folders_and_links_are_names_as_well)
{
	struct error err = {0};
	ck_assert_int_eq(files->mkdir(files, path_of("in"), 0700), 0);
	write_at("in/file", "x", 0);
	sync_file("in/file");
	sync_names("in");
	expect(POWER_CUT_DROPS_ALL, "in", NULL);
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "in/file", "x");
	ck_assert_int_eq(files->symlink(files, "in", path_of("to")), 0);
	ck_assert_int_eq(files->link(files, path_of("in/file"), path_of("in/same")), 0);
	expect(POWER_CUT_DROPS_ALL, "to/file", NULL);
	expect(POWER_CUT_DROPS_ALL, "in/same", NULL);
	sync_names(".");
	sync_names("in");
	expect(POWER_CUT_DROPS_ALL, "to/file", "x");
	expect(POWER_CUT_DROPS_ALL, "in/same", "x");
	ck_assert_int_eq(file_remove_tree(files, path_of("in"), &err), 0);
	expect(POWER_CUT_DROPS_ALL, "in/file", "x");
	expect(POWER_CUT_KEEPS_NAMES, "in", NULL);
}
END_TEST

/* A name that moves from one folder to another may end up in both or in neither. */
START_TEST(folders_keep_their_names_each_for_itself)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_folder(files, path_of("in"), 0700, &err), 0);
	ck_assert_int_eq(files->rename(files, path_of("old"), path_of("in/moved")), 0);
	expect(POWER_CUT_KEEPS_UPPER, "old", NULL);
	expect(POWER_CUT_KEEPS_UPPER, "in/moved", NULL);
	expect(POWER_CUT_KEEPS_LOWER, "old", "old bytes");
	expect(POWER_CUT_KEEPS_LOWER, "in/moved", "old bytes");
	ck_assert_int_eq(file_remove_tree(files, path_of("in"), &err), 0);
	expect(POWER_CUT_KEEPS_UPPER, "in", NULL);
	expect(POWER_CUT_KEEPS_LOWER, "in/moved", NULL);
}
END_TEST

START_TEST(the_trace_names_what_happened)
{
	struct error err = {0};
	ck_assert_int_eq(file_publish(files, path_of("f"), span_text("text"), 0600, &err), 0);
	ck_assert_str_eq(power_disk_trace(disk),
		"create f.tmp-*\nwrite f.tmp-*\nsync f.tmp-*\nrename f.tmp-* f\nsync-folder .\n");
	ck_assert_uint_eq(power_disk_count(disk, "sync-folder ."), 1);
	power_disk_forget_trace(disk);
	write_at("f", "1", 0);
	write_at("f", "2", 1);
	ck_assert_int_eq(file_make_folder(files, path_of("a/b"), 0700, &err), 0);
	ck_assert_int_eq(file_remove_tree(files, path_of("a"), &err), 0);
	ck_assert_str_eq(power_disk_trace(disk),
		"write f\nmkdir a\nsync-folder .\nmkdir a/b\nsync-folder a\nrmdir a/b\nrmdir a\n");
}
END_TEST

START_TEST(a_cut_before_each_line)
{
	static const char *const wanted[] = {"create f", "write f", "sync f"};
	static const char *const left[] = {NULL, "", "x"};
	size_t count;
	char path[4096];
	power_disk_cut_each(disk, POWER_CUT_KEEPS_ALL);
	write_at("f", "x", 0);
	power_disk_mark(disk, 7);
	sync_file("f");
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_eq(count, 3);
	for (size_t i = 0; i < count; i++) {
		uint64_t size;
		struct error err = {0};
		snprintf(path, sizeof path, "%s/f", taken[i].folder);
		ck_assert_str_eq(taken[i].line, wanted[i]);
		ck_assert_uint_eq(taken[i].mark, i == 2 ? 7 : 0);
		ck_assert_int_eq(file_exists(path), left[i] != NULL);
		if (left[i] != NULL) {
			ck_assert_int_eq(file_size(path, &size, &err), 0);
			ck_assert_uint_eq(size, strlen(left[i]));
		}
	}
}
END_TEST

/* Must hold for every kind of cut at every place. */
START_TEST(a_published_file_is_old_or_new)
{
	struct error err = {0};
	size_t count;
	power_disk_cut_each(disk, (enum power_cut)_i);
	ck_assert_int_eq(
		file_publish(files, path_of("old"), span_text("new bytes"), 0600, &err), 0);
	expect((enum power_cut)_i, "old", "new bytes");
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++) {
		struct buffer bytes;
		char path[4096];
		snprintf(path, sizeof path, "%s/old", taken[i].folder);
		buffer_init(&bytes, 100);
		ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "cut %d before \"%s\": %s",
			_i, taken[i].line, err.text);
		ck_assert_msg(strcmp(buffer_text(&bytes), "old bytes") == 0 ||
				strcmp(buffer_text(&bytes), "new bytes") == 0,
			"cut %d before \"%s\" left \"%s\"", _i, taken[i].line, buffer_text(&bytes));
		buffer_release(&bytes);
	}
}
END_TEST

/* file_place promises less. */
START_TEST(a_placed_file_may_be_anything)
{
	struct error err = {0};
	ck_assert_int_eq(file_place(files, path_of("old"), span_text("new"), 0600, &err), 0);
	expect(POWER_CUT_DROPS_ALL, "old", "old bytes");
	expect(POWER_CUT_KEEPS_NAMES, "old", "");
	ck_assert_str_eq(power_disk_trace(disk),
		"create old.tmp-*\nwrite old.tmp-*\nrename old.tmp-* old\n");
}
END_TEST

START_TEST(a_made_folder_lasts_with_its_parents)
{
	struct error err = {0};
	ck_assert_int_eq(file_make_folder(files, path_of("a/b/c"), 0700, &err), 0);
	char *const survived = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	char path[4096];
	snprintf(path, sizeof path, "%s/a/b/c", survived);
	ck_assert(file_exists(path));
	unit_scratch_remove(survived);
}
END_TEST

/* Without hard links it is a copy, which is synced because the caller relies on the bytes. */
static int no_link(const struct file_ops *ops, const char *from, const char *to)
{
	(void)ops, (void)from, (void)to;
	return -1;
}

START_TEST(a_shared_file_lasts_without_links)
{
	struct error err = {0};
	struct file_ops linkless = *files;
	linkless.link = _i == 0 ? files->link : no_link;
	ck_assert_int_eq(file_share(&linkless, path_of("old"), path_of("shared"), &err), 0);
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "shared", "old bytes");
	ck_assert_int_eq(file_clone(files, path_of("old"), path_of("cloned"), &err), 0);
	sync_names(".");
	expect(POWER_CUT_DROPS_ALL, "cloned", ""); /* documented: it is not synced */
}
END_TEST

Suite *test_power_disk_suite(void);
Suite *test_power_disk_suite(void)
{
	Suite *const suite = suite_create("power_disk");
	TCase *const tests = tcase_create("power_disk");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, what_was_never_synced, 0, POWER_CUTS);
	tcase_add_test(tests, a_synced_file_wants_its_name_synced_too);
	tcase_add_test(tests, names_come_and_go_with_their_folder);
	tcase_add_test(tests, folders_and_links_are_names_as_well);
	tcase_add_test(tests, folders_keep_their_names_each_for_itself);
	tcase_add_test(tests, the_trace_names_what_happened);
	tcase_add_test(tests, a_cut_before_each_line);
	tcase_add_loop_test(tests, a_published_file_is_old_or_new, 0, POWER_CUTS);
	tcase_add_test(tests, a_placed_file_may_be_anything);
	tcase_add_test(tests, a_made_folder_lasts_with_its_parents);
	tcase_add_loop_test(tests, a_shared_file_lasts_without_links, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
