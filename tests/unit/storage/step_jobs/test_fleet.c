/* Which steps are needed, by replicas, pins and path answers, and what retention does with the
 * others. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/core/store.h"
#include "storage/run_tables/path_hold.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_range.h"
#include "storage/runs/pin.h"
#include "storage/runs/replica.h"
#include "storage/runs/step_collect.h"
#include "storage/runs/step_keep.h"
#include "storage/step_jobs/fleet_worker.h"
#include "tests/unit/storage/run_fixture.h"

enum { MINUTE_MS = 60 * 1000, CROWD_RUN = 999 };

static struct store_fixture fixture;

static void set_up(void)
{
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void set(const char *settings)
{
	struct error err = {0};
	ck_assert_msg(fixture_call(run_settings_call(
					   fixture.store, &run_fixture_ref, span_text(settings)),
			      &err) == 0,
		"%s", err.text);
}

/* Steps `first` to `last`; every `anchors`th has an anchor. */
static void publish(unsigned first, unsigned last, unsigned anchors)
{
	for (unsigned i = first; i <= last; i++) {
		const struct step_message step =
			run_fixture_prepare(&fixture, i, i % anchors == 0, i == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &step);
	}
}

static int collect(uint64_t step, struct error *err)
{
	return fixture_call(run_collect_call(fixture.store, &run_fixture_ref, step), err);
}

static bool is_kept(uint64_t step)
{
	struct error err = {0};
	struct step_message message;
	uint64_t anchor;
	return run_fixture_find(&fixture, step, &message, &anchor, &err) == 0;
}

static void expect_kept(uint64_t first, uint64_t last, bool kept)
{
	for (uint64_t step = first; step <= last; step++)
		ck_assert_msg(is_kept(step) == kept, "step %u", (unsigned)step);
}

static struct replica_ref replica_of(const char *id)
{
	return (struct replica_ref){run_fixture_ref, span_text(id)};
}

static int put_replica(const char *id, const struct replica_message *said,
	struct replica_message *out, struct error *err)
{
	const struct replica_ref ref = replica_of(id);
	const int saved = replica_put(fixture.store, &ref, said, fixture.arena, out, err);
	if (saved != 0)
		return saved < 0 ? -1 : 0;
	return fixture_call(replica_save_call(fixture.store, &ref), err);
}

static int find_replica(const char *id, struct replica_message *out, struct error *err)
{
	const struct replica_ref ref = replica_of(id);
	return replica_find(fixture.store, &ref, fixture.arena, out, err);
}

static int list_replicas(
	struct span after, size_t limit, struct replica_list_message *out, struct error *err)
{
	const struct replica_scan scan = {run_fixture_ref, after, limit};
	return replica_list(fixture.store, &scan, fixture.arena, out, err);
}

static void hold(const char *id, uint64_t step)
{
	struct error err = {0};
	struct replica_message answer;
	const struct replica_message said = {
		.state = REPLICA_READY, .has_step = true, .step = step};
	ck_assert_msg(put_replica(id, &said, &answer, &err) == 0, "%s", err.text);
}

static int put_pin(const char *name, uint64_t step, uint64_t ttl_s, struct error *err)
{
	const struct pin_message pin = {.name = span_text(name), .step = step, .ttl_s = ttl_s};
	return fixture_call(pin_put_call(fixture.store, &run_fixture_ref, &pin), err);
}

static int remove_pin(const char *name, struct error *err)
{
	return fixture_call(pin_remove_call(fixture.store, &run_fixture_ref, span_text(name)), err);
}

static void round_of_worker(void)
{
	struct error err = {0};
	ck_assert_msg(fleet_worker_round(fixture.store, true, &err) == 0, "%s", err.text);
}

START_TEST(ranges_are_joined)
{
	struct step_range ranges[] = {{5, 6}, {0, 1}, {2, 2}, {9, 20}, {10, 11}, {8, UINT64_MAX}};
	ck_assert_uint_eq(step_range_join(ranges, 6), 3);
	ck_assert(ranges[0].first == 0 && ranges[0].last == 2);
	ck_assert(ranges[1].first == 5 && ranges[1].last == 6);
	ck_assert(ranges[2].first == 8 && ranges[2].last == UINT64_MAX);
	ck_assert_uint_eq(step_range_at_or_behind(ranges, 3, 1), 0);
	ck_assert_uint_eq(step_range_at_or_behind(ranges, 3, 3), 1);
	ck_assert_uint_eq(step_range_at_or_behind(ranges, 3, 7), 2);
	ck_assert_uint_eq(step_range_at_or_behind(ranges, 2, 7), 2);
}
END_TEST

