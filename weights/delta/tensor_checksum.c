#include "weights/delta/tensor_checksum.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/digest/blake3_stream.h"
#include "base/digest/checksum_adler.h"
#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/memory.h"

struct tensor_checksum {
	enum delta_checksum kind;
	struct xxh3_stream *xxh3;
	struct blake3_stream *blake3;
	uint32_t adler;
};

struct tensor_checksum *tensor_checksum_new(enum delta_checksum kind)
{
	ASSERT((unsigned)kind < DELTA_CHECKSUMS);
	struct tensor_checksum *const checksum = memory_new(sizeof(*checksum));
	checksum->kind = kind;
	checksum->adler = ADLER32_SEED;
	if (kind == DELTA_XXH3_128)
		checksum->xxh3 = xxh3_stream_new();
	if (kind == DELTA_BLAKE3)
		checksum->blake3 = blake3_stream_new(NULL);
	return checksum;
}

void tensor_checksum_reset(struct tensor_checksum *checksum)
{
	checksum->adler = ADLER32_SEED;
	if (checksum->xxh3 != NULL)
		xxh3_stream_reset(checksum->xxh3);
	if (checksum->blake3 != NULL)
		blake3_stream_reset(checksum->blake3);
}

void tensor_checksum_add(struct tensor_checksum *checksum, struct span bytes)
{
	if (checksum->xxh3 != NULL)
		xxh3_stream_add(checksum->xxh3, bytes);
	else if (checksum->blake3 != NULL)
		blake3_stream_add(checksum->blake3, bytes);
	else
		checksum->adler = checksum_adler32(checksum->adler, bytes);
}

void tensor_checksum_result(
	const struct tensor_checksum *checksum, char out[TENSOR_CHECKSUM_TEXT_BYTES])
{
	uint8_t bytes[BLAKE3_BYTES];
	if (checksum->xxh3 != NULL) {
		const struct digest128 digest = xxh3_stream_result(checksum->xxh3);
		encode_hex(span_of(digest.bytes, sizeof(digest.bytes)), out);
	} else if (checksum->blake3 != NULL) {
		blake3_stream_result(checksum->blake3, bytes);
		encode_hex(span_of(bytes, sizeof(bytes)), out);
	} else {
		snprintf(out, TENSOR_CHECKSUM_TEXT_BYTES, "%08x", checksum->adler);
	}
}

void tensor_checksum_free(struct tensor_checksum *checksum)
{
	if (checksum == NULL)
		return;
	if (checksum->xxh3 != NULL)
		xxh3_stream_free(checksum->xxh3);
	blake3_stream_free(checksum->blake3);
	free(checksum);
}
