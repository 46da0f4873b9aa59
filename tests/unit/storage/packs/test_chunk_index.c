#include "storage/packs/chunk_index.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "storage/db/db.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { ROWS = 3000 };

static struct chunk_id id_of(unsigned number)
{
	struct chunk_id id;
	uint64_t state = number;
	for (size_t i = 0; i < sizeof id.bytes; i += 8) {
		const uint64_t value = fixture_random(&state);
		memcpy(id.bytes + i, &value, 8);
	}
	return id;
}

static struct pack_id pack_of(unsigned number)
{
	struct pack_id pack = {{0}};
	pack.bytes[0] = (uint8_t)number;
	return pack;
}

static void add_rows(struct chunk_index *index, unsigned from, unsigned count, unsigned pack)
{
	struct error err = {0};
	struct chunk_index_row *const rows = memory_new_array(count, sizeof *rows);
	for (unsigned i = 0; i < count; i++)
		rows[i] = (struct chunk_index_row){
			.id = id_of(from + i), .place = {.pack = pack_of(pack), .chunk = i}};
	ck_assert_msg(chunk_index_add(index, rows, count, &err) == 0, "%s", err.text);
	free(rows);
}

static void expect_place(struct chunk_index *index, unsigned number, unsigned pack, unsigned chunk)
{
	const struct chunk_id id = id_of(number);
	const struct pack_id expected = pack_of(pack);
	struct chunk_place place;
	ck_assert(chunk_index_find(index, &id, &place));
	ck_assert_mem_eq(&place.pack, &expected, sizeof expected);
	ck_assert_uint_eq(place.chunk, chunk);
}

static bool is_known(struct chunk_index *index, unsigned number)
{
	const struct chunk_id id = id_of(number);
	struct chunk_place place;
	return chunk_index_find(index, &id, &place);
}

