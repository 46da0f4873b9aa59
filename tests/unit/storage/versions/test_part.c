#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/pack_row.h"
#include "storage/start/catalog.h"
#include "storage/versions/part_internal.h"

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

static int64_t add(int64_t version, size_t count)
{
	struct error err = {0};
	const int64_t set = part_single_set(version);
	const struct stored_part part = {
		.size = count * SEGMENT_BYTES, .segments = segments, .segment_count = count};
	ck_assert_msg(part_single_add(db, set, &part, &err) == 0, "%s", err.text);
	return set;
}

static int64_t rows(const char *sql)
{
	struct error err = {0};
	int64_t count = -1;
	ck_assert_int_eq(db_find_i64(db, sql, &count, &err), 1);
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
	{0, 1, 0, 1, 0},
	{999, 1, 0, 1, 999},
	{999, 2, 0, 2, 999},
	{1000, 1000, 1, 1, 0},
	{1500, 1000, 1, 2, 500},
	{0, 100000, 0, 100, 0},
	{99999, 1, 99, 1, 999},
};

START_TEST(a_range_loads_only_the_segments_it_needs)
{
	struct error err = {0};
	add(1, 10); /* a neighbouring set */
	const int64_t set = add(2, 100);
	struct part_range range = {.offset = ranges[_i].offset, .length = ranges[_i].length};
	ck_assert_msg(part_set_load(db, set, 100 * SEGMENT_BYTES,
			      part_single_contents(segments, 100), &range, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(range.segment_count, ranges[_i].count);
	ck_assert_uint_eq(range.skip, ranges[_i].skip);
	for (size_t i = 0; i < range.segment_count; i++)
		ck_assert(memcmp(&range.segments[i], &segments[ranges[_i].first + i],
				  sizeof(struct segment)) == 0);
	free(range.segments);
}
END_TEST

START_TEST(a_range_may_be_refused_for_its_many_segments)
{
	struct error err = {0};
	const int64_t set = add(1, 100);
	const uint64_t contents = part_single_contents(segments, 100);
	struct part_range range = {.length = 10 * SEGMENT_BYTES, .max_segments = 10};
	ck_assert_msg(part_set_load(db, set, 100 * SEGMENT_BYTES, contents, &range, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(range.segment_count, 10);
	free(range.segments);
	range = (struct part_range){.length = 10 * SEGMENT_BYTES + 1, .max_segments = 10};
	ck_assert_int_eq(part_set_load(db, set, 100 * SEGMENT_BYTES, contents, &range, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_ptr_null(range.segments);
}
END_TEST

START_TEST(an_unrecorded_pack_is_refused)
{
	struct error err = {0};
	struct segment segment = {.count = 1, .bytes = 10};
	const struct stored_part part = {.size = 10, .segments = &segment, .segment_count = 1};
	/* invariant 1 */
	ck_assert_int_eq(part_single_add(db, part_single_set(1), &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

/* A set as version 0.1 wrote it: with one part. */
static int64_t add_listed(size_t count, uint64_t *out_contents)
{
	static const char sql_set[] = "INSERT INTO part_sets (row_count) VALUES (4)";
	static const char sql_part[] =
		"INSERT INTO parts (part_set, number, size, md5, digest, file_hash, sum) VALUES (?1, 1, ?2, x'', x'', x'', ?3)";
	struct error err = {0};
	struct part_row row = {.number = 1};
	const struct stored_part part = {
		.size = count * SEGMENT_BYTES, .segments = segments, .segment_count = count};
	int64_t set = -1;
	ck_assert_int_eq(db_insert(db, sql_set, &set, &err), 0);
	ck_assert_int_eq(part_add_segments(db, set, &part, &row, &err), 0);
	ck_assert_int_eq(db_run(db, sql_part, &err, db_i64(set), db_i64((int64_t)row.size),
				 db_i64((int64_t)row.sum)),
		0);
	*out_contents =
		part_row_add_to(0, &row, span_of(NULL, 0), span_of(NULL, 0), span_of(NULL, 0));
	return set;
}

START_TEST(sets_of_the_first_form_are_read_and_dropped)
{
	struct error err = {0};
	uint64_t contents;
	const int64_t set = add_listed(3, &contents);
	struct part_range range = {.offset = 1, .length = 3 * SEGMENT_BYTES - 1};
	ck_assert_msg(part_set_load(db, set, 3 * SEGMENT_BYTES, contents, &range, &err) == 0, "%s",
		err.text);
	ck_assert_uint_eq(range.segment_count, 3);
	free(range.segments);
	ck_assert_int_eq(part_set_share(db, set, &err), 0);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 3);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(
		rows(SQL_SEGMENTS) + rows(SQL_SETS) + rows("SELECT COUNT(*) FROM parts"), 0);
}
END_TEST

static const char *const listed_damages[] = {
	"UPDATE parts SET size = size + 1",
	"UPDATE parts SET sum = sum + 1",
	"UPDATE parts SET md5 = x'00'",
	"DELETE FROM parts",
	"UPDATE segments SET count = count + 1",
	"DELETE FROM segments WHERE start = 2000",
	"DELETE FROM part_sets",
};

START_TEST(damage_of_the_first_form_is_seen)
{
	struct error err = {0};
	uint64_t contents;
	const int64_t set = add_listed(3, &contents);
	struct part_range range = {.length = 3 * SEGMENT_BYTES};
	ck_assert_int_eq(db_run_script(db, listed_damages[_i], &err), 0);
	ck_assert_int_eq(part_set_load(db, set, 3 * SEGMENT_BYTES, contents, &range, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

static const struct {
	const char *damage;
	bool is_whole; /* a read of the whole part sees it, a read of the first byte does not */
} damages[] = {
	{"UPDATE segments SET pack = 3 - pack WHERE start = 0", false},
	{"UPDATE segments SET first = first + 1 WHERE start = 0", false},
	{"UPDATE segments SET part_set = part_set - 1", false},
	{"DELETE FROM segments WHERE start = 0", false},
	{"DELETE FROM segments WHERE start = 1000", true},
	{"DELETE FROM segments WHERE start = 2000", true},
};

START_TEST(damage_is_seen)
{
	struct error err = {0};
	const int64_t set = add(1, 3);
	struct part_range first = {.length = 1};
	struct part_range whole = {.length = 3 * SEGMENT_BYTES};
	ck_assert_int_eq(db_run_script(db, damages[_i].damage, &err), 0);
	const int result = part_set_load(
		db, set, 3 * SEGMENT_BYTES, part_single_contents(segments, 3), &first, &err);
	ck_assert_int_eq(result, damages[_i].is_whole ? 0 : -1);
	free(first.segments);
	ck_assert_int_eq(part_set_load(db, set, 3 * SEGMENT_BYTES,
				 part_single_contents(segments, 3), &whole, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

/* Reads that do not need the whole part see a gap too. */
START_TEST(a_gap_is_seen)
{
	struct error err = {0};
	const int64_t set = add(1, 4);
	struct part_range range = {.length = 3 * SEGMENT_BYTES};
	ck_assert_int_eq(db_run_script(db, "DELETE FROM segments WHERE start = 1000", &err), 0);
	ck_assert_int_eq(part_set_load(db, set, 4 * SEGMENT_BYTES,
				 part_single_contents(segments, 4), &range, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_ptr_null(range.segments);
}
END_TEST

/* Rows that are each right, but belong to a set that is not the version's. */
START_TEST(contents_are_of_this_version)
{
	struct error err = {0};
	const int64_t set = add(1, 3);
	struct part_range range = {.length = 3 * SEGMENT_BYTES};
	ck_assert_int_eq(part_set_load(db, set, 3 * SEGMENT_BYTES,
				 part_single_contents(segments + 1, 3), &range, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(small_sets_go_at_once)
{
	struct error err = {0};
	const int64_t kept = add(1, 5);
	const int64_t set = add(2, PART_DROP_ROWS);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 5);
	ck_assert_int_eq(part_set_drop(db, kept, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 0);
	ck_assert_int_eq(part_set_drop(db, kept, &err), 0); /* it is gone already */
	ck_assert_int_eq(rows(SQL_SETS), 0);
}
END_TEST

static void sweep_all(void)
{
	struct error err = {0};
	bool more = true;
	while (more)
		ck_assert_int_eq(part_set_sweep(db, &more, &err), 0);
}

static const size_t shared_counts[] = {3, PART_DROP_ROWS, PART_DROP_ROWS + 1, SEGMENTS};

START_TEST(shared_sets_go_with_the_last)
{
	struct error err = {0};
	const int64_t set = add(1, shared_counts[_i]);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(part_set_share(db, set, &err) == 0, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(part_set_drop(db, set, &err), 0);
		sweep_all();
		ck_assert_uint_eq((size_t)rows(SQL_SEGMENTS), shared_counts[_i]);
	}
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	sweep_all();
	ck_assert_int_eq(rows(SQL_SEGMENTS), 0);
	ck_assert_int_eq(rows(SQL_SETS), 0);
}
END_TEST

/* A change that drops many small sets removes about 1,000 rows itself. The sweeper removes the
 * rest, many sets at a time. */
START_TEST(a_change_leaves_most_of_many_sets)
{
	enum { SETS = 100, ROWS = 60 };
	struct error err = {0};
	for (int i = 1; i <= SETS; i++)
		add(i, ROWS);
	ck_assert_int_eq(db_savepoint(db, &err), 0);
	for (int i = 1; i <= SETS; i++)
		ck_assert_int_eq(part_set_drop(db, part_single_set(i), &err), 0);
	ck_assert_int_eq(db_savepoint_release(db, &err), 0);
	const int64_t removed = SETS * ROWS - rows(SQL_SEGMENTS);
	ck_assert_int_gt(removed, PART_CHANGE_ROWS - PART_DROP_ROWS);
	ck_assert_int_le(removed, PART_CHANGE_ROWS);
	int slices = 0;
	for (bool more = true; more; slices++) {
		const int64_t before = rows(SQL_SEGMENTS);
		ck_assert_int_eq(part_set_sweep(db, &more, &err), 0);
		ck_assert_int_le(before - rows(SQL_SEGMENTS), PART_SWEEP_ROWS);
	}
	ck_assert_int_le(slices, SETS * ROWS / PART_SWEEP_ROWS + 1);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 0);
	ck_assert_int_eq(rows(SQL_SETS), 0);
	add(1, PART_TINY_ROWS);
	for (int i = 2; i <= 20; i++)
		add(i, ROWS);
	/* a tiny set is removed at once, whatever else was done */
	ck_assert_int_eq(part_set_drop(db, part_single_set(1), &err), 0);
	ck_assert_int_eq(rows(SQL_SETS), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 19 * ROWS);
}
END_TEST

START_TEST(large_sets_go_in_slices)
{
	struct error err = {0};
	bool more = false;
	add(1, 5);
	const int64_t set = add(2, SEGMENTS);
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
	ck_assert_int_eq(rows(SQL_SETS), 0);
}
END_TEST

/* The packs whose count of names differs from the rows that lead to them. */
static const char SQL_MISCOUNTED[] =
	"SELECT COUNT(*) FROM packs WHERE named <>"
	" (SELECT coalesce(sum(3 * first + count), 0) FROM segments WHERE pack = packs.number)";

/* Runs of records of one pack and of several, in one set and in neighbouring sets. */
START_TEST(packs_know_what_leads_to_them)
{
	struct error err = {0};
	struct segment mixed[7];
	for (size_t i = 0; i < 7; i++)
		mixed[i] = (struct segment){packs[i < 3 || i == 5].id, (uint32_t)(10 * i),
			(uint32_t)i + 1, SEGMENT_BYTES};
	const struct stored_part part = {
		.size = 7 * SEGMENT_BYTES, .segments = mixed, .segment_count = 7};
	ck_assert_int_eq(part_single_add(db, part_single_set(1), &part, &err), 0);
	add(2, 5);
	ck_assert_int_eq(rows(SQL_MISCOUNTED), 0);
	ck_assert_int_eq(part_set_share(db, part_single_set(1), &err), 0);
	ck_assert_int_eq(part_set_drop(db, part_single_set(1), &err), 0);
	ck_assert_int_eq(rows(SQL_MISCOUNTED), 0);
	ck_assert_int_eq(part_set_drop(db, part_single_set(1), &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 5);
	ck_assert_int_eq(rows(SQL_MISCOUNTED), 0);
	const int64_t large = add(3, SEGMENTS);
	ck_assert_int_eq(part_set_drop(db, large, &err), 0);
	for (bool more = true; more;) {
		ck_assert_int_eq(part_set_sweep(db, &more, &err), 0);
		ck_assert_int_eq(rows(SQL_MISCOUNTED), 0);
	}
	ck_assert_int_eq(rows("SELECT sum(named) FROM packs"),
		rows("SELECT sum(3 * first + count) FROM segments"));
}
END_TEST

START_TEST(what_is_gone_or_goes_is_not_shared)
{
	struct error err = {0};
	uint64_t contents;
	ck_assert_int_eq(part_set_share(db, 4711, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	const int64_t set = add_listed(SEGMENTS, &contents);
	ck_assert_int_eq(db_run_script(db, "UPDATE part_sets SET row_count = 3001", &err), 0);
	ck_assert_int_eq(part_set_drop(db, set, &err), 0);
	ck_assert_int_eq(part_set_share(db, set, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

/* The last drop of a shared set of one PUT relies on the set's number of rows. */
START_TEST(sets_know_how_many_rows_they_have)
{
	struct error err = {0};
	uint64_t contents;
	int64_t set;
	ck_assert_int_eq(part_set_share(db, add(1, 7), &err), 0);
	ck_assert_int_eq(rows("SELECT row_count FROM part_sets"), 7);
	ck_assert_int_eq(rows("SELECT holders FROM part_sets"), 2);
	ck_assert_int_eq(part_set_add_single(db, segments, 9, &set, &contents, &err), 0);
	/* 9 segments and the part */
	ck_assert_int_eq(rows("SELECT row_count FROM part_sets ORDER BY id DESC LIMIT 1"), 10);
	struct part_range range = {.length = 9 * SEGMENT_BYTES};
	ck_assert_msg(part_set_load(db, set, 9 * SEGMENT_BYTES, contents, &range, &err) == 0, "%s",
		err.text);
	ck_assert_uint_eq(range.segment_count, 9);
	free(range.segments);
}
END_TEST

START_TEST(inline_bytes_are_those_of_the_version)
{
	struct error err = {0};
	struct span bytes;
	struct db_statement *statement;
	const uint64_t contents = part_inline_contents(span_text("some bytes"));
	ck_assert_int_eq(part_inline_add(db, 7, span_text("some bytes"), &err), 0);
	ck_assert_int_eq(part_inline_load(db, 7, contents, &bytes, &statement, &err), 0);
	ck_assert(span_equal_text(bytes, "some bytes"));
	db_reset(statement);
	ck_assert_int_eq(part_inline_load(db, 7, contents + 1, &bytes, &statement, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(part_inline_load(db, 8, contents, &bytes, &statement, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(part_inline_drop(db, 7, &err), 0);
	ck_assert_int_eq(rows("SELECT COUNT(*) FROM inline_bytes"), 0);
}
END_TEST

Suite *test_part_suite(void);
Suite *test_part_suite(void)
{
	Suite *const suite = suite_create("part");
	TCase *const tests = tcase_create("part");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_range_loads_only_the_segments_it_needs, 0,
		sizeof(ranges) / sizeof(ranges[0]));
	tcase_add_test(tests, a_range_may_be_refused_for_its_many_segments);
	tcase_add_test(tests, an_unrecorded_pack_is_refused);
	tcase_add_test(tests, sets_of_the_first_form_are_read_and_dropped);
	tcase_add_loop_test(tests, damage_of_the_first_form_is_seen, 0,
		sizeof(listed_damages) / sizeof(listed_damages[0]));
	tcase_add_loop_test(tests, damage_is_seen, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(tests, a_gap_is_seen);
	tcase_add_test(tests, contents_are_of_this_version);
	tcase_add_loop_test(tests, shared_sets_go_with_the_last, 0,
		sizeof(shared_counts) / sizeof(shared_counts[0]));
	tcase_add_test(tests, small_sets_go_at_once);
	tcase_add_test(tests, a_change_leaves_most_of_many_sets);
	tcase_add_test(tests, large_sets_go_in_slices);
	tcase_add_test(tests, packs_know_what_leads_to_them);
	tcase_add_test(tests, what_is_gone_or_goes_is_not_shared);
	tcase_add_test(tests, sets_know_how_many_rows_they_have);
	tcase_add_test(tests, inline_bytes_are_those_of_the_version);
	suite_add_tcase(suite, tests);
	return suite;
}
