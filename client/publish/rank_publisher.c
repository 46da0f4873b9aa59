/* A rank settles the epoch (rank_epoch.h), finds the head, takes its share of the checkpoint as the
 * pending step (prepare), opens the run if it enters it, and sends its part (rank_part.c). All
 * ranks must send the same form. They see the same head, so they decide alike without talking to
 * each other: an anchor if there is no head, if the head cannot be a base or if the order says so;
 * otherwise a delta. A delta needs the index of the shards, which says where its parts are.
 *
 * A new epoch drops the parts that wait on the server. Rank 0 raises the epoch when it opens the
 * run again; a rank that meets the new epoch takes it from the shared folder and tries again
 * (rejoins). */
#include "client/publish/rank_publisher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/publish/publish_choice.h"
#include "client/publish/rank_delta.h"
#include "client/publish/rank_epoch.h"
#include "client/publish/rank_publisher_internal.h"
#include "client/publish/rank_share.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/remote_json.h"
#include "client/remote/remote_object.h"
#include "client/transfer/catch_up.h"
#include "client/work/progress.h"
#include "weights/model/shard_rule.h"
#include "wire/part_message.h"

/* Earlier versions noted zero digests for a baseline that they fetched. */
static const struct digest128 unknown;

static int enter_run(struct rank_publisher *self, struct error *err);
static int check_bucket(const struct rank_publisher *self, struct error *err);
static int open_state(struct rank_publisher *self, struct error *err);
static int settle_epoch(struct rank_publisher *self, struct error *err);
static struct rank_epoch_params epoch_params(const struct rank_publisher *self);
static int find_head(struct rank_publisher *self, struct error *err);
static int read_head(struct rank_publisher *self, struct error *err);
static bool rejoins(struct rank_publisher *self, uint64_t wait_s, const struct error *failure,
	struct error *err);
static int publish(struct rank_publisher *self, struct error *err);
static int commit(struct rank_publisher *self, bool is_sent, struct error *err);
static int prepare(struct rank_publisher *self, struct error *err);
static void release_form(struct rank_publisher *self);
static int settle_step(struct rank_publisher *self, struct error *err);
static bool has_baseline(const struct rank_publisher *self);
static int settle_pending(struct rank_publisher *self, struct error *err);
static bool wants_anchor(const struct rank_publisher *self);
static int judge_head(struct rank_publisher *self, struct error *err);
static const struct step_file *find_new_shard(const struct rank_publisher *self);
static int fetch_baseline(struct rank_publisher *self, struct error *err);
static int fetch_whole(struct rank_publisher *self, const char *whole, struct error *err);
static int take_baseline(struct rank_publisher *self, const char *whole, struct error *err);
static int explain_fetch(struct error *err);
static int choose_form(struct rank_publisher *self, struct error *err);
static int choose_delta(struct rank_publisher *self, const char *next, struct error *err);
static int make_delta(
	struct rank_publisher *self, const char *next, const char *out, struct error *err);
static void find_same(struct rank_publisher *self, const struct digest128 *base);
static bool is_baseline_damaged(const struct rank_publisher *self);
static int blame_part(const struct rank_publisher *self, struct error *err);
static int enter(struct rank_publisher *self, struct error *err);
static int send_part_until_it_counts(struct rank_publisher *self, struct error *err);
static int send_part(struct rank_publisher *self, struct error *err);
static int wait_for_leader(struct rank_publisher *self, struct error *err);
static int explain_put(const struct rank_publisher *self, struct error *err);

bool rank_publisher_has_files(
	const struct step_message *step, const struct step_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool found = false;
		for (size_t k = 0; k < step->file_count && !found; k++)
			found = span_equal(step->files[k].path, files[i].path) &&
				step->files[k].size == files[i].size &&
				digest128_equal(&step->files[k].digest, &files[i].digest);
		if (!found)
			return false;
	}
	return true;
}

