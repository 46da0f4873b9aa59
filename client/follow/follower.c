/* The loop `follow` alternates between a round of the stepper (round_once: ask for a path, advance
 * if there is one) and a wait for something newer (wait_for_newer). A failed round goes to
 * `recover`:
 *
 *   damage that an anchor may cure    the next round ignores the held step, once
 *   not published yet, server away    another round after a pause that grows
 *   the path was removed meanwhile    another round; with --once or --step only a few times
 *   anything else                     the follower ends
 *
 * While a step is applied and --exec runs, a prefetch thread downloads the next ones. A command
 * that failed is tried again after a pause, in rounds that find nothing newer. */
#include "client/follow/follower.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/follow/hook.h"
#include "client/follow/hook_report.h"
#include "client/follow/stepper.h"

enum {
	/* a reader that is far behind gains more from a fold than it loses by waiting for it */
	FOLD_WAIT_S = 10,
	LOST_PATHS_MAX = 3,
	/* the pause after a failed command: it doubles each time, up to EXEC_MOST_S or --poll */
	EXEC_FIRST_S = 5,
	EXEC_MOST_S = 60,
	GOODBYE_MS = 5000
};

struct follower {
	struct session *session;
	const struct follow_order *order;
	struct stepper stepper;
	struct retry pause;  /* after a failed round */
	int64_t deadline_ms; /* monotonic: until when --once waits */
	/* of the command for the current generation. While it is set, the lease stays in error. */
	struct error exec_failure;
	uint64_t exec_pause_s; /* until the failed command is tried again */
	bool is_hook_due;      /* the command has not been tried for what the start found */
};

static int start(struct follower *follower, const struct stepper_params *params, struct error *err);
static int run_due_hook(struct follower *follower, struct error *err);
static int finish_held(struct follower *follower, struct error *err);
static int run_hook(struct follower *follower, struct error *err);
static int run_command(struct follower *follower, struct error *err);
static void take_pause(struct follower *follower, const char *told);
static int follow(struct follower *follower, struct error *err);
static int wait_for_newer(struct follower *follower, struct error *err);
static int wait_for_next_try(struct follower *follower, struct error *err);
static int round_once(struct follower *follower, bool *out_held, struct error *err);
static int finish_moved(
	struct follower *follower, const struct stepper_round *round, struct error *err);
static int end_of_one(const struct follower *follower, struct error *err);
static int recover(struct follower *follower, const struct error *failure, struct error *err);
static void report_failed(struct follower *follower, const struct error *failure);
static bool may_pass(const struct follower *follower, const struct error *failure);

int follower_run(struct session *session, const struct follow_order *order, struct error *err)
{
	struct follower follower = {.session = session, .order = order};
	ASSERT(order->run != NULL && order->into != NULL);
	const struct stepper_params params = {
		.run = order->run,
		.into = order->into,
		.subset = order->subset,
		.replica = order->replica,
		.remote = &session->remote_options,
		.output = &session->output,
		.threads = order->threads,
		.poll_s = order->poll_s,
		.goodbye_ms = GOODBYE_MS,
		.is_volatile = order->is_volatile,
		.prefetches = !order->once && !order->has_step,
	};
	int result = start(&follower, &params, err);
	if (result == 0)
		result = follow(&follower, err);
	stepper_close(
		&follower.stepper, result == 0 || stop_reason(session->stop) != 0, result != 0);
	return result;
}

/* --exec for the held step waits for the first round: where that brings another step, the command
 * runs once, for that one. */
static int start(struct follower *follower, const struct stepper_params *params, struct error *err)
{
	const struct follow_order *const order = follower->order;
	if (stepper_open(&follower->stepper, params, follower->session, err) != 0)
		return -1;
	retry_init(&follower->pause, follower->session->stop, RETRY_FOREVER);
	if (!order->once) /* a call with --once is not a worker of the fleet */
		stepper_join(&follower->stepper);
	follower->deadline_ms = clock_monotonic_ms() + (int64_t)order->wait_s * 1000;
	return stepper_prove(&follower->stepper, &follower->is_hook_due, err);
}

/* Runs --exec for the step that the start found, if that is not done yet and the step is wanted. */
static int run_due_hook(struct follower *follower, struct error *err)
{
	const struct follow_order *const order = follower->order;
	const struct follow_folder *const folder = &follower->stepper.folder;
	const bool is_wanted =
		folder->has_current && (!order->has_step || order->step == folder->current.step);
	return follower->is_hook_due && is_wanted ? finish_held(follower, err) : 0;
}

/* Runs --exec for a step that was current before this round. The generations before it stay until
 * then: the engine may still read one. */
static int finish_held(struct follower *follower, struct error *err)
{
	return run_hook(follower, err) != 0
		? -1
		: follow_folder_trim(&follower->stepper.folder, follower->order->keep, err);
}

