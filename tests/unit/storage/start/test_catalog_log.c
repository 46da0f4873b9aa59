/* The catalog's log before SQLite sees it, with different notes beside it. A power cut while a
 * damaged log is applied to the catalog loses nothing more. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/db/db.h"
#include "storage/db/log_walk.h"
#include "storage/start/catalog_log.h"
#include "tests/unit/power_disk.h"

enum { COMMITS = 8, HEADER = 32, FRAME = 24 + 4096, DAMAGED_FRAME = 9 };

/* of a catalog as a kill leaves it: "catalog", which a power disk treats as any file */
static char *folder;
static char path[512];
static char log_path[600];
static char aside[600];
static struct acknowledgement last; /* exact: all that the log has was acknowledged */
static struct acknowledged *acknowledged;
static struct db *db;
static struct buffer contents[16]; /* earlier contents of files */
static size_t contents_count;

static void add(int64_t id)
{
	static const char SQL_INSERT[] = "INSERT INTO t (id, bytes) VALUES (?1, ?2)";
	static uint8_t bytes[6000];
	struct error err = {0};
	const struct span filled = span_of(bytes, sizeof bytes);
	memset(bytes, (int)id, sizeof bytes);
	ck_assert_msg(
		db_run(db, SQL_INSERT, &err, db_i64(id), db_blob(filled)) == 0, "%s", err.text);
}

static void name_paths(const char *in)
{
	snprintf(path, sizeof path, "%s/catalog", in);
	snprintf(log_path, sizeof log_path, "%s-wal", path);
	snprintf(aside, sizeof aside, "%s/set-aside", in);
}

static void note_last(void)
{
	char note_path[600];
	struct error err = {0};
	const struct acknowledgement now = {.store.life = 1,
		.change = 3,
		.log_salt = db_log_salt(db),
		.log_frames = db_log_frames(db)};
	snprintf(note_path, sizeof note_path, "%s.note", path);
	acknowledged = acknowledged_open(file_system(), note_path, &last, &err);
	ck_assert_int_eq(acknowledged_note(acknowledged, &now, &err), 0);
	ck_assert_int_eq(acknowledged_read(note_path, &last, &err), 0);
	acknowledged_close(acknowledged);
	ck_assert_int_eq(unlink(note_path), 0);
}

static void set_up(void)
{
	struct error err = {0};
	char *made = unit_scratch_make();
	name_paths(made);
	db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(
		db_run_script(
			db, "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", &err),
		0);
	add(0);
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	for (int64_t i = 1; i <= COMMITS; i++)
		add(i);
	note_last();
	folder = unit_scratch_copy(made);
	db_close(db);
	unit_scratch_remove(made);
	name_paths(folder);
	char shared[600];
	snprintf(shared, sizeof shared, "%s-shm", path);
	unlink(shared);
}

static void tear_down(void)
{
	for (size_t i = 0; i < contents_count; i++)
		buffer_release(&contents[i]);
	contents_count = 0;
	unit_scratch_remove(folder);
}

static struct catalog_log_params params_of(void)
{
	return (struct catalog_log_params){
		.files = file_system(), .catalog_path = path, .folder = aside, .aside = aside,
		.last = &last};
}

static bool prepare(const struct catalog_log_params *params)
{
	struct error err = {0};
	bool is_whole;
	ck_assert_msg(catalog_log_prepare(params, &is_whole, &err) == 0, "%s", err.text);
	return is_whole;
}

static off_t frame_at(uint32_t frame)
{
	return HEADER + (off_t)frame * FRAME;
}

static void blot(const char *file, off_t at, size_t len)
{
	static uint8_t junk[4096];
	int fd = open(file, O_RDWR);
	memset(junk, 0xa7, sizeof junk);
	ck_assert_int_eq(pwrite(fd, junk, len, at), len);
	close(fd);
}

/* Valid until the test ends. */
static struct span content(const char *file)
{
	struct error err = {0};
	ck_assert_uint_lt(contents_count, sizeof contents / sizeof *contents);
	struct buffer *bytes = &contents[contents_count++];
	buffer_init(bytes, 1 << 24);
	ck_assert_msg(file_read_all(file, bytes, &err) == 0, "%s", err.text);
	return buffer_span(bytes);
}

