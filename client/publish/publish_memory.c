/* The step becomes pending only after its delta is made, because the digests that name it come from
 * the same pass. The digest of the file is made beside that pass, on a thread of its own.
 *
 * The copy becomes the baseline in place: the state forgets it, what differs is written over it,
 * and the state takes it as the committed step's. A kill in between leaves no baseline, and the
 * next call fetches the step from the server. Wrong bytes in the copy are found by the next delta,
 * which proves the digest of its base. */
#include "client/publish/publish_memory.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/local/memory_copy.h"
#include "client/publish/publisher_internal.h"
#include "client/work/progress.h"
#include "weights/model/parallel.h"

static const char NAME[] = "the checkpoint in memory";

struct making {
	struct publisher *publisher;
	struct snapshot *snapshot;
	struct publish_diff diff;
};

static bool must_go_whole(const struct publisher *publisher);
static int open_snapshot(
	const struct publish_order *order, struct snapshot *out, struct error *err);
static int make_and_send(struct publisher *publisher, struct snapshot *snapshot, struct error *err);
static int make(struct making *making, struct error *err);
static int publish_memory_make_part(void *state, size_t item, unsigned worker, struct error *err);
static int measure_files(const struct making *making, struct error *err);
static int send(struct publisher *publisher, struct snapshot *snapshot, struct error *err);
static void find_same(const struct making *making, bool *out_same);
static void keep_copy(struct publisher *publisher, const struct checkpoint *from, const bool *same);
static int write_copy(struct publisher *publisher, const struct checkpoint *from, const bool *same,
	struct error *err);
static void drop_copy(const struct publish_state *state);

int publish_memory_check(const struct publish_order *order, struct error *err)
{
	struct checkpoint *const checkpoint = memory_checkpoint_open(order->memory, err);
	checkpoint_close(checkpoint);
	return checkpoint == NULL ? -1 : 0;
}

int publish_memory_delta(struct publisher *publisher, struct error *err)
{
	struct snapshot snapshot = {0};
	if (must_go_whole(publisher))
		return PUBLISH_MEMORY_WHOLE;
	if (publisher_check_next(publisher, err) != 0 ||
		open_snapshot(publisher->order, &snapshot, err) != 0)
		return -1;
	const int result = make_and_send(publisher, &snapshot, err);
	snapshot_close(&snapshot);
	return result;
}

int publish_memory_take(struct publisher *publisher, struct error *err)
{
	char *const folder = publish_state_new_path(&publisher->state);
	struct checkpoint *const from = memory_checkpoint_open(publisher->order->memory, err);
	int result = from == NULL ? -1 : file_remove_tree(publisher->state.files, folder, err);
	if (result == 0)
		result = write_copy(publisher, from, NULL, err);
	checkpoint_close(from);
	free(folder);
	return result;
}

/* Also a step that the caller may have published before: whether that is so, only its digests
 * tell. */
static bool must_go_whole(const struct publisher *publisher)
{
	const struct publish_order *const order = publisher->order;
	const struct publish_state *const state = &publisher->state;
	return publisher->goes_whole || !state->has_committed || publisher->adopted ||
		(order->has_step && order->step == state->committed.step) ||
		anchor_policy_wants(
			&order->anchor, publisher_next_step(state), publisher->anchor_due);
}

static int open_snapshot(const struct publish_order *order, struct snapshot *out, struct error *err)
{
	struct checkpoint *const checkpoint = memory_checkpoint_open(order->memory, err);
	return checkpoint == NULL ? -1 : snapshot_begin(out, checkpoint, NAME, err);
}

static int make_and_send(struct publisher *publisher, struct snapshot *snapshot, struct error *err)
{
	const struct publish_state *const state = &publisher->state;
	struct error failure = {0};
	struct making making = {.publisher = publisher, .snapshot = snapshot};
	const size_t count = snapshot->tensor_count;
	const bool is_newest = state->has_base && state->base.step == state->committed.step;
	bool *const same = memory_new_array(count + 1, sizeof(*same));
	char *const out = publish_state_new_delta_path(state);
	making.diff = (struct publish_diff){.next = snapshot->checkpoint,
		.out = out,
		.base_digests = memory_new_array(count + 1, sizeof(struct digest128)),
		.next_digests = snapshot->tensor_digests};
	int result = make(&making, &failure);
	if (result == 0) {
		find_same(&making, same);
		result = send(publisher, snapshot, &failure);
	}
	if (result == 0)
		keep_copy(publisher, snapshot->checkpoint,
			is_newest && publisher->used_copy ? same : NULL);
	if (result < 0)
		*err = failure;
	free(making.diff.base_digests);
	free(out);
	free(same);
	return result;
}

