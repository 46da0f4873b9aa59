/* The rollback of a fleet: which step readers get, what it keeps, what replicas are told, and that
 * it lasts. */
#include "tests/unit/unit.h"

#include <string.h>

#include "base/thread/step_watch.h"
#include "storage/open/store_open.h"
#include "storage/runs/pin.h"
#include "storage/runs/replica.h"
#include "storage/runs/rollback.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/run_fixture.h"

enum { ROUNDS_MAX = 100, PINS_MANY = PINS_OF_RUN_MAX };

static struct store_fixture fixture;
static struct error err;

static void publish(unsigned first, unsigned last, unsigned anchors)
{
	for (unsigned i = first; i <= last; i++) {
		const struct step_message step =
			run_fixture_prepare(&fixture, i, i % anchors == 0, i == 0 ? 0 : 50);
		run_fixture_publish_ok(&fixture, &step);
	}
}

static void set_up(void)
{
	err = (struct error){0};
	run_fixture_open(&fixture);
	publish(0, 6, 4);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int begin(uint64_t step)
{
	return fixture_call(rollback_begin_call(fixture.store, &run_fixture_ref, step), &err);
}

static void begin_ok(uint64_t step)
{
	ck_assert_msg(begin(step) == 0, "%s", err.text);
}

static void end_ok(void)
{
	ck_assert_msg(fixture_call(rollback_end_call(fixture.store, &run_fixture_ref), &err) == 0,
		"%s", err.text);
}

static void set_keep(const char *settings)
{
	ck_assert_int_eq(fixture_call(run_settings_call(
					      fixture.store, &run_fixture_ref, span_text(settings)),
				 &err),
		0);
}

static void run_sql(const char *sql)
{
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

/* The step that a reader gets; UINT64_MAX: nothing yet. */
static uint64_t latest(const struct run_latest_params *params)
{
	struct run_latest_params whole = *params;
	struct step_message step;
	whole.run = run_fixture_ref;
	if (run_find_latest(fixture.store, &whole, fixture.arena, &step, &err) == 0)
		return step.step;
	ck_assert_msg(err.kind == ERROR_NOT_READY, "%s", err.text);
	return UINT64_MAX;
}

static uint64_t latest_after(uint64_t after)
{
	return latest(&(struct run_latest_params){.has_after = true, .after = after});
}

static struct path_message path_from(uint64_t have)
{
	return run_fixture_path(&fixture,
		&(struct run_path_params){.has_have = true, .have = have, .want_latest = true});
}

static bool is_kept(uint64_t step)
{
	struct error ignored = {0};
	struct step_message message;
	uint64_t anchor;
	return run_fixture_find(&fixture, step, &message, &anchor, &ignored) == 0;
}

static struct replica_message hold(const char *id, uint64_t step)
{
	struct replica_message answer;
	const struct replica_ref ref = {run_fixture_ref, span_text(id)};
	const struct replica_message said = {
		.state = REPLICA_READY, .has_step = true, .step = step};
	const int saved = replica_put(fixture.store, &ref, &said, fixture.arena, &answer, &err);
	ck_assert_msg(saved >= 0, "%s", err.text);
	if (saved == 0)
		ck_assert_int_eq(fixture_call(replica_save_call(fixture.store, &ref), &err), 0);
	return answer;
}

START_TEST(readers_get_its_step_until_it_ends)
{
	ck_assert_uint_eq(latest_after(6), UINT64_MAX);
	begin_ok(5);
	ck_assert_uint_eq(latest_after(6), 5);
	ck_assert_uint_eq(latest_after(2), 5);
	ck_assert_uint_eq(latest_after(5), UINT64_MAX);
	ck_assert_uint_eq(latest(&(struct run_latest_params){.of_head = true}), 6);
	const struct path_message back = path_from(6);
	ck_assert(back.from_nothing && back.to_step == 5 && back.links[0].step == 4);
	ck_assert_uint_eq(path_from(5).link_count, 0);
	publish(7, 7, 4);
	ck_assert_uint_eq(latest_after(5), UINT64_MAX);
	ck_assert_uint_eq(latest_after(7), 5);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 7);
	end_ok();
	ck_assert_uint_eq(latest_after(5), 7);
	ck_assert_uint_eq(latest_after(7), UINT64_MAX);
	ck_assert(!path_from(5).from_nothing && path_from(5).to_step == 7);
}
END_TEST

START_TEST(bounds_are_those_of_its_step)
{
	begin_ok(3);
	ck_assert_uint_eq(latest(&(struct run_latest_params){.least = 3}), 3);
	ck_assert_uint_eq(latest(&(struct run_latest_params){.least = 4}), UINT64_MAX);
	ck_assert_ptr_nonnull(strstr(err.text, "a rollback holds it at step 3"));
	ck_assert_uint_eq(latest(&(struct run_latest_params){.least = 6, .of_head = true}), 6);
	ck_assert_uint_eq(
		latest(&(struct run_latest_params){.least = 7, .of_head = true}), UINT64_MAX);
}
END_TEST

START_TEST(the_run_tells_it)
{
	ck_assert(!run_fixture_run(&fixture).rollback.is_on);
	const int64_t begun = fixture.clock.now_ms;
	begin_ok(3);
	fixture.clock.now_ms += 5000;
	begin_ok(3); /* a repeat, after a lost reply */
	const struct rollback_message told = run_fixture_run(&fixture).rollback;
	ck_assert(told.is_on && told.step == 3 && told.created_ms == begun);
	begin_ok(4);
	ck_assert_int_eq(run_fixture_run(&fixture).rollback.created_ms, begun + 5000);
	struct call *const call = rollback_end_call(fixture.store, &run_fixture_ref);
	ck_assert_int_eq(fixture_call(call, &err), 0);
	ck_assert(!run_fixture_run(&fixture).rollback.is_on);
	end_ok(); /* there is none any more */
}
END_TEST

START_TEST(a_step_that_cannot_be_served_changes_nothing)
{
	set_keep("{\"keep_steps\":3}");
	ck_assert(!is_kept(0));
	run_sql("UPDATE steps SET verified = 2 WHERE step = 5");
	begin_ok(4);
	ck_assert_int_eq(begin(7), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(begin(0), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_int_eq(begin(5), -1);
	ck_assert_int_eq(err.kind, ERROR_STEP_FAILED);
	ck_assert_uint_eq(run_fixture_run(&fixture).rollback.step, 4);
	const struct run_ref other = run_named(span_text("bucket"), span_text("other"));
	ck_assert_int_eq(fixture_call(rollback_begin_call(fixture.store, &other, 4), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(fixture_call(rollback_end_call(fixture.store, &other), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
}
END_TEST

START_TEST(where_its_proof_fails_later_the_step_below_is_served)
{
	begin_ok(5);
	run_sql("UPDATE steps SET verified = 2 WHERE step = 5");
	ck_assert_uint_eq(latest_after(6), 4);
	ck_assert_uint_eq(path_from(6).to_step, 4);
}
END_TEST

/* Not what the trainer publishes meanwhile, though the fleet holds an older step. */
START_TEST(its_step_stays_and_what_leads_there)
{
	set_keep("{\"keep_steps\":2}");
	publish(7, 8, 4);
	begin_ok(7);
	hold("w", 7);
	publish(9, 30, 4);
	ck_assert(is_kept(4) && is_kept(7) && !is_kept(8) && !is_kept(20));
	ck_assert_int_eq(
		fixture_call(run_collect_call(fixture.store, &run_fixture_ref, 7), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_ptr_nonnull(strstr(err.text, "held at step 7 by a rollback"));
	ck_assert_uint_eq(path_from(30).to_step, 7);
	fixture.clock.now_ms += 16 * 60 * 1000; /* the path and the lease are over */
	end_ok();
	ck_assert(!is_kept(4) && !is_kept(7) && is_kept(30));
}
END_TEST

/* What they need to get there. */
START_TEST(replicas_below_keep_the_way_to_its_step)
{
	set_keep("{\"keep_steps\":20}");
	publish(7, 12, 4);
	hold("w", 8);
	begin_ok(10);
	set_keep("{\"keep_steps\":1}");
	publish(13, 24, 4);
	ck_assert(is_kept(8) && is_kept(9) && is_kept(10) && !is_kept(11) && !is_kept(16));
	ck_assert_int_eq(
		fixture_call(run_collect_call(fixture.store, &run_fixture_ref, 9), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
}
END_TEST

START_TEST(a_replica_at_its_step_is_not_behind)
{
	begin_ok(3);
	fixture.clock.now_ms += 7000;
	struct replica_message told = hold("w", 3);
	ck_assert(told.head == 6 && told.behind_steps == 0 && told.behind_s == 0);
	told = hold("w", 6);
	ck_assert(told.behind_steps == 3 && told.behind_s == 7);
	told = hold("w", 2);
	ck_assert(told.behind_steps == 1 && told.behind_s == 7);
	struct replica_list_message list;
	const struct replica_scan scan = {run_fixture_ref, span_text(""), 10};
	ck_assert_int_eq(replica_list(fixture.store, &scan, fixture.arena, &list, &err), 0);
	ck_assert(list.rollback.is_on && list.rollback.step == 3 && list.head == 6);
	end_ok();
	ck_assert_uint_eq(hold("w", 3).behind_steps, 3);
}
END_TEST

START_TEST(it_is_no_pin_of_a_client)
{
	struct pin_message pin = {.name = span_text(".rollback"), .step = 1};
	struct pin_message *pins;
	size_t count;
	begin_ok(3);
	ck_assert_int_eq(
		pin_list(fixture.store, &run_fixture_ref, fixture.arena, &pins, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(pin_find(fixture.store, &run_fixture_ref, pin.name, &pin, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(
		fixture_call(pin_remove_call(fixture.store, &run_fixture_ref, pin.name), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(
		fixture_call(pin_put_call(fixture.store, &run_fixture_ref, &pin), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_uint_eq(run_fixture_run(&fixture).rollback.step, 3);
}
END_TEST

/* Retention has room for both. */
START_TEST(a_run_with_all_its_pins_may_go_back)
{
	run_sql(arena_format(fixture.arena,
		"INSERT INTO pins (run, name, step, expires_ms, created_ms)"
		" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" SELECT 1, CAST('p' || i AS BLOB), i %% 3, NULL, 0 FROM n",
		(int)PINS_MANY - 1));
	begin_ok(5);
	const struct pin_message last = {.name = span_text("last"), .step = 2};
	ck_assert_int_eq(
		fixture_call(pin_put_call(fixture.store, &run_fixture_ref, &last), &err), 0);
	set_keep("{\"keep_steps\":1}");
	publish(7, 9, 4);
	ck_assert(is_kept(0) && is_kept(2) && is_kept(5) && !is_kept(6));
}
END_TEST

START_TEST(waiting_readers_are_woken)
{
	struct step_watch *const watch = store_step_watch(fixture.store);
	const struct span bucket = run_fixture_ref.bucket.name;
	const uint64_t before = step_watch_generation(watch, bucket, run_fixture_ref.name);
	begin_ok(3);
	const uint64_t begun = step_watch_generation(watch, bucket, run_fixture_ref.name);
	end_ok();
	ck_assert_uint_ne(begun, before);
	ck_assert_uint_ne(step_watch_generation(watch, bucket, run_fixture_ref.name), begun);
	ck_assert_int_eq(begin(99), -1);
}
END_TEST

START_TEST(it_gets_an_anchor)
{
	begin_ok(3);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT step FROM steps WHERE wants_made IS NOT NULL"),
		3);
}
END_TEST

START_TEST(it_ends_with_its_run)
{
	begin_ok(3);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM pins"), 0);
}
END_TEST

static int work(const struct kill_child *child, const struct file_ops *files)
{
	const struct store_options options = {.folder = fixture.folder, .files = files};
	struct store *const store = store_open(&options, &err);
	if (store == NULL)
		return 1;
	for (uint64_t step = 3; step <= 4; step++) {
		if (fixture_call(rollback_begin_call(store, &run_fixture_ref, step), &err) != 0)
			return 2;
		kill_child_tell(child);
	}
	if (fixture_call(rollback_end_call(store, &run_fixture_ref), &err) != 0)
		return 3;
	kill_child_tell(child);
	store_close(store);
	return 0;
}

/* What was acknowledged is there; what was not may be. */
START_TEST(a_kill_anywhere_keeps_what_was_acknowledged)
{
	bool alive = false;
	store_fixture_stop(&fixture);
	char *const template = fixture.folder;
	for (int round = 0; round < ROUNDS_MAX && !alive; round++) {
		int told = 0;
		fixture.folder = unit_scratch_copy(template);
		struct kill_child child = {
			.kinds = KILL_ANYWHERE, .countdown = round, .work = work};
		alive = kill_child_run(&child, &told);
		store_fixture_start(&fixture);
		const struct rollback_message is = run_fixture_run(&fixture).rollback;
		if (told == 1)
			ck_assert_msg(is.is_on && is.step >= 3, "round %d", round);
		if (told == 2)
			ck_assert_msg(!is.is_on || is.step == 4, "round %d", round);
		if (told == 3)
			ck_assert_msg(!is.is_on, "round %d", round);
		store_fixture_stop(&fixture);
		unit_scratch_remove(fixture.folder);
	}
	ck_assert(alive);
	fixture.folder = template;
	store_fixture_start(&fixture);
	begin_ok(3);
	store_fixture_reopen(&fixture);
	ck_assert_uint_eq(run_fixture_run(&fixture).rollback.step, 3);
}
END_TEST

Suite *test_rollback_suite(void);
Suite *test_rollback_suite(void)
{
	Suite *const suite = suite_create("rollback");
	TCase *const tests = tcase_create("rollback");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, readers_get_its_step_until_it_ends);
	tcase_add_test(tests, bounds_are_those_of_its_step);
	tcase_add_test(tests, the_run_tells_it);
	tcase_add_test(tests, a_step_that_cannot_be_served_changes_nothing);
	tcase_add_test(tests, where_its_proof_fails_later_the_step_below_is_served);
	tcase_add_test(tests, its_step_stays_and_what_leads_there);
	tcase_add_test(tests, replicas_below_keep_the_way_to_its_step);
	tcase_add_test(tests, a_replica_at_its_step_is_not_behind);
	tcase_add_test(tests, it_is_no_pin_of_a_client);
	tcase_add_test(tests, a_run_with_all_its_pins_may_go_back);
	tcase_add_test(tests, waiting_readers_are_woken);
	tcase_add_test(tests, it_gets_an_anchor);
	tcase_add_test(tests, it_ends_with_its_run);
	tcase_add_test(tests, a_kill_anywhere_keeps_what_was_acknowledged);
	suite_add_tcase(suite, tests);
	return suite;
}
