/* ISA-L and crc64.c compute the CRCs. Combining two of them needs no bytes: the first CRC is
 * multiplied by x to the power of the number of bits that follow, modulo the polynomial. */
#include "base/digest/checksum_crc.h"

#include <isa-l/crc.h>

#include "base/digest/crc64.h"
#include "base/error.h"

/* Polynomials, with the lowest power of x in the highest of `bits` bits. */
static const struct {
	unsigned bits;
	uint64_t polynomial;
} fields[CHECKSUM_ALGORITHMS] = {
	[CHECKSUM_CRC32] = {32, 0xedb88320},
	[CHECKSUM_CRC32C] = {32, 0x82f63b78},
	[CHECKSUM_CRC64NVME] = {64, 0x9a6c9329ac4bc9b5},
};

static uint32_t crc32c(uint32_t crc, struct span bytes);
static uint64_t field_multiply(enum checksum_algorithm algorithm, uint64_t a, uint64_t b);
static uint64_t load_big_endian(const struct checksum *checksum);
static uint64_t field_shift(enum checksum_algorithm algorithm, uint64_t bytes);

bool checksum_combines(enum checksum_algorithm algorithm)
{
	return fields[algorithm].bits != 0;
}

uint64_t checksum_crc(enum checksum_algorithm algorithm, uint64_t before, struct span bytes)
{
	if (bytes.len == 0)
		return before;
	switch (algorithm) {
	case CHECKSUM_CRC32:
		return crc32_gzip_refl((uint32_t)before, bytes.data, bytes.len);
	case CHECKSUM_CRC32C:
		return crc32c((uint32_t)before, bytes);
	default:
		ASSERT(algorithm == CHECKSUM_CRC64NVME);
		return crc64_nvme(before, bytes);
	}
}

/* Each byte that follows multiplies the register by x^8; the CRC of those bytes is then added. The
 * inversions at both ends cancel out. */
void checksum_combine(struct checksum *first, const struct checksum *second, uint64_t second_bytes)
{
	const enum checksum_algorithm algorithm = first->algorithm;
	ASSERT(checksum_combines(algorithm) && second->algorithm == algorithm);
	uint64_t value = field_multiply(algorithm, load_big_endian(first),
				 field_shift(algorithm, second_bytes)) ^
		load_big_endian(second);
	for (size_t i = first->len; i-- > 0; value >>= 8)
		first->bytes[i] = (uint8_t)value;
}

/* ISA-L takes an int as length and leaves both inversions to the caller. */
static uint32_t crc32c(uint32_t crc, struct span bytes)
{
	enum { PIECE = 1 << 30 };
	crc = ~crc;
	for (size_t at = 0; at < bytes.len; at += PIECE) {
		const struct span piece = span_slice(bytes, at, PIECE);
		crc = crc32_iscsi((unsigned char *)piece.data, (int)piece.len, crc);
	}
	return ~crc;
}

/* Returns a times b modulo the polynomial. */
static uint64_t field_multiply(enum checksum_algorithm algorithm, uint64_t a, uint64_t b)
{
	uint64_t product = 0;
	for (unsigned power = 0; power < fields[algorithm].bits; power++) {
		if ((a >> (fields[algorithm].bits - 1 - power) & 1) != 0)
			product ^= b;
		b = b >> 1 ^ ((b & 1) != 0 ? fields[algorithm].polynomial : 0);
	}
	return product;
}

static uint64_t load_big_endian(const struct checksum *checksum)
{
	uint64_t value = 0;
	for (size_t i = 0; i < checksum->len; i++)
		value = value << 8 | checksum->bytes[i];
	return value;
}

/* Returns x to the power of 8 times `bytes`, by squaring. */
static uint64_t field_shift(enum checksum_algorithm algorithm, uint64_t bytes)
{
	ASSERT(checksum_combines(algorithm));
	const uint64_t one = UINT64_C(1) << (fields[algorithm].bits - 1);
	uint64_t result = one;
	/* x^8, then its square and so on */
	for (uint64_t square = one >> 8; bytes > 0; bytes >>= 1) {
		if ((bytes & 1) != 0)
			result = field_multiply(algorithm, result, square);
		square = field_multiply(algorithm, square, square);
	}
	return result;
}
