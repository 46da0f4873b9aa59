/* MD5 of streams, over base/digest/md5_lanes.h. S3 needs it for every object; nothing here trusts
 * it against an attacker. Any thread; a stream by one thread at a time. */
#ifndef BASE_DIGEST_MD5_H
#define BASE_DIGEST_MD5_H

#include "base/digest/md5_lanes.h"
#include "base/span.h"

enum { MD5_BYTES = 16 };

struct md5_stream;
struct md5_stream *md5_stream_new(void);
void md5_stream_add(struct md5_stream *stream, struct span bytes);
/* Adds bytes[i] to streams[i], in about the time of one stream. The streams are distinct, and at
 * most MD5_LANES. */
void md5_streams_add(struct md5_stream *const streams[], const struct span bytes[], size_t count);
void md5_stream_result(struct md5_stream *stream, uint8_t out[MD5_BYTES]); /* also resets */
void md5_stream_free(struct md5_stream *stream);                           /* NULL is fine */

#endif
