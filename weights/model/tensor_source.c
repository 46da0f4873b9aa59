#include "weights/model/tensor_source.h"

#include "weights/codec/block_code.h"
#include "weights/model/tensor_pass.h"

struct tensor_cursor *tensor_source_open(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	ASSERT(tensor < schema_count(source->schema));
	return source->ops->open(source, tensor, err);
}

int tensor_cursor_next(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	return cursor->source->ops->next(cursor, out, err);
}

void tensor_cursor_close(struct tensor_cursor *cursor)
{
	if (cursor != NULL)
		cursor->source->ops->close_cursor(cursor);
}

void tensor_source_free(struct tensor_source *source)
{
	if (source != NULL)
		source->ops->free(source);
}

int tensor_source_move(struct tensor_source *source, struct tensor_cursor **cursor, size_t tensor,
	uint64_t block, struct error *err)
{
	ASSERT(block == 0 || tensor_source_splits(source, tensor));
	ASSERT(*cursor == NULL || (*cursor)->source == source);
	if (*cursor != NULL && source->ops->seek == NULL) {
		tensor_cursor_close(*cursor);
		*cursor = NULL;
	}
	const bool opened = *cursor == NULL;
	if (opened)
		*cursor = tensor_source_open(source, tensor, err);
	if (*cursor == NULL)
		return -1;
	if ((opened && block == 0) || source->ops->seek(*cursor, tensor, block, err) == 0)
		return 0;
	tensor_cursor_close(*cursor);
	*cursor = NULL;
	return -1;
}

bool tensor_source_splits(const struct tensor_source *source, size_t tensor)
{
	return source->ops->seek != NULL && source->ops->splits != NULL &&
		source->ops->splits(source, tensor);
}

uint64_t tensor_source_block_bytes(const struct tensor_source *source, size_t tensor)
{
	return block_code_bytes(schema_tensor(source->schema, tensor)->dtype);
}

uint64_t tensor_source_blocks(const struct tensor_source *source, size_t tensor)
{
	const uint64_t block_bytes = tensor_source_block_bytes(source, tensor);
	const uint64_t bytes = schema_tensor(source->schema, tensor)->bytes;
	return bytes / block_bytes + (bytes % block_bytes != 0);
}

int tensor_source_digests(struct tensor_source *source, unsigned threads,
	struct digest128 *out_digests, struct error *err)
{
	const struct tensor_pass pass = {
		.next = source, .threads = threads, .next_digests = out_digests};
	return tensor_pass_run(&pass, err);
}
