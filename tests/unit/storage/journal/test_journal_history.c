/* Folders of logs and snapshots as lives, kills and damage leave them. The history must find what
 * follows on what, and name each place where something is missing.
 *
 * A record has one letter as its rows, so that a text of letters is a run of records. Where the
 * letters begin at the same point, they lead to the same point. Snapshots are headers alone: the
 * history looks at no more. */
#include "storage/journal/journal_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "tests/unit/unit.h"

enum {
	CAP_BYTES = 65536,
	PATH_BYTES = 512,
	LETTER_BYTES = JOURNAL_RECORD_BYTES + 1,
	SUMS = 1000,
	RECORD_MS = 5000,
	SNAPSHOT_MS = 4000
};

static char *folder;
static struct error err;
static struct journal_history *history;
static struct journal_way way;
static struct buffer walked;
static size_t walk_most; /* the taker fails after this many records */
static const struct journal_point start = {.change = 10, .digest = {{0x11}}};
static const struct journal_point elsewhere = {.change = 40, .digest = {{0x22}}};

struct log_plan {
	uint64_t number;
	struct journal_point base;
	const char *letters; /* of its records */
	uint64_t life;
	size_t cut; /* bytes that its end lacks */
};

static void set_up(void)
{
	folder = unit_scratch_make();
	buffer_init(&walked, CAP_BYTES);
	walk_most = SIZE_MAX;
}

static void tear_down(void)
{
	journal_history_free(history);
	buffer_release(&walked);
	unit_scratch_remove(folder);
}

static void name_path(const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

static void write_file(const char *name, struct span bytes)
{
	char path[PATH_BYTES];
	name_path(name, path);
	ck_assert_msg(file_place(file_system(), path, bytes, 0600, &err) == 0, "%s", err.text);
}

static void add_record(struct buffer *out, struct journal_point *inout_at, const char *letter)
{
	uint8_t head[JOURNAL_RECORD_BYTES];
	const struct span rows = span_of(letter, 1);
	const int64_t change = inout_at->change + 1;
	struct journal_record record = {
		.bytes = 1, .change = change, .sums = SUMS + (uint64_t)change};
	record.made_ms = RECORD_MS + change;
	journal_record_encode(&record, &inout_at->digest, rows, head);
	buffer_add(out, head, sizeof head);
	buffer_add_span(out, rows);
	*inout_at = (struct journal_point){change, record.digest};
}

static void write_log(const struct log_plan *plan)
{
	uint8_t head[JOURNAL_HEADER_BYTES];
	char name[JOURNAL_NAME_BYTES];
	struct buffer bytes;
	struct journal_point at = plan->base;
	const struct journal_header header = {
		.life = plan->life, .number = plan->number, .point = plan->base};
	buffer_init(&bytes, CAP_BYTES);
	journal_header_encode(JOURNAL_LOG, &header, head);
	buffer_add(&bytes, head, sizeof head);
	for (const char *letter = plan->letters; *letter != '\0'; letter++)
		add_record(&bytes, &at, letter);
	journal_name_print(JOURNAL_LOG, plan->number, name);
	write_file(name, span_slice(buffer_span(&bytes), 0, bytes.len - plan->cut));
	buffer_release(&bytes);
}

static void write_log_of(uint64_t number, struct journal_point base, const char *letters)
{
	write_log(&(const struct log_plan){.number = number, .base = base, .letters = letters});
}

static void write_snapshot_of(uint64_t number, struct journal_point point, uint64_t life)
{
	uint8_t head[JOURNAL_HEADER_BYTES];
	char name[JOURNAL_NAME_BYTES];
	const struct journal_header header = {
		.life = life, .number = number, .made_ms = SNAPSHOT_MS, .point = point};
	journal_header_encode(JOURNAL_SNAPSHOT, &header, head);
	journal_name_print(JOURNAL_SNAPSHOT, number, name);
	write_file(name, span_of(head, sizeof head));
}

/* Where these records lead to. */
static struct journal_point after(struct journal_point base, const char *letters)
{
	struct buffer ignored;
	buffer_init(&ignored, CAP_BYTES);
	for (const char *letter = letters; *letter != '\0'; letter++)
		add_record(&ignored, &base, letter);
	buffer_release(&ignored);
	return base;
}

static void read_folder(size_t snapshots)
{
	history = journal_history_read(folder, &err);
	ck_assert_msg(history != NULL, "%s", err.text);
	ck_assert_uint_eq(journal_history_snapshots(history), snapshots);
}

static int take_letters(void *owner, struct span rows, struct error *out_err)
{
	struct buffer *letters = owner;
	if (letters->len == walk_most)
		return error_set(out_err, ERROR_BUSY, "enough");
	buffer_add_span(letters, rows);
	return 0;
}

static int walk(void)
{
	buffer_reset(&walked);
	return journal_history_walk(history, &way, take_letters, &walked, &err);
}

/* That the way at `place` begins at the snapshot of that number and has these records. */
static void expect_way(size_t place, uint64_t number, const char *letters)
{
	char name[JOURNAL_NAME_BYTES];
	char path[PATH_BYTES];
	memset(&way, 0x5a, sizeof way);
	journal_history_way(history, place, &way);
	journal_name_print(JOURNAL_SNAPSHOT, number, name);
	name_path(name, path);
	ck_assert_str_eq(way.snapshot, path);
	ck_assert_uint_eq(way.header.number, number);
	const struct journal_point end = after(way.header.point, letters);
	const bool has_records = letters[0] != '\0';
	ck_assert_uint_eq(way.records, strlen(letters));
	ck_assert(journal_point_equal(&way.end, &end));
	ck_assert_uint_eq(way.sums, has_records ? SUMS + (uint64_t)end.change : 0);
	ck_assert_int_eq(way.made_ms, has_records ? RECORD_MS + end.change : SNAPSHOT_MS);
	ck_assert_msg(walk() == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&walked), letters);
}

