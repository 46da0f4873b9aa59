#include "tests/unit/storage/step_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/unit.h"
#include "weights/delta/delta.h"

#define WEIGHTS_NAME "model.safetensors"
#define CONFIG_NAME  "config.json"
#define CONFIG       "{\"model_type\":\"test\"}"
enum { ELEMENTS = 3000 };

void step_fixture_open(struct step_fixture *fixture)
{
	struct error err = {0};
	memset(fixture, 0, sizeof(*fixture));
	store_fixture_open(&fixture->store);
	fixture->folder = unit_scratch_make();
	ck_assert_int_eq(fixture_create_bucket(fixture->store.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture->store.store, "bucket", "run", NULL, &err), 0);
}

void step_fixture_close(struct step_fixture *fixture)
{
	for (unsigned i = 0; i < fixture->made; i++)
		derived_checkpoint_release(&fixture->steps[i]);
	unit_scratch_remove(fixture->folder);
	store_fixture_close(&fixture->store);
}

static char *path_of(struct step_fixture *fixture, const char *what, unsigned step)
{
	return arena_format(fixture->store.arena, "%s/%s%u", fixture->folder, what, step);
}

static void write_file(const char *path, struct span bytes)
{
	struct error err = {0};
	ck_assert_msg(file_publish(file_system(), path, bytes, 0600, &err) == 0, "%s", err.text);
}

static void write_checkpoint(struct step_fixture *fixture, const char *path, struct span weights)
{
	if (!fixture->are_folders) {
		write_file(path, weights);
		return;
	}
	ck_assert_int_eq(mkdir(path, 0700), 0);
	write_file(arena_format(fixture->store.arena, "%s/%s", path, WEIGHTS_NAME), weights);
	write_file(
		arena_format(fixture->store.arena, "%s/%s", path, CONFIG_NAME), span_text(CONFIG));
}

static struct checkpoint *open_checkpoint(struct step_fixture *fixture, unsigned step)
{
	struct error err = {0};
	char *const path = path_of(fixture, "step", step);
	if (access(path, F_OK) != 0)
		write_checkpoint(fixture, path, buffer_span(&fixture->steps[step].bytes));
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	return checkpoint;
}

static void make_digest(struct step_fixture *fixture, unsigned step)
{
	struct checkpoint *const checkpoint = open_checkpoint(fixture, step);
	struct digest128 *const tensors =
		arena_take_array(fixture->store.arena, DERIVED_TENSORS, sizeof(*tensors));
	ck_assert_int_eq(checkpoint_tensor_digests(checkpoint, 1, NULL, tensors, NULL), 0);
	fixture->digests[step] = schema_checkpoint_digest(checkpoint_schema(checkpoint), tensors);
	checkpoint_close(checkpoint);
}

static void make_to(struct step_fixture *fixture, unsigned step)
{
	for (; fixture->made <= step; fixture->made++) {
		derived_checkpoint_make(&fixture->steps[fixture->made], ELEMENTS, fixture->made);
		make_digest(fixture, fixture->made);
	}
}

