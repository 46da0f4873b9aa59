#include "chunker/codec_planes.h"

#include <string.h>

#include "chunker/codec_trial.h"

enum { LENGTH_CAP = 1 << 24 };

static size_t encode_plane(struct compressor *compressor, struct span plane, uint8_t *into);
static void store_length(uint8_t out[CODEC_PLANES_HEADER_BYTES], size_t length);
static int decode_plane(struct compressor *compressor, struct span *rest, uint8_t *scratch,
	size_t len, const uint8_t **out_plane, struct error *err);
static size_t load_length(const uint8_t *bytes);

size_t codec_planes_encode(const struct codec_planes *planes, struct span content, uint8_t *into)
{
	ASSERT(planes->width == 2 || planes->width == 4);
	byte_planes_split(content, planes->width, planes->scratch);
	size_t at = 0;
	size_t from = 0;
	for (size_t k = 0; k < planes->width; k++) {
		const struct span plane = span_of(
			planes->scratch + from, byte_planes_length(content.len, planes->width, k));
		const size_t size = encode_plane(
			planes->compressor, plane, into + at + CODEC_PLANES_HEADER_BYTES);
		store_length(into + at, size);
		at += CODEC_PLANES_HEADER_BYTES + size;
		from += plane.len;
	}
	return at;
}

int codec_planes_decode(const struct codec_planes *planes, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	ASSERT(planes->width == 2 || planes->width == 4);
	const uint8_t *decoded[BYTE_PLANES_MAX] = {0};
	struct span rest = stored;
	size_t at = 0;
	for (size_t k = 0; k < planes->width; k++) {
		const size_t plane_len = byte_planes_length(len, planes->width, k);
		if (decode_plane(planes->compressor, &rest, planes->scratch + at, plane_len,
			    &decoded[k], err) != 0)
			return -1;
		at += plane_len;
	}
	if (rest.len != 0)
		return error_set(err, ERROR_CORRUPT, "%zu bytes follow the byte planes", rest.len);
	byte_planes_join(decoded, planes->width, into, len);
	return 0;
}

/* A plane that does not shrink is stored as it is. The decoder knows it by its length. */
static size_t encode_plane(struct compressor *compressor, struct span plane, uint8_t *into)
{
	if (codec_trial_compressible(compressor, plane)) {
		const size_t size = compress_zstd_plane(compressor, plane, into, plane.len - 1);
		if (size != 0)
			return size;
	}
	if (plane.len > 0)
		memcpy(into, plane.data, plane.len);
	return plane.len;
}

static void store_length(uint8_t out[CODEC_PLANES_HEADER_BYTES], size_t length)
{
	ASSERT(length < LENGTH_CAP);
	for (size_t i = 0; i < CODEC_PLANES_HEADER_BYTES; i++)
		out[i] = (uint8_t)(length >> (8 * i));
}

/* Takes the next plane, of `len` bytes, off `*rest`. `*out_plane` then points to `scratch`, or into
 * the stored bytes when the plane is stored as it is. */
static int decode_plane(struct compressor *compressor, struct span *rest, uint8_t *scratch,
	size_t len, const uint8_t **out_plane, struct error *err)
{
	if (rest->len < CODEC_PLANES_HEADER_BYTES)
		return error_set(err, ERROR_CORRUPT, "byte planes are cut off in a length");
	const size_t size = load_length(rest->data);
	*rest = span_slice(*rest, CODEC_PLANES_HEADER_BYTES, rest->len);
	if (size > rest->len || size > len)
		return error_set(err, ERROR_CORRUPT,
			"a byte plane of %zu bytes is stored as %zu, with %zu left", len, size,
			rest->len);
	const struct span stored = span_slice(*rest, 0, size);
	*rest = span_slice(*rest, size, rest->len);
	if (size == len) {
		*out_plane = stored.data;
		return 0;
	}
	*out_plane = scratch;
	return decompress_zstd(compressor, stored, scratch, len, err);
}

static size_t load_length(const uint8_t *bytes)
{
	return bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
}
