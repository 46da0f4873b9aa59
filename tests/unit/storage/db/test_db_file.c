/* Flips and cuts behind SQLite: each is an error, or is mended, and never an answer. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "storage/db/db_file.h"
#include "storage/db/db_internal.h"
#include "storage/db/log_sums.h"
#include "storage/db/page_mender.h"

enum { ROWS = 400 };

static char *folder;
static char path[512];
static char log_path[600];
static struct db *db;

static const char SQL_INSERT[] = "INSERT INTO t (id, bytes) VALUES (?1, ?2)";
static const char SQL_OLD[] =
	"PRAGMA page_size=4096; PRAGMA journal_mode=WAL;"
	" CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
	" WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 399)"
	" INSERT INTO t SELECT i, zeroblob(200) FROM n";
static const char SQL_SUM[] =
	"SELECT COUNT(*), SUM(id), SUM(length(bytes)) FROM t NOT INDEXED WHERE bytes >= x''";

static struct db *open_it(enum db_mode mode)
{
	struct error err = {0};
	struct db *opened = db_open(path, mode, &err);
	ck_assert_msg(opened != NULL, "%s", err.text);
	return opened;
}

static void fill(int64_t from, int64_t to)
{
	struct error err = {0};
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (int64_t id = from; id < to; id++) {
		char text[200];
		const struct span bytes = span_of(text, sizeof text);
		memset(text, 'a' + (int)(id % 26), sizeof text);
		ck_assert_msg(db_run(db, SQL_INSERT, &err, db_i64(id), db_blob(bytes)) == 0, "%s",
			err.text);
	}
	ck_assert_int_eq(db_commit(db, &err), 0);
}

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/test.db", folder);
	snprintf(log_path, sizeof log_path, "%s-wal", path);
	db = open_it(DB_WRITE);
	ck_assert_int_eq(
		db_run_script(
			db, "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", &err),
		0);
	fill(0, ROWS);
}

static void tear_down(void)
{
	db_close(db);
	unit_scratch_remove(folder);
}

static void reopen(void)
{
	db_close(db); /* the last connection: everything goes into the file */
	db = open_it(DB_WRITE);
}

/* Returns 0 when all rows are right, else -1. */
static int read_all(struct db *from, struct error *err)
{
	struct db_statement *statement = db_query(from, SQL_SUM, err);
	if (db_step(statement, err) != 1)
		return -1;
	ck_assert_int_eq(db_column_i64(statement, 0), ROWS);
	ck_assert_int_eq(db_column_i64(statement, 1), ROWS * (ROWS - 1) / 2);
	ck_assert_int_eq(db_column_i64(statement, 2), ROWS * 200);
	db_reset(statement);
	return 0;
}

