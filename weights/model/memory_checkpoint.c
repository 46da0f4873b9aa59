/* The header is written and then parsed again like that of a file, so that the checkpoint is held
 * against the same rules as one that is read from a disk. */
#include "weights/model/memory_checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/model/checkpoint_internal.h"
#include "weights/model/relative_path.h"
#include "weights/model/shard_rule.h"

enum { LENGTH_BYTES = 8, SHOWN_NAME_BYTES = 160 };

static int add_shard(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err);
static int write_header(struct checkpoint *checkpoint, const struct memory_parts *parts,
	uint64_t *out_data_bytes, struct error *err);
static void take_shard(struct checkpoint *checkpoint, const char *name, struct safetensors *shard,
	uint64_t data_bytes);
static int add_files(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err);
static int check_file(const struct memory_file *file, struct error *err);
static int check_paths(const struct checkpoint *checkpoint, struct error *err);
static int check_folders(const struct checkpoint *checkpoint, const char *path, struct error *err);
static int bind_tensors(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err);
static int bind_tensor(
	struct checkpoint *checkpoint, const struct memory_tensor *tensor, struct error *err);
static int shown_len(struct span name);

struct checkpoint *memory_checkpoint_open(const struct memory_parts *parts, struct error *err)
{
	ASSERT(parts->tensors != NULL || parts->tensor_count == 0);
	ASSERT(parts->files != NULL || parts->file_count == 0);
	struct checkpoint *const checkpoint = memory_new(sizeof(*checkpoint));
	checkpoint->is_folder = true;
	checkpoint->is_in_memory = true;
	if (add_shard(checkpoint, parts, err) == 0 && add_files(checkpoint, parts, err) == 0 &&
		bind_tensors(checkpoint, parts, err) == 0)
		return checkpoint;
	checkpoint_close(checkpoint);
	return NULL;
}

static int add_shard(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err)
{
	uint64_t data_bytes = 0;
	checkpoint->entries = memory_new_array(parts->file_count + 1, sizeof(*checkpoint->entries));
	checkpoint->schema = schema_new();
	if (write_header(checkpoint, parts, &data_bytes, err) != 0)
		return -1;
	const struct span header = buffer_span(&checkpoint->header);
	struct safetensors *const shard = safetensors_parse(
		span_slice(header, LENGTH_BYTES, header.len), data_bytes, "the tensors", err);
	if (shard == NULL)
		return -1;
	take_shard(checkpoint, parts->shard != NULL ? parts->shard : CHECKPOINT_SINGLE_NAME, shard,
		data_bytes);
	const int result = schema_add(checkpoint->schema, shard, err);
	schema_finish(checkpoint->schema);
	return result;
}

static int write_header(struct checkpoint *checkpoint, const struct memory_parts *parts,
	uint64_t *out_data_bytes, struct error *err)
{
	const struct safetensors_metadata format = {span_text("format"), span_text("pt")};
	const size_t count = parts->tensor_count;
	struct safetensors_tensor *const tensors = memory_new_array(count + 1, sizeof(*tensors));
	for (size_t i = 0; i < count; i++)
		tensors[i] = (struct safetensors_tensor){.name = parts->tensors[i].name,
			.dtype = parts->tensors[i].dtype,
			.rank = parts->tensors[i].rank,
			.shape = parts->tensors[i].shape};
	buffer_init(&checkpoint->header, SAFETENSORS_HEADER_MAX_BYTES + LENGTH_BYTES);
	const int result =
		safetensors_write_header(tensors, count, &format, 1, &checkpoint->header, err);
	*out_data_bytes = result == 0 && count > 0 ? tensors[count - 1].end : 0;
	free(tensors);
	return result;
}

static void take_shard(struct checkpoint *checkpoint, const char *name, struct safetensors *shard,
	uint64_t data_bytes)
{
	struct checkpoint_entry *const entry = &checkpoint->entries[checkpoint->count++];
	const struct span header = buffer_span(&checkpoint->header);
	ASSERT(shard_rule_is_top(span_text(name)));
	*entry = (struct checkpoint_entry){
		.path = memory_copy_text(name), .shard = shard, .is_shard = true};
	entry->file = (struct checkpoint_file){.path = entry->path,
		.size = header.len + data_bytes,
		.shard = shard,
		.header = header};
	checkpoint->bytes = entry->file.size;
}

