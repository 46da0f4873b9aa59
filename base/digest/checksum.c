/* One table has a row for each algorithm: its names, its length, and the types that a multipart
 * upload may choose. Streams are in checksum_stream.c, CRCs in checksum_crc.c. */
#include "base/digest/checksum.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"

enum { ELEMENT_PREFIX = sizeof("Checksum") - 1, HEADER_PREFIX = sizeof("x-amz-checksum-") - 1 };

/* The name and the suffix of an algorithm are the ends of its element and its header. */
static const struct {
	const char *element, *header;
	uint8_t len;
	bool allows[2]; /* indexed by type */
	enum checksum_type by_default;
} kinds[CHECKSUM_ALGORITHMS] = {
	[CHECKSUM_CRC32] = {"ChecksumCRC32", "x-amz-checksum-crc32", 4, {true, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_CRC32C] = {"ChecksumCRC32C", "x-amz-checksum-crc32c", 4, {true, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_CRC64NVME] = {"ChecksumCRC64NVME", "x-amz-checksum-crc64nvme", 8, {true, false},
		CHECKSUM_FULL_OBJECT},
	[CHECKSUM_SHA1] = {"ChecksumSHA1", "x-amz-checksum-sha1", 20, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_SHA256] = {"ChecksumSHA256", "x-amz-checksum-sha256", 32, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_SHA512] = {"ChecksumSHA512", "x-amz-checksum-sha512", 64, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_MD5] = {"ChecksumMD5", "x-amz-checksum-md5", 16, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_XXHASH64] = {"ChecksumXXHASH64", "x-amz-checksum-xxhash64", 8, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_XXHASH3] = {"ChecksumXXHASH3", "x-amz-checksum-xxhash3", 8, {false, true},
		CHECKSUM_COMPOSITE},
	[CHECKSUM_XXHASH128] = {"ChecksumXXHASH128", "x-amz-checksum-xxhash128", 16, {false, true},
		CHECKSUM_COMPOSITE},
};
_Static_assert(CHECKSUM_FULL_OBJECT == 0 && CHECKSUM_COMPOSITE == 1, "the order of `allows`");

static enum checksum_algorithm checksum_find(
	struct span name, const char *(*text)(enum checksum_algorithm));

const char *checksum_element(enum checksum_algorithm algorithm)
{
	return algorithm != CHECKSUM_NONE ? kinds[algorithm].element : "";
}

const char *checksum_header(enum checksum_algorithm algorithm)
{
	return algorithm != CHECKSUM_NONE ? kinds[algorithm].header : "";
}

const char *checksum_name(enum checksum_algorithm algorithm)
{
	return algorithm != CHECKSUM_NONE ? kinds[algorithm].element + ELEMENT_PREFIX : "";
}

const char *checksum_suffix(enum checksum_algorithm algorithm)
{
	return algorithm != CHECKSUM_NONE ? kinds[algorithm].header + HEADER_PREFIX : "";
}

size_t checksum_length(enum checksum_algorithm algorithm)
{
	return kinds[algorithm].len;
}

bool checksum_allows(enum checksum_algorithm algorithm, enum checksum_type type)
{
	return kinds[algorithm].allows[type];
}

enum checksum_type checksum_default_type(enum checksum_algorithm algorithm)
{
	return kinds[algorithm].by_default;
}

enum checksum_algorithm checksum_by_name(struct span name)
{
	return checksum_find(name, checksum_name);
}

enum checksum_algorithm checksum_by_header(struct span name)
{
	return checksum_find(name, checksum_header);
}

void checksum_format(const struct checksum *checksum, unsigned parts, char out[CHECKSUM_TEXT_BYTES])
{
	struct buffer text;
	buffer_init(&text, CHECKSUM_TEXT_BYTES - 1);
	encode_base64(span_of(checksum->bytes, checksum->len), &text);
	if (checksum->type == CHECKSUM_COMPOSITE)
		buffer_format(&text, "-%u", parts);
	ASSERT(!buffer_failed(&text));
	memcpy(out, buffer_text(&text), text.len + 1);
	buffer_release(&text);
}

bool checksum_parse(enum checksum_algorithm algorithm, struct span text, struct checksum *out)
{
	struct checksum checksum = {.algorithm = algorithm, .type = CHECKSUM_FULL_OBJECT};
	size_t len;
	if (algorithm == CHECKSUM_NONE ||
		!decode_base64(text, checksum.bytes, sizeof(checksum.bytes), &len) ||
		len != checksum_length(algorithm))
		return false;
	checksum.len = (uint8_t)len;
	*out = checksum;
	return true;
}

bool checksum_equal(const struct checksum *a, const struct checksum *b)
{
	return a->algorithm == b->algorithm &&
		span_equal(span_of(a->bytes, a->len), span_of(b->bytes, b->len));
}

/* Finds the algorithm whose text is `name`, in any case. */
static enum checksum_algorithm checksum_find(
	struct span name, const char *(*text)(enum checksum_algorithm))
{
	for (unsigned i = CHECKSUM_NONE + 1; i < CHECKSUM_ALGORITHMS; i++)
		if (span_equal_nocase(name, text((enum checksum_algorithm)i)))
			return (enum checksum_algorithm)i;
	return CHECKSUM_NONE;
}
