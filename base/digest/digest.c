/* Streams over nettle's contexts, which reset themselves when they give their digest. Keys and
 * states of HMAC are wiped after use. */
#include "base/digest/digest.h"

#include <nettle/hmac.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

_Static_assert(SHA256_BYTES == SHA256_DIGEST_SIZE && DIGEST_MAX_BYTES == SHA512_DIGEST_SIZE,
	"sizes of the digests");

struct digest_stream {
	const struct nettle_hash *hash;
	union {
		struct sha1_ctx sha1;
		struct sha256_ctx sha256;
		struct sha512_ctx sha512;
	} state;
};

struct digest_stream *digest_stream_new(enum digest_kind kind)
{
	static const struct nettle_hash *const hashes[] = {
		[DIGEST_SHA1] = &nettle_sha1,
		[DIGEST_SHA256] = &nettle_sha256,
		[DIGEST_SHA512] = &nettle_sha512,
	};
	ASSERT((size_t)kind < sizeof(hashes) / sizeof(hashes[0]));
	struct digest_stream *const stream = memory_new(sizeof(*stream));
	stream->hash = hashes[kind];
	stream->hash->init(&stream->state);
	return stream;
}

size_t digest_stream_bytes(const struct digest_stream *stream)
{
	return stream->hash->digest_size;
}

void digest_stream_add(struct digest_stream *stream, struct span bytes)
{
	if (bytes.len > 0)
		stream->hash->update(&stream->state, bytes.len, bytes.data);
}

void digest_stream_result(struct digest_stream *stream, uint8_t out[DIGEST_MAX_BYTES])
{
	stream->hash->digest(&stream->state, stream->hash->digest_size, out);
}

void digest_stream_free(struct digest_stream *stream)
{
	free(stream);
}

struct sha256_stream {
	struct sha256_ctx state;
};

struct sha256_stream *sha256_stream_new(void)
{
	struct sha256_stream *const stream = memory_new(sizeof(*stream));
	sha256_init(&stream->state);
	return stream;
}

void sha256_stream_add(struct sha256_stream *stream, struct span bytes)
{
	if (bytes.len > 0)
		sha256_update(&stream->state, bytes.len, bytes.data);
}

void sha256_stream_result(struct sha256_stream *stream, uint8_t out[SHA256_BYTES])
{
	sha256_digest(&stream->state, SHA256_BYTES, out);
}

void sha256_stream_free(struct sha256_stream *stream)
{
	free(stream);
}

void sha256(struct span bytes, uint8_t out[SHA256_BYTES])
{
	struct sha256_stream stream;
	sha256_init(&stream.state);
	sha256_stream_add(&stream, bytes);
	sha256_stream_result(&stream, out);
}

void hmac_sha256(struct span key, struct span message, uint8_t out[SHA256_BYTES])
{
	struct hmac_sha256_ctx state;
	/* nettle requires a pointer even for an empty key */
	hmac_sha256_set_key(&state, key.len, key.len > 0 ? key.data : out);
	if (message.len > 0)
		hmac_sha256_update(&state, message.len, message.data);
	hmac_sha256_digest(&state, SHA256_BYTES, out);
	explicit_bzero(&state, sizeof(state));
}

void hmac_sha1(struct span key, struct span message, uint8_t out[SHA1_BYTES])
{
	struct hmac_sha1_ctx state;
	hmac_sha1_set_key(&state, key.len, key.len > 0 ? key.data : out);
	if (message.len > 0)
		hmac_sha1_update(&state, message.len, message.data);
	hmac_sha1_digest(&state, SHA1_BYTES, out);
	explicit_bzero(&state, sizeof(state));
}