static struct chunk_index *index_open(const char *path, bool expect_rebuild)
{
	struct error err = {0};
	bool rebuild = !expect_rebuild;
	const struct chunk_index_options options = {.files = file_system(), .path = path};
	struct chunk_index *const index = chunk_index_open(&options, &rebuild, &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert_int_eq(rebuild, expect_rebuild);
	return index;
}

START_TEST(rows_are_found_and_the_latest_wins)
{
	struct chunk_index *const index = index_open(":memory:", true);
	add_rows(index, 0, ROWS, 1);
	expect_place(index, 0, 1, 0);
	expect_place(index, ROWS - 1, 1, ROWS - 1);
	ck_assert(!is_known(index, ROWS));
	add_rows(index, 10, 1, 2);
	expect_place(index, 10, 2, 0);
	expect_place(index, 11, 1, 11);
	add_rows(index, 0, 0, 1);
	chunk_index_close(index);
}
END_TEST

START_TEST(a_forgotten_pack_is_not_found)
{
	struct error err = {0};
	struct chunk_index *const index = index_open(":memory:", true);
	add_rows(index, 0, 100, 1);
	add_rows(index, 100, 100, 2);
	const struct pack_id packs[] = {pack_of(1), pack_of(9)};
	ck_assert_int_eq(chunk_index_forget_pack(index, &packs[0], &err), 0);
	ck_assert_int_eq(chunk_index_forget_pack(index, &packs[1], &err), 0);
	ck_assert(!is_known(index, 5));
	expect_place(index, 105, 2, 5);
	add_rows(index, 0, 100, 3);
	expect_place(index, 5, 3, 5);
	chunk_index_close(index);
}
END_TEST

START_TEST(rows_survive_a_restart)
{
	char *const scratch = unit_scratch_make();
	char path[4096];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	struct chunk_index *index = index_open(path, true);
	add_rows(index, 0, ROWS, 1);
	expect_place(index, 7, 1, 7);
	chunk_index_close(index);
	index = index_open(path, false);
	expect_place(index, 7, 1, 7);
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

static void write_file(const char *path, const char *text)
{
	struct error err = {0};
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
}

START_TEST(a_damaged_file_is_moved_aside)
{
	char *const scratch = unit_scratch_make();
	char path[4096];
	char aside[4200];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	snprintf(aside, sizeof aside, "%s.damaged", path);
	write_file(path,
		"this is no database at all, and long enough to be looked at as one: ................................"
		"....................................................................................................");
	struct chunk_index *const index = index_open(path, true);
	add_rows(index, 0, 10, 1);
	expect_place(index, 3, 1, 3);
	chunk_index_close(index);
	ck_assert(file_exists(aside));
	unit_scratch_remove(scratch);
}
END_TEST

/* Flips two bits of a byte in the middle of the page: more than a checksum can mend. */
static void damage_page(const char *path, unsigned number)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);
	off_t at = (off_t)(number - 1) * 4096 + (number == 1 ? 30 : 1000);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 0x11;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static unsigned count_pages(const char *path)
{
	uint64_t bytes = 0;
	struct error err = {0};
	ck_assert_int_eq(file_size(path, &bytes, &err), 0);
	return (unsigned)(bytes / 4096);
}

static void make_file(const char *path)
{
	struct chunk_index *index = index_open(path, true);
	for (unsigned pack = 0; pack < 30; pack++)
		add_rows(index, pack * ROWS, ROWS, pack);
	chunk_index_close(index);
}

/* No call fails, whatever it meets. */
static void use_all(struct chunk_index *index)
{
	struct error err = {0};
	struct pack_id *packs;
	struct pack_id pack = pack_of(3);
	size_t count;
	for (unsigned i = 0; i < 30 * ROWS; i += 7)
		(void)is_known(index, i);
	ck_assert_msg(chunk_index_packs(index, &packs, &count, &err) == 0, "%s", err.text);
	free(packs);
	ck_assert_msg(chunk_index_forget_pack(index, &pack, &err) == 0, "%s", err.text);
	add_rows(index, 1000000, ROWS, 200);
	ck_assert_msg(chunk_index_trim(index, &err) == 0, "%s", err.text);
}

START_TEST(a_damaged_page_fails_nothing_and_the_file_is_made_anew)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	char aside[4200];
	struct error err = {0};
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	snprintf(aside, sizeof aside, "%s.damaged", path);
	const struct chunk_index_options options = {.files = file_system(), .path = path};
	make_file(path);
	unsigned pages = count_pages(path);
	ck_assert_uint_gt(pages, 100);
	const unsigned damaged[] = {1, 2, 3, 4, 5, 6, 7, pages / 3, pages / 2, pages - 1};
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		bool rebuild = false;
		damage_page(path, damaged[i]);
		struct chunk_index *index = chunk_index_open(&options, &rebuild, &err);
		ck_assert_msg(index != NULL, "page %u: %s", damaged[i], err.text);
		use_all(index);
		ck_assert_msg(file_exists(aside), "page %u", damaged[i]);
		if (!rebuild)
			ck_assert_msg(!is_known(index, 7) && !is_known(index, 1000000), "page %u",
				damaged[i]);
		chunk_index_close(index);
		if (!rebuild)
			chunk_index_close(index_open(path, true));
		unlink(path);
		unlink(aside);
		make_file(path);
	}
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(an_index_that_is_given_up_is_made_anew_by_the_next_start)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	const struct error why = {.kind = ERROR_NO_SPACE, .text = "The disk is full."};
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	struct chunk_index *index = index_open(path, true);
	add_rows(index, 0, ROWS, 1);
	chunk_index_give_up(index, &why);
	chunk_index_give_up(index, &why);
	use_all(index);
	ck_assert(!is_known(index, 7));
	chunk_index_close(index);
	chunk_index_close(index_open(path, true));
	unit_scratch_remove(scratch);
}
END_TEST

static void run_in(const char *path, const char *sql)
{
	struct error err = {0};
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL && db_run_script(db, sql, &err) == 0, "%s", err.text);
	db_close(db);
}