START_TEST(holds_last_a_quarter_of_an_hour)
{
	struct step_range ranges[PATH_HOLD_RANGES_MAX];
	struct path_hold *const holds = path_hold_new(&fixture.clock.source);
	path_hold_add(holds, 7, (struct step_range){3, 5});
	fixture.clock.now_ms += 10 * MINUTE_MS;
	path_hold_add(holds, 7, (struct step_range){100, 100});
	path_hold_add(holds, 8, (struct step_range){1, 1});
	ck_assert_uint_eq(path_hold_ranges(holds, 7, ranges), 2);
	ck_assert(ranges[0].first == 3 && ranges[0].last == 5 && ranges[1].first == 100);
	fixture.clock.now_ms += 5 * MINUTE_MS - 1;
	ck_assert_uint_eq(path_hold_ranges(holds, 7, ranges), 2);
	fixture.clock.now_ms += MINUTE_MS + 1;
	path_hold_tidy(holds);
	ck_assert_uint_eq(path_hold_ranges(holds, 7, ranges), 1);
	ck_assert_uint_eq(ranges[0].first, 100);
	fixture.clock.now_ms += 10 * MINUTE_MS;
	path_hold_tidy(holds);
	ck_assert_uint_eq(path_hold_ranges(holds, 7, ranges), 0);
	ck_assert_uint_eq(path_hold_ranges(holds, 8, ranges), 0);
	path_hold_free(holds);
}
END_TEST

START_TEST(many_holds_grow_together_and_lose_none)
{
	struct step_range ranges[PATH_HOLD_RANGES_MAX];
	struct path_hold *const holds = path_hold_new(&fixture.clock.source);
	for (uint64_t i = 0; i < 300; i++)
		path_hold_add(holds, 1, (struct step_range){(i * 7919) % 1000, (i * 7919) % 1000});
	const size_t count = path_hold_ranges(holds, 1, ranges);
	ck_assert_uint_ge(count, 1);
	for (uint64_t i = 0; i < 300; i++) {
		const uint64_t step = (i * 7919) % 1000;
		const size_t at = step_range_at_or_behind(ranges, count, step);
		ck_assert(at < count && ranges[at].first <= step);
	}
	path_hold_free(holds);
}
END_TEST

START_TEST(a_replica_tells_and_is_told)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 2, 100);
	fixture.clock.now_ms += 37000;
	const struct replica_message said = {.state = REPLICA_ERROR,
		.has_step = true,
		.step = 0,
		.has_wanted = true,
		.wanted = 2,
		.error = span_text("disk full"),
		.host = span_text("node7"),
		.tensors = span_text("*.experts.*")};
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), 0);
	ck_assert_uint_eq(answer.lease_s, 120);
	ck_assert(answer.has_head && answer.head == 2 && answer.has_staleness);
	ck_assert(answer.behind_steps == 2 && answer.behind_s == 37);
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(answer.state == REPLICA_ERROR && span_equal_text(answer.error, "disk full") &&
		span_equal_text(answer.host, "node7"));
	ck_assert(span_equal_text(answer.id, "w1") && !answer.expired && answer.behind_s == 37);
	fixture.clock.now_ms += 119999;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(!answer.expired);
	fixture.clock.now_ms += 1;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(answer.expired);
	hold("w1", 2);
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(!answer.expired && answer.behind_steps == 0 && answer.behind_s == 0 &&
		answer.error.len == 0);
}
END_TEST

START_TEST(a_replica_is_late_since_the_step_after_its_own)
{
	struct error err = {0};
	struct replica_message replica;
	for (unsigned step = 0; step <= 3; step++) {
		publish(step, step, 100);
		fixture.clock.now_ms += 10000;
	}
	hold("w", 1);
	ck_assert_int_eq(find_replica("w", &replica, &err), 0);
	ck_assert(replica.behind_steps == 2 && replica.behind_s == 20);
	hold("w", 3);
	ck_assert_int_eq(find_replica("w", &replica, &err), 0);
	ck_assert(replica.behind_steps == 0 && replica.behind_s == 0);
}
END_TEST

