/* The content checksums of S3: ten algorithms behind one interface. CRC32 and CRC32C come from
 * ISA-L, CRC64NVME from base/digest/crc64.c, the others from base/digest/digest.h and
 * base/digest/xxh3.h. Values are big-endian bytes, which S3 sends in base64 (s3.md section 7).
 * Any thread; a stream by one thread at a time. */
#ifndef BASE_DIGEST_CHECKSUM_H
#define BASE_DIGEST_CHECKSUM_H

#include "base/span.h"

/* The catalog stores these numbers. */
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
}; /* the text is base64, "-" and a part count, and a NUL */

struct checksum {
	enum checksum_algorithm algorithm;
	enum checksum_type type;
	uint8_t len; /* of this algorithm; 0 with CHECKSUM_NONE */
	uint8_t bytes[CHECKSUM_MAX_BYTES];
};

/* The algorithm as S3 spells it, "CRC32" for example; "" for none. */
const char *checksum_name(enum checksum_algorithm algorithm);
/* The end of the header's name after x-amz-checksum-, "crc32" for example; "" for none. */
const char *checksum_suffix(enum checksum_algorithm algorithm);
/* The XML element of S3 and the header, "ChecksumCRC32" and "x-amz-checksum-crc32" for example; ""
 * for none. Static text. */
const char *checksum_element(enum checksum_algorithm algorithm);
const char *checksum_header(enum checksum_algorithm algorithm);
/* By name or suffix, in any case; CHECKSUM_NONE when unknown. */
enum checksum_algorithm checksum_by_name(struct span name);
/* By the header's name, in any case; CHECKSUM_NONE for every other header. */
enum checksum_algorithm checksum_by_header(struct span name);
size_t checksum_length(enum checksum_algorithm algorithm);
/* Whether a multipart upload may have this pair, and the type it gets when it names none. */
bool checksum_allows(enum checksum_algorithm algorithm, enum checksum_type type);
enum checksum_type checksum_default_type(enum checksum_algorithm algorithm);

/* Formats as base64, with "-N" for a COMPOSITE of `parts` parts. Parsing accepts exactly the
 * algorithm's length, and gives the type FULL_OBJECT. */
void checksum_format(
	const struct checksum *checksum, unsigned parts, char out[CHECKSUM_TEXT_BYTES]);
bool checksum_parse(enum checksum_algorithm algorithm, struct span text, struct checksum *out);
/* compares algorithm and bytes */
bool checksum_equal(const struct checksum *a, const struct checksum *b);

struct checksum_stream;
/* Any algorithm but CHECKSUM_NONE. */
struct checksum_stream *checksum_stream_new(enum checksum_algorithm algorithm);
void checksum_stream_add(struct checksum_stream *stream, struct span bytes);
/* Gives a FULL_OBJECT checksum and resets the stream. */
void checksum_stream_result(struct checksum_stream *stream, struct checksum *out);
/* NULL is fine */
void checksum_stream_free(struct checksum_stream *stream);
void checksum_of(enum checksum_algorithm algorithm, struct span bytes, struct checksum *out);

/* For CRCs alone: turns the checksum of A into that of A followed by B, from B's checksum and
 * length. */
void checksum_combine(struct checksum *first, const struct checksum *second, uint64_t second_bytes);
bool checksum_combines(enum checksum_algorithm algorithm);

#endif