int rank_publisher_run(struct session *session, const char *run, const struct publish_order *order,
	const struct rank_order *rank, struct publish_outcome *out_outcome, struct error *err)
{
	struct rank_publisher self = {.session = session,
		.order = order,
		.rank = rank,
		.state = {.lock_fd = -1},
		.began_ms = clock_monotonic_ms()};
	ASSERT(rank->rank < rank->ranks);
	if (run_name_init(&self.run, run, err) != 0)
		return -1;
	int result = order->memory != NULL
		? rank_memory_init(&self.memory, order->memory, rank, err)
		: 0;
	if (result == 0)
		result = enter_run(&self, err);
	if (result == 0)
		result = settle_epoch(&self, err);
	if (result == 0)
		result = find_head(&self, err);
	if (result == 0)
		result = publish(&self, err);
	self.outcome.epoch = self.state.has_epoch ? self.state.epoch : 0;
	*out_outcome = self.outcome;
	release_form(&self);
	rank_share_release(&self.share);
	rank_memory_release(&self.memory);
	arena_free(self.arena);
	remote_free(self.remote);
	publish_state_close(&self.state);
	free(self.shared);
	run_name_release(&self.run);
	return result;
}

static int enter_run(struct rank_publisher *self, struct error *err)
{
	self->remote = session_connect(self->session, err);
	return self->remote == NULL || check_bucket(self, err) != 0 ? -1 : open_state(self, err);
}

/* Only rank 0 asks: the others wait for it in any case. */
static int check_bucket(const struct rank_publisher *self, struct error *err)
{
	return self->rank->rank == 0
		? missing_bucket_check(self->remote, &self->run, self->order->create_bucket, err)
		: 0;
}

static int open_state(struct rank_publisher *self, struct error *err)
{
	const char *const endpoint = self->session->remote_options.endpoint;
	char name[64];
	if (self->order->state_folder != NULL) {
		self->shared = memory_copy_text(self->order->state_folder);
	} else {
		char *const own = publish_state_default_folder(endpoint, self->run.text, err);
		if (own == NULL)
			return -1;
		struct buffer path;
		buffer_init(&path, 8192);
		buffer_format(&path, "%s.ranks", own);
		self->shared = memory_copy_text(buffer_text(&path));
		buffer_release(&path);
		free(own);
	}
	snprintf(name, sizeof(name), "rank-%05" PRIu64 "-of-%05" PRIu64, self->rank->rank,
		self->rank->ranks);
	char *const folder = folder_files_join(self->shared, name);
	const struct publish_state_params params = {
		.files = self->session->files,
		.folder = folder,
		.endpoint = endpoint,
		.run = self->run.text,
		.may_replace = self->order->take_over,
	};
	const int result = publish_state_open(&self->state, &params, err);
	free(folder);
	return result;
}

static int settle_epoch(struct rank_publisher *self, struct error *err)
{
	const struct rank_epoch_params params = epoch_params(self);
	const int settled = rank_epoch_settle(&params, &self->state, err);
	self->enters = settled == 1;
	return settled < 0 ? -1 : 0;
}

static struct rank_epoch_params epoch_params(const struct rank_publisher *self)
{
	return (struct rank_epoch_params){
		.session = self->session,
		.order = self->order,
		.rank = self->rank,
		.run = &self->run,
		.remote = self->remote,
		.shared = self->shared,
	};
}

/* When rank 0 takes the run over, it first makes its part. So the others wait for its epoch as long
 * as they wait for each other's parts. */
static int find_head(struct rank_publisher *self, struct error *err)
{
	const uint64_t wait_s = self->order->take_over && self->rank->wait_s > RANK_EPOCH_REJOIN_S
		? self->rank->wait_s
		: RANK_EPOCH_REJOIN_S;
	struct error failure = {0};
	do {
		if (read_head(self, &failure) == 0)
			return 0;
	} while (rejoins(self, wait_s, &failure, err));
	return -1;
}

static int read_head(struct rank_publisher *self, struct error *err)
{
	struct run_message run;
	arena_free(self->arena);
	self->arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	if (remote_run_find(self->remote, &self->run, self->arena, &run, err) != 0)
		return -1;
	if (!self->enters && run.epoch != self->state.epoch)
		return error_set(err, ERROR_STALE_EPOCH,
			"run %s is at epoch %" PRIu64 ", this rank's is %" PRIu64
			": another trainer has taken it over, or rank 0 has opened it again",
			self->run.text, run.epoch, self->state.epoch);
	self->has_head = run.has_head;
	return run.has_head
		? remote_run_step(self->remote, &self->run, run.head, self->arena, &self->head, err)
		: 0;
}

/* Whether the failed request may be tried again, because rank 0 has opened the run again. Otherwise
 * *err is the failure, or that of looking for the new epoch. */
