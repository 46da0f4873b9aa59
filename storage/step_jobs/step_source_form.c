/* The headers are read at the opening, and give each tensor its place in an object. A cursor opens
 * the range of its tensor and reads it block by block; before each block it sleeps as the worker's
 * rate asks. Files other than shards are not read at all. */
#include "storage/step_jobs/step_source_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/objects/object_read.h"
#include "storage/objects/shard_choice.h"
#include "storage/objects/shard_header.h"
#include "weights/codec/block_code.h"
#include "weights/model/shard_rule.h"

enum { LENGTH_BYTES = 8 };
static const char SINGLE_NAME[] = "model.safetensors";

struct step_form_source {
	struct tensor_source tensors; /* first */
	struct store *store;
	struct step_work *work;
	const struct step_source_form *form;
	struct model_files files;     /* in the order of the form's objects */
	struct shard_header *headers; /* for each object; only shards have one */
	struct model_place *places;   /* for each tensor */
};
struct form_cursor {
	struct tensor_cursor cursor; /* first */
	struct body_source *body;
	uint64_t left;
	size_t block_bytes;
	uint8_t *block;
	size_t block_capacity;
};

static struct tensor_cursor *form_open_cursor(
	struct tensor_source *base, size_t tensor, struct error *err);
static struct body_source *open_range(const struct step_form_source *source, size_t file,
	uint64_t offset, uint64_t length, struct error *err);
static struct object object_of(const struct step_form_source *source, size_t file);
static int form_next_block(struct tensor_cursor *base, struct span *out, struct error *err);
static void form_close_cursor(struct tensor_cursor *base);
static void form_free_tensors(struct tensor_source *base);
static int read_files(struct step_form_source *source, struct error *err);
static int choose_shards(struct step_form_source *source, const struct span *names,
	bool *out_is_shard, struct error *err);
static int read_chosen(struct step_form_source *source, const bool *is_shard, struct error *err);
static void forget_files(struct step_form_source *source);
static int read_shard(struct step_form_source *source, size_t index, struct error *err);

static const struct tensor_source_ops ops = {.open = form_open_cursor,
	.next = form_next_block,
	.close_cursor = form_close_cursor,
	.free = form_free_tensors};

struct step_form_source *step_form_source_open(struct store *store, struct step_work *work,
	const struct step_source_form *form, const struct schema *schema, struct error *err)
{
	struct step_form_source *const source = memory_new(sizeof(*source));
	ASSERT(form->objects != NULL && schema != NULL);
	*source = (struct step_form_source){.tensors = {&ops, schema},
		.store = store,
		.work = work,
		.form = form,
		.files = {.count = form->count}};
	source->files.files = memory_new_array(form->count + 1, sizeof(*source->files.files));
	source->headers = memory_new_array(form->count + 1, sizeof(*source->headers));
	source->places = memory_new_array(schema_count(schema) + 1, sizeof(*source->places));
	if (read_files(source, err) == 0) {
		model_files_place(&source->files, schema, source->places);
		return source;
	}
	step_form_source_close(source);
	return NULL;
}

void step_form_source_close(struct step_form_source *source)
{
	if (source == NULL)
		return;
	forget_files(source);
	model_files_release(&source->files);
	free(source->headers);
	free(source->places);
	free(source);
}

struct tensor_source *step_form_source_tensors(struct step_form_source *source)
{
	return &source->tensors;
}

const struct model_files *step_form_source_files(const struct step_form_source *source)
{
	return &source->files;
}

static struct tensor_cursor *form_open_cursor(
	struct tensor_source *base, size_t tensor, struct error *err)
{
	const struct step_form_source *const source = (const struct step_form_source *)base;
	const struct schema_tensor *const facts = schema_tensor(base->schema, tensor);
	ASSERT(source->places[tensor].file < source->files.count);
	struct body_source *const body = open_range(
		source, source->places[tensor].file, source->places[tensor].at, facts->bytes, err);
	if (body == NULL)
		return NULL;
	struct form_cursor *const cursor = memory_new(sizeof(*cursor));
	*cursor = (struct form_cursor){.cursor.source = base,
		.body = body,
		.left = facts->bytes,
		.block_bytes = (size_t)block_code_bytes(facts->dtype)};
	cursor->block_capacity =
		facts->bytes < cursor->block_bytes ? (size_t)facts->bytes : cursor->block_bytes;
	cursor->block = memory_new(cursor->block_capacity + 1);
	return &cursor->cursor;
}

static struct body_source *open_range(const struct step_form_source *source, size_t file,
	uint64_t offset, uint64_t length, struct error *err)
{
	const struct object object = object_of(source, file);
	return object_open(source->store, &object, offset, length, err);
}

