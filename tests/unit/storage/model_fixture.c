#include "tests/unit/storage/model_fixture.h"

#include "tests/unit/unit.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/run_fixture.h"

enum { ELEMENTS = 400, OBJECTS_MAX = 16, READ_MAX = 1000000 };

void model_fixture_open(struct model_fixture *fixture)
{
	struct error err = {0};
	store_fixture_open(&fixture->store);
	fixture->folder = unit_scratch_make();
	ck_assert_int_eq(fixture_create_bucket(fixture->store.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture->store.store, "bucket", "run", NULL, &err), 0);
}

void model_fixture_close(struct model_fixture *fixture)
{
	unit_scratch_remove(fixture->folder);
	store_fixture_close(&fixture->store);
}

static void write_file(const char *folder, const char *name, struct span bytes, struct arena *arena)
{
	struct error err = {0};
	char *const path = arena_format(arena, "%s/%s", folder, name);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(file_make_folder(file_system(), path, 0755, &err), 0);
	path[strlen(path)] = '/';
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
}

/* Two tensors of BF16, "a" and "b"; each step raises some elements of "a" by one. */
static struct span shard_of(unsigned step, struct arena *arena)
{
	const char *const json = arena_format(arena,
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
		"\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[%d,%d]}}",
		ELEMENTS, 2 * ELEMENTS, 2 * ELEMENTS, 2 * ELEMENTS + 2);
	const size_t len = strlen(json);
	uint8_t *const bytes = arena_take(arena, 8 + len + 2 * ELEMENTS + 2);
	const uint64_t le = htole64(len);
	memcpy(bytes, &le, 8);
	memcpy(bytes + 8, json, len);
	for (size_t i = 0; i <= ELEMENTS; i++) {
		const unsigned raised = i < ELEMENTS && i % 7 == 0 ? step : 0;
		const uint16_t bits = htole16((uint16_t)(0x3c00 + i + raised));
		memcpy(bytes + 8 + len + 2 * i, &bits, sizeof(bits));
	}
	return span_of(bytes, 8 + len + 2 * ELEMENTS + 2);
}

char *model_fixture_make(struct model_fixture *fixture, unsigned step, const char *config)
{
	struct arena *const arena = fixture->store.arena;
	char *const folder = arena_format(arena, "%s/step%u", fixture->folder, step);
	if (file_exists(folder))
		return folder;
	write_file(folder, "model.safetensors", shard_of(step, arena), arena);
	if (config == NULL)
		return folder;
	write_file(folder, "config.json", span_text(config), arena);
	write_file(folder, "empty.txt", span_text(""), arena);
	return folder;
}

/* A folder with only the model is opened as that file. */
static struct checkpoint *open_model(const struct model_fixture *fixture, const char *folder)
{
	struct error err = {0};
	const char *const config = arena_format(fixture->store.arena, "%s/config.json", folder);
	const char *const path = file_exists(config)
		? folder
		: arena_format(fixture->store.arena, "%s/model.safetensors", folder);
	struct checkpoint *const model = checkpoint_open(path, &err);
	ck_assert_msg(model != NULL, "%s", err.text);
	return model;
}

static struct checkpoint *open_step(const struct model_fixture *fixture, unsigned step)
{
	return open_model(
		fixture, arena_format(fixture->store.arena, "%s/step%u", fixture->folder, step));
}

char *model_fixture_diff(
	struct model_fixture *fixture, unsigned from, unsigned to, enum delta_format format)
{
	struct error err = {0};
	struct delta_stats stats;
	char *const out =
		arena_format(fixture->store.arena, "%s/delta-%u-%u", fixture->folder, from, to);
	struct checkpoint *const base = open_step(fixture, from);
	struct checkpoint *const next = open_step(fixture, to);
	const struct delta_diff_params params = {.base = base,
		.next = next,
		.format = format,
		.model_version = to,
		.has_base_step = true,
		.base_step = from,
		.threads = 1,
		.out = out};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(base);
	checkpoint_close(next);
	return out;
}

struct digest128 model_fixture_digest(struct model_fixture *fixture, unsigned step)
{
	struct digest128 tensors[2];
	struct checkpoint *const model = open_step(fixture, step);
	ck_assert_int_eq(checkpoint_tensor_digests(model, 1, NULL, tensors, NULL), 0);
	const struct digest128 digest = schema_checkpoint_digest(checkpoint_schema(model), tensors);
	checkpoint_close(model);
	return digest;
}