static void expect_whole_way(size_t place, uint64_t number, const char *letters)
{
	expect_way(place, number, letters);
	ck_assert_str_eq(way.gap, "");
}

/* That the gap names the log of that number. */
static void expect_way_with_gap(size_t place, uint64_t number, const char *letters, uint64_t log)
{
	char name[JOURNAL_NAME_BYTES];
	expect_way(place, number, letters);
	journal_name_print(JOURNAL_LOG, log, name);
	ck_assert_msg(strstr(way.gap, name) != NULL, "'%s'", way.gap);
}

static int copy_part(void *owner, const char *path, uint64_t bytes, struct error *out_err)
{
	struct buffer all;
	char to[2 * PATH_BYTES];
	buffer_init(&all, CAP_BYTES);
	ck_assert_int_eq(file_read_all(path, &all, out_err), 0);
	ck_assert_uint_le(bytes, all.len);
	snprintf(to, sizeof to, "%s%s", (const char *)owner, strrchr(path, '/'));
	ck_assert_int_eq(file_place(file_system(), to, span_slice(buffer_span(&all), 0, bytes),
				 0600, out_err),
		0);
	buffer_release(&all);
	return 0;
}

static int lead(size_t place, struct journal_point to, char *into)
{
	const struct journal_goal goal = {.change = to.change, .sums = SUMS + (uint64_t)to.change};
	return journal_history_lead(history, place, &goal, copy_part, into, &err);
}

/* That the files which lead to the end of these letters, cut where they need to be, are a journal
 * that ends there. */
static void expect_lead(size_t place, struct journal_point base, const char *letters)
{
	char *copy = unit_scratch_make();
	struct journal_way copied;
	const struct journal_point end = after(base, letters);
	ck_assert_int_eq(lead(place, end, copy), 1);
	struct journal_history *there = journal_history_read(copy, &err);
	ck_assert_uint_eq(journal_history_snapshots(there), 1);
	journal_history_way(there, 0, &copied);
	ck_assert(journal_point_equal(&copied.end, &end));
	ck_assert_str_eq(copied.gap, "");
	ck_assert_int_eq(journal_history_last_change(there), end.change);
	journal_history_free(there);
	unit_scratch_remove(copy);
}

