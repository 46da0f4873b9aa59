/* Logs that SQLite wrote, damaged in every way that a disk can. The walk must notice what SQLite
 * would lose, and bring back what proves itself. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/db/db.h"
#include "storage/db/log_walk.h"

enum { COMMITS = 12, HEADER = 32, FRAME = 24 + 4096 };

static char *folder; /* has a database whose log nobody has moved into it */
static char path[512];
static char log_path[600];
static struct log_walk walk;

static const char SQL_INSERT[] = "INSERT INTO t (id, bytes) VALUES (?1, ?2)";
static const char SQL_COUNT[] =
	"SELECT count(*), coalesce(sum(length(bytes)), 0) FROM t NOT INDEXED WHERE bytes >= x''";

static struct db *open_it(void)
{
	struct error err = {0};
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	return db;
}

static void add(struct db *db, int64_t id)
{
	struct error err = {0};
	static uint8_t bytes[6000];
	const struct span filled = span_of(bytes, sizeof bytes);
	memset(bytes, (int)id, sizeof bytes);
	ck_assert_msg(
		db_run(db, SQL_INSERT, &err, db_i64(id), db_blob(filled)) == 0, "%s", err.text);
}

static void name_paths(const char *in)
{
	snprintf(path, sizeof path, "%s/test.db", in);
	snprintf(log_path, sizeof log_path, "%s-wal", path);
}

/* Each transaction adds one row, on pages of its own and on pages that all share. */
static void set_up(void)
{
	struct error err = {0};
	char *made = unit_scratch_make();
	name_paths(made);
	struct db *db = open_it();
	ck_assert_int_eq(
		db_run_script(
			db, "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", &err),
		0);
	add(db, 0);
	ck_assert_int_eq(db_checkpoint_truncate(db, &err), 0);
	for (int64_t i = 1; i <= COMMITS; i++)
		add(db, i);
	folder = unit_scratch_copy(made);
	db_close(db);
	unit_scratch_remove(made);
	name_paths(folder);
}

static void tear_down(void)
{
	log_walk_release(&walk);
	unit_scratch_remove(folder);
}

/* With a note beside the log. */
static void look_by(const struct log_note *note)
{
	struct error err = {0};
	log_walk_release(&walk);
	ck_assert_msg(log_walk(log_path, note, &walk, &err) == 0, "%s", err.text);
}

static void look_with(uint64_t salt, uint32_t frames)
{
	const struct log_note note = {.salt = salt, .frames = frames};
	look_by(&note);
}

/* With an exact note: nobody was told of frames after the noted ones. */
static void look_exactly(uint64_t salt, uint32_t frames)
{
	const struct log_note note = {.salt = salt, .frames = frames, .is_exact = true};
	look_by(&note);
}

static void look(void)
{
	look_with(0, 0);
}