static int add_files(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err)
{
	if (parts->file_count >= CHECKPOINT_FILES_MAX)
		return error_set(err, ERROR_TOO_LARGE,
			"the checkpoint has %zu files beside the tensors; it may have %d",
			parts->file_count, CHECKPOINT_FILES_MAX - 1);
	for (size_t i = 0; i < parts->file_count; i++) {
		const struct memory_file *const file = &parts->files[i];
		if (check_file(file, err) != 0)
			return -1;
		struct checkpoint_entry *const entry = &checkpoint->entries[checkpoint->count++];
		*entry = (struct checkpoint_entry){.path = memory_copy_text(file->path)};
		entry->file = (struct checkpoint_file){
			.path = entry->path, .size = file->bytes.len, .bytes = file->bytes};
		checkpoint->bytes += file->bytes.len;
	}
	qsort(checkpoint->entries, checkpoint->count, sizeof(*checkpoint->entries),
		checkpoint_order_by_path);
	return check_paths(checkpoint, err);
}

static int check_file(const struct memory_file *file, struct error *err)
{
	const struct span path = span_text(file->path);
	if (!relative_path_is_valid(path))
		return error_set(err, ERROR_INVALID,
			"the file '%.*s' has a name that a checkpoint cannot hold", shown_len(path),
			file->path);
	if (shard_rule_is_top(path) || shard_rule_is_index(path))
		return error_set(err, ERROR_INVALID,
			"the file '%.*s' would hold or place weights; beside tensors in memory there "
			"are only other files",
			shown_len(path), file->path);
	return 0;
}

static int check_paths(const struct checkpoint *checkpoint, struct error *err)
{
	for (size_t i = 0; i < checkpoint->count; i++) {
		const char *const path = checkpoint->entries[i].path;
		if (i > 0 && strcmp(checkpoint->entries[i - 1].path, path) == 0)
			return error_set(err, ERROR_INVALID, "the file '%.*s' is given twice",
				shown_len(span_text(path)), path);
		if (check_folders(checkpoint, path, err) != 0)
			return -1;
	}
	return 0;
}

/* A folder on the path must not be a file. */
static int check_folders(const struct checkpoint *checkpoint, const char *path, struct error *err)
{
	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		const struct span folder = span_of(path, (size_t)(slash - path));
		if (checkpoint_find_entry(checkpoint, folder) != NULL)
			return error_set(err, ERROR_INVALID,
				"the file '%.*s' would lie in '%.*s', which is a file itself",
				shown_len(span_text(path)), path, shown_len(folder), folder.data);
	}
	return 0;
}

static int bind_tensors(
	struct checkpoint *checkpoint, const struct memory_parts *parts, struct error *err)
{
	checkpoint->tensors = memory_new_array(
		schema_count(checkpoint->schema) + 1, sizeof(*checkpoint->tensors));
	for (size_t i = 0; i < parts->tensor_count; i++)
		if (bind_tensor(checkpoint, &parts->tensors[i], err) != 0)
			return -1;
	return 0;
}

static int bind_tensor(
	struct checkpoint *checkpoint, const struct memory_tensor *tensor, struct error *err)
{
	const ptrdiff_t at = schema_find(checkpoint->schema, tensor->name);
	ASSERT(at >= 0);
	const uint64_t bytes = schema_tensor(checkpoint->schema, (size_t)at)->bytes;
	if (tensor->data.len != bytes)
		return error_set(err, ERROR_INVALID,
			"the tensor '%.*s' has %zu bytes; its dtype %s and its shape ask for %llu",
			shown_len(tensor->name), tensor->name.data, tensor->data.len,
			dtype_name(tensor->dtype), (unsigned long long)bytes);
	checkpoint->tensors[at] = tensor->data;
	return 0;
}

static int shown_len(struct span name)
{
	return (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
}
