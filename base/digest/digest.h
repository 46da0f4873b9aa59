/* Cryptographic digests over nettle (its one home): SHA-1, SHA-2 and HMAC. MD5 is in
 * base/digest/md5.h. Any thread; a stream by one thread at a time. */
#ifndef BASE_DIGEST_DIGEST_H
#define BASE_DIGEST_DIGEST_H

#include "base/digest/md5.h"
#include "base/span.h"

enum { SHA1_BYTES = 20, SHA256_BYTES = 32, DIGEST_MAX_BYTES = 64 };

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256, DIGEST_SHA512 };

/* Any of the digests, for callers that learn at run time which one they need. */
struct digest_stream;
struct digest_stream *digest_stream_new(enum digest_kind kind);
size_t digest_stream_bytes(const struct digest_stream *stream); /* length of the result */
void digest_stream_add(struct digest_stream *stream, struct span bytes);
/* Writes digest_stream_bytes() bytes and resets the stream. */
void digest_stream_result(struct digest_stream *stream, uint8_t out[DIGEST_MAX_BYTES]);
/* NULL is fine */
void digest_stream_free(struct digest_stream *stream);

struct sha256_stream;
struct sha256_stream *sha256_stream_new(void);
void sha256_stream_add(struct sha256_stream *stream, struct span bytes);
/* Also resets the stream. */
void sha256_stream_result(struct sha256_stream *stream, uint8_t out[SHA256_BYTES]);
void sha256_stream_free(struct sha256_stream *stream);

void sha256(struct span bytes, uint8_t out[SHA256_BYTES]);
void hmac_sha256(struct span key, struct span message, uint8_t out[SHA256_BYTES]);
void hmac_sha1(struct span key, struct span message, uint8_t out[SHA1_BYTES]);

#endif
