/* A follower lives between calls, and each call has a session of its own. Lease and prefetch run
 * between calls too, so they use the follower's own options, which nobody can cancel. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/follow/next_step.h"
#include "library/call.h"
#include "library/sized.h"
#include "library/step.h"

enum { POLL_S = 30, GOODBYE_MS = 1000 };

struct deltabucket_follower {
	const struct deltabucket_client *client;
	struct stepper stepper;
	struct stepper_params params;
	struct remote_options remote; /* of lease and prefetch, and between two calls */
	struct subset subset;         /* its text NULL: all tensors */
	char *run;                    /* these four are copies of the settings */
	char *folder;
	char *replica;
	char *tensors;
	const char **parents;
	bool is_silent;
	bool is_seen;     /* the caller has got the step that is held */
	bool is_reported; /* the caller has said what it does with that step */
};

static int check(const struct deltabucket_client *client,
	const struct deltabucket_follower_settings *settings, struct error *err);
static int check_part(const struct deltabucket_follower_settings *settings, struct error *err);
static int open_follower(struct deltabucket_follower *follower, struct library_call *call);
static struct deltabucket_follower *follower_new(const struct deltabucket_client *client,
	const struct deltabucket_follower_settings *settings);
static int follower_begin(struct deltabucket_follower *follower, struct library_call *call,
	struct deltabucket_watch *watch);
static int bring(struct deltabucket_follower *follower, const struct next_order *order,
	struct deltabucket_step **out, struct error *err);
static struct deltabucket_step *take_step(struct deltabucket_follower *follower,
	const struct stepper_round *round, struct error *err);
static int find_state(const char *name, enum replica_state *out, struct error *err);
static int check_held(const struct deltabucket_follower *follower, struct error *err);
static int say(struct deltabucket_follower *follower, enum replica_state state,
	const char *sentence, struct error *err);

struct deltabucket_follower *deltabucket_follower_open(struct deltabucket_client *client,
	const struct deltabucket_follower_settings *settings, struct deltabucket_watch *watch,
	struct deltabucket_error *err)
{
	struct deltabucket_follower_settings taken = DELTABUCKET_FOLLOWER_SETTINGS;
	struct deltabucket_follower *follower = NULL;
	struct library_call call;
	library_call_begin(&call, client, watch);
	int result = library_check(settings, "settings", &call.failure);
	if (result == 0)
		result = sized_take(&taken, sizeof(taken), settings,
			"deltabucket_follower_settings", &call.failure);
	if (result == 0)
		result = check(client, &taken, &call.failure);
	if (result == 0) {
		follower = follower_new(client, &taken);
		result = open_follower(follower, &call);
	}
	if (result != 0) {
		deltabucket_follower_close(follower);
		follower = NULL;
	}
	library_call_end(&call, result, err);
	return follower;
}

int deltabucket_follower_next(struct deltabucket_follower *follower, int64_t wanted,
	int64_t wait_ms, struct deltabucket_step **out, struct deltabucket_watch *watch,
	struct deltabucket_error *err)
{
	const struct next_order order = {.has_wanted = wanted >= 0,
		.wanted = wanted >= 0 ? (uint64_t)wanted : 0,
		.wait_ms = wait_ms,
		.is_seen = follower != NULL && follower->is_seen};
	struct library_call call = {0};
	int result = library_check(out, "out", &call.failure);
	if (result == 0) {
		*out = NULL;
		result = library_check(follower, "follower", &call.failure);
	}
	if (result == 0)
		result = follower_begin(follower, &call, watch);
	if (result == 0)
		result = bring(follower, &order, out, &call.failure);
	return library_call_end(&call, result, err);
}

int deltabucket_follower_report(struct deltabucket_follower *follower, const char *state,
	const char *sentence, struct deltabucket_error *err)
{
	struct error failure = {0};
	enum replica_state found = REPLICA_READY;
	int result = library_check(follower, "follower", &failure);
	if (result == 0)
		result = find_state(state, &found, &failure);
	if (result == 0)
		result = say(follower, found, sentence, &failure);
	return result == 0 ? 0 : library_error_give(&failure, err);
}

int deltabucket_follower_paused(
	struct deltabucket_follower *follower, uint64_t ms, struct deltabucket_error *err)
{
	struct error failure = {0};
	int result = library_check(follower, "follower", &failure);
	if (result == 0)
		result = check_held(follower, &failure);
	if (result == 0 && ms > INT64_MAX)
		result = error_set(&failure, ERROR_INVALID,
			"a pause of %llu ms is too long to be one", (unsigned long long)ms);
	if (result == 0)
		follow_report_pause(&follower->stepper.report, ms);
	return result == 0 ? 0 : library_error_give(&failure, err);
}

void deltabucket_follower_close(struct deltabucket_follower *follower)
{
	if (follower == NULL)
		return;
	stepper_close(&follower->stepper, true, true);
	free(follower->run);
	free(follower->folder);
	free(follower->replica);
	free(follower->tensors);
	subset_release(&follower->subset);
	free(follower->parents);
	free(follower);
}

static int check(const struct deltabucket_client *client,
	const struct deltabucket_follower_settings *settings, struct error *err)
{
	if (library_check(client, "client", err) != 0 ||
		library_check(settings->run, "the run", err) != 0 || check_part(settings, err) != 0)
		return -1;
	return settings->replica == NULL
		? 0
		: replica_check_id("replica", span_text(settings->replica), err);
}

