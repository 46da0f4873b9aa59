/* The content checksums of S3: ten algorithms, one interface. CRC32 and CRC32C come from ISA-L,
 * CRC64NVME from base/digest/crc64.c, the others from base/digest/digest.h and base/digest/xxh3.h.
 * Values are big-endian bytes, as S3 sends them in base64. s3.md section 7. Any thread; a stream by
 * one at a time. */
#ifndef BASE_DIGEST_CHECKSUM_H
#define BASE_DIGEST_CHECKSUM_H

#include "base/span.h"

/* Numbers are stored in the catalog. */
enum checksum_algorithm {
	CHECKSUM_NONE = 0,
	CHECKSUM_CRC32 = 1,
	CHECKSUM_CRC32C = 2,
	CHECKSUM_CRC64NVME = 3,
	CHECKSUM_SHA1 = 4,
	CHECKSUM_SHA256 = 5,
	CHECKSUM_SHA512 = 6,
	CHECKSUM_MD5 = 7,
	CHECKSUM_XXHASH64 = 8,
	CHECKSUM_XXHASH3 = 9,
	CHECKSUM_XXHASH128 = 10,
	CHECKSUM_ALGORITHMS = 11
};
enum checksum_type { CHECKSUM_FULL_OBJECT = 0, CHECKSUM_COMPOSITE = 1 };
enum {
	CHECKSUM_MAX_BYTES = 64,
	CHECKSUM_TEXT_BYTES = 96
}; /* text: base64, "-" and a part count, NUL */

struct checksum {
	enum checksum_algorithm algorithm;
	enum checksum_type type;
	uint8_t len; /* of the algorithm; 0 with CHECKSUM_NONE */
	uint8_t bytes[CHECKSUM_MAX_BYTES];
};

/* "CRC32", ... as S3 spells the algorithm; "" for none. */
const char *checksum_name(enum checksum_algorithm algorithm);
/* "crc32", ...: what stands behind x-amz-checksum-; "" for none. */
const char *checksum_suffix(enum checksum_algorithm algorithm);
/* The S3 element and, with x-amz-checksum- in front of the suffix, the header: "ChecksumCRC32",
 * "x-amz-checksum-crc32". Static text. */
const char *checksum_element(enum checksum_algorithm algorithm);
const char *checksum_header(enum checksum_algorithm algorithm);
/* By name or suffix, in any case; CHECKSUM_NONE when unknown. */
enum checksum_algorithm checksum_by_name(struct span name);
/* By header name (any case); CHECKSUM_NONE for every other header. */
enum checksum_algorithm checksum_by_header(struct span name);
size_t checksum_length(enum checksum_algorithm algorithm);
/* Whether a multipart upload may have this pair, and the type it takes when none is named. */
bool checksum_allows(enum checksum_algorithm algorithm, enum checksum_type type);
enum checksum_type checksum_default_type(enum checksum_algorithm algorithm);

/* base64, with "-N" for a COMPOSITE of `parts` parts. Parsing takes exactly the algorithm's length;
 * the type is FULL_OBJECT. */
void checksum_format(
	const struct checksum *checksum, unsigned parts, char out[CHECKSUM_TEXT_BYTES]);
bool checksum_parse(enum checksum_algorithm algorithm, struct span text, struct checksum *out);
bool checksum_equal(const struct checksum *a, const struct checksum *b); /* algorithm and bytes */

struct checksum_stream;
/* not CHECKSUM_NONE */
struct checksum_stream *checksum_stream_new(enum checksum_algorithm algorithm);
void checksum_stream_add(struct checksum_stream *stream, struct span bytes);
/* FULL_OBJECT; also resets */
void checksum_stream_result(struct checksum_stream *stream, struct checksum *out);
/* NULL is fine */
void checksum_stream_free(struct checksum_stream *stream);
void checksum_of(enum checksum_algorithm algorithm, struct span bytes, struct checksum *out);

/* CRCs alone: the checksum of A then B from theirs and B's length. */
void checksum_combine(struct checksum *first, const struct checksum *second, uint64_t second_bytes);
bool checksum_combines(enum checksum_algorithm algorithm);

#endif