static struct object object_of(const struct step_form_source *source, size_t file)
{
	const struct step_source_object *const from = &source->form->objects[file];
	return (struct object){.sequence = from->version, .size = from->size, .key = from->name};
}

static int form_next_block(struct tensor_cursor *base, struct span *out, struct error *err)
{
	struct form_cursor *const cursor = (struct form_cursor *)base;
	struct step_work *const work = ((const struct step_form_source *)base->source)->work;
	const size_t len = cursor->left < cursor->block_capacity ? (size_t)cursor->left
								 : cursor->block_capacity;
	if (len == 0)
		return 0;
	if (work != NULL && !work->spend(work, len))
		return step_work_stopped(err);
	if (body_source_read_whole(cursor->body, cursor->block, len, err) != 0)
		return -1;
	cursor->left -= len;
	*out = span_of(cursor->block, len);
	return 1;
}

static void form_close_cursor(struct tensor_cursor *base)
{
	struct form_cursor *const cursor = (struct form_cursor *)base;
	cursor->body->close(cursor->body);
	free(cursor->block);
	free(cursor);
}

static void form_free_tensors(struct tensor_source *base)
{
	(void)base; /* step_form_source_close frees it */
}

/* Before there was a rule, servers took every .safetensors for a shard. Anchors that only that
 * makes whole stay readable. */
static int read_files(struct step_form_source *source, struct error *err)
{
	const size_t count = source->form->count;
	bool *const is_shard = memory_new_array(count + 1, sizeof(*is_shard));
	struct span *const names = memory_new_array(count + 1, sizeof(*names));
	struct error ignored = {0};
	for (size_t i = 0; i < count; i++)
		names[i] = source->form->objects[i].name;
	int result = choose_shards(source, names, is_shard, err);
	const bool is_chosen = result == 0;
	if (is_chosen)
		result = read_chosen(source, is_shard, err);
	if (is_chosen && result != 0 && shard_choice_mark_all(names, count, is_shard)) {
		forget_files(source);
		result = read_chosen(source, is_shard, &ignored);
	}
	free(names);
	free(is_shard);
	return result;
}

static int choose_shards(struct step_form_source *source, const struct span *names,
	bool *out_is_shard, struct error *err)
{
	size_t at[2];
	if (shard_rule_find_index(names, source->form->count, at) != 1)
		return shard_choice_mark(
			source->store, NULL, names, source->form->count, out_is_shard, err);
	const struct object index = object_of(source, at[0]);
	return shard_choice_mark(
		source->store, &index, names, source->form->count, out_is_shard, err);
}

static int read_chosen(struct step_form_source *source, const bool *is_shard, struct error *err)
{
	struct model_files *const files = &source->files;
	for (size_t i = 0; i < files->count; i++) {
		const struct step_source_object *const object = &source->form->objects[i];
		files->files[i] = (struct model_file){.path = object->name,
			.size = object->size,
			.is_shard = is_shard[i],
			.digest = object->digest};
		if (files->files[i].is_shard && read_shard(source, i, err) != 0)
			return error_wrap(err, "reading '%.*s' of step %llu", (int)object->name.len,
				(const char *)object->name.data,
				(unsigned long long)source->form->step);
	}
	files->is_folder = files->count != 1 || !files->files[0].is_shard;
	if (!files->is_folder)
		files->files[0].path = span_text(SINGLE_NAME);
	return model_files_check(files, source->tensors.schema, err);
}

/* Frees what read_chosen read. */
static void forget_files(struct step_form_source *source)
{
	for (size_t i = 0; i < source->files.count; i++) {
		safetensors_free(source->files.files[i].parsed);
		source->files.files[i].parsed = NULL;
		shard_header_release(&source->headers[i]);
	}
}

static int read_shard(struct step_form_source *source, size_t index, struct error *err)
{
	struct model_file *const file = &source->files.files[index];
	struct shard_header *const header = &source->headers[index];
	const struct object object = object_of(source, index);
	char name[STEP_NAME_MAX_BYTES + 1];
	snprintf(name, sizeof(name), "%.*s", (int)file->path.len, (const char *)file->path.data);
	if (shard_header_read(source->store, &object, name, header, err) != 0)
		return -1;
	const struct span bytes = buffer_span(&header->bytes);
	ASSERT(bytes.len >= LENGTH_BYTES && header->tensors != NULL);
	memcpy(file->length, bytes.data, LENGTH_BYTES);
	file->json = span_slice(bytes, LENGTH_BYTES, bytes.len);
	file->digest = xxh3_128(bytes);
	file->parsed = header->tensors;
	header->tensors = NULL; /* it belongs to the file now */
	return 0;
}
