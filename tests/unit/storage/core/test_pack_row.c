/* Rows of packs: what gc may do to a pack in each state, and damaged rows. */
#include "storage/core/pack_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/packs/pack_format.h"
#include "storage/start/catalog.h"
#include "tests/unit/unit.h"

Suite *test_pack_row_suite(void);

static char *folder;
static struct db *db;
static struct error err;

static const struct pack_record packs[] = {
	{.id = {{1}}, .state = PACK_OPEN, .length = 1000, .chunks = 10, .created_ms = 5},
	{.id = {{2}}, .state = PACK_SEALED, .length = 2000, .chunks = 20, .created_ms = 6},
	{.id = {{3}}, .state = PACK_CONDEMNED, .length = 3000, .chunks = 30, .created_ms = 7},
};
enum { PACKS = sizeof packs / sizeof *packs };

static void set_up(void)
{
	char path[512];
	folder = unit_scratch_make();
	err = (struct error){0};
	snprintf(path, sizeof path, "%s/catalog.db", folder);
	db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_int_eq(db_begin(db, &err), 0);
	for (size_t i = 0; i < PACKS; i++)
		ck_assert_msg(pack_row_record(db, &packs[i], &err) == 0, "%s", err.text);
}

static void tear_down(void)
{
	db_rollback(db);
	db_close(db);
	unit_scratch_remove(folder);
}

static struct pack_record find(int64_t number)
{
	struct pack_record found = {0};
	ck_assert_int_eq(pack_row_find(db, number, &found, &err), 1);
	return found;
}

START_TEST(rows_say_what_was_recorded)
{
	for (int i = 0; i < PACKS; i++) {
		int64_t number = 0;
		ck_assert_int_eq(pack_row_number(db, &packs[i].id, &number, &err), 1);
		ck_assert_int_eq(number, i + 1);
		const struct pack_record found = find(number);
		ck_assert(pack_id_equal(&found.id, &packs[i].id));
		ck_assert_int_eq(found.state, packs[i].state);
		ck_assert_uint_eq(found.length, packs[i].length);
		ck_assert_uint_eq(found.chunks, packs[i].chunks);
		ck_assert_int_eq(found.created_ms, packs[i].created_ms);
	}
	struct pack_record unknown;
	ck_assert_int_eq(pack_row_find(db, PACKS + 1, &unknown, &err), 0);
}
END_TEST

/* A pack grows, and keeps the time at which it was made. */
START_TEST(a_row_is_brought_up_to_date)
{
	const struct pack_record later = {.id = packs[0].id,
		.state = PACK_SEALED,
		.length = 1500,
		.chunks = 15,
		.created_ms = 99};
	ck_assert_int_eq(pack_row_record(db, &later, &err), 0);
	const struct pack_record found = find(1);
	ck_assert_int_eq(found.state, PACK_SEALED);
	ck_assert_uint_eq(found.length, 1500);
	ck_assert_uint_eq(found.chunks, 15);
	ck_assert_int_eq(found.created_ms, 5);
}
END_TEST

