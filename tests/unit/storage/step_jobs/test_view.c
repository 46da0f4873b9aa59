/* Views of a run's steps: what is made, when a view fails for good, what is tried again. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/objects/object_read.h"
#include "storage/run_tables/view_row.h"
#include "storage/step_jobs/step_anchor.h"
#include "tests/unit/storage/model_fixture.h"
#include "tests/unit/storage/run_fixture.h"

enum { MODEL_MAX = 1000000 };

static const char DELTA_1[] = "run/deltas/step_000001.safetensors";
static const char DELTA_2[] = "run/deltas/step_000002.safetensors";

static const char SLIME_2[] = "SELECT COUNT(*) FROM versions WHERE state = 1"
			      " AND CAST(key AS TEXT) LIKE 'run/updates/weight_v000002/%'";

static struct model_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	model_fixture_open(&fixture);
}

static void tear_down(void)
{
	model_fixture_close(&fixture);
}

static void set(const char *settings)
{
	ck_assert_msg(fixture_call(run_settings_call(fixture.store.store, &run_fixture_ref,
					   span_text(settings)),
			      &err) == 0,
		"%s", err.text);
}

static void publish(unsigned step, bool with_anchor)
{
	struct step_form forms[2];
	size_t count = 0;
	char *path = model_fixture_make(&fixture, step, NULL);
	char *prefix = arena_format(fixture.store.arena, "run/own/%u/", step);
	if (with_anchor)
		forms[count++] = model_fixture_put(&fixture, path, prefix, STEP_ANCHOR, "full");
	if (step > 0) {
		path = model_fixture_diff(&fixture, step - 1, step, DELTA_ULP_CLASS);
		forms[count++] = model_fixture_put(&fixture, path, prefix, STEP_DELTA, "ulp-class");
	}
	model_fixture_publish(&fixture, step, NULL, forms, count);
}

static void publish_to(unsigned last)
{
	for (unsigned step = 0; step <= last; step++)
		publish(step, step == 0);
}

/* Whether the object of the key is the step's model. */
static bool holds_model(const char *key, unsigned step)
{
	struct buffer bytes;
	const char *folder = model_fixture_make(&fixture, step, NULL);
	const char *path = arena_format(fixture.store.arena, "%s/model.safetensors", folder);
	buffer_init(&bytes, MODEL_MAX);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	const bool same = fixture_holds(&fixture.store, "bucket", key, buffer_span(&bytes));
	buffer_release(&bytes);
	return same;
}

static void run_sql(const char *sql)
{
	ck_assert_msg(fixture_run(fixture.store.store, sql, &err) == 0, "%s", err.text);
}

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store.store, sql);
}

static int64_t views_in(enum view_state state)
{
	return count(arena_format(fixture.store.arena,
		"SELECT COUNT(*) FROM step_views WHERE state = %d", (int)state));
}

static bool is_there(const char *key)
{
	struct object object;
	return fixture_find(&fixture.store, "bucket", key, &object, &err) == 0;
}

/* Finds the view to request for a key under which nothing lies yet. */
static struct run_anchor find_anchor(const char *key)
{
	struct object object;
	struct run_anchor anchor = {.id = 0};
	const struct object_ref ref = {.bucket = fixture_bucket("bucket"), .key = span_text(key)};
	const int result = run_find_anchor_key(
		fixture.store.store, &ref, fixture.store.arena, &object, &anchor, &err);
	ck_assert_int_eq(result, -1);
	return anchor;
}

/* The error that a reader of such a key gets. */
static enum error_kind told(const char *key)
{
	(void)find_anchor(key);
	return err.kind;
}

START_TEST(each_step_has_its_views)
{
	set("{\"view_trl\":true,\"view_slime\":true}");
	publish_to(2);
	ck_assert_int_eq(views_in(VIEW_WANTED), 6);
	ck_assert(!is_there(DELTA_1));
	ck_assert_int_eq(told(DELTA_1), ERROR_NOT_READY);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(views_in(VIEW_MADE), 6);
	ck_assert(is_there(DELTA_1) && is_there(DELTA_2));
	ck_assert(!is_there("run/deltas/step_000000.safetensors"));
	ck_assert_int_eq(told("run/deltas/step_000000.safetensors"), ERROR_NO_KEY);
	ck_assert(holds_model("run/anchors/step_000000.safetensors", 0));
	ck_assert(holds_model("run/updates/weight_v000000/model.safetensors", 0));
	ck_assert_int_eq(count("SELECT COUNT(*) FROM scratch_versions"), 0);
	store_fixture_reopen(&fixture.store);
	ck_assert(is_there(DELTA_1) && is_there(DELTA_2));
}
END_TEST

