/* Settling asks the server for the run's head and compares it with the state folder. The head is
 *
 *   the pending step      an earlier call published it and was stopped: it is committed now
 *   failed its proof      the next step must be an anchor
 *   the committed step    nothing to do
 *   any other step        it is fetched as the baseline; a publisher that has committed steps and
 *                         does not enter the run refuses instead
 *
 * A publisher enters a run if its state folder has no epoch, or with --take-over. It opens the run
 * late, in publish_head_open: opening raises the epoch, which shuts out the writer before. */
#include "client/publish/publish_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "client/publish/run_claim.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/remote_object.h"
#include "client/transfer/catch_up.h"

static void new_answer(struct publisher *publisher);
static int approach(struct publisher *publisher, struct run_message *out, struct error *err);
static int become_writer(struct publisher *publisher, struct run_message *out, struct error *err);
static int open_run(struct publisher *publisher, struct run_message *out, struct error *err);
static int stay_writer(struct publisher *publisher, struct run_message *out, struct error *err);
static int read_head(struct publisher *publisher, const struct run_message *run,
	struct publish_mark *out, struct error *err);
static bool is_own(const struct publish_state *state, const struct publish_mark *head);
static bool mark_equal(const struct publish_mark *a, const struct publish_mark *b);
static int refuse_head(
	const struct publisher *publisher, const struct run_message *run, struct error *err);
static int check_step(
	const struct publisher *publisher, const struct run_message *run, struct error *err);
static uint64_t next_step(const struct run_message *run);
static int accept_head(
	struct publisher *publisher, const struct publish_mark *head, struct error *err);
static int accept_failed(
	struct publisher *publisher, const struct publish_mark *head, struct error *err);
static int go_whole(struct publisher *publisher, const struct publish_mark *head,
	const struct error *reason, struct error *err);
static int fetch_baseline(
	struct publisher *publisher, const struct publish_mark *head, struct error *err);
static int fetch_from(struct publisher *publisher, const struct publish_mark *from,
	const struct publish_mark *head, struct catch_up_result *out, struct error *err);
static bool is_lost(const struct error *failure);
static int start_over(struct publisher *publisher, struct error *err);

int publish_head_settle(struct publisher *publisher, struct error *err)
{
	struct run_message run;
	struct publish_mark head;
	new_answer(publisher);
	publisher->goes_whole = false;
	const bool opens = publisher->enters && !publisher->has_opened;
	if ((opens ? approach(publisher, &run, err) : stay_writer(publisher, &run, err)) != 0)
		return -1;
	publisher->anchor_due = run.anchor_due;
	if (read_head(publisher, &run, &head, err) != 0)
		return -1;
	if (!publisher->enters && !is_own(&publisher->state, run.has_head ? &head : NULL))
		return refuse_head(publisher, &run, err);
	if (check_step(publisher, &run, err) != 0)
		return -1;
	if (run.has_head)
		return accept_head(publisher, &head, err);
	return publisher->state.has_committed ? start_over(publisher, err) : 0;
}

int publish_head_open(struct publisher *publisher, struct error *err)
{
	const struct publish_state *const state = &publisher->state;
	struct run_message run;
	if (!publisher->enters || publisher->has_opened)
		return 0;
	new_answer(publisher);
	if (become_writer(publisher, &run, err) != 0)
		return -1;
	const bool is_there = run.has_head == state->has_committed &&
		(!run.has_head ||
			(run.head == state->committed.step &&
				digest128_equal(&run.head_digest, &state->committed.digest)));
	return is_there ? 0 : 1;
}

int publish_head_refetch(struct publisher *publisher, struct error *err)
{
	ASSERT(publisher->state.has_committed);
	const struct publish_mark head = publisher->state.committed;
	publish_state_forget(&publisher->state);
	return fetch_baseline(publisher, &head, err);
}

static void new_answer(struct publisher *publisher)
{
	arena_free(publisher->arena);
	publisher->arena = arena_new(REMOTE_RUN_ARENA_BYTES);
}

/* Finds the run without opening it. A run that does not exist is opened at once: there is no writer
 * to shut out. */
static int approach(struct publisher *publisher, struct run_message *out, struct error *err)
{
	const struct run_claim claim = {
		.state_folder = publisher->state.folder, .take_over = publisher->order->take_over};
	const int found = run_claim_check(
		publisher->remote, &publisher->run, &claim, publisher->arena, out, err);
	return found == 0 ? become_writer(publisher, out, err) : found < 0 ? -1 : 0;
}

static int become_writer(struct publisher *publisher, struct run_message *out, struct error *err)
{
	if (open_run(publisher, out, err) != 0)
		return -1;
	publisher->has_opened = true;
	publisher->state.has_epoch = true;
	publisher->state.epoch = out->epoch;
	return publish_state_save(&publisher->state, err);
}

