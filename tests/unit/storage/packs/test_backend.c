#include "storage/packs/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/power_disk.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

static const char name_a[] = "aa000000000000000000000000000001.pack";
static const char name_b[] = "ff000000000000000000000000000002.pack";
static const char name_index[] = "aa000000000000000000000000000001.index";

struct opened {
	char *scratch;
	char folder[4096];
	char aside[4096];
	struct file_faults faults;
	struct backend *backend;
	const struct backend_ops *ops;
};

static void opened_open(struct opened *opened, int kind)
{
	struct error err = {0};
	opened->scratch = unit_scratch_make();
	snprintf(opened->folder, sizeof opened->folder, "%s/new/packs", opened->scratch);
	snprintf(opened->aside, sizeof opened->aside, "%s/new/set-aside", opened->scratch);
	file_faults_init(&opened->faults, 0, 0, 0);
	opened->backend = kind == PACK_FIXTURE_MEMORY
		? backend_memory_new()
		: backend_folder_open(opened->folder, opened->aside, &opened->faults.ops, &err);
	ck_assert_msg(opened->backend != NULL, "%s", err.text);
	opened->ops = opened->backend->ops;
}

static void opened_close(struct opened *opened)
{
	opened->ops->free(opened->backend);
	unit_scratch_remove(opened->scratch);
}

static struct backend_file *opened_create(struct opened *opened, const char *name, const char *text)
{
	struct error err = {0};
	struct backend_file *file;
	ck_assert_msg(opened->ops->create(opened->backend, name, &file, &err) == 0, "%s", err.text);
	ck_assert_int_eq(opened->ops->append(file, span_text(text), 0, &err), 0);
	return file;
}

static void expect_content(const struct opened *opened, struct backend_file *file, const char *text)
{
	struct error err = {0};
	uint64_t size;
	char got[64] = {0};
	const size_t half = strlen(text) / 2;
	const struct iovec parts[] = {{got, half}, {got + half, strlen(text) - half}};
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
	ck_assert_int_eq(opened.ops->append(file, span_text("there"), 6, &err), 0);
	expect_content(&opened, file, "hello there");
	ck_assert_int_eq(opened.ops->truncate(file, 5, &err), 0);
	expect_content(&opened, file, "hello");
	opened.ops->close(file);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), 0);
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
	const struct iovec parts[] = {{got, 4}, {got + 4, 4}};
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

