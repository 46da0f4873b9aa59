/* The loop `follow` alternates between a round (round_once: ask for a path, advance if there is
 * one) and a wait for something newer (wait_for_newer). A failed round goes to `recover`:
 *
 *   damage that an anchor may cure    the next round ignores the held step (from_anchor), once
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
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/follow/follow_report.h"
#include "client/follow/hook.h"
#include "client/follow/prefetch.h"
#include "client/local/proven_files.h"
#include "client/remote/remote_run.h"
#include "client/work/progress.h"
#include "client/transfer/catch_up.h"
#include "weights/model/checkpoint.h"

enum {
	/* a reader that is far behind gains more from a fold than it loses by waiting for it */
	FOLD_WAIT_S = 10,
	LOST_PATHS_MAX = 3,
	/* the pause after a failed command: it doubles each time, up to EXEC_MOST_S or --poll */
	EXEC_FIRST_S = 5,
	EXEC_MOST_S = 60
};

struct follower {
	struct session *session;
	const struct follow_order *order;
	struct run_name run;
	struct remote *remote;
	struct follow_folder folder;
	/* writes weights and downloads; state and sidecars are always synced */
	struct file_ops files;
	struct arena *arena; /* holds the answers of one round */
	struct retry pause;  /* after a failed round */
	int64_t deadline_ms; /* monotonic: until when --once waits */
	struct follow_report report;
	bool waiting_told; /* that the step is not published yet */
	bool lost_told;    /* that the server is away */
	/* of the command for the current generation. While it is set, the lease stays in error. */
	struct error exec_failure;
	uint64_t exec_pause_s;     /* until the failed command is tried again */
	bool is_hook_due;          /* the command has not been tried for what the start found */
	bool from_anchor;          /* this round ignores the step that is held */
	char *work;                /* folder for downloads */
	char *id;                  /* of this worker in the fleet */
	struct prefetch *prefetch; /* fetches the next steps; NULL: not running */
};

static int open_follower(struct follower *follower, struct error *err);
static int open_folder(struct follower *follower, struct error *err);
static int check_held(struct follower *follower, struct error *err);
static const char *part_of(const struct follower *follower);
static int prove_held(struct follower *follower, const char *path, struct error *err);
static int prove_tensors(const struct follower *follower, const char *path,
	struct work_watch *watch, struct error *err);
static int run_due_hook(struct follower *follower, struct error *err);
static int finish_held(struct follower *follower, struct error *err);
static int run_hook(struct follower *follower, struct error *err);
static int run_command(struct follower *follower, struct error *err);
static int follow(struct follower *follower, struct error *err);
static int wait_for_newer(struct follower *follower, struct error *err);
static int wait_for_next_try(struct follower *follower, struct error *err);
static void stop_prefetch(struct follower *follower);
static void new_answers(struct follower *follower);
static int look_after_folder(struct follower *follower, struct error *err);
static int round_once(struct follower *follower, bool *out_held, struct error *err);
static int find_path(struct follower *follower, struct path_message *out, struct error *err);
static bool is_unpublished(const struct error *failure);
static int advance(struct follower *follower, const struct path_message *path, struct error *err);
static int find_manifest(
	struct follower *follower, uint64_t step, struct step_message *out, struct error *err);
static char *text_of(struct span text);
static int bring(struct follower *follower, const struct catch_up_params *params,
	const struct follow_swap *swap, struct catch_up_result *out, struct error *err);
static void start_prefetch(struct follower *follower, const struct follow_swap *swap);
static int note_files(const struct catch_up_params *params, struct follow_swap *swap,
	struct proven_files *out, struct error *err);
static int end_of_one(const struct follower *follower, struct error *err);
static int recover(struct follower *follower, const struct error *failure, struct error *err);
static void report_failed(struct follower *follower, const struct error *failure);
static bool turn_to_anchor(struct follower *follower, const struct error *failure);
static bool may_pass(const struct follower *follower, const struct error *failure);
static void tell_once(struct follower *follower, const struct error *failure);

