/* Cryptographic digests: MD5, SHA-1, SHA-2 and HMAC-SHA-256, over nettle (its one home). Any thread; a stream by one at a time. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/span.h"

enum { MD5_BYTES = 16, SHA256_BYTES = 32, DIGEST_MAX_BYTES = 64 };

enum digest_kind { DIGEST_MD5, DIGEST_SHA1, DIGEST_SHA256, DIGEST_SHA512 };

/* Any of them, for who learns at run time which. */
struct digest_stream;
struct digest_stream *digest_stream_new(enum digest_kind kind);
size_t digest_stream_bytes(const struct digest_stream *stream); /* of the result */
void digest_stream_add(struct digest_stream *stream, struct span bytes);
void digest_stream_result(struct digest_stream *stream, uint8_t out[DIGEST_MAX_BYTES]); /* writes digest_stream_bytes; also resets */
void digest_stream_free(struct digest_stream *stream);                                 /* NULL is fine */

struct md5_stream;
struct md5_stream *md5_stream_new(void);
void md5_stream_add(struct md5_stream *stream, struct span bytes);
void md5_stream_result(struct md5_stream *stream, uint8_t out[MD5_BYTES]); /* also resets */
void md5_stream_free(struct md5_stream *stream);

struct sha256_stream;
struct sha256_stream *sha256_stream_new(void);
void sha256_stream_add(struct sha256_stream *stream, struct span bytes);
void sha256_stream_result(struct sha256_stream *stream, uint8_t out[SHA256_BYTES]); /* also resets */
void sha256_stream_free(struct sha256_stream *stream);

void sha256(struct span bytes, uint8_t out[SHA256_BYTES]);
void hmac_sha256(struct span key, struct span message, uint8_t out[SHA256_BYTES]);

#endif
