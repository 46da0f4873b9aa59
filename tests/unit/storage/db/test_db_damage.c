/* The effect of damage on a transaction that meets it: only the statement that needs the page
 * fails. Two bits are flipped at a time, because one alone is mended. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/core/committer.h"
#include "storage/db/db_check.h"
#include "storage/db/page_sum.h"

enum { ROWS = 40, LARGE_ROW = 7, LARGE_BYTES = 12000, OVERFLOW_PAGES = 2 };

static char *folder;
static char path[512];
static struct db *db;
/* places of the large row's pages, the end of the row last */
static off_t overflow[OVERFLOW_PAGES];
static off_t unreadable = -1; /* where the disk cannot read a page */
static int write_errno;       /* the errno of writes; 0: they succeed */

static const char SQL_SCHEMA[] =
	"CREATE TABLE sums (one INTEGER PRIMARY KEY, change INTEGER NOT NULL, tables BLOB NOT NULL);"
	"CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);";
static const char SQL_ADD[] = "INSERT INTO t (id, bytes) VALUES (?1, ?2)";
static const char SQL_COUNT[] = "SELECT COUNT(*) FROM t";
static const char SQL_READ_LARGE[] = "SELECT bytes FROM t WHERE id = 7";
static const char SQL_DELETE_LARGE[] = "DELETE FROM t WHERE id = 7";
static const char SQL_UPDATE_LARGE[] = "UPDATE t SET bytes = x'00' WHERE id = 7";
static const char SQL_REPLACE_LARGE[] = "REPLACE INTO t (id, bytes) VALUES (7, x'01')";
static const char *const changes_of_large[] = {
	SQL_DELETE_LARGE, SQL_UPDATE_LARGE, SQL_REPLACE_LARGE};

static int add(int64_t id, char letter, size_t len, struct error *err)
{
	static char text[LARGE_BYTES];
	memset(text, letter, len);
	return db_run(db, SQL_ADD, err, db_i64(id), db_blob(span_of(text, len)));
}

static int64_t count(void)
{
	struct error err = {0};
	int64_t rows = -1;
	ck_assert_msg(db_find_i64(db, SQL_COUNT, &rows, &err) == 1, "%s", err.text);
	return rows;
}

static int read_large(struct error *err)
{
	struct db_statement *statement = db_query(db, SQL_READ_LARGE, err);
	int got = db_step(statement, err);
	if (got == 1)
		ck_assert_uint_eq(db_column_blob(statement, 0).len, LARGE_BYTES);
	db_reset(statement);
	return got;
}

static void open_it(void)
{
	struct error err = {0};
	db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_msg(db_keep_sums(db, &err) == 0, "%s", err.text);
}

/* Nothing is in the page cache, and all rows are in the file. */
static void reopen(void)
{
	db_close(db);
	open_it();
}

/* A page that contains only the large row's letter, after the number of the page that follows. */
static bool is_overflow(const uint8_t page[PAGE_BYTES])
{
	return memcmp(page + 4, "xxxxxxxx", 8) == 0 && memcmp(page + 5, page + 4, 3000) == 0;
}

static void find_overflow(void)
{
	uint8_t page[PAGE_BYTES];
	size_t found = 0;
	int fd = open(path, O_RDONLY);
	for (off_t at = 0; pread(fd, page, sizeof page, at) == PAGE_BYTES; at += PAGE_BYTES)
		if (is_overflow(page) && found < OVERFLOW_PAGES)
			overflow[found++] = at;
	close(fd);
	ck_assert_uint_eq(found, OVERFLOW_PAGES);
}

static ssize_t disk_read(int fd, void *into, size_t len, off_t at)
{
	if (at != unreadable)
		return pread(fd, into, len, at);
	errno = EIO;
	return -1;
}

static ssize_t disk_write(int fd, const void *from, size_t len, off_t at)
{
	if (write_errno == 0)
		return pwrite(fd, from, len, at);
	errno = write_errno;
	return -1;
}

