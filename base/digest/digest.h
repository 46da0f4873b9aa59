/* Cryptographic digests: SHA-1, SHA-2 and HMAC over both, over nettle (its one home); MD5 stands in
 * base/digest/md5.h. Any thread; a stream by one at a time. */
#ifndef BASE_DIGEST_DIGEST_H
#define BASE_DIGEST_DIGEST_H

#include "base/digest/md5.h"
#include "base/span.h"

enum { SHA1_BYTES = 20, SHA256_BYTES = 32, DIGEST_MAX_BYTES = 64 };

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256, DIGEST_SHA512 };

/* Any of them, for who learns at run time which. */
struct digest_stream;
struct digest_stream *digest_stream_new(enum digest_kind kind);
size_t digest_stream_bytes(const struct digest_stream *stream); /* of the result */
void digest_stream_add(struct digest_stream *stream, struct span bytes);
/* writes digest_stream_bytes; also resets */
void digest_stream_result(struct digest_stream *stream, uint8_t out[DIGEST_MAX_BYTES]);
/* NULL is fine */
void digest_stream_free(struct digest_stream *stream);

struct sha256_stream;
struct sha256_stream *sha256_stream_new(void);
void sha256_stream_add(struct sha256_stream *stream, struct span bytes);
/* also resets */
void sha256_stream_result(struct sha256_stream *stream, uint8_t out[SHA256_BYTES]);
void sha256_stream_free(struct sha256_stream *stream);

void sha256(struct span bytes, uint8_t out[SHA256_BYTES]);
void hmac_sha256(struct span key, struct span message, uint8_t out[SHA256_BYTES]);
void hmac_sha1(struct span key, struct span message, uint8_t out[SHA1_BYTES]);

#endif
