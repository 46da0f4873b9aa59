/* Uses the AVX2 build of the same library (xxh3_wide.h) where the processor has it. Results are the
 * same either way. */
#include "base/digest/xxh3.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/digest/xxh3_wide.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/memory.h"

static const char digest_prefix[] = "xxh3-128:";
enum { PREFIX_BYTES = sizeof(digest_prefix) - 1, STREAMED_BYTES = 1 << 20 };

struct xxh3_stream {
	XXH3_state_t *state; /* allocated by the library, which knows its alignment */
};

struct xxh64_stream {
	XXH64_state_t *state;
};

static struct digest128 canonical(XXH128_hash_t hash);

uint64_t xxh3_64(struct span bytes)
{
	return xxh3_wide_works() ? xxh3_wide_64(bytes) : XXH3_64bits(bytes.data, bytes.len);
}

uint64_t xxh3_64_seeded(struct span bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes.data, bytes.len, seed);
}

struct digest128 xxh3_128(struct span bytes)
{
	/* For large inputs the streaming code is faster, and worth the allocation of its state. */
	if (bytes.len < STREAMED_BYTES || !xxh3_wide_works())
		return canonical(XXH3_128bits(bytes.data, bytes.len));
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, bytes);
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

struct xxh3_stream *xxh3_stream_new(void)
{
	struct xxh3_stream *const stream = memory_new(sizeof(*stream));
	stream->state = XXH3_createState();
	ASSERT(stream->state != NULL);
	xxh3_stream_reset(stream);
	return stream;
}

void xxh3_stream_reset(struct xxh3_stream *stream)
{
	const XXH_errorcode code = XXH3_128bits_reset(stream->state);
	ASSERT(code == XXH_OK);
}

void xxh3_stream_add(struct xxh3_stream *stream, struct span bytes)
{
	if (bytes.len == 0)
		return;
	if (xxh3_wide_works()) {
		xxh3_wide_update(stream->state, bytes);
		return;
	}
	const XXH_errorcode code = XXH3_128bits_update(stream->state, bytes.data, bytes.len);
	ASSERT(code == XXH_OK);
}

struct digest128 xxh3_stream_result(const struct xxh3_stream *stream)
{
	return canonical(XXH3_128bits_digest(stream->state));
}

uint64_t xxh3_stream_result_64(const struct xxh3_stream *stream)
{
	return XXH3_64bits_digest(stream->state);
}

void xxh3_stream_free(struct xxh3_stream *stream)
{
	if (stream == NULL)
		return;
	XXH3_freeState(stream->state);
	free(stream);
}

struct xxh64_stream *xxh64_stream_new(void)
{
	struct xxh64_stream *const stream = memory_new(sizeof(*stream));
	stream->state = XXH64_createState();
	ASSERT(stream->state != NULL);
	xxh64_stream_reset(stream);
	return stream;
}

void xxh64_stream_reset(struct xxh64_stream *stream)
{
	const XXH_errorcode code = XXH64_reset(stream->state, 0);
	ASSERT(code == XXH_OK);
}

void xxh64_stream_add(struct xxh64_stream *stream, struct span bytes)
{
	if (bytes.len == 0)
		return;
	const XXH_errorcode code = XXH64_update(stream->state, bytes.data, bytes.len);
	ASSERT(code == XXH_OK);
}

uint64_t xxh64_stream_result(const struct xxh64_stream *stream)
{
	return XXH64_digest(stream->state);
}

void xxh64_stream_free(struct xxh64_stream *stream)
{
	if (stream == NULL)
		return;
	XXH64_freeState(stream->state);
	free(stream);
}

bool digest128_equal(const struct digest128 *a, const struct digest128 *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void digest128_format(const struct digest128 *digest, char out[DIGEST128_TEXT_BYTES])
{
	memcpy(out, digest_prefix, PREFIX_BYTES);
	encode_hex(span_of(digest->bytes, sizeof(digest->bytes)), out + PREFIX_BYTES);
}

/* Each digest has one text: upper-case digits are refused. */
bool digest128_parse(struct span text, struct digest128 *out_digest)
{
	struct digest128 digest;
	char again[DIGEST128_TEXT_BYTES];
	if (text.len != DIGEST128_TEXT_BYTES - 1 ||
		!decode_hex(span_slice(text, PREFIX_BYTES, text.len), digest.bytes,
			sizeof(digest.bytes)))
		return false;
	digest128_format(&digest, again);
	if (!span_equal_text(text, again))
		return false;
	*out_digest = digest;
	return true;
}

static struct digest128 canonical(XXH128_hash_t hash)
{
	XXH128_canonical_t text;
	struct digest128 digest;
	XXH128_canonicalFromHash(&text, hash);
	_Static_assert(sizeof(text.digest) == sizeof(digest.bytes), "128 bits");
	memcpy(digest.bytes, text.digest, sizeof(digest.bytes));
	return digest;
}