/* SQLite's own files call these from now on. */
static void take_the_disk(void)
{
	static const char *const reads[] = {"pread", "pread64"};
	static const char *const writes[] = {"pwrite", "pwrite64"};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(vfs->xSetSystemCall(vfs, reads[i], (sqlite3_syscall_ptr)disk_read),
			SQLITE_OK);
		ck_assert_int_eq(
			vfs->xSetSystemCall(vfs, writes[i], (sqlite3_syscall_ptr)disk_write),
			SQLITE_OK);
	}
}

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof path, "%s/test.db", folder);
	db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db_run_script(db, SQL_SCHEMA, &err) == 0, "%s", err.text);
	ck_assert_msg(db_keep_sums(db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (int64_t id = 0; id < ROWS; id++)
		ck_assert_int_eq(add(id, id == LARGE_ROW ? 'x' : 'a',
					 id == LARGE_ROW ? LARGE_BYTES : 500, &err),
			0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	reopen();
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	find_overflow();
	take_the_disk();
}

static void tear_down(void)
{
	db_close(db);
	unit_scratch_remove(folder);
}

/* A second call restores the page. */
static void flip_two_bits(off_t page)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, page + 2000), 1);
	byte ^= 0x11;
	ck_assert_int_eq(pwrite(fd, &byte, 1, page + 2000), 1);
	close(fd);
}

static void assert_names_page(const struct error *err, off_t page)
{
	char wanted[80];
	snprintf(wanted, sizeof wanted, "test.db: page %d does not match its checksum",
		(int)(page / PAGE_BYTES) + 1);
	ck_assert_int_eq(err->kind, ERROR_DAMAGED);
	ck_assert_msg(strstr(err->text, wanted) != NULL, "%s", err->text);
}

static bool go_on(void *owner)
{
	(void)owner;
	return true;
}

static void refuse_finding(void *owner, const struct db_finding *finding)
{
	(void)owner;
	ck_abort_msg("%s: %s", finding->table, finding->detail);
}

static void assert_sound(int64_t rows)
{
	struct error err = {0};
	const struct db_check check = {.goes_on = go_on, .found = refuse_finding};
	reopen();
	ck_assert_int_eq(count(), rows);
	ck_assert_int_eq(read_large(&err), 1);
	ck_assert_msg(db_check(db, &check, &err) == 0, "%s", err.text);
}

static off_t page_of_round(int round)
{
	return overflow[round % OVERFLOW_PAGES];
}

START_TEST(a_row_that_cannot_be_read_is_not_changed)
{
	struct error err = {0};
	flip_two_bits(page_of_round(_i));
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_run(db, changes_of_large[_i / OVERFLOW_PAGES], &err), -1);
	assert_names_page(&err, page_of_round(_i));
	db_rollback(db);
	flip_two_bits(page_of_round(_i));
	assert_sound(ROWS);
}
END_TEST

START_TEST(a_change_that_overlooks_damage_is_not_committed)
{
	struct error err = {0};
	flip_two_bits(page_of_round(_i));
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_run(db, changes_of_large[_i / OVERFLOW_PAGES], &err), -1);
	ck_assert_int_eq(db_commit(db, &err), -1);
	assert_names_page(&err, page_of_round(_i));
	ck_assert(!db_is_in_doubt(db));
	flip_two_bits(page_of_round(_i));
	assert_sound(ROWS);
}
END_TEST

START_TEST(a_change_that_meets_damage_fails_alone)
{
	struct error err = {0};
	flip_two_bits(page_of_round(_i));
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add(100, 'b', 500, &err), 0);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(add(101, 'b', 500, &err), 0);
	ck_assert_int_eq(db_run(db, changes_of_large[_i / OVERFLOW_PAGES], &err), -1);
	assert_names_page(&err, page_of_round(_i));
	ck_assert_int_eq(db_savepoint_release(db, &err), -1); /* the row may be half gone */
	assert_names_page(&err, page_of_round(_i));
	db_savepoint_rollback(db);
	ck_assert(db_in_transaction(db));
	ck_assert_msg(add(102, 'b', 500, &err) == 0, "%s", err.text);
	ck_assert_msg(db_commit(db, &err) == 0, "%s", err.text);
	flip_two_bits(page_of_round(_i));
	assert_sound(ROWS + 2);
}
END_TEST

START_TEST(what_is_only_read_costs_the_transaction_nothing)
{
	struct error err = {0};
	flip_two_bits(page_of_round(_i));
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(add(100, 'b', 500, &err), 0);
	ck_assert_int_eq(read_large(&err), -1);
	assert_names_page(&err, page_of_round(_i));
	ck_assert_msg(add(101, 'b', 500, &err) == 0, "%s", err.text);
	ck_assert_msg(db_savepoint_release(db, &err) == 0, "%s", err.text);
	ck_assert_msg(db_commit(db, &err) == 0, "%s", err.text);
	flip_two_bits(page_of_round(_i));
	assert_sound(ROWS + 2);
}
END_TEST

