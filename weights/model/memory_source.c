#include "weights/model/memory_source.h"

#include <stdlib.h>

#include "base/memory.h"

struct memory_source {
	struct tensor_source source;
	const uint8_t *const *tensors;
};
struct memory_cursor {
	struct tensor_cursor cursor;
	struct span tensor;
	uint64_t at;
	uint64_t block_bytes;
};

static struct tensor_cursor *memory_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
static int memory_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
static int memory_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
static void memory_source_close(struct tensor_cursor *cursor);
static void memory_source_free(struct tensor_source *source);
static bool memory_source_splits(const struct tensor_source *source, size_t tensor);

struct tensor_source *memory_source_new(const struct schema *schema, const uint8_t *const *tensors)
{
	static const struct tensor_source_ops ops = {
		.open = memory_source_open,
		.next = memory_source_next,
		.close_cursor = memory_source_close,
		.free = memory_source_free,
		.seek = memory_source_seek,
		.splits = memory_source_splits,
	};
	ASSERT(tensors != NULL || schema_count(schema) == 0);
	struct memory_source *const source = memory_new(sizeof(*source));
	source->source = (struct tensor_source){.ops = &ops, .schema = schema};
	source->tensors = tensors;
	return &source->source;
}

static struct tensor_cursor *memory_source_open(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	struct memory_cursor *const cursor = memory_new(sizeof(*cursor));
	cursor->cursor.source = source;
	(void)memory_source_seek(&cursor->cursor, tensor, 0, err);
	return &cursor->cursor;
}

static int memory_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err)
{
	struct memory_cursor *const self = (struct memory_cursor *)cursor;
	const struct memory_source *const source = (const struct memory_source *)cursor->source;
	(void)err;
	self->tensor = span_of(source->tensors[tensor],
		(size_t)schema_tensor(cursor->source->schema, tensor)->bytes);
	ASSERT(self->tensor.data != NULL || self->tensor.len == 0);
	self->block_bytes = tensor_source_block_bytes(cursor->source, tensor);
	self->at = block * self->block_bytes;
	ASSERT(self->at <= self->tensor.len);
	return 0;
}

static int memory_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	struct memory_cursor *const self = (struct memory_cursor *)cursor;
	(void)err;
	if (self->at >= self->tensor.len)
		return 0;
	*out = span_slice(self->tensor, (size_t)self->at, (size_t)self->block_bytes);
	self->at += self->block_bytes;
	return 1;
}

static void memory_source_close(struct tensor_cursor *cursor)
{
	free(cursor);
}

static void memory_source_free(struct tensor_source *source)
{
	free(source);
}

static bool memory_source_splits(const struct tensor_source *source, size_t tensor)
{
	(void)source;
	(void)tensor;
	return true;
}
