/* The last acknowledgement, in two slots. After any kill or power cut the newest whole note is
 * read, and never more than was noted. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"
#include "storage/core/acknowledged.h"
#include "tests/unit/power_disk.h"

enum { SLOT_STEP = 4096, SLOT_BYTES = 96, VERSION_AT = 8, TURN_AT = 12, SUM_AT = 88 };

static char *folder;
static char path[512];
static struct acknowledgement last;

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/acknowledged", folder);
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static struct acknowledged *open_with(const struct file_ops *files)
{
	struct error err = {0};
	struct acknowledged *acknowledged = acknowledged_open(files, path, &last, &err);
	ck_assert_msg(acknowledged != NULL, "%s", err.text);
	return acknowledged;
}

/* The n-th acknowledgement. */
static struct acknowledgement telling(unsigned n)
{
	struct acknowledgement now = {.store = {.id = {9, 8, 7}, .life = 5},
		.change = 1000 + n,
		.log_salt = UINT64_C(0xfedcba9876543210) + n,
		.log_frames = 40 + n};
	return now;
}

static void note(struct acknowledged *acknowledged, unsigned n)
{
	struct acknowledgement now = telling(n);
	struct error err = {0};
	ck_assert_msg(acknowledged_note(acknowledged, &now, &err) == 0, "%s", err.text);
}

static void read_last(const char *from)
{
	struct error err = {0};
	ck_assert_msg(acknowledged_read(from, &last, &err) == 0, "%s", err.text);
}

/* n is 0 when nothing was acknowledged. */
static void expect(unsigned n)
{
	struct acknowledgement said = telling(n);
	read_last(path);
	ck_assert_uint_eq(last.store.life, n == 0 ? 0 : said.store.life);
	if (n == 0)
		return;
	ck_assert_mem_eq(last.store.id, said.store.id, STORE_ID_BYTES);
	ck_assert_int_eq(last.change, said.change);
	ck_assert(last.log_salt == said.log_salt);
	ck_assert_uint_eq(last.log_frames, said.log_frames);
}

static void read_bytes(uint8_t *out, size_t len)
{
	int fd = open(path, O_RDONLY);
	ck_assert_int_eq(pread(fd, out, len, 0), len);
	close(fd);
}

static void write_bytes(const void *bytes, size_t len, off_t at)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(pwrite(fd, bytes, len, at), len);
	close(fd);
}

START_TEST(what_was_noted_last_is_read)
{
	struct acknowledged *acknowledged = open_with(file_system());
	ck_assert_uint_eq(last.store.life, 0);
	ck_assert(!acknowledged_is_exact(&last));
	for (unsigned n = 1; n <= 5; n++) {
		note(acknowledged, n);
		expect(n);
		ck_assert(acknowledged_is_exact(&last)); /* same machine, no restart */
	}
	acknowledged_close(acknowledged);
	acknowledged = open_with(file_system()); /* continues with the next turn */
	ck_assert_int_eq(last.change, telling(5).change);
	note(acknowledged, 6);
	expect(6);
	note(acknowledged, 7);
	expect(7);
	acknowledged_close(acknowledged);
	last.boot[3] ^= 1;
	ck_assert(!acknowledged_is_exact(&last));
}
END_TEST

/* A copy that was put back says nothing about the notes after it was made. */
START_TEST(a_copy_is_not_exact)
{
	static uint8_t bytes[SLOT_STEP + SLOT_BYTES];
	struct acknowledged *acknowledged = open_with(file_system());
	for (unsigned n = 1; n <= 3; n++)
		note(acknowledged, n);
	acknowledged_close(acknowledged);
	read_bytes(bytes, sizeof bytes);
	char kept[600];
	snprintf(kept, sizeof kept, "%s.kept", path);
	ck_assert_int_eq(rename(path, kept), 0);
	write_bytes(bytes, sizeof bytes, 0);
	expect(3);
	ck_assert(!acknowledged_is_exact(&last));
	ck_assert_int_eq(rename(kept, path), 0);
	expect(3);
	ck_assert(acknowledged_is_exact(&last));
}
END_TEST