/* SQLite gives up the whole transaction, and would run the next statements without one. */
START_TEST(a_disk_that_cannot_be_read_ends_the_transaction_and_all_that_follows_in_it)
{
	static const char wanted[] = "cannot be read (Input/output error)";
	struct error err = {0};
	unreadable = overflow[0];
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add(100, 'b', 500, &err), 0);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(read_large(&err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_msg(strstr(err.text, wanted) != NULL, "%s", err.text);
	ck_assert(!db_in_transaction(db));
	for (int call = 0; call < 4; call++) {
		err = (struct error){0};
		int result = call == 0 ? add(101, 'b', 500, &err)
			: call == 1    ? db_run_script(db, "DELETE FROM t", &err)
			: call == 2    ? db_savepoint_release(db, &err)
				       : db_commit(db, &err);
		ck_assert_int_eq(result, -1);
		ck_assert_msg(strstr(err.text, wanted) != NULL, "%s", err.text);
	}
	ck_assert(!db_is_in_doubt(db));
	unreadable = -1;
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add(102, 'b', 500, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	assert_sound(ROWS + 1);
}
END_TEST

/* SQLite holds the first page all the time, and reads it again when a change is rolled back. */
START_TEST(damage_that_a_rollback_meets_is_no_answer)
{
	struct error err = {0};
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add(100, 'b', LARGE_BYTES, &err), 0);
	flip_two_bits(0);
	db_rollback(db);
	ck_assert_int_eq(db_begin(db, &err), -1);
	assert_names_page(&err, 0);
	flip_two_bits(0);
	ck_assert_msg(db_begin(db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(add(101, 'b', LARGE_BYTES, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	assert_sound(ROWS + 1);
}
END_TEST

static const struct {
	int number;
	enum error_kind kind;
	bool is_in_doubt;
} write_failures[] = {
	{EIO, ERROR_IO, true},
	{EDQUOT, ERROR_IO, true},
	{EROFS, ERROR_READ_ONLY, true},
	{ENOSPC, ERROR_NO_SPACE, false},
};

START_TEST(a_commit_that_broke_off_is_in_doubt_whatever_else_is_damaged)
{
	struct error err = {0};
	int64_t change = db_change(db);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add(100, 'b', LARGE_BYTES, &err), 0);
	flip_two_bits(0); /* read again when COMMIT has failed */
	write_errno = write_failures[_i].number;
	ck_assert_int_eq(db_commit(db, &err), -1);
	ck_assert_msg(err.kind == write_failures[_i].kind, "%s", err.text);
	ck_assert_int_eq(db_is_in_doubt(db), write_failures[_i].is_in_doubt);
	ck_assert_int_eq(db_change(db), change);
	write_errno = 0;
	ck_assert_int_eq(db_begin(db, &err), -1);
	assert_names_page(&err, 0);
	flip_two_bits(0);
	ck_assert_msg(db_begin(db, &err) == 0, "%s", err.text);
	ck_assert_int_eq(add(101, 'b', LARGE_BYTES, &err), 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert(!db_is_in_doubt(db));
	ck_assert_int_eq(db_change(db), change + 1);
	assert_sound(ROWS + 1);
}
END_TEST

struct small_change {
	struct change change; /* must be first */
	int (*run)(struct error *err);
	atomic_bool is_done;
};
enum { BEFORE, MEETS, BEHIND, SMALL_CHANGES };
static atomic_bool holder_runs;
static atomic_bool all_are_queued;

static int run_insert(struct error *err)
{
	return db_run(db, "INSERT INTO t (bytes) VALUES (x'00')", err);
}

static int run_delete_large(struct error *err)
{
	return db_run(db, SQL_DELETE_LARGE, err);
}

static int run_overlooking(struct error *err)
{
	struct error ignored;
	ck_assert_int_eq(read_large(&ignored), -1);
	return run_insert(err);
}

/* Waits until the others are queued, so that they come into one batch. */
static int run_holding(struct error *err)
{
	atomic_store(&holder_runs, true);
	while (!atomic_load(&all_are_queued))
		usleep(100);
	return run_insert(err);
}

static int apply_small(struct change *change, struct db *to, struct error *err)
{
	ck_assert_ptr_eq(to, db);
	return ((struct small_change *)change)->run(err);
}

static void done_small(struct change *change)
{
	atomic_store(&((struct small_change *)change)->is_done, true);
}

static void submit(struct committer *committer, struct small_change *change)
{
	change->change.apply = apply_small;
	change->change.done = done_small;
	committer_submit(committer, &change->change);
}

static void until(const atomic_bool *flag)
{
	while (!atomic_load(flag))
		usleep(100);
}

/* Closes the connection. */
static void run_batch(struct small_change changes[SMALL_CHANGES], int (*meets)(struct error *err))
{
	struct small_change holder = {.run = run_holding};
	struct small_change after = {.run = run_insert};
	struct committer *committer = committer_start(&(const struct committer_options){.db = db});
	submit(committer, &holder);
	until(&holder_runs);
	for (int i = 0; i < SMALL_CHANGES; i++) {
		changes[i].run = i == MEETS ? meets : run_insert;
		submit(committer, &changes[i]);
	}
	atomic_store(&all_are_queued, true);
	until(&holder.is_done);
	for (int i = 0; i < SMALL_CHANGES; i++)
		until(&changes[i].is_done);
	submit(committer, &after);
	until(&after.is_done);
	committer_stop(committer);
	ck_assert(!holder.change.failed && !after.change.failed);
}

START_TEST(one_page_costs_a_batch_what_needs_the_page)
{
	struct small_change changes[SMALL_CHANGES] = {0};
	flip_two_bits(overflow[0]);
	run_batch(changes, run_delete_large);
	ck_assert(!changes[BEFORE].change.failed && !changes[BEHIND].change.failed);
	ck_assert(changes[MEETS].change.failed && !changes[MEETS].change.in_doubt);
	assert_names_page(&changes[MEETS].change.error, overflow[0]);
	flip_two_bits(overflow[0]);
	open_it();
	assert_sound(ROWS + 4);
}
END_TEST

START_TEST(a_disk_that_cannot_be_read_costs_the_batch_and_not_the_next)
{
	struct small_change changes[SMALL_CHANGES] = {0};
	unreadable = overflow[0];
	run_batch(changes, run_overlooking);
	for (int i = 0; i < SMALL_CHANGES; i++) {
		ck_assert(changes[i].change.failed && !changes[i].change.in_doubt);
		ck_assert_int_eq(changes[i].change.error.kind, ERROR_DAMAGED);
		ck_assert_ptr_nonnull(strstr(
			changes[i].change.error.text, "cannot be read (Input/output error)"));
	}
	unreadable = -1;
	open_it();
	assert_sound(ROWS + 2);
}
END_TEST

/* SQLite takes it for a database without tables, and the request for a wrong one. */
START_TEST(a_file_that_was_emptied_is_damaged)
{
	struct error err = {0};
	int64_t rows;
	ck_assert_int_eq(truncate(path, 0), 0);
	struct db *reader = db_open(path, DB_READ, &err);
	ck_assert_msg(reader != NULL, "%s", err.text);
	ck_assert_int_eq(db_find_i64(reader, SQL_COUNT, &rows, &err), -1);
	ck_assert_msg(err.kind == ERROR_DAMAGED, "%s", err.text);
	db_close(reader);
}
END_TEST

Suite *test_db_damage_suite(void);
Suite *test_db_damage_suite(void)
{
	Suite *suite = suite_create("db_damage");
	TCase *tests = tcase_create("damage");
	const int rounds =
		OVERFLOW_PAGES * (int)(sizeof changes_of_large / sizeof *changes_of_large);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_row_that_cannot_be_read_is_not_changed, 0, rounds);
	tcase_add_loop_test(tests, a_change_that_overlooks_damage_is_not_committed, 0, rounds);
	tcase_add_loop_test(tests, a_change_that_meets_damage_fails_alone, 0, rounds);
	tcase_add_loop_test(
		tests, what_is_only_read_costs_the_transaction_nothing, 0, OVERFLOW_PAGES);
	tcase_add_test(
		tests, a_disk_that_cannot_be_read_ends_the_transaction_and_all_that_follows_in_it);
	tcase_add_test(tests, damage_that_a_rollback_meets_is_no_answer);
	tcase_add_loop_test(tests, a_commit_that_broke_off_is_in_doubt_whatever_else_is_damaged, 0,
		(int)(sizeof write_failures / sizeof *write_failures));
	tcase_add_test(tests, one_page_costs_a_batch_what_needs_the_page);
	tcase_add_test(tests, a_file_that_was_emptied_is_damaged);
	tcase_add_test(tests, a_disk_that_cannot_be_read_costs_the_batch_and_not_the_next);
	suite_add_tcase(suite, tests);
	return suite;
}