/* The ranges begin and end inside blocks, at their edges, and at the end of the file. */
START_TEST(reads_past_the_page_cache_fit_any_range)
{
	enum { SIZE = 3 * 4096 + 100 };
	const uint64_t ranges[][2] = {{0, 1}, {0, SIZE}, {4095, 2}, {4096, 4096}, {1, SIZE - 1},
		{SIZE - 1, 1}, {8192, SIZE - 8192}, {100, 5000}};
	struct opened opened;
	struct error err = {0};
	struct backend_file *file;
	uint8_t got[SIZE];
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 5, SIZE);
	opened_open(&opened, _i);
	opened.ops->close(opened_create(&opened, name_a, ""));
	ck_assert_int_eq(opened.ops->put(opened.backend, name_a, span_of(bytes, SIZE), &err), 0);
	ck_assert_int_eq(opened.ops->open_uncached(opened.backend, name_b, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(opened.ops->open_uncached(opened.backend, name_a, &file, &err), 0);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		const size_t half = (size_t)ranges[i][1] / 2;
		const struct iovec parts[] = {
			{got, half}, {got + half, (size_t)ranges[i][1] - half}};
		memset(got, 0, sizeof got);
		ck_assert_msg(
			opened.ops->read(file, parts, 2, ranges[i][0], &err) == 0, "%s", err.text);
		ck_assert_mem_eq(got, bytes + ranges[i][0], ranges[i][1]);
	}
	const struct iovec part = {got, 2};
	ck_assert_int_eq(opened.ops->read(file, &part, 1, SIZE - 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(opened.ops->read(file, &part, 1, 4 * 4096, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	opened.ops->close(file);
	opened_close(&opened);
	free(bytes);
}
END_TEST

static int count_name(void *taker, const char *name, uint64_t size, struct error *err)
{
	(void)err;
	ck_assert_str_eq(name, name_a);
	ck_assert_uint_eq(size, 5);
	++*(unsigned *)taker;
	return 0;
}

static int count_any(void *taker, const char *name, uint64_t size, struct error *err)
{
	(void)err;
	ck_assert_int_eq(strncmp(name, name_a, strlen(name_a)), 0);
	ck_assert_uint_eq(size, 5);
	++*(unsigned *)taker;
	return 0;
}

START_TEST(what_is_set_aside_comes_back)
{
	struct opened opened;
	struct error err = {0};
	struct backend_file *file;
	unsigned here = 0;
	unsigned aside = 0;
	opened_open(&opened, _i);
	ck_assert_int_eq(opened.ops->list_aside(opened.backend, count_name, &aside, &err), 0);
	ck_assert_int_eq(opened.ops->bring_back(opened.backend, name_a, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	opened.ops->close(opened_create(&opened, name_a, "bytes"));
	ck_assert_int_eq(opened.ops->set_aside(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), 0);
	ck_assert_int_eq(opened.ops->list(opened.backend, count_name, &here, &err), 0);
	ck_assert_int_eq(opened.ops->list_aside(opened.backend, count_name, &aside, &err), 0);
	ck_assert_uint_eq(here, 0);
	ck_assert_uint_eq(aside, 1);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(opened.ops->bring_back(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), 0);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), 0);
	expect_content(&opened, file, "bytes");
	opened.ops->close(file);
	opened_close(&opened);
}
END_TEST

/* The operator put a file back, and it is not the one that was set aside. */
START_TEST(what_was_set_aside_is_not_replaced)
{
	static const char *const texts[] = {"whole", "part1", "part2"};
	struct opened opened;
	struct error err = {0};
	struct backend_file *file;
	unsigned aside = 0;
	opened_open(&opened, _i);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		opened.ops->close(opened_create(&opened, name_a, texts[i]));
		ck_assert_msg(
			opened.ops->set_aside(opened.backend, name_a, &err) == 0, "%s", err.text);
	}
	ck_assert_int_eq(opened.ops->list_aside(opened.backend, count_any, &aside, &err), 0);
	ck_assert_uint_eq(aside, 3);
	ck_assert_int_eq(opened.ops->bring_back(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &file, &err), 0);
	expect_content(&opened, file, texts[0]);
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
	ck_assert_int_eq(
		opened.ops->put(opened.backend, name_index, span_text("a longer first text"), &err),
		0);
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

static int listing_take(void *taker, const char *name, uint64_t size, struct error *err)
{
	(void)size;
	struct listing *const listing = taker;
	unsigned *const seen = strcmp(name, name_a) == 0 ? &listing->seen_a
		: strcmp(name, name_b) == 0              ? &listing->seen_b
							 : &listing->others;
	++*seen;
	return listing->opened->ops->remove(listing->opened->backend, name, err);
}

static int listing_refuse(void *taker, const char *name, uint64_t size, struct error *err)
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
	struct listing listing = {.opened = &opened};
	ck_assert_int_eq(opened.ops->list(opened.backend, listing_take, &listing, &err), 0);
	ck_assert_uint_eq(listing.seen_a, 1);
	ck_assert_uint_eq(listing.seen_b, 1);
	ck_assert_uint_eq(listing.others, 0);
	listing = (struct listing){.opened = &opened};
	ck_assert_int_eq(opened.ops->list(opened.backend, listing_take, &listing, &err), 0);
	ck_assert_uint_eq(listing.seen_a + listing.seen_b, 0);
	opened_close(&opened);
}
END_TEST

/* A pack on a disk that remembers what was synced. Its folder and its content are synced
 * already. */
struct powered {
	char *scratch;
	char packs[4096];
	char aside[4096];
	struct power_disk *disk;
	struct backend *backend;
};

/* `is_late`: the folder that the file moves to was made by a process that was then killed, so its
 * name is not on the disk. */
static void powered_open(struct powered *powered, bool is_aside, bool is_late)
{
	struct error err = {0};
	char path[8192];
	char part[8192];
	powered->scratch = unit_scratch_make();
	snprintf(powered->packs, sizeof powered->packs, "%s/packs", powered->scratch);
	snprintf(powered->aside, sizeof powered->aside, "%s/set-aside", powered->scratch);
	snprintf(part, sizeof part, "%s/aa", powered->packs);
	ck_assert_int_eq(file_make_folder(file_system(),
				 is_aside && is_late ? powered->packs : part, 0700, &err),
		0);
	if (is_aside)
		ck_assert_int_eq(file_make_folder(file_system(), powered->aside, 0700, &err), 0);
	snprintf(path, sizeof path, "%s/%s", is_aside ? powered->aside : powered->packs,
		is_aside ? name_a : "aa/aa000000000000000000000000000001.pack");
	ck_assert_int_eq(file_place(file_system(), path, span_text("bytes"), 0600, &err), 0);
	powered->disk = power_disk_new(powered->scratch);
	if (is_aside && is_late)
		ck_assert_int_eq(file_make_folder(file_system(), part, 0700, &err), 0);
	if (!is_aside && is_late)
		ck_assert_int_eq(file_make_folder(file_system(), powered->aside, 0700, &err), 0);
	powered->backend = backend_folder_open(
		powered->packs, powered->aside, power_disk_files(powered->disk), &err);
	ck_assert_msg(powered->backend != NULL, "%s", err.text);
}

static void powered_close(struct powered *powered)
{
	powered->backend->ops->free(powered->backend);
	power_disk_free(powered->disk);
	unit_scratch_remove(powered->scratch);
}

static bool has_bytes(const char *folder, const char *relative)
{
	char path[8192];
	uint64_t size = 0;
	struct error err;
	snprintf(path, sizeof path, "%s/%s", folder, relative);
	return file_exists(path) && file_size(path, &size, &err) == 0 && size == 5;
}

/* The file must be in one place or in both. */
static void expect_kept(const char *folder, const char *line)
{
	ck_assert_msg(has_bytes(folder, "packs/aa/aa000000000000000000000000000001.pack") ||
			has_bytes(folder, "set-aside/aa000000000000000000000000000001.pack"),
		"cut before \"%s\": it is gone", line);
}

/* Set aside and brought back, with a power cut before each operation. */
START_TEST(what_moves_is_never_nowhere)
{
	bool comes_back = _i / POWER_CUTS % 2 == 1;
	struct powered powered;
	struct error err = {0};
	size_t count;
	powered_open(&powered, comes_back, _i >= 2 * POWER_CUTS);
	const struct backend_ops *ops = powered.backend->ops;
	power_disk_cut_each(powered.disk, (enum power_cut)(_i % POWER_CUTS));
	ck_assert_int_eq(
		(comes_back ? ops->bring_back : ops->set_aside)(powered.backend, name_a, &err), 0);
	ck_assert_msg(ops->sync_names(powered.backend, &err) == 0, "%s", err.text);
	power_disk_cut_now(powered.disk, "nothing more");
	const struct power_taken *taken = power_disk_taken(powered.disk, &count);
	ck_assert_uint_gt(count, 1);
	for (size_t i = 0; i < count; i++)
		expect_kept(taken[i].folder, taken[i].line);
	const char *last = taken[count - 1].folder;
	ck_assert_int_eq(
		has_bytes(last, "packs/aa/aa000000000000000000000000000001.pack"), comes_back);
	ck_assert_int_eq(
		has_bytes(last, "set-aside/aa000000000000000000000000000001.pack"), !comes_back);
	powered_close(&powered);
}
END_TEST

START_TEST(what_was_removed_stays_away_once_names_are_synced)
{
	struct powered powered;
	struct error err = {0};
	powered_open(&powered, false, false);
	const struct backend_ops *ops = powered.backend->ops;
	ck_assert_int_eq(ops->remove(powered.backend, name_a, &err), 0);
	/* neither the file nor its folder is there */
	ck_assert_int_eq(ops->remove(powered.backend, name_b, &err), 0);
	char *before = power_disk_cut(powered.disk, POWER_CUT_DROPS_ALL);
	ck_assert(has_bytes(before, "packs/aa/aa000000000000000000000000000001.pack"));
	ck_assert_msg(ops->sync_names(powered.backend, &err) == 0, "%s", err.text);
	char *after = power_disk_cut(powered.disk, POWER_CUT_DROPS_ALL);
	ck_assert(!has_bytes(after, "packs/aa/aa000000000000000000000000000001.pack"));
	power_disk_forget_trace(powered.disk);
	ck_assert_int_eq(ops->sync_names(powered.backend, &err), 0);
	ck_assert_str_eq(power_disk_trace(powered.disk), ""); /* nothing is left to do */
	unit_scratch_remove(before);
	unit_scratch_remove(after);
	powered_close(&powered);
}
END_TEST

/* Names left both folders, and either sync fails: the next call must make up for it. */
START_TEST(names_that_could_not_be_synced_are_synced_by_the_next_call)
{
	struct opened opened;
	struct error err = {0};
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	opened.ops->close(opened_create(&opened, name_a, "a"));
	opened.ops->close(opened_create(&opened, name_b, "b"));
	ck_assert_int_eq(opened.ops->set_aside(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), 0);
	ck_assert_int_eq(opened.ops->bring_back(opened.backend, name_a, &err), 0);
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_b, &err), 0);
	for (int i = 0; i < 2; i++) { /* of set-aside */
		file_faults_init(&opened.faults, FILE_FAULT_SYNC, 0, EIO);
		ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), -1);
	}
	for (int i = 0; i < 2; i++) { /* of packs/ff */
		file_faults_init(&opened.faults, FILE_FAULT_SYNC, i == 0 ? 1 : 0, EIO);
		ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), -1);
	}
	file_faults_init(&opened.faults, 0, 0, 0);
	ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), 0);
	file_faults_init(&opened.faults, FILE_FAULT_SYNC, 0, EIO);
	/* nothing is left to do */
	ck_assert_int_eq(opened.ops->sync_names(opened.backend, &err), 0);
	file_faults_init(&opened.faults, 0, 0, 0);
	opened_close(&opened);
}
END_TEST