static bool lists_pending(const char *prefix, const char *expected)
{
	struct span keys[16];
	struct buffer text;
	size_t found;
	const struct run_pending_scan scan = {
		.bucket = fixture_bucket("bucket"), .prefix = span_text(prefix), .limit = 16};
	ck_assert_int_eq(run_list_pending(fixture.store.store, &scan, fixture.store.arena, keys,
				 &found, &err),
		0);
	buffer_init(&text, MODEL_MAX);
	for (size_t i = 0; i < found; i++)
		buffer_format(&text, "%.*s ", (int)keys[i].len, (const char *)keys[i].data);
	const bool same = strcmp(buffer_text(&text), expected) == 0;
	buffer_release(&text);
	return same;
}

START_TEST(those_to_be_made_are_listed)
{
	set("{\"view_trl\":true}");
	publish_to(2);
	ck_assert(lists_pending("",
		"run/deltas/step_000002.safetensors run/deltas/step_000001.safetensors "
		"run/anchors/step_000000.safetensors "));
	ck_assert(lists_pending("run/deltas/step_000002", "run/deltas/step_000002.safetensors "));
	ck_assert(lists_pending("run/updates/", ""));
	run_sql("UPDATE steps SET verified = 2 WHERE step = 2");
	ck_assert(lists_pending("run/deltas/", "run/deltas/step_000001.safetensors "));
	model_fixture_settle(&fixture);
	ck_assert(lists_pending("", ""));
	run_sql("UPDATE steps SET verified = 1");
	set("{\"view_slime\":true}");
	ck_assert(
		lists_pending("run/updates/weight_v000001/model", "run/updates/weight_v000001/ "));
}
END_TEST

START_TEST(one_that_is_asked_for_comes_first)
{
	set("{\"view_trl\":true}");
	publish_to(2);
	const struct run_anchor anchor = find_anchor(DELTA_2);
	ck_assert(anchor.is_view && anchor.step == 2 && anchor.view == VIEW_TRL);
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &anchor, &err), 0);
	model_fixture_settle(&fixture);
	ck_assert(is_there(DELTA_2));
}
END_TEST

/* Its proof failed after the view was requested. */
START_TEST(one_that_was_asked_for_may_not_be_wanted_any_more)
{
	set("{\"view_trl\":true}");
	publish_to(2);
	run_sql("UPDATE steps SET verified = 1");
	const struct run_anchor anchor = find_anchor(DELTA_2);
	run_sql("UPDATE steps SET verified = 2 WHERE step = 2");
	ck_assert_int_eq(run_ask_anchor(fixture.store.store, &anchor, &err), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert(is_there(DELTA_1) && !is_there(DELTA_2));
	ck_assert_int_eq(views_in(VIEW_FAILED), 0);
}
END_TEST

START_TEST(what_cannot_be_made_fails_until_the_view_is_switched_on_again)
{
	publish_to(2);
	run_sql("UPDATE steps SET verified = 1");
	set("{\"view_trl\":true}");
	run_sql("UPDATE steps SET state = 1 WHERE step = 0"); /* the deltas lead to nothing */
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(views_in(VIEW_FAILED), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views WHERE length(error) > 0"), 2);
	ck_assert_int_eq(told(DELTA_1), ERROR_NO_KEY);
	run_sql("UPDATE steps SET state = 0 WHERE step = 0");
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert(!is_there(DELTA_1));
	const int64_t made = views_in(VIEW_MADE);
	set("{\"view_trl\":false}");
	set("{\"view_trl\":true}");
	ck_assert_int_eq(views_in(VIEW_WANTED), 2);
	ck_assert_int_eq(views_in(VIEW_MADE), made);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views WHERE error IS NOT NULL"), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(views_in(VIEW_MADE), 3);
	ck_assert(is_there(DELTA_1) && is_there(DELTA_2));
}
END_TEST

/* The scratch folder cannot be made for a while. */
START_TEST(what_cannot_be_made_now_is_made_later)
{
	const char *scratch = arena_format(fixture.store.arena, "%s/scratch", fixture.store.folder);
	set("{\"view_trl\":true}");
	publish_to(1);
	run_sql("UPDATE steps SET verified = 1");
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	const struct span obstacle = span_text("in the way");
	ck_assert_int_eq(file_place(file_system(), scratch, obstacle, 0600, &err), 0);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 1);
	ck_assert_int_eq(views_in(VIEW_FAILED), 0);
	ck_assert_int_eq(views_in(VIEW_WANTED), 1);
	ck_assert_int_eq(told(DELTA_1), ERROR_NOT_READY);
	ck_assert_int_eq(file_remove_tree(file_system(), scratch, &err), 0);
	ck_assert_int_eq(file_make_folder(file_system(), scratch, 0700, &err), 0);
	store_fixture_reopen(&fixture.store);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert(is_there(DELTA_1));
}
END_TEST

/* The step behind it cannot have a delta from a step that no reader has: it is given whole. */
START_TEST(of_a_step_whose_proof_failed_there_is_no_view)
{
	set("{\"view_slime\":true}");
	publish_to(2);
	publish(3, true);
	run_sql("UPDATE steps SET verified = CASE step WHEN 2 THEN 2 ELSE 1 END");
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(views_in(VIEW_MADE), 3);
	ck_assert_int_eq(told("run/updates/weight_v000002/model.safetensors"), ERROR_NO_KEY);
	ck_assert_int_eq(count(SLIME_2), 0);
	ck_assert(holds_model("run/updates/weight_v000003/model.safetensors", 3));
}
END_TEST

START_TEST(a_view_that_is_switched_off_is_not_made_any_more)
{
	set("{\"view_trl\":true,\"view_slime\":true}");
	publish_to(2);
	run_sql("UPDATE step_views SET state = 1"
		" WHERE step IN (SELECT id FROM steps WHERE step = 0)");
	set("{\"view_trl\":false}");
	/* the view that was made */
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views WHERE kind = 0"), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views WHERE kind = 1"), 3);
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert(!is_there(DELTA_1));
	ck_assert_int_gt(count(SLIME_2), 0);
}
END_TEST