int follower_run(struct session *session, const struct follow_order *order, struct error *err)
{
	struct follower follower = {.session = session, .order = order, .folder = {.lock_fd = -1}};
	ASSERT(order->run != NULL && order->into != NULL);
	follower.files = *session->files;
	follower.files.is_volatile = order->is_volatile;
	follower.report = (struct follow_report){
		.session = session, .run = &follower.run, .folder = &follower.folder};
	if (run_name_init(&follower.run, order->run, err) != 0)
		return -1;
	int result = open_follower(&follower, err);
	if (result == 0)
		result = follow(&follower, err);
	stop_prefetch(&follower);
	lease_stop(follower.report.lease, result == 0 || stop_reason(session->stop) != 0);
	free(follower.id);
	free(follower.work);
	arena_free(follower.arena);
	remote_free(follower.remote);
	if (result != 0)
		follow_folder_abandon(&follower.folder);
	follow_folder_close(&follower.folder);
	run_name_release(&follower.run);
	return result;
}

static int open_follower(struct follower *follower, struct error *err)
{
	struct session *const session = follower->session;
	if (open_folder(follower, err) != 0)
		return -1;
	follower->work = follow_folder_incoming(&follower->folder);
	follower->remote = session_connect(session, err);
	if (follower->remote == NULL)
		return -1;
	retry_init(&follower->pause, session->stop, RETRY_FOREVER);
	follower->id = follower->order->replica != NULL ? memory_copy_text(follower->order->replica)
							: lease_default_id(follower->order->into);
	const struct lease_params lease = {
		.remote = &session->remote_options,
		.run = &follower->run,
		.id = follower->id,
		.tensors = follower->order->subset != NULL ? follower->order->subset->text : NULL,
		.output = &session->output,
	};
	if (!follower->order->once) /* a call with --once is not a worker of the fleet */
		follower->report.lease = lease_start(&lease);
	follower->deadline_ms = clock_monotonic_ms() + (int64_t)follower->order->wait_s * 1000;
	return check_held(follower, err);
}

static int open_folder(struct follower *follower, struct error *err)
{
	const struct session *const session = follower->session;
	return follow_folder_open(&follower->folder, session->files, follower->order->into,
		session->remote_options.endpoint, follower->run.text, err);
}

/* Proves the held step at the start, because its files may have changed on disk meanwhile; a step
 * that is damaged is not used as a base. --exec waits for the first round: where that brings
 * another step, the command runs once, for that one. */
static int check_held(struct follower *follower, struct error *err)
{
	struct follow_folder *const folder = &follower->folder;
	if (folder->has_current && strcmp(folder->current.tensors, part_of(follower)) != 0) {
		output_note(&follower->session->output,
			"the folder holds another part of the model; the wanted part is fetched "
			"from an anchor");
		follow_folder_distrust(folder);
	}
	if (!folder->has_current)
		return 0;
	struct error failure = {0};
	char *const path = follow_folder_current(folder);
	const int result = prove_held(follower, path, &failure);
	if (result != 0)
		error_wrap(&failure, "%s is damaged", path);
	free(path);
	if (stop_check(follower->session->stop, err) != 0)
		return -1;
	follower->is_hook_due = result == 0;
	if (result == 0)
		return 0;
	follow_report_failure(&follower->report, "damaged", &failure);
	follow_folder_distrust(folder);
	return 0;
}

/* The part of each step that is followed; "": all of it. */
static const char *part_of(const struct follower *follower)
{
	return follower->order->subset != NULL ? follower->order->subset->text : "";
}

static int prove_held(struct follower *follower, const char *path, struct error *err)
{
	struct session *const session = follower->session;
	const struct proven_files *const files = &follower->folder.current.files;
	struct progress *const progress = progress_new(
		"checking the held step", proven_files_bytes(files), session->progress);
	struct work_watch *const watch = progress_watch(progress, session->stop);
	const int result = files->count == 0
		? prove_tensors(follower, path, watch, err)
		: proven_files_check(files, path, follower->order->threads, watch, err);
	progress_free(progress);
	return result;
}