START_TEST(the_files_that_lead_to_a_change_are_a_journal_that_ends_there)
{
	static const char *const prefixes[] = {
		"", "a", "ab", "abx", "abxy", "abxyp", "abxypq", "abxypqr"};
	write_log_of(1, start, "abcd");
	write_log_of(2, after(start, "ab"), "xy");
	write_log_of(3, after(start, "abxy"), "");
	write_log_of(4, after(start, "abxy"), "pqr");
	write_log_of(5, after(start, "abxypq"), "z");
	write_snapshot_of(10, start, 0);
	write_snapshot_of(11, after(start, "abxy"), 0);
	read_folder(2);
	for (size_t i = 0; i < 7; i++)
		expect_lead(1, start, prefixes[i]);
	for (size_t i = 4; i < 7; i++)
		expect_lead(0, start, prefixes[i]);
	expect_lead(0, start, "abxypqz");
	ck_assert_int_eq(lead(0, after(start, "abx"), folder), 0);      /* before the snapshot */
	ck_assert_int_eq(lead(0, after(start, "abxypqzz"), folder), 0); /* behind the end */
}
END_TEST

START_TEST(a_change_of_other_sums_is_not_the_one_that_is_asked_for)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	read_folder(1);
	const struct journal_goal other = {.change = start.change + 2, .sums = SUMS};
	ck_assert_int_eq(journal_history_lead(history, 0, &other, copy_part, folder, &err), 0);
	expect_lead(0, start, "ab");
}
END_TEST

START_TEST(nothing_leads_over_a_gap)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_log_of(4, after(start, "abc"), "d");
	read_folder(1);
	ck_assert_int_eq(lead(0, after(start, "abcd"), folder), 0);
	ck_assert_int_eq(lead(0, after(start, "abc"), folder), 0);
	expect_lead(0, start, "ab");
}
END_TEST

START_TEST(a_chain_leads_over_its_logs)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, after(start, "abc"), "de");
	read_folder(1);
	expect_whole_way(0, 1, "abcde");
}
END_TEST

START_TEST(a_snapshot_may_lie_anywhere_on_the_chain)
{
	write_log_of(1, start, "abc");
	write_log_of(2, after(start, "abc"), "de");
	write_log_of(3, after(start, "abcde"), "");
	write_snapshot_of(10, start, 0);
	write_snapshot_of(11, after(start, "ab"), 0);
	write_snapshot_of(12, after(start, "abc"), 0);
	write_snapshot_of(13, after(start, "abcd"), 0);
	write_snapshot_of(14, after(start, "abcde"), 0);
	read_folder(5);
	expect_whole_way(0, 14, ""); /* of those that lead equally far the newest comes first */
	expect_whole_way(1, 13, "e");
	expect_whole_way(2, 12, "de");
	expect_whole_way(3, 11, "cde");
	expect_whole_way(4, 10, "abcde");
}
END_TEST

START_TEST(a_log_voids_what_lies_behind_the_record_that_it_follows_on)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abcd");
	write_log_of(3, after(start, "ab"), "xy");
	read_folder(1);
	expect_whole_way(0, 1, "abxy");
}
END_TEST

START_TEST(a_log_voids_whole_logs_too)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_log_of(3, after(start, "ab"), "cd");
	write_log_of(4, after(start, "a"), "z");
	write_log_of(5, after(start, "az"), "y");
	read_folder(1);
	expect_whole_way(0, 1, "azy");
	journal_history_free(history);
	write_log_of(6, start, "");
	read_folder(1);
	expect_whole_way(0, 1, "");
}
END_TEST

START_TEST(a_snapshot_of_a_voided_record_is_on_no_log)
{
	write_log_of(1, start, "abc");
	write_snapshot_of(2, after(start, "abc"), 0);
	write_log_of(3, after(start, "a"), "xyz");
	write_snapshot_of(4, start, 0);
	read_folder(2);
	expect_whole_way(0, 4, "axyz");
	expect_whole_way(1, 2, "");
}
END_TEST

START_TEST(a_log_that_follows_on_nothing_is_a_gap)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, elsewhere, "de");
	read_folder(1);
	expect_way_with_gap(0, 1, "abc", 3);
}
END_TEST