static void expect_same(const char *file, struct span before)
{
	struct span now = content(file);
	ck_assert_msg(span_equal(now, before), "%s is another than it was", file);
}

static void put_content(const char *file, struct span bytes)
{
	struct error err = {0};
	ck_assert_msg(file_place(file_system(), file, bytes, 0600, &err) == 0, "%s", err.text);
}

static char kept_path[700];

static const char *kept(unsigned n)
{
	snprintf(kept_path, sizeof kept_path, "%s/catalog-wal.%u", aside, n);
	return kept_path;
}

/* Rows of the catalog at this path, or -1 when one of them cannot be read. */
static int64_t rows_of(const char *catalog)
{
	static const char SQL_COUNT[] =
		"SELECT count(*), coalesce(sum(length(bytes)), 0) FROM t NOT INDEXED WHERE bytes >= x''";
	struct error err = {0};
	db = db_open(catalog, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	int64_t found = -1;
	const int got = db_find_i64(db, SQL_COUNT, &found, &err);
	db_close(db);
	return got == 1 ? found : -1;
}

START_TEST(a_sound_log_is_left_as_it_is)
{
	struct span log = content(log_path);
	const struct catalog_log_params params = params_of();
	ck_assert(prepare(&params));
	expect_same(log_path, log);
	ck_assert(!file_exists(aside));
	ck_assert_int_eq(rows_of(path), COMMITS + 1);
}
END_TEST

START_TEST(no_log_is_no_failure)
{
	struct error err = {0};
	bool is_whole = true;
	struct catalog_log_params params = params_of();
	const struct acknowledgement nothing = {.change = 0};
	ck_assert_int_eq(unlink(log_path), 0);
	params.last = &nothing;
	ck_assert(prepare(&params));
	params.last = &last;
	/* the loss shows later, by the number of the last change */
	ck_assert_int_eq(catalog_log_prepare(&params, &is_whole, &err), 0);
}
END_TEST

START_TEST(a_flipped_bit_is_mended_and_lasts)
{
	struct span log = content(log_path);
	struct power_disk *disk;
	struct catalog_log_params params = params_of();
	uint8_t byte = log.data[frame_at(5) + 1000] ^ 8;
	int fd = open(log_path, O_RDWR);
	ck_assert_int_eq(pwrite(fd, &byte, 1, frame_at(5) + 1000), 1);
	close(fd);
	disk = power_disk_new(folder);
	params.files = power_disk_files(disk);
	ck_assert(prepare(&params));
	expect_same(log_path, log);
	ck_assert_str_eq(power_disk_trace(disk), "write catalog-wal\nsync catalog-wal\n");
	power_disk_free(disk);
	ck_assert_int_eq(rows_of(path), COMMITS + 1);
}
END_TEST

/* Tears the last transaction, and notes that all before it was acknowledged. */
static void tear_end(void)
{
	struct error err = {0};
	struct stat facts;
	ck_assert_int_eq(stat(log_path, &facts), 0);
	last.log_frames = (uint32_t)((facts.st_size - HEADER) / FRAME) - 1;
	blot(log_path, facts.st_size - 500, 100);
	struct log_walk walk;
	const struct log_note note = {.salt = last.log_salt};
	ck_assert_int_eq(log_walk(log_path, &note, &walk, &err), 0);
	ck_assert_int_eq(walk.state, LOG_TORN);
	last.log_frames = walk.committed;
	log_walk_release(&walk);
}

START_TEST(a_torn_end_is_nothing_only_when_the_note_is_exact)
{
	struct catalog_log_params params = params_of();
	tear_end();
	struct span log = content(log_path);
	if (_i == 1)
		last.boot[0] ^= 1; /* the machine was restarted since then */
	if (_i == 3)
		last.log_salt++; /* of another log */
	uint32_t committed = last.log_frames;
	if (_i == 2)
		last = (struct acknowledgement){0}; /* nothing was noted */
	ck_assert_int_eq(prepare(&params), _i == 0);
	expect_same(log_path, span_slice(log, 0, (size_t)frame_at(committed)));
	ck_assert_int_eq(file_exists(kept(1)), _i != 0);
	if (_i != 0)
		expect_same(kept(1), log);
	ck_assert_int_eq(rows_of(path), COMMITS);
}
END_TEST

/* Frames of a transaction that never committed: no copy is kept, and no frame stays that could
 * follow a later, shorter transaction. */
START_TEST(an_end_that_never_was_committed_is_cut_off)
{
	struct error err = {0};
	struct catalog_log_params params = params_of();
	struct log_walk walk;
	const struct log_note note = {.salt = 0};
	struct span log = content(log_path);
	ck_assert_int_eq(log_walk(log_path, &note, &walk, &err), 0);
	uint32_t end = walk.frames - 1; /* without its commit */
	uint32_t committed = end;
	while (walk.list[committed - 1].pages == 0)
		committed--;
	log_walk_release(&walk);
	ck_assert_uint_gt(end, committed);
	last.log_frames = committed;
	put_content(log_path, span_slice(log, 0, (size_t)frame_at(end)));
	ck_assert(prepare(&params));
	expect_same(log_path, span_slice(log, 0, (size_t)frame_at(committed)));
	ck_assert(!file_exists(kept(1)));
	ck_assert_int_eq(rows_of(path), COMMITS);
}
END_TEST

START_TEST(each_kept_log_has_a_name_of_its_own_and_there_are_few)
{
	struct catalog_log_params params = params_of();
	tear_end();
	last.boot[0] ^= 1;
	struct span log = content(log_path);
	for (unsigned n = 1; n <= 8; n++) {
		ck_assert(!file_exists(kept(n)));
		ck_assert(!prepare(&params));
		ck_assert(file_exists(kept(n)));
		put_content(log_path, log);
	}
	ck_assert(!prepare(&params));
	ck_assert(!file_exists(kept(9)));
	expect_same(log_path, log); /* without a copy the end stays */
}
END_TEST

static int no_space(const struct file_ops *ops, const char *where, struct file_space *out)
{
	(void)ops, (void)where;
	*out = (struct file_space){.free = 1000, .all = 1 << 30};
	return 0;
}

START_TEST(below_the_reserve_no_copy_is_kept)
{
	struct file_ops files = *file_system();
	const struct disk_floor floor = {.files = &files, .folder = folder, .bytes = 1 << 20};
	struct catalog_log_params params = params_of();
	files.space = no_space;
	params.floor = &floor;
	tear_end();
	last.boot[0] ^= 1;
	struct span log = content(log_path);
	ck_assert(!prepare(&params));
	ck_assert(!file_exists(aside));
	expect_same(log_path, log);
	ck_assert_int_eq(rows_of(path), COMMITS);
}
END_TEST

START_TEST(a_damaged_log_is_refused_and_nothing_changes)
{
	struct error err = {0};
	bool is_whole;
	struct catalog_log_params params = params_of();
	blot(log_path, frame_at(DAMAGED_FRAME) + 100, 700);
	struct span log = content(log_path);
	struct span catalog = content(path);
	ck_assert_int_eq(catalog_log_prepare(&params, &is_whole, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_msg(strstr(err.text, log_path) != NULL, "%s", err.text);
	expect_same(log_path, log);
	expect_same(path, catalog);
	ck_assert(!file_exists(aside));
}
END_TEST

START_TEST(a_damaged_log_goes_into_the_catalog_as_far_as_it_proves_itself)
{
	struct catalog_log_params params = params_of();
	blot(log_path, frame_at(0) + 24, 4096); /* the page is in later transactions, too */
	struct span log = content(log_path);
	params.accepts_loss = true;
	if (_i == 1)
		params.aside = NULL;
	ck_assert(!prepare(&params));
	ck_assert(!file_exists(log_path));
	ck_assert_int_eq(file_exists(kept(1)), _i == 0);
	if (_i == 0)
		expect_same(kept(1), log);
	ck_assert_int_eq(rows_of(path), COMMITS + 1);
}
END_TEST

START_TEST(no_kept_log_goes_for_another)
{
	struct error err = {0};
	bool is_whole;
	struct catalog_log_params params = params_of();
	blot(log_path, frame_at(0) + 24, 4096);
	ck_assert_int_eq(file_make_folder(file_system(), aside, 0700, &err), 0);
	for (unsigned n = 1; n <= 8; n++)
		close(open(kept(n), O_CREAT | O_WRONLY, 0600));
	struct span log = content(log_path);
	struct span catalog = content(path);
	params.accepts_loss = true;
	ck_assert_int_eq(catalog_log_prepare(&params, &is_whole, &err), -1);
	ck_assert_msg(err.kind == ERROR_DAMAGED && strstr(err.text, "set-aside drop") != NULL, "%s",
		err.text);
	expect_same(log_path, log);
	expect_same(path, catalog);
}
END_TEST

START_TEST(what_one_flip_explains_is_mended_before_it_goes_into_the_catalog)
{
	struct stat facts;
	uint8_t byte;
	struct catalog_log_params params = params_of();
	params.accepts_loss = true;
	blot(log_path, frame_at(0) + 24, 4096);
	char *other = unit_scratch_copy(folder);
	ck_assert(!prepare(&params));
	struct span right = content(path);
	name_paths(other);
	ck_assert_int_eq(stat(log_path, &facts), 0);
	int fd = open(log_path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, facts.st_size - 2000), 1);
	byte ^= 4;
	ck_assert_int_eq(pwrite(fd, &byte, 1, facts.st_size - 2000), 1);
	close(fd);
	params = params_of();
	params.accepts_loss = true;
	ck_assert(!prepare(&params));
	expect_same(path, right);
	unit_scratch_remove(other);
}
END_TEST

/* Cuts the power before each operation, and prepares the log again from each state. */
START_TEST(a_power_cut_meanwhile_costs_nothing_more)
{
	size_t count;
	bool went = false;
	struct catalog_log_params params = params_of();
	blot(log_path, frame_at(0) + 24, 4096);
	struct power_disk *disk = power_disk_new(folder);
	power_disk_cut_each(disk, (enum power_cut)_i);
	params.files = power_disk_files(disk);
	params.accepts_loss = true;
	ck_assert(!prepare(&params));
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 3);
	for (size_t i = 0; i < count; i++) {
		name_paths(taken[i].folder);
		struct catalog_log_params again = params_of();
		again.accepts_loss = true;
		went = !file_exists(log_path);
		prepare(&again);
		ck_assert_msg(rows_of(path) == COMMITS + 1, "cut before \"%s\"", taken[i].line);
	}
	/* SQLite begins a new log under this name: the old one must not come back. */
	ck_assert(went && file_exists(kept(1)));
	power_disk_free(disk);
}
END_TEST

Suite *test_catalog_log_suite(void);
Suite *test_catalog_log_suite(void)
{
	Suite *suite = suite_create("catalog_log");
	TCase *tests = tcase_create("catalog_log");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_sound_log_is_left_as_it_is);
	tcase_add_test(tests, no_log_is_no_failure);
	tcase_add_test(tests, a_flipped_bit_is_mended_and_lasts);
	tcase_add_loop_test(tests, a_torn_end_is_nothing_only_when_the_note_is_exact, 0, 4);
	tcase_add_test(tests, an_end_that_never_was_committed_is_cut_off);
	tcase_add_test(tests, each_kept_log_has_a_name_of_its_own_and_there_are_few);
	tcase_add_test(tests, below_the_reserve_no_copy_is_kept);
	tcase_add_test(tests, a_damaged_log_is_refused_and_nothing_changes);
	tcase_add_loop_test(
		tests, a_damaged_log_goes_into_the_catalog_as_far_as_it_proves_itself, 0, 2);
	tcase_add_test(tests, no_kept_log_goes_for_another);
	tcase_add_test(tests, what_one_flip_explains_is_mended_before_it_goes_into_the_catalog);
	tcase_add_loop_test(tests, a_power_cut_meanwhile_costs_nothing_more, 0, POWER_CUTS);
	suite_add_tcase(suite, tests);
	return suite;
}
