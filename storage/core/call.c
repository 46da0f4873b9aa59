/* Drives the stages. Each stage ends in proceed(), on the thread on which it ran. proceed() hands
 * the call to the thread of the next stage, or ends it. Nothing touches the call after it was
 * handed over: it may have ended on the other thread, and be freed. */
#include "storage/core/call.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"

struct call_wait {
	struct lock lock;
	struct lock_condition ended;
	bool is_over; /* guarded by lock */
};

static void run_stage(struct call *call);
static const struct call_stage *stage_of(const struct call *call);
static void submit_change(struct call *call);
static int call_place(struct change *change, struct error *err);
static struct call *call_of_change(struct change *change);
static int call_apply(struct change *change, struct db *db, struct error *err);
static void call_applied(struct change *change);
static void proceed(struct call *call, enum call_next next);
static bool is_behind_last(const struct call *call);
static void call_end(struct call *call);
static void call_help(struct helper_job *job);
static struct call *call_of_job(struct helper_job *job);
static void call_fail(struct call *call, const struct error *err);
static void call_wake_waiter(void *owner);

void *call_new(size_t bytes, const struct call_kind *kind, struct store *store, size_t arena_bytes)
{
	ASSERT(bytes >= sizeof(struct call));
	struct call *const call = memory_new(bytes);
	call->kind = kind;
	call->store = store;
	call->arena = arena_new(arena_bytes);
	call->lane = &call->own_lane;
	return call;
}

void call_start(struct call *call, void (*wake)(void *owner), void *owner)
{
	struct error err = {0};
	ASSERT(wake != NULL && call->wake == NULL); /* it is started once */
	call->wake = wake;
	call->owner = owner;
	if (!arena_overflowed(call->arena)) {
		run_stage(call);
		return;
	}
	error_set(&err, ERROR_TOO_LARGE, "%s",
		call->kind->too_large != NULL ? call->kind->too_large
					      : "The texts of the request are too large.");
	call_fail(call, &err);
}

void call_resume(struct call *call, const struct error *err)
{
	ASSERT(stage_of(call)->begin != NULL);
	if (err != NULL)
		call_fail(call, err);
	else
		proceed(call, CALL_NEXT);
}

int call_run(struct call *call, struct error *err)
{
	struct call_wait wait = {.is_over = false};
	lock_init(&wait.lock, LOCK_CALL_WAIT);
	lock_condition_init(&wait.ended);
	call_start(call, call_wake_waiter, &wait);
	lock_enter(&wait.lock);
	while (!wait.is_over)
		lock_wait(&wait.lock, &wait.ended);
	lock_leave(&wait.lock);
	lock_condition_release(&wait.ended);
	lock_release(&wait.lock);
	return call_outcome(call, err);
}

int call_outcome(const struct call *call, struct error *err)
{
	if (!call->failed)
		return 0;
	*err = call->error;
	return -1;
}

void call_free(struct call *call)
{
	if (call == NULL)
		return;
	if (call->kind->release != NULL)
		call->kind->release(call);
	arena_free(call->arena);
	free(call);
}

static void run_stage(struct call *call)
{
	const struct call_stage *const stage = stage_of(call);
	ASSERT((stage->help != NULL) + (stage->apply != NULL) + (stage->begin != NULL) == 1);
	ASSERT(stage->apply != NULL || (stage->place == NULL && stage->applied == NULL));
	if (stage->begin != NULL) {
		stage->begin(call);
	} else if (stage->apply != NULL) {
		submit_change(call);
	} else {
		call->job.run = call_help;
		helpers_submit(store_helpers(call->store), call->lane, &call->job);
	}
}

static const struct call_stage *stage_of(const struct call *call)
{
	return &call->kind->stages[call->stage];
}

static void submit_change(struct call *call)
{
	const struct call_stage *const stage = stage_of(call);
	call->change = (struct change){
		.place = stage->place != NULL ? call_place : NULL,
		.apply = call_apply,
		.done = call_applied,
	};
	committer_submit(store_committer(call->store), &call->change);
}

static int call_place(struct change *change, struct error *err)
{
	struct call *const call = call_of_change(change);
	return stage_of(call)->place(call, err);
}

static struct call *call_of_change(struct change *change)
{
	return (struct call *)((uint8_t *)change - offsetof(struct call, change));
}

static int call_apply(struct change *change, struct db *db, struct error *err)
{
	struct call *const call = call_of_change(change);
	return stage_of(call)->apply(call, db, err);
}

static void call_applied(struct change *change)
{
	struct call *const call = call_of_change(change);
	const struct call_stage *const stage = stage_of(call);
	call->failed = change->failed;
	if (call->failed)
		call->error = change->error;
	enum call_next next = call->failed ? CALL_FAILS : CALL_NEXT;
	if (stage->applied != NULL)
		next = stage->applied(call);
	call->failed = next == CALL_FAILS;
	proceed(call, next);
}

static void proceed(struct call *call, enum call_next next)
{
	ASSERT(next == CALL_FAILS || !call->failed);
	if (next == CALL_FIRST)
		call->stage = 0;
	else if (next == CALL_NEXT)
		call->stage++;
	if (next == CALL_FAILS || next == CALL_ENDS || is_behind_last(call))
		call_end(call);
	else
		run_stage(call);
}

static bool is_behind_last(const struct call *call)
{
	if (call->stage == CALL_STAGES_MAX)
		return true;
	const struct call_stage *const stage = stage_of(call);
	return stage->help == NULL && stage->apply == NULL && stage->begin == NULL;
}

static void call_end(struct call *call)
{
	if (call->kind->settle != NULL)
		call->kind->settle(call);
	call->wake(call->owner);
}

static void call_help(struct helper_job *job)
{
	struct call *const call = call_of_job(job);
	const enum call_next next = stage_of(call)->help(call, &call->error);
	call->failed = next == CALL_FAILS;
	proceed(call, next);
}

static struct call *call_of_job(struct helper_job *job)
{
	return (struct call *)((uint8_t *)job - offsetof(struct call, job));
}

static void call_fail(struct call *call, const struct error *err)
{
	call->failed = true;
	call->error = *err;
	call_end(call);
}

static void call_wake_waiter(void *owner)
{
	struct call_wait *const wait = owner;
	lock_enter(&wait->lock);
	wait->is_over = true;
	lock_broadcast(&wait->ended);
	lock_leave(&wait->lock);
}
