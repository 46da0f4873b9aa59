/* A publish connects, checks the checkpoint, opens the state folder, settles the head and publishes
 * once (publish_once). Two things make it try a second time: a damaged baseline on disk, which is
 * fetched from the server first, and a head that moved before this publisher became the writer,
 * which is settled again.
 *
 * After a publish, keep_baseline decides whether to copy the checkpoint into the state folder. A
 * copy costs time now; each delta behind the base costs time in every later publish. So a copy is
 * made when the deltas are too many or too large. */
#include "client/publish/publisher.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "client/publish/publish_choice.h"
#include "client/publish/publish_forms.h"
#include "client/publish/publish_head.h"
#include "client/publish/publish_memory.h"
#include "client/publish/publisher_internal.h"
#include "client/remote/missing_bucket.h"
#include "client/work/progress.h"

enum {
	DELTAS_MAX = 32,    /* deltas behind the base */
	DELTAS_READ_MAX = 8 /* the same, when making a delta has to read them */
};

static int connect_publisher(struct publisher *publisher, const char *run, struct error *err);
static int enter_publisher(struct publisher *publisher, struct error *err);
static int open_state(struct publisher *publisher, struct error *err);
static char *state_folder(const struct session *session, const char *run,
	const struct publish_order *order, struct error *err);
static void close_publisher(struct publisher *publisher);
static int check_checkpoint(
	const struct session *session, const struct publish_order *order, struct error *err);
