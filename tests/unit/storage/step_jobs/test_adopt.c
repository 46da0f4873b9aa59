/* Foreign publishes are noted once, by key or by name, and build on the newest step. tests/daemon
 * tests that they become steps. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/runs/hot_load.h"
#include "tests/unit/storage/run_fixture.h"

static struct store_fixture fixture;
static struct error err;

static int set_in(const char *bucket, const char *run, const char *settings)
{
	const struct run_ref ref = run_named(span_text(bucket), span_text(run));
	err = (struct error){0};
	return fixture_call(run_settings_call(fixture.store, &ref, span_text(settings)), &err);
}

static int set(const char *run, const char *settings)
{
	return set_in("bucket", run, settings);
}

static void set_up(void)
{
	err = (struct error){0};
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

static int hot_load(const char *identity, const char *base)
{
	const struct hot_load_params params = {.run = run_fixture_ref,
		.deployment = span_text("d"),
		.identity = span_text(identity),
		.has_base = base != NULL,
		.base = base != NULL ? span_text(base) : (struct span){0}};
	err = (struct error){0};
	return fixture_call(hot_load_call(fixture.store, &params), &err);
}

/* The adoption of this identity; fails when there is none. */
static struct adoption find(const char *identity)
{
	struct adoption adoption;
	struct run_row run;
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_ptr_nonnull(db);
	ck_assert_int_eq(run_row_need(db, &run_fixture_ref, &run, &err), 0);
	const int found = adopt_row_find_identity(
		db, run.id, span_text(identity), fixture.arena, &adoption, &err);
	store_reader_give(fixture.store, db);
	ck_assert_msg(found == 1, "%s is not noted", identity);
	return adoption;
}

static int settle_first(struct change *change, struct db *db, struct error *error)
{
	int64_t id;
	int64_t run;
	(void)change;
	if (adopt_row_find_waiting(db, 0, &id, &run, error) != 1)
		return -1;
	return adopt_row_set_published(db, id, (uint64_t)id, error);
}

/* How many runs have a publish that is next. */
static size_t count_next(void)
{
	struct db *const db = store_reader_take(fixture.store, &err);
	size_t count = 0;
	int64_t id = 0;
	int64_t run;
	ck_assert_ptr_nonnull(db);
	while (adopt_row_find_waiting(db, id, &id, &run, &err) == 1)
		count++;
	store_reader_give(fixture.store, db);
	return count;
}

/* How many wait, all of one run: they become steps one after another. */
static size_t count_waiting(void)
{
	size_t count = 0;
	while (count_next() > 0) {
		struct change change = {.apply = settle_first};
		/* the one behind it waits for it, whatever becomes of it */
		ck_assert_uint_eq(count_next(), 1);
		ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
		count++;
	}
	return count;
}

static int find_deployment(const char *account, const char *deployment, struct run_ref *out)
{
	const struct deployment_place among = {.account = span_text(account)};
	err = (struct error){0};
	return hot_load_find(
		fixture.store, span_text(deployment), &among, fixture.arena, out, &err);
}