static int no_link(const struct file_ops *ops, const char *from, const char *to)
{
	(void)ops, (void)from, (void)to;
	errno = EPERM;
	return -1;
}

/* What a power cut leaves, and a file system without hard links. */
START_TEST(a_file_in_both_places_is_moved_all_the_same)
{
	struct opened opened;
	struct error err = {0};
	char path[8192];
	unsigned here = 0;
	unsigned aside = 0;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	opened.ops->close(opened_create(&opened, name_a, "bytes"));
	snprintf(path, sizeof path, "%s/%s", opened.aside, name_a);
	ck_assert_int_eq(file_make_folder(file_system(), opened.aside, 0700, &err), 0);
	char *from = memory_new(8192);
	snprintf(from, 8192, "%s/aa/%s", opened.folder, name_a);
	if (_i == 0)
		ck_assert_int_eq(file_system()->link(file_system(), from, path), 0);
	if (_i == 1)
		opened.faults.ops.link = no_link;
	ck_assert_msg(opened.ops->set_aside(opened.backend, name_a, &err) == 0, "%s", err.text);
	ck_assert_int_eq(opened.ops->list(opened.backend, count_name, &here, &err), 0);
	ck_assert_int_eq(opened.ops->list_aside(opened.backend, count_name, &aside, &err), 0);
	ck_assert_uint_eq(here, 0);
	ck_assert_uint_eq(aside, 1);
	free(from);
	opened_close(&opened);
}
END_TEST

