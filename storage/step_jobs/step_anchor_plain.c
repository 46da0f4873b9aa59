/* Anchors that are stored plainly: the files of the checkpoint are written into a scratch folder
 * one by one, and stored as uploads are. At most one of them lies in the folder at a time. */
#include "storage/step_jobs/step_anchor_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "storage/step_jobs/step_anchor.h"
#include "weights/model/relative_path.h"

/* A file that is being written. */
struct file_writer {
	const struct file_ops *ops;
	const char *path;
	int fd;
	uint64_t at;
	struct xxh3_stream *digest;
};

static int store_file(struct step_anchor_build *build, const struct model_file *file,
	struct step_anchor_file *out, struct error *err);
static int write_shard(struct step_anchor_build *build, const struct model_file *file,
	const char *path, struct digest128 *out_digest, struct error *err);
static int write_tensors(struct file_writer *writer, struct step_source *source,
	const struct model_file *file, struct error *err);
static int write_bytes(struct file_writer *writer, struct span bytes, struct error *err);
static int write_tensor(
	struct file_writer *writer, struct tensor_source *source, size_t tensor, struct error *err);
static int write_other(struct step_anchor_build *build, const struct model_file *file,
	const char *path, struct digest128 *out_digest, struct error *err);

int step_anchor_build_plain(struct step_work *work, int64_t run, uint64_t step,
	struct step_anchor_build *out, struct error *err)
{
	*out = (struct step_anchor_build){.work = work};
	out->next = step_source_open(work->store, work, run, step, STEP_VIA_ANY, err);
	out->scratch = out->next == NULL ? NULL : scratch_open(work->store, err);
	if (out->scratch == NULL)
		return -1;
	const struct model_files *const files = step_source_files(out->next);
	out->files = memory_new_array(files->count + 1, sizeof(*out->files));
	for (size_t i = 0; i < files->count; i++) {
		struct step_anchor_file *const made = &out->files[out->count++];
		made->path = files->files[i].path;
		if (store_file(out, &files->files[i], made, err) != 0)
			return -1;
		out->bytes += files->files[i].size;
	}
	return 0;
}

static int store_file(struct step_anchor_build *build, const struct model_file *file,
	struct step_anchor_file *out, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(build->next);
	const struct file_ops *const files = store_files(build->work->store);
	char key[STEP_ANCHOR_KEY_BYTES];
	const struct span whole =
		span_of(key, step_anchor_key(chain->run_name, chain->row.step, file->path, key));
	char *const path = relative_path_join(scratch_path(build->scratch), span_text("file"));
	int result =
		(file->is_shard ? write_shard : write_other)(build, file, path, &out->digest, err);
	if (result == 0)
		result = step_anchor_build_check(build, out, err);
	if (result == 0)
		result = scratch_store_hidden(
			build->work->store, path, chain->run.bucket, whole, &out->version, err);
	(void)files->unlink(files, path);
	free(path);
	return result;
}

static int write_shard(struct step_anchor_build *build, const struct model_file *file,
	const char *path, struct digest128 *out_digest, struct error *err)
{
	struct file_writer writer = {.ops = store_files(build->work->store), .path = path};
	writer.fd =
		writer.ops->open(writer.ops, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (writer.fd < 0)
		return error_set_errno(err, "%s: cannot be made", path);
	writer.digest = xxh3_stream_new();
	const int result = write_tensors(&writer, build->next, file, err);
	*out_digest = xxh3_stream_result(writer.digest);
	xxh3_stream_free(writer.digest);
	close(writer.fd);
	return result;
}

static int write_tensors(struct file_writer *writer, struct step_source *source,
	const struct model_file *file, struct error *err)
{
	const struct schema *const schema = step_source_chain(source)->schema;
	int result = write_bytes(writer, span_of(file->length, sizeof(file->length)), err);
	if (result == 0)
		result = write_bytes(writer, file->json, err);
	for (size_t i = 0; i < safetensors_count(file->parsed) && result == 0; i++) {
		const ptrdiff_t tensor =
			schema_find(schema, safetensors_tensor(file->parsed, i)->name);
		ASSERT(tensor >= 0); /* model_files_check */
		result = write_tensor(writer, step_source_tensors(source), (size_t)tensor, err);
	}
	return result;
}

static int write_bytes(struct file_writer *writer, struct span bytes, struct error *err)
{
	if (file_write_at(writer->ops, writer->fd, bytes, (off_t)writer->at, writer->path, err) !=
		0)
		return -1;
	writer->at += bytes.len;
	xxh3_stream_add(writer->digest, bytes);
	return 0;
}

static int write_tensor(
	struct file_writer *writer, struct tensor_source *source, size_t tensor, struct error *err)
{
	struct tensor_cursor *const cursor = tensor_source_open(source, tensor, err);
	struct span block;
	int got = -1;
	while (cursor != NULL && (got = tensor_cursor_next(cursor, &block, err)) == 1)
		if (write_bytes(writer, block, err) != 0) {
			got = -1;
			break;
		}
	tensor_cursor_close(cursor);
	return got;
}

/* The digest of a file without tensors is that of its version; fetching it proves it. */
static int write_other(struct step_anchor_build *build, const struct model_file *file,
	const char *path, struct digest128 *out_digest, struct error *err)
{
	const int64_t version = step_source_version(build->next, file->path);
	*out_digest = file->digest;
	if (version != 0)
		return scratch_fetch(build->work->store, version, path, err);
	return error_set(err, ERROR_NO_KEY, "No object holds the file '%.*s'.",
		(int)span_slice(file->path, 0, 160).len, (const char *)file->path.data);
}
