#include "weights/model/zero_source.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/block_code.h"

struct zero_cursor {
	struct tensor_cursor cursor;
	uint64_t left;
	uint64_t block_bytes;
	uint8_t *zeros; /* one block of the widest dtype; never touched, so it costs no memory */
};

static struct tensor_cursor *open_cursor(
	struct tensor_source *source, size_t tensor, struct error *err);
static int seek(struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
static int next(struct tensor_cursor *cursor, struct span *out, struct error *err);
static void close_cursor(struct tensor_cursor *cursor);
static void free_source(struct tensor_source *source);
static bool splits(const struct tensor_source *source, size_t tensor);

struct tensor_source *zero_source_new(const struct schema *schema)
{
	static const struct tensor_source_ops ops = {
		.open = open_cursor,
		.next = next,
		.close_cursor = close_cursor,
		.free = free_source,
		.seek = seek,
		.splits = splits,
	};
	struct tensor_source *const source = memory_new(sizeof(*source));
	*source = (struct tensor_source){.ops = &ops, .schema = schema};
	return source;
}

static struct tensor_cursor *open_cursor(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	struct zero_cursor *const cursor = memory_new(sizeof(*cursor));
	cursor->cursor.source = source;
	cursor->zeros = memory_new_array(BLOCK_CODE_ELEMENTS, sizeof(uint64_t));
	(void)seek(&cursor->cursor, tensor, 0, err);
	return &cursor->cursor;
}

static int seek(struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err)
{
	struct zero_cursor *const self = (struct zero_cursor *)cursor;
	(void)err;
	self->block_bytes = tensor_source_block_bytes(cursor->source, tensor);
	self->left =
		schema_tensor(cursor->source->schema, tensor)->bytes - block * self->block_bytes;
	return 0;
}

static int next(struct tensor_cursor *cursor, struct span *out, struct error *err)
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

static void close_cursor(struct tensor_cursor *cursor)
{
	free(((struct zero_cursor *)cursor)->zeros);
	free(cursor);
}

static void free_source(struct tensor_source *source)
{
	free(source);
}

static bool splits(const struct tensor_source *source, size_t tensor)
{
	(void)source;
	(void)tensor;
	return true;
}