START_TEST(the_catalog_has_what_was_said_last)
{
	publish(0, 2, 100);
	hold("w", 2);
	set("{\"lease_s\":50}");
	hold("w", 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT lease_ms FROM replicas"), 50000);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM replicas WHERE CAST(document AS TEXT) LIKE '%\"step\":1%'"),
		1);
}
END_TEST

START_TEST(a_replica_cannot_hold_what_is_not_there)
{
	struct error err = {0};
	struct replica_message answer;
	const struct replica_message said = {.state = REPLICA_READY, .has_step = true, .step = 1};
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	publish(0, 0, 1);
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(
		put_replica("a/b", &(struct replica_message){.state = REPLICA_IDLE}, &answer, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(find_replica("w1", &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(replicas_are_listed_in_pages)
{
	struct error err = {0};
	struct replica_list_message list;
	publish(0, 3, 100);
	for (unsigned i = 0; i < 5; i++)
		hold(arena_format(fixture.arena, "w%u", 4 - i), i < 3 ? i + 1 : 3);
	fixture.clock.now_ms += 200 * 1000;
	hold("w0", 3);
	hold("w3", 2);
	ck_assert_int_eq(list_replicas(span_text(""), 3, &list, &err), 0);
	ck_assert_uint_eq(list.count, 3);
	ck_assert(span_equal_text(list.replicas[0].id, "w0") && !list.replicas[0].expired &&
		list.replicas[0].behind_steps == 0);
	ck_assert(span_equal_text(list.replicas[1].id, "w1") && list.replicas[1].expired);
	ck_assert(span_equal_text(list.next, "w2") && list.head == 3 && list.lease_s == 120);
	ck_assert(list.counts.states[REPLICA_READY] == 2 && list.counts.expired == 3 &&
		list.counts.has_oldest && list.counts.oldest == 2);
	ck_assert_int_eq(list_replicas(list.next, 3, &list, &err), 0);
	ck_assert(list.count == 2 && list.next.len == 0 &&
		span_equal_text(list.replicas[0].id, "w3"));
	fixture.clock.now_ms += 3600 * 1000 - 1000;
	round_of_worker();
	ck_assert_int_eq(list_replicas(span_text(""), 9, &list, &err), 0);
	ck_assert_uint_eq(list.count, 2); /* the others are forgotten */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM replicas"), 2);
}
END_TEST

START_TEST(renewing_a_lease_writes_nothing)
{
	publish(0, 3, 100);
	hold("w1", 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM replicas"), 1);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE replicas SET updated_ms = 5",
				 &(struct error){0}),
		0);
	for (int i = 0; i < 10; i++)
		hold("w1", 1);
	hold("w1", 3); /* needs less than before: it may be saved later */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT updated_ms FROM replicas"), 5);
	round_of_worker();
	ck_assert_int_gt(fixture_count(fixture.store, "SELECT updated_ms FROM replicas"), 5);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE replicas SET updated_ms = 5",
				 &(struct error){0}),
		0);
	hold("w1", 2); /* needs more: saved at once */
	ck_assert_int_gt(fixture_count(fixture.store, "SELECT updated_ms FROM replicas"), 5);
}
END_TEST

/* Of another run, whose workers are only here to be many. */
static void crowd(unsigned count)
{
	struct error err = {0};
	bool saved;
	for (unsigned i = 0; i < count; i++) {
		const struct replica_row row = {.run = CROWD_RUN,
			.id = span_text(arena_format(fixture.arena, "%06u", i)),
			.lease_ms = 60 * MINUTE_MS};
		ck_assert_int_eq(
			replica_table_put(store_parts(fixture.store)->replicas, &row,
				&(struct replica_message){.state = REPLICA_IDLE}, &saved, &err),
			0);
	}
}

START_TEST(many_workers_report_seldom)
{
	struct error err = {0};
	struct replica_message answer;
	struct replica_list_message list;
	const struct replica_message said = {.state = REPLICA_IDLE};
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), 0);
	ck_assert(answer.report_s == 30 && answer.lease_s == 120 && answer.passing_s == 0);
	crowd(20000);
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), 0);
	ck_assert(answer.report_s == 103 && answer.lease_s == 412 && answer.passing_s == 103);
	fixture.clock.now_ms += 411 * 1000;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(!answer.expired && answer.lease_s == 412 && answer.report_s == 0);
	ck_assert_int_eq(list_replicas(span_text(""), 3, &list, &err), 0);
	ck_assert(list.report_s == 103 && list.lease_s == 412);
	ck_assert(list.counts.has_report && list.counts.oldest_report_s == 411);
	fixture.clock.now_ms += 1000;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(answer.expired);
}
END_TEST

