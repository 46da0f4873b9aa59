#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chunker/chunk_hash.h"
#include "client/local/file_map.h"
#include "client/local/folder_files.h"

enum { PIECE = 1000, PIECES = 8, SIZE = PIECE * PIECES };

static char *folder;
static char *path;
static char *journal;
static int fd;
static uint8_t content[SIZE];
static struct map_chunk chunks[PIECES];
static struct chunk_id hash;

static void set_up(void)
{
	struct chunk_entry entries[PIECES];
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x.part");
	journal = folder_files_join(folder, "x.part.chunks");
	fd = open(path, O_RDWR | O_CREAT, 0600);
	for (size_t i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i * 2654435761u >> 9);
	for (size_t i = 0; i < PIECES; i++) {
		chunks[i] = (struct map_chunk){.offset = i * PIECE,
			.size = PIECE,
			.id = chunk_hash(span_of(content + i * PIECE, PIECE))};
		entries[i] = (struct chunk_entry){.id = chunks[i].id, .size = PIECE};
	}
	hash = chunk_hash_file(entries, PIECES);
	ck_assert_int_eq(pwrite(fd, content, SIZE, 0), SIZE);
}

static void tear_down(void)
{
	close(fd);
	free(path);
	free(journal);
	unit_scratch_remove(folder);
}

static void open_map(struct file_map *map)
{
	struct error err = {0};
	const struct file_map_params params = {
		.size = SIZE, .hash = hash, .journal_path = journal, .fd = fd};
	ck_assert_int_eq(file_map_open(map, file_system(), &params, &err), 0);
}

START_TEST(gaps_close_and_the_whole_is_proven)
{
	struct file_map map;
	struct map_gap gap;
	struct error err = {0};
	open_map(&map);
	ck_assert(file_map_gap(&map, 0, &gap) && gap.from == 0 && gap.to == SIZE);
	ck_assert_int_eq(file_map_add(&map, chunks + 6, 2, &err), 0);
	ck_assert_int_eq(file_map_add(&map, chunks, 2, &err), 0);
	ck_assert_int_eq(file_map_add(&map, chunks + 1, 1, &err), 0); /* twice */
	ck_assert(file_map_gap(&map, 0, &gap) && gap.from == 2 * PIECE && gap.to == 6 * PIECE);
	ck_assert(file_map_gap(&map, 2500, &gap) && gap.from == 2500 && gap.to == 6 * PIECE);
	ck_assert(!file_map_gap(&map, 6 * PIECE, &gap));
	ck_assert_uint_eq(file_map_bytes(&map), 4 * PIECE);
	ck_assert(!file_map_is_whole(&map));
	ck_assert_int_eq(file_map_add(&map, chunks + 2, 4, &err), 0);
	ck_assert(!file_map_gap(&map, 0, &gap));
	ck_assert(file_map_is_whole(&map));
	map.chunks[3].id.bytes[0] ^= 1;
	ck_assert(!file_map_is_whole(&map));
	file_map_close(&map);
}
END_TEST

/* Thousands of files are opened and closed in one call. */
START_TEST(a_closed_map_holds_no_descriptor)
{
	struct file_map map;
	open_map(&map);
	const int journal_fd = map.journal_fd;
	ck_assert_int_ne(fcntl(journal_fd, F_GETFD), -1);
	file_map_close(&map);
	ck_assert_int_eq(fcntl(journal_fd, F_GETFD), -1);
	ck_assert(file_exists(journal));
}
END_TEST

