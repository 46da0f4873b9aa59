/* A file of the result comes from the base or with the delta, and is a shard or another file: four
 * cases, each with its own check of the digest. A shard from the base must have the base's header,
 * because the result's tensors are placed by it. A delta that lists no files leaves all of them as
 * the base has them. */
#include "weights/delta/model_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/model/mapped_file.h"
#include "weights/model/relative_path.h"

enum { LENGTH_BYTES = 8 };

static int take_opened(
	struct model_file *file, const struct checkpoint_file *from, struct error *err);
static int take_header(struct model_file *file, struct span json, struct error *err);
static int take_described(struct model_file *file, const struct delta_result_file *from,
	const struct model_files *base, const char *delta_path, struct error *err);
static int shard_from_delta(
	struct model_file *file, const struct delta_result_file *from, struct error *err);
static struct digest128 header_digest(const struct model_file *file);
static int shown_len(struct span path);
static int shard_from_base(struct model_file *file, const struct model_file *base,
	const struct digest128 *digest, struct error *err);
static int wrong_base(struct span path, const char *what, struct error *err);
static int other_from_delta(struct model_file *file, const char *delta_path,
	const struct digest128 *digest, struct error *err);
static int other_from_base(struct model_file *file, const struct model_file *base,
	const struct digest128 *digest, struct error *err);
static int take_as_base(struct model_file *file, const struct model_file *from, struct error *err);
static int model_files_order(const void *left, const void *right);
static void place_shard(const struct model_file *file, const struct model_place *start,
	const struct schema *schema, struct model_place *out_places);

int model_files_of(
	struct model_files *files, const struct checkpoint *checkpoint, struct error *err)
{
	*files = (struct model_files){.is_folder = checkpoint_is_folder(checkpoint),
		.count = checkpoint_file_count(checkpoint)};
	files->files = memory_new_array(files->count, sizeof(files->files[0]));
	for (size_t i = 0; i < files->count; i++)
		if (take_opened(&files->files[i], checkpoint_file(checkpoint, i), err) != 0)
			return -1;
	return 0;
}

int model_files_after(struct model_files *files, const struct model_files *base,
	const struct delta_reader *reader, const char *delta_path, struct error *err)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	if (delta_reader_checkpoint(reader) != NULL)
		return model_files_of(files, delta_reader_checkpoint(reader), err);
	*files = (struct model_files){
		.is_folder = metadata->has_files ? metadata->result_is_folder : base->is_folder,
		.count = metadata->has_files ? metadata->file_count : base->count,
	};
	files->files = memory_new_array(files->count, sizeof(files->files[0]));
	for (size_t i = 0; i < files->count; i++) {
		const int result = metadata->has_files
			? take_described(
				  &files->files[i], &metadata->files[i], base, delta_path, err)
			: take_as_base(&files->files[i], &base->files[i], err);
		if (result != 0)
			return -1;
	}
	return 0;
}

void model_files_release(struct model_files *files)
{
	for (size_t i = 0; i < files->count && files->files != NULL; i++) {
		safetensors_free(files->files[i].parsed);
		if (files->files[i].is_mapped)
			mapped_file_close(files->files[i].bytes);
	}
	free(files->files);
	*files = (struct model_files){0};
}

int model_files_check(
	const struct model_files *files, const struct schema *schema, struct error *err)
{
	struct schema *const ours = schema_new();
	int result = 0;
	for (size_t i = 0; i < files->count && result == 0; i++)
		if (files->files[i].is_shard)
			result = schema_add(ours, files->files[i].parsed, err);
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

uint64_t model_files_bytes(const struct model_files *files)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < files->count; i++)
		bytes += files->files[i].size;
	return bytes;
}

size_t model_files_shards(const struct model_files *files)
{
	size_t shards = 0;
	for (size_t i = 0; i < files->count; i++)
		shards += files->files[i].is_shard;
	return shards;
}

const struct model_file *model_files_find(const struct model_files *files, struct span path)
{
	const struct model_file wanted = {.path = path};
	return files->count > 0
		? bsearch(&wanted, files->files, files->count, sizeof(wanted), model_files_order)
		: NULL;
}

void model_files_place(const struct model_files *files, const struct schema *schema,
	struct model_place *out_places)
{
	size_t shard = 0;
	for (size_t i = 0; i < files->count; i++) {
		const struct model_file *const file = &files->files[i];
		if (!file->is_shard)
			continue;
		const struct model_place start = {
			.file = i, .shard = shard++, .at = LENGTH_BYTES + file->json.len};
		place_shard(file, &start, schema, out_places);
	}
}

static int take_opened(
	struct model_file *file, const struct checkpoint_file *from, struct error *err)
{
	*file = (struct model_file){
		.path = span_text(from->path),
		.size = from->size,
		.is_shard = from->shard != NULL,
		.digest = xxh3_128(from->shard != NULL ? from->header : from->bytes),
	};
	if (from->shard != NULL)
		return take_header(
			file, span_slice(from->header, LENGTH_BYTES, from->header.len), err);
	file->bytes = from->bytes;
	return 0;
}