/* A file of another program, or of a later version: it is kept and not written to. */
START_TEST(a_file_of_another_kind_is_moved_aside)
{
	static const char *const kinds[] = {
		"PRAGMA user_version=2; PRAGMA application_id=1145193283", "PRAGMA user_version=1",
		"PRAGMA application_id=1145193283",
		"PRAGMA user_version=1; PRAGMA application_id=7"};
	char *scratch = unit_scratch_make();
	char path[4096];
	char aside[4200];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	snprintf(aside, sizeof aside, "%s.damaged", path);
	run_in(path, kinds[_i]);
	struct chunk_index *index = index_open(path, true);
	add_rows(index, 0, 10, 1);
	chunk_index_close(index);
	ck_assert(file_exists(aside));
	index = index_open(path, false);
	expect_place(index, 3, 1, 3);
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

/* Rows that lead nowhere count as unknown. */
START_TEST(rows_that_cannot_be_right_are_not_found)
{
	static const char *const wrongs[] = {"UPDATE pack SET id = x'0102'",
		"UPDATE chunk SET number = -1", "UPDATE chunk SET number = 4294967296"};
	char *scratch = unit_scratch_make();
	char path[4096];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	struct chunk_index *index = index_open(path, true);
	add_rows(index, 0, 10, 1);
	chunk_index_close(index);
	run_in(path, wrongs[_i]);
	index = index_open(path, false);
	ck_assert(!is_known(index, 3));
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(rows_of_several_packs_are_added_in_one_call)
{
	static const unsigned packs[] = {4, 5, 5, 4, 6};
	struct error err = {0};
	struct chunk_index_row rows[5];
	struct chunk_index *index = index_open(":memory:", true);
	for (unsigned i = 0; i < 5; i++)
		rows[i] = (struct chunk_index_row){
			.id = id_of(i), .place = {.pack = pack_of(packs[i]), .chunk = 10 + i}};
	ck_assert_msg(chunk_index_add(index, rows, 5, &err) == 0, "%s", err.text);
	for (unsigned i = 0; i < 5; i++)
		expect_place(index, i, packs[i], 10 + i);
	chunk_index_close(index);
}
END_TEST

static size_t count_packs(struct chunk_index *index)
{
	struct error err = {0};
	struct pack_id *packs = NULL;
	size_t count = 0;
	ck_assert_msg(chunk_index_packs(index, &packs, &count, &err) == 0, "%s", err.text);
	free(packs);
	return count;
}

START_TEST(a_forgotten_pack_is_not_listed_and_what_was_given_up_has_none)
{
	struct error err = {0};
	const struct pack_id forgotten = pack_of(3);
	struct chunk_index *index = index_open(":memory:", true);
	for (unsigned pack = 1; pack < 4; pack++)
		add_rows(index, pack * 100, 10, pack);
	ck_assert_uint_eq(count_packs(index), 3);
	ck_assert_int_eq(chunk_index_forget_pack(index, &forgotten, &err), 0);
	ck_assert_uint_eq(count_packs(index), 2);
	/* takes the number of the removed pack, but none of its rows */
	add_rows(index, 900, 10, 9);
	expect_place(index, 905, 9, 5);
	ck_assert(!is_known(index, 305));
	chunk_index_give_up(index, &err);
	ck_assert_uint_eq(count_packs(index), 0);
	chunk_index_close(index);
}
END_TEST

/* A new file may be there by then. */
START_TEST(an_index_is_given_up_once)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	const struct error why = {.kind = ERROR_NO_SPACE, .text = "The disk is full."};
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	struct chunk_index *index = index_open(path, true);
	chunk_index_give_up(index, &why);
	write_file(path, "of the next one");
	chunk_index_give_up(index, &why);
	ck_assert(file_exists(path));
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

/* Opening the index reads what every start needs, so a damaged one is made again at once. */
START_TEST(a_list_of_packs_that_cannot_be_read_is_noticed_at_once)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	struct error err = {0};
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	make_file(path);
	struct db *db = db_open(path, DB_READ, &err);
	int64_t page = -1;
	ck_assert_int_eq(db_find_i64(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'pack'",
				 &page, &err),
		1);
	db_close(db);
	damage_page(path, (unsigned)page);
	chunk_index_close(index_open(path, true));
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(rows_that_fail_take_theirs_with_them_and_no_later_ones)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	struct error err = {0};
	struct chunk_index_row rows[100];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	chunk_index_close(index_open(path, true));
	run_in(path,
		"CREATE TRIGGER no BEFORE INSERT ON chunk WHEN new.number = 77 BEGIN SELECT RAISE(ABORT, 'no'); END");
	struct chunk_index *index = index_open(path, false);
	for (unsigned i = 0; i < 100; i++)
		rows[i] = (struct chunk_index_row){
			.id = id_of(i), .place = {.pack = pack_of(1), .chunk = i}};
	ck_assert_int_eq(chunk_index_add(index, rows, 100, &err), -1);
	ck_assert(!is_known(index, 3));
	add_rows(index, 500, 10, 2);
	chunk_index_close(index);
	index = index_open(path, false);
	expect_place(index, 503, 2, 3);
	ck_assert(!is_known(index, 3));
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(free_pages_and_the_log_go_back)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	char log_path[4200];
	struct error err = {0};
	uint64_t log_bytes = 1;
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	snprintf(log_path, sizeof log_path, "%s-wal", path);
	make_file(path);
	const unsigned before = count_pages(path);
	ck_assert_uint_gt(before, 600); /* more than one slice is free then */
	struct chunk_index *index = index_open(path, false);
	for (unsigned pack = 0; pack < 30; pack++) {
		const struct pack_id id = pack_of(pack);
		ck_assert_int_eq(chunk_index_forget_pack(index, &id, &err), 0);
	}
	ck_assert_msg(chunk_index_trim(index, &err) == 0, "%s", err.text);
	ck_assert(file_size(log_path, &log_bytes, &err) == 0 && log_bytes == 0);
	ck_assert_uint_lt(count_pages(path), 100);
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

/* The file stays in its place. */
START_TEST(what_cannot_be_opened_is_not_taken_for_damage)
{
	char *scratch = unit_scratch_make();
	char path[4096];
	struct error err = {0};
	bool rebuild = false;
	const struct chunk_index_options options = {.files = file_system(), .path = path};
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_ptr_null(chunk_index_open(&options, &rebuild, &err));
	ck_assert_int_ne(err.kind, ERROR_NONE);
	ck_assert(file_exists(path) && !rebuild);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(an_impossible_path_is_an_error)
{
	const struct chunk_index_options options = {
		.files = file_system(), .path = "/nonexistent/folder/chunks.db"};
	struct error err = {0};
	bool rebuild;
	ck_assert_ptr_null(chunk_index_open(&options, &rebuild, &err));
	ck_assert_int_ne(err.kind, ERROR_NONE);
}
END_TEST

START_TEST(one_id_in_sixteen_is_sampled)
{
	unsigned sampled = 0;
	for (unsigned i = 0; i < 16000; i++) {
		const struct chunk_id id = id_of(i);
		ck_assert_int_eq(chunk_index_sampled(&id), chunk_id_modulo_word(&id) % 16 == 0);
		sampled += chunk_index_sampled(&id);
	}
	ck_assert_uint_gt(sampled, 800);
	ck_assert_uint_lt(sampled, 1200);
}
END_TEST

struct finder {
	struct chunk_index *index;
	pthread_t thread;
	unsigned wrong;
};

static void *finder_run(void *argument)
{
	struct finder *const finder = argument;
	for (unsigned i = 0; i < 5000; i++) {
		const unsigned number = i % ROWS;
		const struct chunk_id id = id_of(number);
		struct chunk_place place;
		if (chunk_index_find(finder->index, &id, &place) && place.chunk != number % 100)
			finder->wrong++;
	}
	return NULL;
}

START_TEST(threads_find_while_others_add)
{
	char *const scratch = unit_scratch_make();
	char path[4096];
	snprintf(path, sizeof path, "%s/chunks.db", scratch);
	struct chunk_index *const index = index_open(path, true);
	struct finder finders[2] = {{.index = index}, {.index = index}};
	for (int i = 0; i < 2; i++)
		lock_thread_start(&finders[i].thread, "finder", finder_run, &finders[i]);
	for (unsigned pack = 0; pack < ROWS / 100; pack++)
		add_rows(index, pack * 100, 100, pack);
	for (int i = 0; i < 2; i++) {
		pthread_join(finders[i].thread, NULL);
		ck_assert_uint_eq(finders[i].wrong, 0);
	}
	for (unsigned i = 0; i < ROWS; i++)
		expect_place(index, i, i / 100, i % 100);
	chunk_index_close(index);
	unit_scratch_remove(scratch);
}
END_TEST

Suite *test_chunk_index_suite(void);
Suite *test_chunk_index_suite(void)
{
	Suite *const suite = suite_create("chunk_index");
	TCase *const tcase = tcase_create("chunk_index");
	tcase_add_test(tcase, rows_are_found_and_the_latest_wins);
	tcase_add_test(tcase, a_forgotten_pack_is_not_found);
	tcase_add_test(tcase, rows_survive_a_restart);
	tcase_add_test(tcase, a_damaged_file_is_moved_aside);
	tcase_add_test(tcase, a_damaged_page_fails_nothing_and_the_file_is_made_anew);
	tcase_add_test(tcase, an_index_that_is_given_up_is_made_anew_by_the_next_start);
	tcase_add_loop_test(tcase, a_file_of_another_kind_is_moved_aside, 0, 4);
	tcase_add_loop_test(tcase, rows_that_cannot_be_right_are_not_found, 0, 3);
	tcase_add_test(tcase, rows_of_several_packs_are_added_in_one_call);
	tcase_add_test(tcase, a_forgotten_pack_is_not_listed_and_what_was_given_up_has_none);
	tcase_add_test(tcase, an_index_is_given_up_once);
	tcase_add_test(tcase, a_list_of_packs_that_cannot_be_read_is_noticed_at_once);
	tcase_add_test(tcase, rows_that_fail_take_theirs_with_them_and_no_later_ones);
	tcase_add_test(tcase, free_pages_and_the_log_go_back);
	tcase_add_test(tcase, what_cannot_be_opened_is_not_taken_for_damage);
	tcase_add_test(tcase, an_impossible_path_is_an_error);
	tcase_add_test(tcase, one_id_in_sixteen_is_sampled);
	tcase_add_test(tcase, threads_find_while_others_add);
	suite_add_tcase(suite, tcase);
	return suite;
}