/* A worker that was told to come late has not come when its first lease of 120 s would end. */
START_TEST(a_restart_takes_no_long_lease)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 6, 4);
	hold("w1", 2);
	crowd(20000);
	hold("w1", 2);
	store_fixture_reopen(&fixture);
	fixture.clock.now_ms += 411 * 1000;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(!answer.expired && answer.step == 2);
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	fixture.clock.now_ms += 1000;
	ck_assert_int_eq(collect(3, &err), 0);
}
END_TEST

START_TEST(a_long_lease_ends_at_once_when_its_worker_says_so)
{
	struct error err = {0};
	publish(0, 6, 4);
	crowd(20000);
	hold("w1", 2);
	const struct replica_ref ref = replica_of("w1");
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(fixture_call(replica_remove_call(fixture.store, &ref), &err), 0);
	ck_assert_int_eq(collect(3, &err), 0);
}
END_TEST

START_TEST(a_restart_takes_no_lease)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 6, 4);
	hold("w1", 2);
	fixture.clock.now_ms += 119 * 1000;
	store_fixture_reopen(&fixture);
	fixture.clock.now_ms += 119 * 1000;
	ck_assert_int_eq(find_replica("w1", &answer, &err), 0);
	ck_assert(!answer.expired && answer.step == 2);
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_ptr_nonnull(strstr(err.text, "'w1'"));
	fixture.clock.now_ms += 1000;
	ck_assert_int_eq(collect(3, &err), 0);
}
END_TEST

/* The next step is an anchor, which needs no other step: the lease alone keeps the one before
 * it. */
START_TEST(what_a_replica_holds_stays)
{
	struct error err = {0};
	publish(0, 6, 4);
	hold("w0", 6);
	hold("w1", 3);
	hold("w2", 6);
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_ptr_nonnull(strstr(err.text, "'w1' holds step 3."));
	hold("w1", 4);
	ck_assert_int_eq(collect(3, &err), 0);
}
END_TEST

START_TEST(a_removed_replica_is_gone_for_good)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 1, 100);
	hold("w1", 0);
	const struct replica_ref ref = replica_of("w1");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fixture_call(replica_remove_call(fixture.store, &ref), &err),
			i == 0 ? 0 : -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(find_replica("w1", &answer, &err), -1);
}
END_TEST

START_TEST(a_lease_keeps_the_way_from_its_step)
{
	set("{\"keep_steps\":2}");
	publish(0, 5, 2);
	expect_kept(0, 3, false);
	hold("w1", 4);
	publish(6, 11, 2);
	expect_kept(4, 11, true);
	fixture.clock.now_ms += 121 * 1000;
	publish(12, 12, 2);
	expect_kept(4, 9, false);
	expect_kept(10, 12, true);
}
END_TEST

/* More than fit into one change. */
START_TEST(retention_that_is_lowered_takes_all_at_once)
{
	set("{\"keep_steps\":1000}");
	publish(0, 2 * STEP_RETAIN_AT_ONCE + 20, 10);
	set("{\"keep_steps\":2}");
	round_of_worker();
	expect_kept(0, 2 * STEP_RETAIN_AT_ONCE + 9, false);
	expect_kept(2 * STEP_RETAIN_AT_ONCE + 20, 2 * STEP_RETAIN_AT_ONCE + 20, true);
	/* from the last anchor on */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT MAX(steps) FROM runs"), 9);
}
END_TEST

START_TEST(retention_goes_on_when_a_lease_ends_without_a_publish)
{
	set("{\"keep_steps\":2}");
	publish(0, 1, 1);
	hold("w1", 1);
	publish(2, 9, 1);
	expect_kept(1, 9, true);
	round_of_worker();
	expect_kept(1, 9, true);
	fixture.clock.now_ms += 121 * 1000;
	round_of_worker();
	expect_kept(1, 7, false);
	expect_kept(8, 9, true);
}
END_TEST

