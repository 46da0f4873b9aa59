/* The leases of replicas in memory: what is saved of them, what they want, and how many there may
 * be. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/core/store.h"
#include "storage/run_tables/replica_table.h"
#include "tests/unit/storage/run_fixture.h"

enum { RUN = 7, LEASE_MS = 60000, NONE = -1, DOCUMENT_MAX = 4096 };

static struct store_fixture fixture;
static struct replica_table *table;
static struct clock_fake fake;
static struct error err;
static int64_t lease_ms;

static void set_up(void)
{
	lease_ms = LEASE_MS;
	err = (struct error){0};
	run_fixture_open(&fixture);
	clock_fake_init(&fake, 1000000);
	table = replica_table_new(&fake.source);
}

static void tear_down(void)
{
	replica_table_free(table);
	store_fixture_close(&fixture);
}

static int put_into(int64_t run, const char *id, int64_t step, int64_t wanted, bool *out_saved)
{
	struct buffer document;
	const struct replica_message said = {.state = REPLICA_READY,
		.has_step = step != NONE,
		.step = step == NONE ? 0 : (uint64_t)step,
		.has_wanted = wanted != NONE,
		.wanted = wanted == NONE ? 0 : (uint64_t)wanted};
	buffer_init(&document, DOCUMENT_MAX);
	replica_message_print_request(&said, &document);
	const struct replica_row row = {.run = run,
		.id = span_text(id),
		.document = buffer_span(&document),
		.lease_ms = lease_ms};
	const int result = replica_table_put(table, &row, &said, out_saved, &err);
	buffer_release(&document);
	return result;
}

/* Whether the saved row protects as much as the new report. */
static bool put(const char *id, int64_t step, int64_t wanted)
{
	bool saved = false;
	ck_assert_int_eq(put_into(RUN, id, step, wanted, &saved), 0);
	return saved;
}

static void save(const char *id, bool failed)
{
	struct replica_row row;
	struct replica_saving saving;
	ck_assert(replica_table_take(table, RUN, span_text(id), fixture.arena, &row, &saving));
	replica_table_saved(table, RUN, span_text(id), &saving, failed);
}

static size_t unsaved(void)
{
	struct replica_name names[4];
	return replica_table_unsaved(table, 4, fixture.arena, names);
}

START_TEST(a_row_with_a_lower_step_protects_more)
{
	ck_assert(!put("a", 5, NONE));
	save("a", false);
	ck_assert(put("a", 5, NONE) && put("a", 6, NONE));
	ck_assert(!put("a", 4, NONE));
	save("a", false);
	ck_assert(put("a", 4, NONE));
	ck_assert(put("a", NONE, 9)); /* it holds no step, so any row will do */
	save("a", false);
	ck_assert(!put("a", 0, NONE));
}
END_TEST

/* After a start the lease of the row runs, and the worker comes again as late as it was told to. */
START_TEST(a_longer_lease_must_be_saved)
{
	ck_assert(!put("a", 5, NONE) && !put("idle", NONE, NONE));
	save("a", false);
	save("idle", false);
	lease_ms = LEASE_MS + 1000;
	ck_assert(!put("a", 5, NONE) && !put("idle", NONE, NONE));
	save("a", true);
	ck_assert(!put("a", 5, NONE));
	save("a", false);
	ck_assert(put("a", 5, NONE));
	lease_ms = LEASE_MS;
	ck_assert(put("a", 5, NONE)); /* the row's lease is longer */
}
END_TEST

static void expect_age(int64_t run, bool has_report, uint64_t age_s)
{
	const struct replica_page page = {.run = run};
	struct replica_fleet fleet;
	struct fleet_counts counts = {.expired = 0};
	replica_table_fleet(table, run, 1, &fleet);
	(void)replica_table_page(table, &page, fixture.arena, NULL, &counts);
	ck_assert(fleet.counts.has_report == has_report && counts.has_report == has_report);
	ck_assert_uint_eq(fleet.counts.oldest_report_s, age_s);
	ck_assert_uint_eq(counts.oldest_report_s, age_s);
}

