/* XXH3, the checksum of stored bytes and the digest of objects, tensors and checkpoints; over
 * libxxhash (its one home). It does not resist forgers; BLAKE3 does. Any thread; a stream by one
 * thread at a time. */
#ifndef BASE_DIGEST_XXH3_H
#define BASE_DIGEST_XXH3_H

#include "base/span.h"

/* The 128-bit digest in canonical (big-endian) byte order. Text form: `xxh3-128:` and 32 lower-case
 * hex digits. */
struct digest128 {
	uint8_t bytes[16];
};
enum { DIGEST128_TEXT_BYTES = 9 + 32 + 1 };

uint64_t xxh3_64(struct span bytes);
uint64_t xxh3_64_seeded(struct span bytes, uint64_t seed);
struct digest128 xxh3_128(struct span bytes);

struct xxh3_stream; /* for both lengths, which differ only in the last step */
struct xxh3_stream *xxh3_stream_new(void);
void xxh3_stream_reset(struct xxh3_stream *stream);
void xxh3_stream_add(struct xxh3_stream *stream, struct span bytes);
struct digest128 xxh3_stream_result(const struct xxh3_stream *stream);
uint64_t xxh3_stream_result_64(const struct xxh3_stream *stream);
void xxh3_stream_free(struct xxh3_stream *stream);

struct xxh64_stream; /* the older XXH64 with seed 0, one of S3's checksums */
struct xxh64_stream *xxh64_stream_new(void);
void xxh64_stream_reset(struct xxh64_stream *stream);
void xxh64_stream_add(struct xxh64_stream *stream, struct span bytes);
uint64_t xxh64_stream_result(const struct xxh64_stream *stream);
void xxh64_stream_free(struct xxh64_stream *stream); /* NULL is fine */

bool digest128_equal(const struct digest128 *a, const struct digest128 *b);
void digest128_format(const struct digest128 *digest, char out[DIGEST128_TEXT_BYTES]);
/* accepts the text form only */
bool digest128_parse(struct span text, struct digest128 *out_digest);

#endif
