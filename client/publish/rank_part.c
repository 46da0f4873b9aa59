/* Brings a rank's part of a step to the server: uploads its objects, puts the part, and waits for
 * the parts of the other ranks. The server publishes the step with the last part, so only the rank
 * that puts it is told at once; the others long-poll the run until its head has the step. */
#include "client/publish/rank_publisher_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/remote/remote_json.h"
#include "client/remote/remote_object.h"
#include "client/transfer/transfer.h"
#include "wire/part_message.h"

/* A long poll is this long. Between two of them a rank looks whether the epoch changed, because a
 * new epoch drops its part. */
enum { POLL_S = 4 };

static void fill_part(
	const struct rank_publisher *self, struct part_tensor *tensors, struct part_message *out);

int rank_part_describe(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->objects == NULL && self->state.has_pending);
	self->objects = memory_new_array(self->sending.count + 1, sizeof(*self->objects));
	for (size_t i = 0; i < self->sending.count; i++) {
		const struct folder_file *const file = &self->sending.files[i];
		const char *const name = strcmp(file->name, RANK_SHARE_INDEX) == 0
			? RANK_SHARE_INDEX_NAME
			: file->name;
		struct buffer key;
		buffer_init(&key, 8192);
		buffer_format(&key, "%s/steps/%06" PRIu64 "/%s/%s", self->run.run,
			self->state.pending.step, step_form_kind_name(self->kind), name);
		self->objects[i] = (struct step_object){.name = span_text(name),
			.key = span_text(memory_copy_text(buffer_text(&key))),
			.size = file->size};
		buffer_release(&key);
		*(self->kind == STEP_ANCHOR ? &self->outcome.anchor_bytes
					    : &self->outcome.delta_bytes) += file->size;
		if (transfer_file_digest(file->path, &self->objects[i].digest, err) != 0)
			return -1;
	}
	return 0;
}

int rank_part_upload(struct rank_publisher *self, struct error *err)
{
	const int64_t started = clock_monotonic_ms();
	ASSERT(self->objects != NULL);
	struct transfer_upload *const files =
		memory_new_array(self->sending.count + 1, sizeof(*files));
	uint64_t bytes = 0;
	for (size_t i = 0; i < self->sending.count; i++) {
		const struct folder_file *const file = &self->sending.files[i];
		files[i] = (struct transfer_upload){
			.target = remote_object_target(
				span_text(self->run.bucket), self->objects[i].key),
			.path = file->path,
			.size = file->size};
		bytes += file->size;
	}
	struct progress *const progress = progress_new("uploading", bytes, self->session->progress);
	const struct transfer_options transfer =
		session_transfer(self->session, self->remote, progress);
	const int result = transfer_upload(&transfer, files, self->sending.count, NULL, NULL, err);
	progress_free(progress);
	for (size_t i = 0; i < self->sending.count; i++)
		free((char *)files[i].target);
	free(files);
	self->outcome.upload_ms = clock_monotonic_ms() - started;
	return result;
}

int rank_part_put(struct rank_publisher *self, bool *out_published, struct error *err)
{
	struct part_message message;
	ASSERT(self->state.has_pending);
	struct part_tensor *const tensors =
		memory_new_array(self->share.snapshot.tensor_count + 1, sizeof(*tensors));
	char below[96];
	struct buffer body;
	struct json_node *answer = NULL;
	fill_part(self, tensors, &message);
	snprintf(below, sizeof(below), "steps/%" PRIu64 "/parts/%" PRIu64 "?of=%" PRIu64,
		self->state.pending.step, self->rank->rank, self->rank->ranks);
	char *const target = remote_json_target(&self->run, below, NULL);
	buffer_init(&body, STEP_MESSAGE_MAX_BYTES);
	part_message_print(&message, &body);
	const struct remote_json_request request = {
		.method = "PUT", .target = target, .body = buffer_span(&body)};
	int result = buffer_check(&body, "the part", err);
	if (result == 0)
		result = remote_json_send(self->remote, &request, &answer, err);
	*out_published = false;
	json_node_bool(json_node_member(answer, "published"), out_published);
	json_node_free(answer);
	buffer_release(&body);
	free(target);
	free(tensors);
	return result;
}