START_TEST(a_log_that_is_missing_is_a_gap)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_log_of(4, after(start, "abc"), "d");
	read_folder(1);
	expect_way_with_gap(0, 1, "ab", 4);
}
END_TEST

/* Of the same number, but not of the same history. */
START_TEST(a_log_of_another_history_is_a_gap)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, after(start, "abx"), "d");
	read_folder(1);
	expect_way_with_gap(0, 1, "abc", 3);
}
END_TEST

START_TEST(a_gap_right_behind_the_snapshot_is_named)
{
	write_log_of(1, start, "ab");
	write_snapshot_of(2, after(start, "ab"), 0);
	write_log_of(3, elsewhere, "c");
	read_folder(1);
	expect_way_with_gap(0, 2, "", 3);
}
END_TEST

/* A kill tore its last record, and the next life went on from the one before. */
START_TEST(a_torn_record_that_a_log_follows_on_is_no_gap)
{
	for (size_t cut = 1; cut < LETTER_BYTES; cut++) {
		write_snapshot_of(1, start, 0);
		write_log(&(const struct log_plan){
			.number = 2, .base = start, .letters = "abc", .cut = cut});
		write_log_of(3, after(start, "ab"), "yz");
		read_folder(1);
		expect_whole_way(0, 1, "abyz");
		journal_history_free(history);
	}
	history = NULL;
}
END_TEST

START_TEST(a_torn_record_at_the_end_is_named)
{
	for (size_t cut = 1; cut < LETTER_BYTES; cut++) {
		write_snapshot_of(1, start, 0);
		write_log_of(2, start, "ab");
		write_log(&(const struct log_plan){
			.number = 3, .base = after(start, "ab"), .letters = "cd", .cut = cut});
		read_folder(1);
		expect_way_with_gap(0, 1, "abc", 3);
		journal_history_free(history);
	}
	write_log(&(const struct log_plan){.number = 3,
		.base = after(start, "ab"),
		.letters = "cd",
		.cut = LETTER_BYTES}); /* all of it is missing: nobody can know */
	read_folder(1);
	expect_whole_way(0, 1, "abc");
}
END_TEST

START_TEST(a_damaged_record_ends_the_way)
{
	char path[PATH_BYTES];
	struct buffer bytes;
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, after(start, "abc"), "d");
	name_path("0000000000000002.log", path);
	buffer_init(&bytes, CAP_BYTES);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	bytes.data[JOURNAL_HEADER_BYTES + LETTER_BYTES + JOURNAL_RECORD_BYTES] = 'x';
	write_file("0000000000000002.log", buffer_span(&bytes));
	buffer_release(&bytes);
	read_folder(1);
	expect_way_with_gap(0, 1, "a", 2);
}
END_TEST

START_TEST(the_snapshot_that_leads_furthest_comes_first)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, elsewhere, "de");
	write_snapshot_of(4, after(elsewhere, "d"), 0);
	write_snapshot_of(5, after(start, "abc"), 0);
	write_snapshot_of(6, (struct journal_point){.change = 90}, 0);
	write_snapshot_of(7, elsewhere, 0);
	read_folder(5);
	expect_whole_way(0, 7, "de");
	expect_whole_way(1, 4, "e");
	expect_way_with_gap(2, 5, "", 3);
	expect_way_with_gap(3, 1, "abc", 3);
	expect_whole_way(4, 6, "");
}
END_TEST

START_TEST(a_missing_folder_has_no_snapshots)
{
	char path[PATH_BYTES];
	name_path("missing", path);
	history = journal_history_read(path, &err);
	ck_assert_msg(history != NULL, "%s", err.text);
	ck_assert_uint_eq(journal_history_snapshots(history), 0);
	ck_assert_uint_eq(journal_history_life(history), 0);
}
END_TEST

START_TEST(an_empty_folder_has_no_snapshots)
{
	read_folder(0);
	ck_assert_uint_eq(journal_history_life(history), 0);
}
END_TEST

START_TEST(a_folder_that_is_a_file_cannot_be_read)
{
	char path[PATH_BYTES];
	write_file("file", span_text("no folder"));
	name_path("file", path);
	ck_assert_ptr_null(journal_history_read(path, &err));
	ck_assert_int_ne(err.kind, ERROR_NONE);
}
END_TEST

