#include "weights/model/zero_source.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/block_code.h"

struct zero_cursor {
	struct tensor_cursor cursor;
	uint64_t left;
	uint64_t block_bytes;
	/* a block of the widest dtype; never written, so it takes no memory */
	uint8_t *zeros;
};

static struct tensor_cursor *zero_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
static int zero_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
static int zero_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
static void zero_source_close(struct tensor_cursor *cursor);
static void zero_source_free(struct tensor_source *source);
static bool zero_source_splits(const struct tensor_source *source, size_t tensor);

struct tensor_source *zero_source_new(const struct schema *schema)
{
	static const struct tensor_source_ops ops = {
		.open = zero_source_open,
		.next = zero_source_next,
		.close_cursor = zero_source_close,
		.free = zero_source_free,
		.seek = zero_source_seek,
		.splits = zero_source_splits,
	};
	struct tensor_source *const source = memory_new(sizeof(*source));
	*source = (struct tensor_source){.ops = &ops, .schema = schema};
	return source;
}

static struct tensor_cursor *zero_source_open(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	struct zero_cursor *const cursor = memory_new(sizeof(*cursor));
	cursor->cursor.source = source;
	cursor->zeros = memory_new_array(BLOCK_CODE_ELEMENTS, sizeof(uint64_t));
	(void)zero_source_seek(&cursor->cursor, tensor, 0, err);
	return &cursor->cursor;
}

static int zero_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err)
{
	struct zero_cursor *const self = (struct zero_cursor *)cursor;
	(void)err;
	self->block_bytes = tensor_source_block_bytes(cursor->source, tensor);
	const uint64_t bytes = schema_tensor(cursor->source->schema, tensor)->bytes;
	ASSERT(block * self->block_bytes <= bytes);
	self->left = bytes - block * self->block_bytes;
	return 0;
}

static int zero_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	struct zero_cursor *const self = (struct zero_cursor *)cursor;
	(void)err;
	if (self->left == 0)
		return 0;
	const uint64_t len = self->left < self->block_bytes ? self->left : self->block_bytes;
	*out = span_of(self->zeros, (size_t)len);
	self->left -= len;
	return 1;
}

static void zero_source_close(struct tensor_cursor *cursor)
{
	free(((struct zero_cursor *)cursor)->zeros);
	free(cursor);
}

static void zero_source_free(struct tensor_source *source)
{
	free(source);
}

static bool zero_source_splits(const struct tensor_source *source, size_t tensor)
{
	(void)source;
	(void)tensor;
	return true;
}
