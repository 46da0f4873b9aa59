/* One interface to five kinds of state: a number for the CRCs, and streams of base/digest/digest.h,
 * base/digest/md5.h and base/digest/xxh3.h (XXH3 and XXH64). A table of methods tells the
 * algorithms apart. */
#include <stdlib.h>
#include <string.h>

#include "base/digest/checksum_crc.h"
#include "base/digest/digest.h"
#include "base/digest/xxh3.h"
#include "base/error.h"
#include "base/memory.h"

struct checksum_stream {
	enum checksum_algorithm algorithm;
	uint64_t number;
	struct digest_stream *digest;
	struct md5_stream *md5;
	struct xxh3_stream *xxh3;
	struct xxh64_stream *xxh64;
};

static void checksum_crc_add(struct checksum_stream *stream, struct span bytes);
static void checksum_crc_result(struct checksum_stream *stream, struct checksum *out);
static void store_big_endian(uint64_t value, struct checksum *out);
static void checksum_digest_add(struct checksum_stream *stream, struct span bytes);
static void checksum_digest_result(struct checksum_stream *stream, struct checksum *out);
static void checksum_md5_add(struct checksum_stream *stream, struct span bytes);
static void checksum_md5_result(struct checksum_stream *stream, struct checksum *out);
static void checksum_xxh64_add(struct checksum_stream *stream, struct span bytes);
static void checksum_xxh64_result(struct checksum_stream *stream, struct checksum *out);
static void checksum_xxh3_add(struct checksum_stream *stream, struct span bytes);
static void checksum_xxh3_short_result(struct checksum_stream *stream, struct checksum *out);
static void checksum_xxh3_long_result(struct checksum_stream *stream, struct checksum *out);

static const struct {
	void (*add)(struct checksum_stream *stream, struct span bytes);
	void (*result)(struct checksum_stream *stream, struct checksum *out);
	enum digest_kind digest; /* with checksum_digest_add */
} methods[CHECKSUM_ALGORITHMS] = {
	[CHECKSUM_CRC32] = {checksum_crc_add, checksum_crc_result, 0},
	[CHECKSUM_CRC32C] = {checksum_crc_add, checksum_crc_result, 0},
	[CHECKSUM_CRC64NVME] = {checksum_crc_add, checksum_crc_result, 0},
	[CHECKSUM_SHA1] = {checksum_digest_add, checksum_digest_result, DIGEST_SHA1},
	[CHECKSUM_SHA256] = {checksum_digest_add, checksum_digest_result, DIGEST_SHA256},
	[CHECKSUM_SHA512] = {checksum_digest_add, checksum_digest_result, DIGEST_SHA512},
	[CHECKSUM_MD5] = {checksum_md5_add, checksum_md5_result, 0},
	[CHECKSUM_XXHASH64] = {checksum_xxh64_add, checksum_xxh64_result, 0},
	[CHECKSUM_XXHASH3] = {checksum_xxh3_add, checksum_xxh3_short_result, 0},
	[CHECKSUM_XXHASH128] = {checksum_xxh3_add, checksum_xxh3_long_result, 0},
};

struct checksum_stream *checksum_stream_new(enum checksum_algorithm algorithm)
{
	ASSERT(algorithm > CHECKSUM_NONE && algorithm < CHECKSUM_ALGORITHMS);
	struct checksum_stream *const stream = memory_new(sizeof(*stream));
	stream->algorithm = algorithm;
	if (methods[algorithm].add == checksum_digest_add)
		stream->digest = digest_stream_new(methods[algorithm].digest);
	else if (methods[algorithm].add == checksum_md5_add)
		stream->md5 = md5_stream_new();
	else if (methods[algorithm].add == checksum_xxh3_add)
		stream->xxh3 = xxh3_stream_new();
	else if (methods[algorithm].add == checksum_xxh64_add)
		stream->xxh64 = xxh64_stream_new();
	return stream;
}

void checksum_stream_add(struct checksum_stream *stream, struct span bytes)
{
	methods[stream->algorithm].add(stream, bytes);
}

void checksum_stream_result(struct checksum_stream *stream, struct checksum *out)
{
	*out = (struct checksum){
		.algorithm = stream->algorithm, .len = (uint8_t)checksum_length(stream->algorithm)};
	methods[stream->algorithm].result(stream, out);
}

void checksum_stream_free(struct checksum_stream *stream)
{
	if (stream == NULL)
		return;
	digest_stream_free(stream->digest);
	md5_stream_free(stream->md5);
	xxh3_stream_free(stream->xxh3);
	xxh64_stream_free(stream->xxh64);
	free(stream);
}

void checksum_of(enum checksum_algorithm algorithm, struct span bytes, struct checksum *out)
{
	struct checksum_stream *const stream = checksum_stream_new(algorithm);
	checksum_stream_add(stream, bytes);
	checksum_stream_result(stream, out);
	checksum_stream_free(stream);
}

static void checksum_crc_add(struct checksum_stream *stream, struct span bytes)
{
	stream->number = checksum_crc(stream->algorithm, stream->number, bytes);
}

static void checksum_crc_result(struct checksum_stream *stream, struct checksum *out)
{
	store_big_endian(stream->number, out);
	stream->number = 0;
}

static void store_big_endian(uint64_t value, struct checksum *out)
{
	ASSERT(out->len <= sizeof(value));
	for (size_t i = out->len; i-- > 0; value >>= 8)
		out->bytes[i] = (uint8_t)value;
}

static void checksum_digest_add(struct checksum_stream *stream, struct span bytes)
{
	digest_stream_add(stream->digest, bytes);
}

static void checksum_digest_result(struct checksum_stream *stream, struct checksum *out)
{
	digest_stream_result(stream->digest, out->bytes);
}

static void checksum_md5_add(struct checksum_stream *stream, struct span bytes)
{
	md5_stream_add(stream->md5, bytes);
}

static void checksum_md5_result(struct checksum_stream *stream, struct checksum *out)
{
	md5_stream_result(stream->md5, out->bytes);
}

static void checksum_xxh64_add(struct checksum_stream *stream, struct span bytes)
{
	xxh64_stream_add(stream->xxh64, bytes);
}

static void checksum_xxh64_result(struct checksum_stream *stream, struct checksum *out)
{
	store_big_endian(xxh64_stream_result(stream->xxh64), out);
	xxh64_stream_reset(stream->xxh64);
}

static void checksum_xxh3_add(struct checksum_stream *stream, struct span bytes)
{
	xxh3_stream_add(stream->xxh3, bytes);
}

static void checksum_xxh3_short_result(struct checksum_stream *stream, struct checksum *out)
{
	store_big_endian(xxh3_stream_result_64(stream->xxh3), out);
	xxh3_stream_reset(stream->xxh3);
}

static void checksum_xxh3_long_result(struct checksum_stream *stream, struct checksum *out)
{
	const struct digest128 digest = xxh3_stream_result(stream->xxh3);
	memcpy(out->bytes, digest.bytes, sizeof(digest.bytes));
	xxh3_stream_reset(stream->xxh3);
}