static bool rejoins(struct rank_publisher *self, uint64_t wait_s, const struct error *failure,
	struct error *err)
{
	const struct rank_epoch_params params = epoch_params(self);
	*err = *failure;
	return failure->kind == ERROR_STALE_EPOCH &&
		rank_epoch_rejoin(&params, wait_s, &self->state, err) == 1;
}

static int publish(struct rank_publisher *self, struct error *err)
{
	int settled = prepare(self, err);
	const int entered = settled < 0 ? -1 : enter(self, err);
	if (entered == 1)
		settled = prepare(self, err);
	if (entered < 0 || settled < 0)
		return -1;
	if (settled == 0 && rank_part_upload(self, err) != 0)
		return blame_part(self, err);
	if (settled == 0 && send_part_until_it_counts(self, err) != 0)
		return -1;
	if (rank_part_check(self, err) != 0)
		return -1;
	if (settled == 0 && self->has_head &&
		self->rank->rank == 0) /* rank 0 takes all files without tensors */
		publish_choice_say_lost(&self->head, self->share.files, self->share.file_count,
			&self->session->output);
	return commit(self, settled == 0, err);
}

/* A step that was there already has no delta here, so a copy must do. */
static int commit(struct rank_publisher *self, bool is_sent, struct error *err)
{
	if (!is_sent && rank_copy_complete(self, err) != 0)
		return -1;
	if (publish_state_commit(&self->state, self->kind == STEP_ANCHOR && is_sent, err) != 0)
		return -1;
	if (is_sent && self->kind == STEP_DELTA && self->order->memory != NULL)
		rank_copy_keep(self);
	return 0;
}

/* Makes our part ready to be sent. 1 when the step turned out to be already published. */
static int prepare(struct rank_publisher *self, struct error *err)
{
	release_form(self);
	self->goes_whole = false;
	const int settled = settle_step(self, err);
	if (settled < 0)
		return -1;
	self->outcome.step = self->state.pending.step;
	self->outcome.checkpoint_bytes = self->share.snapshot.bytes;
	self->outcome.already = settled > 0;
	if (settled == 0 && (choose_form(self, err) != 0 || rank_part_describe(self, err) != 0))
		return blame_part(self, err);
	return settled;
}

static void release_form(struct rank_publisher *self)
{
	for (size_t i = 0; i < self->sending.count && self->objects != NULL; i++)
		free((uint8_t *)self->objects[i].key.data);
	free(self->objects);
	self->objects = NULL;
	folder_files_release(&self->sending);
	free(self->same);
	self->same = NULL;
	self->outcome = (struct publish_outcome){0};
}

/* Settles which step this is and what it is made against. 1 when the pending step turned out to be
 * already published. */
static int settle_step(struct rank_publisher *self, struct error *err)
{
	const uint64_t next = self->has_head ? self->head.step + 1 : 0;
	const struct publish_order *const order = self->order;
	const bool repeats = order->has_step && self->has_head && order->step == self->head.step;
	if (order->has_step && order->step != next && !repeats)
		return error_set(err, ERROR_HEAD_MOVED,
			"--step says %" PRIu64 ", but the next step of run %s is %" PRIu64,
			order->step, self->run.text, next);
	if (repeats) {
		/* The step exists. Either the same call published it before, or its content is
		 * another. */
		if (rank_copy_take(self, self->head.step, err) != 0)
			return -1;
		if (!rank_publisher_has_files(
			    &self->head, self->share.files, self->share.file_count))
			return error_set(err, ERROR_STEP_DIFFERS,
				"step %" PRIu64
				" of run %s is already published with other content",
				order->step, self->run.text);
		return 1;
	}
	const int settled = settle_pending(self, err);
	if (settled != 0)
		return settled;
	if (rank_copy_take(self, next, err) != 0 ||
		(!wants_anchor(self) && judge_head(self, err) != 0))
		return -1;
	return has_baseline(self) || wants_anchor(self) ? 0 : fetch_baseline(self, err);
}

/* The committed step may have no copy, where one from memory could not be kept. */
static bool has_baseline(const struct rank_publisher *self)
{
	const struct publish_state *const state = &self->state;
	return state->has_committed && self->has_head && state->committed.step == self->head.step &&
		state->has_base && state->base.step == state->committed.step;
}

