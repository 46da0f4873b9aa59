/* BLAKE3, over the official code (its one home): keyed for the hashes of Xet, plain for checksums
 * of weights. Any thread; a stream by one thread at a time. */
#ifndef BASE_DIGEST_BLAKE3_STREAM_H
#define BASE_DIGEST_BLAKE3_STREAM_H

#include "base/span.h"

enum { BLAKE3_BYTES = 32 };

/* Hashes all bytes at once. `key` NULL: plain. */
void blake3(const uint8_t key[BLAKE3_BYTES], struct span bytes, uint8_t out[BLAKE3_BYTES]);

struct blake3_stream;
struct blake3_stream *blake3_stream_new(const uint8_t key[BLAKE3_BYTES]); /* NULL: plain */
void blake3_stream_reset(struct blake3_stream *stream);
void blake3_stream_add(struct blake3_stream *stream, struct span bytes);
void blake3_stream_result(const struct blake3_stream *stream, uint8_t out[BLAKE3_BYTES]);
void blake3_stream_free(struct blake3_stream *stream); /* NULL is fine */

#endif