static int open_run(struct publisher *publisher, struct run_message *out, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	const uint64_t *const keep = order->has_keep_steps ? &order->keep_steps : NULL;
	struct error failure = {0};
	if (remote_run_open(
		    publisher->remote, &publisher->run, keep, publisher->arena, out, &failure) == 0)
		return 0;
	*err = failure;
	if (failure.kind != ERROR_NO_BUCKET)
		return -1;
	if (!order->create_bucket)
		return missing_bucket_refuse(span_text(publisher->run.bucket), err);
	if (remote_object_make_bucket(publisher->remote, span_text(publisher->run.bucket), err) !=
		0)
		return error_wrap(
			err, "there is no bucket %s, and making it failed", publisher->run.bucket);
	output_say(&publisher->session->output, "made the bucket %s", publisher->run.bucket);
	return remote_run_open(
		publisher->remote, &publisher->run, keep, publisher->arena, out, err);
}

static int stay_writer(struct publisher *publisher, struct run_message *out, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	struct error failure = {0};
	if (remote_run_find(publisher->remote, &publisher->run, publisher->arena, out, &failure) !=
		0) {
		const bool gone = failure.kind == ERROR_NO_RUN || failure.kind == ERROR_NO_BUCKET;
		*err = failure;
		if (gone && !publisher->state.has_committed)
			return become_writer(
				publisher, out, err); /* opened before, but nothing was published */
		if (gone)
			return error_set(err, failure.kind,
				"run %s, which this state folder has published to, does not exist "
				"any more; --take-over makes it again",
				publisher->run.text);
		return -1;
	}
	if (out->epoch != publisher->state.epoch)
		return error_set(err, ERROR_STALE_EPOCH,
			"another publisher has taken over run %s (epoch %" PRIu64
			", ours is %" PRIu64
			"); to continue with this one instead, run it once with --take-over",
			publisher->run.text, out->epoch, publisher->state.epoch);
	if (order->has_keep_steps && order->keep_steps != out->settings.keep_steps)
		return remote_run_set_keep(
			publisher->remote, &publisher->run, order->keep_steps, err);
	return 0;
}

/* Reads the head's manifest. *out is set only if the run has a head. */
static int read_head(struct publisher *publisher, const struct run_message *run,
	struct publish_mark *out, struct error *err)
{
	struct step_message *const head = &publisher->head;
	publisher->has_head = run->has_head;
	arena_free(publisher->head_arena);
	publisher->head_arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	if (!run->has_head)
		return 0;
	if (remote_run_step(publisher->remote, &publisher->run, run->head, publisher->head_arena,
		    head, err) != 0)
		return -1;
	*out = (struct publish_mark){.step = head->step,
		.digest = head->digest,
		.content = snapshot_content(head->files, head->file_count)};
	return 0;
}

/* Whether the head is a step that this state folder published or was about to publish. A state with
 * the current epoch and without a committed step comes from a call that was killed while it fetched
 * the baseline. `head` is NULL when the run has none. */
static bool is_own(const struct publish_state *state, const struct publish_mark *head)
{
	if (!state->has_committed)
		return true;
	return head != NULL &&
		(mark_equal(head, &state->committed) ||
			(state->has_pending && mark_equal(head, &state->pending)));
}

static bool mark_equal(const struct publish_mark *a, const struct publish_mark *b)
{
	return a->step == b->step && digest128_equal(&a->digest, &b->digest) &&
		digest128_equal(&a->content, &b->content);
}

static int refuse_head(
	const struct publisher *publisher, const struct run_message *run, struct error *err)
{
	char head[40] = "empty";
	char ours[40] = "nothing";
	if (run->has_head)
		snprintf(head, sizeof(head), "at step %" PRIu64, run->head);
	if (publisher->state.has_committed)
		snprintf(ours, sizeof(ours), "step %" PRIu64, publisher->state.committed.step);
	return error_set(err, ERROR_HEAD_MOVED,
		"run %s is %s, but this state folder last published %s; --take-over continues from "
		"where the run is",
		publisher->run.text, head, ours);
}

/* --step may name the next step, or the one published last, in a repeated call. */
static int check_step(
	const struct publisher *publisher, const struct run_message *run, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	if (!order->has_step || order->step == next_step(run) ||
		(run->has_head && order->step == run->head))
		return 0;
	return error_set(err, ERROR_HEAD_MOVED,
		"--step says %" PRIu64 ", but the next step of run %s is %" PRIu64, order->step,
		publisher->run.text, next_step(run));
}

static uint64_t next_step(const struct run_message *run)
{
	return run->has_head ? run->head + 1 : 0;
}

static int accept_head(
	struct publisher *publisher, const struct publish_mark *head, struct error *err)
{
	const struct step_message *const step = &publisher->head;
	struct publish_state *const state = &publisher->state;
	if (state->has_pending && mark_equal(head, &state->pending)) {
		publisher->adopted = true;
		return publish_state_commit(
			state, step_message_form(step, STEP_ANCHOR) != NULL, err);
	}
	if (step->verified == STEP_PROOF_FAILED)
		return accept_failed(publisher, head, err);
	if (state->has_committed && mark_equal(head, &state->committed))
		return 0;
	return fetch_baseline(publisher, head, err);
}