START_TEST(snapshots_without_logs_lead_to_themselves)
{
	write_snapshot_of(1, start, 0);
	write_snapshot_of(2, elsewhere, 0);
	read_folder(2);
	expect_whole_way(0, 2, "");
	expect_whole_way(1, 1, "");
}
END_TEST

static const char *const foreign_names[] = {
	"README",
	"0000000000000009.snapshot.tmp",
	"0000000000000009.log.old",
	"000000000000000A.snapshot",
	"00000000000000009.log",
	"9.log",
};

START_TEST(foreign_files_are_passed_over)
{
	char path[PATH_BYTES];
	struct journal_header header = {.life = 99, .point = elsewhere};
	uint8_t head[JOURNAL_HEADER_BYTES];
	journal_header_encode(JOURNAL_SNAPSHOT, &header, head);
	for (size_t i = 0; i < sizeof foreign_names / sizeof foreign_names[0]; i++)
		write_file(foreign_names[i], span_of(head, sizeof head));
	name_path("folder", path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	write_snapshot_of(1, start, 3);
	write_log_of(2, start, "ab");
	read_folder(1);
	expect_whole_way(0, 1, "ab");
	ck_assert_uint_eq(journal_history_life(history), 3);
}
END_TEST

START_TEST(a_snapshot_with_a_damaged_header_is_left_out)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_file("0000000000000003.snapshot", span_text("too short"));
	read_folder(1);
	expect_whole_way(0, 1, "ab");
}
END_TEST

START_TEST(the_life_is_the_highest_of_all_files)
{
	write_snapshot_of(1, start, 4);
	write_log(&(const struct log_plan){.number = 2, .base = start, .letters = "ab", .life = 9});
	write_log(&(const struct log_plan){
		.number = 3, .base = after(start, "a"), .letters = "c", .life = 7});
	read_folder(1);
	ck_assert_uint_eq(journal_history_life(history), 9);
	journal_history_free(history);
	write_snapshot_of(4, elsewhere, UINT64_C(0xffffffff00000000));
	read_folder(2);
	ck_assert_uint_eq(journal_history_life(history), UINT64_C(0xffffffff00000000));
}
END_TEST

START_TEST(a_walk_ends_where_its_taker_fails)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "abc");
	write_log_of(3, after(start, "abc"), "de");
	read_folder(1);
	journal_history_way(history, 0, &way);
	for (walk_most = 0; walk_most < 5; walk_most++) {
		ck_assert_int_eq(walk(), -1);
		ck_assert_int_eq(err.kind, ERROR_BUSY);
		ck_assert_uint_eq(walked.len, walk_most);
	}
	ck_assert_int_eq(walk(), 0);
}
END_TEST

/* The second log, after the history was read. */
static const struct log_change {
	const char *letters;
	size_t cut;
} log_changes[] = {
	{"cdf", 0},
	{"xyz", 0},
	{"cd", 0},
	{"", 0},
	{"cde", 1},
	{"cde", LETTER_BYTES + 1},
	{"", JOURNAL_HEADER_BYTES},
};

