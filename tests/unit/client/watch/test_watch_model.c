#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "client/watch/watch_model.h"

enum { TOLD_BYTES = 1024 };

struct told {
	char text[TOLD_BYTES]; /* the names of the events, with step or worker */
};

static void tell(void *owner, const struct watch_event *event)
{
	struct told *const told = owner;
	const size_t used = strlen(told->text);
	snprintf(told->text + used, sizeof(told->text) - used, "%s ", watch_kind_name(event->kind));
	const size_t end = strlen(told->text);
	if (event->worker != NULL)
		snprintf(told->text + end, sizeof(told->text) - end, "%s ", event->worker->id);
}

static struct watch_worker worker_of(const char *id, enum replica_state state, uint64_t behind)
{
	struct watch_worker worker = {.state = state,
		.has_step = true,
		.step = 9 - behind,
		.has_lag = true,
		.behind_steps = behind,
		.behind_s = behind * 10};
	snprintf(worker.id, sizeof(worker.id), "%s", id);
	return worker;
}

static void take(struct watch_model *model, const struct watch_worker *workers, size_t count)
{
	struct watch_fleet fleet = {.is_listed = true, .count = count};
	fleet.workers = memory_copy(workers, count * sizeof(*workers));
	for (size_t i = 0; i < count; i++)
		fleet.counts.states[workers[i].state]++;
	watch_model_take_fleet(model, &fleet);
	ck_assert_ptr_null(fleet.workers);
}

START_TEST(changes_of_a_run_are_told_once)
{
	struct told told = {{0}};
	struct watch_model model = {.tell = tell, .owner = &told};
	struct watch_run run = {.epoch = 1,
		.has_head = true,
		.head = 8,
		.has_step = true,
		.verified = STEP_PROOF_OK};
	watch_model_take_run(&model, &run);
	watch_model_take_run(&model, &run);
	ck_assert_str_eq(told.text, "");
	run.head = 9;
	run.verified = STEP_PROOF_PENDING;
	watch_model_take_run(&model, &run);
	run.verified = STEP_PROOF_FAILED;
	watch_model_take_run(&model, &run);
	run.rollback = (struct rollback_message){.is_on = true, .step = 7};
	watch_model_take_run(&model, &run);
	watch_model_take_run(&model, &run);
	run.rollback.step = 6;
	run.epoch = 2;
	watch_model_take_run(&model, &run);
	run.rollback.is_on = false;
	watch_model_take_run(&model, &run);
	ck_assert_str_eq(
		told.text, "published proof_failed rolled_back rolled_back writer forwarded ");
	watch_model_release(&model);
}
END_TEST

START_TEST(workers_that_fail_and_come_back_are_told)
{
	struct told told = {{0}};
	struct watch_model model = {.tell = tell, .owner = &told};
	struct watch_worker workers[] = {worker_of("a", REPLICA_READY, 0),
		worker_of("b", REPLICA_READY, 0), worker_of("c", REPLICA_ERROR, 3)};
	take(&model, workers, 3);
	ck_assert_str_eq(told.text, ""); /* the first time tells nothing */
	ck_assert_uint_eq(model.lag.steps, 3);
	ck_assert_uint_eq(model.lag.seconds, 30);
	workers[0].expired = true;
	workers[1].state = REPLICA_ERROR;
	workers[2].state = REPLICA_FETCHING;
	take(&model, workers, 3);
	ck_assert_str_eq(told.text, "worker_expired a worker_failed b worker_back c fleet ");
	told.text[0] = '\0';
	workers[0].expired = false;
	take(&model, workers, 1); /* the others are gone, in order */
	ck_assert_str_eq(told.text, "worker_back a fleet ");
	watch_model_release(&model);
}
END_TEST

START_TEST(counts_alone_keep_the_workers)
{
	struct watch_model model = {.has_run = true, .run = {.has_head = true, .head = 9}};
	const struct watch_worker workers[] = {worker_of("a", REPLICA_READY, 1)};
	struct watch_fleet counts = {.counts = {.has_oldest = true, .oldest = 4}};
	take(&model, workers, 1);
	watch_model_take_fleet(&model, &counts);
	ck_assert_uint_eq(model.fleet.count, 1);
	ck_assert_uint_eq(model.lag.steps, 5); /* the counts are newer than the list */
	watch_model_release(&model);
}
END_TEST

START_TEST(the_pace_is_that_of_the_last_steps)
{
	struct watch_model model = {.has_run = false};
	ck_assert_int_eq(watch_model_pace_ms(&model), 0);
	for (uint64_t step = 0; step < 40; step++)
		watch_model_note_step(&model, step, (int64_t)(step < 20 ? step : 20 + 100 * step));
	watch_model_note_step(&model, 12, 1); /* an earlier one changes nothing */
	ck_assert_int_eq(watch_model_pace_ms(&model), 100);
}
END_TEST

Suite *test_watch_model_suite(void);
Suite *test_watch_model_suite(void)
{
	Suite *const suite = suite_create("watch_model");
	TCase *const tests = tcase_create("watch_model");
	tcase_add_test(tests, changes_of_a_run_are_told_once);
	tcase_add_test(tests, workers_that_fail_and_come_back_are_told);
	tcase_add_test(tests, counts_alone_keep_the_workers);
	tcase_add_test(tests, the_pace_is_that_of_the_last_steps);
	suite_add_tcase(suite, tests);
	return suite;
}
