/* A rank's baselines in its state folder. What lies on disk is copied before it is published,
 * because the trainer may write there meanwhile. What lies in memory stays as it is during the
 * call, so a delta is made straight from it, and afterwards only what has changed is written over
 * the copy of the step before. */
#include "client/publish/rank_publisher_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/publish/publish_choice.h"
#include "client/work/progress.h"
#include "weights/model/relative_path.h"

static int open_from_memory(struct rank_publisher *self, struct error *err);
static int open_from_folder(struct rank_publisher *self, const char *to, struct error *err);
static int copy_share(const struct rank_publisher *self, const char *to, struct error *err);
static int write_copy(
	const struct rank_publisher *self, const char *folder, const bool *same, struct error *err);

int rank_copy_take(struct rank_publisher *self, uint64_t step, struct error *err)
{
	struct publish_state *const state = &self->state;
	rank_share_release(&self->share);
	if (publish_state_drop_pending(state, err) != 0)
		return -1;
	char *const folder = publish_state_path(state, step, "");
	char *const checkpoint = publish_state_path(state, step, "checkpoint");
	int result = file_remove_tree(state->files, folder, err);
	if (result == 0)
		result = file_make_folder(state->files, folder, 0700, err);
	if (result == 0)
		result = self->order->memory != NULL ? open_from_memory(self, err)
						     : open_from_folder(self, checkpoint, err);
	if (result == 0) {
		state->pending = self->share.mark;
		state->pending.step = step;
		state->has_pending = true;
		result = publish_state_save(state, err);
	}
	free(checkpoint);
	free(folder);
	return result;
}

int rank_copy_complete(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->state.has_pending);
	if (self->order->memory == NULL)
		return 0;
	char *const checkpoint =
		publish_state_path(&self->state, self->state.pending.step, "checkpoint");
	kept_mapping_release(self->order->mapping); /* another file takes its place */
	const int result = write_copy(self, checkpoint, NULL, err);
	free(checkpoint);
	return result;
}

int rank_copy_open(const struct rank_publisher *self, const char *folder, struct rank_share *out,
	struct error *err)
{
	struct session *const session = self->session;
	struct progress *const progress = progress_new("hashing", 0, session->progress);
	const int result = rank_share_open(
		out, folder, self->order->threads, progress_watch(progress, session->stop), err);
	progress_free(progress);
	return result;
}

int rank_copy_ours(
	const struct rank_publisher *self, const char *whole, const char *to, struct error *err)
{
	const struct file_ops *const files = self->state.files;
	int result = file_make_folder(files, to, 0755, err);
	for (size_t i = 0; i < self->share.file_count && result == 0; i++) {
		const struct span path = self->share.files[i].path;
		const bool is_index = span_equal_text(path, RANK_SHARE_INDEX_NAME);
		char *const from = relative_path_join(whole, path);
		char *const ours =
			relative_path_join(to, is_index ? span_text(RANK_SHARE_INDEX) : path);
		if (file_exists(from)) {
			result = file_make_parent(files, ours, 0755, err);
			if (result == 0)
				result = file_clone(files, from, ours, err);
		}
		free(ours);
		free(from);
	}
	return result;
}

void rank_copy_keep(struct rank_publisher *self)
{
	struct publish_state *const state = &self->state;
	struct error failure = {0};
	struct error ignored = {0};
	char *const folder = publish_state_new_path(state);
	int result = publish_state_take_base(state, &failure);
	if (result == 0)
		result = write_copy(self, folder, self->same, &failure);
	if (result == 0)
		result = publish_state_set_base(state, &failure);
	if (result != 0) {
		file_remove_tree(state->files, folder, &ignored); /* the disk may be full */
		output_note(&self->session->output,
			"no copy of step %" PRIu64 " was kept for the next delta: %s",
			state->committed.step, failure.text);
	}
	free(folder);
}

static int open_from_memory(struct rank_publisher *self, struct error *err)
{
	struct session *const session = self->session;
	struct progress *const progress = progress_new("hashing", 0, session->progress);
	const int result = rank_share_open_memory(&self->share, &self->memory, self->order->threads,
		progress_watch(progress, session->stop), err);
	progress_free(progress);
	return result;
}

static int open_from_folder(struct rank_publisher *self, const char *to, struct error *err)
{
	return copy_share(self, to, err) != 0 ? -1 : rank_copy_open(self, to, &self->share, err);
}

static int copy_share(const struct rank_publisher *self, const char *to, struct error *err)
{
	const struct publish_order *const order = self->order;
	struct publish_choice choice;
	publish_choice_init(&choice, order->include, order->include_count, order->marker);
	const struct rank_share_params params = {
		.files = self->state.files,
		.checkpoint = order->checkpoint,
		.rank = self->rank->rank,
		.ranks = self->rank->ranks,
		.choice = &choice.choice,
		.to = to,
	};
	const int result = rank_share_copy(&params, err);
	if (result == 0 && self->rank->rank == 0)
		publish_choice_say(&choice, &self->session->output);
	publish_choice_release(&choice);
	return result;
}

static int write_copy(
	const struct rank_publisher *self, const char *folder, const bool *same, struct error *err)
{
	struct session *const session = self->session;
	struct progress *const progress =
		progress_new("keeping the step", self->share.snapshot.bytes, session->progress);
	const struct rank_memory_copy copy = {.files = self->state.files,
		.folder = folder,
		.same = same,
		.mapping = self->order->mapping,
		.threads = self->order->threads,
		.watch = progress_watch(progress, session->stop)};
	const int result = rank_memory_write(&self->memory, &copy, err);
	progress_free(progress);
	return result;
}