START_TEST(a_walk_notices_that_a_log_has_changed)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_log_of(3, after(start, "ab"), "cde");
	read_folder(1);
	expect_whole_way(0, 1, "abcde");
	write_log(&(const struct log_plan){.number = 3,
		.base = after(start, "ab"),
		.letters = log_changes[_i].letters,
		.cut = log_changes[_i].cut});
	ck_assert_int_eq(walk(), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(a_log_without_records_settles_a_torn_one)
{
	write_snapshot_of(1, start, 0);
	write_log(&(const struct log_plan){.number = 2, .base = start, .letters = "abc", .cut = 3});
	write_log_of(3, after(start, "ab"), "");
	read_folder(1);
	expect_whole_way(0, 1, "ab");
}
END_TEST
START_TEST(a_log_without_records_voids_a_torn_one)
{
	write_snapshot_of(1, start, 0);
	write_log(&(const struct log_plan){.number = 2, .base = start, .letters = "abc", .cut = 3});
	write_log_of(3, after(start, "a"), "");
	read_folder(1);
	expect_whole_way(0, 1, "a");
}
END_TEST
START_TEST(a_log_with_a_damaged_header_is_named)
{
	write_snapshot_of(1, start, 0);
	write_log_of(2, start, "ab");
	write_log(&(const struct log_plan){
		.number = 3, .base = after(start, "ab"), .letters = "cdefghijkl"});
	char path[PATH_BYTES];
	name_path("0000000000000003.log", path);
	FILE *f = fopen(path, "r+b");
	fseek(f, 20, SEEK_SET);
	fputc('x', f);
	fclose(f);
	read_folder(1);
	expect_way_with_gap(0, 1, "ab", 3);
}
END_TEST
START_TEST(the_log_that_was_torn_last_is_named)
{
	write_snapshot_of(1, start, 0);
	write_log(&(const struct log_plan){.number = 2, .base = start, .letters = "abc", .cut = 3});
	write_log(&(const struct log_plan){
		.number = 3, .base = after(start, "ab"), .letters = "x", .cut = 3});
	read_folder(1);
	expect_way_with_gap(0, 1, "ab", 3);
}
END_TEST

static TCase *test_ways(void)
{
	TCase *tests = tcase_create("ways");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_log_without_records_settles_a_torn_one);
	tcase_add_test(tests, a_log_without_records_voids_a_torn_one);
	tcase_add_test(tests, a_log_with_a_damaged_header_is_named);
	tcase_add_test(tests, the_log_that_was_torn_last_is_named);
	tcase_add_test(tests, a_chain_leads_over_its_logs);
	tcase_add_test(tests, the_files_that_lead_to_a_change_are_a_journal_that_ends_there);
	tcase_add_test(tests, a_change_of_other_sums_is_not_the_one_that_is_asked_for);
	tcase_add_test(tests, nothing_leads_over_a_gap);
	tcase_add_test(tests, a_snapshot_may_lie_anywhere_on_the_chain);
	tcase_add_test(tests, a_log_voids_what_lies_behind_the_record_that_it_follows_on);
	tcase_add_test(tests, a_log_voids_whole_logs_too);
	tcase_add_test(tests, a_snapshot_of_a_voided_record_is_on_no_log);
	tcase_add_test(tests, a_log_that_follows_on_nothing_is_a_gap);
	tcase_add_test(tests, a_log_that_is_missing_is_a_gap);
	tcase_add_test(tests, a_log_of_another_history_is_a_gap);
	tcase_add_test(tests, a_gap_right_behind_the_snapshot_is_named);
	tcase_add_test(tests, a_torn_record_that_a_log_follows_on_is_no_gap);
	tcase_add_test(tests, a_torn_record_at_the_end_is_named);
	tcase_add_test(tests, a_damaged_record_ends_the_way);
	tcase_add_test(tests, the_snapshot_that_leads_furthest_comes_first);
	tcase_add_test(tests, snapshots_without_logs_lead_to_themselves);
	return tests;
}

static TCase *test_folders(void)
{
	TCase *tests = tcase_create("folders");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_missing_folder_has_no_snapshots);
	tcase_add_test(tests, an_empty_folder_has_no_snapshots);
	tcase_add_test(tests, a_folder_that_is_a_file_cannot_be_read);
	tcase_add_test(tests, foreign_files_are_passed_over);
	tcase_add_test(tests, a_snapshot_with_a_damaged_header_is_left_out);
	tcase_add_test(tests, the_life_is_the_highest_of_all_files);
	return tests;
}

static TCase *test_walks(void)
{
	TCase *tests = tcase_create("walks");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_walk_ends_where_its_taker_fails);
	tcase_add_loop_test(tests, a_walk_notices_that_a_log_has_changed, 0,
		sizeof log_changes / sizeof log_changes[0]);
	return tests;
}

Suite *test_journal_history_suite(void);
Suite *test_journal_history_suite(void)
{
	Suite *suite = suite_create("journal_history");
	suite_add_tcase(suite, test_ways());
	suite_add_tcase(suite, test_folders());
	suite_add_tcase(suite, test_walks());
	return suite;
}