START_TEST(the_oldest_report_is_one_under_a_lease)
{
	(void)put("lost", 1, NONE);
	fake.now_ms += LEASE_MS;
	expect_age(RUN, false, 0);
	expect_age(RUN + 1, false, 0);
	(void)put("a", 1, NONE);
	fake.now_ms += 7000;
	(void)put("b", 1, NONE);
	(void)put("c", 1, NONE);
	fake.now_ms += 5500;
	expect_age(RUN, true, 12);
	(void)put("a", 1, NONE);
	expect_age(RUN, true, 5);
	replica_table_remove(table, RUN, span_text("b"));
	expect_age(RUN, true, 5);
	replica_table_remove(table, RUN, span_text("c"));
	expect_age(RUN, true, 0);
	(void)put("lost", 2, NONE);
	fake.now_ms += LEASE_MS - 1;
	(void)put("lost", 2, NONE);
	fake.now_ms += 1000; /* the lease of a has ended */
	expect_age(RUN, true, 1);
	replica_table_remove_run(table, RUN);
	expect_age(RUN, false, 0);
}
END_TEST

START_TEST(what_could_not_be_saved_is_saved_later)
{
	(void)put("a", 5, NONE);
	ck_assert_uint_eq(unsaved(), 1);
	save("a", false);
	ck_assert_uint_eq(unsaved(), 0);
	(void)put("a", 5, NONE);
	ck_assert_uint_eq(unsaved(), 0); /* the report is the same */
	(void)put("a", 6, NONE);
	save("a", true);
	ck_assert_uint_eq(unsaved(), 1);
	ck_assert(put("a", 6, NONE)); /* the row that was saved before still protects it */
}
END_TEST

START_TEST(the_lowest_wanted_steps_are_told_in_order)
{
	static const int64_t wanted[] = {50, 10, 90, 30, 70, 30, 20};
	uint64_t steps[4] = {0, 0, 0, 12345};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		(void)put(arena_format(fixture.arena, "w%zu", i), NONE, wanted[i]);
	(void)put("holds", 3, 5);
	(void)put("idle", NONE, NONE);
	ck_assert_uint_eq(replica_table_wanted(table, RUN, steps, 3), 3);
	ck_assert(steps[0] == 10 && steps[1] == 20 && steps[2] == 30 && steps[3] == 12345);
	ck_assert_uint_eq(replica_table_wanted(table, RUN + 1, steps, 3), 0);
	fake.now_ms += LEASE_MS;
	ck_assert_uint_eq(replica_table_wanted(table, RUN, steps, 3), 0);
}
END_TEST

START_TEST(a_step_is_held_by_a_replica_with_a_lease_alone)
{
	(void)put("waits", NONE, 8);
	ck_assert(!replica_table_holds(table, RUN, 0));
	(void)put("a", 8, NONE);
	ck_assert(replica_table_holds(table, RUN, 8) && !replica_table_holds(table, RUN, 7) &&
		!replica_table_holds(table, RUN + 1, 8));
	fake.now_ms += LEASE_MS;
	ck_assert(!replica_table_holds(table, RUN, 8));
}
END_TEST

START_TEST(the_lowest_step_held_is_one_under_a_lease)
{
	uint64_t step = 0;
	char id[REPLICA_ID_MAX_BYTES + 1];
	(void)put("old", 2, NONE);
	fake.now_ms += LEASE_MS;
	ck_assert(!replica_table_lowest(table, RUN, &step, id));
	(void)put("a", 6, NONE);
	(void)put("b", 4, NONE);
	(void)put("c", NONE, 1);
	ck_assert(replica_table_lowest(table, RUN, &step, id));
	ck_assert_uint_eq(step, 4);
	ck_assert_str_eq(id, "b");
}
END_TEST

START_TEST(an_expired_one_is_shown_for_an_hour)
{
	struct replica_entry entry;
	struct replica_name names[4];
	(void)put("a", 1, NONE);
	fake.now_ms += LEASE_MS + REPLICA_FORGET_MS - 1;
	ck_assert_uint_eq(replica_table_forget(table, 4, fixture.arena, names), 0);
	ck_assert(replica_table_find(table, RUN, span_text("a"), fixture.arena, &entry) &&
		entry.expired);
	fake.now_ms += 1;
	ck_assert_uint_eq(replica_table_forget(table, 4, fixture.arena, names), 1);
	ck_assert(names[0].run == RUN && span_equal_text(names[0].id, "a"));
	ck_assert(!replica_table_find(table, RUN, span_text("a"), fixture.arena, &entry));
}
END_TEST

static int fill(int64_t run, unsigned count)
{
	bool saved;
	char id[16];
	for (unsigned i = 0; i < count; i++) {
		snprintf(id, sizeof(id), "%06u", i);
		const struct replica_row row = {
			.run = run, .id = span_text(id), .lease_ms = LEASE_MS};
		if (replica_table_put(table, &row, &(struct replica_message){.state = REPLICA_IDLE},
			    &saved, &err) != 0)
			return (int)i;
	}
	return (int)count;
}