START_TEST(a_deployment_has_one_run)
{
	struct run_ref run;
	ck_assert_int_eq(find_deployment("main", "d", &run), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(find_deployment("main", "d", &run), 0);
	ck_assert(span_equal_text(run.bucket.name, "bucket") && span_equal_text(run.name, "run"));
	ck_assert_int_eq(set("other", "{\"hot_load\":\"d\"}"), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"\"}"), 0);
	ck_assert_int_eq(set("other", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(hot_load("s", NULL), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"e\"}"), 0);
	ck_assert_int_eq(hot_load("s", NULL), -1); /* "d" belongs to the other run */
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
}
END_TEST

static void expect_clash(const char *run, const char *settings, const char *first)
{
	ck_assert_int_eq(set(run, settings), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_msg(strstr(err.text, first) != NULL, "%s: %s", settings, err.text);
}

/* Pairs of settings where the second would shut out the trainer of the first, or a view would lie
 * where a trainer puts objects. */
static const struct clash {
	const char *first;
	const char *second;
	const char *told_of_first;
} clashes[] = {
	{"{\"view_trl\":true}", "{\"adopt\":\"trl\"}", "\"view_trl\" of the run 'run'"},
	{"{\"adopt\":\"trl\"}", "{\"view_trl\":true}", "the run 'run' adopts"},
	{"{}", "{\"adopt\":\"trl\",\"view_trl\":true}", "the run 'run' adopts"},
	{"{\"view_slime\":true,\"adopt_prefix\":\"{run}/updates/\"}", "{\"adopt\":\"slime\"}",
		"\"view_slime\" of the run 'run'"},
	{"{\"adopt\":\"slime\",\"adopt_prefix\":\"{run}/updates/x/\"}", "{\"view_slime\":true}",
		"the run 'run' adopts"},
	{"{\"adopt\":\"slime\",\"view_slime\":true}", "{\"adopt_prefix\":\"{run}/updates/\"}",
		"\"view_slime\" of the run 'run'"},
	{"{\"view_slime\":true}", "{\"adopt\":\"stitch\"}", "\"view_slime\" of the run 'run'"},
	{"{\"view_trl\":true,\"adopt_prefix\":\"{run}/deltas/\"}", "{\"adopt\":\"pulse\"}",
		"\"view_trl\" of the run 'run'"},
};

START_TEST(what_is_adopted_and_a_view_do_not_meet)
{
	const struct clash *const clash = &clashes[_i];
	ck_assert_msg(set("run", clash->first) == 0, "%s", err.text);
	expect_clash("run", clash->second, clash->told_of_first);
	ck_assert_int_eq(set("run", "{\"verify\":false}"), 0);
}
END_TEST

START_TEST(what_is_adopted_and_the_view_of_another_run_do_not_meet)
{
	ck_assert_int_eq(set("run", "{\"view_trl\":true}"), 0);
	ck_assert_int_eq(set("other", "{\"adopt\":\"trl\"}"), 0);
	expect_clash("other", "{\"adopt_prefix\":\"run/\"}", "\"view_trl\" of the run 'run'");
	ck_assert_int_eq(set("run", "{\"view_trl\":false}"), 0);
	ck_assert_int_eq(set("other", "{\"adopt_prefix\":\"run/\"}"), 0);
	expect_clash("run", "{\"view_trl\":true}", "the run 'other' adopts");
}
END_TEST

/* Settings from before the two were checked against each other. */
START_TEST(a_run_that_had_both_goes_on)
{
	static const char both[] =
		"UPDATE runs SET settings = CAST(replace(CAST(settings AS TEXT), '\"view_trl\":false', '\"view_trl\":true') AS BLOB)";
	ck_assert_int_eq(set("run", "{\"adopt\":\"trl\"}"), 0);
	ck_assert_int_eq(fixture_run(fixture.store, both, &err), 0);
	ck_assert_msg(set("run", "{\"verify\":false}") == 0, "%s", err.text);
	ck_assert_msg(set("run", "{\"view_trl\":false}") == 0, "%s", err.text);
	expect_clash("run", "{\"view_trl\":true}", "the run 'run' adopts");
}
END_TEST

START_TEST(what_does_not_meet_goes_together)
{
	ck_assert_msg(set("run", "{\"view_slime\":true,\"adopt\":\"trl\"}") == 0, "%s", err.text);
	ck_assert_msg(
		set("run", "{\"view_slime\":false,\"adopt\":\"slime\",\"view_trl\":true}") == 0,
		"%s", err.text);
	ck_assert_msg(set("run", "{\"view_slime\":true}") == 0, "%s", err.text);
	ck_assert_msg(set("run", "{\"adopt_prefix\":\"trainer/\",\"adopt\":\"trl\"}") == 0, "%s",
		err.text);
	ck_assert_msg(set("run", "{\"adopt\":\"stitch\"}") == 0, "%s", err.text);
	ck_assert_msg(set("run", "{\"adopt_prefix\":\"\",\"adopt\":\"trl\"}") == 0, "%s", err.text);
	ck_assert_msg(set("run", "{\"adopt_prefix\":\"{run}/\",\"adopt\":\"modelexpress\"}") == 0,
		"%s", err.text);
}
END_TEST

static void make_team(void)
{
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "team--box", "team", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "team--box", "run", NULL, &err), 0);
}

/* A row as version 0.1.0 wrote it. */
static int write_plainly(struct change *change, struct db *db, struct error *error)
{
	static const char SQL[] =
		"UPDATE runs SET hot_load = CAST('d' AS BLOB) WHERE hot_load IS NOT NULL";
	(void)change;
	return db_run(db, SQL, error);
}