static int make(struct making *making, struct error *err)
{
	struct publisher *const publisher = making->publisher;
	const int64_t started = clock_monotonic_ms();
	struct error failure = {0};
	publisher->used_copy = false;
	if (publish_state_clear_new_delta(&publisher->state, err) != 0)
		return -1;
	const int result = parallel_run(parallel_workers(publisher->order->threads, 2), 2,
		publish_memory_make_part, making, &failure);
	publisher->outcome.diff_ms = clock_monotonic_ms() - started;
	if (result == 0) {
		snapshot_take_tensors(making->snapshot);
		return 0;
	}
	*err = failure;
	if (failure.kind != ERROR_UNSUPPORTED)
		return -1;
	output_note(
		&publisher->session->output, "%s; publishing a full copy instead", failure.text);
	publisher->goes_whole = true;
	return PUBLISH_MEMORY_WHOLE;
}

static int publish_memory_make_part(void *state, size_t item, unsigned worker, struct error *err)
{
	struct making *const making = state;
	(void)worker;
	return item == 0 ? publish_forms_diff(making->publisher, &making->diff, err)
			 : measure_files(making, err);
}

/* Nobody looks at this progress: it only hears the word to stop. */
static int measure_files(const struct making *making, struct error *err)
{
	struct progress *const progress = progress_new("hashing", making->snapshot->bytes, NULL);
	const int result =
		snapshot_measure_files(making->snapshot, making->publisher->order->threads,
			progress_watch(progress, making->publisher->session->stop), err);
	progress_free(progress);
	return result;
}

/* 1 when the head has moved; PUBLISH_MEMORY_WHOLE when an anchor costs the reader less. */
static int send(struct publisher *publisher, struct snapshot *snapshot, struct error *err)
{
	struct publish_state *const state = &publisher->state;
	struct publish_forms forms = {0};
	drop_copy(state);
	int result = publisher_set_pending(publisher, snapshot, err);
	if (result == 0)
		result = publish_state_take_delta(state, err);
	if (result == 0)
		result = publish_forms_take_delta(&forms, publisher, err);
	if (result == 0 && forms.form[STEP_DELTA].bytes >= snapshot->bytes) {
		publisher->goes_whole = true;
		result = PUBLISH_MEMORY_WHOLE;
	}
	if (result == 0)
		result = publisher_send(publisher, snapshot, &forms, err);
	publish_forms_release(&forms);
	return result;
}

static void find_same(const struct making *making, bool *out_same)
{
	for (size_t i = 0; i < making->snapshot->tensor_count; i++)
		out_same[i] = digest128_equal(
			&making->diff.base_digests[i], &making->diff.next_digests[i]);
}

/* Failures are only noted, because the step is published: without a copy the next call fetches the
 * step. */
static void keep_copy(struct publisher *publisher, const struct checkpoint *from, const bool *same)
{
	struct publish_state *const state = &publisher->state;
	struct error failure = {0};
	int result = publish_state_take_base(state, &failure);
	if (result == 0)
		result = write_copy(publisher, from, same, &failure);
	if (result == 0)
		result = publish_state_set_base(state, &failure);
	if (result == 0)
		return;
	drop_copy(state);
	publisher_say_no_copy(publisher, &failure);
}

static int write_copy(struct publisher *publisher, const struct checkpoint *from, const bool *same,
	struct error *err)
{
	struct session *const session = publisher->session;
	char *const folder = publish_state_new_path(&publisher->state);
	struct progress *const progress =
		progress_new("keeping the step", checkpoint_bytes(from), session->progress);
	const struct memory_copy copy = {.files = publisher->state.files,
		.from = from,
		.folder = folder,
		.same = same,
		.mapping = publisher->order->mapping,
		.threads = publisher->order->threads,
		.watch = progress_watch(progress, session->stop)};
	const int result = memory_copy_make(&copy, err);
	progress_free(progress);
	free(folder);
	return result;
}

/* Half a copy is useless, and the disk may be full. */
static void drop_copy(const struct publish_state *state)
{
	struct error ignored = {0};
	char *const folder = publish_state_new_path(state);
	file_remove_tree(state->files, folder, &ignored);
	free(folder);
}