START_TEST(there_are_at_most_so_many)
{
	for (int64_t run = 1; run <= REPLICAS_MAX / REPLICAS_OF_RUN_MAX; run++)
		ck_assert_int_eq(fill(run, REPLICAS_OF_RUN_MAX + 1), REPLICAS_OF_RUN_MAX);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(fill(5, 1), 0);
	replica_table_remove_run(table, 2);
	replica_table_remove(table, 1, span_text("000000"));
	ck_assert_int_eq(fill(5, REPLICAS_OF_RUN_MAX), REPLICAS_OF_RUN_MAX);
	ck_assert_int_eq(fill(6, 2), 1);
}
END_TEST

static void add_row(const char *id, int64_t run, int64_t updated_ms)
{
	struct buffer document;
	buffer_init(&document, DOCUMENT_MAX);
	replica_message_print_request(
		&(struct replica_message){.state = REPLICA_READY, .has_step = true, .step = 5},
		&document);
	const struct span text = buffer_span(&document);
	ck_assert_int_eq(fixture_run(fixture.store,
				 arena_format(fixture.arena,
					 "INSERT INTO replicas VALUES (%lld, CAST('%s' AS BLOB),"
					 " CAST('%.*s' AS BLOB), 60000, 1, %lld)",
					 (long long)run, id, (int)text.len, (const char *)text.data,
					 (long long)updated_ms),
				 &err),
		0);
	buffer_release(&document);
}

START_TEST(a_start_loads_those_of_the_runs_there_are)
{
	struct replica_entry entry;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "ended", NULL, &err), 0);
	add_row("a", 1, 2);
	add_row("b", 2, 2);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE runs SET name = NULL WHERE id = 2", &err), 0);
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(replica_table_load(table, db, &err), 0);
	store_reader_give(fixture.store, db);
	ck_assert(replica_table_is_whole(table));
	ck_assert_uint_eq(replica_table_count(table), 1);
	ck_assert(replica_table_find(table, 1, span_text("a"), fixture.arena, &entry) &&
		!entry.expired);
	ck_assert(entry.row.lease_ms == 60000 && entry.row.since_ms == 1 &&
		entry.row.updated_ms == 2);
	ck_assert_uint_eq(unsaved(), 0);
	ck_assert(replica_table_holds(table, 1, 5));
	bool saved = false;
	ck_assert_int_eq(put_into(1, "a", 5, NONE, &saved), 0);
	ck_assert(saved); /* a start costs no change for each worker */
}
END_TEST

/* Nothing newer is known of a worker until it reports. */
START_TEST(a_start_knows_how_old_the_reports_are)
{
	const int64_t wall_ms = fake.source.wall_ms(&fake.source);
	bool saved;
	add_row("a", 1, wall_ms - 30000);
	add_row("b", 1, wall_ms - 50000);
	add_row("c", 1, wall_ms - 40000);
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(replica_table_load(table, db, &err), 0);
	store_reader_give(fixture.store, db);
	expect_age(1, true, 50);
	ck_assert_int_eq(put_into(1, "a", 5, NONE, &saved), 0);
	expect_age(1, true, 50);
	ck_assert_int_eq(put_into(1, "c", 5, NONE, &saved), 0);
	ck_assert_int_eq(put_into(1, "b", 5, NONE, &saved), 0);
	expect_age(1, true, 0);
}
END_TEST

Suite *test_replica_table_suite(void);
Suite *test_replica_table_suite(void)
{
	Suite *const suite = suite_create("replica_table");
	TCase *const tests = tcase_create("replica_table");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_row_with_a_lower_step_protects_more);
	tcase_add_test(tests, a_longer_lease_must_be_saved);
	tcase_add_test(tests, the_oldest_report_is_one_under_a_lease);
	tcase_add_test(tests, what_could_not_be_saved_is_saved_later);
	tcase_add_test(tests, the_lowest_wanted_steps_are_told_in_order);
	tcase_add_test(tests, a_step_is_held_by_a_replica_with_a_lease_alone);
	tcase_add_test(tests, the_lowest_step_held_is_one_under_a_lease);
	tcase_add_test(tests, an_expired_one_is_shown_for_an_hour);
	tcase_add_test(tests, there_are_at_most_so_many);
	tcase_add_test(tests, a_start_loads_those_of_the_runs_there_are);
	tcase_add_test(tests, a_start_knows_how_old_the_reports_are);
	suite_add_tcase(suite, tests);
	return suite;
}
