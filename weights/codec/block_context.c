/* Memory of a context grows to the largest block so far and stays. Arrays are replaced, not kept,
 * when they grow, because no block needs those of another. They are as large as the worst case and
 * not cleared: the operating system gives memory only to pages that are written. */
#include "weights/codec/block_context.h"

#include <stdlib.h>

#include "base/memory.h"

static void need_elements(struct block_code_context *context, size_t elements);
static void *renew(void *old, size_t count, size_t bytes);
static size_t payload_room_for(const struct block_code_context *context);

struct block_code_context *block_code_context_new(void)
{
	struct block_code_context *const context = memory_new(sizeof(*context));
	context->compressor = compressor_new();
	context->hash = xxh3_stream_new();
	context->way = ulp_way(BLOCK_CODE_BEST);
	return context;
}

void block_code_context_free(struct block_code_context *context)
{
	if (context == NULL)
		return;
	compressor_free(context->compressor);
	xxh3_stream_free(context->hash);
	free(context->keys);
	free(context->gaps);
	free(context->found_steps);
	free(context->steps);
	free(context->words);
	free(context->scratch);
	free(context->payloads[0]);
	free(context->payloads[1]);
	free(context);
}

bool block_code_context_use(struct block_code_context *context, enum block_code_path path)
{
	const struct ulp_way *const way = ulp_way(path);
	if (way != NULL)
		context->way = way;
	return way != NULL;
}

void block_code_context_watch(
	struct block_code_context *context, struct xxh3_stream *base, struct xxh3_stream *result)
{
	context->watch_base = base;
	context->watch_result = result;
}

void block_context_hash_start(struct block_code_context *context)
{
	xxh3_stream_reset(context->hash);
}

void block_context_hash_add(
	struct block_code_context *context, struct span base, struct span result)
{
	ASSERT(base.len == result.len);
	xxh3_stream_add(context->hash, result);
	if (context->watch_base != NULL)
		xxh3_stream_add(context->watch_base, base);
	if (context->watch_result != NULL)
		xxh3_stream_add(context->watch_result, result);
}

uint64_t block_context_hash_end(struct block_code_context *context)
{
	return xxh3_stream_result_64(context->hash);
}

void block_context_need(struct block_code_context *context, size_t elements, size_t bytes)
{
	ASSERT(elements <= BLOCK_CODE_ELEMENTS && bytes <= block_code_payload_max());
	if (elements > context->elements)
		need_elements(context, elements);
	if (bytes > context->bytes) {
		context->bytes = bytes;
		context->words = renew(context->words, bytes, 1);
		context->scratch = renew(context->scratch, bytes, 1);
	}
	if (payload_room_for(context) <= context->payload_room)
		return;
	context->payload_room = payload_room_for(context);
	for (size_t i = 0; i < 2; i++)
		context->payloads[i] = renew(context->payloads[i], context->payload_room, 1);
}

struct word_code block_context_words(const struct block_code_context *context, enum dtype dtype)
{
	ASSERT(context->words != NULL && context->scratch != NULL);
	const struct plane_code planes = {.compressor = context->compressor,
		.scratch = context->scratch,
		.width = block_word_bytes(dtype)};
	return (struct word_code){.planes = planes, .gaps = context->gaps, .words = context->words};
}

static void need_elements(struct block_code_context *context, size_t elements)
{
	const size_t room = elements + ULP_SCAN_GROUP;
	context->elements = elements;
	context->keys = renew(context->keys, room, sizeof(*context->keys));
	context->gaps = renew(context->gaps, room, sizeof(*context->gaps));
	context->found_steps = renew(context->found_steps, room, sizeof(*context->found_steps));
	context->steps = renew(context->steps, room, sizeof(*context->steps));
}

static void *renew(void *old, size_t count, size_t bytes)
{
	free(old);
	return memory_grow(NULL, count, bytes); /* does not clear */
}

/* Enough for any payload, also for one that turns out to be too large to use. */
static size_t payload_room_for(const struct block_code_context *context)
{
	return (context->elements + 1) * ULP_STREAM_BYTES_MOST + plane_code_bound(context->bytes);
}
