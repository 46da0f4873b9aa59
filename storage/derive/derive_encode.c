/* Both objects are read tensor by tensor, in the order of the next one's bytes, and compared block
 * by block. An equal block becomes a copy of the base. Adjacent changed blocks form a run, which
 * becomes one delta piece when an equal block follows, when it has DERIVED_PIECE_BLOCKS blocks or
 * when its tensor ends. Encoded blocks gather in `pending` and go to the file in writes of about
 * FLUSH_BYTES. */
#include "storage/derive/derive_encode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/versions/derived_input.h"
#include "weights/codec/block_code.h"

enum {
	BLOCK_MAX_BYTES = 8 * BLOCK_CODE_ELEMENTS, /* the widest elements have 8 bytes */
	FLUSH_BYTES = 1024 * 1024,
	PENDING_MAX_BYTES = 64 * 1024 * 1024
};

struct encoder {
	const struct derive_encode_params *params;
	struct derive_encoded *out;
	struct derived_input *base;
	struct derived_input *next;
	size_t base_source;
	int fd;
	struct block_code_context *context;
	struct xxh3_stream *digest;
	uint8_t *base_block;
	uint8_t *next_block;
	struct buffer pending; /* bytes of the file that are not written yet */
	uint64_t written;
	/* the run of changed blocks that is not a piece yet: */
	unsigned run_blocks;
	uint64_t run_base;
	uint64_t run_length;
	uint64_t run_delta;
};

static int encode(struct encoder *encoder, struct error *err);
static int open_sides(struct encoder *encoder, struct error *err);
static int encode_all(struct encoder *encoder, struct error *err);
static void encode_header(struct encoder *encoder);
static size_t need_delta_source(struct encoder *encoder);
static bool same_shape(const struct safetensors_tensor *a, const struct safetensors_tensor *b);
static int encode_tensor(struct encoder *encoder, const struct safetensors_tensor *base,
	const struct safetensors_tensor *next, struct error *err);
static int spend(const struct encoder *encoder, size_t bytes, struct error *err);
static void add_block(struct encoder *encoder, enum dtype dtype, uint64_t base_offset, size_t len);
static void end_run(struct encoder *encoder, enum dtype dtype);
static uint64_t file_bytes(const struct encoder *encoder);
static int flush(struct encoder *encoder, struct error *err);

int derive_encode(
	const struct derive_encode_params *params, struct derive_encoded *out, struct error *err)
{
	struct encoder encoder = {.params = params, .out = out, .fd = -1};
	ASSERT(params->store != NULL && params->pace != NULL);
	ASSERT(params->base.header->tensors != NULL && params->next.header->tensors != NULL);
	*out = (struct derive_encoded){.recipe = derived_recipe_new(), .delta_source = SIZE_MAX};
	encoder.base_source = derived_recipe_source(
		out->recipe, params->base.source.version, params->base.source.size);
	buffer_init(&encoder.pending, PENDING_MAX_BYTES + SAFETENSORS_HEADER_MAX_BYTES);
	const int result = encode(&encoder, err);
	derived_input_close(encoder.base);
	derived_input_close(encoder.next);
	block_code_context_free(encoder.context);
	xxh3_stream_free(encoder.digest);
	buffer_release(&encoder.pending);
	free(encoder.base_block);
	free(encoder.next_block);
	if (result != 1) {
		derived_recipe_free(out->recipe);
		out->recipe = NULL;
	}
	return result;
}

static int encode(struct encoder *encoder, struct error *err)
{
	const struct file_ops *const files = store_files(encoder->params->store);
	ASSERT(encoder->base == NULL && encoder->next == NULL);
	if (open_sides(encoder, err) != 0)
		return -1;
	encoder->fd = files->open(
		files, encoder->params->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (encoder->fd < 0)
		return error_set_errno(err, "%s: cannot be made", encoder->params->path);
	encoder->context = block_code_context_new();
	encoder->digest = xxh3_stream_new();
	encoder->base_block = memory_new(BLOCK_MAX_BYTES);
	encoder->next_block = memory_new(BLOCK_MAX_BYTES);
	const int result = encode_all(encoder, err);
	close(encoder->fd);
	return result;
}

/* Opens both in one snapshot. From then on their packs are held (invariant 5). */
static int open_sides(struct encoder *encoder, struct error *err)
{
	const struct derive_encode_params *const params = encoder->params;
	struct db *const db = store_snapshot_take(params->store, err);
	if (db == NULL)
		return -1;
	const struct derived_input_params base = {.source = &params->base.source,
		.to = params->base.source.size,
		.levels = DERIVED_DEPTH_MAX - 1};
	const struct derived_input_params next = {.source = &params->next.source,
		.to = params->next.source.size,
		.levels = DERIVED_DEPTH_MAX};
	encoder->base = derived_input_open(params->store, db, &base, err);
	if (encoder->base != NULL)
		encoder->next = derived_input_open(params->store, db, &next, err);
	store_snapshot_give(params->store, db);
	return encoder->next == NULL ? -1 : 0;
}

static int encode_all(struct encoder *encoder, struct error *err)
{
	const struct safetensors *const base = encoder->params->base.header->tensors;
	const struct safetensors *const next = encoder->params->next.header->tensors;
	int result = 1;
	encode_header(encoder);
	for (size_t i = 0; result == 1 && i < safetensors_count(next); i++) {
		const struct safetensors_tensor *const tensor = safetensors_tensor(next, i);
		const struct safetensors_tensor *const old = safetensors_find(base, tensor->name);
		if (old == NULL || !same_shape(old, tensor))
			return error_set(err, ERROR_INVALID,
				"The tensor '%.*s' has another type or shape in the base, or is missing there.",
				(int)(tensor->name.len > 100 ? 100 : tensor->name.len),
				(const char *)tensor->name.data);
		result = encode_tensor(encoder, old, tensor, err);
	}
	if (result == 1 && flush(encoder, err) != 0)
		return -1;
	encoder->out->delta_bytes = encoder->written;
	encoder->out->digest = xxh3_stream_result(encoder->digest);
	return result;
}

static void encode_header(struct encoder *encoder)
{
	const struct span base = buffer_span(&encoder->params->base.header->bytes);
	const struct span next = buffer_span(&encoder->params->next.header->bytes);
	xxh3_stream_add(encoder->digest, next);
	if (span_equal(base, next)) {
		derived_recipe_add_copy(encoder->out->recipe, encoder->base_source, 0, next.len);
		return;
	}
	buffer_add_span(&encoder->pending, next);
	derived_recipe_add_copy(encoder->out->recipe, need_delta_source(encoder), 0, next.len);
}

/* The file becomes a source of the recipe when the first piece needs it. */
static size_t need_delta_source(struct encoder *encoder)
{
	if (encoder->out->delta_source == SIZE_MAX)
		encoder->out->delta_source =
			derived_recipe_source(encoder->out->recipe, 0, DERIVED_SIZE_UNKNOWN);
	return encoder->out->delta_source;
}

static bool same_shape(const struct safetensors_tensor *a, const struct safetensors_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
		(a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(*a->shape)) == 0);
}

