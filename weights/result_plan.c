#include "weights/result_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/mapped_file.h"
#include "weights/relative_path.h"

enum { LENGTH_BYTES = 8 };

static int shown_len(const struct span path)
{
	return (int)(path.len < 160 ? path.len : 160);
}

static int wrong_base(const struct span path, const char *const what, struct error *const err)
{
	return error_set(err, ERROR_WRONG_BASE, "the delta was made from another base: its file '%.*s' %s", shown_len(path), path.data, what);
}

/* Takes the header of a shard; its data must be what is left of the file's size. */
static int take_header(struct result_file *const file, const struct span json, struct error *const err)
{
	char name[RELATIVE_PATH_MAX_BYTES + 1];
	ASSERT(file->path.len < sizeof(name));
	memcpy(name, file->path.data, file->path.len);
	name[file->path.len] = 0;
	if (file->size < LENGTH_BYTES + json.len)
		return error_set(err, ERROR_INVALID, "the delta gives '%s' fewer bytes than its header has", name);
	for (unsigned i = 0; i < LENGTH_BYTES; i++)
		file->length[i] = (uint8_t)((uint64_t)json.len >> (8 * i));
	file->json = json;
	file->parsed = safetensors_parse(json, file->size - LENGTH_BYTES - json.len, name, err);
	return file->parsed != NULL ? 0 : -1;
}

static struct span json_of(const struct checkpoint_file *const file)
{
	return span_slice(file->header, LENGTH_BYTES, file->header.len);
}

static int shard_from_base(struct result_file *const file, const struct checkpoint_file *const base, const struct digest128 *const digest,
	struct error *const err)
{
	if (base == NULL || base->shard == NULL)
		return wrong_base(file->path, "is missing or holds no tensors", err);
	const struct digest128 actual = xxh3_128(base->header);
	if (base->size != file->size || !digest128_equal(&actual, digest))
		return wrong_base(file->path, "has another header", err);
	return take_header(file, json_of(base), err);
}

static struct digest128 header_digest(const struct result_file *const file)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, span_of(file->length, LENGTH_BYTES));
	xxh3_stream_add(stream, file->json);
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

static int shard_from_delta(struct result_file *const file, const struct delta_result_file *const from, struct error *const err)
{
	if (take_header(file, from->header, err) != 0)
		return -1;
	const struct digest128 actual = header_digest(file);
	if (digest128_equal(&actual, &from->digest))
		return 0;
	return error_set(err, ERROR_DIGEST_MISMATCH, "the header that the delta carries for '%.*s' differs from its digest",
		shown_len(file->path), file->path.data);
}

static int other_from_base(struct result_file *const file, const struct checkpoint_file *const base, const struct digest128 *const digest,
	struct error *const err)
{
	if (base == NULL || base->shard != NULL)
		return wrong_base(file->path, "is missing or holds tensors", err);
	const struct digest128 actual = xxh3_128(base->bytes);
	if (base->size != file->size || !digest128_equal(&actual, digest))
		return wrong_base(file->path, "has other bytes", err);
	file->bytes = base->bytes;
	return 0;
}

static int other_from_delta(struct result_file *const file, const char *const delta_path, const struct digest128 *const digest,
	struct error *const err)
{
	char *const folder = relative_path_join(delta_path, span_text("files"));
	char *const path = relative_path_join(folder, file->path);
	int result = mapped_file_open(path, &file->bytes, err);
	if (result == 0) {
		file->is_mapped = true;
		const struct digest128 actual = xxh3_128(file->bytes);
		if (file->bytes.len != file->size || !digest128_equal(&actual, digest))
			result = error_set(err, ERROR_DIGEST_MISMATCH, "'%s' differs from its digest in the delta", path);
	}
	free(path);
	free(folder);
	return result;
}

