/* Rows of folds: which one has its turn, how many a run may have, and what is removed with a step,
 * with a run or after an hour. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/committer.h"
#include "storage/run_tables/fold_row.h"
#include "storage/runs/fold_object.h"
#include "storage/step_jobs/fold_sweep.h"
#include "tests/unit/storage/run_fixture.h"

enum { NOW_MS = 10 * FOLD_UNUSED_MS, MANY_OBJECTS = FOLD_RELEASE_ROWS + 1 };

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

struct act {
	struct change change; /* first */
	int (*act)(struct db *db, struct error *err);
};

static int apply(struct change *change, struct db *db, struct error *error)
{
	return ((struct act *)change)->act(db, error);
}

/* Runs `act` in a change of its own. */
static void run(int (*act)(struct db *db, struct error *err))
{
	struct act change = {.change = {.apply = apply}, .act = act};
	ck_assert_msg(committer_run(store_committer(fixture.store), &change.change, &err) == 0,
		"%s", err.text);
}

static void add(int64_t id, int64_t of_run, int from, int to, enum fold_kind kind,
	enum fold_state state, int64_t used_ms)
{
	const char *const sql = arena_format(fixture.arena,
		"INSERT INTO folds (id, run, from_step, to_step, kind, state, format, bytes, used_ms)"
		" VALUES (%lld, %lld, %d, %d, %d, %d, x'', 0, %lld)",
		(long long)id, (long long)of_run, from, to, (int)kind, (int)state,
		(long long)used_ms);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

static int64_t state_of(int64_t id)
{
	return fixture_count(fixture.store,
		arena_format(fixture.arena,
			"SELECT COALESCE(MAX(state), -1) FROM folds WHERE id = %lld",
			(long long)id));
}

/* The id of the wanted fold next to `limit`; 0: none. */
static int64_t wanted(enum fold_kind kind, int64_t limit)
{
	struct fold_row row = {.id = 0};
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = fold_row_find_wanted(db, kind, limit, &row, &err);
	store_reader_give(fixture.store, db);
	ck_assert_int_ge(found, 0);
	return found == 1 ? row.id : 0;
}

START_TEST(direct_folds_have_their_turn_in_order_and_skip_folds_the_newest_first)
{
	for (int i = 0; i < 4; i++)
		add(10 + i, 1, i, 20, i % 2 == 0 ? FOLD_SKIP : FOLD_DIRECT, FOLD_WANTED, 0);
	add(1, 1, 30, 40, FOLD_DIRECT, FOLD_MADE, 0);
	add(90, 1, 31, 40, FOLD_SKIP, FOLD_REFUSED, 0);
	ck_assert_int_eq(wanted(FOLD_DIRECT, 0), 11);
	ck_assert_int_eq(wanted(FOLD_DIRECT, 11), 13);
	ck_assert_int_eq(wanted(FOLD_DIRECT, 13), 0);
	ck_assert_int_eq(wanted(FOLD_SKIP, INT64_MAX), 12);
	ck_assert_int_eq(wanted(FOLD_SKIP, 12), 10);
	ck_assert_int_eq(wanted(FOLD_SKIP, 10), 0);
}
END_TEST

static int want_again(struct db *db, struct error *error)
{
	const struct fold_row row = {
		.run = 1, .from = 0, .to = 4, .kind = FOLD_SKIP, .used_ms = NOW_MS};
	return fold_row_want(db, &row, error);
}

START_TEST(what_is_there_is_not_wanted_anew)
{
	add(7, 1, 0, 4, FOLD_SKIP, FOLD_REFUSED, 5);
	run(want_again);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 1);
	ck_assert(state_of(7) == FOLD_REFUSED);
}
END_TEST

static int want_skips_to_16(struct db *db, struct error *error)
{
	return fold_row_want_skips(db, 1, 16, NOW_MS, error);
}

START_TEST(skip_folds_begin_at_kept_steps)
{
	for (unsigned step = 0; step <= 16; step++) {
		const struct step_message message =
			run_fixture_prepare(&fixture, step, step == 0, step == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &message);
	}
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM folds", &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE steps SET state = 1 WHERE step < 12", &err), 0);
	run(want_skips_to_16);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT from_step FROM folds"), 12);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE steps SET state = 0", &err), 0);
	run(want_skips_to_16);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 2);
}
END_TEST

static int release_of_step_5(struct db *db, struct error *error)
{
	return fold_row_release_of_step(db, 1, 5, error);
}