START_TEST(as_many_steps_are_kept_as_the_settings_say)
{
	set("{\"keep_steps\":3}");
	publish(0, 2, 1);
	expect_kept(0, 2, true);
	publish(3, 3, 1);
	expect_kept(0, 0, false);
	expect_kept(1, 3, true);
}
END_TEST

/* No reader begins with an anchor whose proof failed: the way past it stays. */
START_TEST(a_failed_anchor_is_no_beginning)
{
	static const char *const anchors[] = {
		"has_anchor = 1", "has_anchor = 0, anchor_bytes = NULL, made = 0, made_bytes = 1"};
	struct error err = {0};
	const char *sql = arena_format(
		fixture.arena, "UPDATE steps SET verified = 2, %s WHERE step = 4", anchors[_i]);
	publish(0, 6, 4);
	ck_assert_int_eq(fixture_run(fixture.store, sql, &err), 0);
	set("{\"keep_steps\":2}");
	expect_kept(0, 6, true);
}
END_TEST

/* The settings of the first run cannot be read. */
START_TEST(a_run_that_fails_does_not_keep_others_waiting)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "second", NULL, &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE runs SET name = CASE id WHEN 1 THEN x'61' ELSE x'72756e' END",
			&err),
		0);
	set("{\"keep_steps\":2}");
	publish(0, 1, 1);
	hold("w1", 1);
	publish(2, 9, 1);
	fixture.clock.now_ms += 121 * 1000;
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE runs SET settings = x'ff', keep_steps = 1, steps = 9 WHERE id = 1",
			&err),
		0);
	ck_assert_int_eq(fleet_worker_round(fixture.store, true, &err), -1);
	expect_kept(1, 7, false);
	expect_kept(8, 9, true);
}
END_TEST

START_TEST(who_fetches_keeps_the_way_to_what_it_wants)
{
	struct error err = {0};
	struct replica_message answer;
	set("{\"keep_steps\":2}");
	publish(0, 3, 2);
	const struct replica_message said = {
		.state = REPLICA_FETCHING, .has_wanted = true, .wanted = 3};
	ck_assert_int_eq(put_replica("new", &said, &answer, &err), 0);
	ck_assert(!answer.has_staleness);
	publish(4, 9, 2);
	expect_kept(2, 3, true); /* from the anchor on */
	expect_kept(4, 7, false);
	expect_kept(8, 9, true);
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
}
END_TEST

/* The request of a reader makes the server store no anchor. */
START_TEST(who_waits_for_what_is_not_published_keeps_nothing)
{
	struct error err = {0};
	struct run_row row;
	struct step_keep keep;
	struct replica_message answer;
	const struct replica_message said = {
		.state = REPLICA_FETCHING, .has_wanted = true, .wanted = 1000000};
	set("{\"keep_steps\":4}");
	publish(0, 8, 4);
	ck_assert_int_eq(put_replica("w", &said, &answer, &err), 0);
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(run_row_need(db, &run_fixture_ref, &row, &err), 0);
	ck_assert_int_eq(step_keep_find(fixture.store, db, &row, &keep, &err), 0);
	ck_assert(!keep.wants_anchor || keep.anchor_at <= row.head);
	step_keep_release(&keep);
	store_reader_give(fixture.store, db);
}
END_TEST

/* So many steps are wanted that the list of them may be incomplete: from the highest of them on,
 * all stay. */
START_TEST(when_many_steps_are_wanted_all_behind_them_stay)
{
	struct error err = {0};
	struct replica_message answer;
	set("{\"keep_steps\":0}");
	publish(0, 72, 1);
	for (unsigned i = 0; i < 66; i++) {
		const struct replica_message said = {
			.state = REPLICA_FETCHING, .has_wanted = true, .wanted = i};
		ck_assert_int_eq(
			put_replica(arena_format(fixture.arena, "w%u", i), &said, &answer, &err),
			0);
	}
	set("{\"keep_steps\":2}");
	expect_kept(0, 72, true);
}
END_TEST

