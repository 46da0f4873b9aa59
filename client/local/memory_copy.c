/* Files that the checkpoint lacks go first, because the place may be small. Then come the small
 * files and the shard with its header, and at last the tensors, on several threads. */
#include "client/local/memory_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/local/folder_files.h"
#include "weights/model/parallel.h"

enum { PIECE_BYTES = 8 << 20, SMALL_MAX_BYTES = 1 << 30 };

struct shard_copy {
	const struct memory_copy *copy;
	const struct checkpoint_file *file;
	char *path;
	int fd;
	bool is_kept;  /* the file was there, and its header is right */
	uint8_t *into; /* it is mapped; NULL: it is not */
	uint64_t *ats; /* where each tensor begins in the file, in schema order */
};

static int remove_others(const struct memory_copy *copy, struct error *err);
static bool has_file(const struct checkpoint *checkpoint, const char *path);
static int copy_file(
	const struct memory_copy *copy, const struct checkpoint_file *file, struct error *err);
static int copy_small(const struct memory_copy *copy, const struct checkpoint_file *file,
	const char *path, struct error *err);
static bool holds(const char *path, struct span bytes);
static int copy_shard(struct shard_copy *shard, struct error *err);
static bool keep_shard(struct shard_copy *shard);
static bool has_header(int fd, struct span header);
static int begin_shard(struct shard_copy *shard, struct error *err);
static void place_tensors(struct shard_copy *shard);
static int memory_copy_write_tensor(void *state, size_t item, unsigned worker, struct error *err);
static int write_piece(
	const struct shard_copy *shard, struct span piece, uint64_t at, struct error *err);

int memory_copy_make(const struct memory_copy *copy, struct error *err)
{
	if (file_make_folder(copy->files, copy->folder, 0755, err) != 0 ||
		remove_others(copy, err) != 0)
		return -1;
	for (size_t i = 0; i < checkpoint_file_count(copy->from); i++)
		if (copy_file(copy, checkpoint_file(copy->from, i), err) != 0)
			return -1;
	return 0;
}

static int remove_others(const struct memory_copy *copy, struct error *err)
{
	struct folder_files files = {0};
	int result = folder_files_read(copy->folder, &files, err);
	for (size_t i = 0; i < files.count && result == 0; i++)
		if (!has_file(copy->from, files.files[i].name))
			result = file_remove_tree(copy->files, files.files[i].path, err);
	folder_files_release(&files);
	return result;
}

static bool has_file(const struct checkpoint *checkpoint, const char *path)
{
	for (size_t i = 0; i < checkpoint_file_count(checkpoint); i++)
		if (strcmp(checkpoint_file(checkpoint, i)->path, path) == 0)
			return true;
	return false;
}

static int copy_file(
	const struct memory_copy *copy, const struct checkpoint_file *file, struct error *err)
{
	struct shard_copy shard = {.copy = copy,
		.file = file,
		.path = folder_files_join(copy->folder, file->path),
		.fd = -1};
	int result = file_make_parent(copy->files, shard.path, 0755, err);
	if (result == 0)
		result = file->shard != NULL ? copy_shard(&shard, err)
					     : copy_small(copy, file, shard.path, err);
	if (shard.fd >= 0)
		close(shard.fd);
	free(shard.ats);
	free(shard.path);
	return result;
}

static int copy_small(const struct memory_copy *copy, const struct checkpoint_file *file,
	const char *path, struct error *err)
{
	return holds(path, file->bytes) ? 0 : file_place(copy->files, path, file->bytes, 0644, err);
}

static bool holds(const char *path, struct span bytes)
{
	struct buffer held;
	struct error ignored = {0};
	uint64_t size = 0;
	if (!file_exists(path) || file_size(path, &size, &ignored) != 0 || size != bytes.len)
		return false;
	buffer_init(&held, SMALL_MAX_BYTES);
	const bool same =
		file_read_all(path, &held, &ignored) == 0 && span_equal(buffer_span(&held), bytes);
	buffer_release(&held);
	return same;
}

