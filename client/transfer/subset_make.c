/* Tensor sources are stacked: the held part (or the anchor), a source that gives it the schema of
 * the whole model, and one for each delta. Reading a tensor from the top of the stack applies all
 * deltas to it block by block. So the program reads only the chosen tensors and writes no
 * intermediate step. Several threads each write one tensor at a time to its place in the new file
 * and prove it by its digest. */
#include "client/transfer/subset_make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/transfer/path_fetch.h"
#include "client/transfer/transfer.h"
#include "weights/delta/delta_source.h"
#include "weights/model/checkpoint_source.h"
#include "weights/model/parallel.h"
#include "weights/model/shard_rule.h"

enum {
	HEADER_MAX_BYTES = 100 * 1000 * 1000,
	SCHEMA_MAX_BYTES = 256 * 1024 * 1024,
	LINKS_MAX = 256
};
static const char SCHEMA_FILE[] = ".schema";
static const char WEIGHTS_FILE[] = "model.safetensors";

/* The held tensors under the schema of the whole model. Other tensors cannot be opened. */
struct part_source {
	struct tensor_source source; /* must be first: the callbacks cast it back */
	struct tensor_source *held;  /* of the held checkpoint */
};

struct part_cursor {
	struct tensor_cursor cursor; /* must be first */
	struct tensor_cursor *inner;
};

/* The state while one step is made. */
struct making {
	const struct subset_make_params *params;
	struct checkpoint *base; /* the held part, or the whole anchor */
	struct schema *parsed;   /* the whole model's schema, if it was read from .schema */
	const struct schema *schema;
	struct tensor_source *levels[LINKS_MAX + 2]; /* the stack: held part, its view, deltas */
	struct delta_reader *readers[LINKS_MAX];
	size_t level_count, reader_count;
	bool *chosen;
	struct safetensors_tensor *tensors; /* in the order of the new file's data */
	size_t *indices;                    /* the index of each in the schema */
	size_t count;
	int fd;
	uint64_t data_at;
	char *path;
};

static int run(struct making *making, const char *to, struct error *err);
static int open_base(struct making *making, struct error *err);
static int read_schema(struct making *making, const char *folder, struct error *err);
static struct tensor_cursor *subset_make_open_part(
	struct tensor_source *source, size_t tensor, struct error *err);
static int subset_make_next_block(
	struct tensor_cursor *cursor, struct span *out, struct error *err);
static void subset_make_close_cursor(struct tensor_cursor *cursor);
static void subset_make_free_part(struct tensor_source *source);
static int open_deltas(struct making *making, struct error *err);
static int open_delta(struct making *making, const struct path_link *link,
	const struct digest128 *base, struct error *err);
static int write_weights(struct making *making, const char *to, struct error *err);
static int plan_file(struct making *making, struct buffer *header, struct error *err);
static int subset_make_write_tensor(void *state, size_t item, unsigned worker, struct error *err);
static int prove_tensor(const struct making *making, size_t item, const struct digest128 *digest,
	struct error *err);
static int take_files(const struct making *making, const char *to, struct error *err);
static bool holds_tensors(const struct making *making, struct span path);
static bool is_nested_shard(const struct making *making, struct span path);
static int take_file(const struct making *making, const struct step_file *wanted, const char *to,
	struct error *err);
static char *find_file(
	const struct making *making, const struct step_file *wanted, const char *name);
static bool has_content(const char *path, const struct step_file *wanted);
static int write_schema(const struct making *making, const char *to, struct error *err);

static const struct tensor_source_ops PART_OPS = {.open = subset_make_open_part,
	.next = subset_make_next_block,
	.close_cursor = subset_make_close_cursor,
	.free = subset_make_free_part};

int subset_make(const struct subset_make_params *params, const char *to, struct error *err)
{
	ASSERT(params->path->link_count > 0 && params->subset != NULL);
	struct making making = {.params = params, .fd = -1};
	const int result = run(&making, to, err);
	if (making.fd >= 0)
		close(making.fd);
	for (size_t i = making.level_count; i-- > 0;)
		tensor_source_free(making.levels[i]);
	for (size_t i = 0; i < making.reader_count; i++)
		delta_reader_close(making.readers[i]);
	free(making.path);
	free(making.chosen);
	free(making.tensors);
	free(making.indices);
	schema_free(making.parsed);
	checkpoint_close(making.base);
	return result;
}

