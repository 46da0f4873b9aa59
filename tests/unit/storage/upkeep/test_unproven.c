/* While the catalog is not as it was committed, nothing is deleted because of what it says. Each of
 * the threads and calls that delete is asked to, in vain, and does it once the catalog is right
 * again. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "storage/buckets/lifecycle_document.h"
#include "storage/objects/scratch.h"
#include "storage/open/store_open.h"
#include "storage/packs/store_health.h"
#include "storage/upkeep/gc.h"
#include "storage/upkeep/lifecycle_worker.h"
#include "tests/unit/storage/run_fixture.h"

enum { SIZE = 60000, DAY = 1000, STEPS = 10 };

static struct store_fixture fixture;
static struct error err;

/* Changes the catalog without the counts and sums that go with it. */
static void meddle(const char *sql, bool is_damaged)
{
	char *path = store_fixture_path(&fixture, "catalog.db");
	store_fixture_stop(&fixture);
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL && db_run_script(db, sql, &err) == 0, "%s", err.text);
	db_close(db);
	free(path);
	fixture.is_damaged = is_damaged;
	store_fixture_start(&fixture);
	ck_assert_int_eq(store_health_proof(store_health(fixture.store)),
		is_damaged ? STORE_DAMAGED : STORE_PROVEN);
	ck_assert_int_eq(store_health_may_delete(store_health(fixture.store)), !is_damaged);
}

static void damage(void)
{
	meddle("INSERT INTO removals (file) VALUES (x'00000000000000000000000000000001')", true);
}

static void mend(void)
{
	meddle("DELETE FROM removals", false);
}

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void put(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(SIZE, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, SIZE), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static bool holds(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(SIZE, seed);
	bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, SIZE));
	free(bytes);
	return result;
}

/* One pack that is mostly dead, to be compacted, and one that is wholly dead. */
START_TEST(gc_deletes_and_compacts_nothing)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
	struct gc_request request = {0};
	for (unsigned i = 0; i < 6; i++)
		put(keys[i], i + 1);
	store_fixture_reopen(&fixture); /* seals the pack */
	put("dead", 7);
	store_fixture_reopen(&fixture);
	for (unsigned i = 1; i < 6; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", keys[i], NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "dead", NULL, &err), 0);
	damage();
	int64_t before = fixture_pack_files(&fixture, "-printf '%p %s\\n' | cksum | cut -d' ' -f1");
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &request, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(
		fixture_pack_files(&fixture, "-printf '%p %s\\n' | cksum | cut -d' ' -f1"), before);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM packs"), 2);
	mend();
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(request.report.packs_deleted, 1);
	ck_assert_uint_eq(request.report.packs_compacted, 1);
	ck_assert(holds("a", 1));
}
END_TEST

enum {
	ROUNDS_MS = 2500, /* at least two rounds of gc's own */
	ROUND_MS = 1500   /* one round of the sweeper */
};

/* Opens the store with rounds of gc's own, one a second. Logs go to `log`. */
static void start_with_rounds(struct log *log)
{
	const struct store_options options = {.folder = fixture.folder,
		.clock = &fixture.clock.source,
		.log = log,
		.gc = {.interval_s = 1}};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
}

static void rest(int64_t ms)
{
	nanosleep(
		&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000 * 1000}, NULL);
}

static void expect_no_round(FILE *file)
{
	char line[2000];
	rewind(file);
	while (fgets(line, sizeof line, file) != NULL)
		ck_assert_msg(strstr(line, " gc") == NULL, "%s", line);
	ck_assert(!ferror(file));
}

START_TEST(gc_begins_no_round_of_its_own)
{
	FILE *file = tmpfile();
	struct log *log = log_new(fileno(file), LOG_DEBUG, false, clock_system());
	put("dead", 7);
	store_fixture_reopen(&fixture); /* seals the pack */
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "dead", NULL, &err), 0);
	damage();
	store_fixture_stop(&fixture);
	start_with_rounds(log);
	rest(ROUNDS_MS);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), 1);
	expect_no_round(file);
	mend();
	store_fixture_stop(&fixture);
	start_with_rounds(NULL);
	for (int i = 0; i < 6000 && fixture_pack_files(&fixture, "-name '*.pack'") > 0; i++)
		rest(10);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), 0);
	log_free(log);
	fclose(file);
}
END_TEST