/* For a generation of an older version, whose sidecar does not list the files: proves only the
 * tensors, by their digest. */
static int prove_tensors(const struct follower *follower, const char *path,
	struct work_watch *watch, struct error *err)
{
	const struct follow_generation *const current = &follower->folder.current;
	ASSERT(follower->folder.has_current);
	struct digest128 digest;
	if (catch_up_folder_digest(path, follower->order->threads, watch, &digest, err) != 0)
		return -1;
	return digest128_equal(&digest, &current->held)
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "its tensors differ from the digest of step %" PRIu64, current->step);
}

/* Runs --exec for the step that the start found, if that is not done yet and the step is wanted. */
static int run_due_hook(struct follower *follower, struct error *err)
{
	const struct follow_order *const order = follower->order;
	const struct follow_folder *const folder = &follower->folder;
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
		: follow_folder_trim(&follower->folder, follower->order->keep, err);
}

/* Runs --exec for the current generation, unless it has already succeeded for it. */
static int run_hook(struct follower *follower, struct error *err)
{
	const char *const command = follower->order->exec;
	follower->is_hook_due = false;
	if (command == NULL || !follower->folder.has_current ||
		follow_folder_has_executed(&follower->folder, command))
		return 0;
	return run_command(follower, err);
}

/* Runs the command with variables that describe the current generation. 0 even when the command
 * fails: the failure is reported and kept in exec_failure. -1 when a signal came. */
static int run_command(struct follower *follower, struct error *err)
{
	const struct follow_generation *const current = &follower->folder.current;
	ASSERT(follower->folder.has_current && follower->order->exec != NULL);
	char step[24];
	char previous[24] = "";
	char digest[DIGEST128_TEXT_BYTES];
	char *const relative = follow_folder_current(&follower->folder);
	/* absolute: the command may hand the path to a process in another folder */
	char *const absolute = realpath(relative, NULL);
	const char *const path = absolute != NULL ? absolute : relative;
	snprintf(step, sizeof(step), "%" PRIu64, current->step);
	if (current->has_previous)
		snprintf(previous, sizeof(previous), "%" PRIu64, current->previous);
	digest128_format(&current->digest, digest);
	const bool is_taken = follow_folder_has_taken(&follower->folder, follower->order->exec);
	const struct hook_variable variables[] = {
		{"DELTABUCKET_RUN", follower->run.text},
		{"DELTABUCKET_STEP", step},
		{"DELTABUCKET_LABEL", current->label},
		{"DELTABUCKET_DIGEST", digest},
		{"DELTABUCKET_CURRENT", path},
		{"DELTABUCKET_PATH", path},
		{"DELTABUCKET_PREVIOUS_STEP", previous},
		{"DELTABUCKET_CHANGED", is_taken ? "0" : "1"},
		{"DELTABUCKET_TENSORS", current->tensors},
	};
	const struct hook hook = {follower->order->exec, variables,
		sizeof(variables) / sizeof(variables[0]), &follower->session->output};
	struct error *const failure = &follower->exec_failure;
	int status = 0;
	if (failure->kind == ERROR_NONE) /* otherwise the lease must stay in error */
		follow_report_wanted(&follower->report, REPLICA_STAGING, current->step);
	*failure = (struct error){0};
	const bool is_noted =
		is_taken || follow_folder_forget_taken(&follower->folder, failure) == 0;
	if (is_noted && hook_run(&hook, follower->session->stop, &status, failure) == 0 &&
		status != 0)
		error_set(failure, ERROR_IO, "the command for step %s ended with status %d", step,
			status);
	free(absolute);
	free(relative);
	if (stop_check(follower->session->stop, err) != 0)
		return -1; /* it runs again at the next start */
	if (failure->kind == ERROR_NONE)
		return follow_folder_set_executed(&follower->folder, follower->order->exec, err);
	follow_report_failure(&follower->report, "exec_failed", failure);
	follow_report_error(&follower->report, failure);
	return 0;
}

