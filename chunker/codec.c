/* One table row for each codec says whether it is private and how it encodes and decodes. Encoders
 * only produce bytes; codec_encode alone decides whether they are worth storing. Codecs that
 * regroup bytes share the scratch memory of the context. */
#include "chunker/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/byte_planes.h"
#include "base/memory.h"
#include "chunker/chunk.h"
#include "chunker/codec_lz4.h"
#include "chunker/codec_planes.h"
#include "chunker/codec_trial.h"

/* On text and programs, level 3 gives results a twentieth smaller than level 1 and takes a quarter
 * to a half more time. */
enum { ZSTD_LEVEL = 3, BG4_WIDTH = 4 };

struct codec_context {
	struct compressor *compressor;
	struct codec_lz4 *lz4;
	uint8_t scratch[CHUNK_MAX_BYTES]; /* regrouped bytes */
};

/* Returns the count of bytes written, or 0 when the content does not shrink. `capacity` is at least
 * codec_bound(content.len). */
typedef size_t encode_fn(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
typedef int decode_fn(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err);

static const struct method *method_of(unsigned number);
static size_t encode_raw(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static int decode_raw(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err);
static size_t encode_lz4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static int decode_lz4(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err);
static size_t encode_bg4_lz4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static int decode_bg4_lz4(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err);
static size_t encode_zstd(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static int decode_zstd(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err);
static size_t encode_planes2(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static struct codec_planes planes_of(struct codec_context *context, size_t width);
static int decode_planes2(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err);
static size_t encode_planes4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity);
static int decode_planes4(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err);

static const struct method {
	enum codec codec;
	bool private;
	encode_fn *encode;
	decode_fn *decode;
} methods[] = {
	{CODEC_RAW, false, encode_raw, decode_raw},
	{CODEC_LZ4, false, encode_lz4, decode_lz4},
	{CODEC_BG4_LZ4, false, encode_bg4_lz4, decode_bg4_lz4},
	{CODEC_ZSTD, true, encode_zstd, decode_zstd},
	{CODEC_PLANES2, true, encode_planes2, decode_planes2},
	{CODEC_PLANES4, true, encode_planes4, decode_planes4},
};

struct codec_context *codec_context_new(void)
{
	struct codec_context *const context = memory_new(sizeof(*context));
	context->compressor = compressor_new();
	context->lz4 = codec_lz4_new();
	return context;
}

void codec_context_free(struct codec_context *context)
{
	if (context == NULL)
		return;
	compressor_free(context->compressor);
	codec_lz4_free(context->lz4);
	free(context);
}

bool codec_known(uint8_t number)
{
	return method_of(number) != NULL;
}

bool codec_private(enum codec codec)
{
	const struct method *const method = method_of(codec);
	ASSERT(method != NULL);
	return method->private;
}

size_t codec_bound(size_t len)
{
	const size_t lz4 = codec_lz4_bound(len);
	const size_t planes = len + CODEC_PLANES_OVERHEAD_BYTES;
	return lz4 > planes ? lz4 : planes;
}

enum codec codec_choose(struct codec_context *context, struct span content)
{
	return codec_trial_best(context->compressor, content);
}

size_t codec_encode(struct codec_context *context, enum codec codec, struct span content,
	uint8_t *into, size_t capacity)
{
	const struct method *const method = method_of(codec);
	ASSERT(method != NULL);
	ASSERT(content.len <= CHUNK_MAX_BYTES);
	ASSERT(capacity >= codec_bound(content.len));
	if (content.len == 0)
		return 0;
	const size_t size = method->encode(context, content, into, capacity);
	return size < content.len ? size : 0;
}

int codec_decode(struct codec_context *context, enum codec codec, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	const struct method *const method = method_of(codec);
	if (method == NULL)
		return error_set(err, ERROR_CORRUPT, "codec number %d is unknown", (int)codec);
	if (len > CHUNK_MAX_BYTES)
		return error_set(err, ERROR_CORRUPT, "a chunk of %zu bytes is over %d", len,
			(int)CHUNK_MAX_BYTES);
	return method->decode(context, stored, into, len, err);
}

bool codec_is_common(enum codec codec, struct span stored)
{
	return (codec != CODEC_LZ4 && codec != CODEC_BG4_LZ4) || codec_lz4_is_common(stored);
}

static const struct method *method_of(unsigned number)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (methods[i].codec == number)
			return &methods[i];
	}
	return NULL;
}

static size_t encode_raw(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	(void)context, (void)content, (void)into, (void)capacity;
	return 0;
}

static int decode_raw(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err)
{
	(void)context;
	if (stored.len != len)
		return error_set(
			err, ERROR_CORRUPT, "raw content has %zu bytes, not %zu", stored.len, len);
	if (len > 0)
		memcpy(into, stored.data, len);
	return 0;
}

static size_t encode_lz4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	(void)context;
	return codec_lz4_encode(content, into, capacity);
}

static int decode_lz4(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err)
{
	return codec_lz4_decode(context->lz4, stored, into, len, err);
}

static size_t encode_bg4_lz4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	byte_planes_split(content, BG4_WIDTH, context->scratch);
	return codec_lz4_encode(span_of(context->scratch, content.len), into, capacity);
}

static int decode_bg4_lz4(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	if (codec_lz4_decode(context->lz4, stored, context->scratch, len, err) != 0)
		return -1;
	const uint8_t *groups[BYTE_PLANES_MAX] = {context->scratch};
	for (size_t k = 1; k < BG4_WIDTH; k++)
		groups[k] = groups[k - 1] + byte_planes_length(len, BG4_WIDTH, k - 1);
	byte_planes_join(groups, BG4_WIDTH, into, len);
	return 0;
}

static size_t encode_zstd(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	return compress_zstd(context->compressor, content, into, capacity, ZSTD_LEVEL);
}

static int decode_zstd(struct codec_context *context, struct span stored, uint8_t *into, size_t len,
	struct error *err)
{
	return decompress_zstd(context->compressor, stored, into, len, err);
}

static size_t encode_planes2(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	(void)capacity;
	const struct codec_planes planes = planes_of(context, 2);
	return codec_planes_encode(&planes, content, into);
}

static struct codec_planes planes_of(struct codec_context *context, size_t width)
{
	return (struct codec_planes){
		.compressor = context->compressor, .scratch = context->scratch, .width = width};
}

static int decode_planes2(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	const struct codec_planes planes = planes_of(context, 2);
	return codec_planes_decode(&planes, stored, into, len, err);
}

static size_t encode_planes4(
	struct codec_context *context, struct span content, uint8_t *into, size_t capacity)
{
	(void)capacity;
	const struct codec_planes planes = planes_of(context, 4);
	return codec_planes_encode(&planes, content, into);
}

static int decode_planes4(struct codec_context *context, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	const struct codec_planes planes = planes_of(context, 4);
	return codec_planes_decode(&planes, stored, into, len, err);
}