START_TEST(a_deployment_is_an_accounts)
{
	struct change change = {.apply = write_plainly};
	struct run_ref run;
	make_team();
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	if (_i == 1)
		ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(set("other", "{\"hot_load\":\"d\"}"), -1);
	ck_assert_int_eq(find_deployment("team", "d", &run), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(set_in("team--box", "run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(find_deployment("team", "d", &run), 0);
	ck_assert(span_equal_text(run.bucket.name, "team--box"));
	ck_assert_int_eq(find_deployment("main", "d", &run), 0);
	ck_assert(span_equal_text(run.bucket.name, "bucket") && span_equal_text(run.name, "run"));
	ck_assert_int_eq(set("other", "{\"hot_load\":\"dd\"}"), 0);
	ck_assert_int_eq(find_deployment("main", "dd", &run), 0);
	ck_assert(span_equal_text(run.name, "other"));
	ck_assert_int_eq(find_deployment("team", "dd", &run), -1);
	ck_assert_int_eq(find_deployment("nobody", "d", &run), -1);
	ck_assert_int_eq(find_deployment("main", "", &run), -1);
	ck_assert_int_eq(hot_load("a", NULL), 0);
}
END_TEST

START_TEST(a_deployment_goes_with_its_bucket)
{
	struct run_ref run;
	make_team();
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(set_in("team--box", "run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(
		fixture_rename_bucket(fixture.store, "team--box", "box", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(
		fixture_rename_bucket(fixture.store, "team--box", "team--chest", "team", &err), 0);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"e\"}"), 0);
	ck_assert_int_eq(
		fixture_rename_bucket(fixture.store, "team--chest", "box", "main", &err), 0);
	ck_assert_int_eq(find_deployment("main", "d", &run), 0);
	ck_assert(span_equal_text(run.bucket.name, "box"));
	ck_assert_int_eq(find_deployment("team", "d", &run), -1);
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

START_TEST(snapshots_build_on_the_newest)
{
	ck_assert_int_eq(
		set("run", "{\"hot_load\":\"d\",\"hot_load_prefix\":\"snapshots/{run}/\"}"), 0);
	ck_assert_int_eq(hot_load("b", "a"), -1);
	ck_assert_int_eq(err.kind, ERROR_BASE_MISSING);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert(span_equal_text(find("a").objects, "snapshots/run/a/"));
	ck_assert_int_eq(hot_load("b", "a"), 0);
	ck_assert(span_equal_text(find("b").base, "a"));
	/* known: they stay what they are, whatever the newest one is now */
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(hot_load("b", "a"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions"), 2);
	ck_assert_int_eq(hot_load("c", "a"), -1);
	ck_assert_int_eq(err.kind, ERROR_HEAD_MOVED);
	ck_assert_int_eq(hot_load("c", "x"), -1);
	ck_assert_int_eq(err.kind, ERROR_BASE_MISSING);
	ck_assert_uint_eq(count_waiting(), 2);
}
END_TEST

static int fail_first(struct change *change, struct db *db, struct error *error)
{
	int64_t id;
	int64_t run;
	(void)change;
	if (adopt_row_find_waiting(db, 0, &id, &run, error) != 1)
		return -1;
	return adopt_row_set_failed(db, id, span_text("for the test"), error);
}

START_TEST(what_builds_on_a_failed_one_fails_with_it)
{
	struct change change = {.apply = fail_first};
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(hot_load("b", "a"), 0);
	ck_assert_int_eq(hot_load("whole", NULL), 0);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(find("a").state, ADOPTION_FAILED);
	ck_assert_int_eq(find("b").state, ADOPTION_FAILED);
	ck_assert_int_eq(find("whole").state, ADOPTION_WAITS);
	ck_assert_int_eq(hot_load("c", "a"), -1);
	ck_assert_int_eq(err.kind, ERROR_BASE_MISSING);
	ck_assert_uint_eq(count_waiting(), 1);
}
END_TEST

START_TEST(a_snapshot_that_failed_may_come_again)
{
	struct change change = {.apply = fail_first};
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert_int_eq(find("a").state, ADOPTION_WAITS);
	ck_assert_uint_eq(count_waiting(), 1);
}
END_TEST

static struct hot_load_newest newest(void)
{
	struct hot_load_newest out;
	ck_assert_int_eq(
		hot_load_find_newest(fixture.store, &run_fixture_ref, fixture.arena, &out, &err),
		0);
	return out;
}

/* The answer that replicas of a deployment get. */
START_TEST(the_newest_snapshot_says_what_became_of_it)
{
	struct change fails = {.apply = fail_first};
	struct change succeeds = {.apply = settle_first};
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert(!newest().is_known);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	ck_assert(newest().is_known && !newest().is_step && !newest().failed);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &succeeds, &err), 0);
	ck_assert(newest().is_step && !newest().failed && span_equal_text(newest().identity, "a"));
	ck_assert_int_eq(hot_load("b", NULL), 0);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &fails, &err), 0);
	ck_assert(!newest().is_step && newest().failed && span_equal_text(newest().identity, "b"));
	ck_assert(span_equal_text(newest().error, "for the test"));
}
END_TEST

START_TEST(a_step_is_called_as_it_was_announced)
{
	struct change change = {.apply = settle_first};
	struct span name;
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(hot_load("a", NULL), 0);
	const uint64_t step = (uint64_t)find("a").id;
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(hot_load_identity(
				 fixture.store, &run_fixture_ref, step, fixture.arena, &name, &err),
		0);
	ck_assert(span_equal_text(name, "a"));
	ck_assert_int_eq(hot_load_identity(
				 fixture.store, &run_fixture_ref, 1234, fixture.arena, &name, &err),
		0);
	ck_assert(span_equal_text(name, "step_001234"));
}
END_TEST

START_TEST(names_alone_do_not_pile_up)
{
	struct change change = {.apply = fail_first};
	ck_assert_int_eq(set("run", "{\"hot_load\":\"d\"}"), 0);
	ck_assert_int_eq(hot_load("first", NULL), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO adoptions (run, identity, convention, state, objects, created_ms)"
			" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
			" SELECT run, CAST(i AS BLOB), 4, 0, objects, 0 FROM n, adoptions",
			&err),
		0);
	ck_assert_int_eq(hot_load("more", NULL), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE adoptions SET state = 2 WHERE id > 1", &err), 0);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions"), ADOPT_FAILED_KEPT);
}
END_TEST

START_TEST(a_bucket_has_few_runs_that_adopt)
{
	for (unsigned i = 0; i <= 16; i++) {
		const char *const name = arena_format(fixture.arena, "r%u", i);
		ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", name, NULL, &err), 0);
		ck_assert_int_eq(set(name, "{\"adopt\":\"trl\"}"), i < 16 ? 0 : -1);
	}
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert_int_eq(set("r3", "{\"adopt\":\"slime\"}"), 0);
	ck_assert_int_eq(set("r3", "{\"adopt\":\"\"}"), 0);
	ck_assert_int_eq(set("r16", "{\"adopt\":\"trl\"}"), 0);
}
END_TEST

START_TEST(identities_are_one_segment)
{
	char longest[ADOPT_IDENTITY_MAX_BYTES + 1];
	static const char *const bad[] = {"", ".", "..", "a/b", "a\nb", "a\177b"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(hot_load_check_identity(span_text(bad[i]), &err), -1);
	ck_assert_int_eq(hot_load_check_identity(span_text("snapshot-2026.11:7"), &err), 0);
	ck_assert_int_eq(hot_load_check_identity(span_text("a b"), &err), 0);
	memset(longest, 'x', sizeof(longest));
	ck_assert_int_eq(
		hot_load_check_identity(span_of(longest, ADOPT_IDENTITY_MAX_BYTES), &err), 0);
	ck_assert_int_eq(hot_load_check_identity(span_of(longest, sizeof(longest)), &err), -1);
}
END_TEST

START_TEST(objects_that_complete_a_publish_are_noted)
{
	const struct span bytes = span_text("some bytes");
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/deltas/step_000001.safetensors",
				 bytes, &err),
		0);
	ck_assert_uint_eq(count_waiting(), 0);
	ck_assert_int_eq(set("run", "{\"adopt\":\"trl\"}"), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket",
				 "other/deltas/step_000001.safetensors", bytes, &err),
		0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "run/deltas/notes.txt", bytes, &err), 0);
	ck_assert_uint_eq(count_waiting(), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/anchors/step_000001.safetensors",
				 bytes, &err),
		0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/anchors/step_000001.safetensors",
				 bytes, &err),
		0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/deltas/step_000002.safetensors",
				 bytes, &err),
		0);
	ck_assert_uint_eq(count_waiting(), 2);
	const struct adoption adoption = find("step_000002");
	ck_assert(adoption.convention == ADOPT_TRL && !adoption.has_base);
	ck_assert(span_equal_text(adoption.objects, "run/deltas/step_000002.safetensors"));
}
END_TEST