static void flip(off_t at, uint8_t mask)
{
	uint8_t byte;
	int fd = open(log_path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= mask;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void blot(off_t at, size_t len)
{
	static uint8_t junk[8192];
	int fd = open(log_path, O_RDWR);
	memset(junk, 0xa7, sizeof junk);
	ck_assert_int_eq(pwrite(fd, junk, len, at), len);
	close(fd);
}

static off_t frame_at(uint32_t frame)
{
	return HEADER + (off_t)frame * FRAME;
}

/* The number of rows that can be read, or -1 when one cannot. */
static int64_t rows(void)
{
	struct error err = {0};
	struct db *db = open_it();
	struct db_statement *count = db_query(db, SQL_COUNT, &err);
	int64_t found = db_step(count, &err) == 1 ? db_column_i64(count, 0) : -1;
	if (found >= 0)
		ck_assert_int_eq(db_column_i64(count, 1), found * 6000);
	else
		ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	db_reset(count);
	db_close(db);
	return found;
}

/* The last frame of the n-th transaction, counted from 1. */
static uint32_t commit_frame(unsigned n)
{
	uint32_t frame = 0;
	for (; frame < walk.frames; frame++)
		if (walk.list[frame].pages != 0 && --n == 0)
			return frame;
	ck_abort_msg("no such transaction");
	return 0;
}

static uint32_t apply(void)
{
	struct error err = {0};
	uint32_t lost = 0;
	ck_assert_msg(log_walk_mend(&walk, file_system(), log_path, &err) == 0, "%s", err.text);
	ck_assert_msg(log_walk_apply(&walk, file_system(), log_path, path, &lost, &err) == 0, "%s",
		err.text);
	ck_assert_int_eq(unlink(log_path), 0);
	return lost;
}

START_TEST(a_log_as_a_kill_leaves_it_is_sound)
{
	look();
	ck_assert_int_eq(walk.state, LOG_SOUND);
	ck_assert_uint_ge(walk.frames, COMMITS * 3);
	ck_assert_uint_eq(walk.committed, walk.frames);
	ck_assert_uint_eq(walk.mend_count, 0);
	ck_assert_int_eq(rows(), COMMITS + 1);
}
END_TEST

START_TEST(no_log_is_an_empty_one)
{
	ck_assert_int_eq(unlink(log_path), 0);
	look();
	ck_assert_int_eq(walk.state, LOG_EMPTY);
	close(open(log_path, O_CREAT | O_WRONLY, 0600));
	look();
	ck_assert_int_eq(walk.state, LOG_EMPTY);
}
END_TEST

/* Flips in each field of the log's header and of frames at its front, middle and end. */
START_TEST(a_flipped_bit_anywhere_is_mended)
{
	static const int places[] = {0, 3, 5, 9, 13, 16, 20, 24, 28};
	static const int frame_places[] = {1, 2, 5, 6, 8, 13, 17, 22, 24, 1000, 4000, 4116};
	look();
	uint32_t frames[] = {0, 1, commit_frame(5), commit_frame(5) + 1, walk.frames - 1};
	struct error err = {0};
	for (unsigned i = 0;
		i < sizeof places / sizeof *places + sizeof frames / sizeof *frames * 12; i++) {
		unsigned j = i - (unsigned)(sizeof places / sizeof *places);
		off_t at = i < sizeof places / sizeof *places
			? places[i]
			: frame_at(frames[j / 12]) + frame_places[j % 12];
		/* To SQLite's checksum flips of a word's high bits sometimes look alike: see
		 * below. */
		uint8_t mask = (uint8_t)(1u << (i % 5));
		flip(at, mask);
		look();
		ck_assert_msg(walk.state == LOG_SOUND && walk.mend_count == 1,
			"at %d: state %d, %zu mends", (int)at, walk.state, walk.mend_count);
		ck_assert_uint_eq(walk.committed, walk.frames);
		if (at < frame_at(walk.frames) - 8) /* there the checksum itself is corrected */
			ck_assert_int_eq((int)walk.mends[0].offset, (int)at);
		ck_assert_int_eq(log_walk_mend(&walk, file_system(), log_path, &err), 0);
		look();
		ck_assert(walk.state == LOG_SOUND && walk.mend_count == 0);
	}
	ck_assert_int_eq(rows(), COMMITS + 1);
}
END_TEST

/* Two flips have the same effect, so neither is believed. */
START_TEST(a_flip_that_two_places_explain_is_not_mended)
{
	look();
	off_t at = frame_at(commit_frame(5)) + 24;
	for (int word = 0; word < 64; word++) {
		flip(at + 4 * word + 3, 0x80);
		look();
		ck_assert_int_eq(walk.state, LOG_DAMAGED);
		ck_assert_uint_eq(walk.mend_count, 0);
		flip(at + 4 * word + 3, 0x80);
	}
}
END_TEST

START_TEST(damage_before_a_later_commit_is_told_from_a_torn_end)
{
	look();
	uint32_t frame = commit_frame(6) - 1;
	uint32_t before = commit_frame(5) + 1;
	uint32_t all = walk.frames;
	blot(frame_at(frame) + 100, 700);
	look();
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_eq(walk.committed, before); /* all that SQLite would take */
	ck_assert_uint_eq(walk.proven, all);
	ck_assert_uint_eq(walk.bad, 1);
	ck_assert_uint_eq(apply(), 1);
	ck_assert_int_eq(rows(), -1); /* the lost page is an error, not an answer */
}
END_TEST

START_TEST(a_page_that_was_written_again_is_not_lost)
{
	look();
	uint32_t frame = 0; /* of a page that each transaction writes */
	for (uint32_t i = 0; i < commit_frame(3); i++)
		for (uint32_t j = commit_frame(COMMITS - 1); j < walk.frames; j++)
			frame = walk.list[i].page == walk.list[j].page ? i : frame;
	blot(frame_at(frame) + 24, 4096);
	look();
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_eq(walk.bad, 1);
	ck_assert_uint_eq(apply(), 0);
	ck_assert_int_eq(rows(), COMMITS + 1);
}
END_TEST

START_TEST(an_end_that_never_was_committed_is_torn)
{
	look();
	uint32_t first = commit_frame(COMMITS - 1) + 1;
	uint32_t last = walk.frames - 1;
	ck_assert_uint_gt(last, first);
	blot(frame_at(first) + 200, 300); /* its own commit follows, and nothing else */
	look();
	ck_assert_int_eq(walk.state, LOG_TORN);
	ck_assert_uint_eq(walk.committed, first);
	uint64_t salt = walk.salt;
	look_with(salt, first);
	ck_assert_int_eq(walk.state, LOG_TORN);
	look_with(salt + 1, last + 1); /* of another log */
	ck_assert_int_eq(walk.state, LOG_TORN);
	look_with(salt, last + 1); /* but it was committed */
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_eq(walk.proven, last + 1);
	ck_assert_uint_eq(walk.bad, 1);
	look();
	ck_assert_int_eq(rows(), COMMITS); /* as after a power cut */
}
END_TEST

/* The log with one more transaction, of this number of rows. */
static void read_longer_log(unsigned count, struct buffer *out)
{
	struct error err = {0};
	char log[700];
	struct db *db = open_it();
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (unsigned i = 0; i < count; i++)
		add(db, COMMITS + 1 + i);
	ck_assert_int_eq(db_commit(db, &err), 0);
	char *copy = unit_scratch_copy(folder);
	db_close(db);
	snprintf(log, sizeof log, "%s/test.db-wal", copy);
	buffer_init(out, 1 << 24);
	ck_assert_msg(file_read_all(log, out, &err) == 0, "%s", err.text);
	unit_scratch_remove(copy);
}

static void start_again_from(const char *other)
{
	unit_scratch_remove(folder);
	folder = unit_scratch_copy(other);
	name_paths(folder);
}

/* A long transaction never committed, a short one was written over it, and a power cut lost the
 * last page of that: the rest of the long one proves itself. */
START_TEST(what_a_transaction_left_that_was_given_up_is_no_damage)
{
	struct error err = {0};
	struct buffer given_up;
	struct buffer torn;
	uint64_t size;
	look();
	uint32_t all = walk.frames;
	char *before = unit_scratch_copy(folder);
	read_longer_log(5, &given_up);
	start_again_from(before);
	read_longer_log(1, &torn);
	start_again_from(before);
	ck_assert_uint_gt(given_up.len, torn.len + 3 * FRAME);
	memcpy(given_up.data + frame_at(all), torn.data + frame_at(all),
		torn.len - (size_t)frame_at(all) - 4096);
	given_up.len -= FRAME; /* its commit */
	ck_assert_int_eq(
		file_place(file_system(), log_path, buffer_span(&given_up), 0600, &err), 0);
	look();
	ck_assert(walk.list[walk.frames - 1].is_good);
	ck_assert_int_eq(walk.state, LOG_TORN);
	ck_assert_uint_eq(walk.committed, all);
	ck_assert_int_eq(log_walk_cut(&walk, file_system(), log_path, &err), 0);
	ck_assert(file_size(log_path, &size, &err) == 0 && size == (uint64_t)frame_at(all));
	look();
	ck_assert_int_eq(walk.state, LOG_SOUND);
	ck_assert_int_eq(rows(), COMMITS + 1);
	unit_scratch_remove(before);
	buffer_release(&given_up);
	buffer_release(&torn);
}
END_TEST

START_TEST(a_last_commit_that_is_damaged_is_torn_unless_it_was_noted)
{
	look();
	uint32_t last = walk.frames - 1;
	uint64_t salt = walk.salt;
	blot(frame_at(last) + 300, 100);
	look();
	ck_assert_int_eq(walk.state, LOG_TORN);
	look_with(salt, last + 1);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	/* the lost transaction cannot be recovered in part */
	ck_assert_uint_eq(walk.proven, commit_frame(COMMITS - 1) + 1);
}
END_TEST

START_TEST(a_commit_that_is_damaged_before_another_is_damage)
{
	look();
	/* its header says that it is a commit */
	blot(frame_at(commit_frame(COMMITS - 1)) + 2000, 100);
	look();
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
}
END_TEST

START_TEST(what_stands_behind_an_exact_note_was_never_told)
{
	look();
	uint64_t salt = walk.salt;
	uint32_t told = commit_frame(8) + 1;
	uint32_t bad = commit_frame(9);
	blot(frame_at(bad) + 2000, 100); /* failed commits left this, and more after it */
	look_with(salt, told);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	look_exactly(salt, told);
	ck_assert_int_eq(walk.state, LOG_TORN);
	ck_assert_uint_eq(walk.committed, told);
	ck_assert_uint_eq(walk.proven, told);
	look_exactly(salt, bad + 1);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_eq(walk.proven, told); /* the whole transactions of the noted frames */
	look_exactly(salt + 1, told);         /* of another log */
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
}
END_TEST

static bool is_in_log(uint32_t page)
{
	for (uint32_t i = 0; i < walk.frames; i++)
		if (walk.list[i].page == page)
			return true;
	return false;
}

/* It would name another page, of which no frame has content. */
START_TEST(a_bad_header_names_no_page)
{
	uint8_t header[8] = {0, 0, 0, 2};
	struct error err = {0};
	uint32_t lost;
	uint8_t pages[2][4096];
	look();
	uint32_t frame = commit_frame(6) - 1;
	while (is_in_log(header[3]))
		header[3]++;
	blot(frame_at(frame), 700);
	int log = open(log_path, O_RDWR);
	int database = open(path, O_RDWR);
	ck_assert_int_eq(pwrite(log, header, sizeof header, frame_at(frame)), sizeof header);
	look();
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_int_eq(pread(database, pages[0], 4096, (header[3] - 1) * 4096), 4096);
	ck_assert_int_eq(log_walk_apply(&walk, file_system(), log_path, path, &lost, &err), 0);
	ck_assert_int_eq(pread(database, pages[1], 4096, (header[3] - 1) * 4096), 4096);
	ck_assert_mem_eq(pages[0], pages[1], 4096);
	ck_assert_uint_eq(lost, 1);
	close(log);
	close(database);
}
END_TEST

START_TEST(a_log_that_was_cut_is_noticed_by_what_was_noted)
{
	look();
	uint32_t all = walk.frames;
	uint64_t salt = walk.salt;
	ck_assert_int_eq(truncate(log_path, frame_at(commit_frame(4) + 1)), 0);
	look();
	ck_assert_int_eq(walk.state, LOG_SOUND);
	look_with(salt, all);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_eq(walk.proven, walk.committed);
}
END_TEST

START_TEST(frames_without_their_header_prove_themselves)
{
	look();
	uint64_t salt = walk.salt;
	blot(0, 32);
	look();
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert(!walk.has_header);
	ck_assert_uint_eq(walk.committed, 0);
	ck_assert_uint_eq(walk.proven, walk.frames);
	ck_assert(walk.salt == salt);
	ck_assert_uint_le(walk.bad, 1); /* the first proves itself by the header's checksum alone */
	look_with(salt + 1, 3);         /* frames of an earlier use of the file */
	ck_assert_int_eq(walk.state, LOG_EMPTY);
	blot(frame_at(0), 24); /* with the noted salt the first frame is not needed */
	look_with(salt, walk.frames);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_gt(walk.proven, COMMITS);
	apply();
	ck_assert_int_eq(rows(), COMMITS + 1);
}
END_TEST

/* SQLite begins a log that was moved into the database again from its front. */
START_TEST(frames_of_an_earlier_use_are_left_alone)
{
	struct error err = {0};
	struct db *db = open_it();
	ck_assert_int_eq(db_checkpoint_restart(db, &err), 0);
	add(db, 100);
	char *copy = unit_scratch_copy(folder);
	db_close(db);
	name_paths(copy);
	look();
	ck_assert_int_eq(walk.state, LOG_SOUND);
	ck_assert_uint_lt(walk.frames, 10);
	ck_assert_uint_eq(walk.committed, walk.frames);
	struct stat facts;
	ck_assert_int_eq(stat(log_path, &facts), 0);
	ck_assert_int_gt(facts.st_size, frame_at(30));
	blot(frame_at(walk.frames - 1) + 100, 10);
	look();
	ck_assert_int_eq(walk.state, LOG_TORN);
	unit_scratch_remove(copy);
	name_paths(folder);
}
END_TEST

/* What a power cut leaves: the page with the header of the last transaction's first frame was not
 * written, but the frames after it were. In its place is the header of a commit from the use
 * before. */
START_TEST(a_header_of_an_earlier_use_proves_no_damage)
{
	struct error err = {0};
	static uint8_t earlier[24];
	struct db *db = open_it();
	look();
	uint32_t commit = commit_frame(3);
	int fd = open(log_path, O_RDWR);
	ck_assert_int_eq(pread(fd, earlier, sizeof earlier, frame_at(commit)), sizeof earlier);
	ck_assert_int_eq(db_checkpoint_restart(db, &err), 0);
	add(db, 100);
	look();
	uint32_t told = walk.frames;
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (int64_t i = 101; i < 106; i++)
		add(db, i);
	ck_assert_int_eq(db_commit(db, &err), 0);
	look();
	ck_assert_uint_gt(walk.frames, told + 3);
	ck_assert_int_eq(pwrite(fd, earlier, sizeof earlier, frame_at(told)), sizeof earlier);
	look();
	ck_assert_int_eq(walk.state, LOG_TORN);
	ck_assert_uint_eq(walk.committed, told);
	close(fd);
	db_close(db);
}
END_TEST

START_TEST(a_log_may_be_applied_twice)
{
	struct error err = {0};
	uint32_t lost;
	look();
	blot(frame_at(commit_frame(6) - 1) + 100, 700);
	look();
	ck_assert_int_eq(log_walk_apply(&walk, file_system(), log_path, path, &lost, &err), 0);
	look();
	ck_assert_uint_eq(apply(), lost);
}
END_TEST

START_TEST(a_lost_first_page_is_refused)
{
	struct error err = {0};
	struct buffer before;
	struct buffer after;
	uint32_t lost;
	buffer_init(&before, 1 << 24);
	buffer_init(&after, 1 << 24);
	look();
	uint32_t frame = walk.frames - 1;
	uint32_t all = walk.frames;
	uint64_t salt = walk.salt;
	while (walk.list[frame].page != 1)
		frame--;
	blot(frame_at(frame) + 100, 700);
	look_with(salt, all);
	ck_assert_int_eq(walk.state, LOG_DAMAGED);
	ck_assert_uint_gt(walk.proven, frame);
	ck_assert_int_eq(file_read_all(path, &before, &err), 0);
	ck_assert_int_eq(log_walk_apply(&walk, file_system(), log_path, path, &lost, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_ptr_nonnull(strstr(err.text, "page 1"));
	ck_assert_int_eq(file_read_all(path, &after, &err), 0);
	ck_assert(span_equal(buffer_span(&before), buffer_span(&after)));
	buffer_release(&before);
	buffer_release(&after);
}
END_TEST

START_TEST(a_failure_while_applying_is_told)
{
	struct error err = {0};
	uint32_t lost;
	struct file_faults faults;
	blot(frame_at(4) + 100, 700);
	look();
	file_faults_init(&faults, _i == 0 ? FILE_FAULT_WRITE : FILE_FAULT_SYNC, 0, 5);
	ck_assert_int_eq(log_walk_apply(&walk, &faults.ops, log_path, path, &lost, &err), -1);
	flip(frame_at(4) + 100, 1);
	flip(frame_at(6) + 100, 1);
	look();
	file_faults_init(&faults, _i == 0 ? FILE_FAULT_WRITE : FILE_FAULT_SYNC, 0, 5);
	if (walk.mend_count > 0)
		ck_assert_int_eq(log_walk_mend(&walk, &faults.ops, log_path, &err), -1);
}
END_TEST

Suite *test_log_walk_suite(void);
Suite *test_log_walk_suite(void)
{
	Suite *suite = suite_create("log_walk");
	TCase *tests = tcase_create("log_walk");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_log_as_a_kill_leaves_it_is_sound);
	tcase_add_test(tests, no_log_is_an_empty_one);
	tcase_add_test(tests, a_flipped_bit_anywhere_is_mended);
	tcase_add_test(tests, a_flip_that_two_places_explain_is_not_mended);
	tcase_add_test(tests, damage_before_a_later_commit_is_told_from_a_torn_end);
	tcase_add_test(tests, a_page_that_was_written_again_is_not_lost);
	tcase_add_test(tests, an_end_that_never_was_committed_is_torn);
	tcase_add_test(tests, what_a_transaction_left_that_was_given_up_is_no_damage);
	tcase_add_test(tests, a_last_commit_that_is_damaged_is_torn_unless_it_was_noted);
	tcase_add_test(tests, a_commit_that_is_damaged_before_another_is_damage);
	tcase_add_test(tests, what_stands_behind_an_exact_note_was_never_told);
	tcase_add_test(tests, a_bad_header_names_no_page);
	tcase_add_test(tests, a_log_that_was_cut_is_noticed_by_what_was_noted);
	tcase_add_test(tests, frames_without_their_header_prove_themselves);
	tcase_add_test(tests, frames_of_an_earlier_use_are_left_alone);
	tcase_add_test(tests, a_header_of_an_earlier_use_proves_no_damage);
	tcase_add_test(tests, a_log_may_be_applied_twice);
	tcase_add_test(tests, a_lost_first_page_is_refused);
	tcase_add_loop_test(tests, a_failure_while_applying_is_told, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
