/* The journal that a connection writes: what it has after commits, rollbacks and restarts, what a
 * disk that fails does to it, and which files its keeper leaves. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/db/db_sums.h"
#include "storage/db/row_bytes.h"
#include "storage/journal/journal.h"
#include "storage/journal/journal_history.h"
#include "storage/journal/journal_keeper.h"
#include "storage/start/catalog.h"

static char *folder;
static char journal_path[600];
static char catalog_path[600];
static struct db *db;
static struct journal *journal;
static struct file_faults faults;
static struct error err;

static void open_all(uint64_t life)
{
	struct journal_options options = {.files = &faults.ops,
		.folder = journal_path,
		.store = "a store's id...",
		.life = life,
		.schema = 5};
	db = catalog_open(catalog_path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	options.change = db_change(db);
	ck_assert_int_eq(db_sums_total(db, &options.sums, &err), 0);
	journal = journal_open(&options, &err);
	ck_assert_msg(journal != NULL, "%s", err.text);
	const struct db_recorder recorder = journal_recorder(journal);
	ck_assert_int_eq(db_set_recorder(db, &recorder, &err), 0);
}

static void close_all(void)
{
	db_close(db);
	journal_close(journal);
}

static void set_up(void)
{
	folder = unit_scratch_make();
	snprintf(journal_path, sizeof(journal_path), "%s/journal", folder);
	snprintf(catalog_path, sizeof(catalog_path), "%s/catalog.db", folder);
	file_faults_init(&faults, 0, 0, EIO);
	open_all(1);
}

static void tear_down(void)
{
	close_all();
	unit_scratch_remove(folder);
}

static int add_account(int number)
{
	static const char sql[] =
		"INSERT INTO accounts (id, namespace, created_ms) VALUES (?1, CAST(?1 AS BLOB), 5)";
	return db_run(db, sql, &err, db_i64(number));
}

static void commit_account(int number)
{
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_msg(add_account(number) == 0, "%s", err.text);
	ck_assert_msg(db_commit(db, &err) == 0, "%s", err.text);
}

static struct journal_history *read_history(void)
{
	struct journal_history *history = journal_history_read(journal_path, &err);
	ck_assert_msg(history != NULL, "%s", err.text);
	return history;
}

/* Makes a snapshot by a keeper of its own, whose rounds take a second. */
static void make_snapshot(void)
{
	struct journal_keeper *keeper =
		journal_keeper_start(journal, catalog_path, NULL, NULL, NULL);
	for (int i = 0; i < 300 && journal_is_incomplete(journal); i++)
		usleep(50 * 1000);
	journal_keeper_stop(keeper);
	ck_assert(!journal_is_incomplete(journal) && !journal_wants_snapshot(journal));
}

static int rows_seen; /* in those records */

static int count_rows(void *owner, struct span rows, struct error *error)
{
	static struct row row;
	int got;
	++*(int *)owner;
	while ((got = row_bytes_take(&rows, &row, error)) == 1)
		rows_seen++;
	return got;
}

/* How many records follow on the best snapshot, all of which can be read. */
static int records_after_snapshot(void)
{
	struct journal_history *history = read_history();
	struct journal_way way;
	int records = 0;
	rows_seen = 0;
	ck_assert_uint_gt(journal_history_snapshots(history), 0);
	journal_history_way(history, 0, &way);
	ck_assert_str_eq(way.gap, "");
	ck_assert_int_eq(way.end.change, db_change(db));
	ck_assert_int_eq(journal_history_walk(history, &way, count_rows, &records, &err), 0);
	ck_assert_int_eq(records, (int)way.records);
	journal_history_free(history);
	return records;
}

static size_t files_of(const char *suffix)
{
	char **names;
	size_t count;
	size_t found = 0;
	ck_assert_int_eq(file_list(journal_path, &names, &count, &err), 0);
	for (size_t i = 0; i < count; i++)
		found += span_ends_text(span_text(names[i]), suffix);
	file_names_free(names, count);
	return found;
}

START_TEST(each_commit_is_a_record)
{
	make_snapshot();
	for (int i = 1; i <= 5; i++)
		commit_account(i);
	ck_assert_int_eq(records_after_snapshot(), 5);
}
END_TEST

START_TEST(what_is_rolled_back_is_in_no_record)
{
	make_snapshot();
	commit_account(1);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add_account(2), 0);
	db_rollback(db);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(add_account(3), 0);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	ck_assert_int_eq(add_account(4), 0);
	db_savepoint_rollback(db);
	ck_assert_int_eq(db_commit(db, &err), 0);
	ck_assert_int_eq(records_after_snapshot(), 2);
	ck_assert_int_eq(rows_seen, 2);
}
END_TEST