/* Runs --exec for the current generation, unless it has already succeeded for it. */
static int run_hook(struct follower *follower, struct error *err)
{
	const char *const command = follower->order->exec;
	follower->is_hook_due = false;
	if (command == NULL || !follower->stepper.folder.has_current ||
		follow_folder_has_executed(&follower->stepper.folder, command))
		return 0;
	return run_command(follower, err);
}

/* Runs the command with variables that describe the current generation. 0 even when the command
 * fails: the failure is reported and kept in exec_failure. -1 when a signal came. */
static int run_command(struct follower *follower, struct error *err)
{
	const struct follow_generation *const current = &follower->stepper.folder.current;
	ASSERT(follower->stepper.folder.has_current && follower->order->exec != NULL);
	char step[24];
	char previous[24] = "";
	char digest[DIGEST128_TEXT_BYTES];
	char *const relative = follow_folder_current(&follower->stepper.folder);
	/* absolute: the command may hand the path to a process in another folder */
	char *const absolute = realpath(relative, NULL);
	const char *const path = absolute != NULL ? absolute : relative;
	char *const told =
		hook_report_begin(follower->stepper.folder.files, follower->stepper.folder.path);
	snprintf(step, sizeof(step), "%" PRIu64, current->step);
	if (current->has_previous)
		snprintf(previous, sizeof(previous), "%" PRIu64, current->previous);
	digest128_format(&current->digest, digest);
	const bool is_taken =
		follow_folder_has_taken(&follower->stepper.folder, follower->order->exec);
	const struct hook_variable variables[] = {
		{"DELTABUCKET_RUN", follower->stepper.run.text},
		{"DELTABUCKET_STEP", step},
		{"DELTABUCKET_LABEL", current->label},
		{"DELTABUCKET_DIGEST", digest},
		{"DELTABUCKET_CURRENT", path},
		{"DELTABUCKET_PATH", path},
		{"DELTABUCKET_PREVIOUS_STEP", previous},
		{"DELTABUCKET_CHANGED", is_taken ? "0" : "1"},
		{"DELTABUCKET_TENSORS", current->tensors},
		{"DELTABUCKET_REPORT", told},
	};
	const struct hook hook = {follower->order->exec, variables,
		sizeof(variables) / sizeof(variables[0]), &follower->session->output};
	struct error *const failure = &follower->exec_failure;
	int status = 0;
	if (failure->kind == ERROR_NONE) /* otherwise the lease must stay in error */
		follow_report_wanted(&follower->stepper.report, REPLICA_STAGING, current->step);
	*failure = (struct error){0};
	const bool is_noted =
		is_taken || follow_folder_forget_taken(&follower->stepper.folder, failure) == 0;
	if (is_noted && hook_run(&hook, follower->session->stop, &status, failure) == 0 &&
		status != 0)
		error_set(failure, ERROR_IO, "the command for step %s ended with status %d", step,
			status);
	take_pause(follower, told);
	free(told);
	free(absolute);
	free(relative);
	if (stop_check(follower->session->stop, err) != 0)
		return -1; /* it runs again at the next start */
	if (failure->kind == ERROR_NONE)
		return follow_folder_set_executed(
			&follower->stepper.folder, follower->order->exec, err);
	follow_report_failure(&follower->stepper.report, "exec_failed", failure);
	follow_report_error(&follower->stepper.report, failure);
	return 0;
}

/* What a failed command has reported does not count: it is called again. */
static void take_pause(struct follower *follower, const char *told)
{
	uint64_t pause_ms;
	if (hook_report_end(follower->stepper.folder.files, told, &pause_ms) &&
		follower->exec_failure.kind == ERROR_NONE)
		follow_report_pause(&follower->stepper.report, pause_ms);
}

static int follow(struct follower *follower, struct error *err)
{
	const struct follow_order *const order = follower->order;
	for (bool is_held = false;;) {
		struct error failure = {0};
		int result = is_held ? wait_for_newer(follower, &failure) : 0;
		if (stepper_look_after(&follower->stepper, err) != 0)
			return -1;
		if (result == 0)
			result = round_once(follower, &is_held, &failure);
		if (result == 0) {
			retry_reset(&follower->pause);
			stepper_forget_told(&follower->stepper);
			if (order->once || order->has_step)
				return end_of_one(follower, err);
			continue;
		}
		is_held = false;
		stepper_stop_prefetch(&follower->stepper);
		if (recover(follower, &failure, err) != 0)
			return -1;
	}
}

/* Waits until something newer than the held step may be published, or the folder is gone. */
static int wait_for_newer(struct follower *follower, struct error *err)
{
	struct stepper *const stepper = &follower->stepper;
	if (follower->exec_failure.kind != ERROR_NONE)
		return wait_for_next_try(follower, err);
	if (stepper->prefetch != NULL) {
		prefetch_finish(stepper->prefetch);
		stepper->prefetch = NULL;
		return stop_check(follower->session->stop, err);
	}
	int found = 0;
	while (found == 0 && follow_folder_is_there(&stepper->folder))
		found = stepper_wait(stepper, follower->order->poll_s, err);
	return found < 0 ? -1 : 0;
}