static int follow(struct follower *follower, struct error *err)
{
	const struct follow_order *const order = follower->order;
	for (bool is_held = false;;) {
		struct error failure = {0};
		int result = is_held ? wait_for_newer(follower, &failure) : 0;
		if (look_after_folder(follower, err) != 0)
			return -1;
		if (result == 0)
			result = round_once(follower, &is_held, &failure);
		if (result == 0) {
			retry_reset(&follower->pause);
			follower->waiting_told = false;
			follower->lost_told = false;
			if (order->once || order->has_step)
				return end_of_one(follower, err);
			continue;
		}
		is_held = false;
		stop_prefetch(follower);
		if (recover(follower, &failure, err) != 0)
			return -1;
	}
}

/* Waits until something newer than the held step may be published, or the folder is gone. */
static int wait_for_newer(struct follower *follower, struct error *err)
{
	const struct follow_folder *const folder = &follower->folder;
	if (follower->exec_failure.kind != ERROR_NONE)
		return wait_for_next_try(follower, err);
	if (follower->prefetch != NULL) {
		prefetch_finish(follower->prefetch);
		follower->prefetch = NULL;
		return stop_check(follower->session->stop, err);
	}
	const struct remote_run_wait wait = {
		.has_after = folder->has_current,
		.after = folder->has_current ? folder->current.step : 0,
		.wait_s = follower->order->poll_s,
	};
	struct step_message newest;
	int found = 0;
	while (found == 0 && follow_folder_is_there(folder)) {
		new_answers(follower);
		found = remote_run_latest(
			follower->remote, &follower->run, &wait, follower->arena, &newest, err);
	}
	return found < 0 ? -1 : 0;
}

/* Waits until something newer is published, or until the failed command is due again. */
static int wait_for_next_try(struct follower *follower, struct error *err)
{
	ASSERT(follower->folder.has_current && follower->exec_failure.kind != ERROR_NONE);
	const uint64_t doubled =
		follower->exec_pause_s == 0 ? EXEC_FIRST_S : 2 * follower->exec_pause_s;
	follower->exec_pause_s = doubled < EXEC_MOST_S ? doubled : EXEC_MOST_S;
	const struct remote_run_wait wait = {
		.has_after = true,
		.after = follower->folder.current.step,
		.wait_s = follower->exec_pause_s < follower->order->poll_s
			? follower->exec_pause_s
			: follower->order->poll_s,
	};
	struct step_message newest;
	stop_prefetch(follower);
	new_answers(follower);
	return remote_run_latest(
		       follower->remote, &follower->run, &wait, follower->arena, &newest, err) < 0
		? -1
		: 0;
}

static void stop_prefetch(struct follower *follower)
{
	prefetch_stop(follower->prefetch);
	follower->prefetch = NULL;
}

static void new_answers(struct follower *follower)
{
	arena_free(follower->arena);
	follower->arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
}

/* Makes the folder again if somebody removed it. The next round then fetches the step again. */
static int look_after_folder(struct follower *follower, struct error *err)
{
	if (follow_folder_is_there(&follower->folder))
		return 0;
	output_note(&follower->session->output,
		"%s was removed while follow was writing to it; follow makes it again",
		follower->order->into);
	stop_prefetch(follower);
	follow_folder_close(&follower->folder);
	return open_folder(follower, err);
}

/* Asks for a path once and, if there is one, advances. *out_held: the wanted step is held. */
static int round_once(struct follower *follower, bool *out_held, struct error *err)
{
	struct path_message path;
	new_answers(follower);
	*out_held = false;
	if (find_path(follower, &path, err) != 0)
		return -1;
	if (path.link_count > 0) {
		if (advance(follower, &path, err) != 0)
			return -1;
	} else if (!follower->folder.has_current) {
		return error_set(err, ERROR_UPSTREAM,
			"the server gives no path to step %" PRIu64 " of run %s", path.to_step,
			follower->run.text);
	} else if (finish_held(follower, err) != 0) {
		return -1;
	} else if (follower->order->once || follower->order->has_step) {
		follow_report_held(&follower->report);
	}
	ASSERT(follower->folder.has_current);
	follower->from_anchor = false;
	*out_held = true;
	if (follower->exec_failure.kind == ERROR_NONE)
		follow_report_state(&follower->report, REPLICA_READY);
	return 0;
}