char *model_fixture_apply(struct model_fixture *fixture, const char *base, const char *path)
{
	struct error err = {0};
	struct delta_stats stats;
	char *const out = arena_format(fixture->store.arena, "%s-applied", path);
	struct checkpoint *const model = checkpoint_open(base, &err);
	ck_assert_msg(model != NULL, "%s", err.text);
	const struct delta_apply_params params = {
		.base = model, .delta = path, .out = out, .threads = 1};
	ck_assert_msg(delta_apply(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(model);
	return out;
}

static void put_object(struct model_fixture *fixture, const char *path, const char *prefix,
	const char *name, struct step_object *out)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, READ_MAX);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	char *const key = arena_format(fixture->store.arena, "%s%s", prefix, name);
	ck_assert_msg(
		fixture_put(fixture->store.store, "bucket", key, buffer_span(&bytes), &err) == 0,
		"%s", err.text);
	*out = (struct step_object){
		.name = span_text(arena_format(fixture->store.arena, "%s", name)),
		.key = span_text(key),
		.size = bytes.len,
		.digest = xxh3_128(buffer_span(&bytes))};
	buffer_release(&bytes);
}

static void put_below(struct model_fixture *fixture, const char *folder, const char *prefix,
	const char *inside, struct step_form *form)
{
	struct error err = {0};
	char **names;
	size_t count;
	ck_assert_int_eq(file_list(folder, &names, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		const char *const path =
			arena_format(fixture->store.arena, "%s/%s", folder, names[i]);
		const char *const name =
			arena_format(fixture->store.arena, "%s%s", inside, names[i]);
		ck_assert_uint_lt(form->object_count, OBJECTS_MAX);
		if (strcmp(name, "files") == 0)
			put_below(fixture, path, prefix, "files/", form);
		else
			put_object(
				fixture, path, prefix, name, &form->objects[form->object_count++]);
	}
	file_names_free(names, count);
}

struct step_form model_fixture_put(struct model_fixture *fixture, const char *path,
	const char *prefix, enum step_form_kind kind, const char *format)
{
	struct step_form form = {.kind = kind, .format = span_text(format)};
	form.objects = arena_take_array(fixture->store.arena, OBJECTS_MAX, sizeof(*form.objects));
	put_below(fixture, path, prefix, "", &form);
	return form;
}

void model_fixture_fetch(struct model_fixture *fixture, const struct object *object,
	const char *folder, const char *name)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, READ_MAX);
	ck_assert_msg(
		fixture_read(fixture->store.store, object, 0, object->size, &bytes, &err) == 0,
		"%s", err.text);
	write_file(folder, name, buffer_span(&bytes), fixture->store.arena);
	buffer_release(&bytes);
}

bool model_fixture_same(const struct model_fixture *fixture, const char *one, const char *other)
{
	return system(arena_format(fixture->store.arena, "diff -r '%s' '%s'", one, other)) == 0;
}

void model_fixture_publish(struct model_fixture *fixture, unsigned step, const char *name,
	const struct step_form *forms, size_t count)
{
	struct error err = {0};
	struct step_message message = {.step = step,
		.epoch = 1,
		.digest = model_fixture_digest(fixture, step),
		.form_count = count};
	struct checkpoint *const model = open_step(fixture, step);
	message.file_count = checkpoint_file_count(model);
	message.files =
		arena_take_array(fixture->store.arena, message.file_count, sizeof(*message.files));
	for (size_t i = 0; i < message.file_count; i++) {
		const struct checkpoint_file *const file = checkpoint_file(model, i);
		const char *const path = name != NULL && file->shard != NULL ? name : file->path;
		message.files[i] = (struct step_file){
			span_text(arena_format(fixture->store.arena, "%s", path)), file->size,
			xxh3_128(checkpoint_file(model, i)->bytes)};
	}
	checkpoint_close(model);
	memcpy(message.forms, forms, count * sizeof(*forms));
	message.has_base = step > 0;
	if (step > 0) {
		message.base_step = step - 1;
		message.base_digest = model_fixture_digest(fixture, step - 1);
	}
	ck_assert_msg(
		fixture_call(run_publish_call(fixture->store.store, &run_fixture_ref, &message),
			&err) == 0,
		"step %u: %s", step, err.text);
}

size_t model_fixture_settle(struct model_fixture *fixture)
{
	size_t failed;
	step_worker_settle(store_parts(fixture->store.store)->step_worker, &failed);
	return failed;
}