static int accept_failed(
	struct publisher *publisher, const struct publish_mark *head, struct error *err)
{
	const struct step_message *const step = &publisher->head;
	struct error reason = {0};
	ASSERT(step->verified == STEP_PROOF_FAILED);
	error_set(&reason, ERROR_STEP_FAILED, "step %" PRIu64 " of run %s failed its proof (%.*s)",
		head->step, publisher->run.text, (int)span_slice(step->verify_error, 0, 300).len,
		(const char *)step->verify_error.data);
	return go_whole(publisher, head, &reason, err);
}

/* Commits the head without a base: there is nothing that a delta could be made against, so the next
 * step is an anchor. */
static int go_whole(struct publisher *publisher, const struct publish_mark *head,
	const struct error *reason, struct error *err)
{
	struct publish_state *const state = &publisher->state;
	ASSERT(reason->kind != ERROR_NONE);
	if (publisher->order->anchor.when == ANCHOR_NEVER)
		return error_set(err, reason->kind,
			"%s. No delta can be made against it: --anchor auto continues with a full copy",
			reason->text);
	output_note(
		&publisher->session->output, "%s; publishing a full copy instead", reason->text);
	publisher->goes_whole = true;
	publish_state_forget(state);
	state->committed = *head;
	state->has_committed = true;
	return publish_state_save(state, err);
}

/* Fetches the head and makes it the committed step. */
static int fetch_baseline(
	struct publisher *publisher, const struct publish_mark *head, struct error *err)
{
	struct publish_state *const state = &publisher->state;
	if (state->has_committed && state->committed.step >= head->step)
		publish_state_forget(state);
	kept_mapping_release(publisher->order->mapping); /* the base goes */
	if (publish_state_drop_pending(state, err) != 0)
		return -1;
	output_say(&publisher->session->output,
		"fetching step %" PRIu64 " of run %s as the baseline", head->step,
		publisher->run.text);
	struct catch_up_result fetched;
	struct error failure = {0};
	int result = fetch_from(
		publisher, state->has_base ? &state->base : NULL, head, &fetched, &failure);
	if (result != 0 && state->has_base && catch_up_wants_anchor(&failure))
		result = fetch_from(publisher, NULL, head, &fetched, &failure);
	if (result == 0)
		return publish_state_adopt(state, head, err);
	error_wrap(&failure, "fetching the baseline");
	if (is_lost(&failure))
		return go_whole(publisher, head, &failure, err);
	*err = failure;
	return -1;
}

/* Fetches a path to the head, from the base `from`, or from an anchor when `from` is NULL. */
static int fetch_from(struct publisher *publisher, const struct publish_mark *from,
	const struct publish_mark *head, struct catch_up_result *out, struct error *err)
{
	struct publish_state *const state = &publisher->state;
	ASSERT(from == NULL || state->has_base);
	struct remote_run_route route = {
		.has_have = from != NULL, .has_want = true, .want = head->step};
	if (from != NULL) {
		route.have = from->step;
		route.digest = from->digest;
	}
	struct path_message path;
	new_answer(publisher);
	if (remote_run_path(
		    publisher->remote, &publisher->run, &route, publisher->arena, &path, err) != 0)
		return -1;
	if (path.link_count == 0)
		return error_set(err, ERROR_UPSTREAM,
			"the server gives no path to step %" PRIu64 " of run %s", head->step,
			publisher->run.text);
	char *const base =
		from != NULL ? publish_state_path(state, from->step, "checkpoint") : NULL;
	char *const work = publish_state_work_path(state, "incoming");
	char *const step_folder = publish_state_path(state, head->step, "");
	char *const folder = publish_state_path(state, head->step, "checkpoint");
	const struct catch_up_params params = {
		.transfer = session_transfer(publisher->session, publisher->remote, NULL),
		.run = &publisher->run,
		.path = &path,
		.base = base,
		.work = work,
		.out = folder,
		.threads = publisher->order->threads,
		.progress_sink = publisher->session->progress,
	};
	int result = file_remove_tree(state->files, step_folder, err);
	if (result == 0)
		result = file_make_folder(state->files, step_folder, 0700, err);
	if (result == 0)
		result = catch_up(&params, out, err);
	free(folder);
	free(step_folder);
	free(work);
	free(base);
	return result;
}

/* Whether the step failed its proof, or the fetched bytes are not the published ones: trying again
 * will not help. */
static bool is_lost(const struct error *failure)
{
	return failure->kind == ERROR_STEP_FAILED || catch_up_wants_anchor(failure);
}

static int start_over(struct publisher *publisher, struct error *err)
{
	publish_state_forget(&publisher->state);
	publisher->state.has_anchor = false;
	return publish_state_drop_pending(&publisher->state, err);
}
