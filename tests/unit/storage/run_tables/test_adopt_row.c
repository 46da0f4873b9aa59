/* Rows of publishes in conventions of trainers: which one waits, which one is known, and what is
 * removed with a run or a step. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/committer.h"
#include "storage/run_tables/adopt_row.h"
#include "tests/unit/storage/run_fixture.h"

enum { RUN = 1, OTHER = 2, MANY = 1200 };

static struct store_fixture fixture;
static struct error err;
static int64_t now_ms; /* of the next note */

static void set_up(void)
{
	err = (struct error){0};
	now_ms = 1000;
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", NULL, &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

enum doing { NOTE, PUBLISH, FAIL, FORGET };

struct doing_change {
	struct change change; /* first */
	enum doing doing;
	struct adoption adoption; /* NOTE takes all of it; the others its id, or run and step */
};

static int apply(struct change *change, struct db *db, struct error *error)
{
	const struct doing_change *const doing = (const struct doing_change *)change;
	const struct adoption *const adoption = &doing->adoption;
	switch (doing->doing) {
	case NOTE:
		return adopt_row_note(db, adoption, now_ms++, error);
	case PUBLISH:
		return adopt_row_set_published(db, adoption->id, adoption->step, error);
	case FAIL:
		return adopt_row_set_failed(db, adoption->id, span_text("for the test"), error);
	default:
		return adopt_row_forget_step(db, adoption->run, adoption->step, error);
	}
}

static void run(enum doing doing, const struct adoption *adoption)
{
	struct doing_change change = {
		.change = {.apply = apply}, .doing = doing, .adoption = *adoption};
	ck_assert_msg(committer_run(store_committer(fixture.store), &change.change, &err) == 0,
		"%s", err.text);
}

static void note(int64_t of_run, const char *identity, const char *objects, const char *base)
{
	run(NOTE,
		&(struct adoption){.run = of_run,
			.convention = ADOPT_HOT_LOAD,
			.identity = span_text(identity),
			.objects = span_text(objects),
			.has_base = base != NULL,
			.base = span_text(base != NULL ? base : "")});
}

/* The adoption with this identity; its id is 0 when there is none. */
static struct adoption find(int64_t of_run, const char *identity)
{
	struct adoption adoption = {.id = 0};
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = adopt_row_find_identity(
		db, of_run, span_text(identity), fixture.arena, &adoption, &err);
	store_reader_give(fixture.store, db);
	ck_assert_int_ge(found, 0);
	return found == 1 ? adoption : (struct adoption){.id = 0};
}

static void fail_it(int64_t of_run, const char *identity)
{
	const struct adoption adoption = find(of_run, identity);
	run(FAIL, &adoption);
}

static void publish(int64_t of_run, const char *identity, uint64_t step)
{
	struct adoption adoption = find(of_run, identity);
	adoption.step = step;
	run(PUBLISH, &adoption);
}

START_TEST(one_that_failed_waits_again_as_it_is_noted_now)
{
	note(RUN, "a", "first/", "x");
	fail_it(RUN, "a");
	struct adoption adoption = find(RUN, "a");
	ck_assert(adoption.state == ADOPTION_FAILED &&
		span_equal_text(adoption.error, "for the test"));
	note(RUN, "a", "second/", NULL);
	adoption = find(RUN, "a");
	ck_assert(adoption.state == ADOPTION_WAITS &&
		span_equal_text(adoption.objects, "second/") && !adoption.has_base);
	ck_assert_uint_eq(adoption.error.len, 0);
	note(RUN, "a", "third/", "y");
	adoption = find(RUN, "a");
	ck_assert(adoption.state == ADOPTION_WAITS &&
		span_equal_text(adoption.objects, "second/") && !adoption.has_base);
}
END_TEST

START_TEST(one_that_became_a_step_stays_one)
{
	struct adoption adoption;
	note(RUN, "a", "first/", NULL);
	publish(RUN, "a", 5);
	note(RUN, "a", "second/", NULL);
	adoption = find(RUN, "a");
	ck_assert(adoption.state == ADOPTION_PUBLISHED && adoption.step == 5 &&
		span_equal_text(adoption.objects, "first/"));
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(adopt_row_find_step(db, RUN, 5, fixture.arena, &adoption, &err), 1);
	ck_assert_int_eq(adopt_row_find_step(db, RUN, 4, fixture.arena, &adoption, &err), 0);
	ck_assert_int_eq(adopt_row_find_step(db, OTHER, 5, fixture.arena, &adoption, &err), 0);
	store_reader_give(fixture.store, db);
}
END_TEST

/* The failure that is shown of the run: its identity, or "". */
static const char *shown(int64_t of_run)
{
	struct adoption adoption = {.id = 0};
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = adopt_row_find_failure(db, of_run, fixture.arena, &adoption, &err);
	store_reader_give(fixture.store, db);
	ck_assert_int_ge(found, 0);
	ck_assert(found == 0 || adoption.error.len > 0);
	return found == 1 ? arena_text(fixture.arena, adoption.identity) : "";
}

START_TEST(a_failure_is_shown_until_a_later_one_is_a_step)
{
	ck_assert_str_eq(shown(RUN), "");
	note(RUN, "a", "a/", NULL);
	note(RUN, "b", "b/", NULL);
	note(OTHER, "c", "c/", NULL);
	fail_it(RUN, "a");
	ck_assert_str_eq(shown(RUN), "a");
	ck_assert_str_eq(shown(OTHER), "");
	publish(RUN, "b", 0);
	ck_assert_str_eq(shown(RUN), "");
	note(RUN, "a", "a/", NULL); /* put again, behind b */
	ck_assert_str_eq(shown(RUN), "");
	fail_it(RUN, "a");
	ck_assert_str_eq(shown(RUN), "a");
	note(RUN, "a", "a/", NULL);
	publish(RUN, "a", 1);
	ck_assert_str_eq(shown(RUN), "");
}
END_TEST

START_TEST(the_failure_is_shown_that_others_failed_of)
{
	note(RUN, "a", "a/", NULL);
	note(RUN, "b", "b/", "a");
	note(RUN, "c", "c/", "b");
	fail_it(RUN, "a");
	ck_assert(find(RUN, "c").state == ADOPTION_FAILED);
	ck_assert_str_eq(shown(RUN), "a");
	const int64_t id = find(RUN, "a").id;
	ck_assert_int_gt(id, 0);
	note(RUN, "a", "a/", NULL);
	publish(RUN, "a", 0); /* b and c came before it was put again */
	ck_assert_str_eq(shown(RUN), "");
}
END_TEST

START_TEST(the_newest_has_not_failed_and_the_last_may_have)
{
	struct adoption adoption;
	note(RUN, "a", "a/", NULL);
	note(RUN, "b", "b/", NULL);
	note(RUN, "c", "c/", NULL);
	note(OTHER, "d", "d/", NULL);
	fail_it(RUN, "c");
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(adopt_row_find_newest(db, RUN, fixture.arena, &adoption, &err), 1);
	ck_assert(span_equal_text(adoption.identity, "b"));
	ck_assert_int_eq(adopt_row_find_last(db, RUN, fixture.arena, &adoption, &err), 1);
	ck_assert(span_equal_text(adoption.identity, "c"));
	store_reader_give(fixture.store, db);
}
END_TEST

START_TEST(a_failure_takes_what_is_behind_it_in_its_run_alone)
{
	note(RUN, "before", "o/", "x");
	note(RUN, "failing", "o/", "before");
	note(OTHER, "elsewhere", "o/", "x");
	note(RUN, "behind", "o/", "failing");
	note(RUN, "whole", "o/", NULL);
	fail_it(RUN, "failing");
	ck_assert(find(RUN, "before").state == ADOPTION_WAITS &&
		find(OTHER, "elsewhere").state == ADOPTION_WAITS);
	ck_assert(find(RUN, "behind").state == ADOPTION_FAILED &&
		find(RUN, "whole").state == ADOPTION_WAITS);
}
END_TEST

/* Adds rows with the ids 1 to `count`, named after their ids; every tenth is published. */
static void add_many(int64_t of_run, int count)
{
	const char *const sql = arena_format(fixture.arena,
		"INSERT INTO adoptions (run, identity, convention, state, objects, step, created_ms)"
		" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" SELECT %lld, CAST(i AS BLOB), 4, CASE WHEN i %% 10 = 0 THEN 1 ELSE 2 END, x'', CASE WHEN i %% 10 = 0 THEN i END, 0 FROM n",
		count, (long long)of_run);
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

static int64_t count(const char *where)
{
	return fixture_count(fixture.store,
		arena_format(fixture.arena, "SELECT COUNT(*) FROM adoptions WHERE %s", where));
}

START_TEST(of_the_failed_ones_the_newest_are_kept)
{
	add_many(OTHER, 2 * ADOPT_FAILED_KEPT);
	add_many(RUN, 2 * ADOPT_FAILED_KEPT);
	const int64_t steps = count("state = 1");
	const int64_t others = count("run = 2");
	note(RUN, "failing", "o/", NULL);
	fail_it(RUN, "failing");
	ck_assert_int_eq(count("run = 1 AND state = 2"), ADOPT_FAILED_KEPT);
	ck_assert_int_eq(find(RUN, "failing").state, ADOPTION_FAILED);
	ck_assert(find(RUN, "1").id == 0 && count("state = 1") == steps &&
		count("run = 2") == others);
}
END_TEST

START_TEST(those_that_wait_are_counted)
{
	int64_t waiting = 0;
	add_many(RUN, 20);
	note(RUN, "a", "o/", NULL);
	note(RUN, "b", "o/", NULL);
	note(OTHER, "c", "o/", NULL);
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(adopt_row_count_waiting(db, RUN, &waiting, &err), 0);
	store_reader_give(fixture.store, db);
	ck_assert_int_eq(waiting, 2);
}
END_TEST

START_TEST(a_step_that_goes_is_forgotten_and_no_other)
{
	add_many(RUN, 30);
	add_many(OTHER, 30);
	run(FORGET, &(struct adoption){.run = RUN, .step = 20});
	ck_assert_int_eq(count("run = 1 AND state = 1"), 2);
	ck_assert_int_eq(count("run = 1 AND step = 20"), 0);
	ck_assert_int_eq(count("run = 2"), 30);
}
END_TEST

START_TEST(an_ended_run_leaves_none_and_takes_none_of_others)
{
	add_many(RUN, MANY);
	add_many(OTHER, 30);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("run = 1"), 0);
	ck_assert_int_eq(count("run = 2"), 30);
}
END_TEST

Suite *test_adopt_row_suite(void);
Suite *test_adopt_row_suite(void)
{
	Suite *const suite = suite_create("adopt_row");
	TCase *const tests = tcase_create("adopt_row");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, one_that_failed_waits_again_as_it_is_noted_now);
	tcase_add_test(tests, one_that_became_a_step_stays_one);
	tcase_add_test(tests, a_failure_is_shown_until_a_later_one_is_a_step);
	tcase_add_test(tests, the_failure_is_shown_that_others_failed_of);
	tcase_add_test(tests, the_newest_has_not_failed_and_the_last_may_have);
	tcase_add_test(tests, a_failure_takes_what_is_behind_it_in_its_run_alone);
	tcase_add_test(tests, of_the_failed_ones_the_newest_are_kept);
	tcase_add_test(tests, those_that_wait_are_counted);
	tcase_add_test(tests, a_step_that_goes_is_forgotten_and_no_other);
	tcase_add_test(tests, an_ended_run_leaves_none_and_takes_none_of_others);
	suite_add_tcase(suite, tests);
	return suite;
}