static int run(struct making *making, const char *to, struct error *err)
{
	if (open_base(making, err) != 0 || open_deltas(making, err) != 0)
		return -1;
	if (making->params->tensor_digests.len != 16 * schema_count(making->schema))
		return error_set(err, ERROR_UNSUPPORTED,
			"step %" PRIu64
			" was published without digests of its tensors: a part of it cannot be proven",
			making->params->path->to_step);
	making->chosen = subset_select(making->params->subset, making->schema, err);
	if (making->chosen == NULL || file_make_folder(making->params->files, to, 0755, err) != 0)
		return -1;
	if (write_weights(making, to, err) != 0 || take_files(making, to, err) != 0)
		return error_wrap(err, "making step %" PRIu64, making->params->path->to_step);
	return write_schema(making, to, err);
}

static int open_base(struct making *making, struct error *err)
{
	const struct subset_make_params *const params = making->params;
	const bool from_anchor = params->path->links[0].form.kind == STEP_ANCHOR;
	char *const anchor =
		from_anchor ? path_fetch_files(params->work, &params->path->links[0]) : NULL;
	int result = 0;
	if (!from_anchor && params->base == NULL)
		result = error_set(err, ERROR_UPSTREAM,
			"the server's path begins with a delta, but there is no step to apply it to");
	if (result == 0)
		making->base = checkpoint_open(from_anchor ? anchor : params->base, err);
	if (making->base == NULL)
		result = -1;
	if (result == 0 && from_anchor)
		making->schema = checkpoint_schema(making->base);
	else if (result == 0)
		result = read_schema(making, params->base, err);
	if (result == 0) {
		making->levels[making->level_count++] = checkpoint_source_new(making->base);
		if (!from_anchor) {
			struct part_source *const part = memory_new(sizeof(*part));
			*part = (struct part_source){
				.source = {.ops = &PART_OPS, .schema = making->schema},
				.held = making->levels[0]};
			making->levels[making->level_count++] = &part->source;
		}
	}
	free(anchor);
	return result;
}

static int read_schema(struct making *making, const char *folder, struct error *err)
{
	struct buffer text;
	char *const path = folder_files_join(folder, SCHEMA_FILE);
	buffer_init(&text, SCHEMA_MAX_BYTES);
	if (file_read_all(path, &text, err) == 0)
		making->parsed = schema_parse(buffer_span(&text), err);
	buffer_release(&text);
	free(path);
	making->schema = making->parsed;
	return making->parsed != NULL ? 0 : -1;
}

static struct tensor_cursor *subset_make_open_part(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	const struct part_source *const part = (const struct part_source *)source;
	const struct schema_tensor *const wanted = schema_tensor(source->schema, tensor);
	const ptrdiff_t index = schema_find(part->held->schema, wanted->name);
	if (index < 0 || schema_tensor(part->held->schema, (size_t)index)->bytes != wanted->bytes) {
		error_set(err, ERROR_WRONG_BASE, "the held part of the model lacks the tensor %.*s",
			(int)wanted->name.len, (const char *)wanted->name.data);
		return NULL;
	}
	struct tensor_cursor *const inner = tensor_source_open(part->held, (size_t)index, err);
	if (inner == NULL)
		return NULL;
	struct part_cursor *const cursor = memory_new(sizeof(*cursor));
	*cursor = (struct part_cursor){.cursor = {.source = source}, .inner = inner};
	return &cursor->cursor;
}

static int subset_make_next_block(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	return tensor_cursor_next(((struct part_cursor *)cursor)->inner, out, err);
}

static void subset_make_close_cursor(struct tensor_cursor *cursor)
{
	tensor_cursor_close(((struct part_cursor *)cursor)->inner);
	free(cursor);
}

static void subset_make_free_part(struct tensor_source *source)
{
	free(source);
}

static int open_deltas(struct making *making, struct error *err)
{
	const struct path_message *const path = making->params->path;
	const size_t first = path->links[0].form.kind == STEP_ANCHOR ? 1 : 0;
	for (size_t i = first; i < path->link_count; i++) {
		const struct digest128 *const base =
			i == 0 ? &making->params->base_digest : &path->links[i - 1].digest;
		if (making->reader_count == LINKS_MAX)
			return error_set(err, ERROR_UPSTREAM, "the server's path has over %d steps",
				LINKS_MAX);
		/* In a delta without objects nothing changed. */
		if (path->links[i].form.object_count > 0 &&
			open_delta(making, &path->links[i], base, err) != 0)
			return error_wrap(err, "making step %" PRIu64, path->links[i].step);
	}
	return 0;
}

