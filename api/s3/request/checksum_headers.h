/* The headers that give the checksum of a body or an object, in requests and replies:
 * x-amz-checksum-*, x-amz-sdk-checksum-algorithm, x-amz-checksum-algorithm, x-amz-checksum-type and
 * Content-MD5. This file parses values; the code that has the bytes compares them. */
#ifndef API_S3_REQUEST_CHECKSUM_HEADERS_H
#define API_S3_REQUEST_CHECKSUM_HEADERS_H

#include "api/exchange/exchange.h"

enum checksum_headers_use {
	/* PutObject, UploadPart, XML bodies: a value in a header or in the trailer */
	CHECKSUM_OF_BODY,
	CHECKSUM_TO_STORE, /* CreateMultipartUpload, CopyObject: algorithm and type, no value */
	/* CompleteMultipartUpload: the value for the whole object, "value" or "value-N" */
	CHECKSUM_OF_OBJECT
};
struct checksum_headers {
	/* of the value, the trailer or the algorithm header; CHECKSUM_NONE: the request has none of
	 * them */
	enum checksum_algorithm algorithm;
	bool has_type;
	/* with an algorithm and without has_type: the algorithm's default for uploads */
	enum checksum_type type;
	/* CHECKSUM_NONE: no value was sent, or it is in the trailer */
	struct checksum value;
	uint64_t value_parts; /* N of "value-N"; 0: none */
	bool in_trailer;      /* exchange->trailer has the value when the body is whole */
};
/* invalid_request: two values, a value and a trailer, an unknown algorithm or type, an
 * x-amz-sdk-checksum-algorithm that differs from the value's or comes without a value, a type
 * without an algorithm, or a type that the algorithm does not allow. bad_digest: a value that is
 * not base64 of its algorithm's length. */
int checksum_headers_read(struct exchange *exchange, enum checksum_headers_use use,
	struct checksum_headers *out, struct error *err);
/* Content-MD5. invalid_digest unless it is the base64 of 16 bytes. */
int checksum_headers_md5(
	struct exchange *exchange, bool *out_has, uint8_t out[16], struct error *err);
/* When the body is whole: the checksum that it must have, from the header or the trailer; NULL when
 * the client sent none. */
const struct checksum *checksum_headers_expected(
	const struct exchange *exchange, const struct checksum_headers *headers);

/* Adds x-amz-checksum-<algorithm> to the reply, with "-N" for a COMPOSITE of `parts`; nothing for
 * CHECKSUM_NONE. */
void checksum_headers_add(
	struct exchange *exchange, const struct checksum *checksum, unsigned parts);
/* Adds x-amz-checksum-type; nothing for CHECKSUM_NONE. */
void checksum_headers_add_type(struct exchange *exchange, const struct checksum *checksum);
/* Replies 400 BadDigest with both values: the one that was expected as its header has it, and the
 * actual one, with "-N" for a COMPOSITE of `parts`. `expected` is not CHECKSUM_NONE. */
enum next checksum_headers_mismatch(struct exchange *exchange, const struct checksum *expected,
	const struct checksum *actual, unsigned parts);

#endif
