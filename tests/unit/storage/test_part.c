#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/catalog.h"
#include "storage/pack_row.h"
#include "storage/part.h"

enum { SEGMENTS = 3000, SEGMENT_BYTES = 1000 };

static char *folder;
static struct db *db;
static struct pack_record packs[2];
static struct segment segments[SEGMENTS];

static void set_up(void)
{
	struct error err = {0};
	char path[512];
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		memset(packs[i].id.bytes, 'a' + i, PACK_ID_BYTES);
		packs[i].state = PACK_SEALED;
		packs[i].chunks = SEGMENTS;
		ck_assert_int_eq(pack_row_record(db, &packs[i], &err), 0);
	}
	for (uint32_t i = 0; i < SEGMENTS; i++)
		segments[i] = (struct segment){packs[i % 2].id, i, 1, SEGMENT_BYTES};
	ck_assert_int_eq(db_begin(db, &err), 0);
}

static void tear_down(void)
{
	db_rollback(db);
	db_close(db);
	unit_scratch_remove(folder);
}

static int64_t add(const size_t count, uint64_t *const out_contents)
{
	struct error err = {0};
	int64_t set = 0;
	const struct stored_part part = {.size = count * SEGMENT_BYTES, .segments = segments, .segment_count = count};
	ck_assert_msg(part_set_add_single(db, &part, &set, out_contents, &err) == 0, "%s", err.text);
	return set;
}

static int64_t rows(const char *const sql)
{
	struct error err = {0};
	struct db_statement *const statement = db_prepare(db, sql, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	const int64_t count = db_column_i64(statement, 0);
	db_reset(statement);
	return count;
}

static const char SQL_SEGMENTS[] = "SELECT COUNT(*) FROM segments";
static const char SQL_SETS[] = "SELECT COUNT(*) FROM part_sets";

static const struct {
	uint64_t offset;
	uint64_t length;
	size_t first;
	size_t count;
	uint64_t skip;
} ranges[] = {
	{0, 1, 0, 1, 0}, {999, 1, 0, 1, 999}, {999, 2, 0, 2, 999}, {1000, 1000, 1, 1, 0}, {1500, 1000, 1, 2, 500}, {0, 100000, 0, 100, 0},
	{99999, 1, 99, 1, 999},
};

START_TEST(a_range_loads_only_the_segments_it_needs)
{
	struct error err = {0};
	uint64_t contents;
	add(10, &contents); /* a neighbour */
	const int64_t set = add(100, &contents);
	struct part_range range = {.offset = ranges[_i].offset, .length = ranges[_i].length};
	ck_assert_msg(part_set_load(db, set, contents, &range, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(range.segment_count, ranges[_i].count);
	ck_assert_uint_eq(range.skip, ranges[_i].skip);
	for (size_t i = 0; i < range.segment_count; i++)
		ck_assert(memcmp(&range.segments[i], &segments[ranges[_i].first + i], sizeof(struct segment)) == 0);
	free(range.segments);
}
END_TEST

START_TEST(an_unrecorded_pack_is_refused)
{
	struct error err = {0};
	int64_t set = 0;
	uint64_t contents;
	struct segment segment = {.count = 1, .bytes = 10};
	const struct stored_part part = {.size = 10, .segments = &segment, .segment_count = 1};
	ck_assert_int_eq(part_set_add_single(db, &part, &set, &contents, &err), -1); /* invariant 1 */
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(small_sets_go_at_once)
{
	struct error err = {0};
	uint64_t contents;
	const int64_t kept = add(5, &contents);
	const int64_t set = add(PART_DROP_ROWS - 1, &contents);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 5);
	ck_assert_int_eq(rows(SQL_SETS), 1);
	ck_assert_int_eq(part_set_drop(db, kept, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 0);
	ck_assert_int_eq(part_set_drop(db, kept, &err), 0); /* gone already */
}
END_TEST

START_TEST(large_sets_go_in_slices)
{
	struct error err = {0};
	uint64_t contents;
	bool more = false;
	add(5, &contents);
	const int64_t set = add(SEGMENTS, &contents);
	ck_assert_int_eq(part_set_has_dead(db, &more, &err), 0);
	ck_assert(!more);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), SEGMENTS + 5);
	ck_assert_int_eq(part_set_has_dead(db, &more, &err), 0);
	ck_assert(more);
	int64_t before = rows(SQL_SEGMENTS);
	int slices = 0;
	for (; more; slices++) {
		ck_assert_int_eq(part_set_sweep(db, &more, &err), 0);
		const int64_t after = rows(SQL_SEGMENTS);
		ck_assert_int_le(before - after, PART_SWEEP_ROWS);
		before = after;
	}
	ck_assert_int_ge(slices, SEGMENTS / PART_SWEEP_ROWS);
	ck_assert_int_eq(before, 5);
	ck_assert_int_eq(rows(SQL_SETS), 1);
}
END_TEST

Suite *test_part_suite(void);
Suite *test_part_suite(void)
{
	Suite *const suite = suite_create("part");
	TCase *const tests = tcase_create("part");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_range_loads_only_the_segments_it_needs, 0, sizeof(ranges) / sizeof(ranges[0]));
	tcase_add_test(tests, an_unrecorded_pack_is_refused);
	tcase_add_test(tests, small_sets_go_at_once);
	tcase_add_test(tests, large_sets_go_in_slices);
	suite_add_tcase(suite, tests);
	return suite;
}
