#include "weights/model/checkpoint_source.h"

#include <stdlib.h>

#include "base/memory.h"

struct checkpoint_source {
	struct tensor_source source;
	const struct checkpoint *checkpoint;
};
struct checkpoint_cursor {
	struct tensor_cursor cursor;
	struct span tensor;
	uint64_t at;
	uint64_t block_bytes;
};

static struct tensor_cursor *checkpoint_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
static int checkpoint_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
static int checkpoint_source_next(
	struct tensor_cursor *cursor, struct span *out, struct error *err);
static void checkpoint_source_close(struct tensor_cursor *cursor);
static void checkpoint_source_free(struct tensor_source *source);
static bool checkpoint_source_splits(const struct tensor_source *source, size_t tensor);

struct tensor_source *checkpoint_source_new(const struct checkpoint *checkpoint)
{
	static const struct tensor_source_ops ops = {
		.open = checkpoint_source_open,
		.next = checkpoint_source_next,
		.close_cursor = checkpoint_source_close,
		.free = checkpoint_source_free,
		.seek = checkpoint_source_seek,
		.splits = checkpoint_source_splits,
	};
	struct checkpoint_source *const source = memory_new(sizeof(*source));
	source->source =
		(struct tensor_source){.ops = &ops, .schema = checkpoint_schema(checkpoint)};
	source->checkpoint = checkpoint;
	return &source->source;
}

static struct tensor_cursor *checkpoint_source_open(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	struct checkpoint_cursor *const cursor = memory_new(sizeof(*cursor));
	cursor->cursor.source = source;
	(void)checkpoint_source_seek(&cursor->cursor, tensor, 0, err);
	return &cursor->cursor;
}

static int checkpoint_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err)
{
	struct checkpoint_cursor *const self = (struct checkpoint_cursor *)cursor;
	const struct checkpoint_source *const source =
		(const struct checkpoint_source *)cursor->source;
	(void)err;
	self->tensor = checkpoint_tensor(source->checkpoint, tensor);
	self->block_bytes = tensor_source_block_bytes(cursor->source, tensor);
	self->at = block * self->block_bytes;
	ASSERT(self->at <= self->tensor.len);
	return 0;
}

static int checkpoint_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	struct checkpoint_cursor *const self = (struct checkpoint_cursor *)cursor;
	(void)err;
	if (self->at >= self->tensor.len)
		return 0;
	*out = span_slice(self->tensor, (size_t)self->at, (size_t)self->block_bytes);
	self->at += self->block_bytes;
	return 1;
}

static void checkpoint_source_close(struct tensor_cursor *cursor)
{
	free(cursor);
}

static void checkpoint_source_free(struct tensor_source *source)
{
	free(source);
}

static bool checkpoint_source_splits(const struct tensor_source *source, size_t tensor)
{
	(void)source;
	(void)tensor;
	return true;
}
