#include "tests/unit/unit.h"

#include <pthread.h>
#include <string.h>

#include "storage/core/call.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum { STEPS_MAX = 32, ARENA_BYTES = 1024 };

/* A call that records which of its steps run, and on which threads. */
struct probe {
	struct call call; /* first */
	char trace[STEPS_MAX];
	pthread_t threads[STEPS_MAX];
	size_t steps;
	unsigned rounds; /* that it will still ask for */
	struct settled *let_on;
	bool *is_released;
};

static struct store_fixture fixture;
static pthread_t committer_thread;
static pthread_t test_thread;

static int note_committer(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	committer_thread = pthread_self();
	return 0;
}

static void set_up(void)
{
	struct error err = {0};
	struct change change = {.apply = note_committer};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	test_thread = pthread_self();
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct probe *probe_new(const struct call_kind *kind)
{
	return call_new(sizeof(struct probe), kind, fixture.store, ARENA_BYTES);
}

static struct probe *note(struct call *call, char step)
{
	struct probe *const probe = (struct probe *)call;
	probe->trace[probe->steps] = step;
	probe->threads[probe->steps++] = pthread_self();
	return probe;
}

/* The steps. Lower case: on a helper; upper case: on the committer. */
static enum call_next probe_help(struct call *call, struct error *err)
{
	(void)err;
	note(call, 'h');
	return CALL_NEXT;
}

static enum call_next probe_help_again(struct call *call, struct error *err)
{
	(void)err;
	struct probe *const probe = note(call, 'h');
	return probe->rounds-- > 0 ? CALL_AGAIN : CALL_NEXT;
}

static enum call_next probe_help_end(struct call *call, struct error *err)
{
	(void)err;
	note(call, 'e');
	return CALL_ENDS;
}

static enum call_next probe_help_fail(struct call *call, struct error *err)
{
	note(call, 'f');
	error_set(err, ERROR_CORRUPT, "A helper has failed.");
	return CALL_FAILS;
}

/* Waits before its second round until the test lets it continue. */
static enum call_next probe_help_wait(struct call *call, struct error *err)
{
	(void)err;
	struct probe *const probe = note(call, 'w');
	if (probe->rounds-- == 0)
		return CALL_NEXT;
	settled_wait(probe->let_on);
	return CALL_AGAIN;
}

static int add_account(struct db *db, struct error *err)
{
	return db_run(db,
		"INSERT INTO accounts (namespace, created_ms) VALUES (CAST('probe' AS BLOB), 1)",
		err);
}

static int probe_place(struct call *call, struct error *err)
{
	(void)err;
	note(call, 'P');
	return 0;
}

static int probe_place_fail(struct call *call, struct error *err)
{
	note(call, 'P');
	return error_set(err, ERROR_NO_SPACE, "Nothing can be placed.");
}

static int probe_apply(struct call *call, struct db *db, struct error *err)
{
	note(call, 'A');
	return add_account(db, err);
}

static int probe_apply_nothing(struct call *call, struct db *db, struct error *err)
{
	(void)db, (void)err;
	note(call, 'A');
	return 0;
}

static int probe_apply_fail(struct call *call, struct db *db, struct error *err)
{
	note(call, 'A');
	ck_assert_int_eq(add_account(db, err), 0);
	return error_set(err, ERROR_PRECONDITION, "The change has failed.");
}

static enum call_next probe_applied(struct call *call)
{
	note(call, 'D');
	return CALL_NEXT;
}

static enum call_next probe_take_back(struct call *call)
{
	note(call, 'D');
	ck_assert(call->failed && call->error.kind == ERROR_PRECONDITION);
	return CALL_NEXT;
}

static enum call_next probe_again(struct call *call)
{
	struct probe *const probe = note(call, 'D');
	return probe->rounds-- > 0 ? CALL_AGAIN : CALL_NEXT;
}

static enum call_next probe_first(struct call *call)
{
	struct probe *const probe = note(call, 'D');
	return probe->rounds-- > 0 ? CALL_FIRST : CALL_NEXT;
}

static enum call_next probe_applied_fail(struct call *call)
{
	note(call, 'D');
	error_set(&call->error, ERROR_BUSY, "Applied, and given up.");
	return CALL_FAILS;
}

static void *resume_elsewhere(void *call)
{
	note(call, 'x');
	call_resume(call, NULL);
	return NULL;
}

static void probe_begin(struct call *call)
{
	pthread_t thread;
	note(call, 'B');
	ck_assert_int_eq(pthread_create(&thread, NULL, resume_elsewhere, call), 0);
	pthread_detach(thread);
}

static void probe_begin_at_once(struct call *call)
{
	note(call, 'B');
	call_resume(call, NULL);
}

static void probe_begin_fail(struct call *call)
{
	struct error err;
	note(call, 'B');
	error_set(&err, ERROR_BAD_DIGEST, "What was begun has failed.");
	call_resume(call, &err);
}

static void probe_settle(struct call *call)
{
	note(call, call->failed ? 'F' : 'S');
}

static void probe_release(struct call *call)
{
	const struct probe *const probe = (const struct probe *)call;
	if (probe->is_released != NULL)
		*probe->is_released = true;
}

static int64_t accounts(void)
{
	return fixture_count(fixture.store,
		"SELECT count(*) FROM accounts WHERE namespace = CAST('probe' AS BLOB)");
}

static bool is_on_helper(const struct probe *probe, size_t step)
{
	return !pthread_equal(probe->threads[step], committer_thread) &&
		!pthread_equal(probe->threads[step], test_thread);
}

START_TEST(stages_run_in_order_each_on_its_thread)
{
	static const struct call_kind kind = {
		.stages = {{.help = probe_help},
			{.place = probe_place, .apply = probe_apply, .applied = probe_applied},
			{.begin = probe_begin}, {.help = probe_help}},
		.settle = probe_settle,
	};
	struct error err = {0};
	struct probe *const probe = probe_new(&kind);
	ck_assert_msg(call_run(&probe->call, &err) == 0, "%s", err.text);
	ck_assert_str_eq(probe->trace, "hPADBxhS");
	ck_assert(is_on_helper(probe, 0) && is_on_helper(probe, 6));
	for (size_t i = 1; i <= 4;
		i++) /* `begin` runs on the thread on which the stage before ended */
		ck_assert(pthread_equal(probe->threads[i], committer_thread));
	ck_assert(pthread_equal(probe->threads[7], probe->threads[6]));
	ck_assert_int_eq(accounts(), 1);
	call_free(&probe->call);
}
END_TEST

START_TEST(a_call_may_end_before_its_start_returns)
{
	static const struct call_kind kind = {
		.stages = {{.begin = probe_begin_at_once}}, .settle = probe_settle};
	struct error err = {0};
	struct settled *const settled = settled_new();
	struct probe *const probe = probe_new(&kind);
	call_start(&probe->call, settled_done, settled);
	ck_assert_str_eq(probe->trace, "BS");
	ck_assert(pthread_equal(probe->threads[0], test_thread) &&
		pthread_equal(probe->threads[1], test_thread));
	ck_assert_int_eq(fixture_settle(&probe->call, settled, &err), 0);
}
END_TEST

START_TEST(a_stage_runs_again_as_often_as_it_asks)
{
	static const struct call_kind helped = {
		.stages = {{.help = probe_help_again}, {.apply = probe_apply}}};
	static const struct call_kind changed = {
		.stages = {{.help = probe_help},
			{.apply = probe_apply_nothing, .applied = probe_again}}};
	struct error err = {0};
	struct probe *probe = probe_new(&helped);
	probe->rounds = 2;
	ck_assert_int_eq(call_run(&probe->call, &err), 0);
	ck_assert_str_eq(probe->trace, "hhhA");
	call_free(&probe->call);
	probe = probe_new(&changed);
	probe->rounds = 1;
	ck_assert_int_eq(call_run(&probe->call, &err), 0);
	ck_assert_str_eq(probe->trace, "hADAD");
	call_free(&probe->call);
}
END_TEST

/* Two calls share a lane: the second runs before the first runs again. */
START_TEST(what_waits_has_its_turn_before_a_stage_runs_again)
{
	static const struct call_kind first = {.stages = {{.help = probe_help_wait}}};
	static const struct call_kind second = {.stages = {{.help = probe_help}}};
	struct error err = {0};
	struct helper_lane lane = {0};
	struct settled *const ends[] = {settled_new(), settled_new()};
	struct probe *const one = probe_new(&first);
	struct probe *const two = probe_new(&second);
	one->rounds = 1;
	one->let_on = settled_new();
	one->call.lane = &lane;
	two->call.lane = &lane;
	call_start(&one->call, settled_done, ends[0]);
	call_start(&two->call, settled_done, ends[1]);
	ck_assert_uint_eq(two->steps, 0); /* the lane is taken */
	settled_done(one->let_on);
	settled_wait(ends[0]);
	ck_assert_str_eq(one->trace, "ww");
	ck_assert_str_eq(two->trace, "h"); /* it ran when the lane was free in between */
	ck_assert_int_eq(call_outcome(&one->call, &err), 0);
	ck_assert_int_eq(fixture_settle(&two->call, ends[1], &err), 0);
	call_free(&one->call);
	helpers_pass(fixture.store); /* until no helper uses the lane */
}
END_TEST

START_TEST(all_stages_run_again)
{
	static const struct call_kind kind = {
		.stages = {{.help = probe_help},
			{.apply = probe_apply_nothing, .applied = probe_first},
			{.help = probe_help_end}}};
	struct error err = {0};
	struct probe *const probe = probe_new(&kind);
	probe->rounds = 2;
	ck_assert_int_eq(call_run(&probe->call, &err), 0);
	ck_assert_str_eq(probe->trace, "hADhADhADe");
	call_free(&probe->call);
}
END_TEST

START_TEST(a_call_may_end_without_the_stages_that_are_left)
{
	static const struct call_kind kind = {
		.stages = {{.help = probe_help_end}, {.apply = probe_apply}},
		.settle = probe_settle};
	struct error err = {0};
	struct probe *const probe = probe_new(&kind);
	ck_assert_int_eq(call_run(&probe->call, &err), 0);
	ck_assert_str_eq(probe->trace, "eS");
	ck_assert_int_eq(accounts(), 0);
	call_free(&probe->call);
}
END_TEST

/* A stage that fails, after which no stage runs. */
static const struct {
	struct call_kind kind;
	const char *trace;
	enum error_kind error;
} failing[] = {
	{{.stages = {{.help = probe_help_fail}, {.apply = probe_apply}}, .settle = probe_settle},
		"fF", ERROR_CORRUPT},
	{{.stages = {{.begin = probe_begin_fail}, {.apply = probe_apply}}, .settle = probe_settle},
		"BF", ERROR_BAD_DIGEST},
	{{.stages = {{.apply = probe_apply_fail}, {.help = probe_help}}, .settle = probe_settle},
		"AF", ERROR_PRECONDITION},
	{{.stages = {{.place = probe_place_fail, .apply = probe_apply}, {.help = probe_help}},
		 .settle = probe_settle},
		"PF", ERROR_NO_SPACE},
};

START_TEST(a_stage_that_fails_ends_the_call)
{
	struct error err = {0};
	struct probe *const probe = probe_new(&failing[_i].kind);
	ck_assert_int_eq(call_run(&probe->call, &err), -1);
	ck_assert_int_eq(err.kind, failing[_i].error);
	ck_assert_str_eq(probe->trace, failing[_i].trace);
	err = (struct error){0};
	ck_assert_int_eq(call_outcome(&probe->call, &err), -1);
	ck_assert_int_eq(err.kind, failing[_i].error);
	ck_assert_int_eq(accounts(), 0); /* rolled back, or never begun */
	call_free(&probe->call);
}
END_TEST

START_TEST(a_failed_change_may_be_taken_back)
{
	static const struct call_kind kind = {
		.stages = {{.apply = probe_apply_fail, .applied = probe_take_back},
			{.help = probe_help}},
		.settle = probe_settle};
	struct error err = {0};
	struct probe *const probe = probe_new(&kind);
	ck_assert_msg(call_run(&probe->call, &err) == 0, "%s", err.text);
	ck_assert_str_eq(probe->trace, "ADhS");
	ck_assert_int_eq(accounts(), 0);
	call_free(&probe->call);
}
END_TEST

START_TEST(a_call_may_fail_behind_its_change)
{
	static const struct call_kind kind = {
		.stages = {{.apply = probe_apply, .applied = probe_applied_fail},
			{.help = probe_help}},
		.settle = probe_settle};
	struct error err = {0};
	struct probe *const probe = probe_new(&kind);
	ck_assert_int_eq(call_run(&probe->call, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_str_eq(probe->trace, "ADF");
	ck_assert_int_eq(accounts(), 1); /* it is committed nevertheless */
	call_free(&probe->call);
}
END_TEST

START_TEST(texts_that_do_not_fit_are_refused_before_anything_runs)
{
	static const struct call_kind kinds[] = {
		{.stages = {{.apply = probe_apply}}, .settle = probe_settle},
		{.stages = {{.apply = probe_apply}},
			.settle = probe_settle,
			.too_large = "The probe is too large."},
	};
	static uint8_t text[2 * ARENA_BYTES];
	struct error err = {0};
	struct probe *const probe = probe_new(&kinds[_i]);
	ck_assert(arena_copy(probe->call.arena, span_of(text, sizeof(text))).data == NULL);
	ck_assert_int_eq(call_run(&probe->call, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	if (kinds[_i].too_large != NULL)
		ck_assert_str_eq(err.text, kinds[_i].too_large);
	ck_assert_str_eq(probe->trace, "F");
	ck_assert_int_eq(accounts(), 0);
	call_free(&probe->call);
}
END_TEST

START_TEST(a_call_is_freed_whether_it_ran_or_not)
{
	static const struct call_kind kind = {.stages = {{.apply = probe_apply}},
		.settle = probe_settle,
		.release = probe_release};
	struct error err = {0};
	for (int runs = 0; runs < 2; runs++) {
		bool is_released = false;
		struct probe *const probe = probe_new(&kind);
		probe->is_released = &is_released;
		if (runs == 1)
			ck_assert_int_eq(call_run(&probe->call, &err), 0);
		ck_assert(!is_released);
		ck_assert_str_eq(probe->trace, runs == 1 ? "AS" : "");
		call_free(&probe->call);
		ck_assert(is_released);
		ck_assert_int_eq(accounts(), runs);
	}
	call_free(NULL);
}
END_TEST

struct owner {
	struct call *call;
	struct settled *settled;
};

static void free_call(void *owner)
{
	call_free(((struct owner *)owner)->call);
	settled_done(((struct owner *)owner)->settled);
}

static const struct call_kind freed_kinds[] = {
	{.stages = {{.help = probe_help}}},
	{.stages = {{.apply = probe_apply}}},
	{.stages = {{.begin = probe_begin}}},
	{.stages = {{.begin = probe_begin_at_once}}},
};

START_TEST(the_wake_may_free_the_call)
{
	struct probe *const probe = probe_new(&freed_kinds[_i]);
	struct owner owner = {&probe->call, settled_new()};
	call_start(&probe->call, free_call, &owner);
	settled_wait(owner.settled);
}
END_TEST

Suite *test_call_suite(void);
Suite *test_call_suite(void)
{
	Suite *const suite = suite_create("call");
	TCase *const calls = tcase_create("calls");
	tcase_add_checked_fixture(calls, set_up, tear_down);
	tcase_add_test(calls, stages_run_in_order_each_on_its_thread);
	tcase_add_test(calls, a_call_may_end_before_its_start_returns);
	tcase_add_test(calls, a_stage_runs_again_as_often_as_it_asks);
	tcase_add_test(calls, what_waits_has_its_turn_before_a_stage_runs_again);
	tcase_add_test(calls, all_stages_run_again);
	tcase_add_test(calls, a_call_may_end_without_the_stages_that_are_left);
	tcase_add_loop_test(
		calls, a_stage_that_fails_ends_the_call, 0, sizeof(failing) / sizeof(failing[0]));
	tcase_add_test(calls, a_failed_change_may_be_taken_back);
	tcase_add_test(calls, a_call_may_fail_behind_its_change);
	tcase_add_loop_test(calls, texts_that_do_not_fit_are_refused_before_anything_runs, 0, 2);
	tcase_add_test(calls, a_call_is_freed_whether_it_ran_or_not);
	tcase_add_loop_test(
		calls, the_wake_may_free_the_call, 0, sizeof(freed_kinds) / sizeof(freed_kinds[0]));
	suite_add_tcase(suite, calls);
	return suite;
}