static int find_path(struct follower *follower, struct path_message *out, struct error *err)
{
	const struct follow_folder *const folder = &follower->folder;
	struct remote_run_route route = {
		.has_want = follower->order->has_step, .want = follower->order->step};
	if (folder->has_current && !follower->from_anchor) {
		route.has_have = true;
		route.have = folder->current.step;
		route.digest = folder->current.digest;
		route.wait_s = FOLD_WAIT_S;
	}
	const int result = remote_run_path(
		follower->remote, &follower->run, &route, follower->arena, out, err);
	if (result == 0 || is_unpublished(err))
		lease_let_in(follower->report.lease);
	return result;
}

static bool is_unpublished(const struct error *failure)
{
	return failure->kind == ERROR_NOT_READY || failure->kind == ERROR_NO_RUN ||
		failure->kind == ERROR_NO_STEP || failure->kind == ERROR_NO_BUCKET;
}

/* Makes the generation that the path leads to, swaps to it and runs --exec. */
static int advance(struct follower *follower, const struct path_message *path, struct error *err)
{
	struct follow_folder *const folder = &follower->folder;
	ASSERT(path->link_count > 0);
	struct step_message manifest;
	struct catch_up_result fetched;
	if (find_manifest(follower, path->to_step, &manifest, err) != 0)
		return -1;
	char *name;
	char *out;
	follow_folder_next(folder, path->to_step, &name, &out);
	char *const base =
		folder->has_current && !path->from_nothing ? follow_folder_current(folder) : NULL;
	char *const label = text_of(manifest.label);
	struct catch_up_params params = {
		.transfer = session_transfer(follower->session, follower->remote, NULL),
		.run = &follower->run,
		.path = path,
		.base = base,
		.work = follower->work,
		.out = out,
		.threads = follower->order->threads,
		.progress_sink = follower->session->progress,
		.subset = follower->order->subset,
		.base_digest = folder->current.digest,
		.tensor_digests = manifest.tensor_digests,
	};
	params.transfer.files = &follower->files;
	struct follow_swap swap = {.name = name,
		.step = path->to_step,
		.digest = path->links[path->link_count - 1].digest,
		.label = label,
		.tensors = part_of(follower)};
	struct proven_files files = {0};
	int result = bring(follower, &params, &swap, &fetched, err);
	if (result == 0)
		result = note_files(&params, &swap, &files, err);
	if (result == 0)
		result = follow_folder_swap(folder, &swap, err);
	if (result == 0) {
		follow_report_step(&follower->report, &fetched, manifest.created_ms);
		follower->exec_pause_s = 0;
		result = run_hook(follower, err);
	}
	if (result == 0)
		result = follow_folder_trim(folder, follower->order->keep, err);
	proven_files_release(&files);
	free(label);
	free(base);
	free(out);
	free(name);
	return result;
}

static int find_manifest(
	struct follower *follower, uint64_t step, struct step_message *out, struct error *err)
{
	if (follower->order->subset != NULL)
		return remote_run_step_tensors(
			follower->remote, &follower->run, step, follower->arena, out, err);
	return remote_run_step(follower->remote, &follower->run, step, follower->arena, out, err);
}