static int copy_shard(struct shard_copy *shard, struct error *err)
{
	const struct memory_copy *const copy = shard->copy;
	const size_t count = schema_count(checkpoint_schema(copy->from));
	shard->is_kept = keep_shard(shard);
	if (!shard->is_kept && begin_shard(shard, err) != 0)
		return -1;
	if (shard->is_kept && copy->mapping != NULL)
		shard->into = kept_mapping_of(copy->mapping, shard->fd);
	place_tensors(shard);
	return parallel_run(parallel_workers(copy->threads, count), count, memory_copy_write_tensor,
		shard, err);
}

/* Opens the shard that is there if tensors can be written into it. A file that has other names must
 * stay as it is. */
static bool keep_shard(struct shard_copy *shard)
{
	const struct file_ops *const files = shard->copy->files;
	struct stat facts;
	shard->fd = files->open(files, shard->path, O_RDWR, 0);
	if (shard->fd < 0)
		return false;
	if (fstat(shard->fd, &facts) == 0 && facts.st_nlink == 1 &&
		(uint64_t)facts.st_size == shard->file->size &&
		has_header(shard->fd, shard->file->header))
		return true;
	close(shard->fd);
	shard->fd = -1;
	return false;
}

static bool has_header(int fd, struct span header)
{
	uint8_t *const held = memory_new(header.len + 1);
	const bool same = pread(fd, held, header.len, 0) == (ssize_t)header.len &&
		memcmp(held, header.data, header.len) == 0;
	free(held);
	return same;
}

static int begin_shard(struct shard_copy *shard, struct error *err)
{
	const struct file_ops *const files = shard->copy->files;
	if (file_remove_tree(files, shard->path, err) != 0)
		return -1;
	shard->fd = files->open(files, shard->path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (shard->fd < 0)
		return error_set_errno(err, "making %s", shard->path);
	if (file_reserve(shard->fd, shard->file->size, shard->path, err) != 0)
		return -1;
	return file_write_at(files, shard->fd, shard->file->header, 0, shard->path, err);
}

static void place_tensors(struct shard_copy *shard)
{
	const struct schema *const schema = checkpoint_schema(shard->copy->from);
	shard->ats = memory_new_array(schema_count(schema) + 1, sizeof(*shard->ats));
	for (size_t i = 0; i < safetensors_count(shard->file->shard); i++) {
		const struct safetensors_tensor *const tensor =
			safetensors_tensor(shard->file->shard, i);
		const ptrdiff_t at = schema_find(schema, tensor->name);
		ASSERT(at >= 0);
		shard->ats[at] = shard->file->header.len + tensor->begin;
	}
}

static int memory_copy_write_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct shard_copy *const shard = state;
	const struct memory_copy *const copy = shard->copy;
	const struct span bytes = checkpoint_tensor(copy->from, item);
	int result = 0;
	(void)worker;
	if (shard->is_kept && copy->same != NULL && copy->same[item])
		return work_watch_step(copy->watch, bytes.len, err);
	for (size_t at = 0; at < bytes.len && result == 0; at += PIECE_BYTES) {
		const struct span piece = span_slice(bytes, at, PIECE_BYTES);
		result = write_piece(shard, piece, shard->ats[item] + at, err);
		if (result == 0)
			result = work_watch_step(copy->watch, piece.len, err);
	}
	return result;
}

static int write_piece(
	const struct shard_copy *shard, struct span piece, uint64_t at, struct error *err)
{
	if (shard->into == NULL)
		return file_write_at(
			shard->copy->files, shard->fd, piece, (off_t)at, shard->path, err);
	ASSERT(at + piece.len <= shard->file->size);
	memcpy(shard->into + at, piece.data, piece.len);
	return 0;
}