/* Both take the keys of one trainer; a key of another bucket belongs to neither. */
START_TEST(each_run_that_adopts_notes_a_publish)
{
	const struct span bytes = span_text("some bytes");
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "elsewhere", "main", &err), 0);
	ck_assert_int_eq(set("run", "{\"adopt\":\"trl\",\"adopt_prefix\":\"run/\"}"), 0);
	ck_assert_int_eq(set("other", "{\"adopt\":\"trl\",\"adopt_prefix\":\"run/\"}"), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "elsewhere",
				 "run/anchors/step_000001.safetensors", bytes, &err),
		0);
	ck_assert_uint_eq(count_next(), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/anchors/step_000001.safetensors",
				 bytes, &err),
		0);
	ck_assert_uint_eq(count_next(), 2);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE runs SET bucket = 2", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/anchors/step_000002.safetensors",
				 bytes, &err),
		0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions"), 2);
}
END_TEST

/* Whether it was swept or not. */
START_TEST(an_ended_run_has_no_deployment_and_adopts_nothing)
{
	struct run_ref run;
	ck_assert_int_eq(
		set("run", "{\"hot_load\":\"d\",\"adopt\":\"trl\",\"adopt_prefix\":\"run/\"}"), 0);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "run/anchors/step_000001.safetensors",
				 span_text("some bytes"), &err),
		0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM adoptions"), 0);
	ck_assert_int_eq(find_deployment("main", "d", &run), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(set("other", "{\"hot_load\":\"d\"}"), 0);
}
END_TEST

