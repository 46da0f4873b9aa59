/* The headers by which a request says what checksum its body or its object has, and those by which
 * a reply does: x-amz-checksum-*, x-amz-sdk-checksum-algorithm, x-amz-checksum-algorithm,
 * x-amz-checksum-type, Content-MD5. s3.md section 7. Values are parsed here and compared by whoever
 * has the bytes. */
#ifndef API_S3_REQUEST_CHECKSUM_HEADERS_H
#define API_S3_REQUEST_CHECKSUM_HEADERS_H

#include "api/exchange/exchange.h"

enum checksum_headers_use {
	/* PutObject, UploadPart, XML bodies: the value, or that a trailer brings it */
	CHECKSUM_OF_BODY,
	CHECKSUM_TO_STORE, /* CreateMultipartUpload, CopyObject: algorithm and type, no value */
	CHECKSUM_OF_OBJECT /* CompleteMultipartUpload: the whole object's, "value" or "value-N" */
};
struct checksum_headers {
	/* what the value, the trailer or the algorithm header names; CHECKSUM_NONE: nothing was
	 * named */
	enum checksum_algorithm algorithm;
	bool has_type;
	/* with an algorithm and without has_type: the algorithm's default for uploads */
	enum checksum_type type;
	/* CHECKSUM_NONE: no value was sent (or the trailer brings it) */
	struct checksum value;
	uint64_t value_parts; /* N of "value-N"; 0: none */
	/* exchange->trailer has the value once the body is whole */
	bool in_trailer;
};
/* invalid_request: two values, a value and a trailer, an unknown algorithm or type, algorithm
 * headers that contradict each other or name what does not come, a type without algorithm or of an
 * illegal pair. bad_digest: a value that is not the base64 of its algorithm's length. */
int checksum_headers_read(struct exchange *exchange, enum checksum_headers_use use,
	struct checksum_headers *out, struct error *err);
/* Content-MD5: invalid_digest unless it is the base64 of 16 bytes. */
int checksum_headers_md5(
	struct exchange *exchange, bool *out_has, uint8_t out[16], struct error *err);
/* Once the body is whole: what it should have, from the header or the trailer; NULL when the client
 * did not say. */
const struct checksum *checksum_headers_expected(
	const struct exchange *exchange, const struct checksum_headers *headers);

/* Replies: x-amz-checksum-<algorithm>, with "-N" for a COMPOSITE of `parts`; nothing for
 * CHECKSUM_NONE. */
void checksum_headers_add(
	struct exchange *exchange, const struct checksum *checksum, unsigned parts);
/* x-amz-checksum-type. */
void checksum_headers_add_type(struct exchange *exchange, const struct checksum *checksum);
/* 400 BadDigest with both values. */
enum next checksum_headers_mismatch(
	struct exchange *exchange, const struct checksum *expected, const struct checksum *actual);

#endif