START_TEST(a_note_leaves_the_one_before_it_alone)
{
	uint8_t before[SLOT_STEP + SLOT_BYTES];
	uint8_t after[SLOT_STEP + SLOT_BYTES];
	struct acknowledged *acknowledged = open_with(file_system());
	note(acknowledged, 1);
	note(acknowledged, 2);
	for (unsigned n = 3; n < 7; n++) {
		read_bytes(before, sizeof before);
		note(acknowledged, n);
		read_bytes(after, sizeof after);
		off_t kept = memcmp(before, after, SLOT_BYTES) == 0 ? 0 : SLOT_STEP;
		ck_assert_mem_eq(before + kept, after + kept, SLOT_BYTES);
		ck_assert_mem_ne(
			before + (SLOT_STEP - kept), after + (SLOT_STEP - kept), SLOT_BYTES);
		/* A write that is torn at any byte loses only the new note. */
		for (size_t cut = 1; cut < SLOT_BYTES; cut++) {
			write_bytes(before + (SLOT_STEP - kept) + cut, SLOT_BYTES - cut,
				SLOT_STEP - kept + (off_t)cut);
			read_last(path);
			bool is_whole =
				memcmp(after + (SLOT_STEP - kept) + cut,
					before + (SLOT_STEP - kept) + cut, SLOT_BYTES - cut) == 0;
			ck_assert_int_eq(last.change, telling(is_whole ? n : n - 1).change);
			write_bytes(after + (SLOT_STEP - kept), SLOT_BYTES, SLOT_STEP - kept);
		}
		expect(n);
	}
	acknowledged_close(acknowledged);
}
END_TEST

START_TEST(a_slot_is_as_the_format_says)
{
	uint8_t slot[SLOT_BYTES];
	struct acknowledgement said = telling(2);
	struct acknowledged *acknowledged = open_with(file_system());
	note(acknowledged, 1);
	note(acknowledged, 2); /* the first turn is 1; even turns go to the first slot */
	read_bytes(slot, sizeof slot);
	expect(2);
	ck_assert_mem_eq(slot, "DBKTACKN", 8);
	ck_assert_uint_eq(little_endian_get(slot + VERSION_AT, 4), 1);
	ck_assert_uint_eq(little_endian_get(slot + TURN_AT, 4), 2);
	ck_assert_mem_eq(slot + 16, said.store.id, STORE_ID_BYTES);
	ck_assert_uint_eq(little_endian_get(slot + 32, 8), said.store.life);
	ck_assert_uint_eq(little_endian_get(slot + 40, 8), (uint64_t)said.change);
	ck_assert(little_endian_get(slot + 48, 8) == said.log_salt);
	ck_assert_uint_eq(little_endian_get(slot + 56, 4), said.log_frames);
	ck_assert_mem_eq(slot + 64, last.boot, BOOT_ID_BYTES);
	ck_assert(little_endian_get(slot + SUM_AT, 8) == xxh3_64(span_of(slot, SUM_AT)));
	acknowledged_close(acknowledged);
}
END_TEST

START_TEST(a_flipped_bit_takes_its_slot_out)
{
	uint8_t bytes[SLOT_STEP + SLOT_BYTES];
	struct acknowledged *acknowledged = open_with(file_system());
	note(acknowledged, 1); /* in the second slot */
	note(acknowledged, 2); /* in the first slot */
	acknowledged_close(acknowledged);
	read_bytes(bytes, sizeof bytes);
	for (unsigned bit = 0; bit < 8 * SLOT_BYTES; bit++) {
		uint8_t flipped = (uint8_t)(bytes[bit / 8] ^ (1u << bit % 8));
		write_bytes(&flipped, 1, bit / 8);
		expect(1);
		write_bytes(&bytes[bit / 8], 1, bit / 8);
		flipped = (uint8_t)(bytes[SLOT_STEP + bit / 8] ^ (1u << bit % 8));
		write_bytes(&flipped, 1, SLOT_STEP + bit / 8);
		expect(2);
		write_bytes(&bytes[SLOT_STEP + bit / 8], 1, SLOT_STEP + bit / 8);
	}
	ck_assert_int_eq(truncate(path, SLOT_STEP + SLOT_BYTES - 1), 0);
	expect(2);
	ck_assert_int_eq(truncate(path, SLOT_BYTES - 1), 0);
	expect(0);
}
END_TEST

