/* Opening walks the folder, decides which files are shards, maps all files, and binds each tensor
 * of the schema to its bytes. Files that look like shards and are not are never parsed, so a broken
 * old shard does no harm; whoever chooses the files may leave them out before anything is
 * mapped. */
#include "weights/model/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "weights/model/checkpoint_internal.h"
#include "weights/model/mapped_file.h"
#include "weights/model/parallel.h"
#include "weights/model/relative_path.h"
#include "weights/model/shard_rule.h"

enum {
	FOLDER_DEPTH_MAX = 32,
	FILES_MAX = CHECKPOINT_FILES_MAX,
	SHOWN_NAME_BYTES = 160,
	PIECE_BYTES = 32 << 20
};

struct digest_run {
	const struct checkpoint *checkpoint;
	struct work_watch *watch;
	struct digest128 *digests;
};

static int open_folder(struct checkpoint *checkpoint, const char *path, struct error *err);
static int walk(struct checkpoint *checkpoint, const char *folder, const char *prefix,
	unsigned depth, struct error *err);
static int visit(struct checkpoint *checkpoint, const char *path, const char *full_path,
	unsigned depth, struct error *err);
static int refuse_link(const struct checkpoint *checkpoint, const char *path, const char *full_path,
	struct error *err);
static int take_file(struct checkpoint *checkpoint, const char *path, const char *full_path,
	uint64_t size, struct error *err);
static bool is_pickle(const char *path);
static bool is_trainer_state(const char *path);
static int add_entry(struct checkpoint *checkpoint, const char *path, const char *full_path,
	uint64_t size, struct error *err);
static int choose_index(
	struct checkpoint *checkpoint, struct checkpoint_entry **out_index, struct error *err);
static int open_indexed(
	struct checkpoint *checkpoint, const struct checkpoint_entry *from, struct error *err);
static int mark_indexed(struct checkpoint *checkpoint, const struct checkpoint_entry *from,
	const struct shard_index *index, struct error *err);
static int shown_len(struct span name);
static void drop_others(struct checkpoint *checkpoint);
static bool is_unwanted(const struct checkpoint *checkpoint, const struct checkpoint_entry *entry);
static int map_all(struct checkpoint *checkpoint, struct error *err);
static int map_entry(struct checkpoint_entry *entry, uint64_t *total, struct error *err);
static int check_indexed(struct checkpoint *checkpoint, const struct checkpoint_entry *from,
	const struct shard_index *index, struct error *err);
static int open_single(struct checkpoint *checkpoint, const char *path, struct error *err);
static int build_schema(struct checkpoint *checkpoint, const char *path, struct error *err);
static int refuse_without_shards(
	const struct checkpoint *checkpoint, const char *path, struct error *err);
static void bind_tensors(struct checkpoint *checkpoint);
static int checkpoint_digest_tensor(void *state, size_t item, unsigned worker, struct error *err);
static int digest_bytes(
	const struct digest_run *run, size_t item, struct span bytes, struct error *err);
static int digest_scattered(const struct digest_run *run, size_t item,
	const struct checkpoint_file *file, struct error *err);
static int add_watched(
	struct xxh3_stream *stream, struct span bytes, struct work_watch *watch, struct error *err);
static int checkpoint_digest_file(void *state, size_t item, unsigned worker, struct error *err);

struct checkpoint *checkpoint_open(const char *path, struct error *err)
{
	return checkpoint_open_chosen(path, NULL, err);
}

