/* The checkpoint's own mapping serves for its headers and small files alone. All bytes of tensors
 * go through the second mapping, which is writable, so that the process has their pages once. The
 * schema is a copy, so that holders have names and shapes when the checkpoint is closed. */
#include "client/transfer/live_checkpoint.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "weights/delta/delta_patch.h"
#include "weights/delta/delta_stack.h"
#include "weights/model/checkpoint.h"
#include "weights/model/checkpoint_source.h"
#include "weights/model/mapped_file.h"
#include "weights/model/relative_path.h"

enum { SCHEMA_TEXT_MAX_BYTES = 256 * 1024 * 1024 };
static const char LINK_END[] = ".link";

struct live_checkpoint {
	_Atomic unsigned holders;
	struct checkpoint *checkpoint; /* NULL: dropped */
	struct schema *schema;
	struct span *shards; /* for each file of the checkpoint; empty where it is not a shard */
	int *fds;            /* of the shards, which have no other name; -1 where it is none */
	size_t fd_count;
	struct span *gone; /* mappings without data, for holders that still read there */
	size_t gone_count, gone_room;
	uint8_t **tensors; /* schema order; NULL: dropped */
	uint64_t version;
	struct delta_changes *changes; /* of the last patch; NULL: not kept */
};

static void unmap(struct live_checkpoint *live);
static void unmap_shard(struct live_checkpoint *live, struct span shard);
static void close_all(int *fds, size_t count);
static int map_folder(struct live_checkpoint *live, const struct file_ops *files,
	const char *folder, struct error *err);
static int copy_schema(struct live_checkpoint *live, struct error *err);
static int map_shards(
	struct live_checkpoint *live, const struct file_ops *files, struct error *err);
static int map_shard(
	const struct checkpoint_file *file, struct span *out, int *out_fd, struct error *err);
static void replace_name(const struct file_ops *files, const char *path, int fd);
static void place_tensors(struct live_checkpoint *live);
static int patch_files(struct live_checkpoint *live, const struct live_patch *patch,
	const struct model_files *base, bool *out_spoiled, struct error *err);
static int patch_tensors(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err);
static bool keeps_shards(const struct model_files *base, const struct model_files *next);
static int put_others(const struct live_patch *patch, const struct model_files *base,
	const struct model_files *next, bool *out_changed, struct error *err);
static int remove_others(const struct live_patch *patch, const struct model_files *base,
	const struct model_files *next, bool *out_changed, struct error *err);
static int map_again(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err);

struct live_checkpoint *live_checkpoint_open(
	const struct file_ops *files, const char *folder, struct error *err)
{
	struct live_checkpoint *const live = memory_new(sizeof(*live));
	atomic_init(&live->holders, 1);
	if (map_folder(live, files, folder, err) == 0)
		return live;
	live_checkpoint_free(live);
	return NULL;
}

struct live_checkpoint *live_checkpoint_hold(struct live_checkpoint *live)
{
	atomic_fetch_add(&live->holders, 1);
	return live;
}

void live_checkpoint_free(struct live_checkpoint *live)
{
	if (live == NULL || atomic_fetch_sub(&live->holders, 1) > 1)
		return;
	live_checkpoint_drop(live);
	for (size_t i = 0; i < live->gone_count; i++)
		mapped_file_close(live->gone[i]);
	free(live->gone);
	delta_changes_free(live->changes);
	schema_free(live->schema);
	free(live);
}

void live_checkpoint_drop(struct live_checkpoint *live)
{
	if (live->checkpoint == NULL)
		return;
	live->version++;
	unmap(live);
}

const struct schema *live_checkpoint_schema(const struct live_checkpoint *live)
{
	return live->schema;
}

void *live_checkpoint_tensor(const struct live_checkpoint *live, size_t index)
{
	ASSERT(index < schema_count(live->schema));
	return live->tensors != NULL ? live->tensors[index] : NULL;
}

uint64_t live_checkpoint_version(const struct live_checkpoint *live)
{
	return live->version;
}

int live_checkpoint_patch(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err)
{
	ASSERT(live->checkpoint != NULL && patch->count > 0);
	struct model_files base = {0};
	*out_spoiled = false;
	int result = model_files_of(&base, live->checkpoint, err);
	if (result == 0)
		result = patch_files(live, patch, &base, out_spoiled, err);
	model_files_release(&base);
	return result;
}

