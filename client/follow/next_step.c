/* A round asks for a path. Where it finds nothing new, a wait follows: for the prefetch if that
 * runs, because it waits for the same, else in a long poll. A failed round or wait goes to
 * `recover`, which says whether another round may help before the time is over. */
#include "client/follow/next_step.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"

enum {
	FOLD_WAIT_S = 10, /* as in follower.c */
	LOST_PATHS_MAX = 3,
	PAUSES_MOST = 5, /* so that a trainer that starts is noticed within seconds */
	LOOK_MS = 200,   /* for the word to stop, while a prefetch is waited for */
	SHORT_POLL_MS = 250,
	KEPT_GENERATIONS = 1
};

struct waiting {
	struct stepper *stepper;
	const struct next_order *order;
	int64_t deadline_ms; /* monotonic; INT64_MAX: never */
	unsigned attempt;    /* failed rounds one after the other */
	bool is_reached;     /* the server has answered in this call */
};

static int round_once(struct waiting *waiting, struct stepper_round *round, struct error *err);
static int64_t left_ms(const struct waiting *waiting);
static uint64_t whole_seconds(int64_t ms, uint64_t most);
static int wait_for_newer(struct waiting *waiting, struct error *err);
static int wait_for_prefetch(struct waiting *waiting, struct error *err);
static int recover(struct waiting *waiting, const struct error *failure, struct error *err);
static bool may_pass(const struct waiting *waiting, const struct error *failure);
static void report_failed(struct stepper *stepper, const struct error *failure);
static bool pause_before_next(struct waiting *waiting, const struct error *failure);

int next_step(struct stepper *stepper, const struct next_order *order, struct stepper_round *round,
	struct error *err)
{
	struct waiting waiting = {
		.stepper = stepper,
		.order = order,
		.deadline_ms =
			order->wait_ms < 0 ? INT64_MAX : clock_monotonic_ms() + order->wait_ms,
	};
	for (;;) {
		struct error failure = {0};
		int result = stepper_look_after(stepper, err);
		if (result != 0)
			return -1;
		result = round_once(&waiting, round, &failure);
		if (result == 0)
			result = wait_for_newer(&waiting, &failure);
		else if (result > 0)
			return 1;
		if (result == 0)
			return 0;
		if (result < 0) {
			stepper_stop_prefetch(stepper);
			result = recover(&waiting, &failure, err);
			if (result <= 0)
				return result;
		}
	}
}

/* 1 when a step is held that the caller wants; 0 when that will come later. */
static int round_once(struct waiting *waiting, struct stepper_round *round, struct error *err)
{
	struct stepper *const stepper = waiting->stepper;
	const struct next_order *const order = waiting->order;
	*round = (struct stepper_round){
		.has_wanted = order->has_wanted,
		.wanted = order->wanted,
		.fold_wait_s = whole_seconds(left_ms(waiting), FOLD_WAIT_S),
	};
	if (stepper_round(stepper, round, err) != 0)
		return -1;
	waiting->is_reached = true;
	waiting->attempt = 0;
	stepper_forget_told(stepper);
	if (round->moved)
		return stepper->memory != NULL ||
				follow_folder_trim(&stepper->folder, KEPT_GENERATIONS, err) == 0
			? 1
			: -1;
	if (order->is_seen && !order->has_wanted)
		return 0;
	round->created_ms = stepper_created(stepper);
	return 1;
}

static int64_t left_ms(const struct waiting *waiting)
{
	return waiting->deadline_ms == INT64_MAX ? INT64_MAX
						 : waiting->deadline_ms - clock_monotonic_ms();
}

static uint64_t whole_seconds(int64_t ms, uint64_t most)
{
	if (ms <= 0)
		return 0;
	return (uint64_t)ms / 1000 < most ? (uint64_t)ms / 1000 : most;
}

/* 1 when there may be something newer, 0 when the time is over. */
static int wait_for_newer(struct waiting *waiting, struct error *err)
{
	struct stepper *const stepper = waiting->stepper;
	if (stepper->prefetch != NULL)
		return wait_for_prefetch(waiting, err);
	for (;;) {
		const int64_t left = left_ms(waiting);
		if (left <= 0)
			return 0;
		const uint64_t wait_s = whole_seconds(left, stepper->params->poll_s);
		const int found = stepper_wait(stepper, wait_s, err);
		if (found != 0 || !follow_folder_is_there(&stepper->folder))
			return found < 0 ? -1 : 1;
		/* less than the second is left that the server can wait */
		if (wait_s == 0)
			stop_sleep(stepper->session->stop,
				left < SHORT_POLL_MS ? left : SHORT_POLL_MS);
	}
}

/* The prefetch outlives a wait that finds nothing. */
static int wait_for_prefetch(struct waiting *waiting, struct error *err)
{
	struct stepper *const stepper = waiting->stepper;
	for (;;) {
		const int64_t left = left_ms(waiting);
		if (stop_check(stepper->session->stop, err) != 0)
			return -1;
		if (prefetch_wait(stepper->prefetch, left < LOOK_MS ? left : LOOK_MS))
			break;
		if (left <= 0)
			return 0;
	}
	prefetch_finish(stepper->prefetch);
	stepper->prefetch = NULL;
	return 1;
}

/* 1 for another round, 0 when the time is over and nothing is wrong, -1 to end with the error. */
static int recover(struct waiting *waiting, const struct error *failure, struct error *err)
{
	struct stepper *const stepper = waiting->stepper;
	if (stop_check(stepper->session->stop, err) != 0)
		return -1;
	const bool begins_anew = !follow_folder_is_there(&stepper->folder) ||
		stepper_turn_to_anchor(stepper, failure);
	report_failed(stepper, failure);
	if (begins_anew)
		return 1;
	waiting->is_reached = waiting->is_reached || !stepper_is_away(stepper, failure);
	if (may_pass(waiting, failure)) {
		stepper_tell_once(stepper, failure);
		if (pause_before_next(waiting, failure))
			return 1;
		if (stop_check(stepper->session->stop, err) != 0)
			return -1;
		if (waiting->is_reached && !stepper_is_lost(failure))
			return 0;
	}
	*err = *failure;
	return -1;
}

static bool may_pass(const struct waiting *waiting, const struct error *failure)
{
	if (stepper_is_lost(failure))
		return waiting->attempt < LOST_PATHS_MAX || !waiting->order->has_wanted;
	return stepper_is_unpublished(failure) || stepper_is_away(waiting->stepper, failure);
}

static void report_failed(struct stepper *stepper, const struct error *failure)
{
	if (stepper_is_unpublished(failure))
		follow_report_state(&stepper->report, REPLICA_IDLE);
	else
		follow_report_error(&stepper->report, failure);
}

/* Pauses before another round, the longer the more have failed. A path that was removed is worth a
 * few rounds even if no time is left. False when the time is over or the word to stop has come. */
static bool pause_before_next(struct waiting *waiting, const struct error *failure)
{
	const int64_t left = left_ms(waiting);
	uint32_t random;
	if (left <= 0)
		return stepper_is_lost(failure) && waiting->attempt++ < LOST_PATHS_MAX;
	random_bytes(&random, sizeof(random));
	const unsigned attempt =
		waiting->attempt < PAUSES_MOST ? waiting->attempt : (unsigned)PAUSES_MOST;
	const int64_t pause = retry_delay_ms(attempt, -1, random);
	waiting->attempt++;
	return stop_sleep(waiting->stepper->session->stop, pause < left ? pause : left);
}