/* The object belongs to the step under its name all the same, and goes with it. */
START_TEST(a_view_does_not_replace_what_somebody_put_there)
{
	publish_to(1);
	run_sql("UPDATE steps SET verified = 1");
	const struct span mine = span_text("mine");
	ck_assert_int_eq(fixture_put(fixture.store.store, "bucket", DELTA_1, mine, &err), 0);
	run_sql("INSERT INTO step_views (step, kind, state)"
		" SELECT id, 0, 0 FROM steps WHERE step = 1");
	ck_assert_uint_eq(model_fixture_settle(&fixture), 0);
	ck_assert_int_eq(views_in(VIEW_MADE), 1);
	ck_assert(fixture_holds(&fixture.store, "bucket", DELTA_1, span_text("mine")));
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_objects WHERE form = 3"), 1);
}
END_TEST

START_TEST(a_view_that_is_switched_on_is_of_the_newest_thousand_steps)
{
	publish_to(1);
	run_sql("WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1004)"
		" INSERT INTO steps (run, step, state, digest, content, has_anchor, created_ms,"
		" verified)"
		" SELECT 1, i, CASE i WHEN 1003 THEN 1 ELSE 0 END, x'00', x'00', 0, 0, 2 FROM n");
	set("{\"view_slime\":true}");
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views"), 1000);
	ck_assert_int_eq(count("SELECT MIN(s.step) FROM step_views v"
			       " JOIN steps s ON s.id = v.step"),
		4);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM step_views v JOIN steps s ON s.id = v.step"
			       " WHERE s.state <> 0"),
		0);
}
END_TEST

Suite *test_view_suite(void);
Suite *test_view_suite(void)
{
	Suite *suite = suite_create("view");
	TCase *tests = tcase_create("view");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, each_step_has_its_views);
	tcase_add_test(tests, those_to_be_made_are_listed);
	tcase_add_test(tests, one_that_is_asked_for_comes_first);
	tcase_add_test(tests, one_that_was_asked_for_may_not_be_wanted_any_more);
	tcase_add_test(tests, what_cannot_be_made_fails_until_the_view_is_switched_on_again);
	tcase_add_test(tests, what_cannot_be_made_now_is_made_later);
	tcase_add_test(tests, of_a_step_whose_proof_failed_there_is_no_view);
	tcase_add_test(tests, a_view_that_is_switched_off_is_not_made_any_more);
	tcase_add_test(tests, a_view_does_not_replace_what_somebody_put_there);
	tcase_add_test(tests, a_view_that_is_switched_on_is_of_the_newest_thousand_steps);
	suite_add_tcase(suite, tests);
	return suite;
}