/* Recognises a repeated call: this rank was stopped after its part was put, the others completed
 * the step meanwhile, and the same checkpoint comes again. 1 when that is so; then the step is the
 * pending one. */
static int settle_pending(struct rank_publisher *self, struct error *err)
{
	const struct publish_mark before = self->state.pending;
	if (self->order->has_step || !self->state.has_pending || !self->has_head ||
		before.step != self->head.step)
		return 0;
	if (rank_copy_take(self, before.step, err) != 0)
		return -1;
	return digest128_equal(&self->state.pending.content, &before.content) &&
		rank_publisher_has_files(&self->head, self->share.files, self->share.file_count);
}

static bool wants_anchor(const struct rank_publisher *self)
{
	return !self->has_head || self->goes_whole || self->order->anchor.when == ANCHOR_ALWAYS;
}

/* Decides whether the head can be a base; if not, this step must be an anchor. All ranks must come
 * to the same result. They do: each sees the head's proof, and since shards are named after their
 * number, each sees other names when the number changes. */
static int judge_head(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->has_head);
	const struct step_file *const fresh = find_new_shard(self);
	const bool has_failed = self->head.verified == STEP_PROOF_FAILED;
	const bool has_index = step_file_find(self->head.files, self->head.file_count,
				       span_text(RANK_SHARE_INDEX_NAME)) != NULL;
	struct error reason = {0};
	self->goes_whole = has_failed || fresh != NULL || !has_index;
	if (!self->goes_whole)
		return 0;
	if (has_failed)
		error_set(&reason, ERROR_STEP_FAILED, "step %" PRIu64 " of run %s failed its proof",
			self->head.step, self->run.text);
	else
		error_set(&reason, ERROR_UNSUPPORTED, "step %" PRIu64 " of run %s has no file %.*s",
			self->head.step, self->run.text,
			fresh != NULL ? (int)fresh->path.len : (int)strlen(RANK_SHARE_INDEX_NAME),
			fresh != NULL ? (const char *)fresh->path.data : RANK_SHARE_INDEX_NAME);
	if (self->order->anchor.when == ANCHOR_NEVER)
		return error_set(err, reason.kind,
			"%s. No delta can be made against it: --anchor auto continues with a full copy",
			reason.text);
	output_note(&self->session->output, "%s; publishing a full copy instead", reason.text);
	return 0;
}

/* Finds a shard of ours that the head lacks, which means that the weights were divided differently.
 * NULL when there is none. */
static const struct step_file *find_new_shard(const struct rank_publisher *self)
{
	ASSERT(self->has_head);
	for (size_t i = 0; i < self->share.file_count; i++) {
		const struct step_file *const file = &self->share.files[i];
		if (shard_rule_is_top(file->path) &&
			step_file_find(self->head.files, self->head.file_count, file->path) == NULL)
			return file;
	}
	return NULL;
}

/* Fetches our shards of a head that we did not publish. The server gives a step only as a whole, so
 * the whole step is fetched and the files of the other ranks are removed. */
static int fetch_baseline(struct rank_publisher *self, struct error *err)
{
	struct publish_state *const state = &self->state;
	ASSERT(self->has_head && state->has_pending);
	char *const whole = publish_state_work_path(state, "new");
	output_say(&self->session->output, "fetching step %" PRIu64 " of run %s as the baseline",
		self->head.step, self->run.text);
	int result = fetch_whole(self, whole, err);
	if (result == 0)
		result = take_baseline(self, whole, err);
	free(whole);
	return result == 0 ? 0 : explain_fetch(err);
}

static int fetch_whole(struct rank_publisher *self, const char *whole, struct error *err)
{
	struct publish_state *const state = &self->state;
	const struct remote_run_route route = {.has_want = true, .want = self->head.step};
	struct path_message path;
	struct catch_up_result fetched;
	struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	char *const work = publish_state_work_path(state, "incoming");
	char *const old = publish_state_path(state, self->head.step, "");
	int result = remote_run_path(self->remote, &self->run, &route, arena, &path, err);
	const struct catch_up_params params = {
		.transfer = session_transfer(self->session, self->remote, NULL),
		.run = &self->run,
		.path = &path,
		.work = work,
		.out = whole,
		.threads = self->order->threads,
		.progress_sink = self->session->progress,
	};
	publish_state_forget(state);
	kept_mapping_release(self->order->mapping);
	if (result == 0)
		result = file_remove_tree(state->files, whole, err);
	if (result == 0)
		result = file_remove_tree(state->files, old, err);
	if (result == 0)
		result = catch_up(&params, &fetched, err);
	free(old);
	free(work);
	arena_free(arena);
	return result;
}