static void unmap(struct live_checkpoint *live)
{
	for (size_t i = 0; live->shards != NULL && i < checkpoint_file_count(live->checkpoint); i++)
		unmap_shard(live, live->shards[i]);
	close_all(live->fds, live->fd_count);
	free(live->shards);
	free(live->tensors);
	live->fds = NULL;
	live->fd_count = 0;
	live->shards = NULL;
	live->tensors = NULL;
	checkpoint_close(live->checkpoint);
	live->checkpoint = NULL;
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
}

/* A holder's caller may still have pointers into the shard. They then find zero bytes, which cost
 * no memory. */
static void unmap_shard(struct live_checkpoint *live, struct span shard)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	void *const address = (void *)(uintptr_t)shard.data;
	const bool is_read = shard.len > 0 && atomic_load(&live->holders) > 1;
	if (!is_read ||
		mmap(address, shard.len, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) {
		mapped_file_close(shard);
		return;
	}
	live->gone = memory_make_room(
		live->gone, live->gone_count, &live->gone_room, sizeof(live->gone[0]));
	live->gone[live->gone_count++] = shard;
}

const struct delta_changes *live_checkpoint_changes(const struct live_checkpoint *live)
{
	return live->changes;
}

static int map_folder(struct live_checkpoint *live, const struct file_ops *files,
	const char *folder, struct error *err)
{
	live->checkpoint = checkpoint_open(folder, err);
	if (live->checkpoint == NULL)
		return -1;
	if (live->schema == NULL && copy_schema(live, err) != 0)
		return -1;
	if (map_shards(live, files, err) != 0)
		return -1;
	place_tensors(live);
	return 0;
}

static int copy_schema(struct live_checkpoint *live, struct error *err)
{
	struct buffer text;
	buffer_init(&text, SCHEMA_TEXT_MAX_BYTES);
	schema_print(checkpoint_schema(live->checkpoint), &text);
	int result = buffer_check(&text, "the schema", err);
	if (result == 0)
		live->schema = schema_parse(buffer_span(&text), err);
	if (live->schema == NULL)
		result = -1;
	buffer_release(&text);
	return result;
}

static int map_shards(struct live_checkpoint *live, const struct file_ops *files, struct error *err)
{
	const size_t count = checkpoint_file_count(live->checkpoint);
	live->shards = memory_new_array(count + 1, sizeof(live->shards[0]));
	live->fds = memory_new_array(count + 1, sizeof(live->fds[0]));
	while (live->fd_count < count) {
		const size_t i = live->fd_count++;
		const struct checkpoint_file *const file = checkpoint_file(live->checkpoint, i);
		live->fds[i] = -1;
		if (file->shard == NULL)
			continue;
		if (map_shard(file, &live->shards[i], &live->fds[i], err) != 0)
			return -1;
		replace_name(files, file->full_path, live->fds[i]);
	}
	return 0;
}

static int map_shard(
	const struct checkpoint_file *file, struct span *out, int *out_fd, struct error *err)
{
	const int fd = open(file->full_path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "cannot open '%s' for writing", file->full_path);
	void *const address =
		mmap(NULL, (size_t)file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*out_fd = fd;
	if (address == MAP_FAILED)
		return error_set_errno(err, "cannot map '%s' for writing", file->full_path);
	*out = span_of(address, (size_t)file->size);
	return 0;
}

/* Puts a link to the open file in the place of its name. Where that fails the name stays. */
static void replace_name(const struct file_ops *files, const char *path, int fd)
{
	char target[64];
	struct buffer link;
	buffer_init(&link, strlen(path) + sizeof(LINK_END));
	buffer_format(&link, "%s%s", path, LINK_END);
	snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)getpid(), fd);
	if (files->symlink(files, target, buffer_text(&link)) == 0 &&
		files->rename(files, buffer_text(&link), path) != 0)
		files->unlink(files, buffer_text(&link));
	buffer_release(&link);
}

/* The place of a tensor in its file is the same in both mappings. */
static void place_tensors(struct live_checkpoint *live)
{
	const size_t files = checkpoint_file_count(live->checkpoint);
	live->tensors = memory_new_array(schema_count(live->schema) + 1, sizeof(live->tensors[0]));
	for (size_t f = 0; f < files; f++) {
		const struct checkpoint_file *const file = checkpoint_file(live->checkpoint, f);
		uint8_t *const data = (uint8_t *)(uintptr_t)live->shards[f].data;
		for (size_t i = 0; file->shard != NULL && i < safetensors_count(file->shard); i++) {
			const struct safetensors_tensor *const tensor =
				safetensors_tensor(file->shard, i);
			const ptrdiff_t at = schema_find(live->schema, tensor->name);
			ASSERT(at >= 0);
			live->tensors[at] = data + file->header.len + tensor->begin;
		}
	}
}