/* Writes a slot as docs/FORMAT.md describes it. */
static void put_slot(off_t at, uint32_t version, uint32_t turn, int64_t change)
{
	uint8_t slot[SLOT_BYTES] = "DBKTACKN";
	little_endian_put(slot + VERSION_AT, version, 4);
	little_endian_put(slot + TURN_AT, turn, 4);
	slot[32] = 1; /* life */
	little_endian_put(slot + 40, (uint64_t)change, 8);
	little_endian_put(slot + SUM_AT, xxh3_64(span_of(slot, SUM_AT)), 8);
	write_bytes(slot, sizeof slot, at);
}

START_TEST(turns_go_round)
{
	put_slot(0, 1, UINT32_MAX - 1, 70);
	put_slot(SLOT_STEP, 1, UINT32_MAX, 71);
	read_last(path);
	ck_assert_int_eq(last.change, 71);
	struct acknowledged *acknowledged = open_with(file_system());
	note(acknowledged, 1);
	expect(1);
	note(acknowledged, 2);
	expect(2);
	acknowledged_close(acknowledged);
}
END_TEST

START_TEST(another_version_is_refused)
{
	struct error err = {0};
	put_slot(0, 1, 6, 70);
	put_slot(SLOT_STEP, _i == 0 ? 2 : 0, 5, 71); /* also in the older slot */
	ck_assert_ptr_null(acknowledged_open(file_system(), path, &last, &err));
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	err = (struct error){0};
	ck_assert_int_eq(acknowledged_read(path, &last, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_msg(
		strstr(err.text, _i == 0 ? "version 2" : "version 0") != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_file_that_was_never_written_goes)
{
	acknowledged_close(open_with(file_system()));
	ck_assert(!file_exists(path));
	struct acknowledged *acknowledged = open_with(file_system());
	note(acknowledged, 1);
	acknowledged_close(acknowledged);
	acknowledged_close(open_with(file_system()));
	expect(1);
	acknowledged_close(NULL);
}
END_TEST

static int refuse_open(const struct file_ops *ops, const char *name, int flags, mode_t mode)
{
	(void)ops, (void)name, (void)mode;
	ck_assert((flags & O_ACCMODE) == O_RDWR);
	errno = EROFS;
	return -1;
}

START_TEST(a_disk_that_takes_no_writes_is_told_apart_and_read)
{
	struct file_ops files = *file_system();
	struct error err = {0};
	put_slot(0, 1, 2, 70);
	files.open = refuse_open;
	ck_assert_ptr_null(acknowledged_open(&files, path, &last, &err));
	ck_assert_int_eq(err.os_errno, EROFS);
	read_last(path);
	ck_assert_int_eq(last.change, 70);
}
END_TEST

/* A note after a failure goes to the same slot, so that the other one stays. */
START_TEST(a_note_that_fails_costs_no_other)
{
	struct file_faults faults;
	struct error err = {0};
	struct acknowledgement now = telling(3);
	file_faults_init(&faults, 0, 0, 0);
	struct acknowledged *acknowledged = open_with(&faults.ops);
	note(acknowledged, 1);
	note(acknowledged, 2);
	for (int i = 0; i < 3; i++) {
		file_faults_init(&faults, FILE_FAULT_WRITE, 0, EIO);
		ck_assert_int_eq(acknowledged_note(acknowledged, &now, &err), -1);
	}
	expect(2);
	file_faults_init(&faults, 0, 0, 0);
	note(acknowledged, 4);
	expect(4);
	put_slot(0, 1, 0, 1); /* 4 is in the second slot: it replaced 1, and not 2 */
	expect(4);
	acknowledged_close(acknowledged);
}
END_TEST

START_TEST(notes_are_not_synced_and_a_sync_makes_them_last)
{
	struct power_disk *disk = power_disk_new(folder);
	struct error err = {0};
	char left[600];
	struct acknowledged *acknowledged = open_with(power_disk_files(disk));
	power_disk_forget_trace(disk);
	note(acknowledged, 1);
	ck_assert_str_eq(power_disk_trace(disk), "write acknowledged\n");
	ck_assert_int_eq(acknowledged_sync(acknowledged, &err), 0);
	ck_assert_str_eq(
		power_disk_trace(disk), "write acknowledged\nsync acknowledged\nsync-folder .\n");
	note(acknowledged, 2);
	char *cut = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	snprintf(left, sizeof left, "%s/acknowledged", cut);
	read_last(left);
	ck_assert_int_eq(
		last.change, telling(1).change); /* earlier than the last note, never later */
	unit_scratch_remove(cut);
	ck_assert_int_eq(acknowledged_sync(acknowledged, &err), 0);
	ck_assert_uint_eq(power_disk_count(disk, "sync-folder ."), 1);
	cut = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	snprintf(left, sizeof left, "%s/acknowledged", cut);
	read_last(left);
	ck_assert_int_eq(last.change, telling(2).change);
	unit_scratch_remove(cut);
	acknowledged_close(acknowledged);
	power_disk_free(disk);
}
END_TEST

/* The process that made the file was killed before it synced the name. */
START_TEST(a_name_that_another_process_made_is_synced)
{
	struct power_disk *disk = power_disk_new(folder);
	struct error err = {0};
	char left[600];
	struct acknowledged *acknowledged = open_with(power_disk_files(disk));
	note(acknowledged, 1);
	acknowledged_close(acknowledged);
	acknowledged = open_with(power_disk_files(disk));
	note(acknowledged, 2);
	ck_assert_int_eq(acknowledged_sync(acknowledged, &err), 0);
	char *cut = power_disk_cut(disk, POWER_CUT_DROPS_ALL);
	snprintf(left, sizeof left, "%s/acknowledged", cut);
	read_last(left);
	ck_assert_int_eq(last.change, telling(2).change);
	unit_scratch_remove(cut);
	acknowledged_close(acknowledged);
	power_disk_free(disk);
}
END_TEST

START_TEST(a_sync_that_fails_is_told)
{
	struct file_faults faults;
	struct error err = {0};
	file_faults_init(&faults, 0, 0, 0);
	struct acknowledged *acknowledged = open_with(&faults.ops);
	note(acknowledged, 1);
	for (int n = 0; n < 2; n++) { /* the sync of the file, then of its folder */
		file_faults_init(&faults, FILE_FAULT_SYNC, n, EIO);
		ck_assert_int_eq(acknowledged_sync(acknowledged, &err), -1);
	}
	file_faults_init(&faults, FILE_FAULT_SYNC, 1, EIO);
	/* the name must still be synced */
	ck_assert_int_eq(acknowledged_sync(acknowledged, &err), -1);
	file_faults_init(&faults, 0, 0, 0);
	ck_assert_int_eq(acknowledged_sync(acknowledged, &err), 0);
	acknowledged_close(acknowledged);
}
END_TEST

Suite *test_acknowledged_suite(void);
Suite *test_acknowledged_suite(void)
{
	Suite *suite = suite_create("acknowledged");
	TCase *tests = tcase_create("acknowledged");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_was_noted_last_is_read);
	tcase_add_test(tests, a_copy_is_not_exact);
	tcase_add_test(tests, a_note_leaves_the_one_before_it_alone);
	tcase_add_test(tests, a_slot_is_as_the_format_says);
	tcase_add_test(tests, a_flipped_bit_takes_its_slot_out);
	tcase_add_test(tests, turns_go_round);
	tcase_add_loop_test(tests, another_version_is_refused, 0, 2);
	tcase_add_test(tests, a_file_that_was_never_written_goes);
	tcase_add_test(tests, a_disk_that_takes_no_writes_is_told_apart_and_read);
	tcase_add_test(tests, a_note_that_fails_costs_no_other);
	tcase_add_test(tests, notes_are_not_synced_and_a_sync_makes_them_last);
	tcase_add_test(tests, a_name_that_another_process_made_is_synced);
	tcase_add_test(tests, a_sync_that_fails_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