/* Makes the fetched step the committed one, with our files alone. */
static int take_baseline(struct rank_publisher *self, const char *whole, struct error *err)
{
	struct publish_state *const state = &self->state;
	struct rank_share share = {.file_count = 0};
	char *const step_folder = publish_state_path(state, self->head.step, "");
	char *const checkpoint = publish_state_path(state, self->head.step, "checkpoint");
	int result = file_make_folder(state->files, step_folder, 0700, err);
	if (result == 0)
		result = rank_copy_ours(self, whole, checkpoint, err);
	if (result == 0)
		result = file_remove_tree(state->files, whole, err);
	if (result == 0)
		result = rank_copy_open(self, checkpoint, &share, err);
	if (result == 0) {
		struct publish_mark mark = share.mark;
		mark.step = self->head.step;
		result = publish_state_adopt(state, &mark, err);
	}
	rank_share_release(&share);
	free(checkpoint);
	free(step_folder);
	return result;
}

/* Without a baseline there is no delta. All ranks must then send an anchor, and this rank cannot
 * decide that for the others. */
static int explain_fetch(struct error *err)
{
	if (err->kind != ERROR_STEP_FAILED && !catch_up_wants_anchor(err))
		return -1;
	return error_set(err, err->kind,
		"fetching the baseline: %s. No delta can be made without it: --anchor always, on "
		"every rank, continues with a full copy",
		err->text);
}

static int choose_form(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->state.has_pending);
	char *const checkpoint =
		publish_state_path(&self->state, self->state.pending.step, "checkpoint");
	self->kind = wants_anchor(self) ? STEP_ANCHOR : STEP_DELTA;
	int result = self->kind == STEP_ANCHOR ? rank_copy_complete(self, err)
					       : choose_delta(self, checkpoint, err);
	if (result == 0 && self->kind == STEP_ANCHOR)
		result = folder_files_read(checkpoint, &self->sending, err);
	free(checkpoint);
	return result;
}

/* Makes the delta and takes its files for sending. A damaged baseline is fetched again, once,
 * unless the word to stop has come. */
static int choose_delta(struct rank_publisher *self, const char *next, struct error *err)
{
	ASSERT(self->has_head && self->sending.count == 0);
	char *const out = publish_state_path(&self->state, self->state.pending.step, "delta");
	const int64_t started = clock_monotonic_ms();
	struct error failure = {0};
	int result = make_delta(self, next, out, &failure);
	if (result != 0 && stop_reason(self->session->stop) == 0 && is_baseline_damaged(self))
		result = fetch_baseline(self, err) != 0 ? -1 : make_delta(self, next, out, err);
	else if (result != 0)
		*err = failure;
	self->outcome.diff_ms = clock_monotonic_ms() - started;
	if (result == 0)
		result = folder_files_read(out, &self->sending, err);
	free(out);
	return result;
}

static int make_delta(
	struct rank_publisher *self, const char *next, const char *out, struct error *err)
{
	const struct publish_state *const state = &self->state;
	ASSERT(state->has_committed && state->has_pending);
	const bool is_known = !digest128_equal(&state->committed.digest, &unknown);
	const bool is_in_memory = self->order->memory != NULL;
	const size_t count = self->share.snapshot.tensor_count;
	struct session *const session = self->session;
	struct digest128 *const digests = memory_new_array(count + 1, sizeof(*digests));
	char *const base = publish_state_path(state, state->committed.step, "checkpoint");
	struct progress *const progress = progress_new(
		"comparing with the step before", self->share.snapshot.bytes, session->progress);
	const struct rank_delta_params params = {
		.files = state->files,
		.base = base,
		.next = is_in_memory ? NULL : next,
		.memory = is_in_memory ? &self->memory : NULL,
		.out = out,
		.step = state->pending.step,
		.threads = self->order->threads,
		.schema = checkpoint_schema(self->share.snapshot.checkpoint),
		.next_digests = self->share.snapshot.tensor_digests,
		.base_digest = is_known ? &state->committed.digest : NULL,
		.out_base_digests = digests,
		.watch = progress_watch(progress, session->stop),
	};
	const int result = rank_delta_make(&params, &self->outcome.stats, err);
	if (result == 0)
		find_same(self, digests);
	progress_free(progress);
	free(base);
	free(digests);
	return result;
}

