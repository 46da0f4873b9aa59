/* The first byte is the mode and, for ulps, the number of classes; then the hash of the result,
 * then the payload's size and the fields of the mode. An unchanged block ends after the hash. The
 * reader checks each field against the result's size, so a decoder may trust all counts. */
#include "weights/codec/block_header.h"

#include "weights/codec/gap_code.h"
#include "weights/codec/varint.h"

enum { MODE_BITS = 4, HASH_BYTES = 8 };

_Static_assert(
	1 + HASH_BYTES + 4 + ULP_TABLE_BYTES_MAX <= BLOCK_CODE_HEADER_MAX, "the longest header");

static int read_mode(
	uint8_t byte, enum dtype dtype, struct block_header *header, struct error *err);
static int read_payload(
	struct span *rest, uint64_t result_bytes, struct block_header *header, struct error *err);
static int read_words(
	struct span *rest, uint64_t words, struct block_header *header, struct error *err);

size_t block_word_bytes(enum dtype dtype)
{
	return dtype_bits(dtype) < 8 ? 1 : dtype_bits(dtype) / 8;
}

size_t block_header_write(const struct block_header *header, uint8_t into[BLOCK_CODE_HEADER_MAX])
{
	const uint64_t hash = htole64(header->result_hash);
	const unsigned classes = header->mode == BLOCK_MODE_ULP ? header->table.classes : 0;
	size_t bytes = 1 + HASH_BYTES;
	ASSERT(header->mode < BLOCK_MODE_COUNT && classes <= ULP_CLASSES_MAX);
	into[0] = (uint8_t)(header->mode | classes << MODE_BITS);
	memcpy(into + 1, &hash, HASH_BYTES);
	if (header->mode == BLOCK_MODE_UNCHANGED)
		return bytes;
	bytes += varint_write(header->payload_bytes, into + bytes);
	if (header->mode == BLOCK_MODE_WORDS) {
		bytes += varint_write(header->changed, into + bytes);
		into[bytes++] = (uint8_t)header->parameter;
	} else if (header->mode == BLOCK_MODE_ULP) {
		bytes += ulp_table_write(&header->table, into + bytes);
	}
	ASSERT(bytes <= BLOCK_CODE_HEADER_MAX);
	return bytes;
}

int block_header_read(struct span *rest, enum dtype dtype, uint64_t result_bytes,
	struct block_header *out_header, struct error *err)
{
	const uint64_t words = result_bytes / block_word_bytes(dtype);
	*out_header = (struct block_header){.mode = BLOCK_MODE_UNCHANGED};
	if (rest->len < 1 + HASH_BYTES)
		return error_set(err, ERROR_INVALID, "the header of a block is cut off");
	if (read_mode(rest->data[0], dtype, out_header, err) != 0)
		return -1;
	memcpy(&out_header->result_hash, rest->data + 1, HASH_BYTES);
	out_header->result_hash = le64toh(out_header->result_hash);
	*rest = span_slice(*rest, 1 + HASH_BYTES, rest->len);
	if (out_header->mode == BLOCK_MODE_UNCHANGED)
		return 0;
	if (read_payload(rest, result_bytes, out_header, err) != 0)
		return -1;
	if (out_header->mode == BLOCK_MODE_WORDS)
		return read_words(rest, words, out_header, err);
	return out_header->mode == BLOCK_MODE_ULP
		? ulp_table_read(rest, words, &out_header->table, err)
		: 0;
}

static int read_mode(uint8_t byte, enum dtype dtype, struct block_header *header, struct error *err)
{
	const unsigned mode = byte & ((1u << MODE_BITS) - 1);
	const unsigned classes = byte >> MODE_BITS;
	const bool counted = mode == BLOCK_MODE_ULP;
	header->mode = (enum block_mode)mode;
	header->table.classes = (uint8_t)classes;
	if (mode >= BLOCK_MODE_COUNT ||
		(counted ? classes == 0 || classes > ULP_CLASSES_MAX : classes != 0))
		return error_set(err, ERROR_INVALID, "a block has the unknown mode 0x%02x", byte);
	if (counted && ulp_format_of(dtype).width == 0)
		return error_set(err, ERROR_INVALID, "a block of %s cannot have mode 0x%02x",
			dtype_name(dtype), byte);
	return 0;
}

/* No payload is larger than the result, and a result stored raw is its own payload. */
static int read_payload(
	struct span *rest, uint64_t result_bytes, struct block_header *header, struct error *err)
{
	if (!varint_read(rest, &header->payload_bytes))
		return error_set(err, ERROR_INVALID,
			"the header of a block is cut off or has a malformed number");
	const bool fits = header->mode == BLOCK_MODE_RAW ? header->payload_bytes == result_bytes
							 : header->payload_bytes <= result_bytes;
	if (!fits || header->payload_bytes == 0)
		return error_set(err, ERROR_INVALID,
			"a block of %llu bytes cannot have a payload of %u",
			(unsigned long long)result_bytes, header->payload_bytes);
	return 0;
}

static int read_words(
	struct span *rest, uint64_t words, struct block_header *header, struct error *err)
{
	if (!varint_read(rest, &header->changed) || rest->len == 0)
		return error_set(err, ERROR_INVALID,
			"the header of a block is cut off or has a malformed number");
	header->parameter = rest->data[0];
	*rest = span_slice(*rest, 1, rest->len);
	if (header->changed == 0 || header->changed > words ||
		header->parameter > GAP_CODE_PARAMETER_MAX)
		return error_set(err, ERROR_INVALID,
			"the header of a block of %llu words says that %u of them changed, with the"
			" Rice parameter %u",
			(unsigned long long)words, header->changed, header->parameter);
	return 0;
}