START_TEST(the_journal_brings_back_what_is_in_place_and_nothing_else)
{
	struct file_map map;
	struct map_gap gap;
	struct error err = {0};
	open_map(&map);
	ck_assert_int_eq(file_map_add(&map, chunks, 5, &err), 0);
	file_map_close(&map);
	const int cut = open(journal, O_RDWR);
	/* the fifth record is torn */
	ck_assert_int_eq(ftruncate(cut, lseek(cut, 0, SEEK_END) - 10), 0);
	close(cut);
	const uint8_t other = (uint8_t)(content[2100] ^ 1);
	ck_assert_int_eq(pwrite(fd, &other, 1, 2100), 1);
	open_map(&map);
	ck_assert_uint_eq(file_map_bytes(&map), 3 * PIECE);
	ck_assert(file_map_gap(&map, 0, &gap) && gap.from == 2 * PIECE && gap.to == 3 * PIECE);
	ck_assert_int_eq(pwrite(fd, content, SIZE, 0), SIZE);
	ck_assert_int_eq(file_map_add(&map, chunks + 4, 1, &err), 0);
	file_map_close(&map);
	open_map(&map);
	ck_assert_uint_eq(file_map_bytes(&map), 5 * PIECE);
	file_map_restart(&map);
	file_map_close(&map);
	open_map(&map);
	ck_assert_uint_eq(file_map_bytes(&map), 0);
	file_map_close(&map);
}
END_TEST

START_TEST(a_journal_of_another_file_is_emptied)
{
	struct file_map map;
	struct error err = {0};
	open_map(&map);
	ck_assert_int_eq(file_map_add(&map, chunks, PIECES, &err), 0);
	file_map_close(&map);
	const struct chunk_id right = hash;
	hash.bytes[5] ^= 1;
	open_map(&map);
	ck_assert_uint_eq(map.count, 0);
	file_map_close(&map);
	hash = right;
	open_map(&map);
	ck_assert_uint_eq(map.count, 0);
	file_map_close(&map);
}
END_TEST

START_TEST(two_chunks_over_one_byte_spoil_the_map_until_it_is_restarted)
{
	struct file_map map;
	struct error err = {0};
	const struct map_chunk other = {.offset = 2 * PIECE - 1, .size = PIECE, .id = chunks[5].id};
	open_map(&map);
	ck_assert_int_eq(file_map_add(&map, chunks, PIECES, &err), 0);
	ck_assert(file_map_is_whole(&map));
	ck_assert_int_eq(file_map_add(&map, &other, 1, &err), 0);
	ck_assert(!file_map_is_whole(&map));
	ck_assert_int_eq(file_map_add(&map, chunks, PIECES, &err), 0);
	ck_assert(!file_map_is_whole(&map));
	file_map_restart(&map);
	ck_assert_int_eq(file_map_add(&map, chunks, PIECES, &err), 0);
	ck_assert(file_map_is_whole(&map));
	file_map_close(&map);
}
END_TEST

START_TEST(the_beginning_of_a_chunk_and_its_end_are_of_one_chunk)
{
	struct file_map map;
	struct error err = {0};
	struct map_chunk wrong = chunks[3];
	open_map(&map);
	file_map_claim(&map, &chunks[3]);
	ck_assert_uint_eq(file_map_bytes(&map), 0);
	ck_assert_int_eq(file_map_add(&map, chunks, PIECES, &err), 0);
	ck_assert(file_map_is_whole(&map));
	wrong.id.bytes[0] ^= 1;
	file_map_claim(&map, &wrong);
	ck_assert(!file_map_is_whole(&map));
	file_map_close(&map);
}
END_TEST

START_TEST(an_empty_file_is_whole)
{
	struct file_map map;
	struct error err = {0};
	const struct file_map_params params = {.fd = -1};
	ck_assert_int_eq(file_map_open(&map, file_system(), &params, &err), 0);
	ck_assert(file_map_is_whole(&map));
	file_map_close(&map);
}
END_TEST

Suite *test_file_map_suite(void);
Suite *test_file_map_suite(void)
{
	Suite *const suite = suite_create("file_map");
	TCase *const tests = tcase_create("file_map");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, gaps_close_and_the_whole_is_proven);
	tcase_add_test(tests, a_closed_map_holds_no_descriptor);
	tcase_add_test(tests, the_journal_brings_back_what_is_in_place_and_nothing_else);
	tcase_add_test(tests, a_journal_of_another_file_is_emptied);
	tcase_add_test(tests, two_chunks_over_one_byte_spoil_the_map_until_it_is_restarted);
	tcase_add_test(tests, the_beginning_of_a_chunk_and_its_end_are_of_one_chunk);
	tcase_add_test(tests, an_empty_file_is_whole);
	suite_add_tcase(suite, tests);
	return suite;
}
