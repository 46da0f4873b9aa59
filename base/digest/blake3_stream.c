#include "base/digest/blake3_stream.h"

#include <blake3.h>
#include <stdlib.h>

#include "base/memory.h"

struct blake3_stream {
	blake3_hasher hasher;
};

static void begin(blake3_hasher *hasher, const uint8_t *key);

void blake3(const uint8_t key[BLAKE3_BYTES], struct span bytes, uint8_t out[BLAKE3_BYTES])
{
	blake3_hasher hasher;
	begin(&hasher, key);
	blake3_hasher_update(&hasher, bytes.data, bytes.len);
	blake3_hasher_finalize(&hasher, out, BLAKE3_BYTES);
}

struct blake3_stream *blake3_stream_new(const uint8_t key[BLAKE3_BYTES])
{
	struct blake3_stream *const stream = memory_new(sizeof(*stream));
	begin(&stream->hasher, key);
	return stream;
}

void blake3_stream_reset(struct blake3_stream *stream)
{
	blake3_hasher_reset(&stream->hasher);
}

void blake3_stream_add(struct blake3_stream *stream, struct span bytes)
{
	blake3_hasher_update(&stream->hasher, bytes.data, bytes.len);
}

void blake3_stream_result(const struct blake3_stream *stream, uint8_t out[BLAKE3_BYTES])
{
	blake3_hasher_finalize(&stream->hasher, out, BLAKE3_BYTES);
}

void blake3_stream_free(struct blake3_stream *stream)
{
	free(stream);
}

static void begin(blake3_hasher *hasher, const uint8_t *key)
{
	if (key != NULL)
		blake3_hasher_init_keyed(hasher, key);
	else
		blake3_hasher_init(hasher);
}