static int publish_on_head(struct publisher *publisher, struct error *err);
static int publish_once(struct publisher *publisher, struct error *err);
static int take_source(struct publisher *publisher, struct error *err);
static int measure(struct publisher *publisher, struct snapshot *out, struct error *err);
static int publish_opened(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
static int check_label(struct publisher *publisher, struct error *err);
static bool is_repeat(const struct publisher *publisher, const struct snapshot *snapshot);
static int finish_repeat(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
static int publish_snapshot(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
static int send_step(struct publisher *publisher, const struct snapshot *snapshot,
	struct publish_forms *forms, struct error *err);
static void fill_message(struct step_message *message, const struct publisher *publisher,
	const struct snapshot *snapshot, const struct publish_forms *forms);
static void fill_form(
	struct step_message *message, const struct publish_form *form, enum step_form_kind kind);
static bool wants_upload_again(const struct error *err);
static int explain_refusal(
	const struct publisher *publisher, const struct error *failure, struct error *err);
static int leave_pending(struct publisher *publisher, const struct error *failure);
static void keep_baseline(struct publisher *publisher);
static bool wants_copy(const struct publisher *publisher);

int publisher_lock(struct session *session, const char *run, const struct publish_order *order,
	int held, struct error *err)
{
	char *const folder = state_folder(session, run, order, err);
	if (folder == NULL)
		return -1;
	const int lock = publish_state_lock(session->files, folder, held, err);
	free(folder);
	return lock;
}

int publisher_check(struct session *session, const char *run, const struct publish_order *order,
	struct error *err)
{
	struct publisher publisher = {.session = session, .order = order, .state = {.lock_fd = -1}};
	int result = connect_publisher(&publisher, run, err);
	if (result == 0)
		result = enter_publisher(&publisher, err);
	if (result == 0)
		result = publish_head_settle(&publisher, err);
	close_publisher(&publisher);
	return result;
}

int publisher_run(struct session *session, const char *run, const struct publish_order *order,
	struct publish_outcome *out_outcome, struct error *err)
{
	struct publisher publisher = {.session = session,
		.order = order,
		.state = {.lock_fd = -1},
		.began_ms = clock_monotonic_ms()};
	int result = connect_publisher(&publisher, run, err);
	if (result == 0)
		result = check_checkpoint(session, order, err);
	if (result == 0)
		result = enter_publisher(&publisher, err);
	if (result == 0)
		result = publish_on_head(&publisher, err);
	if (result == 1)
		result = publish_on_head(&publisher, err);
	*out_outcome = publisher.outcome;
	close_publisher(&publisher);
	return result;
}

/* Connects to the server and checks the bucket. The run is not touched. */
static int connect_publisher(struct publisher *publisher, const char *run, struct error *err)
{
	if (run_name_init(&publisher->run, run, err) != 0)
		return -1;
	publisher->remote = session_connect(publisher->session, err);
	if (publisher->remote == NULL)
		return -1;
	return missing_bucket_check(
		publisher->remote, &publisher->run, publisher->order->create_bucket, err);
}

/* Opens the state folder, which tells whether this publisher already is the run's writer. */
static int enter_publisher(struct publisher *publisher, struct error *err)
{
	if (open_state(publisher, err) != 0)
		return -1;
	publisher->enters = !publisher->state.has_epoch || publisher->order->take_over;
	return 0;
}

static int open_state(struct publisher *publisher, struct error *err)
{
	char *const folder =
		state_folder(publisher->session, publisher->run.text, publisher->order, err);
	if (folder == NULL)
		return -1;
	const struct publish_state_params params = {
		.files = publisher->session->files,
		.folder = folder,
		.endpoint = publisher->session->remote_options.endpoint,
		.run = publisher->run.text,
		.may_replace = publisher->order->take_over,
		.held_lock = publisher->order->state_lock,
	};
	const int result = publish_state_open(&publisher->state, &params, err);
	free(folder);
	return result;
}

static char *state_folder(const struct session *session, const char *run,
	const struct publish_order *order, struct error *err)
{
	return order->state_folder != NULL
		? memory_copy_text(order->state_folder)
		: publish_state_default_folder(session->remote_options.endpoint, run, err);
}

static void close_publisher(struct publisher *publisher)
{
	arena_free(publisher->head_arena);
	arena_free(publisher->arena);
	remote_free(publisher->remote);
	publish_source_release(&publisher->source);
	publish_state_close(&publisher->state);
	run_name_release(&publisher->run);
}

/* Checks the checkpoint before anything happens on the server: a mistyped path must not shut out a
 * running trainer. Says which files are left out. */
static int check_checkpoint(
	const struct session *session, const struct publish_order *order, struct error *err)
{
	const char *const path = order->checkpoint;
	ASSERT((path != NULL) != (order->memory != NULL));
	if (order->memory != NULL)
		return publish_memory_check(order, err);
	struct delta_summary summary;
	struct publish_choice choice;
	struct error ignored = {0};
	if (delta_inspect(path, &summary, &ignored) == 0 && summary.is_delta)
		return error_set(err, ERROR_INVALID,
			"%s is a delta; publish takes the whole checkpoint and makes deltas itself",
			path);
	publish_choice_init(&choice, order->include, order->include_count, order->marker);
	struct checkpoint *const checkpoint = checkpoint_open_chosen(path, &choice.choice, err);
	if (checkpoint != NULL)
		publish_choice_say(&choice, &session->output);
	checkpoint_close(checkpoint);
	publish_choice_release(&choice);
	return checkpoint == NULL ? -1 : 0;
}

/* 1 when the head has moved. A server may answer wrong_base, too, so the kind alone does not prove
 * that there is a baseline. */
static int publish_on_head(struct publisher *publisher, struct error *err)
{
	struct error failure = {0};
	if (publish_head_settle(publisher, err) != 0)
		return -1;
	int result = publish_once(publisher, &failure);
	if (result < 0 && failure.kind == ERROR_WRONG_BASE && publisher->state.has_committed) {
		output_note(&publisher->session->output, "%s", failure.text);
		result = publish_head_refetch(publisher, &failure);
		if (result == 0)
			result = publish_once(publisher, &failure);
	}
	if (result < 0)
		*err = failure;
	return result;
}

/* 1 when the head has moved. */
static int publish_once(struct publisher *publisher, struct error *err)
{
	struct snapshot snapshot = {0};
	publish_source_release(&publisher->source);
	if (publisher->order->memory != NULL) {
		const int sent = publish_memory_delta(publisher, err);
		if (sent != PUBLISH_MEMORY_WHOLE)
			return sent;
	}
	kept_mapping_release(publisher->order->mapping); /* another file takes its place */
	if (take_source(publisher, err) != 0 || measure(publisher, &snapshot, err) != 0)
		return -1;
	const int result = publish_opened(publisher, &snapshot, err);
	snapshot_close(&snapshot);
	return result;
}

static int take_source(struct publisher *publisher, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	struct publish_choice choice;
	if (order->memory != NULL)
		return publish_memory_take(publisher, err) != 0
			? -1
			: publish_source_take_copy(&publisher->source, &publisher->state, err);
	publish_choice_init(&choice, order->include, order->include_count, order->marker);
	const int result = publish_source_take(
		&publisher->source, &publisher->state, order->checkpoint, &choice.choice, err);
	publish_choice_release(&choice);
	return result;
}

static int measure(struct publisher *publisher, struct snapshot *out, struct error *err)
{
	struct session *const session = publisher->session;
	const struct checkpoint_choice taken = publish_source_choice(&publisher->source);
	struct progress *const progress = progress_new(
		"hashing", 2 * publish_source_bytes(&publisher->source), session->progress);
	const int result = snapshot_open(out, publisher->source.path, &taken,
		publisher->order->threads, progress_watch(progress, session->stop), err);
	progress_free(progress);
	return result;
}

/* 1 when the head has moved. */
static int publish_opened(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	if (is_repeat(publisher, snapshot)) {
		const int opened = publish_head_open(publisher, err);
		return opened != 0 ? opened : finish_repeat(publisher, snapshot, err);
	}
	if (publisher_check_next(publisher, err) != 0)
		return -1;
	return publisher_set_pending(publisher, snapshot, err) != 0
		? -1
		: publish_snapshot(publisher, snapshot, err);
}

int publisher_check_next(struct publisher *publisher, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	if (order->has_step && order->step != publisher_next_step(&publisher->state))
		return error_set(err, ERROR_STEP_DIFFERS,
			"step %" PRIu64 " of run %s is already published with other content",
			order->step, publisher->run.text);
	return check_label(publisher, err);
}

/* Another publisher may have come in between since the caller looked at the run. From here on none
 * can: publish_head_open says so if the head has moved. */
static int check_label(struct publisher *publisher, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	uint64_t number;
	if (order->newest == NULL || !publisher->has_head)
		return 0;
	if (label_number_find(
		    publisher->remote, &publisher->run, &publisher->head, order->newest, err) != 0)
		return -1;
	if (!order->newest->is_known ||
		(label_number_read(span_text(order->label), &number) &&
			number > order->newest->value))
		return 0;
	return error_set(err, ERROR_PRECONDITION, "run %s has a step of number %" PRIu64 " by now",
		publisher->run.text, order->newest->value);
}

/* Whether this checkpoint already is the committed step, and the caller means that step. */
static bool is_repeat(const struct publisher *publisher, const struct snapshot *snapshot)
{
	const struct publish_state *const state = &publisher->state;
	if (!state->has_committed ||
		!digest128_equal(&state->committed.content, &snapshot->content))
		return false;
	return publisher->order->has_step ? publisher->order->step == state->committed.step
					  : publisher->adopted;
}

static int finish_repeat(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	ASSERT(publisher->state.has_committed);
	publisher->outcome = (struct publish_outcome){
		.step = publisher->state.committed.step,
		.digest = publisher->state.committed.digest,
		.already = true,
		.checkpoint_bytes = snapshot->bytes,
	};
	char *const folder = publish_state_new_path(&publisher->state);
	const int result = file_remove_tree(publisher->state.files, folder, err);
	free(folder);
	return result;
}

uint64_t publisher_next_step(const struct publish_state *state)
{
	return state->has_committed ? state->committed.step + 1 : 0;
}

int publisher_set_pending(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	const struct publish_mark mark = {
		.step = publisher_next_step(&publisher->state),
		.digest = snapshot->digest,
		.content = snapshot->content,
	};
	if (publish_state_set_pending(&publisher->state, &mark, err) != 0)
		return -1;
	publish_source_moved(&publisher->source, &publisher->state);
	return 0;
}

/* 1 when the head has moved, see publish_head_open. */
static int publish_snapshot(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	ASSERT(publisher->state.has_pending);
	struct publish_forms forms = {0};
	const int made = publish_forms_make(&forms, publisher, snapshot, err);
	const int result = made == 0 ? publisher_send(publisher, snapshot, &forms, err)
				     : leave_pending(publisher, err);
	publish_forms_release(&forms);
	if (result == 0)
		keep_baseline(publisher);
	return result;
}

int publisher_send(struct publisher *publisher, const struct snapshot *snapshot,
	struct publish_forms *forms, struct error *err)
{
	struct publish_outcome *const outcome = &publisher->outcome;
	ASSERT(publisher->state.has_pending);
	int result = stop_check(publisher->session->stop, err);
	if (result == 0)
		result = publish_head_open(publisher, err);
	if (result == 0)
		result = send_step(publisher, snapshot, forms, err);
	if (result != 0)
		return result > 0 ? result : leave_pending(publisher, err);
	outcome->step = publisher->state.pending.step;
	outcome->digest = snapshot->digest;
	outcome->checkpoint_bytes = snapshot->bytes;
	if (publish_state_commit(&publisher->state, outcome->anchor_bytes > 0, err) != 0)
		return -1;
	if (publisher->has_head)
		publish_choice_say_lost(&publisher->head, snapshot->files, snapshot->file_count,
			&publisher->session->output);
	return 0;
}

uint64_t publisher_ms_since(int64_t began_ms)
{
	const int64_t ms = clock_monotonic_ms() - began_ms;
	if (ms < 0)
		return 0;
	return (uint64_t)ms < STEP_PUBLISH_MAX_MS ? (uint64_t)ms : STEP_PUBLISH_MAX_MS;
}

static int send_step(struct publisher *publisher, const struct snapshot *snapshot,
	struct publish_forms *forms, struct error *err)
{
	struct step_message message;
	struct remote_run_published answer;
	struct error failure = {0};
	for (unsigned tries = 0; tries < 2; tries++) {
		fill_message(&message, publisher, snapshot, forms);
		if (publish_forms_send(forms, publisher, err) != 0)
			return error_wrap(err, "uploading step %" PRIu64 " of run %s",
				publisher->state.pending.step, publisher->run.text);
		if (publish_source_check(&publisher->source, err) != 0)
			return -1;
		if (remote_run_publish(
			    publisher->remote, &publisher->run, &message, &answer, &failure) == 0) {
			publisher->outcome.already = answer.already;
			publisher->outcome.anchor_due = answer.anchor_due;
			publisher->outcome.rollback = answer.rollback;
			return 0;
		}
		if (!wants_upload_again(&failure) ||
			publish_state_clear_sent(&publisher->state, err) != 0)
			break;
		publish_forms_own(forms, publisher);
	}
	return explain_refusal(publisher, &failure, err);
}

static void fill_message(struct step_message *message, const struct publisher *publisher,
	const struct snapshot *snapshot, const struct publish_forms *forms)
{
	const struct publish_state *const state = &publisher->state;
	ASSERT(state->has_pending);
	*message = (struct step_message){
		.step = state->pending.step,
		.epoch = state->epoch,
		.has_base = state->has_committed,
		.digest = snapshot->digest,
		.schema_digest = snapshot->schema_digest,
		.label = span_text(publisher->order->label),
		.metadata = publisher->order->metadata,
		.tensor_digests = span_of(snapshot->tensor_digests,
			snapshot->tensor_count * sizeof(*snapshot->tensor_digests)),
		.files = snapshot->files,
		.file_count = snapshot->file_count,
		.has_publish_ms = true,
		.publish_ms = publisher_ms_since(publisher->began_ms),
	};
	if (state->has_committed) {
		message->base_step = state->committed.step;
		message->base_digest = state->committed.digest;
	}
	fill_form(message, &forms->form[STEP_ANCHOR], STEP_ANCHOR);
	fill_form(message, &forms->form[STEP_DELTA], STEP_DELTA);
}

static void fill_form(
	struct step_message *message, const struct publish_form *form, enum step_form_kind kind)
{
	if (!form->wanted)
		return;
	ASSERT(message->form_count < STEP_FORMS_MAX && form->objects != NULL);
	message->forms[message->form_count++] = (struct step_form){
		.kind = kind,
		.format = span_text(form->format),
		.objects = form->objects,
		.object_count = form->files.count,
	};
}

/* Whether an object is missing or wrong on the server. An object that an earlier call uploaded may
 * have been removed or overwritten since. */
static bool wants_upload_again(const struct error *err)
{
	return err->kind == ERROR_NO_KEY || err->kind == ERROR_DIGEST_MISMATCH ||
		err->kind == ERROR_NOT_FOUND;
}

static int explain_refusal(
	const struct publisher *publisher, const struct error *failure, struct error *err)
{
	*err = *failure;
	if (failure->kind == ERROR_STALE_EPOCH)
		return error_set(err, ERROR_STALE_EPOCH,
			"another publisher has taken over run %s, so nothing was published; to "
			"continue with this one instead, run it once with --take-over",
			publisher->run.text);
	return error_wrap(err, "publishing step %" PRIu64 " of run %s",
		publisher->state.pending.step, publisher->run.text);
}

/* Keeps the pending step for the next call, unless the checkpoint changed meanwhile: then its delta
 * and its uploads are useless. Returns -1. */
static int leave_pending(struct publisher *publisher, const struct error *failure)
{
	struct error ignored = {0};
	if (failure->kind == ERROR_INVALID)
		publish_state_drop_pending(&publisher->state, &ignored);
	return -1;
}

/* Failures are only noted, because the step is published: without a copy the next call fetches the
 * step or reads more deltas. */
static void keep_baseline(struct publisher *publisher)
{
	struct publish_state *const state = &publisher->state;
	const struct checkpoint_choice taken = publish_source_choice(&publisher->source);
	struct error failure = {0};
	publish_source_note(&publisher->source, state);
	if (!wants_copy(publisher))
		return;
	char *const folder = publish_state_new_path(state);
	int result = file_remove_tree(state->files, folder, &failure);
	if (result == 0)
		result = snapshot_copy(
			state->files, publisher->source.path, &taken, folder, &failure);
	if (result == 0)
		result = publish_source_check(&publisher->source, &failure);
	if (result == 0)
		result = publish_state_set_base(state, &failure);
	if (result != 0) {
		struct error ignored = {0};
		/* half a copy is useless, and the disk may be full */
		file_remove_tree(state->files, folder, &ignored);
		publisher_say_no_copy(publisher, &failure);
	}
	free(folder);
}

void publisher_say_no_copy(const struct publisher *publisher, const struct error *failure)
{
	output_note(&publisher->session->output,
		"no copy of step %" PRIu64 " was kept for the next delta: %s",
		publisher->state.committed.step, failure->text);
}

/* Whether a copy of the committed step pays off, see the top of the file. The deltas behind the
 * base cost nothing while the trainer's own checkpoint is still there. */
static bool wants_copy(const struct publisher *publisher)
{
	const struct publish_state *const state = &publisher->state;
	ASSERT(state->has_committed && !state->has_pending);
	if (publisher->source.is_copy)
		return false;
	const uint64_t deltas = state->committed.step - state->base.step;
	return !state->has_base || deltas >= DELTAS_MAX ||
		(publisher->used_copy && deltas >= DELTAS_READ_MAX) ||
		publisher->outcome.delta_bytes * deltas > publisher->outcome.checkpoint_bytes;
}
