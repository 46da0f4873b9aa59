/* Stored chunks as a disk or a Xet client may bring them, under every codec: the right length or an
 * error, and nothing written past it. The first two bytes choose the content's length. */
#include <stdlib.h>

#include "base/error.h"
#include "chunker/chunk.h"
#include "chunker/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum codec codecs[] = {
		CODEC_RAW, CODEC_LZ4, CODEC_BG4_LZ4, CODEC_ZSTD, CODEC_PLANES2, CODEC_PLANES4};
	if (size < 2)
		return 0;
	const size_t len = (size_t)(data[0] | data[1] << 8) * 2 % (CHUNK_MAX_BYTES + 1);
	struct codec_context *const context = codec_context_new();
	uint8_t *const out = malloc(len + 1);
	ASSERT(out != NULL);
	for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
		struct error err = {0};
		out[len] = 0x5a;
		const int got = codec_decode(
			context, codecs[i], span_of(data + 2, size - 2), out, len, &err);
		ASSERT(got == 0 ? err.kind == ERROR_NONE : err.kind == ERROR_CORRUPT);
		ASSERT(out[len] == 0x5a);
	}
	free(out);
	codec_context_free(context);
	return 0;
}