START_TEST(folds_go_with_the_steps_they_begin_or_end_at)
{
	static const struct {
		int64_t run;
		int from;
		int to;
		enum fold_state before;
		enum fold_state after;
	} folds[] = {
		{1, 5, 9, FOLD_MADE, FOLD_RELEASING},
		{1, 1, 5, FOLD_MADE, FOLD_RELEASING},
		{1, 2, 5, FOLD_WANTED, FOLD_RELEASING},
		{1, 5, 10, FOLD_REFUSED, FOLD_RELEASING},
		{1, 4, 8, FOLD_MADE, FOLD_MADE},
		{2, 5, 9, FOLD_MADE, FOLD_MADE},
		{2, 1, 5, FOLD_MADE, FOLD_MADE},
		{0, 5, 9, FOLD_WANTED, FOLD_WANTED},
	};
	for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
		add((int64_t)i + 1, folds[i].run, folds[i].from, folds[i].to, FOLD_SKIP,
			folds[i].before, 0);
	run(release_of_step_5);
	for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
		ck_assert_msg(
			state_of((int64_t)i + 1) == (int64_t)folds[i].after, "fold %zu", i + 1);
}
END_TEST

static int release_surplus(struct db *db, struct error *error)
{
	return fold_row_release_surplus(db, 2, error);
}

/* Run 2 has FOLD_DIRECT_MAX + 2 direct folds. Those with the lowest and the highest id were unused
 * for longest. */
START_TEST(of_too_many_direct_folds_those_unused_for_longest_go)
{
	const int last = FOLD_DIRECT_MAX + 2;
	for (int i = 1; i <= last; i++)
		add(i, 2, i, 100, FOLD_DIRECT, FOLD_MADE, i == 1 || i == last ? 5 : 100 + i);
	for (int i = 1; i <= 4; i++)
		add(100 + i, 2, i, 99, FOLD_SKIP, FOLD_MADE, 0);
	for (int i = 1; i <= 4; i++)
		add(200 + i, 3, i, 99, FOLD_DIRECT, FOLD_MADE, 0);
	run(release_surplus);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE state = 3"), 2);
	ck_assert(state_of(1) == FOLD_RELEASING && state_of(last) == FOLD_RELEASING);
}
END_TEST

static bool has_room(void)
{
	bool has = false;
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(fold_row_has_room(db, 2, NOW_MS, &has, &err), 0);
	store_reader_give(fixture.store, db);
	return has;
}

START_TEST(a_run_has_room_until_its_own_folds_are_all_in_use)
{
	for (int i = 1; i < FOLD_DIRECT_MAX; i++)
		add(i, 2, i, 100, FOLD_DIRECT, FOLD_MADE, NOW_MS);
	add(100, 2, 100, 200, FOLD_SKIP, FOLD_MADE, NOW_MS);
	add(101, 2, 101, 200, FOLD_DIRECT, FOLD_RELEASING, NOW_MS);
	add(102, 2, 102, 200, FOLD_DIRECT, FOLD_MADE, NOW_MS - FOLD_HELD_MS);
	add(103, 3, 103, 200, FOLD_DIRECT, FOLD_MADE, NOW_MS);
	ck_assert(has_room());
	add(104, 2, 104, 200, FOLD_DIRECT, FOLD_WANTED, NOW_MS);
	ck_assert(!has_room());
}
END_TEST

static int make(struct db *db, struct error *error)
{
	char longest[STEP_FORMAT_MAX_BYTES];
	memset(longest, 'f', sizeof(longest));
	return fold_row_set_made(db, 7, span_of(longest, sizeof(longest)), 1234, error);
}

START_TEST(what_was_made_says_its_format_and_bytes)
{
	struct fold_row row;
	add(7, 1, 0, 4, FOLD_SKIP, FOLD_WANTED, 5);
	run(make);
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(fold_row_find(db, 1, 0, 4, &row, &err), 1);
	ck_assert_int_eq(fold_row_find(db, 1, 0, 5, &row, &err), 0);
	ck_assert_int_eq(fold_row_find_id(db, 7, &row, &err), 1);
	store_reader_give(fixture.store, db);
	ck_assert(row.state == FOLD_MADE && row.bytes == 1234 && row.kind == FOLD_SKIP &&
		row.used_ms == 5);
	ck_assert_uint_eq(strlen(row.format), STEP_FORMAT_MAX_BYTES);
}
END_TEST

