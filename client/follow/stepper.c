#include "client/follow/stepper_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/work/progress.h"

static int open_memory(struct stepper *stepper, struct error *err);
static int prove_held(struct stepper *stepper, const char *path, struct error *err);
static int prove_tensors(const struct stepper *stepper, const char *path, struct work_watch *watch,
	struct error *err);
static void new_answers(struct stepper *stepper);
static int find_path(struct stepper *stepper, const struct stepper_round *round,
	struct path_message *out, struct error *err);

int stepper_open(struct stepper *stepper, const struct stepper_params *params,
	struct session *session, struct error *err)
{
	ASSERT(params->run != NULL && params->remote != NULL);
	ASSERT(params->into != NULL || params->subset == NULL);
	*stepper = (struct stepper){.params = params, .folder = {.lock_fd = -1}};
	stepper->report = (struct follow_report){.run = &stepper->run, .folder = &stepper->folder};
	if (stepper_enter(stepper, session, err) != 0)
		return -1;
	stepper->files = *session->files;
	stepper->files.is_volatile = params->is_volatile || params->into == NULL;
	if (run_name_init(&stepper->run, params->run, err) != 0)
		return -1;
	if ((params->into != NULL ? stepper_open_folder(stepper, err)
				  : open_memory(stepper, err)) != 0)
		return -1;
	stepper->id = params->replica != NULL ? memory_copy_text(params->replica)
					      : lease_default_id(stepper->folder.path);
	return 0;
}

int stepper_prove(struct stepper *stepper, bool *out_whole, struct error *err)
{
	struct follow_folder *const folder = &stepper->folder;
	*out_whole = false;
	if (folder->has_current && strcmp(folder->current.tensors, stepper_part(stepper)) != 0) {
		output_note(&stepper->session->output,
			"the folder holds another part of the model; the wanted part is fetched "
			"from an anchor");
		follow_folder_distrust(folder);
	}
	if (!folder->has_current)
		return 0;
	struct error failure = {0};
	char *const path = follow_folder_current(folder);
	*out_whole = prove_held(stepper, path, &failure) == 0;
	if (!*out_whole)
		error_wrap(&failure, "%s is damaged", path);
	free(path);
	if (stop_check(stepper->session->stop, err) != 0)
		return -1;
	if (*out_whole)
		return 0;
	follow_report_failure(&stepper->report, "damaged", &failure);
	follow_folder_distrust(folder);
	return 0;
}

void stepper_join(struct stepper *stepper)
{
	const struct subset *const subset = stepper->params->subset;
	const struct lease_params lease = {
		.remote = stepper->params->remote,
		.run = &stepper->run,
		.id = stepper->id,
		.tensors = subset != NULL ? subset->text : NULL,
		.output = stepper->params->output,
		.goodbye_ms = stepper->params->goodbye_ms,
	};
	if (stepper->report.lease == NULL)
		stepper->report.lease = lease_start(&lease);
}

int stepper_enter(struct stepper *stepper, struct session *session, struct error *err)
{
	ASSERT(stepper->session == NULL && stepper->remote == NULL);
	stepper->ask = session->remote_options;
	if (stepper->params->asks_once)
		stepper->ask.retries = 0;
	stepper->remote = remote_new(&stepper->ask, err);
	if (stepper->remote == NULL)
		return -1;
	stepper->session = session;
	stepper->report.session = session;
	return 0;
}

void stepper_leave(struct stepper *stepper)
{
	stepper->session = NULL;
	stepper->report.session = NULL;
	remote_free(stepper->remote);
	stepper->remote = NULL;
}

void stepper_close(struct stepper *stepper, bool signs_off, bool abandons)
{
	stepper_stop_prefetch(stepper);
	lease_stop(stepper->report.lease, signs_off);
	stepper_drop_deltas(stepper);
	free(stepper->id);
	free(stepper->work);
	arena_free(stepper->arena);
	remote_free(stepper->remote);
	if (abandons)
		follow_folder_abandon(&stepper->folder);
	follow_folder_close(&stepper->folder);
	memory_model_free(stepper->memory);
	run_name_release(&stepper->run);
	*stepper = (struct stepper){.folder = {.lock_fd = -1}};
}

int stepper_look_after(struct stepper *stepper, struct error *err)
{
	if (follow_folder_is_there(&stepper->folder))
		return 0;
	output_note(&stepper->session->output,
		"%s was removed while follow was writing to it; follow makes it again",
		stepper->folder.path);
	stepper_stop_prefetch(stepper);
	if (stepper->memory != NULL)
		memory_model_unmap(stepper->memory);
	follow_folder_close(&stepper->folder);
	return stepper_open_folder(stepper, err);
}

int stepper_round(struct stepper *stepper, struct stepper_round *round, struct error *err)
{
	struct path_message path;
	round->moved = false;
	new_answers(stepper);
	if (stepper->is_spoiled && stepper_drop_memory(stepper, err) != 0)
		return -1;
	if (find_path(stepper, round, &path, err) != 0)
		return -1;
	if (path.link_count > 0) {
		remote_obey(stepper->remote, &stepper->session->remote_options);
		const int result = stepper_move(stepper, round, &path, err);
		remote_obey(stepper->remote, &stepper->ask);
		return result;
	}
	stepper->from_anchor = false;
	return stepper->folder.has_current
		? 0
		: error_set(err, ERROR_UPSTREAM,
			  "the server gives no path to step %" PRIu64 " of run %s", path.to_step,
			  stepper->run.text);
}

