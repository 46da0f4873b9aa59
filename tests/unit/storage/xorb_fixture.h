/* Serialized xorbs of known content, sent to a store and read back. */
#ifndef TESTS_UNIT_STORAGE_XORB_FIXTURE_H
#define TESTS_UNIT_STORAGE_XORB_FIXTURE_H

#include "base/buffer.h"
#include "chunker/codec.h"
#include "storage/xet/xorb.h"
#include "storage/xet/xorb_put.h"

struct xorb_sample {
	uint64_t seed;
	unsigned chunks;
	size_t chunk_bytes;
	enum codec codec; /* CODEC_RAW: noise; else content that the codec makes smaller */
};
/* The content of chunk `number`. free() it. */
uint8_t *xorb_sample_chunk(const struct xorb_sample *sample, unsigned number);
/* Writes the serialized xorb into `out`, which the caller releases. Returns its hash. */
struct chunk_id xorb_sample_write(const struct xorb_sample *sample, struct buffer *out);
struct chunk_id xorb_sample_hash(const struct xorb_sample *sample);

/* Sends `body` as `hash`, and waits when the sink answers "wait". */
int xorb_fixture_put(struct store *store, const struct chunk_id *hash, struct span body,
	bool private_codecs, bool *out_inserted, struct error *err);
int xorb_sample_put(struct store *store, const struct xorb_sample *sample, bool *out_inserted,
	struct error *err);
/* Whether the xorb is found, and each chunk reads as it was sent. */
bool xorb_sample_is_there(struct store *store, const struct xorb_sample *sample);

#endif