/* 1: encoded; 0: the file became too large; -1. */
static int encode_tensor(struct encoder *encoder, const struct safetensors_tensor *base,
	const struct safetensors_tensor *next, struct error *err)
{
	const uint64_t base_begin = encoder->params->base.header->bytes.len + base->begin;
	const uint64_t next_begin = encoder->params->next.header->bytes.len + next->begin;
	const uint64_t bytes = next->end - next->begin;
	const uint64_t whole = block_code_bytes(next->dtype);
	ASSERT(whole > 0 && whole <= BLOCK_MAX_BYTES);
	for (uint64_t at = 0; at < bytes; at += whole) {
		const size_t len = (size_t)(bytes - at < whole ? bytes - at : whole);
		if (spend(encoder, 2 * len, err) != 0 ||
			derived_input_read(encoder->base, base_begin + at, encoder->base_block, len,
				err) != 0 ||
			derived_input_read(
				encoder->next, next_begin + at, encoder->next_block, len, err) != 0)
			return -1;
		xxh3_stream_add(encoder->digest, span_of(encoder->next_block, len));
		add_block(encoder, next->dtype, base_begin + at, len);
		if (file_bytes(encoder) > encoder->params->delta_max)
			return 0;
		if (encoder->pending.len >= FLUSH_BYTES && flush(encoder, err) != 0)
			return -1;
	}
	end_run(encoder, next->dtype);
	return 1;
}

static int spend(const struct encoder *encoder, size_t bytes, struct error *err)
{
	const struct work_pace *const pace = encoder->params->pace;
	return pace->spend(pace->owner, bytes)
		? 0
		: error_set(err, ERROR_BUSY, "The server is stopping.");
}

static void add_block(struct encoder *encoder, enum dtype dtype, uint64_t base_offset, size_t len)
{
	const struct span base = span_of(encoder->base_block, len);
	const struct span next = span_of(encoder->next_block, len);
	ASSERT(len > 0 && len <= BLOCK_MAX_BYTES);
	ASSERT(encoder->run_blocks <= DERIVED_PIECE_BLOCKS);
	if (span_equal(base, next)) {
		end_run(encoder, dtype);
		derived_recipe_add_copy(
			encoder->out->recipe, encoder->base_source, base_offset, len);
		return;
	}
	if (encoder->run_blocks == DERIVED_PIECE_BLOCKS)
		end_run(encoder, dtype);
	if (encoder->run_blocks == 0) {
		encoder->run_base = base_offset;
		encoder->run_length = 0;
		encoder->run_delta = file_bytes(encoder);
	}
	block_code_encode(encoder->context, dtype, base, next, &encoder->pending, NULL);
	encoder->run_blocks++;
	encoder->run_length += len;
}

static void end_run(struct encoder *encoder, enum dtype dtype)
{
	if (encoder->run_blocks == 0)
		return;
	ASSERT(file_bytes(encoder) >= encoder->run_delta);
	const struct derived_range base = {.source = encoder->base_source,
		.offset = encoder->run_base,
		.length = encoder->run_length};
	const struct derived_range delta = {.source = need_delta_source(encoder),
		.offset = encoder->run_delta,
		.length = file_bytes(encoder) - encoder->run_delta};
	derived_recipe_add_delta(encoder->out->recipe, dtype, &base, &delta);
	encoder->run_blocks = 0;
}

static uint64_t file_bytes(const struct encoder *encoder)
{
	return encoder->written + encoder->pending.len;
}

static int flush(struct encoder *encoder, struct error *err)
{
	if (buffer_check(&encoder->pending, "a block", err) != 0)
		return -1;
	if (file_write_at(store_files(encoder->params->store), encoder->fd,
		    buffer_span(&encoder->pending), (off_t)encoder->written, encoder->params->path,
		    err) != 0)
		return -1;
	encoder->written += encoder->pending.len;
	buffer_reset(&encoder->pending);
	return 0;
}