/* Waits until something newer is published, or until the failed command is due again. */
static int wait_for_next_try(struct follower *follower, struct error *err)
{
	ASSERT(follower->stepper.folder.has_current && follower->exec_failure.kind != ERROR_NONE);
	const uint64_t doubled =
		follower->exec_pause_s == 0 ? EXEC_FIRST_S : 2 * follower->exec_pause_s;
	follower->exec_pause_s = doubled < EXEC_MOST_S ? doubled : EXEC_MOST_S;
	stepper_stop_prefetch(&follower->stepper);
	return stepper_wait(&follower->stepper,
		       follower->exec_pause_s < follower->order->poll_s ? follower->exec_pause_s
									: follower->order->poll_s,
		       err) < 0
		? -1
		: 0;
}

/* Asks for a path once and, if there is one, advances. *out_held: the wanted step is held. */
static int round_once(struct follower *follower, bool *out_held, struct error *err)
{
	const struct follow_order *const order = follower->order;
	struct stepper_round round = {
		.has_wanted = order->has_step, .wanted = order->step, .fold_wait_s = FOLD_WAIT_S};
	*out_held = false;
	if (stepper_round(&follower->stepper, &round, err) != 0)
		return -1;
	if (round.moved) {
		if (finish_moved(follower, &round, err) != 0)
			return -1;
	} else if (finish_held(follower, err) != 0) {
		return -1;
	} else if (order->once || order->has_step) {
		follow_report_held(&follower->stepper.report);
	}
	ASSERT(follower->stepper.folder.has_current);
	*out_held = true;
	if (follower->exec_failure.kind == ERROR_NONE)
		follow_report_state(&follower->stepper.report, REPLICA_READY);
	return 0;
}

/* Runs --exec for a step that has just come. */
static int finish_moved(
	struct follower *follower, const struct stepper_round *round, struct error *err)
{
	struct stepper *const stepper = &follower->stepper;
	follow_report_step(&stepper->report, &round->fetched, round->created_ms);
	follower->exec_pause_s = 0;
	return run_hook(follower, err) != 0
		? -1
		: follow_folder_trim(&stepper->folder, follower->order->keep, err);
}

/* Ends --once and --step, for which the step is held: fails if the command failed. */
static int end_of_one(const struct follower *follower, struct error *err)
{
	ASSERT(follower->stepper.folder.has_current);
	if (follower->exec_failure.kind == ERROR_NONE)
		return 0;
	*err = follower->exec_failure;
	return error_wrap(err, "step %" PRIu64 " is held, but --exec failed",
		follower->stepper.folder.current.step);
}

/* Decides what follows a failed round: 0 for another round, -1 to end with the error. */
static int recover(struct follower *follower, const struct error *failure, struct error *err)
{
	if (stop_check(follower->session->stop, err) != 0)
		return -1;
	const bool begins_anew = !follow_folder_is_there(&follower->stepper.folder) ||
		stepper_turn_to_anchor(&follower->stepper, failure);
	if (!begins_anew && run_due_hook(follower, err) != 0)
		return -1;
	report_failed(follower, failure);
	if (begins_anew)
		return 0;
	if (may_pass(follower, failure)) {
		stepper_tell_once(&follower->stepper, failure);
		if (follower->pause.attempt > 5)
			follower->pause.attempt =
				5; /* so that a trainer that starts is noticed within seconds */
		if (retry_again(&follower->pause, -1))
			return 0;
		return stop_check(follower->session->stop, err) != 0 ? -1 : 0;
	}
	*err = *failure;
	return -1;
}

/* What is not published yet hides no failure of the command for the held step. */
static void report_failed(struct follower *follower, const struct error *failure)
{
	if (!stepper_is_unpublished(failure))
		follow_report_error(&follower->stepper.report, failure);
	else if (follower->exec_failure.kind == ERROR_NONE)
		follow_report_state(&follower->stepper.report, REPLICA_IDLE);
}

/* Whether another round after a pause may succeed: when the failure may end by itself, or when the
 * trainer has yet to publish. */
static bool may_pass(const struct follower *follower, const struct error *failure)
{
	const struct follow_order *const order = follower->order;
	if (stop_reason(follower->session->stop) != 0)
		return false;
	if (stepper_is_unpublished(failure))
		return !order->once || clock_monotonic_ms() < follower->deadline_ms;
	if (stepper_is_lost(failure))
		return follower->pause.attempt < LOST_PATHS_MAX ||
			(!order->once && !order->has_step);
	return failure->kind == ERROR_UPSTREAM && !order->once;
}