START_TEST(made_folds_alone_are_scanned_from_the_wanted_step_downwards)
{
	struct fold_row row;
	add(1, 1, 0, 4, FOLD_SKIP, FOLD_MADE, 0);
	add(2, 1, 4, 8, FOLD_SKIP, FOLD_MADE, 0);
	add(3, 1, 5, 8, FOLD_DIRECT, FOLD_REFUSED, 0);
	add(4, 1, 6, 8, FOLD_DIRECT, FOLD_RELEASING, 0);
	add(5, 1, 7, 8, FOLD_DIRECT, FOLD_WANTED, 0);
	add(6, 1, 8, 12, FOLD_SKIP, FOLD_MADE, 0);
	add(7, 2, 3, 8, FOLD_SKIP, FOLD_MADE, 0);
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const scan = fold_row_scan(db, 1, 8, &err);
	for (int64_t id = 2; id > 0; id--) {
		ck_assert_int_eq(db_step(scan, &err), 1);
		fold_row_read(scan, &row);
		ck_assert_int_eq(row.id, id);
	}
	ck_assert_int_eq(db_step(scan, &err), 0);
	db_reset(scan);
	store_reader_give(fixture.store, db);
}
END_TEST

static bool found_work;

static int sweep(struct db *db, struct error *error)
{
	return fold_sweep(db, NOW_MS, &found_work, error);
}

static bool has_work(void)
{
	bool has = false;
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(fold_sweep_has_work(db, NOW_MS, &has, &err), 0);
	store_reader_give(fixture.store, db);
	return has;
}

START_TEST(direct_folds_go_unused_whatever_became_of_them_and_skip_folds_never)
{
	const int64_t old_ms = NOW_MS - FOLD_UNUSED_MS - 1;
	add(1, 1, 0, 4, FOLD_SKIP, FOLD_MADE, 0);
	add(2, 1, 0, 5, FOLD_DIRECT, FOLD_MADE, NOW_MS - FOLD_UNUSED_MS);
	ck_assert(!has_work());
	add(3, 1, 0, 6, FOLD_DIRECT, FOLD_MADE, old_ms);
	add(4, 1, 0, 7, FOLD_DIRECT, FOLD_REFUSED, old_ms);
	add(5, 1, 0, 8, FOLD_DIRECT, FOLD_WANTED, old_ms);
	for (int left = 3; left > 0; left--) {
		ck_assert(has_work());
		run(sweep);
		ck_assert(found_work);
	}
	ck_assert(!has_work());
	run(sweep);
	ck_assert(!found_work);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE id <= 2"), 2);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 2);
}
END_TEST

static void add_objects(int64_t fold)
{
	ck_assert_int_eq(
		fixture_run(fixture.store,
			arena_format(fixture.arena,
				"INSERT INTO fold_objects (fold, name, version)"
				" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
				" SELECT %lld, CAST(i AS BLOB), 1000000 + i FROM n",
				MANY_OBJECTS, (long long)fold),
			&err),
		0);
}

/* The fold has more objects than one slice releases. No path may use it when some are gone. */
START_TEST(a_fold_with_many_objects_goes_in_slices)
{
	add(3, 1, 0, 6, FOLD_DIRECT, FOLD_MADE, 0);
	add_objects(3);
	run(sweep);
	ck_assert(state_of(3) == FOLD_RELEASING);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"),
		MANY_OBJECTS - FOLD_RELEASE_ROWS);
	run(sweep);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 0);
	ck_assert_int_eq(state_of(3), -1);
	ck_assert(!has_work());
}
END_TEST

START_TEST(an_ended_run_leaves_no_fold_however_many_it_has)
{
	for (int i = 1; i <= 50; i++)
		add(i, 1, i, 100, FOLD_DIRECT, FOLD_MADE, INT64_MAX);
	add_objects(20);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 0);
}
END_TEST

Suite *test_fold_row_suite(void);
Suite *test_fold_row_suite(void)
{
	Suite *const suite = suite_create("fold_row");
	TCase *const tests = tcase_create("fold_row");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(
		tests, direct_folds_have_their_turn_in_order_and_skip_folds_the_newest_first);
	tcase_add_test(tests, what_is_there_is_not_wanted_anew);
	tcase_add_test(tests, skip_folds_begin_at_kept_steps);
	tcase_add_test(tests, folds_go_with_the_steps_they_begin_or_end_at);
	tcase_add_test(tests, of_too_many_direct_folds_those_unused_for_longest_go);
	tcase_add_test(tests, a_run_has_room_until_its_own_folds_are_all_in_use);
	tcase_add_test(tests, what_was_made_says_its_format_and_bytes);
	tcase_add_test(tests, made_folds_alone_are_scanned_from_the_wanted_step_downwards);
	tcase_add_test(tests, direct_folds_go_unused_whatever_became_of_them_and_skip_folds_never);
	tcase_add_test(tests, a_fold_with_many_objects_goes_in_slices);
	tcase_add_test(tests, an_ended_run_leaves_no_fold_however_many_it_has);
	suite_add_tcase(suite, tests);
	return suite;
}