START_TEST(each_content_of_a_pointer_is_noted)
{
	ck_assert_int_eq(set("run", "{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}"), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "latest", span_text("r/weight_v000001"), &err),
		0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "latest", span_text("r/weight_v000002"), &err),
		0);
	ck_assert_uint_eq(count_waiting(), 2);
}
END_TEST

START_TEST(a_pointer_that_is_deleted_points_nowhere)
{
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	ck_assert_int_eq(set("run", "{\"adopt\":\"stitch\",\"adopt_prefix\":\"\"}"), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "latest", span_text("r/weight_v000001"), &err),
		0);
	ck_assert_uint_eq(count_waiting(), 1);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "latest", NULL, &err), 0);
	ck_assert_uint_eq(count_waiting(), 0);
}
END_TEST

Suite *test_adopt_suite(void);
Suite *test_adopt_suite(void)
{
	Suite *const suite = suite_create("adopt");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_deployment_has_one_run);
	tcase_add_loop_test(tests, a_deployment_is_an_accounts, 0, 2);
	tcase_add_test(tests, a_deployment_goes_with_its_bucket);
	tcase_add_test(tests, snapshots_build_on_the_newest);
	tcase_add_test(tests, what_builds_on_a_failed_one_fails_with_it);
	tcase_add_test(tests, a_snapshot_that_failed_may_come_again);
	tcase_add_test(tests, the_newest_snapshot_says_what_became_of_it);
	tcase_add_test(tests, a_step_is_called_as_it_was_announced);
	tcase_add_test(tests, names_alone_do_not_pile_up);
	tcase_add_test(tests, a_bucket_has_few_runs_that_adopt);
	tcase_add_loop_test(tests, what_is_adopted_and_a_view_do_not_meet, 0,
		sizeof(clashes) / sizeof(clashes[0]));
	tcase_add_test(tests, what_is_adopted_and_the_view_of_another_run_do_not_meet);
	tcase_add_test(tests, what_does_not_meet_goes_together);
	tcase_add_test(tests, a_run_that_had_both_goes_on);
	tcase_add_test(tests, identities_are_one_segment);
	tcase_add_test(tests, objects_that_complete_a_publish_are_noted);
	tcase_add_test(tests, each_run_that_adopts_notes_a_publish);
	tcase_add_test(tests, an_ended_run_has_no_deployment_and_adopts_nothing);
	tcase_add_test(tests, each_content_of_a_pointer_is_noted);
	tcase_add_test(tests, a_pointer_that_is_deleted_points_nowhere);
	suite_add_tcase(suite, tests);
	return suite;
}
