/* Whole blocks of elements go through loops of fixed length over arrays that do not overlap,
 * because compilers turn this form into vector code. The rest goes byte by byte. */
#include "base/format/byte_planes.h"

#include "base/error.h"

enum { BLOCK = 32 /* elements */ };

static void split_elements(
	const uint8_t *from, size_t width, size_t elements, uint8_t *const planes[BYTE_PLANES_MAX]);
static void split_block2(
	const uint8_t *restrict const from, uint8_t *restrict const a, uint8_t *restrict const b);
static void split_block4(
	const uint8_t *restrict const from, uint8_t *const planes[BYTE_PLANES_MAX], size_t at);
static void join_elements(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t width, size_t elements, uint8_t *into);
static void join_block2(const uint8_t *restrict const a, const uint8_t *restrict const b,
	uint8_t *restrict const into);
static void join_block4(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t at, uint8_t *restrict const into);

size_t byte_planes_length(size_t len, size_t width, size_t plane)
{
	ASSERT(width >= 1 && plane < width);
	return len / width + (plane < len % width ? 1 : 0);
}

void byte_planes_split(struct span content, size_t width, uint8_t *into)
{
	ASSERT(width == 1 || width == 2 || width == 4 || width == 8);
	uint8_t *planes[BYTE_PLANES_MAX] = {into};
	for (size_t plane = 1; plane < width; plane++)
		planes[plane] =
			planes[plane - 1] + byte_planes_length(content.len, width, plane - 1);
	const size_t whole = content.len / (BLOCK * width) * BLOCK;
	if (width == 1 || width == 8)
		split_elements(content.data, width, whole, planes);
	for (size_t at = 0; at < whole && (width == 2 || width == 4); at += BLOCK) {
		if (width == 2)
			split_block2(content.data + 2 * at, planes[0] + at, planes[1] + at);
		else
			split_block4(content.data + 4 * at, planes, at);
	}
	for (size_t i = whole * width; i < content.len; i++)
		planes[i % width][i / width] = content.data[i];
}

void byte_planes_join(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t width, uint8_t *into, size_t len)
{
	ASSERT(width == 1 || width == 2 || width == 4 || width == 8);
	const size_t whole = len / (BLOCK * width) * BLOCK;
	if (width == 1 || width == 8)
		join_elements(planes, width, whole, into);
	for (size_t at = 0; at < whole && (width == 2 || width == 4); at += BLOCK) {
		if (width == 2)
			join_block2(planes[0] + at, planes[1] + at, into + 2 * at);
		else
			join_block4(planes, at, into + 4 * at);
	}
	for (size_t i = whole * width; i < len; i++)
		into[i] = planes[i % width][i / width];
}

/* For any width. The widths 1 and 8 are rare, so they go element by element. */
static void split_elements(
	const uint8_t *from, size_t width, size_t elements, uint8_t *const planes[BYTE_PLANES_MAX])
{
	for (size_t plane = 0; plane < width; plane++)
		for (size_t i = 0; i < elements; i++)
			planes[plane][i] = from[width * i + plane];
}

static void split_block2(
	const uint8_t *restrict const from, uint8_t *restrict const a, uint8_t *restrict const b)
{
	for (size_t i = 0; i < BLOCK; i++) {
		a[i] = from[2 * i];
		b[i] = from[2 * i + 1];
	}
}

static void split_block4(
	const uint8_t *restrict const from, uint8_t *const planes[BYTE_PLANES_MAX], size_t at)
{
	uint8_t *restrict const a = planes[0] + at;
	uint8_t *restrict const b = planes[1] + at;
	uint8_t *restrict const c = planes[2] + at;
	uint8_t *restrict const d = planes[3] + at;
	for (size_t i = 0; i < BLOCK; i++) {
		a[i] = from[4 * i];
		b[i] = from[4 * i + 1];
		c[i] = from[4 * i + 2];
		d[i] = from[4 * i + 3];
	}
}

static void join_elements(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t width, size_t elements, uint8_t *into)
{
	for (size_t plane = 0; plane < width; plane++)
		for (size_t i = 0; i < elements; i++)
			into[width * i + plane] = planes[plane][i];
}

static void join_block2(const uint8_t *restrict const a, const uint8_t *restrict const b,
	uint8_t *restrict const into)
{
	for (size_t i = 0; i < BLOCK; i++) {
		into[2 * i] = a[i];
		into[2 * i + 1] = b[i];
	}
}

static void join_block4(
	const uint8_t *const planes[BYTE_PLANES_MAX], size_t at, uint8_t *restrict const into)
{
	const uint8_t *restrict const a = planes[0] + at;
	const uint8_t *restrict const b = planes[1] + at;
	const uint8_t *restrict const c = planes[2] + at;
	const uint8_t *restrict const d = planes[3] + at;
	for (size_t i = 0; i < BLOCK; i++) {
		into[4 * i] = a[i];
		into[4 * i + 1] = b[i];
		into[4 * i + 2] = c[i];
		into[4 * i + 3] = d[i];
	}
}
