/* Rank 0 leads. It keeps the epoch that it has, unless the file `epoch` shows that the same ranks
 * published since under another numbering; then, or without an epoch, it opens the run. The other
 * ranks follow: they poll the file, because ranks share a folder but no connection. */
#include "client/publish/rank_epoch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/publish/run_claim.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/remote_object.h"

enum { EPOCH_MAX_BYTES = 64, EPOCH_POLL_MS = 200 };

static int open_run(struct remote *remote, const struct run_name *run,
	const struct publish_order *order, uint64_t *out_epoch, struct error *err);
static int claim_run(struct remote *remote, const struct run_name *run,
	const struct publish_order *order, uint64_t *epoch, struct error *err);
static int share_epoch(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
static int write_epoch(const struct rank_epoch_params *params, uint64_t epoch, struct error *err);
static int lead(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
static bool read_epoch(const struct rank_epoch_params *params, uint64_t *out);
static int check_claim(
	const struct rank_epoch_params *params, const uint64_t *known, struct error *err);
static int follow_leader(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);

int rank_epoch_open(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err)
{
	uint64_t epoch;
	ASSERT(params->rank->rank == 0);
	if (open_run(params->remote, params->run, params->order, &epoch, err) != 0)
		return -1;
	state->has_epoch = true;
	state->epoch = epoch;
	return share_epoch(params, state, err);
}

int rank_epoch_new(struct session *session, const char *run, const struct publish_order *order,
	uint64_t *epoch, struct error *err)
{
	struct run_name name;
	if (run_name_init(&name, run, err) != 0)
		return -1;
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL
		? -1
		: missing_bucket_check(remote, &name, order->create_bucket, err);
	if (result == 0)
		result = claim_run(remote, &name, order, epoch, err);
	remote_free(remote);
	run_name_release(&name);
	return result;
}

int rank_epoch_settle(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err)
{
	ASSERT(params->rank->rank < params->rank->ranks);
	if (params->rank->has_epoch) {
		state->has_epoch = true;
		state->epoch = params->rank->epoch;
		return params->rank->rank == 0 ? write_epoch(params, state->epoch, err) : 0;
	}
	return params->rank->rank == 0 ? lead(params, state, err)
				       : follow_leader(params, state, err);
}

int rank_epoch_rejoin(const struct rank_epoch_params *params, uint64_t wait_s,
	struct publish_state *state, struct error *err)
{
	const int64_t deadline = clock_monotonic_ms() + (int64_t)wait_s * 1000;
	uint64_t epoch = state->epoch;
	if (params->rank->has_epoch || params->rank->rank == 0)
		return 0;
	while (!read_epoch(params, &epoch) || epoch == state->epoch) {
		if (clock_monotonic_ms() >= deadline)
			return 0;
		if (!stop_sleep(params->session->stop, EPOCH_POLL_MS))
			return stop_check(params->session->stop, err);
	}
	state->epoch = epoch;
	return publish_state_save(state, err) == 0 ? 1 : -1;
}

static int open_run(struct remote *remote, const struct run_name *run,
	const struct publish_order *order, uint64_t *out_epoch, struct error *err)
{
	struct run_message opened;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	int result = order->create_bucket
		? remote_object_make_bucket(remote, span_text(run->bucket), err)
		: 0;
	if (result == 0)
		result = remote_run_open(remote, run,
			order->has_keep_steps ? &order->keep_steps : NULL, arena, &opened, err);
	if (result != 0 && err->kind == ERROR_NO_BUCKET)
		missing_bucket_refuse(span_text(run->bucket), err);
	if (result == 0)
		*out_epoch = opened.epoch;
	arena_free(arena);
	return result;
}

static int claim_run(struct remote *remote, const struct run_name *run,
	const struct publish_order *order, uint64_t *epoch, struct error *err)
{
	const struct run_claim claim = {.state_folder = "this program",
		.own_epoch = *epoch > 0 ? epoch : NULL,
		.take_over = order->take_over};
	struct run_message found;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const int result = run_claim_check(remote, run, &claim, arena, &found, err);
	arena_free(arena);
	return result < 0 ? -1 : open_run(remote, run, order, epoch, err);
}

static int share_epoch(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err)
{
	return write_epoch(params, state->epoch, err) != 0 ? -1 : publish_state_save(state, err);
}

static int write_epoch(const struct rank_epoch_params *params, uint64_t epoch, struct error *err)
{
	char text[EPOCH_MAX_BYTES];
	char *const path = folder_files_join(params->shared, "epoch");
	snprintf(text, sizeof(text), "%" PRIu64 "\n", epoch);
	const int result = file_publish(params->session->files, path, span_text(text), 0600, err);
	free(path);
	return result;
}

/* Makes rank 0 the writer unless it already is, and writes the epoch for the other ranks. 1 when it
 * has to take over a run that has a writer. */
static int lead(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err)
{
	ASSERT(params->rank->rank == 0);
	uint64_t known;
	const bool has_known = read_epoch(params, &known);
	if (has_known && state->has_epoch && known != state->epoch)
		state->has_epoch = false; /* the ranks have published since, with other numbers */
	if (state->has_epoch && !params->order->take_over)
		return share_epoch(params, state, err);
	const int found = check_claim(params, has_known ? &known : NULL, err);
	if (found < 0)
		return -1;
	return found == 1 && params->order->take_over ? 1 : rank_epoch_open(params, state, err);
}

static bool read_epoch(const struct rank_epoch_params *params, uint64_t *out)
{
	struct buffer text;
	struct error ignored = {0};
	char *const path = folder_files_join(params->shared, "epoch");
	buffer_init(&text, EPOCH_MAX_BYTES);
	struct span line = {0};
	struct span rest;
	const bool read = file_exists(path) && file_read_all(path, &text, &ignored) == 0;
	rest = buffer_span(&text);
	const bool parsed = read && span_split(&rest, '\n', &line) && span_parse_u64(line, out);
	buffer_release(&text);
	free(path);
	return parsed;
}

/* As run_claim_check; `known` is the epoch in the shared folder, or NULL. */
static int check_claim(
	const struct rank_epoch_params *params, const uint64_t *known, struct error *err)
{
	const struct run_claim claim = {.state_folder = params->shared,
		.own_epoch = known,
		.take_over = params->order->take_over};
	struct run_message run;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const int found = run_claim_check(params->remote, params->run, &claim, arena, &run, err);
	arena_free(arena);
	return found;
}

static int follow_leader(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err)
{
	ASSERT(params->rank->rank != 0);
	const int64_t deadline = clock_monotonic_ms() + (int64_t)params->rank->wait_s * 1000;
	uint64_t epoch;
	while (!read_epoch(params, &epoch)) {
		if (clock_monotonic_ms() >= deadline)
			return error_set(err, ERROR_NOT_READY,
				"rank 0 has not opened run %s yet: give --epoch, or the same "
				"--state folder to all ranks",
				params->run->text);
		if (!stop_sleep(params->session->stop, EPOCH_POLL_MS))
			return stop_check(params->session->stop, err);
	}
	state->has_epoch = true;
	state->epoch = epoch;
	return publish_state_save(state, err);
}