static void flip(const char *of, off_t at, uint8_t mask)
{
	uint8_t byte;
	int fd = open(of, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= mask;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static off_t size_of(const char *of)
{
	struct stat facts;
	ck_assert_int_eq(stat(of, &facts), 0);
	return facts.st_size;
}

START_TEST(each_page_has_its_checksum)
{
	uint8_t page[PAGE_BYTES];
	reopen();
	int fd = open(path, O_RDONLY);
	uint32_t pages = (uint32_t)(size_of(path) / PAGE_BYTES);
	ck_assert_uint_gt(pages, 20);
	for (uint32_t number = 1; number <= pages; number++) {
		ck_assert_int_eq(
			pread(fd, page, sizeof page, (off_t)(number - 1) * PAGE_BYTES), PAGE_BYTES);
		ck_assert_msg(page_sum_matches(page, number), "page %u", number);
		ck_assert(!page_sum_matches(page, number + 1)); /* as a page in another place */
	}
	close(fd);
}
END_TEST

START_TEST(a_flipped_bit_is_put_back)
{
	struct error err = {0};
	off_t at = (off_t)_i * 4096 + (37 * _i * _i + 5) % 4096;
	reopen();
	if (at >= size_of(path))
		return;
	db_close(db);
	flip(path, at, (uint8_t)(1u << (_i % 8)));
	db = open_it(DB_WRITE);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	/* reads the other pages too */
	ck_assert_int_eq(db_run_script(db, "PRAGMA quick_check", &err), 0);
	ck_assert_uint_ge(db_mended(db), 1);
	ck_assert_uint_eq(db_damage(db), 0);
	reopen();
	ck_assert_int_eq(read_all(db, &err), 0);
	ck_assert_uint_eq(db_mended(db), 0); /* it was written back to the disk */
}
END_TEST

START_TEST(a_damaged_page_is_no_answer)
{
	struct error err = {0};
	reopen();
	off_t last = size_of(path) - PAGE_BYTES;
	flip(path, last + 2000, 0x11);
	ck_assert_int_eq(read_all(db, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	char wanted[40];
	snprintf(wanted, sizeof wanted, "page %d does not match", (int)(last / PAGE_BYTES) + 1);
	ck_assert_msg(strstr(err.text, wanted) != NULL, "%s", err.text);
	ck_assert_uint_ge(db_damage(db), 1);
	flip(path, last + 2000, 0x11);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
}
END_TEST

START_TEST(a_page_in_the_place_of_another_is_no_answer)
{
	struct error err = {0};
	uint8_t page[PAGE_BYTES];
	reopen();
	off_t last = size_of(path) - PAGE_BYTES;
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, page, sizeof page, last - PAGE_BYTES), PAGE_BYTES);
	ck_assert_int_eq(pwrite(fd, page, sizeof page, last), PAGE_BYTES);
	close(fd);
	ck_assert_int_eq(read_all(db, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
}
END_TEST

START_TEST(a_file_that_was_cut_is_no_answer)
{
	struct error err = {0};
	reopen();
	ck_assert_int_eq(truncate(path, size_of(path) - PAGE_BYTES), 0);
	ck_assert_int_eq(read_all(db, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
}
END_TEST

/* SQLite proves a frame when it recovers the log, and never again. */
START_TEST(a_flip_in_the_log_is_no_answer_and_never_gets_into_the_file)
{
	struct error err = {0};
	struct db *reader = open_it(DB_READ);
	off_t frames = (size_of(log_path) - 32) / 4120;
	ck_assert_int_gt(frames, 20);
	for (off_t frame = 0; frame < frames; frame++)
		flip(log_path, 32 + frame * 4120 + 24 + 3000, 0x04);
	ck_assert_int_eq(read_all(reader, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(db_checkpoint_passive(db, &err), -1);
	for (off_t frame = 0; frame < frames; frame++)
		flip(log_path, 32 + frame * 4120 + 24 + 3000, 0x04);
	ck_assert_msg(read_all(reader, &err) == 0, "%s", err.text);
	ck_assert_msg(db_checkpoint_passive(db, &err) == 0, "%s", err.text);
	db_close(reader);
	reopen();
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
}
END_TEST

START_TEST(opening_changes_nothing)
{
	struct error err = {0};
	int64_t vacuum = 0;
	ck_assert_int_eq(db_read_number(db, "PRAGMA auto_vacuum", &vacuum, &err), 0);
	ck_assert_int_eq(vacuum, 2);
	ck_assert_int_eq(
		db_run_script(db, "UPDATE t SET bytes = zeroblob(200) WHERE id < 20", &err), 0);
	off_t before = size_of(log_path);
	struct db *other = open_it(DB_WRITE);
	db_close(other);
	ck_assert_int_eq(size_of(log_path), before);
}
END_TEST

/* The files of a killed server, with damage on a page that opening needs: nothing may go from the
 * log into the file. */
START_TEST(a_database_that_does_not_open_keeps_its_log)
{
	struct error err = {0};
	struct buffer file;
	struct buffer log;
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	ck_assert_int_eq(
		db_run_script(db, "UPDATE t SET bytes = zeroblob(200) WHERE id < 20", &err), 0);
	buffer_init(&file, 64 << 20);
	buffer_init(&log, 64 << 20);
	ck_assert_int_eq(file_read_all(path, &file, &err), 0);
	ck_assert_int_eq(file_read_all(log_path, &log, &err), 0);
	db_close(db);
	file.data[2000] ^= 0x41; /* two bits of the first page */
	ck_assert_int_eq(file_publish(file_system(), path, buffer_span(&file), 0600, &err), 0);
	ck_assert_int_eq(file_publish(file_system(), log_path, buffer_span(&log), 0600, &err), 0);
	ck_assert_ptr_null(db_open(path, DB_WRITE, &err));
	ck_assert_int_eq(size_of(log_path), (off_t)log.len);
	struct buffer after;
	buffer_init(&after, 64 << 20);
	ck_assert_int_eq(file_read_all(path, &after, &err), 0);
	ck_assert(span_equal(buffer_span(&after), buffer_span(&file)));
	buffer_release(&after);
	buffer_release(&file);
	buffer_release(&log);
	db = NULL;
}
END_TEST

/* A transaction that is larger than the page cache writes frames of the log more than once. */
START_TEST(a_transaction_that_spills_reads_its_own_pages)
{
	struct error err = {0};
	ck_assert_int_eq(db_run_script(db, "PRAGMA cache_size=10", &err), 0);
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (int round = 0; round < 3; round++)
		ck_assert_msg(db_run_script(db, "UPDATE t SET bytes = zeroblob(200)", &err) == 0,
			"%s", err.text);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	reopen();
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(db_damage(db), 0);
}
END_TEST

START_TEST(a_log_that_was_left_is_read_after_recovery)
{
	struct error err = {0};
	char *copy = unit_scratch_copy(folder); /* as a kill would leave it */
	db_close(db);
	snprintf(path, sizeof path, "%s/test.db", copy);
	db = open_it(DB_WRITE);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(db_damage(db), 0);
	db_close(db);
	snprintf(path, sizeof path, "%s/test.db", folder);
	db = open_it(DB_WRITE);
	unit_scratch_remove(copy);
}
END_TEST

START_TEST(a_file_without_checksums_gets_them_by_a_vacuum)
{
	struct error err = {0};
	char old[600];
	sqlite3 *handle;
	snprintf(old, sizeof old, "%s/old.db", folder);
	ck_assert_int_eq(sqlite3_open(old, &handle), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(handle, SQL_OLD, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
	struct db *plain = db_open(old, DB_WRITE, &err);
	ck_assert_msg(plain != NULL, "%s", err.text);
	ck_assert(!db_is_summed(plain));
	ck_assert_msg(read_all(plain, &err) == 0, "%s", err.text);
	ck_assert_msg(db_vacuum_whole(plain, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_checkpoint_truncate(plain, &err), 0);
	ck_assert(db_is_summed(plain));
	ck_assert_msg(read_all(plain, &err) == 0, "%s", err.text);
	db_close(plain);
	flip(old, 2 * 4096 + 100, 0x21);
	plain = db_open(old, DB_READ, &err);
	ck_assert_int_eq(read_all(plain, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	db_close(plain);
}
END_TEST

START_TEST(two_flips_are_not_taken_for_one)
{
	uint8_t page[PAGE_BYTES];
	for (unsigned i = 0; i < PAGE_BYTES; i++)
		page[i] = (uint8_t)(i * 7);
	page_sum_put(page, 9);
	page[100] ^= 0x41;
	ck_assert(!page_sum_mend(page, 9));
	ck_assert_uint_eq(page[100], (uint8_t)(100 * 7) ^ 0x41);
	page[100] ^= 0x40;
	ck_assert(page_sum_mend(page, 9));
	ck_assert(page_sum_matches(page, 9));
	page[4095] ^= 0x80; /* in the checksum itself */
	ck_assert(page_sum_mend(page, 9));
	page_sum_put(page, 10);
	ck_assert(!page_sum_mend(page, 9)); /* of another page */
}
END_TEST

START_TEST(a_page_beyond_mending_is_searched_once)
{
	static struct page_mender mender;
	uint8_t page[PAGE_BYTES] = {0};
	page_sum_put(page, 9);
	page[100] ^= 0x41;
	ck_assert_int_eq(page_mender_mend(&mender, page, 9), PAGE_UNMENDABLE);
	ck_assert_int_eq(page_mender_mend(&mender, page, 9), PAGE_KNOWN_AS_UNMENDABLE);
	ck_assert_uint_eq(page[100], 0x41);
	page[100] ^= 0x02; /* more damage */
	ck_assert_int_eq(page_mender_mend(&mender, page, 9), PAGE_UNMENDABLE);
	ck_assert_int_eq(page_mender_mend(&mender, page, 9), PAGE_KNOWN_AS_UNMENDABLE);
	ck_assert_int_eq(page_mender_mend(&mender, page, 10), PAGE_UNMENDABLE);
	page[100] = 0x40; /* less damage */
	ck_assert_int_eq(page_mender_mend(&mender, page, 9), PAGE_MENDED);
	ck_assert(page_sum_matches(page, 9));
}
END_TEST

/* CPU time of this thread, so that other work on the machine does not count. */
static int64_t used_ns(void)
{
	struct timespec used;
	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
	return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

/* The CPU time of reads of the whole file that fail. */
static int64_t fail_ns(int reads)
{
	struct error err;
	int64_t before = used_ns();
	for (int i = 0; i < reads; i++)
		ck_assert_int_eq(read_all(db, &err), -1);
	return used_ns() - before;
}

START_TEST(reading_a_page_beyond_mending_again_costs_no_search)
{
	enum { READS = 50 };
	struct error err = {0};
	reopen();
	off_t last = size_of(path) - PAGE_BYTES;
	flip(path, last + 2000, 0x11);
	int64_t first = fail_ns(1);
	ck_assert_int_lt(fail_ns(READS), first * READS / 2);
	ck_assert_uint_eq(db_damage(db), READS + 1); /* and each one counts as damage */
	flip(path, last + 2000, 0x01);               /* now one bit explains it */
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(db_mended(db), 1);
}
END_TEST

/* The byte that says that pages have checksums: without it nobody would check them. */
START_TEST(a_flip_in_what_says_that_pages_have_checksums_is_put_back)
{
	enum { RESERVED_AT = 20 };
	struct error err = {0};
	uint8_t page[PAGE_BYTES];
	reopen();
	db_close(db);
	flip(path, RESERVED_AT, (uint8_t)(1u << _i));
	db = open_it(DB_WRITE);
	ck_assert_msg(read_all(db, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(db_mended(db), 1);
	int fd = open(path, O_RDONLY);
	ck_assert_int_eq(pread(fd, page, sizeof page, 0), PAGE_BYTES);
	close(fd);
	ck_assert_uint_eq(page[RESERVED_AT], PAGE_SUM_BYTES);
	off_t last = size_of(path) - PAGE_BYTES;
	flip(path, last + 2000, 0x11);
	reopen();
	ck_assert_int_eq(read_all(db, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
}
END_TEST

/* The files as SQLite sees them. */
static sqlite3_file *file_under(sqlite3 **out_handle)
{
	sqlite3_file *file = NULL;
	int flags = SQLITE_OPEN_READWRITE;
	ck_assert_int_eq(sqlite3_open_v2(path, out_handle, flags, db_file_vfs), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_file_control(*out_handle, "main", SQLITE_FCNTL_FILE_POINTER, &file),
		SQLITE_OK);
	return file;
}

/* SQLite from 3.45 on reads pages of large rows in this way, without their ends. Some parts are as
 * long as the file's header, or as the part of it that is read alone. */
static const struct {
	int at;
	int len;
} parts[] = {{0, PAGE_BYTES - PAGE_SUM_BYTES}, {4, 4084}, {0, 100}, {24, 16}, {2000, 1}, {4095, 1}};

START_TEST(a_part_of_a_page_is_checked_as_the_page_is)
{
	uint8_t page[PAGE_BYTES];
	uint8_t part[PAGE_BYTES];
	sqlite3 *handle;
	reopen();
	sqlite3_file *file = file_under(&handle);
	off_t at = size_of(path) - PAGE_BYTES;
	ck_assert_int_eq(file->pMethods->xRead(file, page, PAGE_BYTES, at), SQLITE_OK);
	ck_assert_int_eq(
		file->pMethods->xRead(file, part, parts[_i].len, at + parts[_i].at), SQLITE_OK);
	ck_assert_mem_eq(part, page + parts[_i].at, (size_t)parts[_i].len);
	flip(path, at + 2000, 0x04);
	ck_assert_int_eq(
		file->pMethods->xRead(file, part, parts[_i].len, at + parts[_i].at), SQLITE_OK);
	ck_assert_mem_eq(part, page + parts[_i].at, (size_t)parts[_i].len);
	ck_assert_uint_eq(db_mended(db), 1);
	flip(path, at + 3000, 0x44);
	ck_assert_int_eq(file->pMethods->xRead(file, part, parts[_i].len, at + parts[_i].at) & 0xff,
		SQLITE_CORRUPT);
	/* SQLITE_IOCAP_SUBPAGE_READ */
	ck_assert_int_eq(file->pMethods->xDeviceCharacteristics(file) & 0x8000, 0);
	flip(path, at + 3000, 0x44);
	sqlite3_close(handle);
}
END_TEST

START_TEST(frames_that_are_unknown_match)
{
	uint8_t page[PAGE_BYTES] = {1};
	struct log_sums *sums = log_sums_new();
	ck_assert(log_sums_match(sums, 5, page));
	log_sums_note(sums, 5, page);
	log_sums_note(sums, UINT64_C(1) << 40, page); /* behind all tables */
	ck_assert(log_sums_match(sums, 5, page));
	page[9] = 1;
	ck_assert(!log_sums_match(sums, 5, page));
	ck_assert(log_sums_match(sums, UINT64_C(1) << 40, page));
	log_sums_forget(sums, 5);
	ck_assert(log_sums_match(sums, 5, page));
	log_sums_free(sums);
}
END_TEST

Suite *test_db_file_suite(void);
Suite *test_db_file_suite(void)
{
	Suite *suite = suite_create("db_file");
	TCase *pages = tcase_create("pages");
	tcase_add_checked_fixture(pages, set_up, tear_down);
	tcase_add_test(pages, each_page_has_its_checksum);
	tcase_add_loop_test(pages, a_flipped_bit_is_put_back, 0, 24);
	tcase_add_test(pages, a_damaged_page_is_no_answer);
	tcase_add_test(pages, reading_a_page_beyond_mending_again_costs_no_search);
	tcase_add_loop_test(pages, a_flip_in_what_says_that_pages_have_checksums_is_put_back, 0, 8);
	tcase_add_test(pages, a_page_in_the_place_of_another_is_no_answer);
	tcase_add_test(pages, a_file_that_was_cut_is_no_answer);
	tcase_add_test(pages, a_flip_in_the_log_is_no_answer_and_never_gets_into_the_file);
	tcase_add_test(pages, opening_changes_nothing);
	tcase_add_test(pages, a_database_that_does_not_open_keeps_its_log);
	tcase_add_test(pages, a_transaction_that_spills_reads_its_own_pages);
	tcase_add_test(pages, a_log_that_was_left_is_read_after_recovery);
	tcase_add_test(pages, a_file_without_checksums_gets_them_by_a_vacuum);
	tcase_add_loop_test(pages, a_part_of_a_page_is_checked_as_the_page_is, 0,
		(int)(sizeof parts / sizeof *parts));
	suite_add_tcase(suite, pages);
	TCase *sums = tcase_create("sums");
	tcase_add_test(sums, two_flips_are_not_taken_for_one);
	tcase_add_test(sums, a_page_beyond_mending_is_searched_once);
	tcase_add_test(sums, frames_that_are_unknown_match);
	suite_add_tcase(suite, sums);
	return suite;
}