/* Until then it would cost more than retention could remove. */
START_TEST(a_stored_anchor_is_wanted_when_a_good_many_steps_could_go)
{
	struct error err = {0};
	set("{\"keep_steps\":20}");
	publish(0, 34, 1000);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE steps SET verified = 1", &err), 0);
	set("{\"keep_steps\":20}");
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM steps WHERE wants_made = 2"), 0);
	publish(35, 35, 1000);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM steps WHERE wants_made = 2"), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT step FROM steps WHERE wants_made = 2"), 16);
	publish(36, 37, 1000);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM steps WHERE wants_made = 2"), 1);
}
END_TEST

START_TEST(a_made_anchor_is_enough_for_what_is_kept)
{
	struct error err = {0};
	publish(0, 15, 1000);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE steps SET made = 0, made_bytes = 1, wants_made = 2 WHERE step = 10",
			&err),
		0);
	set("{\"keep_steps\":3}");
	expect_kept(0, 9, false);
	expect_kept(10, 15, true);
}
END_TEST

START_TEST(a_pin_keeps_its_step_and_the_way_to_it)
{
	struct error err = {0};
	set("{\"keep_steps\":2}");
	publish(0, 3, 2);
	ck_assert_int_eq(put_pin("best", 3, 0, &err), 0);
	ck_assert_int_eq(put_pin("short", 2, 60, &err), 0);
	publish(4, 9, 2);
	expect_kept(2, 3, true);
	expect_kept(4, 7, false);
	const struct run_path_params params = {.run = run_fixture_ref, .want = 3};
	struct path_message way;
	struct run_path_facts facts;
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &way, &facts, &err), 0);
	ck_assert_uint_eq(way.link_count, 2);
	fixture.clock.now_ms += 16 * MINUTE_MS; /* the answer's hold is over, and the pin `short` */
	ck_assert_int_eq(collect(3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_ptr_nonnull(strstr(err.text, "'best'"));
	ck_assert_int_eq(remove_pin("best", &err), 0);
	ck_assert_int_eq(remove_pin("best", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(remove_pin("short", &err), -1);
	round_of_worker();
	expect_kept(2, 3, false);
	expect_kept(8, 9, true);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM pins"), 0);
}
END_TEST

START_TEST(pins_are_set_moved_and_listed)
{
	struct error err = {0};
	struct pin_message *pins;
	struct pin_message pin;
	size_t count;
	publish(0, 2, 100);
	ck_assert_int_eq(put_pin("b", 1, 0, &err), 0);
	ck_assert_int_eq(put_pin("a", 2, 10, &err), 0);
	ck_assert_int_eq(put_pin("b", 0, 0, &err), 0);
	ck_assert_int_eq(
		pin_list(fixture.store, &run_fixture_ref, fixture.arena, &pins, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(pins[0].name, "a") && pins[0].step == 2 &&
		pins[0].expires_ms == pins[0].created_ms + 10000);
	ck_assert(
		span_equal_text(pins[1].name, "b") && pins[1].step == 0 && pins[1].expires_ms == 0);
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), 0);
	fixture.clock.now_ms += 10000;
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, span_text("a"), &pin, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(put_pin("c", 3, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(put_pin(".c", 0, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_step_that_is_gone_cannot_be_pinned)
{
	struct error err = {0};
	publish(0, 1, 1);
	ck_assert_int_eq(collect(0, &err), 0);
	ck_assert_int_eq(put_pin("late", 0, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
}
END_TEST

START_TEST(what_a_path_names_stays_a_while)
{
	struct error err = {0};
	struct path_message way;
	struct run_path_facts facts;
	set("{\"keep_steps\":2}");
	publish(0, 3, 2);
	const struct run_path_params params = {.run = run_fixture_ref, .want_latest = true};
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &way, &facts, &err), 0);
	ck_assert_int_eq(collect(2, &err), -1);
	publish(4, 9, 2);
	expect_kept(2, 3, true);
	expect_kept(4, 7, false);
	fixture.clock.now_ms += 16 * MINUTE_MS;
	round_of_worker();
	expect_kept(2, 3, false);
}
END_TEST

START_TEST(retention_rests_after_a_start)
{
	set("{\"keep_steps\":2}");
	publish(0, 3, 1);
	fixture.clock.now_ms += 1000;
	store_fixture_reopen(&fixture);
	publish(4, 6, 1);
	expect_kept(2, 6, true); /* readers may hold path answers from before */
	fixture.clock.now_ms += 15 * MINUTE_MS;
	publish(7, 7, 1);
	expect_kept(2, 5, false);
}
END_TEST

START_TEST(without_an_anchor_nothing_goes)
{
	set("{\"keep_steps\":2}");
	publish(0, 9, 100);
	expect_kept(0, 9, true);
}
END_TEST

/* The last report of a replica was not saved when its run ended. */
START_TEST(a_round_forgets_replicas_of_ended_runs)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 1, 100);
	hold("w1", 0);
	const struct replica_message said = {.state = REPLICA_READY, .has_step = true, .step = 1};
	ck_assert_int_eq(put_replica("w1", &said, &answer, &err), 0);
	ck_assert_uint_eq(replica_table_count(store_parts(fixture.store)->replicas), 1);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE runs SET name = NULL", &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM replicas", &err), 0);
	fixture.clock.now_ms += 1;
	round_of_worker();
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM replicas"), 0);
	ck_assert_uint_eq(replica_table_count(store_parts(fixture.store)->replicas), 0);
}
END_TEST

START_TEST(an_ended_run_leaves_nothing)
{
	struct error err = {0};
	struct replica_message answer;
	publish(0, 1, 100);
	hold("w1", 0);
	ck_assert_int_eq(put_pin("p", 0, 0, &err), 0);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(find_replica("w1", &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM replicas"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM pins"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 1);
}
END_TEST

Suite *test_fleet_suite(void);
Suite *test_fleet_suite(void)
{
	Suite *const suite = suite_create("fleet");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, ranges_are_joined);
	tcase_add_test(tc, holds_last_a_quarter_of_an_hour);
	tcase_add_test(tc, many_holds_grow_together_and_lose_none);
	tcase_add_test(tc, a_replica_tells_and_is_told);
	tcase_add_test(tc, a_replica_cannot_hold_what_is_not_there);
	tcase_add_test(tc, replicas_are_listed_in_pages);
	tcase_add_test(tc, renewing_a_lease_writes_nothing);
	tcase_add_test(tc, many_workers_report_seldom);
	tcase_add_test(tc, a_restart_takes_no_long_lease);
	tcase_add_test(tc, a_long_lease_ends_at_once_when_its_worker_says_so);
	tcase_add_test(tc, a_restart_takes_no_lease);
	tcase_add_test(tc, what_a_replica_holds_stays);
	tcase_add_test(tc, a_removed_replica_is_gone_for_good);
	tcase_add_test(tc, a_lease_keeps_the_way_from_its_step);
	tcase_add_test(tc, retention_that_is_lowered_takes_all_at_once);
	tcase_add_test(tc, retention_goes_on_when_a_lease_ends_without_a_publish);
	tcase_add_test(tc, as_many_steps_are_kept_as_the_settings_say);
	tcase_add_loop_test(tc, a_failed_anchor_is_no_beginning, 0, 2);
	tcase_add_test(tc, a_run_that_fails_does_not_keep_others_waiting);
	tcase_add_test(tc, who_fetches_keeps_the_way_to_what_it_wants);
	tcase_add_test(tc, who_waits_for_what_is_not_published_keeps_nothing);
	tcase_add_test(tc, when_many_steps_are_wanted_all_behind_them_stay);
	tcase_add_test(tc, a_stored_anchor_is_wanted_when_a_good_many_steps_could_go);
	tcase_add_test(tc, a_made_anchor_is_enough_for_what_is_kept);
	tcase_add_test(tc, a_pin_keeps_its_step_and_the_way_to_it);
	tcase_add_test(tc, pins_are_set_moved_and_listed);
	tcase_add_test(tc, a_step_that_is_gone_cannot_be_pinned);
	tcase_add_test(tc, what_a_path_names_stays_a_while);
	tcase_add_test(tc, retention_rests_after_a_start);
	tcase_add_test(tc, without_an_anchor_nothing_goes);
	tcase_add_test(tc, a_round_forgets_replicas_of_ended_runs);
	tcase_add_test(tc, an_ended_run_leaves_nothing);
	tcase_add_test(tc, a_replica_is_late_since_the_step_after_its_own);
	tcase_add_test(tc, the_catalog_has_what_was_said_last);
	suite_add_tcase(suite, tc);
	return suite;
}