static struct step_object put_object(
	struct step_fixture *fixture, uint64_t step, const char *name, struct span bytes)
{
	struct error err = {0};
	char *const key =
		arena_format(fixture->store.arena, "run/steps/%06u/%s", (unsigned)step, name);
	ck_assert_msg(
		fixture_put(fixture->store.store, "bucket", key, bytes, &err) == 0, "%s", err.text);
	return (struct step_object){.name = span_text(name),
		.key = span_text(key),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
}

static void put_form(struct step_fixture *fixture, struct step_message *message,
	enum step_form_kind kind, const char *name, struct span bytes)
{
	struct step_object *const objects =
		arena_take_array(fixture->store.arena, 2, sizeof(*objects));
	const bool has_config = kind == STEP_ANCHOR && fixture->are_folders;
	objects[0] = put_object(fixture, message->step, name, bytes);
	if (has_config)
		objects[1] = put_object(fixture, message->step, CONFIG_NAME, span_text(CONFIG));
	message->forms[message->form_count++] = (struct step_form){.kind = kind,
		.format = span_text(kind == STEP_ANCHOR ? "full" : "ulp-class"),
		.objects = objects,
		.object_count = has_config ? 2 : 1};
}

static void put_delta(struct step_fixture *fixture, struct step_message *message, unsigned to)
{
	struct error err = {0};
	struct delta_stats stats;
	struct buffer bytes;
	struct checkpoint *const base = open_checkpoint(fixture, (unsigned)message->step - 1);
	struct checkpoint *const next = open_checkpoint(fixture, to);
	char *const out = path_of(fixture, "delta", (unsigned)message->step);
	const struct delta_diff_params params = {.base = base,
		.next = next,
		.format = DELTA_ULP_CLASS,
		.model_version = message->step,
		.threads = 1,
		.out = out};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	buffer_init(&bytes, 64 * 1024 * 1024);
	ck_assert_int_eq(
		file_read_all(arena_format(fixture->store.arena, "%s/delta.safetensors", out),
			&bytes, &err),
		0);
	put_form(fixture, message, STEP_DELTA, "delta.safetensors", buffer_span(&bytes));
	buffer_release(&bytes);
	checkpoint_close(next);
	checkpoint_close(base);
}

void step_fixture_publish(struct step_fixture *fixture, unsigned step, int what)
{
	struct error err = {0};
	make_to(fixture, step);
	const struct span bytes = buffer_span(&fixture->steps[step].bytes);
	struct step_file files[] = {
		{.path = span_text(WEIGHTS_NAME), .size = bytes.len, .digest = xxh3_128(bytes)},
		{.path = span_text(CONFIG_NAME),
			.size = strlen(CONFIG),
			.digest = xxh3_128(span_text(CONFIG))},
	};
	struct step_message message = {.step = step,
		.epoch = 1,
		.digest = fixture->digests[step],
		.files = files,
		.file_count = fixture->are_folders ? 2 : 1};
	message.has_base = step > 0;
	if (step > 0) {
		message.base_step = step - 1;
		message.base_digest = fixture->digests[step - 1];
	}
	if (what & STEP_WITH_ANCHOR)
		put_form(fixture, &message, STEP_ANCHOR, WEIGHTS_NAME, bytes);
	if (what & (STEP_WITH_DELTA | STEP_WRONG_DELTA))
		put_delta(fixture, &message, what & STEP_WRONG_DELTA ? step - 2 : step);
	ck_assert_msg(
		fixture_call(run_publish_call(fixture->store.store, &run_fixture_ref, &message),
			&err) == 0,
		"step %u: %s", step, err.text);
}

size_t step_fixture_settle(struct step_fixture *fixture)
{
	size_t failed;
	step_worker_settle(store_parts(fixture->store.store)->step_worker, &failed);
	return failed;
}

static int find(struct step_fixture *fixture, unsigned step, struct object *out,
	struct run_anchor *out_anchor)
{
	struct error err = {0};
	return run_find_anchor_file(fixture->store.store,
		&(struct run_file_ref){run_fixture_ref, step, span_text(WEIGHTS_NAME)},
		fixture->store.arena, out, out_anchor, &err);
}

bool step_fixture_is_whole(struct step_fixture *fixture, unsigned step)
{
	struct error err = {0};
	struct object object;
	struct run_anchor anchor;
	struct buffer read;
	make_to(fixture, step);
	if (find(fixture, step, &object, &anchor) != 0)
		return false;
	if (object.sequence == 0) {
		if (run_ask_anchor(fixture->store.store, &anchor, &err) != 0)
			return false;
		step_fixture_settle(fixture);
		if (find(fixture, step, &object, &anchor) != 0 || object.sequence == 0)
			return false;
	}
	const struct span want = buffer_span(&fixture->steps[step].bytes);
	buffer_init(&read, want.len + 1024 * 1024);
	const bool same = object.size == want.len &&
		fixture_read(fixture->store.store, &object, 0, object.size, &read, &err) == 0 &&
		span_equal(buffer_span(&read), want);
	buffer_release(&read);
	return same;
}

enum step_proof step_fixture_verified(struct step_fixture *fixture, unsigned step)
{
	struct error err = {0};
	struct step_message message;
	uint64_t anchor;
	ck_assert_int_eq(run_fixture_find(&fixture->store, step, &message, &anchor, &err), 0);
	return message.verified;
}
