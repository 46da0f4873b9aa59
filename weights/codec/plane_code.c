#include "weights/codec/plane_code.h"

#include <string.h>

#include "base/format/byte_planes.h"
#include "weights/codec/varint.h"

enum { LEVEL = 1 };

static size_t encode_plane(struct compressor *compressor, struct span plane, uint8_t *into);
static int decode_plane(struct compressor *compressor, struct span *rest, uint8_t *scratch,
	size_t len, const uint8_t **out_plane, struct error *err);

size_t plane_code_bound(size_t words)
{
	return words + (size_t)VARINT_BYTES_MAX * BYTE_PLANES_MAX;
}

/* The length stands in front of a plane and its size depends on the plane. So a plane is made a
 * little further back and then moved up. */
size_t plane_code_encode(const struct plane_code *planes, struct span words, uint8_t *into)
{
	ASSERT(planes->width > 0 && planes->width <= BYTE_PLANES_MAX);
	ASSERT(words.len % planes->width == 0);
	const size_t len = words.len / planes->width;
	size_t at = 0;
	byte_planes_split(words, planes->width, planes->scratch);
	for (size_t k = 0; k < planes->width; k++) {
		uint8_t *const body = into + at + VARINT_BYTES_MAX;
		const size_t size = encode_plane(
			planes->compressor, span_of(planes->scratch + k * len, len), body);
		at += varint_write((uint32_t)size, into + at);
		memmove(into + at, body, size);
		at += size;
	}
	return at;
}

int plane_code_decode(const struct plane_code *planes, struct span stored, uint8_t *into,
	size_t len, struct error *err)
{
	ASSERT(planes->width > 0 && planes->width <= BYTE_PLANES_MAX);
	ASSERT(len % planes->width == 0);
	const uint8_t *decoded[BYTE_PLANES_MAX] = {0};
	const size_t plane_len = len / planes->width;
	struct span rest = stored;
	for (size_t k = 0; k < planes->width; k++)
		if (decode_plane(planes->compressor, &rest, planes->scratch + k * plane_len,
			    plane_len, &decoded[k], err) != 0)
			return -1;
	if (rest.len != 0)
		return error_set(err, ERROR_INVALID, "%zu bytes follow the byte planes", rest.len);
	byte_planes_join(decoded, planes->width, into, len);
	return 0;
}

/* Tries zstd twice, because neither try always wins: one hardly looks for repeats, the other does.
 * Each must fit into less room than the best so far. When the first try wins, its result has been
 * overwritten and is made again. */
static size_t encode_plane(struct compressor *compressor, struct span plane, uint8_t *into)
{
	if (plane.len > 1) {
		const size_t quick = compress_zstd_plane(compressor, plane, into, plane.len - 1);
		const size_t capacity = quick != 0 ? quick - 1 : plane.len - 1;
		const size_t matched = compress_zstd(compressor, plane, into, capacity, LEVEL);
		if (matched != 0)
			return matched;
		if (quick != 0)
			return compress_zstd_plane(compressor, plane, into, plane.len - 1);
	}
	if (plane.len != 0)
		memcpy(into, plane.data, plane.len);
	return plane.len;
}

/* Takes the next plane, of `len` bytes, off `*rest`. `*out_plane` then points to `scratch`, or into
 * the stored bytes when the plane is stored as it is. */
static int decode_plane(struct compressor *compressor, struct span *rest, uint8_t *scratch,
	size_t len, const uint8_t **out_plane, struct error *err)
{
	uint32_t size;
	if (!varint_read(rest, &size) || size > rest->len || size > len)
		return error_set(err, ERROR_INVALID,
			"a byte plane of %zu bytes is cut off or takes more bytes than that", len);
	const struct span stored = span_slice(*rest, 0, size);
	*rest = span_slice(*rest, size, rest->len);
	*out_plane = size == len ? stored.data : scratch;
	if (size == len || decompress_zstd(compressor, stored, scratch, len, err) == 0)
		return 0;
	return error_set(err, ERROR_INVALID, "a byte plane of %zu bytes does not decode", len);
}
