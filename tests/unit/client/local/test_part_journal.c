#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/part_journal.h"

enum { PART_BYTES = 100, DATA_BYTES = 250 };

static char *folder;
static char *path;
static const struct part_plan PLAN = {
	.size = DATA_BYTES, .part_bytes = PART_BYTES, .identity = {(const uint8_t *)"etag-1", 6}};

static void set_up(void)
{
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x.part.journal");
}

static void tear_down(void)
{
	free(path);
	unit_scratch_remove(folder);
}

static struct part_journal *open_journal(const struct part_plan *plan)
{
	struct error err = {0};
	struct part_journal *const journal = part_journal_open(file_system(), path, plan, &err);
	ck_assert_msg(journal != NULL, "%s", err.text);
	return journal;
}

static void add(struct part_journal *journal, size_t part, uint64_t checksum)
{
	struct error err = {0};
	ck_assert_int_eq(part_journal_add(journal, part, checksum, &err), 0);
}

static void append(const char *text)
{
	FILE *const file = fopen(path, "a");
	fputs(text, file);
	fclose(file);
}

static const struct {
	uint64_t size;
	size_t parts;
	uint64_t last_bytes;
} PLANS[] = {{0, 1, 0}, {1, 1, 1}, {100, 1, 100}, {101, 2, 1}, {250, 3, 50}, {300, 3, 100}};

START_TEST(plans_cover_the_file)
{
	const struct part_plan plan = {.size = PLANS[_i].size, .part_bytes = PART_BYTES};
	const size_t parts = part_plan_count(&plan);
	ck_assert_uint_eq(parts, PLANS[_i].parts);
	ck_assert_uint_eq(part_plan_bytes(&plan, parts - 1), PLANS[_i].last_bytes);
	ck_assert_uint_eq(part_plan_offset(&plan, parts - 1) + PLANS[_i].last_bytes, plan.size);
}
END_TEST

START_TEST(parts_are_remembered)
{
	struct part_journal *journal = open_journal(&PLAN);
	ck_assert_uint_eq(part_journal_count(journal), 0);
	add(journal, 2, 7);
	part_journal_close(journal);
	journal = open_journal(&PLAN);
	ck_assert(!part_journal_has(journal, 0));
	ck_assert(part_journal_has(journal, 2));
	ck_assert_uint_eq(part_journal_count(journal), 1);
	part_journal_close(journal);
}
END_TEST

/* Parts of another object, another version of it, or another part size must not count. */
START_TEST(another_plan_starts_afresh)
{
	static const struct part_plan OTHERS[] = {
		{.size = DATA_BYTES,
			.part_bytes = PART_BYTES,
			.identity = {(const uint8_t *)"etag-2", 6}},
		{.size = DATA_BYTES + 1,
			.part_bytes = PART_BYTES,
			.identity = {(const uint8_t *)"etag-1", 6}},
		{.size = DATA_BYTES,
			.part_bytes = PART_BYTES + 1,
			.identity = {(const uint8_t *)"etag-1", 6}},
		{.size = DATA_BYTES,
			.part_bytes = PART_BYTES,
			.identity = {(const uint8_t *)"etag-", 5}},
	};
	struct part_journal *journal = open_journal(&PLAN);
	add(journal, 0, 7);
	part_journal_close(journal);
	journal = open_journal(&OTHERS[_i]);
	ck_assert_uint_eq(part_journal_count(journal), 0);
	part_journal_close(journal);
	journal = open_journal(&PLAN);
	ck_assert_uint_eq(part_journal_count(journal), 0);
	part_journal_close(journal);
}
END_TEST

/* Whatever a kill or a power cut left after the whole lines, these count, and lines that are added
 * later can be read. */
START_TEST(broken_tails_are_dropped)
{
	static const char *const TAILS[] = {"1", "1 12", "x y\n", "1 12x\n", "99 5\n", "3 5\n",
		"-1 5\n", "\n\n", " 1 5\n", "1\n"};
	struct part_journal *journal = open_journal(&PLAN);
	add(journal, 0, 7);
	part_journal_close(journal);
	append(TAILS[_i]);
	journal = open_journal(&PLAN);
	ck_assert_uint_eq(part_journal_count(journal), 1);
	ck_assert(part_journal_has(journal, 0));
	add(journal, 2, 9);
	part_journal_close(journal);
	journal = open_journal(&PLAN);
	ck_assert(part_journal_has(journal, 0));
	ck_assert(!part_journal_has(journal, 1));
	ck_assert(part_journal_has(journal, 2));
	part_journal_close(journal);
}
END_TEST

START_TEST(an_unreadable_journal_is_begun_anew)
{
	append("something else entirely\n0 1\n");
	struct part_journal *const journal = open_journal(&PLAN);
	ck_assert_uint_eq(part_journal_count(journal), 0);
	part_journal_close(journal);
}
END_TEST

static uint64_t checksum_of(const uint8_t *data, size_t len)
{
	const struct digest128 digest = xxh3_128(span_of(data, len));
	uint64_t checksum;
	memcpy(&checksum, digest.bytes, sizeof checksum);
	return checksum;
}

START_TEST(parts_whose_bytes_differ_come_again)
{
	uint8_t data[DATA_BYTES];
	struct error err = {0};
	char *const data_path = folder_files_join(folder, "x.part");
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	struct part_journal *journal = open_journal(&PLAN);
	for (size_t i = 0; i < 3; i++)
		add(journal, i,
			checksum_of(data + part_plan_offset(&PLAN, i),
				(size_t)part_plan_bytes(&PLAN, i)));
	data[150] ^= 1;
	ck_assert_int_eq(
		file_publish(file_system(), data_path, span_of(data, sizeof data), 0600, &err), 0);
	const int fd = open(data_path, O_RDONLY);
	ck_assert_msg(part_journal_verify(journal, fd, data_path, &err) == 0, "%s", err.text);
	ck_assert(part_journal_has(journal, 0));
	ck_assert(!part_journal_has(journal, 1));
	ck_assert(part_journal_has(journal, 2));
	part_journal_close(journal);
	journal = open_journal(&PLAN); /* and that is remembered */
	ck_assert_uint_eq(part_journal_count(journal), 2);
	ck_assert_int_eq(part_journal_restart(journal, &err), 0);
	ck_assert_uint_eq(part_journal_count(journal), 0);
	part_journal_close(journal);
	close(fd);
	free(data_path);
}
END_TEST

START_TEST(absurd_sizes_are_refused)
{
	const struct part_plan plan = {
		.size = UINT64_MAX, .part_bytes = PART_BYTES, .identity = PLAN.identity};
	struct error err = {0};
	ck_assert_ptr_null(part_journal_open(file_system(), path, &plan, &err));
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
}
END_TEST

Suite *test_part_journal_suite(void);
Suite *test_part_journal_suite(void)
{
	Suite *const suite = suite_create("part_journal");
	TCase *const tests = tcase_create("part_journal");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, plans_cover_the_file, 0, sizeof PLANS / sizeof PLANS[0]);
	tcase_add_test(tests, parts_are_remembered);
	tcase_add_loop_test(tests, another_plan_starts_afresh, 0, 4);
	tcase_add_loop_test(tests, broken_tails_are_dropped, 0, 10);
	tcase_add_test(tests, an_unreadable_journal_is_begun_anew);
	tcase_add_test(tests, parts_whose_bytes_differ_come_again);
	tcase_add_test(tests, absurd_sizes_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