static int open_delta(struct making *making, const struct path_link *link,
	const struct digest128 *base, struct error *err)
{
	char *const folder = path_fetch_files(making->params->work, link);
	struct delta_reader *const reader = delta_reader_open(folder, err);
	free(folder);
	if (reader == NULL)
		return -1;
	ASSERT(making->reader_count < LINKS_MAX && making->level_count < LINKS_MAX + 2);
	making->readers[making->reader_count++] = reader;
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	if (metadata->has_base_digest && !digest128_equal(&metadata->base_digest, base))
		return error_set(err, ERROR_WRONG_BASE,
			"the delta was made from another checkpoint than the held one");
	struct tensor_source *const source =
		delta_source_new(reader, making->levels[making->level_count - 1], err);
	if (source == NULL)
		return -1;
	making->levels[making->level_count++] = source;
	return 0;
}

static int write_weights(struct making *making, const char *to, struct error *err)
{
	struct buffer header;
	buffer_init(&header, HEADER_MAX_BYTES);
	int result = plan_file(making, &header, err);
	if (result == 0) {
		making->path = folder_files_join(to, WEIGHTS_FILE);
		making->fd = making->params->files->open(
			making->params->files, making->path, O_RDWR | O_CREAT | O_EXCL, 0644);
		if (making->fd < 0)
			result = error_set_errno(err, "making %s", making->path);
	}
	if (result == 0)
		result = file_write_at(making->params->files, making->fd, buffer_span(&header), 0,
			making->path, err);
	if (result == 0)
		result = parallel_run(parallel_workers(making->params->threads, making->count),
			making->count, subset_make_write_tensor, making, err);
	if (result == 0)
		result = file_sync(making->params->files, making->fd, making->path, err);
	buffer_release(&header);
	return result;
}

/* Makes the header of the new file, and the place of each tensor. */
static int plan_file(struct making *making, struct buffer *header, struct error *err)
{
	const size_t all = schema_count(making->schema);
	const struct safetensors_metadata metadata[] = {
		{span_text("format"), span_text("pt")},
		{span_text("deltabucket_subset"), span_text(making->params->subset->text)},
	};
	making->tensors = memory_new_array(all + 1, sizeof(*making->tensors));
	making->indices = memory_new_array(all + 1, sizeof(*making->indices));
	for (size_t i = 0; i < all; i++) {
		const struct schema_tensor *const tensor = schema_tensor(making->schema, i);
		if (!making->chosen[i])
			continue;
		making->tensors[making->count++] = (struct safetensors_tensor){
			.name = tensor->name,
			.dtype = tensor->dtype,
			.rank = tensor->rank,
			.shape = tensor->shape,
			.elements = tensor->bytes * 8 / dtype_bits(tensor->dtype),
		};
	}
	if (safetensors_write_header(making->tensors, making->count, metadata,
		    sizeof(metadata) / sizeof(metadata[0]), header, err) != 0)
		return -1;
	for (size_t i = 0; i < making->count; i++) {
		const ptrdiff_t index = schema_find(making->schema, making->tensors[i].name);
		ASSERT(index >= 0); /* the name was taken from the schema */
		making->indices[i] = (size_t)index;
	}
	making->data_at = buffer_span(header).len;
	return 0;
}

static int subset_make_write_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct making *const making = state;
	ASSERT(item < making->count && making->level_count > 0);
	struct tensor_source *const top = making->levels[making->level_count - 1];
	uint64_t at = making->data_at + making->tensors[item].begin;
	struct tensor_cursor *const cursor = tensor_source_open(top, making->indices[item], err);
	(void)worker;
	if (cursor == NULL)
		return -1;
	struct xxh3_stream *const stream = xxh3_stream_new();
	struct span block;
	int more;
	while ((more = tensor_cursor_next(cursor, &block, err)) > 0) {
		if (file_write_at(making->params->files, making->fd, block, (off_t)at, making->path,
			    err) != 0) {
			more = -1;
			break;
		}
		xxh3_stream_add(stream, block);
		at += block.len;
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	tensor_cursor_close(cursor);
	return more == 0 ? prove_tensor(making, item, &digest, err) : -1;
}