static char *text_of(struct span text)
{
	char *const copy = memory_new(text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

/* Downloads and makes the generation, and reports to the server which of the two it is doing. */
static int bring(struct follower *follower, const struct catch_up_params *params,
	const struct follow_swap *swap, struct catch_up_result *out, struct error *err)
{
	follow_report_wanted(&follower->report, REPLICA_FETCHING, swap->step);
	if (catch_up_fetch(params, out, err) != 0)
		return -1;
	follow_report_wanted(&follower->report, REPLICA_STAGING, swap->step);
	start_prefetch(follower, swap);
	return catch_up_make(params, out, err);
}

/* Starts to fetch the steps after `swap`, until wait_for_newer or a failure ends that. */
static void start_prefetch(struct follower *follower, const struct follow_swap *swap)
{
	const struct follow_order *const order = follower->order;
	ASSERT(follower->prefetch == NULL);
	if (order->once || order->has_step)
		return;
	const struct prefetch_params params = {
		.files = &follower->files,
		.remote = &follower->session->remote_options,
		.run = &follower->run,
		.work = follower->work,
		.parallel = follower->session->parallel,
		.have = swap->step,
		.digest = swap->digest,
		.poll_s = order->poll_s,
		.folder = &follower->folder,
	};
	follower->prefetch = prefetch_start(&params);
}

/* Fills in the swap's files and its digest of the held tensors. A whole step has the files that
 * catch_up has just proven; the files of a part are read from the new folder. */
static int note_files(const struct catch_up_params *params, struct follow_swap *swap,
	struct proven_files *out, struct error *err)
{
	ASSERT(params->path->link_count > 0);
	const struct path_link *const last = &params->path->links[params->path->link_count - 1];
	swap->held = swap->digest;
	swap->files = out;
	if (params->subset == NULL) {
		proven_files_copy(last->files, last->file_count, out);
		return 0;
	}
	if (catch_up_folder_digest(params->out, params->threads, NULL, &swap->held, err) != 0)
		return -1;
	return proven_files_read(params->out, params->threads, out, err);
}

/* Ends --once and --step, for which the step is held: fails if the command failed. */
static int end_of_one(const struct follower *follower, struct error *err)
{
	ASSERT(follower->folder.has_current);
	if (follower->exec_failure.kind == ERROR_NONE)
		return 0;
	*err = follower->exec_failure;
	return error_wrap(
		err, "step %" PRIu64 " is held, but --exec failed", follower->folder.current.step);
}

/* Decides what follows a failed round: 0 for another round, -1 to end with the error. */
static int recover(struct follower *follower, const struct error *failure, struct error *err)
{
	if (stop_check(follower->session->stop, err) != 0)
		return -1;
	const bool begins_anew =
		!follow_folder_is_there(&follower->folder) || turn_to_anchor(follower, failure);
	if (!begins_anew && run_due_hook(follower, err) != 0)
		return -1;
	report_failed(follower, failure);
	if (begins_anew)
		return 0;
	if (may_pass(follower, failure)) {
		tell_once(follower, failure);
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
	if (!is_unpublished(failure))
		follow_report_error(&follower->report, failure);
	else if (follower->exec_failure.kind == ERROR_NONE)
		follow_report_state(&follower->report, REPLICA_IDLE);
}

/* True when the round failed on damage that an anchor may cure, and none has been tried. */
static bool turn_to_anchor(struct follower *follower, const struct error *failure)
{
	if (follower->from_anchor || !follower->folder.has_current ||
		!catch_up_wants_anchor(failure))
		return false;
	follow_report_failure(&follower->report, "from_anchor", failure);
	follower->from_anchor = true;
	return true;
}

/* Whether another round after a pause may succeed: when the failure may end by itself, or when the
 * trainer has yet to publish. */
static bool may_pass(const struct follower *follower, const struct error *failure)
{
	const struct follow_order *const order = follower->order;
	if (stop_reason(follower->session->stop) != 0)
		return false;
	if (is_unpublished(failure))
		return !order->once || clock_monotonic_ms() < follower->deadline_ms;
	/* Retention removed a step or a fold while it was fetched: the next path avoids it. */
	if (failure->kind == ERROR_COLLECTED || failure->kind == ERROR_NO_KEY)
		return follower->pause.attempt < LOST_PATHS_MAX ||
			(!order->once && !order->has_step);
	return failure->kind == ERROR_UPSTREAM && !order->once;
}

static void tell_once(struct follower *follower, const struct error *failure)
{
	const bool waits = is_unpublished(failure);
	bool *const told = waits ? &follower->waiting_told : &follower->lost_told;
	struct error shown = *failure;
	if (*told)
		return;
	*told = true;
	error_wrap(&shown, waits ? "waiting" : "trying again");
	follow_report_failure(&follower->report, waits ? "waiting" : "retrying", &shown);
}