int stepper_wait(struct stepper *stepper, uint64_t wait_s, struct error *err)
{
	const struct follow_folder *const folder = &stepper->folder;
	const struct remote_run_wait wait = {
		.has_after = folder->has_current,
		.after = folder->has_current ? folder->current.step : 0,
		.wait_s = wait_s,
	};
	struct step_message newest;
	new_answers(stepper);
	const int found = stepper_ask(stepper,
		remote_run_latest(
			stepper->remote, &stepper->run, &wait, stepper->arena, &newest, err));
	if (found > 0) {
		stepper->has_newest = true;
		stepper->newest = newest.step;
	}
	return found;
}

int64_t stepper_created(struct stepper *stepper)
{
	struct step_message step;
	struct error ignored = {0};
	ASSERT(stepper->folder.has_current);
	new_answers(stepper);
	return remote_run_step(stepper->remote, &stepper->run, stepper->folder.current.step,
		       stepper->arena, &step, &ignored) == 0
		? step.created_ms
		: 0;
}

void stepper_stop_prefetch(struct stepper *stepper)
{
	prefetch_stop(stepper->prefetch);
	stepper->prefetch = NULL;
}

bool stepper_is_unpublished(const struct error *failure)
{
	return failure->kind == ERROR_NOT_READY || failure->kind == ERROR_NO_RUN ||
		failure->kind == ERROR_NO_STEP || failure->kind == ERROR_NO_BUCKET;
}

bool stepper_is_lost(const struct error *failure)
{
	return failure->kind == ERROR_COLLECTED || failure->kind == ERROR_NO_KEY;
}

bool stepper_is_away(const struct stepper *stepper, const struct error *failure)
{
	return failure->kind == ERROR_UPSTREAM || stepper->may_pass;
}

bool stepper_turn_to_anchor(struct stepper *stepper, const struct error *failure)
{
	const bool may_help = stepper->is_spoiled ||
		(stepper->folder.has_current && catch_up_wants_anchor(failure));
	if (stepper->from_anchor || !may_help)
		return false;
	follow_report_failure(&stepper->report, "from_anchor", failure);
	stepper->from_anchor = true;
	return true;
}

void stepper_tell_once(struct stepper *stepper, const struct error *failure)
{
	const bool waits = stepper_is_unpublished(failure);
	bool *const told = waits ? &stepper->waiting_told : &stepper->lost_told;
	struct error shown = *failure;
	if (*told)
		return;
	*told = true;
	error_wrap(&shown, waits ? "waiting" : "trying again");
	follow_report_failure(&stepper->report, waits ? "waiting" : "retrying", &shown);
}

void stepper_forget_told(struct stepper *stepper)
{
	stepper->waiting_told = false;
	stepper->lost_told = false;
}

int stepper_open_folder(struct stepper *stepper, struct error *err)
{
	const struct session *const session = stepper->session;
	const bool is_in_memory = stepper->memory != NULL;
	const char *const path =
		is_in_memory ? memory_model_folder(stepper->memory) : stepper->params->into;
	free(stepper->work);
	stepper->work = NULL;
	if (follow_folder_open(&stepper->folder, is_in_memory ? &stepper->files : session->files,
		    path, session->remote_options.endpoint, stepper->run.text, err) != 0)
		return -1;
	stepper->work = follow_folder_incoming(&stepper->folder);
	return 0;
}

static int open_memory(struct stepper *stepper, struct error *err)
{
	stepper->memory = memory_model_new(&stepper->files, stepper->params->parents, err);
	return stepper->memory != NULL ? stepper_open_folder(stepper, err) : -1;
}

const char *stepper_part(const struct stepper *stepper)
{
	return stepper->params->subset != NULL ? stepper->params->subset->text : "";
}

static int prove_held(struct stepper *stepper, const char *path, struct error *err)
{
	struct session *const session = stepper->session;
	const struct proven_files *const files = &stepper->folder.current.files;
	struct progress *const progress = progress_new(
		"checking the held step", proven_files_bytes(files), session->progress);
	struct work_watch *const watch = progress_watch(progress, session->stop);
	const int result = files->count == 0
		? prove_tensors(stepper, path, watch, err)
		: proven_files_check(files, path, stepper->params->threads, watch, err);
	progress_free(progress);
	return result;
}

/* For a generation of an older version, whose sidecar does not list the files: proves only the
 * tensors, by their digest. */
static int prove_tensors(const struct stepper *stepper, const char *path, struct work_watch *watch,
	struct error *err)
{
	const struct follow_generation *const current = &stepper->folder.current;
	ASSERT(stepper->folder.has_current);
	struct digest128 digest;
	if (catch_up_folder_digest(path, stepper->params->threads, watch, &digest, err) != 0)
		return -1;
	return digest128_equal(&digest, &current->held)
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "its tensors differ from the digest of step %" PRIu64, current->step);
}

static void new_answers(struct stepper *stepper)
{
	arena_free(stepper->arena);
	stepper->arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
}

int stepper_ask(struct stepper *stepper, int result)
{
	stepper->may_pass = result < 0 && remote_may_pass(stepper->remote);
	return result;
}

static int find_path(struct stepper *stepper, const struct stepper_round *round,
	struct path_message *out, struct error *err)
{
	const struct follow_folder *const folder = &stepper->folder;
	struct remote_run_route route = {.has_want = round->has_wanted, .want = round->wanted};
	if (folder->has_current && !stepper->from_anchor) {
		route.has_have = true;
		route.have = folder->current.step;
		route.digest = folder->current.digest;
		route.wait_s = round->fold_wait_s;
	}
	const int result = stepper_ask(stepper,
		remote_run_path(stepper->remote, &stepper->run, &route, stepper->arena, out, err));
	if (result == 0 || stepper_is_unpublished(err))
		lease_let_in(stepper->report.lease);
	if (result == 0 &&
		(!stepper->has_newest || !round->has_wanted || out->to_step > stepper->newest)) {
		stepper->has_newest = true;
		stepper->newest = out->to_step;
	}
	return result;
}
