/* A delta is proven before it counts. remake clears the mark `proven`, encodes the delta, checks
 * that the checkpoint did not change meanwhile, and only then sets the mark. A call that is killed
 * in between leaves an unproven delta, which the next call makes again. Each finished upload is
 * written to `sent`, so that the same command resumes where it stopped. */
#include "client/publish/publish_forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "client/publish/publish_base.h"
#include "client/remote/remote_object.h"
#include "weights/delta/delta_encode.h"
#include "weights/model/checkpoint_source.h"

struct sending {
	struct publisher *publisher;
	struct transfer_upload *files;
	size_t count;
	uint64_t bytes;
};

static void set_place(struct step_object *object, struct span key, struct span version);
static struct span own_key(
	const struct publisher *publisher, enum step_form_kind kind, const char *name);
static int make_delta(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
static bool is_made(
	const struct publisher *publisher, const struct snapshot *snapshot, const char *path);
static int remake(struct publisher *publisher, const struct snapshot *snapshot, const char *out,
	struct error *err);
static int encode(struct publisher *publisher, const struct publish_diff *diff,
	const struct publish_base *base, struct error *err);
static int blame_state(const struct publish_state *state, struct error *err);
static int check_source(
	const struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
static int read_delta(
	struct publish_form *form, const struct publisher *publisher, struct error *err);
static void add_objects(
	struct publish_form *form, const struct publisher *publisher, enum step_form_kind kind);
static void form_release(struct publish_form *form);
static void take_anchor(struct publish_form *form, const struct publisher *publisher,
	const struct snapshot *snapshot);
static void refer_to_last_anchor(struct publish_form *anchor, const struct publisher *publisher);
static void refer_to(struct publish_form *form, const struct step_form *earlier);
static struct span copy_span(struct span text);
static void add_uploads(struct sending *sending, const struct publish_form *form, struct span sent);
static bool was_sent(struct span sent, const char *target);
static int publish_forms_note_sent(void *owner, size_t index, struct error *err);

void publish_forms_own(struct publish_forms *forms, const struct publisher *publisher)
{
	for (size_t kind = 0; kind < STEP_FORMS_MAX; kind++) {
		struct publish_form *const form = &forms->form[kind];
		for (size_t i = 0; i < form->files.count && form->referred != NULL; i++) {
			if (!form->referred[i])
				continue;
			ASSERT(form->objects != NULL);
			set_place(&form->objects[i],
				own_key(publisher, (enum step_form_kind)kind,
					form->files.files[i].name),
				(struct span){0});
			form->referred[i] = false;
		}
	}
}

int publish_forms_make(struct publish_forms *forms, struct publisher *publisher,
	const struct snapshot *snapshot, struct error *err)
{
	const struct publish_order *const order = publisher->order;
	const struct publish_state *const state = &publisher->state;
	struct publish_form *const delta = &forms->form[STEP_DELTA];
	struct publish_form *const anchor = &forms->form[STEP_ANCHOR];
	ASSERT(state->has_pending);
	*forms = (struct publish_forms){0};
	if (state->has_committed && !publisher->goes_whole) {
		const int made = make_delta(publisher, snapshot, err);
		if (made < 0 || (made == 0 && read_delta(delta, publisher, err) != 0))
			return -1;
		if (delta->bytes >= snapshot->bytes)
			form_release(delta); /* an anchor costs the reader less */
	}
	const bool wants_anchor =
		anchor_policy_wants(&order->anchor, state->pending.step, publisher->anchor_due);
	if (wants_anchor || !delta->wanted) {
		take_anchor(anchor, publisher, snapshot);
		refer_to_last_anchor(anchor, publisher);
	}
	ASSERT(delta->wanted || anchor->wanted);
	publisher->outcome.delta_bytes = delta->bytes;
	publisher->outcome.anchor_bytes = anchor->bytes;
	return 0;
}

int publish_forms_take_delta(
	struct publish_forms *forms, struct publisher *publisher, struct error *err)
{
	struct publish_form *const delta = &forms->form[STEP_DELTA];
	*forms = (struct publish_forms){0};
	if (read_delta(delta, publisher, err) != 0)
		return -1;
	publisher->outcome.delta_bytes = delta->bytes;
	publisher->outcome.anchor_bytes = 0;
	return 0;
}

int publish_forms_diff(
	struct publisher *publisher, const struct publish_diff *diff, struct error *err)
{
	const struct publish_state *const state = &publisher->state;
	struct publish_base base;
	struct error failure = {0};
	ASSERT(state->has_committed);
	if (publish_base_find(&base, state)) {
		const int made = encode(publisher, diff, &base, &failure);
		publish_base_close(&base);
		*err = failure;
		if (made == 0 || failure.kind != ERROR_WRONG_BASE)
			return made;
	}
	if (publish_base_open(&base, state, err) != 0)
		return -1;
	publisher->used_copy = true;
	const int result = encode(publisher, diff, &base, err);
	publish_base_close(&base);
	return result == 0 ? 0 : blame_state(state, err);
}

void publish_forms_release(struct publish_forms *forms)
{
	for (size_t i = 0; i < STEP_FORMS_MAX; i++)
		form_release(&forms->form[i]);
}

int publish_forms_send(
	const struct publish_forms *forms, struct publisher *publisher, struct error *err)
{
	struct sending sending = {.publisher = publisher};
	struct buffer sent;
	const int64_t started = clock_monotonic_ms();
	ASSERT(publisher->state.has_pending);
	int result = publish_state_read_sent(&publisher->state, &sent, err);
	if (result == 0) {
		sending.files = memory_new_array(forms->form[STEP_ANCHOR].files.count +
				forms->form[STEP_DELTA].files.count + 1,
			sizeof(*sending.files));
		add_uploads(&sending, &forms->form[STEP_DELTA], buffer_span(&sent));
		add_uploads(&sending, &forms->form[STEP_ANCHOR], buffer_span(&sent));
		struct progress *const progress =
			progress_new("uploading", sending.bytes, publisher->session->progress);
		const struct transfer_options transfer =
			session_transfer(publisher->session, publisher->remote, progress);
		result = transfer_upload(&transfer, sending.files, sending.count,
			publish_forms_note_sent, &sending, err);
		progress_free(progress);
	}
	for (size_t i = 0; i < sending.count; i++)
		free((char *)sending.files[i].target);
	free(sending.files);
	buffer_release(&sent);
	publisher->outcome.upload_ms += clock_monotonic_ms() - started;
	return result;
}

/* Takes over the memory of key and version. */
static void set_place(struct step_object *object, struct span key, struct span version)
{
	free((uint8_t *)object->key.data);
	free((uint8_t *)object->version.data);
	object->key = key;
	object->version = version;
}

static struct span own_key(
	const struct publisher *publisher, enum step_form_kind kind, const char *name)
{
	struct buffer key;
	ASSERT(publisher->state.has_pending);
	buffer_init(&key, 8192);
	buffer_format(&key, "%s/steps/%06" PRIu64 "/%s/%s", publisher->run.run,
		publisher->state.pending.step, step_form_kind_name(kind), name);
	const struct span copy = span_text(memory_copy_text(buffer_text(&key)));
	buffer_release(&key);
	return copy;
}

/* 1 when the format cannot represent these tensors exactly: then there is no delta. */
static int make_delta(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	struct publish_state *const state = &publisher->state;
	char *const out = publish_state_path(state, state->pending.step, "delta");
	const int64_t started = clock_monotonic_ms();
	struct error failure = {0};
	int result =
		is_made(publisher, snapshot, out) ? 0 : remake(publisher, snapshot, out, &failure);
	if (result != 0 && failure.kind == ERROR_UNSUPPORTED) {
		output_note(&publisher->session->output, "%s; publishing a full copy instead",
			failure.text);
		result = 1;
	} else if (result != 0) {
		struct error ignored = {0};
		file_remove_tree(state->files, out, &ignored);
		*err = failure;
	}
	publisher->outcome.diff_ms = clock_monotonic_ms() - started;
	free(out);
	return result;
}

/* Whether an earlier call left exactly the delta that is needed now. */
static bool is_made(
	const struct publisher *publisher, const struct snapshot *snapshot, const char *path)
{
	struct delta_summary summary;
	struct error ignored = {0};
	if (!publish_state_is_proven(&publisher->state) || !file_exists(path) ||
		delta_inspect(path, &summary, &ignored) != 0)
		return false;
	return summary.is_delta && summary.has_digests &&
		summary.format == publisher->order->format &&
		digest128_equal(&summary.base_digest, &publisher->state.committed.digest) &&
		digest128_equal(&summary.result_digest, &snapshot->digest);
}

static int remake(struct publisher *publisher, const struct snapshot *snapshot, const char *out,
	struct error *err)
{
	const struct publish_state *const state = &publisher->state;
	const struct publish_diff diff = {.next = snapshot->checkpoint, .out = out};
	if (publish_state_set_proven(state, false, err) != 0 ||
		file_remove_tree(state->files, out, err) != 0 ||
		publish_forms_diff(publisher, &diff, err) != 0 ||
		check_source(publisher, snapshot, err) != 0)
		return -1;
	return publish_state_set_proven(state, true, err);
}

static int encode(struct publisher *publisher, const struct publish_diff *diff,
	const struct publish_base *base, struct error *err)
{
	const struct publish_state *const state = &publisher->state;
	struct model_files next_files = {0};
	struct session *const session = publisher->session;
	struct progress *const progress = progress_new(
		"comparing with the step before", checkpoint_bytes(diff->next), session->progress);
	struct tensor_source *const next = checkpoint_source_new(diff->next);
	int result = model_files_of(&next_files, diff->next, err);
	next_files.is_folder = true; /* a published step always is */
	const struct delta_encode_params params = {
		.base = base->tensors,
		.next = next,
		.base_files = base->files,
		.next_files = &next_files,
		.format = publisher->order->format,
		.out_base_digests = diff->base_digests,
		.out_next_digests = diff->next_digests,
		.expected_base = &state->committed.digest,
		.model_version = state->committed.step + 1,
		.has_base_step = true,
		.base_step = state->committed.step,
		.threads = publisher->order->threads,
		.watch = progress_watch(progress, session->stop),
		.out = diff->out,
		.files = state->files,
	};
	if (result == 0)
		result = delta_encode(&params, &publisher->outcome.stats, err);
	progress_free(progress);
	model_files_release(&next_files);
	tensor_source_free(next);
	return result;
}

/* Our own deltas that cannot be read as they were written mean that the state folder is damaged. */
static int blame_state(const struct publish_state *state, struct error *err)
{
	if (err->kind != ERROR_DIGEST_MISMATCH && err->kind != ERROR_INVALID &&
		err->kind != ERROR_CORRUPT)
		return -1;
	err->kind = ERROR_WRONG_BASE;
	return error_wrap(err, "the baseline in %s is damaged", state->folder);
}

/* Proves that the delta leads to the checkpoint that was hashed before. The digest shows a change
 * even where the file system's clock is too coarse to show it. */
static int check_source(
	const struct publisher *publisher, const struct snapshot *snapshot, struct error *err)
{
	if (publish_source_check(&publisher->source, err) != 0)
		return -1;
	return digest128_equal(&publisher->outcome.stats.result_digest, &snapshot->digest)
		? 0
		: publish_source_refuse(publisher->source.path, err);
}

static int read_delta(
	struct publish_form *form, const struct publisher *publisher, struct error *err)
{
	ASSERT(publisher->state.has_pending && !form->wanted);
	char *const folder =
		publish_state_path(&publisher->state, publisher->state.pending.step, "delta");
	form->wanted = true;
	form->format = delta_format_name(publisher->order->format);
	int result = folder_files_read(folder, &form->files, err);
	if (result == 0)
		add_objects(form, publisher, STEP_DELTA);
	for (size_t i = 0; i < form->files.count && result == 0; i++)
		result = transfer_file_digest(
			form->files.files[i].path, &form->objects[i].digest, err);
	free(folder);
	return result;
}

static void add_objects(
	struct publish_form *form, const struct publisher *publisher, enum step_form_kind kind)
{
	ASSERT(form->objects == NULL && form->referred == NULL);
	form->objects = memory_new_array(form->files.count + 1, sizeof(*form->objects));
	form->referred = memory_new_array(form->files.count + 1, sizeof(*form->referred));
	for (size_t i = 0; i < form->files.count; i++) {
		const struct folder_file *const file = &form->files.files[i];
		form->objects[i] = (struct step_object){.name = span_text(file->name),
			.key = own_key(publisher, kind, file->name),
			.size = file->size};
		form->bytes += file->size;
	}
}

static void form_release(struct publish_form *form)
{
	for (size_t i = 0; i < form->files.count && form->objects != NULL; i++)
		set_place(&form->objects[i], (struct span){0}, (struct span){0});
	free(form->objects);
	free(form->referred);
	folder_files_release(&form->files);
	*form = (struct publish_form){0};
}

/* Takes the checkpoint's files where they lie, with the digests from the snapshot. */
static void take_anchor(struct publish_form *form, const struct publisher *publisher,
	const struct snapshot *snapshot)
{
	ASSERT(!form->wanted && form->files.count == 0);
	ASSERT(snapshot->file_count == checkpoint_file_count(snapshot->checkpoint));
	form->wanted = true;
	form->format = "full";
	form->files.files = memory_new_array(snapshot->file_count + 1, sizeof(*form->files.files));
	for (size_t i = 0; i < snapshot->file_count; i++) {
		char *const name = memory_copy_text(checkpoint_file(snapshot->checkpoint, i)->path);
		form->files.files[form->files.count++] = (struct folder_file){.name = name,
			.path = publish_source_file(&publisher->source, name),
			.size = snapshot->files[i].size};
	}
	add_objects(form, publisher, STEP_ANCHOR);
	for (size_t i = 0; i < snapshot->file_count; i++)
		form->objects[i].digest = snapshot->files[i].digest;
}

/* A model's tokenizer is often larger than a delta and hardly ever changes, so an anchor names the
 * object of the anchor before. Failures are ignored: then the file is sent. */
static void refer_to_last_anchor(struct publish_form *anchor, const struct publisher *publisher)
{
	const struct publish_state *const state = &publisher->state;
	struct error ignored = {0};
	struct step_message step;
	if (!state->has_anchor)
		return;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	if (remote_run_step(publisher->remote, &publisher->run, state->anchor_step, arena, &step,
		    &ignored) == 0) {
		const struct step_form *const form = step_message_form(&step, STEP_ANCHOR);
		if (form != NULL)
			refer_to(anchor, form);
	}
	arena_free(arena);
}

static void refer_to(struct publish_form *form, const struct step_form *earlier)
{
	ASSERT(form->files.count == 0 || (form->objects != NULL && form->referred != NULL));
	for (size_t i = 0; i < form->files.count; i++) {
		struct step_object *const object = &form->objects[i];
		for (size_t k = 0; k < earlier->object_count && !form->referred[i]; k++) {
			const struct step_object *const other = &earlier->objects[k];
			if (!span_equal(object->name, other->name) || object->size != other->size ||
				!digest128_equal(&object->digest, &other->digest))
				continue;
			set_place(object, copy_span(other->key), copy_span(other->version));
			form->referred[i] = true;
		}
	}
}

static struct span copy_span(struct span text)
{
	uint8_t *const copy = memory_new(text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return span_of(copy, text.len);
}

static void add_uploads(struct sending *sending, const struct publish_form *form, struct span sent)
{
	const struct publisher *const publisher = sending->publisher;
	for (size_t i = 0; i < form->files.count; i++) {
		char *const target = remote_object_target(
			span_text(publisher->run.bucket), form->objects[i].key);
		if (form->referred[i] || was_sent(sent, target)) {
			free(target);
			continue;
		}
		sending->files[sending->count++] = (struct transfer_upload){
			.target = target,
			.path = form->files.files[i].path,
			.size = form->files.files[i].size,
		};
		sending->bytes += form->files.files[i].size;
	}
}

static bool was_sent(struct span sent, const char *target)
{
	struct span line;
	while (span_split(&sent, '\n', &line))
		if (span_equal_text(line, target))
			return true;
	return false;
}

/* Called by transfer_upload after each file, one call at a time. */
static int publish_forms_note_sent(void *owner, size_t index, struct error *err)
{
	const struct sending *const sending = owner;
	ASSERT(index < sending->count);
	return publish_state_add_sent(
		&sending->publisher->state, sending->files[index].target, err);
}