struct checkpoint *checkpoint_open_chosen(
	const char *path, const struct checkpoint_choice *choice, struct error *err)
{
	struct stat facts;
	ASSERT(choice == NULL || choice->wants != NULL);
	if (stat(path, &facts) != 0) {
		error_set_errno(err, "cannot open the checkpoint '%s'", path);
		return NULL;
	}
	struct checkpoint *const checkpoint = memory_new(sizeof(*checkpoint));
	checkpoint->is_folder = S_ISDIR(facts.st_mode);
	checkpoint->choice = choice;
	const int opened = checkpoint->is_folder ? open_folder(checkpoint, path, err)
						 : open_single(checkpoint, path, err);
	if (opened != 0 || build_schema(checkpoint, path, err) != 0) {
		checkpoint_close(checkpoint);
		return NULL;
	}
	checkpoint->choice = NULL;
	bind_tensors(checkpoint);
	return checkpoint;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
	if (checkpoint == NULL)
		return;
	for (size_t i = 0; i < checkpoint->count; i++) {
		struct checkpoint_entry *const entry = &checkpoint->entries[i];
		safetensors_free(entry->shard);
		if (!checkpoint->is_in_memory)
			mapped_file_close(entry->file.bytes);
		free(entry->path);
		free(entry->full_path);
	}
	schema_free(checkpoint->schema);
	buffer_release(&checkpoint->header);
	free(checkpoint->pickle);
	free(checkpoint->entries);
	free(checkpoint->tensors);
	free(checkpoint);
}

bool checkpoint_is_folder(const struct checkpoint *checkpoint)
{
	return checkpoint->is_folder;
}

size_t checkpoint_file_count(const struct checkpoint *checkpoint)
{
	return checkpoint->count;
}

const struct checkpoint_file *checkpoint_file(const struct checkpoint *checkpoint, size_t index)
{
	ASSERT(index < checkpoint->count);
	return &checkpoint->entries[index].file;
}

const struct schema *checkpoint_schema(const struct checkpoint *checkpoint)
{
	return checkpoint->schema;
}

uint64_t checkpoint_bytes(const struct checkpoint *checkpoint)
{
	return checkpoint->bytes;
}

struct span checkpoint_tensor(const struct checkpoint *checkpoint, size_t index)
{
	ASSERT(index < schema_count(checkpoint->schema));
	return checkpoint->tensors[index];
}

int checkpoint_tensor_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err)
{
	struct digest_run run = {checkpoint, watch, out_digests};
	const size_t count = schema_count(checkpoint->schema);
	ASSERT(out_digests != NULL || count == 0);
	return parallel_run(
		parallel_workers(threads, count), count, checkpoint_digest_tensor, &run, err);
}

int checkpoint_file_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err)
{
	struct digest_run run = {checkpoint, watch, out_digests};
	ASSERT(out_digests != NULL || checkpoint->count == 0);
	return parallel_run(parallel_workers(threads, checkpoint->count), checkpoint->count,
		checkpoint_digest_file, &run, err);
}

static int open_folder(struct checkpoint *checkpoint, const char *path, struct error *err)
{
	struct checkpoint_entry *index = NULL;
	if (walk(checkpoint, path, "", 0, err) != 0)
		return -1;
	if (checkpoint->count > 0)
		qsort(checkpoint->entries, checkpoint->count, sizeof(struct checkpoint_entry),
			checkpoint_order_by_path);
	if (choose_index(checkpoint, &index, err) != 0)
		return -1;
	if (index != NULL)
		return open_indexed(checkpoint, index, err);
	for (size_t i = 0; i < checkpoint->count; i++)
		checkpoint->entries[i].is_shard =
			shard_rule_takes(NULL, span_text(checkpoint->entries[i].path));
	drop_others(checkpoint);
	return map_all(checkpoint, err);
}

static int walk(struct checkpoint *checkpoint, const char *folder, const char *prefix,
	unsigned depth, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	if (depth > FOLDER_DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "'%s' is nested over %d folders deep", folder,
			FOLDER_DEPTH_MAX);
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (names[i][0] == '.')
			continue;
		char *const path = depth > 0 ? relative_path_join(prefix, span_text(names[i]))
					     : memory_copy_text(names[i]);
		char *const full_path = relative_path_join(folder, span_text(names[i]));
		result = visit(checkpoint, path, full_path, depth, err);
		free(path);
		free(full_path);
	}
	file_names_free(names, count);
	return result;
}

/* `path` is relative to the checkpoint's folder. */
static int visit(struct checkpoint *checkpoint, const char *path, const char *full_path,
	unsigned depth, struct error *err)
{
	struct stat facts;
	if (lstat(full_path, &facts) != 0)
		return error_set_errno(err, "cannot read '%s'", full_path);
	if (S_ISDIR(facts.st_mode))
		return walk(checkpoint, full_path, path, depth + 1, err);
	if (S_ISLNK(facts.st_mode) && stat(full_path, &facts) != 0)
		return refuse_link(checkpoint, path, full_path, err);
	return S_ISREG(facts.st_mode)
		? take_file(checkpoint, path, full_path, (uint64_t)facts.st_size, err)
		: 0;
}

