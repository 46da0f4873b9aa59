/* How many requests a fleet sends. Its workers are played: they report as docs/protocol/steps.md,
 * "PutReplica", asks of them, to a table of replicas with a clock of the test's own. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/report_pace.h"

enum { RUN = 7, RUN_LEASE_S = 120, SECOND_MS = 1000, STEP_S = 30, JOIN_S = 60, ID_BYTES = 16 };

struct fleet {
	struct clock_fake clock;
	struct replica_table *table;
	size_t size;
	int64_t *due_s; /* when each reports next */
	uint32_t random;
	bool is_older; /* its workers know no report_s */
	size_t requests;
};

static struct fleet fleet;

static void begin(size_t size)
{
	fleet = (struct fleet){.size = size, .random = 1};
	clock_fake_init(&fleet.clock, 1000000);
	fleet.table = replica_table_new(&fleet.clock.source);
	fleet.due_s = memory_new_array(size, sizeof *fleet.due_s);
	for (size_t i = 0; i < size; i++)
		fleet.due_s[i] = (int64_t)(i * JOIN_S / size); /* they start within a minute */
}

static void end(void)
{
	replica_table_free(fleet.table);
	free(fleet.due_s);
}

/* A linear congruential generator: the test plays the same each time. */
static double chance(void)
{
	fleet.random = fleet.random * 1664525u + 1013904223u;
	return (double)fleet.random / UINT32_MAX;
}

static void report(size_t worker, int64_t now_s)
{
	struct error err = {0};
	bool saved;
	char id[ID_BYTES];
	snprintf(id, sizeof id, "%08zu", worker);
	const struct report_pace pace =
		report_pace_of(replica_table_count(fleet.table), RUN_LEASE_S);
	const struct replica_row row = {
		.run = RUN, .id = span_text(id), .lease_ms = (int64_t)pace.lease_s * SECOND_MS};
	const struct replica_message said = {.state = REPLICA_READY, .has_step = true};
	ck_assert_msg(
		replica_table_put(fleet.table, &row, &said, &saved, &err) == 0, "%s", err.text);
	const double pause_s = fleet.is_older ? (double)pace.lease_s / 3
					      : (double)pace.report_s * (1 + chance() / 4);
	fleet.due_s[worker] = now_s + (int64_t)(pause_s + 0.5);
	fleet.requests++;
}

/* Plays the seconds from `from` until `until`; a step comes every `step_s` seconds, unless that is
 * 0, and all workers serve it at once. Returns the requests. */
static size_t play(int64_t from_s, int64_t until_s, int64_t step_s)
{
	fleet.requests = 0;
	for (int64_t now_s = from_s; now_s < until_s; now_s++) {
		const bool comes = step_s > 0 && now_s % step_s == 0;
		for (size_t i = 0; i < fleet.size; i++)
			if (comes || fleet.due_s[i] <= now_s)
				report(i, now_s);
		replica_table_note_expired(fleet.table);
		fleet.clock.now_ms += SECOND_MS;
	}
	return fleet.requests;
}

static const size_t sizes[] = {1, 100, 10 * 1000, 100 * 1000};

/* After a round of the longest pace all have learnt how many they are. */
static void repeat(size_t size, bool is_older)
{
	begin(size);
	fleet.is_older = is_older;
	const struct report_pace pace = report_pace_of(size, RUN_LEASE_S);
	const int64_t round_s = (int64_t)pace.lease_s / 3;
	(void)play(0, JOIN_S + round_s, 0);
	const int64_t from_s = JOIN_S + round_s;
	const size_t requests = play(from_s, from_s + 2 * round_s, 0);
	ck_assert_uint_lt(requests, 200 * 2 * (size_t)round_s);
	ck_assert_uint_ge(requests, size); /* they do report */
	ck_assert_uint_eq(replica_table_count(fleet.table), size);
	end();
}

START_TEST(a_fleet_repeats_under_200_a_second_and_loses_no_lease)
{
	repeat(sizes[_i], false);
}
END_TEST

/* These report at each third of the lease that they are told of. */
START_TEST(so_does_one_of_older_workers)
{
	repeat(sizes[_i], true);
}
END_TEST

/* Each worker tells of each step once, and repeats nothing in between. */
START_TEST(a_step_costs_one_request_of_each_worker)
{
	const size_t size = sizes[_i];
	begin(size);
	(void)play(0, 2 * JOIN_S, STEP_S);
	ck_assert_uint_eq(play(2 * JOIN_S, 2 * JOIN_S + 2 * STEP_S, STEP_S), 2 * size);
	ck_assert_uint_eq(replica_table_count(fleet.table), size);
	end();
}
END_TEST

static const struct {
	size_t replicas;
	uint64_t run_lease_s;
	struct report_pace pace;
} told[] = {
	{0, 120, {30, 120, 0}},
	{1, 120, {30, 120, 0}},
	{64, 120, {30, 120, 0}},
	{65, 120, {30, 120, 1}},
	{100, 120, {30, 120, 1}},
	{1000, 10, {6, 24, 6}},
	{10 * 1000, 120, {52, 208, 52}},
	{100 * 1000, 120, {574, 2296, 574}},
	{100 * 1000, 86400, {660, 86400, 574}},
	{REPLICAS_MAX, 120, {660, 2640, 660}},
	{1, 10, {2, 10, 0}},
};

START_TEST(the_pace_is_as_documented)
{
	const struct report_pace pace = report_pace_of(told[_i].replicas, told[_i].run_lease_s);
	ck_assert_uint_eq(pace.report_s, told[_i].pace.report_s);
	ck_assert_uint_eq(pace.lease_s, told[_i].pace.lease_s);
	ck_assert_uint_eq(pace.passing_s, told[_i].pace.passing_s);
}
END_TEST

/* A lease that is longer than before is saved once for each worker, so it must change seldom. */
START_TEST(leases_grow_with_the_fleet_in_few_steps)
{
	uint64_t changes = 0;
	struct report_pace before = report_pace_of(0, RUN_LEASE_S);
	for (size_t replicas = 1; replicas <= REPLICAS_MAX; replicas++) {
		const struct report_pace pace = report_pace_of(replicas, RUN_LEASE_S);
		ck_assert_uint_ge(pace.lease_s, before.lease_s);
		ck_assert_uint_ge(pace.lease_s, 4 * pace.report_s);
		ck_assert(pace.report_s == REPORT_MOST_S || replicas < 200 * pace.report_s);
		ck_assert(replicas <= PASSING_FREE || pace.passing_s == REPORT_MOST_S ||
			replicas < 200 * pace.passing_s);
		changes += pace.lease_s != before.lease_s;
		before = pace;
	}
	ck_assert_uint_le(changes, 20);
}
END_TEST

Suite *test_report_pace_suite(void);

Suite *test_report_pace_suite(void)
{
	Suite *const suite = suite_create("report_pace");
	TCase *const tests = tcase_create("report_pace");
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, a_fleet_repeats_under_200_a_second_and_loses_no_lease, 0,
		sizeof sizes / sizeof *sizes);
	tcase_add_loop_test(tests, so_does_one_of_older_workers, 0, sizeof sizes / sizeof *sizes);
	tcase_add_loop_test(
		tests, a_step_costs_one_request_of_each_worker, 0, sizeof sizes / sizeof *sizes);
	tcase_add_loop_test(tests, the_pace_is_as_documented, 0, sizeof told / sizeof *told);
	tcase_add_test(tests, leases_grow_with_the_fleet_in_few_steps);
	suite_add_tcase(suite, tests);
	return suite;
}