static void find_same(struct rank_publisher *self, const struct digest128 *base)
{
	const struct snapshot *const next = &self->share.snapshot;
	free(self->same);
	self->same = memory_new_array(next->tensor_count + 1, sizeof(*self->same));
	for (size_t i = 0; i < next->tensor_count; i++)
		self->same[i] = digest128_equal(&base[i], &next->tensor_digests[i]);
}

/* Whether the copy of the committed step has lost bytes. It is not synced, so a power cut may have
 * taken some. */
static bool is_baseline_damaged(const struct rank_publisher *self)
{
	const struct publish_state *const state = &self->state;
	ASSERT(state->has_committed);
	struct rank_share share = {.file_count = 0};
	struct error ignored = {0};
	char *const base = publish_state_path(state, state->committed.step, "checkpoint");
	const bool is_whole = digest128_equal(&state->committed.content, &unknown) ||
		(rank_copy_open(self, base, &share, &ignored) == 0 &&
			digest128_equal(&share.mark.content, &state->committed.content));
	rank_share_release(&share);
	free(base);
	return !is_whole;
}

static int blame_part(const struct rank_publisher *self, struct error *err)
{
	return error_wrap(err, "rank %" PRIu64 " of step %" PRIu64 " of run %s", self->rank->rank,
		self->state.pending.step, self->run.text);
}

/* Opens the run if this rank enters it. It does so only when its part is ready, so that an attempt
 * that fails before has stopped no other writer. 1 when the other writer has published a step
 * meanwhile. */
static int enter(struct rank_publisher *self, struct error *err)
{
	const struct rank_epoch_params params = epoch_params(self);
	const bool had_head = self->has_head;
	const struct digest128 before = self->head.digest;
	const uint64_t step = self->head.step;
	if (!self->enters)
		return 0;
	if (rank_epoch_open(&params, &self->state, err) != 0)
		return -1;
	self->enters = false;
	if (find_head(self, err) != 0)
		return -1;
	const bool is_same = self->has_head == had_head &&
		(!had_head ||
			(self->head.step == step && digest128_equal(&self->head.digest, &before)));
	return is_same ? 0 : 1;
}

/* Sends the part again whenever a new epoch of our own has dropped it. */
static int send_part_until_it_counts(struct rank_publisher *self, struct error *err)
{
	struct error failure = {0};
	do {
		if (send_part(self, &failure) == 0)
			return 0;
	} while (rejoins(self, RANK_EPOCH_REJOIN_S, &failure, err));
	return -1;
}

/* Parts that an earlier attempt left on the server can bar the way to ours: they have other content
 * or another number of ranks. Rank 0 drops them with a new epoch. Nobody does where the epoch was
 * given. */
static int send_part(struct rank_publisher *self, struct error *err)
{
	bool published = false;
	int result = rank_part_put(self, &published, err);
	if (result != 0 && err->kind == ERROR_STEP_DIFFERS && !self->rank->has_epoch) {
		const struct rank_epoch_params params = epoch_params(self);
		if (self->rank->rank > 0)
			return wait_for_leader(self, err);
		result = rank_epoch_open(&params, &self->state, err);
		if (result == 0)
			result = rank_part_put(self, &published, err);
	}
	if (result != 0)
		return explain_put(self, err);
	return published ? 0 : rank_part_wait(self, err);
}

/* Waits until rank 0 drops the parts that bar the way (stale_epoch), or until the step is there.
 * When neither comes in time, *err stays as it is. */
static int wait_for_leader(struct rank_publisher *self, struct error *err)
{
	struct error failure = {0};
	output_note(&self->session->output, "%s Waiting for rank 0 to drop that part.", err->text);
	const int result = rank_part_wait(self, &failure);
	if (result != 0 && failure.kind != ERROR_NOT_READY)
		*err = failure;
	return result == 0 ? 0 : blame_part(self, err);
}

static int explain_put(const struct rank_publisher *self, struct error *err)
{
	if (err->kind == ERROR_PARTS_MISMATCH)
		error_set(err, err->kind,
			"%s Where some ranks send a full copy and others a delta, --anchor always on every rank helps",
			err->text);
	return blame_part(self, err);
}