int rank_part_wait(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->state.has_pending);
	const uint64_t step = self->state.pending.step;
	const int64_t deadline = clock_monotonic_ms() + (int64_t)self->rank->wait_s * 1000;
	for (;;) {
		struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
		struct run_message run;
		struct step_message found;
		const int64_t left_s = (deadline - clock_monotonic_ms()) / 1000;
		const uint64_t wait_s = left_s < 0 ? 0
			: left_s < POLL_S          ? (uint64_t)left_s
						   : POLL_S;
		const struct remote_run_wait wait = {.has_after = step > 0,
			.after = step - 1,
			.wait_s = wait_s,
			.of_head = true};
		int result = remote_run_latest(self->remote, &self->run, &wait, arena, &found, err);
		if (result >= 0)
			result = remote_run_find(self->remote, &self->run, arena, &run, err);
		const bool fenced = result == 0 && run.epoch != self->state.epoch;
		const bool there = result == 0 && run.has_head && run.head >= step;
		if (there)
			self->outcome.rollback = run.rollback;
		arena_free(arena);
		if (result < 0 || there)
			return result;
		if (fenced)
			return error_set(err, ERROR_STALE_EPOCH,
				"run %s was opened by another writer before every rank had put its "
				"part of step %" PRIu64,
				self->run.text, step);
		if (clock_monotonic_ms() >= deadline)
			return error_set(err, ERROR_NOT_READY,
				"the other ranks have not put their parts of step %" PRIu64
				" of run %s",
				step, self->run.text);
	}
}

int rank_part_check(struct rank_publisher *self, struct error *err)
{
	ASSERT(self->state.has_pending);
	const uint64_t step = self->state.pending.step;
	struct step_message found;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	int result = remote_run_step(self->remote, &self->run, step, arena, &found, err);
	if (result == 0 &&
		!rank_publisher_has_files(&found, self->share.files, self->share.file_count))
		result = error_set(err, ERROR_STEP_DIFFERS,
			"step %" PRIu64 " of run %s was published by others", step, self->run.text);
	if (result == 0)
		self->outcome.digest = found.digest;
	arena_free(arena);
	return result;
}

static void fill_part(
	const struct rank_publisher *self, struct part_tensor *tensors, struct part_message *out)
{
	const struct schema *const schema = checkpoint_schema(self->share.snapshot.checkpoint);
	ASSERT(self->objects != NULL);
	ASSERT(self->share.snapshot.tensor_count == schema_count(schema));
	*out = (struct part_message){
		.tensors = tensors, .tensor_count = self->share.snapshot.tensor_count};
	for (size_t i = 0; i < out->tensor_count; i++)
		tensors[i] = (struct part_tensor){.name = schema_tensor(schema, i)->name,
			.digest = self->share.snapshot.tensor_digests[i]};
	out->step = (struct step_message){
		.step = self->state.pending.step,
		.epoch = self->state.epoch,
		.has_base = self->has_head,
		.label = span_text(self->order->label),
		.metadata = self->order->metadata,
		.files = self->share.files,
		.file_count = self->share.file_count,
		.form_count = 1,
		.has_publish_ms = true,
		.publish_ms = publisher_ms_since(self->began_ms),
	};
	if (self->has_head) {
		out->step.base_step = self->head.step;
		out->step.base_digest = self->head.digest;
	}
	out->step.forms[0] = (struct step_form){
		.kind = self->kind,
		.format = span_text(self->kind == STEP_ANCHOR ? "full" : "ulp-class"),
		.objects = self->objects,
		.object_count = self->sending.count,
	};
}
