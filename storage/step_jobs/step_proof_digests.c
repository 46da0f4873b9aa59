/* Walks over the files in the order of their bytes, so that each block is hashed for its tensor and
 * its file while it is in the cache. Threads share out the files; each has one cursor for all of
 * its tensors. */
#include "storage/step_jobs/step_proof.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/model/parallel.h"

struct walk {
	struct tensor_source *tensors;
	const struct model_files *files;
	struct step_digests *out;
	struct tensor_cursor **cursors; /* one for each thread */
};

static int digests_walk_file(void *state, size_t item, unsigned worker, struct error *err);
static int walk_shard(struct walk *walk, const struct model_file *file, unsigned worker,
	struct xxh3_stream *file_stream, struct error *err);
static int walk_tensor(struct walk *walk, unsigned worker, size_t tensor,
	struct xxh3_stream *file_stream, struct xxh3_stream *stream, struct error *err);
static int check_tensors(
	const struct step_chain *chain, const struct step_digests *digests, struct error *err);
static int check_checkpoint(
	const struct step_chain *chain, const struct step_digests *digests, struct error *err);
static int check_files(const struct step_message *manifest, const struct model_files *files,
	const struct step_digests *digests, struct error *err);
static int check_file(const struct step_file *declared, const struct model_file *file,
	const struct digest128 *digest, struct error *err);

int step_digests_find(struct tensor_source *tensors, const struct model_files *files,
	unsigned threads, struct step_digests *out, struct error *err)
{
	ASSERT(out->tensors == NULL && out->files == NULL);
	const struct schema *const schema = tensors->schema;
	const unsigned workers = parallel_workers(threads, files->count);
	struct walk walk = {.tensors = tensors,
		.files = files,
		.out = out,
		.cursors = memory_new_array(workers, sizeof(*walk.cursors))};
	out->tensors = memory_new_array(schema_count(schema) + 1, sizeof(*out->tensors));
	out->files = memory_new_array(files->count + 1, sizeof(*out->files));
	int result = model_files_check(files, schema, err);
	if (result == 0)
		result = parallel_run(workers, files->count, digests_walk_file, &walk, err);
	for (unsigned i = 0; i < workers; i++)
		tensor_cursor_close(walk.cursors[i]);
	free(walk.cursors);
	if (result == 0)
		out->checkpoint = schema_checkpoint_digest(schema, out->tensors);
	return result;
}

void step_digests_release(struct step_digests *digests)
{
	free(digests->tensors);
	free(digests->files);
	*digests = (struct step_digests){.tensors = NULL};
}

int step_digests_check(
	const struct step_source *source, const struct step_digests *digests, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(source);
	ASSERT(digests->tensors != NULL && digests->files != NULL);
	if (check_tensors(chain, digests, err) != 0 || check_checkpoint(chain, digests, err) != 0)
		return -1;
	return check_files(&chain->manifest, step_source_files(source), digests, err);
}

static int digests_walk_file(void *state, size_t item, unsigned worker, struct error *err)
{
	struct walk *const walk = state;
	ASSERT(item < walk->files->count);
	const struct model_file *const file = &walk->files->files[item];
	walk->out->files[item] = file->digest;
	if (!file->is_shard)
		return 0;
	struct xxh3_stream *const stream = xxh3_stream_new();
	const int result = walk_shard(walk, file, worker, stream, err);
	walk->out->files[item] = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return result;
}

static int walk_shard(struct walk *walk, const struct model_file *file, unsigned worker,
	struct xxh3_stream *file_stream, struct error *err)
{
	const struct schema *const schema = walk->tensors->schema;
	struct xxh3_stream *const stream = xxh3_stream_new();
	int result = 0;
	xxh3_stream_add(file_stream, span_of(file->length, sizeof(file->length)));
	xxh3_stream_add(file_stream, file->json);
	for (size_t i = 0; i < safetensors_count(file->parsed) && result == 0; i++) {
		const ptrdiff_t tensor =
			schema_find(schema, safetensors_tensor(file->parsed, i)->name);
		ASSERT(tensor >= 0); /* model_files_check */
		result = walk_tensor(walk, worker, (size_t)tensor, file_stream, stream, err);
	}
	xxh3_stream_free(stream);
	return result;
}

static int walk_tensor(struct walk *walk, unsigned worker, size_t tensor,
	struct xxh3_stream *file_stream, struct xxh3_stream *stream, struct error *err)
{
	struct span block;
	int got;
	if (tensor_source_move(walk->tensors, &walk->cursors[worker], tensor, 0, err) != 0)
		return -1;
	xxh3_stream_reset(stream);
	while ((got = tensor_cursor_next(walk->cursors[worker], &block, err)) == 1) {
		xxh3_stream_add(stream, block);
		xxh3_stream_add(file_stream, block);
	}
	walk->out->tensors[tensor] = xxh3_stream_result(stream);
	return got;
}

static int check_tensors(
	const struct step_chain *chain, const struct step_digests *digests, struct error *err)
{
	const struct digest128 *const declared =
		(const struct digest128 *)chain->manifest.tensor_digests.data;
	for (size_t i = 0; i < chain->manifest.tensor_digests.len / sizeof(*declared); i++) {
		if (digest128_equal(&declared[i], &digests->tensors[i]))
			continue;
		const struct span name = schema_tensor(chain->schema, i)->name;
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"The tensor '%.*s' is not what the manifest says.",
			(int)span_slice(name, 0, 160).len, (const char *)name.data);
	}
	return 0;
}

static int check_checkpoint(
	const struct step_chain *chain, const struct step_digests *digests, struct error *err)
{
	char ours[DIGEST128_TEXT_BYTES];
	char theirs[DIGEST128_TEXT_BYTES];
	if (digest128_equal(&digests->checkpoint, &chain->row.digest))
		return 0;
	digest128_format(&digests->checkpoint, ours);
	digest128_format(&chain->row.digest, theirs);
	return error_set(
		err, ERROR_DIGEST_MISMATCH, "The checkpoint's digest is %s, not %s.", ours, theirs);
}

/* A manifest without files says nothing of them. A checkpoint that is one file may have another
 * name than in a folder. */
static int check_files(const struct step_message *manifest, const struct model_files *files,
	const struct step_digests *digests, struct error *err)
{
	if (manifest->file_count == 0)
		return 0;
	if (manifest->file_count != files->count)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"The checkpoint has %zu files, not %zu.", files->count,
			manifest->file_count);
	for (size_t i = 0; i < files->count; i++) { /* both sorted */
		const struct step_file *const declared = &manifest->files[i];
		if (files->count > 1 && !span_equal(declared->path, files->files[i].path))
			return error_set(err, ERROR_DIGEST_MISMATCH,
				"The checkpoint has no file '%.*s'.",
				(int)span_slice(declared->path, 0, 160).len,
				(const char *)declared->path.data);
		if (check_file(declared, &files->files[i], &digests->files[i], err) != 0)
			return -1;
	}
	return 0;
}

static int check_file(const struct step_file *declared, const struct model_file *file,
	const struct digest128 *digest, struct error *err)
{
	const int shown = (int)span_slice(declared->path, 0, 160).len;
	if (file->size != declared->size)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"The file '%.*s' has %llu bytes, not %llu.", shown,
			(const char *)declared->path.data, (unsigned long long)file->size,
			(unsigned long long)declared->size);
	if (digest128_equal(digest, &declared->digest))
		return 0;
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"The file '%.*s' is not what the manifest says.", shown,
		(const char *)declared->path.data);
}
