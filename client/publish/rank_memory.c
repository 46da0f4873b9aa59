#include "client/publish/rank_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/memory_copy.h"
#include "client/publish/rank_share.h"
#include "weights/model/shard_index.h"

enum { INDEX_MAX_BYTES = 256 * 1024 * 1024, SHOWN_NAME_BYTES = 160 };

static void take_files(struct rank_memory *memory, const struct memory_parts *given);
static int check_tensors(const struct rank_memory *memory, struct error *err);
static int make_index(struct rank_memory *memory, struct error *err);
static int check_index(const struct rank_memory *memory, struct error *err);
static int check_place(const struct rank_memory *memory, const struct shard_index *index,
	struct span name, struct error *err);
static int write_index(
	const struct rank_memory *memory, const struct rank_memory_copy *copy, struct error *err);

int rank_memory_init(struct rank_memory *memory, const struct memory_parts *given,
	const struct rank_order *rank, struct error *err)
{
	ASSERT(rank->rank < rank->ranks);
	*memory = (struct rank_memory){
		.parts = {.tensors = given->tensors, .tensor_count = given->tensor_count}};
	snprintf(memory->shard, sizeof(memory->shard),
		"model-%05" PRIu64 "-of-%05" PRIu64 ".safetensors", rank->rank + 1, rank->ranks);
	memory->parts.shard = memory->shard;
	buffer_init(&memory->made, INDEX_MAX_BYTES);
	if (rank->rank == 0)
		take_files(memory, given);
	if (check_tensors(memory, err) != 0)
		return -1;
	if (rank->ranks == 1 && !memory->has_index)
		return make_index(memory, err);
	return rank->rank == 0 ? check_index(memory, err) : 0;
}

void rank_memory_release(struct rank_memory *memory)
{
	free(memory->files);
	buffer_release(&memory->made);
	*memory = (struct rank_memory){0};
}

const struct span *rank_memory_file(const struct rank_memory *memory, const char *name)
{
	if (strcmp(name, RANK_SHARE_INDEX) == 0)
		return memory->has_index ? &memory->index : NULL;
	for (size_t i = 0; i < memory->parts.file_count; i++)
		if (strcmp(memory->files[i].path, name) == 0)
			return &memory->files[i].bytes;
	return NULL;
}

size_t rank_memory_file_count(const struct rank_memory *memory)
{
	return memory->parts.file_count + (memory->has_index ? 1 : 0);
}

struct checkpoint *rank_memory_open_shard(const struct rank_memory *memory, struct error *err)
{
	const struct memory_parts shard = {
		.tensors = memory->parts.tensors, .tensor_count = memory->parts.tensor_count};
	return memory_checkpoint_open(&shard, err);
}

int rank_memory_write(
	const struct rank_memory *memory, const struct rank_memory_copy *copy, struct error *err)
{
	struct checkpoint *const from = memory_checkpoint_open(&memory->parts, err);
	if (from == NULL)
		return -1;
	const struct memory_copy params = {.files = copy->files,
		.from = from,
		.folder = copy->folder,
		.same = copy->same,
		.mapping = copy->mapping,
		.threads = copy->threads,
		.watch = copy->watch};
	const int result = memory_copy_make(&params, err);
	checkpoint_close(from);
	return result == 0 && memory->has_index ? write_index(memory, copy, err) : result;
}

static void take_files(struct rank_memory *memory, const struct memory_parts *given)
{
	memory->files = memory_new_array(given->file_count + 1, sizeof(*memory->files));
	memory->parts.files = memory->files;
	for (size_t i = 0; i < given->file_count; i++) {
		const struct memory_file *const file = &given->files[i];
		if (strcmp(file->path, RANK_SHARE_INDEX_NAME) != 0 || memory->has_index) {
			memory->files[memory->parts.file_count++] = *file;
			continue;
		}
		memory->has_index = true;
		memory->index = file->bytes;
	}
}

static int check_tensors(const struct rank_memory *memory, struct error *err)
{
	struct checkpoint *const checkpoint = memory_checkpoint_open(&memory->parts, err);
	checkpoint_close(checkpoint);
	return checkpoint != NULL ? 0 : -1;
}

/* For a single rank, which has all tensors. They have been checked. */
static int make_index(struct rank_memory *memory, struct error *err)
{
	struct json_writer writer;
	json_writer_init(&writer, &memory->made);
	json_writer_object(&writer, NULL);
	json_writer_object(&writer, "metadata");
	json_writer_end(&writer, '}');
	json_writer_object(&writer, "weight_map");
	for (size_t i = 0; i < memory->parts.tensor_count; i++) {
		const struct span given = memory->parts.tensors[i].name;
		char *const name = memory_new(given.len + 1);
		memcpy(name, given.data, given.len);
		json_writer_text(&writer, name, span_text(memory->shard));
		free(name);
	}
	json_writer_end(&writer, '}');
	json_writer_end(&writer, '}');
	memory->has_index = true;
	memory->index = buffer_span(&memory->made);
	return buffer_check(&memory->made, RANK_SHARE_INDEX_NAME, err);
}

static int check_index(const struct rank_memory *memory, struct error *err)
{
	if (!memory->has_index)
		return error_set(err, ERROR_INVALID,
			"rank 0 of several needs the file " RANK_SHARE_INDEX_NAME
			" beside its tensors, which says for each tensor of the model in which "
			"shard it is");
	struct shard_index *const index =
		shard_index_parse(memory->index, RANK_SHARE_INDEX_NAME, err);
	int result = index != NULL ? 0 : -1;
	for (size_t i = 0; i < memory->parts.tensor_count && result == 0; i++)
		result = check_place(memory, index, memory->parts.tensors[i].name, err);
	shard_index_free(index);
	return result;
}

static int check_place(const struct rank_memory *memory, const struct shard_index *index,
	struct span name, struct error *err)
{
	size_t low = 0; /* the pairs are sorted */
	size_t high = shard_index_count(index);
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = span_compare(shard_index_pair(index, middle)->key, name);
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	const struct json_scan_pair *const pair =
		low < shard_index_count(index) ? shard_index_pair(index, low) : NULL;
	if (pair != NULL && span_equal(pair->key, name) &&
		span_equal_text(pair->value, memory->shard))
		return 0;
	return error_set(err, ERROR_INVALID,
		RANK_SHARE_INDEX_NAME " does not say that the tensor %.*s is in %s, where rank 0 "
				      "has it",
		(int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES),
		(const char *)name.data, memory->shard);
}

/* The copy of the tensors has removed what is not the checkpoint's. */
static int write_index(
	const struct rank_memory *memory, const struct rank_memory_copy *copy, struct error *err)
{
	char *const path = folder_files_join(copy->folder, RANK_SHARE_INDEX);
	const int result = file_place(copy->files, path, memory->index, 0644, err);
	free(path);
	return result;
}
