#include "storage/chunk_index.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { ROWS = 3000 };

static struct chunk_id id_of(const unsigned number)
{
	struct chunk_id id;
	uint64_t state = number;
	for (size_t i = 0; i < sizeof id.bytes; i += 8) {
		const uint64_t value = fixture_random(&state);
		memcpy(id.bytes + i, &value, 8);
	}
	return id;
}

static struct pack_id pack_of(const unsigned number)
{
	struct pack_id pack = {{ 0 }};
	pack.bytes[0] = (uint8_t)number;
	return pack;
}

static void add_rows(struct chunk_index *const index, const unsigned from, const unsigned count, const unsigned pack)
{
	struct error err = {0};
	struct chunk_index_row *const rows = memory_new_array(count, sizeof *rows);
	for (unsigned i = 0; i < count; i++)
		rows[i] = (struct chunk_index_row){ .id = id_of(from + i), .place = { .pack = pack_of(pack), .chunk = i } };
	ck_assert_msg(chunk_index_add(index, rows, count, &err) == 0, "%s", err.text);
	free(rows);
}

static void expect_place(struct chunk_index *const index, const unsigned number, const unsigned pack, const unsigned chunk)
{
	const struct chunk_id id = id_of(number);
	const struct pack_id expected = pack_of(pack);
	struct chunk_place place;
	ck_assert(chunk_index_find(index, &id, &place));
	ck_assert_mem_eq(&place.pack, &expected, sizeof expected);
	ck_assert_uint_eq(place.chunk, chunk);
}

static bool is_known(struct chunk_index *const index, const unsigned number)
{
	const struct chunk_id id = id_of(number);
	struct chunk_place place;
	return chunk_index_find(index, &id, &place);
}

static struct chunk_index *index_open(const char *const path, const bool expect_rebuild)
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
	const struct pack_id packs[] = { pack_of(1), pack_of(9) };
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

static void write_file(const char *const path, const char *const text)
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
	write_file(path, "this is no database at all, and long enough to be looked at as one: ................................"
		"....................................................................................................");
	struct chunk_index *const index = index_open(path, true);
	add_rows(index, 0, 10, 1);
	expect_place(index, 3, 1, 3);
	chunk_index_close(index);
	ck_assert(file_exists(aside));
	unit_scratch_remove(scratch);
}
END_TEST

/* Two bits of a byte in the middle of the page: more than a checksum can mend. */
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

/* Whatever a call meets, it does not fail. */
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
			ck_assert_msg(!is_known(index, 7) && !is_known(index, 1000000), "page %u", damaged[i]);
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

START_TEST(an_impossible_path_is_an_error)
{
	const struct chunk_index_options options = {.files = file_system(), .path = "/nonexistent/folder/chunks.db"};
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

static void *finder_run(void *const argument)
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
	struct finder finders[2] = { { .index = index }, { .index = index } };
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
	tcase_add_test(tcase, an_impossible_path_is_an_error);
	tcase_add_test(tcase, one_id_in_sixteen_is_sampled);
	tcase_add_test(tcase, threads_find_while_others_add);
	suite_add_tcase(suite, tcase);
	return suite;
}