/* A link that leads nowhere does no harm if its file is not wanted. */
static int refuse_link(const struct checkpoint *checkpoint, const char *path, const char *full_path,
	struct error *err)
{
	const struct checkpoint_choice *const choice = checkpoint->choice;
	const int reason = errno;
	if (choice != NULL && !choice->wants(choice->chooser, path, 0))
		return 0;
	errno = reason;
	return error_set_errno(err,
		"'%s' is a link that leads nowhere: bring back what it leads to, or remove it",
		full_path);
}

static int take_file(struct checkpoint *checkpoint, const char *path, const char *full_path,
	uint64_t size, struct error *err)
{
	const struct checkpoint_choice *const choice = checkpoint->choice;
	if (checkpoint->pickle == NULL && is_pickle(path))
		checkpoint->pickle = memory_copy_text(full_path);
	if (choice != NULL && !choice->wants(choice->chooser, path, size))
		return 0;
	return add_entry(checkpoint, path, full_path, size, err);
}

static bool is_pickle(const char *path)
{
	const struct span text = span_text(path);
	return (span_ends_text(text, ".bin") || span_ends_text(text, ".pt") ||
		       span_ends_text(text, ".pth")) &&
		!is_trainer_state(path);
}

/* Trainers pickle their own state beside the weights. Such files are not weights. */
static bool is_trainer_state(const char *path)
{
	static const char *const begins[] = {"optimizer", "scheduler", "scaler", "sampler",
		"rng_state", "random_states_", "training_args"};
	const char *const slash = strrchr(path, '/');
	const char *const name = slash == NULL ? path : slash + 1;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static int add_entry(struct checkpoint *checkpoint, const char *path, const char *full_path,
	uint64_t size, struct error *err)
{
	if (!relative_path_is_valid(span_text(path)))
		return error_set(err, ERROR_INVALID,
			"'%s' has a name that a checkpoint cannot hold", full_path);
	if (checkpoint->count == FILES_MAX)
		return error_set(err, ERROR_TOO_LARGE, "the folder of '%s' has over %d files",
			full_path, FILES_MAX);
	if ((checkpoint->count & (checkpoint->count - 1)) == 0)
		checkpoint->entries = memory_grow(checkpoint->entries,
			checkpoint->count > 0 ? checkpoint->count * 2 : 1,
			sizeof(struct checkpoint_entry));
	checkpoint->entries[checkpoint->count++] =
		(struct checkpoint_entry){.path = memory_copy_text(path),
			.full_path = memory_copy_text(full_path),
			.size = size};
	return 0;
}

int checkpoint_order_by_path(const void *left, const void *right)
{
	return strcmp(((const struct checkpoint_entry *)left)->path,
		((const struct checkpoint_entry *)right)->path);
}

/* Gives the index that names the shards, or NULL when the folder has none. */
static int choose_index(
	struct checkpoint *checkpoint, struct checkpoint_entry **out_index, struct error *err)
{
	struct span *const paths = memory_new_array(checkpoint->count + 1, sizeof(*paths));
	size_t at[2];
	for (size_t i = 0; i < checkpoint->count; i++)
		paths[i] = span_text(checkpoint->entries[i].path);
	const unsigned found = shard_rule_find_index(paths, checkpoint->count, at);
	free(paths);
	*out_index = found > 0 ? &checkpoint->entries[at[0]] : NULL;
	return found < 2 ? 0
			 : error_set(err, ERROR_INVALID,
				   "'%s' and '%s' are both indexes and neither is named %s",
				   checkpoint->entries[at[0]].full_path,
				   checkpoint->entries[at[1]].full_path, SHARD_RULE_INDEX_NAME);
}

struct checkpoint_entry *checkpoint_find_entry(
	const struct checkpoint *checkpoint, struct span path)
{
	for (size_t low = 0, high = checkpoint->count; low < high;) {
		const size_t middle = low + (high - low) / 2;
		const int order = span_compare(span_text(checkpoint->entries[middle].path), path);
		if (order == 0)
			return &checkpoint->entries[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int open_indexed(
	struct checkpoint *checkpoint, const struct checkpoint_entry *from, struct error *err)
{
	struct span text = {0};
	/* `from` moves when entries leave the table; its name is needed longer. */
	const struct checkpoint_entry named = {.full_path = memory_copy_text(from->full_path)};
	struct shard_index *index = NULL;
	int result = mapped_file_open(from->full_path, &text, err);
	if (result == 0) {
		index = shard_index_parse(text, from->full_path, err);
		result = index != NULL ? mark_indexed(checkpoint, from, index, err) : -1;
	}
	if (result == 0) {
		drop_others(checkpoint);
		result = map_all(checkpoint, err);
	}
	if (result == 0)
		result = check_indexed(checkpoint, &named, index, err);
	shard_index_free(index);
	mapped_file_close(text);
	free(named.full_path);
	return result;
}

static int mark_indexed(struct checkpoint *checkpoint, const struct checkpoint_entry *from,
	const struct shard_index *index, struct error *err)
{
	for (size_t i = 0; i < shard_index_file_count(index); i++) {
		const struct span name = shard_index_file(index, i);
		struct checkpoint_entry *const entry = checkpoint_find_entry(checkpoint, name);
		if (entry == NULL)
			return error_set(err, ERROR_INVALID,
				"'%s' names the file '%.*s', which is missing", from->full_path,
				shown_len(name), name.data);
		entry->is_shard = true;
	}
	return 0;
}

static int shown_len(struct span name)
{
	return (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
}

/* Leaves out what looks like a shard, is not one, and is not wanted. */
static void drop_others(struct checkpoint *checkpoint)
{
	size_t kept = 0;
	for (size_t i = 0; i < checkpoint->count; i++) {
		struct checkpoint_entry *const entry = &checkpoint->entries[i];
		if (is_unwanted(checkpoint, entry)) {
			free(entry->path);
			free(entry->full_path);
			continue;
		}
		checkpoint->entries[kept++] = *entry;
	}
	checkpoint->count = kept;
}

static bool is_unwanted(const struct checkpoint *checkpoint, const struct checkpoint_entry *entry)
{
	const struct checkpoint_choice *const choice = checkpoint->choice;
	return choice != NULL && choice->wants_other != NULL && !entry->is_shard &&
		span_ends_text(span_text(entry->path), ".safetensors") &&
		!choice->wants_other(choice->chooser, entry->path, entry->size);
}

static int map_all(struct checkpoint *checkpoint, struct error *err)
{
	for (size_t i = 0; i < checkpoint->count; i++)
		if (map_entry(&checkpoint->entries[i], &checkpoint->bytes, err) != 0)
			return -1;
	return 0;
}

static int map_entry(struct checkpoint_entry *entry, uint64_t *total, struct error *err)
{
	if (mapped_file_open(entry->full_path, &entry->file.bytes, err) != 0)
		return -1;
	entry->file.path = entry->path;
	entry->file.full_path = entry->full_path;
	entry->file.size = entry->file.bytes.len;
	*total += entry->file.size;
	if (!entry->is_shard)
		return 0;
	entry->shard = mapped_file_safetensors(
		entry->file.bytes, entry->full_path, &entry->file.header, &entry->file.data, err);
	entry->file.shard = entry->shard;
	return entry->shard != NULL ? 0 : -1;
}

static int check_indexed(struct checkpoint *checkpoint, const struct checkpoint_entry *from,
	const struct shard_index *index, struct error *err)
{
	for (size_t i = 0; i < shard_index_count(index); i++) {
		const struct json_scan_pair *const pair = shard_index_pair(index, i);
		const struct checkpoint_entry *const entry =
			checkpoint_find_entry(checkpoint, pair->value);
		ASSERT(entry != NULL && entry->shard != NULL);
		if (safetensors_find(entry->shard, pair->key) == NULL)
			return error_set(err, ERROR_INVALID,
				"'%s' places the tensor '%.*s' in '%.*s', which lacks it",
				from->full_path, shown_len(pair->key), pair->key.data,
				shown_len(pair->value), pair->value.data);
	}
	return 0;
}

static int open_single(struct checkpoint *checkpoint, const char *path, struct error *err)
{
	if (add_entry(checkpoint, CHECKPOINT_SINGLE_NAME, path, 0, err) != 0)
		return -1;
	checkpoint->entries[0].is_shard = true;
	return map_all(checkpoint, err);
}

static int build_schema(struct checkpoint *checkpoint, const char *path, struct error *err)
{
	size_t shards = 0;
	checkpoint->schema = schema_new();
	for (size_t i = 0; i < checkpoint->count; i++) {
		const struct checkpoint_entry *const entry = &checkpoint->entries[i];
		shards += entry->is_shard;
		if (entry->is_shard && schema_add(checkpoint->schema, entry->shard, err) != 0)
			return error_wrap(err, "'%s'", entry->full_path);
	}
	if (shards == 0)
		return refuse_without_shards(checkpoint, path, err);
	schema_finish(checkpoint->schema);
	return 0;
}

static int refuse_without_shards(
	const struct checkpoint *checkpoint, const char *path, struct error *err)
{
	if (checkpoint->pickle != NULL)
		return error_set(err, ERROR_INVALID,
			"'%s' holds no .safetensors file; %s looks like weights in a pickle, which"
			" cannot be read: save them with safe_serialization=True",
			path, checkpoint->pickle);
	return error_set(err, ERROR_INVALID, "'%s' holds no .safetensors file", path);
}

static void bind_tensors(struct checkpoint *checkpoint)
{
	checkpoint->tensors =
		memory_new_array(schema_count(checkpoint->schema), sizeof(struct span));
	for (size_t i = 0; i < checkpoint->count; i++) {
		const struct checkpoint_entry *const entry = &checkpoint->entries[i];
		for (size_t k = 0; entry->is_shard && k < safetensors_count(entry->shard); k++) {
			const struct safetensors_tensor *const tensor =
				safetensors_tensor(entry->shard, k);
			const ptrdiff_t at = schema_find(checkpoint->schema, tensor->name);
			ASSERT(at >= 0);
			ASSERT(tensor->end <= entry->file.data.len);
			checkpoint->tensors[at] = span_slice(entry->file.data,
				(size_t)tensor->begin, (size_t)(tensor->end - tensor->begin));
		}
	}
}

static int checkpoint_digest_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct digest_run *const run = state;
	(void)worker;
	return digest_bytes(run, item, run->checkpoint->tensors[item], err);
}

static int digest_bytes(
	const struct digest_run *run, size_t item, struct span bytes, struct error *err)
{
	run->digests[item] = xxh3_128(bytes);
	return work_watch_step(run->watch, bytes.len, err);
}

static int checkpoint_digest_file(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct digest_run *const run = state;
	(void)worker;
	const struct checkpoint_file *const file = checkpoint_file(run->checkpoint, item);
	return file->shard != NULL && run->checkpoint->is_in_memory
		? digest_scattered(run, item, file, err)
		: digest_bytes(run, item, file->bytes, err);
}

/* The digest of a shard whose tensors lie apart: they are taken in the order of the data. */
static int digest_scattered(const struct digest_run *run, size_t item,
	const struct checkpoint_file *file, struct error *err)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, file->header);
	int result = work_watch_step(run->watch, file->header.len, err);
	for (size_t i = 0; i < safetensors_count(file->shard) && result == 0; i++) {
		const struct span name = safetensors_tensor(file->shard, i)->name;
		const ptrdiff_t at = schema_find(run->checkpoint->schema, name);
		ASSERT(at >= 0);
		result = add_watched(stream, run->checkpoint->tensors[at], run->watch, err);
	}
	run->digests[item] = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return result;
}

/* In pieces, so that the watch may end the work within a large tensor. */
static int add_watched(
	struct xxh3_stream *stream, struct span bytes, struct work_watch *watch, struct error *err)
{
	int result = 0;
	for (size_t at = 0; at < bytes.len && result == 0; at += PIECE_BYTES) {
		const struct span piece = span_slice(bytes, at, PIECE_BYTES);
		xxh3_stream_add(stream, piece);
		result = work_watch_step(watch, piece.len, err);
	}
	return result;
}
