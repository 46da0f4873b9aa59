/* After "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Gopal and others, 2009),
 * for a reflected polynomial. Four registers of 128 bits hold a remainder of the message; each step
 * multiplies them by x^512 and adds the next 64 bytes. With AVX-512 a step adds 256 bytes to 16
 * such registers. In the end 16 bytes are left that have the same CRC as the whole message before
 * them; these and the tail go through the table. */
#include "base/digest/crc64.h"

#include <string.h>

#include "base/digest/crc64_table.h"
#include "base/error.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

static uint64_t load_little_endian(const uint8_t *data)
{
	uint64_t word;
	memcpy(&word, data, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Works on the register as it is, without the inversions. */
static uint64_t table_update(uint64_t crc, struct span bytes)
{
	for (; bytes.len >= 8; bytes = span_of(bytes.data + 8, bytes.len - 8)) {
		const uint64_t word = crc ^ load_little_endian(bytes.data);
		crc = 0;
		for (unsigned i = 0; i < 8; i++)
			crc ^= crc64_table[7 - i][word >> (8 * i) & 0xff];
	}
	for (size_t i = 0; i < bytes.len; i++)
		crc = crc64_table[0][(crc ^ bytes.data[i]) & 0xff] ^ crc >> 8;
	return crc;
}

uint64_t crc64_nvme_portable(uint64_t before, struct span bytes)
{
	return ~table_update(~before, bytes);
}

#if defined __x86_64__
#define CARRYLESS __attribute__((target("pclmul,sse2")))
#define WIDE      __attribute__((target("vpclmulqdq,avx512f,pclmul,sse2")))

enum { STRIDE = 64, WIDE_STRIDE = 4 * STRIDE };

/* Powers x^n modulo the polynomial, with the lowest power in the highest bit. A product of two such
 * numbers is one power of x too high. So moving a register on by 128 bits takes x^127 for its
 * second half and x^191 for its first. */
/* x^191, x^127 */
static const uint64_t fold_16_bytes[2] = {0xeadc41fd2ba3d420, 0x21e9761e252621ac};
/* x^575, x^511 */
static const uint64_t fold_64_bytes[2] = {0x0c32cdb31e18a84a, 0x62242240ace5045a};
/* x^2111, x^2047 */
static const uint64_t fold_256_bytes[2] = {0x37ccd3e14069cabc, 0xa043808c0f782663};

CARRYLESS static inline __m128i carryless_fold(__m128i rest, __m128i powers, __m128i next)
{
	const __m128i first = _mm_clmulepi64_si128(rest, powers, 0x00);
	const __m128i second = _mm_clmulepi64_si128(rest, powers, 0x11);
	return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

/* Continues after the first STRIDE bytes, whose remainder is in `rest`, and returns the register
 * after all bytes. */
CARRYLESS static uint64_t carryless_update(__m128i rest[STRIDE / 16], struct span bytes)
{
	const __m128i by_64 = _mm_loadu_si128((const __m128i *)fold_64_bytes);
	const __m128i by_16 = _mm_loadu_si128((const __m128i *)fold_16_bytes);
	for (; bytes.len >= STRIDE; bytes = span_of(bytes.data + STRIDE, bytes.len - STRIDE))
		for (size_t i = 0; i < STRIDE / 16; i++)
			rest[i] = carryless_fold(
				rest[i], by_64, _mm_loadu_si128((const __m128i *)bytes.data + i));
	for (size_t i = 1; i < STRIDE / 16; i++)
		rest[i] = carryless_fold(rest[i - 1], by_16, rest[i]);
	uint8_t last[16];
	_mm_storeu_si128((__m128i *)last, rest[STRIDE / 16 - 1]);
	return table_update(table_update(0, span_of(last, sizeof(last))), bytes);
}

CARRYLESS static uint64_t carryless_crc(uint64_t crc, struct span bytes)
{
	__m128i rest[STRIDE / 16];
	ASSERT(bytes.len >= STRIDE);
	for (size_t i = 0; i < STRIDE / 16; i++)
		rest[i] = _mm_loadu_si128((const __m128i *)bytes.data + i);
	rest[0] = _mm_xor_si128(rest[0], _mm_cvtsi64_si128((long long)crc));
	return carryless_update(rest, span_of(bytes.data + STRIDE, bytes.len - STRIDE));
}

WIDE static inline __m512i wide_fold(__m512i rest, __m512i powers, __m512i next)
{
	const __m512i first = _mm512_clmulepi64_epi128(rest, powers, 0x00);
	const __m512i second = _mm512_clmulepi64_epi128(rest, powers, 0x11);
	return _mm512_xor_si512(_mm512_xor_si512(first, second), next);
}

WIDE static uint64_t wide_crc(uint64_t crc, struct span bytes)
{
	const __m512i by_256 =
		_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold_256_bytes));
	const __m512i by_64 =
		_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold_64_bytes));
	__m512i rest[WIDE_STRIDE / STRIDE];
	ASSERT(bytes.len >= WIDE_STRIDE);
	for (size_t i = 0; i < WIDE_STRIDE / STRIDE; i++)
		rest[i] = _mm512_loadu_si512(bytes.data + STRIDE * i);
	rest[0] = _mm512_xor_si512(
		rest[0], _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)crc)));
	bytes = span_of(bytes.data + WIDE_STRIDE, bytes.len - WIDE_STRIDE);
	for (; bytes.len >= WIDE_STRIDE;
		bytes = span_of(bytes.data + WIDE_STRIDE, bytes.len - WIDE_STRIDE))
		for (size_t i = 0; i < WIDE_STRIDE / STRIDE; i++)
			rest[i] = wide_fold(
				rest[i], by_256, _mm512_loadu_si512(bytes.data + STRIDE * i));
	for (size_t i = 1; i < WIDE_STRIDE / STRIDE; i++)
		rest[i] = wide_fold(rest[i - 1], by_64, rest[i]);
	__m128i narrow[STRIDE / 16];
	_mm512_storeu_si512(narrow, rest[WIDE_STRIDE / STRIDE - 1]);
	return carryless_update(narrow, bytes);
}

uint64_t crc64_nvme(uint64_t before, struct span bytes)
{
	if (bytes.len < 2 * STRIDE || !__builtin_cpu_supports("pclmul"))
		return crc64_nvme_portable(before, bytes);
	if (bytes.len >= 2 * WIDE_STRIDE && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("vpclmulqdq"))
		return ~wide_crc(~before, bytes);
	return ~carryless_crc(~before, bytes);
}
#else
uint64_t crc64_nvme(uint64_t before, struct span bytes)
{
	return crc64_nvme_portable(before, bytes);
}
#endif