/* The n-th system call fails, for every n until none does: the file has the old bytes or the new,
 * never a mix. */
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
		file_faults_init(&opened.faults,
			FILE_FAULT_OPEN | FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME, n,
			ENOSPC);
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
			/* open, write, rename; else also sync, and open and sync of the folder */
			ck_assert_int_eq(n, (is_derived ? 3 : 6));
			break;
		}
		ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	}
	opened_close(&opened);
}
END_TEST

/* The first file makes the folder xx of both durable. */
START_TEST(a_second_file_costs_two_syncs)
{
	struct opened opened;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	struct error err = {0};
	struct backend_file *const first =
		opened_create(&opened, "ab00000000000000000000000000000f.pack", "text");
	file_faults_init(&opened.faults, FILE_FAULT_SYNC, 2, EIO);
	/* the third sync, of the folder above */
	ck_assert_int_eq(opened.ops->sync(first, &err), -1);
	file_faults_init(&opened.faults, 0, 0, 0);
	ck_assert_int_eq(opened.ops->sync(first, &err), 0);
	struct backend_file *const second =
		opened_create(&opened, "ab00000000000000000000000000001f.pack", "text");
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
	static const int kinds[] = {
		FILE_FAULT_OPEN, FILE_FAULT_WRITE, FILE_FAULT_SYNC, FILE_FAULT_UNLINK};
	struct opened opened;
	opened_open(&opened, PACK_FIXTURE_FOLDER);
	struct error err = {0};
	struct backend_file *const file = opened_create(&opened, name_a, "text");
	struct backend_file *other;
	file_faults_init(&opened.faults, kinds[_i], 0, EIO);
	opened.faults.sticky = true;
	ck_assert_int_eq(opened.ops->open(opened.backend, name_a, &other, &err),
		kinds[_i] == FILE_FAULT_OPEN ? -1 : 0);
	if (kinds[_i] != FILE_FAULT_OPEN)
		opened.ops->close(other);
	ck_assert_int_eq(opened.ops->append(file, span_text("text"), 4, &err),
		kinds[_i] == FILE_FAULT_WRITE ? -1 : 0);
	ck_assert_int_eq(
		opened.ops->truncate(file, 0, &err), kinds[_i] == FILE_FAULT_WRITE ? -1 : 0);
	ck_assert_int_eq(opened.ops->sync(file, &err),
		kinds[_i] == FILE_FAULT_SYNC || kinds[_i] == FILE_FAULT_OPEN ? -1 : 0);
	ck_assert_int_eq(opened.ops->remove(opened.backend, name_a, &err),
		kinds[_i] == FILE_FAULT_UNLINK ? -1 : 0);
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
	tcase_add_loop_test(tcase, reads_past_the_page_cache_fit_any_range, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, what_is_set_aside_comes_back, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, what_was_set_aside_is_not_replaced, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, what_moves_is_never_nowhere, 0, 4 * POWER_CUTS);
	tcase_add_test(tcase, what_was_removed_stays_away_once_names_are_synced);
	tcase_add_test(tcase, names_that_could_not_be_synced_are_synced_by_the_next_call);
	tcase_add_loop_test(tcase, a_file_in_both_places_is_moved_all_the_same, 0, 2);
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
