#include "base/format/compress.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"

struct compressor {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

struct compressor *compressor_new(void)
{
	struct compressor *const compressor = memory_new(sizeof(*compressor));
	compressor->pack = ZSTD_createCCtx();
	compressor->unpack = ZSTD_createDCtx();
	ASSERT(compressor->pack != NULL && compressor->unpack != NULL);
	return compressor;
}

void compressor_free(struct compressor *compressor)
{
	if (compressor == NULL)
		return;
	ZSTD_freeCCtx(compressor->pack);
	ZSTD_freeDCtx(compressor->unpack);
	free(compressor);
}

size_t compress_bound(size_t len)
{
	return ZSTD_compressBound(len);
}

size_t compress_zstd(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity, int level)
{
	const size_t size =
		ZSTD_compressCCtx(compressor->pack, into, capacity, from.data, from.len, level);
	return ZSTD_isError(size) ? 0 : size;
}

size_t compress_zstd_plane(
	struct compressor *compressor, struct span from, uint8_t *into, size_t capacity)
{
	static const struct {
		ZSTD_cParameter parameter;
		int value;
	} settings[] = {{ZSTD_c_compressionLevel, 1}, {ZSTD_c_minMatch, 7}, {ZSTD_c_hashLog, 6}};
	ZSTD_CCtx_reset(compressor->pack, ZSTD_reset_session_and_parameters);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const size_t set = ZSTD_CCtx_setParameter(
			compressor->pack, settings[i].parameter, settings[i].value);
		ASSERT(!ZSTD_isError(set));
	}
	const size_t size = ZSTD_compress2(compressor->pack, into, capacity, from.data, from.len);
	return ZSTD_isError(size) ? 0 : size;
}

int decompress_zstd(struct compressor *compressor, struct span from, uint8_t *into, size_t len,
	struct error *err)
{
	const size_t frame = ZSTD_findFrameCompressedSize(from.data, from.len);
	if (ZSTD_isError(frame) || frame != from.len)
		return error_set(
			err, ERROR_CORRUPT, "%zu bytes are not one whole zstd frame", from.len);
	const size_t size = ZSTD_decompressDCtx(compressor->unpack, into, len, from.data, from.len);
	if (ZSTD_isError(size))
		return error_set(err, ERROR_CORRUPT,
			"a zstd frame of %zu bytes does not decode: %s", from.len,
			ZSTD_getErrorName(size));
	if (size != len)
		return error_set(
			err, ERROR_CORRUPT, "a zstd frame holds %zu bytes, not %zu", size, len);
	return 0;
}