/* A deferred rule refuses the COMMIT, when the record is written already. */
START_TEST(a_record_that_does_not_commit_is_cut_off)
{
	static const char sql[] =
		"PRAGMA defer_foreign_keys=ON; INSERT INTO keys (id, key_id, account, name,"
		" sealed_secret, token_hash, is_root, created_ms, sum) VALUES (1, x'01', 99, x'01',"
		" x'01', x'01', 0, 0, 0)";
	make_snapshot();
	commit_account(1);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_msg(db_run_script(db, sql, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_commit(db, &err), -1);
	ck_assert_int_eq(records_after_snapshot(), 1);
	commit_account(2);
	ck_assert_int_eq(records_after_snapshot(), 2);
}
END_TEST

START_TEST(the_next_life_follows_on_the_last_change)
{
	make_snapshot();
	commit_account(1);
	close_all();
	open_all(2);
	ck_assert(!journal_wants_snapshot(journal));
	commit_account(2);
	ck_assert_int_eq(records_after_snapshot(), 2);
	ck_assert_uint_eq(files_of(".snapshot"), 1);
}
END_TEST

START_TEST(a_journal_that_lost_its_end_begins_anew)
{
	char command[800];
	make_snapshot();
	commit_account(1);
	close_all();
	snprintf(command, sizeof(command), "cd %s && rm $(ls *.log | tail -n 1)", journal_path);
	ck_assert_int_eq(system(command), 0);
	open_all(2);
	ck_assert(journal_is_incomplete(journal));
	commit_account(2);
	close_all();
	open_all(3); /* it still knows */
	ck_assert(journal_is_incomplete(journal));
	make_snapshot();
	commit_account(3);
	ck_assert_int_eq(records_after_snapshot(), 1);
}
END_TEST

/* Opening, writing the header, and writing the record. */
START_TEST(changes_go_on_where_the_journal_cannot)
{
	make_snapshot();
	if (_i == 2)
		commit_account(1);
	faults.kinds = _i == 0 ? FILE_FAULT_OPEN : FILE_FAULT_WRITE;
	faults.countdown = 0;
	commit_account(2);
	ck_assert(journal_is_incomplete(journal));
	faults.kinds = 0;
	commit_account(3);
	ck_assert(journal_is_incomplete(journal));
	make_snapshot();
	commit_account(4);
	ck_assert_int_eq(records_after_snapshot(), 1);
}
END_TEST

START_TEST(nothing_is_believed_after_a_failed_sync)
{
	make_snapshot();
	commit_account(1);
	const size_t logs = files_of(".log");
	faults.kinds = FILE_FAULT_SYNC;
	faults.countdown = 0;
	ck_assert_int_eq(journal_sync(journal, &err), -1);
	faults.kinds = 0;
	ck_assert(journal_is_incomplete(journal));
	commit_account(2);
	ck_assert_uint_eq(files_of(".log"), logs + 1);
	ck_assert_int_eq(journal_sync(journal, &err), 0);
	make_snapshot();
	ck_assert_int_eq(records_after_snapshot(), 0);
}
END_TEST

START_TEST(a_snapshot_that_fails_leaves_no_file)
{
	struct journal_keeper *keeper;
	faults.kinds = _i == 0 ? FILE_FAULT_WRITE : _i == 1 ? FILE_FAULT_SYNC : FILE_FAULT_RENAME;
	faults.countdown = 0;
	faults.sticky = true;
	keeper = journal_keeper_start(journal, catalog_path, NULL, NULL, NULL);
	usleep(1500 * 1000);
	journal_keeper_stop(keeper);
	faults.kinds = 0;
	faults.sticky = false;
	ck_assert(journal_is_incomplete(journal));
	ck_assert_uint_eq(files_of(".snapshot") + files_of(".tmp"), 0);
	make_snapshot();
}
END_TEST

/* Puts a file of another store into the folder, older than all that come. */
static void put_foreign_snapshot(void)
{
	const struct journal_header header = {.store = "another store.."};
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	char path[700];
	close_all();
	journal_header_encode(JOURNAL_SNAPSHOT, &header, bytes);
	snprintf(path, sizeof(path), "%s/0000000000000000.snapshot", journal_path);
	ck_assert_int_eq(
		file_place(file_system(), path, span_of(bytes, sizeof(bytes)), 0600, &err), 0);
	open_all(2);
}

START_TEST(two_snapshots_and_the_logs_since_stay)
{
	put_foreign_snapshot();
	const struct db_recorder recorder = journal_recorder(journal);
	for (int i = 1; i <= 4; i++) {
		make_snapshot();
		commit_account(i);
		recorder.lose(journal); /* wants another */
	}
	make_snapshot();
	ck_assert_uint_eq(files_of(".snapshot"), 2 + 1);
	ck_assert_uint_eq(files_of("0000000000000000.snapshot"), 1);
	ck_assert_uint_le(files_of(".log"), 2);
	commit_account(5);
	ck_assert_int_eq(records_after_snapshot(), 1);
}
END_TEST

static void await_complete(void)
{
	struct journal_keeper *keeper =
		journal_keeper_start(journal, catalog_path, NULL, NULL, NULL);
	for (int i = 0; i < 500; i++) {
		struct journal_history *history = read_history();
		struct journal_way way = {.end = {.change = -1}};
		if (journal_history_snapshots(history) > 0)
			journal_history_way(history, 0, &way);
		journal_history_free(history);
		if (way.end.change >= db_change(db))
			break;
		ck_assert_int_lt(i, 499);
		usleep(10 * 1000);
	}
	journal_keeper_stop(keeper);
}

/* A keeper runs until so many snapshots are there, and none with this name. */
static void keep_until(size_t snapshots, const char *gone)
{
	struct journal_keeper *keeper =
		journal_keeper_start(journal, catalog_path, NULL, NULL, NULL);
	for (int i = 0; files_of(".snapshot") != snapshots || files_of(gone) != 0; i++) {
		ck_assert_int_lt(i, 500);
		usleep(10 * 1000);
	}
	journal_keeper_stop(keeper);
}

/* In its header, and in its rows. */
START_TEST(a_damaged_snapshot_is_noticed_and_made_again)
{
	static const char first[] = "0000000000000000.snapshot";
	char command[700];
	make_snapshot();
	commit_account(1);
	ck_assert_uint_eq(files_of(first), 1);
	close_all();
	snprintf(command, sizeof(command),
		"cd %s && printf x | dd of=%s bs=1 seek=%d conv=notrunc 2>&1", journal_path, first,
		_i == 0 ? 20 : JOURNAL_HEADER_BYTES + 30);
	ck_assert_int_eq(system(command), 0);
	open_all(2);
	ck_assert(journal_is_incomplete(journal) == (_i == 0)); /* rows are not read at once */
	keep_until(2, "none");
	commit_account(2);
	ck_assert_int_eq(records_after_snapshot(), 1);
	close_all();
	open_all(3);
	keep_until(2, first);
}
END_TEST

static void run_in_folder(const char *what)
{
	char command[800];
	snprintf(command, sizeof(command), "cd %s && %s", folder, what);
	ck_assert_int_eq(system(command), 0);
}

/* Two power cuts: one takes a change from the catalog whose record stays, the next takes the record
 * of the change that came in its place. */
START_TEST(a_record_of_another_change_of_that_number_is_not_followed)
{
	make_snapshot();
	commit_account(1);
	close_all();
	run_in_folder("mkdir before && cp catalog.db* before/");
	open_all(2);
	commit_account(2);
	close_all();
	run_in_folder("rm catalog.db* && cp before/* .");
	open_all(3);
	commit_account(3);
	close_all();
	run_in_folder("rm $(ls journal/*.log | tail -n 1)");
	open_all(4);
	ck_assert(journal_is_incomplete(journal));
	make_snapshot();
	commit_account(4);
	ck_assert_int_eq(records_after_snapshot(), 1);
}
END_TEST

START_TEST(a_log_that_is_missing_between_two_is_noticed)
{
	char command[700];
	commit_account(1);
	await_complete();
	for (int life = 2; life < 5; life++) {
		close_all();
		open_all((uint64_t)life);
		commit_account(life);
	}
	close_all();
	snprintf(command, sizeof(command), "cd %s && rm $(ls *.log | tail -2 | head -1)",
		journal_path);
	ck_assert_int_eq(system(command), 0);
	open_all(5);
	ck_assert(!journal_is_incomplete(journal)); /* the last record is there */
	await_complete();
	ck_assert(!journal_is_incomplete(journal));
}
END_TEST

Suite *test_journal_suite(void);
Suite *test_journal_suite(void)
{
	Suite *suite = suite_create("journal");
	TCase *tests = tcase_create("journal");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_commit_is_a_record);
	tcase_add_test(tests, what_is_rolled_back_is_in_no_record);
	tcase_add_test(tests, a_record_that_does_not_commit_is_cut_off);
	tcase_add_test(tests, the_next_life_follows_on_the_last_change);
	tcase_add_test(tests, a_journal_that_lost_its_end_begins_anew);
	tcase_add_loop_test(tests, changes_go_on_where_the_journal_cannot, 0, 3);
	tcase_add_test(tests, nothing_is_believed_after_a_failed_sync);
	tcase_add_loop_test(tests, a_snapshot_that_fails_leaves_no_file, 0, 3);
	tcase_add_test(tests, two_snapshots_and_the_logs_since_stay);
	tcase_add_loop_test(tests, a_damaged_snapshot_is_noticed_and_made_again, 0, 2);
	tcase_add_test(tests, a_record_of_another_change_of_that_number_is_not_followed);
	tcase_add_test(tests, a_log_that_is_missing_between_two_is_noticed);
	suite_add_tcase(suite, tests);
	return suite;
}
