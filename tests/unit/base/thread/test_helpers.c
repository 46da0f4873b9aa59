#include "base/thread/helpers.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "tests/unit/unit.h"

enum { JOBS = 500 };

struct ordered_job {
	struct helper_job job;
	unsigned number;
	unsigned *next;
	atomic_int *inside;
	bool *in_order;
};

static void ordered_run(struct helper_job *job)
{
	struct ordered_job *const ordered = (struct ordered_job *)job;
	const bool alone = atomic_fetch_add(ordered->inside, 1) == 0;
	if (!alone || *ordered->next != ordered->number)
		*ordered->in_order = false;
	++*ordered->next;
	atomic_fetch_sub(ordered->inside, 1);
	free(ordered);
}

START_TEST(jobs_of_a_lane_run_in_order_and_one_at_a_time)
{
	struct helpers *const helpers = helpers_start(4);
	struct helper_lane lanes[3] = {0};
	unsigned next[3] = {0};
	atomic_int inside[3] = {0};
	bool in_order[3] = {true, true, true};
	for (unsigned i = 0; i < JOBS; i++)
		for (unsigned lane = 0; lane < 3; lane++) {
			struct ordered_job *const job = memory_new(sizeof *job);
			*job = (struct ordered_job){{.run = ordered_run}, i, &next[lane],
				&inside[lane], &in_order[lane]};
			helpers_submit(helpers, &lanes[lane], &job->job);
		}
	helpers_stop(helpers);
	for (unsigned lane = 0; lane < 3; lane++) {
		ck_assert_uint_eq(next[lane], JOBS);
		ck_assert(in_order[lane]);
	}
}
END_TEST

struct meeting {
	struct lock lock;
	struct lock_condition changed;
	unsigned present;
};
struct meeting_job {
	struct helper_job job;
	struct meeting *meeting;
};

/* Ends only when the other lane's job runs too. */
static void meeting_run(struct helper_job *job)
{
	struct meeting *const meeting = ((struct meeting_job *)job)->meeting;
	lock_enter(&meeting->lock);
	meeting->present++;
	lock_broadcast(&meeting->changed);
	while (meeting->present < 2)
		lock_wait(&meeting->lock, &meeting->changed);
	lock_leave(&meeting->lock);
}

START_TEST(lanes_run_side_by_side)
{
	struct helpers *const helpers = helpers_start(2);
	struct meeting meeting = {0};
	lock_init(&meeting.lock, LOCK_EXCHANGE);
	lock_condition_init(&meeting.changed);
	struct helper_lane lanes[2] = {0};
	struct meeting_job jobs[2] = {
		{{.run = meeting_run}, &meeting}, {{.run = meeting_run}, &meeting}};
	for (int i = 0; i < 2; i++)
		helpers_submit(helpers, &lanes[i], &jobs[i].job);
	helpers_stop(helpers);
	ck_assert_uint_eq(meeting.present, 2);
	lock_condition_release(&meeting.changed);
	lock_release(&meeting.lock);
}
END_TEST

/* Waits until the test has looked. */
static void gate_run(struct helper_job *job)
{
	struct meeting *const gate = ((struct meeting_job *)job)->meeting;
	lock_enter(&gate->lock);
	while (gate->present == 0)
		lock_wait(&gate->lock, &gate->changed);
	lock_leave(&gate->lock);
}

START_TEST(jobs_that_wait_are_counted)
{
	struct helpers *const helpers = helpers_start(1);
	struct meeting gate = {0};
	lock_init(&gate.lock, LOCK_EXCHANGE);
	lock_condition_init(&gate.changed);
	struct helper_lane lanes[2] = {0};
	struct meeting_job jobs[4];
	ck_assert_uint_eq(helpers_waiting(helpers), 0);
	for (int i = 0; i < 4; i++) {
		jobs[i] = (struct meeting_job){{.run = gate_run}, &gate};
		helpers_submit(helpers, &lanes[i % 2], &jobs[i].job);
	}
	while (helpers_waiting(helpers) > 3)
		sched_yield();
	ck_assert_uint_eq(helpers_waiting(helpers), 3);
	lock_enter(&gate.lock);
	gate.present = 1;
	lock_broadcast(&gate.changed);
	lock_leave(&gate.lock);
	while (helpers_waiting(helpers) > 0)
		sched_yield();
	helpers_stop(helpers);
	lock_condition_release(&gate.changed);
	lock_release(&gate.lock);
}
END_TEST

struct owner {
	struct helper_lane lane;
	struct helper_job job;
	atomic_uint *freed;
	struct helpers *helpers;
	unsigned again;
};

/* The last job of a lane may free the lane with its owner; before that it may submit itself
 * again. */
static void owner_run(struct helper_job *job)
{
	struct owner *const owner = (struct owner *)((char *)job - offsetof(struct owner, job));
	if (owner->again > 0) {
		owner->again--;
		helpers_submit(owner->helpers, &owner->lane, job);
		return;
	}
	atomic_fetch_add(owner->freed, 1);
	free(owner);
}

START_TEST(a_job_may_free_its_lane_and_submit_again)
{
	struct helpers *const helpers = helpers_start(3);
	atomic_uint freed = 0;
	for (unsigned i = 0; i < JOBS; i++) {
		struct owner *const owner = memory_new(sizeof *owner);
		*owner = (struct owner){.job = {.run = owner_run},
			.freed = &freed,
			.helpers = helpers,
			.again = i % 4};
		helpers_submit(helpers, &owner->lane, &owner->job);
	}
	helpers_stop(helpers);
	ck_assert_uint_eq(freed, JOBS);
}
END_TEST

START_TEST(stopping_idle_helpers_returns)
{
	helpers_stop(helpers_start(1));
	helpers_stop(NULL);
}
END_TEST

Suite *test_helpers_suite(void);
Suite *test_helpers_suite(void)
{
	Suite *const suite = suite_create("helpers");
	TCase *const tcase = tcase_create("helpers");
	tcase_add_test(tcase, jobs_of_a_lane_run_in_order_and_one_at_a_time);
	tcase_add_test(tcase, lanes_run_side_by_side);
	tcase_add_test(tcase, jobs_that_wait_are_counted);
	tcase_add_test(tcase, a_job_may_free_its_lane_and_submit_again);
	tcase_add_test(tcase, stopping_idle_helpers_returns);
	suite_add_tcase(suite, tcase);
	return suite;
}