static int plan_described(struct result_file *const file, const struct delta_result_file *const from, const struct checkpoint *const base,
	const char *const delta_path, struct error *const err)
{
	const struct checkpoint_file *const ours = checkpoint_file_find(base, from->path);
	file->path = from->path;
	file->size = from->size;
	file->is_shard = from->is_shard;
	if (from->is_shard)
		return from->from_delta ? shard_from_delta(file, from, err) : shard_from_base(file, ours, &from->digest, err);
	return from->from_delta ? other_from_delta(file, delta_path, &from->digest, err) : other_from_base(file, ours, &from->digest, err);
}

static int plan_as_base(struct result_file *const file, const struct checkpoint_file *const from, struct error *const err)
{
	file->path = span_text(from->path);
	file->size = from->size;
	file->is_shard = from->shard != NULL;
	if (from->shard != NULL)
		return take_header(file, json_of(from), err);
	file->bytes = from->bytes;
	return 0;
}

static int plan_files(struct result_plan *const plan, const struct checkpoint *const base, const struct delta_reader *const reader,
	const char *const delta_path, struct error *const err)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	plan->is_folder = metadata->has_files ? metadata->result_is_folder : checkpoint_is_folder(base);
	plan->file_count = metadata->has_files ? metadata->file_count : checkpoint_file_count(base);
	plan->files = memory_new_array(plan->file_count, sizeof(plan->files[0]));
	for (size_t i = 0; i < plan->file_count; i++) {
		const int result = metadata->has_files ? plan_described(&plan->files[i], &metadata->files[i], base, delta_path, err) :
			plan_as_base(&plan->files[i], checkpoint_file(base, i), err);
		if (result != 0)
			return -1;
	}
	return 0;
}

static int check_schema(const struct result_plan *const plan, const struct schema *const schema, struct error *const err)
{
	struct schema *const ours = schema_new();
	int result = 0;
	for (size_t i = 0; i < plan->file_count && result == 0; i++)
		if (plan->files[i].is_shard)
			result = schema_add(ours, plan->files[i].parsed, err);
	schema_finish(ours);
	if (result == 0)
		result = schema_check(schema, ours, err);
	if (result != 0) {
		err->kind = ERROR_INVALID;
		error_wrap(err, "the delta's result does not have the base's tensors");
	}
	schema_free(ours);
	return result;
}

static void place_tensors(struct result_plan *const plan, const struct schema *const schema)
{
	plan->places = memory_new_array(schema_count(schema), sizeof(plan->places[0]));
	for (size_t i = 0; i < plan->file_count; i++) {
		const struct result_file *const file = &plan->files[i];
		for (size_t k = 0; file->is_shard && k < safetensors_count(file->parsed); k++) {
			const struct safetensors_tensor *const tensor = safetensors_tensor(file->parsed, k);
			const ptrdiff_t at = schema_find(schema, tensor->name);
			ASSERT(at >= 0);
			plan->places[at] = (struct result_place){.file = i, .at = LENGTH_BYTES + file->json.len + tensor->begin};
		}
	}
}

int result_plan_make(struct result_plan *const plan, const struct checkpoint *const base, const struct delta_reader *const reader,
	const char *const delta_path, struct error *const err)
{
	*plan = (struct result_plan){0};
	if (plan_files(plan, base, reader, delta_path, err) != 0 || check_schema(plan, checkpoint_schema(base), err) != 0)
		return -1;
	place_tensors(plan, checkpoint_schema(base));
	return 0;
}

void result_plan_release(struct result_plan *const plan)
{
	for (size_t i = 0; i < plan->file_count; i++) {
		safetensors_free(plan->files[i].parsed);
		if (plan->files[i].is_mapped)
			mapped_file_close(plan->files[i].bytes);
	}
	free(plan->files);
	free(plan->places);
	*plan = (struct result_plan){0};
}

uint64_t result_plan_bytes(const struct result_plan *const plan)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < plan->file_count; i++)
		bytes += plan->files[i].size;
	return bytes;
}