/* The deltas say which files the result has. Nothing is changed before it is known that all of them
 * can be made in place. */
static int patch_files(struct live_checkpoint *live, const struct live_patch *patch,
	const struct model_files *base, bool *out_spoiled, struct error *err)
{
	struct tensor_source *const source = checkpoint_source_new(live->checkpoint);
	struct delta_stack *const stack =
		delta_stack_open(source, base, patch->deltas, patch->count, err);
	bool has_new_files = false;
	int result = -1;
	if (stack != NULL)
		result = keeps_shards(base, delta_stack_files(stack, patch->count))
			? patch_tensors(live, patch, out_spoiled, err)
			: 1;
	if (result == 0) {
		const struct model_files *const next = delta_stack_files(stack, patch->count);
		if (put_others(patch, base, next, &has_new_files, err) != 0 ||
			remove_others(patch, base, next, &has_new_files, err) != 0)
			result = -1;
		*out_spoiled = result != 0;
	}
	delta_stack_close(stack);
	tensor_source_free(source);
	if (result == 0 && has_new_files)
		result = map_again(live, patch, out_spoiled, err);
	return result;
}

/* Whether the result has the base's shards with the same headers: then each tensor stays where it
 * is. */
static bool keeps_shards(const struct model_files *base, const struct model_files *next)
{
	if (model_files_shards(base) != model_files_shards(next))
		return false;
	for (size_t i = 0; i < next->count; i++) {
		const struct model_file *const file = &next->files[i];
		const struct model_file *const twin = model_files_find(base, file->path);
		if (file->is_shard &&
			(twin == NULL || !twin->is_shard || twin->size != file->size ||
				!digest128_equal(&twin->digest, &file->digest)))
			return false;
	}
	return true;
}

static int patch_tensors(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err)
{
	delta_changes_free(live->changes);
	live->changes = patch->keeps_changes ? delta_changes_new(live->schema) : NULL;
	const struct delta_patch_params params = {
		.schema = live->schema,
		.tensors = live->tensors,
		.deltas = patch->deltas,
		.delta_count = patch->count,
		.expected_base = patch->base,
		.expected_result = patch->result,
		.changes = live->changes,
		.threads = patch->threads,
		.watch = patch->watch,
	};
	struct delta_stats ignored;
	const int result = delta_patch(&params, &ignored, out_spoiled, err);
	if (result == 0 || *out_spoiled)
		live->version++;
	return result;
}

/* Writes the files beside the shards that are new or other ones. */
static int put_others(const struct live_patch *patch, const struct model_files *base,
	const struct model_files *next, bool *out_changed, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < next->count && result == 0; i++) {
		const struct model_file *const file = &next->files[i];
		const struct model_file *const twin = model_files_find(base, file->path);
		if (file->is_shard ||
			(twin != NULL && twin->size == file->size &&
				digest128_equal(&twin->digest, &file->digest)))
			continue;
		char *const path = relative_path_join(patch->folder, file->path);
		*out_changed = true;
		result = file_make_parent(patch->files, path, 0700, err);
		if (result == 0)
			result = file_place(patch->files, path, file->bytes, 0600, err);
		free(path);
	}
	return result;
}

static int remove_others(const struct live_patch *patch, const struct model_files *base,
	const struct model_files *next, bool *out_changed, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < base->count && result == 0; i++) {
		if (model_files_find(next, base->files[i].path) != NULL)
			continue;
		char *const path = relative_path_join(patch->folder, base->files[i].path);
		*out_changed = true;
		result = file_remove_tree(patch->files, path, err);
		free(path);
	}
	return result;
}

/* The base of the next deltas has the files that are there now. The names of the shards lead to
 * their descriptors until there are new ones. */
static int map_again(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err)
{
	int *const fds = live->fds;
	const size_t count = live->fd_count;
	live->fds = NULL;
	live->fd_count = 0;
	unmap(live);
	const int result = map_folder(live, patch->files, patch->folder, err);
	close_all(fds, count);
	*out_spoiled = result != 0;
	return result;
}