START_TEST(the_sweeper_sweeps_nothing)
{
	put("a", 1);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "other", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "other", "a", span_text("x"), &err), 0);
	damage();
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "other", &err), 0);
	int64_t before = fixture_count(fixture.store, "SELECT count(*) FROM versions");
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), before);
	mend();
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), before - 1);
	ck_assert(holds("a", 1));
}
END_TEST

/* A version that nothing names yet, as a killed process leaves it. */
static void leave_hidden_version(void)
{
	int64_t version = 0;
	uint8_t *bytes = fixture_noise(SIZE, 3);
	char *path = store_fixture_path(&fixture, "made");
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, SIZE), 0600, &err), 0);
	const int64_t bucket = fixture_count(fixture.store, "SELECT id FROM buckets");
	ck_assert_msg(scratch_store_hidden(
			      fixture.store, path, bucket, span_text("k"), &version, &err) == 0,
		"%s", err.text);
	free(path);
	free(bytes);
}

START_TEST(what_an_earlier_process_held_is_not_let_go)
{
	leave_hidden_version();
	damage();
	rest(ROUND_MS);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 1);
	mend(); /* a start waits until it is gone */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
}
END_TEST

START_TEST(lifecycle_expires_nothing)
{
	const struct lifecycle_rule rule = {
		.enabled = true, .has_prefix = true, .prefix = {NULL, 0}, .expire_days = 2};
	const struct lifecycle lifecycle = {&rule, 1};
	uint64_t removed = 7;
	struct buffer json;
	buffer_init(&json, 64 * 1024);
	lifecycle_document_print(&lifecycle, &json);
	const struct bucket_document document = {BUCKET_LIFECYCLE, buffer_span(&json)};
	const struct bucket_edit edit = {.documents = &document, .document_count = 1};
	put("a", 1);
	ck_assert_msg(
		fixture_edit_bucket(fixture.store, "bucket", &edit, &err) == 0, "%s", err.text);
	fixture.clock.now_ms += 3 * DAY;
	damage();
	ck_assert_msg(
		lifecycle_worker_walk(fixture.store, DAY, &removed, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(removed, 0);
	ck_assert(holds("a", 1));
	mend();
	ck_assert_msg(
		lifecycle_worker_walk(fixture.store, DAY, &removed, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(removed, 1);
	buffer_release(&json);
}
END_TEST

START_TEST(retention_removes_no_step)
{
	const struct run_ref run = run_named(span_text("bucket"), span_text("run"));
	ck_assert_int_eq(fixture_call(run_settings_call(
					      fixture.store, &run, span_text("{\"keep_steps\":3}")),
				 &err),
		0);
	damage();
	for (unsigned i = 0; i < STEPS; i++) {
		struct step_message step =
			run_fixture_prepare(&fixture, i, i % 4 == 0, i == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, STEPS);
	mend();
	struct step_message step = run_fixture_prepare(&fixture, STEPS, false, 50);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_uint_lt(run_fixture_run(&fixture).steps, STEPS);
}
END_TEST

/* Changes that a client requests are not deletions by the server: they go on. */
START_TEST(what_clients_ask_for_is_done)
{
	put("a", 1);
	damage();
	put("b", 2);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a", NULL, &err), 0);
	ck_assert(holds("b", 2));
	mend();
	ck_assert(holds("b", 2));
}
END_TEST

Suite *test_unproven_suite(void);
Suite *test_unproven_suite(void)
{
	Suite *suite = suite_create("unproven");
	TCase *tests = tcase_create("unproven");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, gc_deletes_and_compacts_nothing);
	tcase_add_test(tests, gc_begins_no_round_of_its_own);
	tcase_add_test(tests, the_sweeper_sweeps_nothing);
	tcase_add_test(tests, what_an_earlier_process_held_is_not_let_go);
	tcase_add_test(tests, lifecycle_expires_nothing);
	tcase_add_test(tests, retention_removes_no_step);
	tcase_add_test(tests, what_clients_ask_for_is_done);
	suite_add_tcase(suite, tests);
	return suite;
}