static int check_part(const struct deltabucket_follower_settings *settings, struct error *err)
{
	if (settings->tensors != NULL && settings->tensors[0] == '\0')
		return error_set(err, ERROR_INVALID,
			"the tensors are \"\"; they are shell patterns, or NULL for all");
	if (settings->tensors != NULL && settings->ranks > 0)
		return error_set(err, ERROR_INVALID,
			"the settings have the tensors \"%.160s\" and a rank; they take one or the "
			"other",
			settings->tensors);
	if ((settings->ranks == 0 && settings->rank == 0) ||
		(settings->rank < settings->ranks && settings->ranks <= SUBSET_RANKS_MAX))
		return 0;
	return error_set(err, ERROR_INVALID,
		"there is no rank %u of %u; ranks count from 0, and there are at most %d",
		settings->rank, settings->ranks, SUBSET_RANKS_MAX);
}

static struct deltabucket_follower *follower_new(const struct deltabucket_client *client,
	const struct deltabucket_follower_settings *settings)
{
	struct deltabucket_follower *const follower = memory_new(sizeof(*follower));
	follower->run = memory_copy_text(settings->run);
	follower->folder = memory_copy_text(settings->folder);
	follower->replica = memory_copy_text(settings->replica);
	follower->tensors = memory_copy_text(settings->tensors);
	if (settings->tensors != NULL)
		subset_init_tensors(&follower->subset, follower->tensors);
	if (settings->ranks > 0)
		subset_init_rank(&follower->subset, settings->rank, settings->ranks);
	follower->parents = memory_model_parents();
	follower->is_silent = settings->is_silent != 0;
	follower->stepper.folder.lock_fd = -1;
	follower->remote = (struct remote_options){.endpoint = client->endpoint,
		.token = client->token,
		.ca = client->ca,
		.spares = client->spares};
	follower->params = (struct stepper_params){
		.run = follower->run,
		.into = follower->folder,
		.subset = follower->subset.text != NULL ? &follower->subset : NULL,
		.replica = follower->replica,
		.remote = &follower->remote,
		.parents = follower->parents,
		.threads = settings->threads != 0 ? settings->threads : client->threads,
		.poll_s = POLL_S,
		.goodbye_ms = GOODBYE_MS,
		.asks_once = true,
		.prefetches = true,
		.keeps_deltas = true,
		.keeps_changes = settings->keeps_changes != 0,
	};
	follower->client = client;
	return follower;
}

static int open_follower(struct deltabucket_follower *follower, struct library_call *call)
{
	struct stepper *const stepper = &follower->stepper;
	bool is_whole;
	if (stepper_open(stepper, &follower->params, &call->session, &call->failure) != 0)
		return -1;
	const int result = stepper_prove(stepper, &is_whole, &call->failure);
	stepper_leave(stepper);
	return result;
}

/* A caller that comes back for the next step has put this one to use, unless it said otherwise. */
static int follower_begin(struct deltabucket_follower *follower, struct library_call *call,
	struct deltabucket_watch *watch)
{
	struct stepper *const stepper = &follower->stepper;
	library_call_begin(call, follower->client, watch);
	if (stepper_enter(stepper, &call->session, &call->failure) != 0)
		return -1;
	if (!follower->is_silent)
		stepper_join(stepper);
	if (follower->is_seen && !follower->is_reported && stepper->folder.has_current)
		follow_report_state(&stepper->report, REPLICA_READY);
	return 0;
}

static int bring(struct deltabucket_follower *follower, const struct next_order *order,
	struct deltabucket_step **out, struct error *err)
{
	struct stepper_round round;
	int result = next_step(&follower->stepper, order, &round, err);
	if (result > 0) {
		*out = take_step(follower, &round, err);
		result = *out != NULL ? 1 : -1;
	}
	stepper_leave(&follower->stepper);
	return result;
}

static struct deltabucket_step *take_step(
	struct deltabucket_follower *follower, const struct stepper_round *round, struct error *err)
{
	struct stepper *const stepper = &follower->stepper;
	struct held_step *const held = held_step_new(stepper, round, err);
	if (held == NULL)
		return NULL;
	follower->is_seen = true;
	follower->is_reported = false;
	follow_report_wanted(&stepper->report, REPLICA_STAGING, stepper->folder.current.step);
	return library_step_new(held);
}

static int find_state(const char *name, enum replica_state *out, struct error *err)
{
	static const enum replica_state STATES[] = {REPLICA_READY, REPLICA_STAGING, REPLICA_ERROR};
	for (size_t i = 0; name != NULL && i < sizeof(STATES) / sizeof(STATES[0]); i++)
		if (strcmp(name, replica_state_name(STATES[i])) == 0) {
			*out = STATES[i];
			return 0;
		}
	return error_set(err, ERROR_INVALID,
		"a worker reports \"ready\", \"staging\" or \"error\", not \"%s\"",
		name != NULL ? name : "NULL");
}

static int check_held(const struct deltabucket_follower *follower, struct error *err)
{
	const struct stepper *const stepper = &follower->stepper;
	return stepper->folder.has_current
		? 0
		: error_set(err, ERROR_NOT_READY,
			  "the follower of run %s holds no step yet, so it has nothing to report",
			  stepper->run.text);
}

static int say(struct deltabucket_follower *follower, enum replica_state state,
	const char *sentence, struct error *err)
{
	struct stepper *const stepper = &follower->stepper;
	struct error told = {0};
	if (check_held(follower, err) != 0)
		return -1;
	follower->is_reported = true;
	if (state == REPLICA_ERROR) {
		error_set(&told, ERROR_IO, "%s", sentence != NULL ? sentence : "");
		follow_report_error(&stepper->report, &told);
	} else {
		follow_report_state(&stepper->report, state);
	}
	return 0;
}