static int prove_tensor(
	const struct making *making, size_t item, const struct digest128 *digest, struct error *err)
{
	struct digest128 wanted;
	ASSERT(16 * (making->indices[item] + 1) <= making->params->tensor_digests.len);
	memcpy(&wanted, making->params->tensor_digests.data + 16 * making->indices[item],
		sizeof(wanted));
	if (digest128_equal(digest, &wanted))
		return 0;
	const struct span name = making->tensors[item].name;
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"the tensor %.*s does not match its digest in step %" PRIu64, (int)name.len,
		(const char *)name.data, making->params->path->to_step);
}

static int take_files(const struct making *making, const char *to, struct error *err)
{
	ASSERT(making->params->path->link_count > 0);
	const struct path_link *const last =
		&making->params->path->links[making->params->path->link_count - 1];
	for (size_t i = 0; i < last->file_count; i++)
		if (!holds_tensors(making, last->files[i].path) &&
			take_file(making, &last->files[i], to, err) != 0)
			return -1;
	return 0;
}

/* Beside the new model.safetensors every other .safetensors would count as a shard, so none is
 * taken, whatever it is. */
static bool holds_tensors(const struct making *making, struct span path)
{
	return shard_rule_is_top(path) || shard_rule_is_index(path) ||
		is_nested_shard(making, path);
}

/* The newest description of the step's files decides: that of a delta, or the anchor itself. */
static bool is_nested_shard(const struct making *making, struct span path)
{
	for (size_t i = making->reader_count; i-- > 0;) {
		const struct delta_metadata *const made =
			delta_reader_metadata(making->readers[i]);
		for (size_t k = 0; made->has_files && k < made->file_count; k++)
			if (span_equal(made->files[k].path, path))
				return made->files[k].is_shard;
	}
	for (size_t i = 0; i < checkpoint_file_count(making->base); i++) {
		const struct checkpoint_file *const file = checkpoint_file(making->base, i);
		if (span_equal_text(path, file->path))
			return file->shard != NULL;
	}
	return false;
}

static int take_file(const struct making *making, const struct step_file *wanted, const char *to,
	struct error *err)
{
	char *const name = memory_new(wanted->path.len + 1);
	memcpy(name, wanted->path.data, wanted->path.len);
	char *const found = find_file(making, wanted, name);
	char *const target = folder_files_join(to, name);
	int result = found != NULL ? file_make_parent(making->params->files, target, 0755, err)
				   : error_set(err, ERROR_DIGEST_MISMATCH,
					     "the file %s of step %" PRIu64
					     " is neither in the downloads nor in the held folder",
					     name, making->params->path->to_step);
	if (result == 0)
		result = file_share(making->params->files, found, target, err);
	free(target);
	free(found);
	free(name);
	return result;
}

/* The local path of a step's file without tensors. It is in the last download that brought it, or
 * in the base. NULL when it is in none of them. */
static char *find_file(
	const struct making *making, const struct step_file *wanted, const char *name)
{
	const struct path_message *const path = making->params->path;
	for (size_t i = path->link_count; i-- > 0;) {
		char *const link = path_fetch_files(making->params->work, &path->links[i]);
		char *const inner = path->links[i].form.kind == STEP_ANCHOR
			? memory_copy_text(link)
			: folder_files_join(link, "files");
		char *const found = folder_files_join(inner, name);
		free(inner);
		free(link);
		if (has_content(found, wanted))
			return found;
		free(found);
	}
	char *const held =
		making->params->base == NULL ? NULL : folder_files_join(making->params->base, name);
	if (held != NULL && has_content(held, wanted))
		return held;
	free(held);
	return NULL;
}

static bool has_content(const char *path, const struct step_file *wanted)
{
	struct error ignored = {0};
	struct digest128 digest;
	uint64_t size;
	return file_exists(path) && file_size(path, &size, &ignored) == 0 && size == wanted->size &&
		transfer_file_digest(path, &digest, &ignored) == 0 &&
		digest128_equal(&digest, &wanted->digest);
}

static int write_schema(const struct making *making, const char *to, struct error *err)
{
	struct buffer text;
	char *const path = folder_files_join(to, SCHEMA_FILE);
	buffer_init(&text, SCHEMA_MAX_BYTES);
	schema_print(making->schema, &text);
	int result = buffer_check(&text, path, err);
	if (result == 0)
		result = file_publish(making->params->files, path, buffer_span(&text), 0644, err);
	buffer_release(&text);
	free(path);
	return result;
}
