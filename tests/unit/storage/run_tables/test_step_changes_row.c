/* Counts of changes come back as they were, or not at all. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/committer.h"
#include "storage/run_tables/step_changes_row.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;
static struct error err;

static const uint64_t counts[] = {
	0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 56) - 1};
enum { TENSORS = sizeof(counts) / sizeof(counts[0]), STEP = 7 };

struct put {
	struct change change; /* first */
	struct step_changes sums;
	size_t tensors;
};

static void set_up(void)
{
	err = (struct error){0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int apply_put(struct change *change, struct db *db, struct error *error)
{
	const struct put *const put = (const struct put *)change;
	return step_changes_row_put(db, STEP, &put->sums, counts, put->tensors, error);
}

static int apply_remove(struct change *change, struct db *db, struct error *error)
{
	(void)change;
	return step_changes_row_remove(db, STEP, error);
}

static uint64_t put_counts(size_t tensors)
{
	struct put put = {.change = {.apply = apply_put}, .tensors = tensors};
	for (size_t i = 0; i < tensors; i++)
		put.sums.changed += counts[i];
	put.sums.elements = put.sums.changed + 5;
	ck_assert_msg(committer_run(store_committer(fixture.store), &put.change, &err) == 0, "%s",
		err.text);
	return put.sums.changed;
}

static int read_counts(size_t tensors, uint64_t **out)
{
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = step_changes_row_counts(db, STEP, tensors, fixture.arena, out, &err);
	store_reader_give(fixture.store, db);
	return found;
}

static int find(struct step_changes *out)
{
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = step_changes_row_find(db, STEP, out, &err);
	store_reader_give(fixture.store, db);
	return found;
}

START_TEST(counts_come_back)
{
	struct step_changes sums;
	uint64_t *read;
	ck_assert_int_eq(find(&sums), 0);
	ck_assert_int_eq(read_counts(TENSORS, &read), 0);
	const uint64_t changed = put_counts(TENSORS);
	ck_assert_int_eq(find(&sums), 1);
	ck_assert(sums.changed == changed && sums.elements == changed + 5);
	ck_assert_int_eq(read_counts(TENSORS, &read), 1);
	ck_assert_int_eq(memcmp(read, counts, sizeof(counts)), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT length(counts) FROM step_changes"),
		1 + 1 + 1 + 2 + 2 + 3 + 5 + 5 + 8);
	put_counts(2); /* a second proof replaces the first one's */
	ck_assert_int_eq(read_counts(2, &read), 1);
	struct change removal = {.apply = apply_remove};
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &removal, &err), 0);
	ck_assert_int_eq(find(&sums), 0);
}
END_TEST

static const char *const faults[] = {
	"changed = changed + 1",
	"counts = x''",
	"counts = CAST(counts || x'00' AS BLOB)",
	"counts = x'808080808080808080808001000000000000000000'",
	"counts = CAST(substr(counts, 1, length(counts) - 1) AS BLOB)",
};
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

START_TEST(wrong_counts_are_refused)
{
	uint64_t *read;
	put_counts(TENSORS);
	const char *const sql =
		arena_format(fixture.arena, "UPDATE step_changes SET %s", faults[_i]);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
	ck_assert_int_eq(read_counts(TENSORS, &read), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(counts_of_another_number_of_tensors_are_refused)
{
	uint64_t *read;
	put_counts(TENSORS);
	ck_assert_int_eq(read_counts(TENSORS - 1, &read), -1);
	ck_assert_int_eq(read_counts(TENSORS + 1, &read), -1);
}
END_TEST

Suite *test_step_changes_row_suite(void);
Suite *test_step_changes_row_suite(void)
{
	Suite *const suite = suite_create("step_changes_row");
	TCase *const tests = tcase_create("step_changes_row");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, counts_come_back);
	tcase_add_loop_test(tests, wrong_counts_are_refused, 0, FAULTS);
	tcase_add_test(tests, counts_of_another_number_of_tensors_are_refused);
	suite_add_tcase(suite, tests);
	return suite;
}