/* Takes and parses the header of a shard. The tensors must fill the rest of the file's size. */
static int take_header(struct model_file *file, struct span json, struct error *err)
{
	char name[RELATIVE_PATH_MAX_BYTES + 1];
	ASSERT(file->path.len < sizeof(name));
	memcpy(name, file->path.data, file->path.len);
	name[file->path.len] = 0;
	if (file->size < LENGTH_BYTES + json.len)
		return error_set(err, ERROR_INVALID,
			"the delta gives '%s' fewer bytes than its header has", name);
	for (unsigned i = 0; i < LENGTH_BYTES; i++)
		file->length[i] = (uint8_t)((uint64_t)json.len >> (8 * i));
	file->json = json;
	file->parsed = safetensors_parse(json, file->size - LENGTH_BYTES - json.len, name, err);
	return file->parsed != NULL ? 0 : -1;
}

static int take_described(struct model_file *file, const struct delta_result_file *from,
	const struct model_files *base, const char *delta_path, struct error *err)
{
	const struct model_file *const ours = model_files_find(base, from->path);
	file->path = from->path;
	file->size = from->size;
	file->is_shard = from->is_shard;
	file->digest = from->digest;
	if (from->is_shard)
		return from->from_delta ? shard_from_delta(file, from, err)
					: shard_from_base(file, ours, &from->digest, err);
	return from->from_delta ? other_from_delta(file, delta_path, &from->digest, err)
				: other_from_base(file, ours, &from->digest, err);
}

static int shard_from_delta(
	struct model_file *file, const struct delta_result_file *from, struct error *err)
{
	if (take_header(file, from->header, err) != 0)
		return -1;
	const struct digest128 actual = header_digest(file);
	if (digest128_equal(&actual, &from->digest))
		return 0;
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"the header that the delta carries for '%.*s' differs from its digest",
		shown_len(file->path), file->path.data);
}

static struct digest128 header_digest(const struct model_file *file)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, span_of(file->length, LENGTH_BYTES));
	xxh3_stream_add(stream, file->json);
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

static int shown_len(struct span path)
{
	return (int)(path.len < 160 ? path.len : 160);
}

static int shard_from_base(struct model_file *file, const struct model_file *base,
	const struct digest128 *digest, struct error *err)
{
	if (base == NULL || !base->is_shard)
		return wrong_base(file->path, "is missing or holds no tensors", err);
	if (base->size != file->size || !digest128_equal(&base->digest, digest))
		return wrong_base(file->path, "has another header", err);
	return take_header(file, base->json, err);
}

static int wrong_base(struct span path, const char *what, struct error *err)
{
	return error_set(err, ERROR_WRONG_BASE,
		"the delta was made from another base: its file '%.*s' %s", shown_len(path),
		path.data, what);
}

static int other_from_delta(struct model_file *file, const char *delta_path,
	const struct digest128 *digest, struct error *err)
{
	char *const folder = relative_path_join(delta_path, span_text("files"));
	char *const path = relative_path_join(folder, file->path);
	int result = file_exists(path)
		? mapped_file_open(path, &file->bytes, err)
		: error_set(err, ERROR_INVALID,
			  "the delta lacks the file '%s', which its metadata lists", path);
	if (result == 0) {
		file->is_mapped = true;
		const struct digest128 actual = xxh3_128(file->bytes);
		if (file->bytes.len != file->size || !digest128_equal(&actual, digest))
			result = error_set(err, ERROR_DIGEST_MISMATCH,
				"'%s' differs from its digest in the delta", path);
	}
	free(path);
	free(folder);
	return result;
}

static int other_from_base(struct model_file *file, const struct model_file *base,
	const struct digest128 *digest, struct error *err)
{
	if (base == NULL || base->is_shard)
		return wrong_base(file->path, "is missing or holds tensors", err);
	if (base->size != file->size || !digest128_equal(&base->digest, digest))
		return wrong_base(file->path, "has other bytes", err);
	file->bytes = base->bytes;
	return 0;
}

/* For a delta that lists no files: the result's file is that of the base. */
static int take_as_base(struct model_file *file, const struct model_file *from, struct error *err)
{
	*file = (struct model_file){.path = from->path,
		.size = from->size,
		.is_shard = from->is_shard,
		.digest = from->digest};
	if (from->is_shard)
		return take_header(file, from->json, err);
	file->bytes = from->bytes;
	return 0;
}

static int model_files_order(const void *left, const void *right)
{
	return span_compare(
		((const struct model_file *)left)->path, ((const struct model_file *)right)->path);
}

static void place_shard(const struct model_file *file, const struct model_place *start,
	const struct schema *schema, struct model_place *out_places)
{
	for (size_t i = 0; i < safetensors_count(file->parsed); i++) {
		const struct safetensors_tensor *const tensor = safetensors_tensor(file->parsed, i);
		const ptrdiff_t at = schema_find(schema, tensor->name);
		ASSERT(at >= 0);
		out_places[at] =
			(struct model_place){start->file, start->shard, start->at + tensor->begin};
	}
}