START_TEST(numbers_come_in_pages)
{
	int64_t numbers[4];
	size_t count;
	ck_assert_int_eq(pack_row_numbers(db, 0, numbers, 2, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(numbers[0] == 1 && numbers[1] == 2);
	ck_assert_int_eq(pack_row_numbers(db, 2, numbers, 2, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(numbers[0], 3);
	ck_assert_int_eq(pack_row_numbers(db, 3, numbers, 2, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
}
END_TEST

static int act(int what, int64_t number)
{
	static const struct pack_id file = {{9}};
	switch (what) {
	case 0:
		return pack_row_condemn(db, number, 77, &err);
	case 1:
		return pack_row_spare(db, number, &err);
	case 2:
		return pack_row_remove(db, number, &err);
	default:
		return pack_row_move(db, number, &file, 500, &err);
	}
}

/* The state that the pack must have, for each act of gc as `act` numbers them. */
static const enum pack_state wanted[] = {PACK_SEALED, PACK_CONDEMNED, PACK_CONDEMNED, PACK_SEALED};

START_TEST(gc_does_nothing_to_a_pack_in_another_state)
{
	for (int i = 0; i < PACKS; i++) {
		if (packs[i].state == wanted[_i])
			continue;
		ck_assert_int_eq(act(_i, i + 1), -1);
		ck_assert_int_eq(err.kind, ERROR_BUSY);
		const struct pack_record found = find(i + 1);
		ck_assert_int_eq(found.state, packs[i].state);
		ck_assert_uint_eq(found.length, packs[i].length);
	}
	ck_assert_int_eq(act(_i, PACKS + 1), -1);
}
END_TEST

START_TEST(gc_changes_the_one_pack)
{
	static const enum pack_state becomes[] = {
		PACK_CONDEMNED, PACK_SEALED, PACK_CONDEMNED, PACK_SEALED};
	const int64_t number = wanted[_i] == PACK_SEALED ? 2 : 3;
	struct pack_record found;
	ck_assert_msg(act(_i, number) == 0, "%s", err.text);
	ck_assert_int_eq(find(1).state, PACK_OPEN);
	ck_assert_int_eq(pack_row_find(db, number, &found, &err), _i != 2);
	if (_i == 2)
		return;
	ck_assert_int_eq(found.state, becomes[_i]);
	ck_assert_uint_eq(found.length, _i == 3 ? 500 : packs[number - 1].length);
	ck_assert_int_eq(found.file.bytes[0], _i == 3 ? 9 : 0);
}
END_TEST

static const char *const damages[] = {"UPDATE packs SET length = -1 WHERE number = 2",
	"UPDATE packs SET chunks = -1 WHERE number = 2",
	"UPDATE packs SET chunks = 4294967296 WHERE number = 2",
	"UPDATE packs SET id = x'02' WHERE number = 2",
	"UPDATE packs SET file = x'0203' WHERE number = 2",
	"UPDATE packs SET state = 3 WHERE number = 2",
	"UPDATE packs SET state = -1 WHERE number = 2"};

START_TEST(a_damaged_row_is_no_pack)
{
	struct pack_record found;
	struct pack_record *all = NULL;
	size_t count;
	ck_assert_int_eq(db_run_script(db, "PRAGMA ignore_check_constraints=ON", &err), 0);
	ck_assert_msg(db_run_script(db, damages[_i], &err) == 0, "%s", err.text);
	ck_assert_int_eq(pack_row_find(db, 2, &found, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(pack_row_list(db, &all, &count, &err), -1);
	ck_assert_int_eq(pack_row_find(db, 1, &found, &err), 1);
}
END_TEST

static void add_segment(int64_t pack, int64_t first, int64_t count)
{
	char sql[200];
	snprintf(sql, sizeof sql,
		"INSERT INTO segments (part_set, number, start, pack, first, count, bytes, sum)"
		" VALUES (-%d, 1, 0, %d, %d, %d, 1, 0)",
		(int)(100 * pack + first), (int)pack, (int)first, (int)count);
	ck_assert_msg(db_run_script(db, sql, &err) == 0, "%s", err.text);
}

static int mark(int64_t number, uint8_t live[3], size_t *out_rows)
{
	memset(live, 0, 3);
	return pack_row_mark(db, number, packs[number - 1].chunks, live, out_rows, &err);
}

START_TEST(rows_that_lead_to_a_pack_mark_its_chunks)
{
	uint8_t live[3];
	size_t rows;
	add_segment(2, 0, 2);
	add_segment(2, 18, 2);
	ck_assert_int_eq(pack_row_name(db, &packs[1].id, pack_row_names_of(0, 2), &err), 0);
	ck_assert_int_eq(mark(2, live, &rows), -1); /* packs.named has only one of the rows */
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(pack_row_name(db, &packs[1].id, pack_row_names_of(18, 2), &err), 0);
	ck_assert_msg(mark(2, live, &rows) == 0, "%s", err.text);
	ck_assert_uint_eq(rows, 2);
	ck_assert(live[0] == 3 && live[1] == 0 && live[2] == 12);
	add_segment(2, 19, 2); /* beyond its last chunk */
	ck_assert_int_eq(pack_row_name(db, &packs[1].id, pack_row_names_of(19, 2), &err), 0);
	ck_assert_int_eq(mark(2, live, &rows), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(a_pack_is_named_when_rows_and_their_sum_say_so)
{
	bool is_named = true;
	ck_assert_int_eq(pack_row_is_named(db, 2, &is_named, &err), 0);
	ck_assert(!is_named);
	add_segment(2, 4, 2);
	ck_assert_int_eq(pack_row_is_named(db, 2, &is_named, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(pack_row_name(db, &packs[1].id, pack_row_names_of(4, 2), &err), 0);
	ck_assert_int_eq(pack_row_is_named(db, 2, &is_named, &err), 0);
	ck_assert(is_named);
	ck_assert_int_eq(pack_row_is_named(db, 3, &is_named, &err), 0);
	ck_assert(!is_named);
	ck_assert_int_eq(db_run_script(db, "DELETE FROM segments", &err), 0);
	ck_assert_int_eq(pack_row_is_named(db, 2, &is_named, &err), -1);
	ck_assert_int_eq(pack_row_unname(db, 2, pack_row_names_of(4, 2), &err), 0);
	ck_assert_int_eq(pack_row_is_named(db, 2, &is_named, &err), 0);
	ck_assert(!is_named);
}
END_TEST

Suite *test_pack_row_suite(void)
{
	Suite *suite = suite_create("pack_row");
	TCase *all = tcase_create("all");
	tcase_add_checked_fixture(all, set_up, tear_down);
	tcase_add_test(all, rows_say_what_was_recorded);
	tcase_add_test(all, a_row_is_brought_up_to_date);
	tcase_add_test(all, numbers_come_in_pages);
	tcase_add_loop_test(all, gc_does_nothing_to_a_pack_in_another_state, 0, 4);
	tcase_add_loop_test(all, gc_changes_the_one_pack, 0, 4);
	tcase_add_loop_test(all, a_damaged_row_is_no_pack, 0, sizeof damages / sizeof *damages);
	tcase_add_test(all, rows_that_lead_to_a_pack_mark_its_chunks);
	tcase_add_test(all, a_pack_is_named_when_rows_and_their_sum_say_so);
	suite_add_tcase(suite, all);
	return suite;
}
