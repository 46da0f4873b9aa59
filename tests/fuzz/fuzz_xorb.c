/* A serialized xorb as any client may send it, pushed whole and pushed in pieces: both must agree
 * on records, hash and acceptance. The first four bytes say how it is cut, the fifth whether
 * private codecs may come. */
#include <stdlib.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 4, HEAD_BYTES = CUTS + 1 };

struct reading {
	bool private_codecs;
	size_t count;
	uint64_t content_bytes;
	uint64_t body_bytes;
	struct chunk_id last;
	struct chunk_id hash;
	bool good;
};

static int take(void *taker, const struct xorb_record *record, struct error *err)
{
	struct reading *const reading = taker;
	const struct chunk_id id = chunk_hash(record->content);
	(void)err;
	ASSERT(chunk_id_equal(&id, &record->id) && codec_known(record->codec));
	ASSERT(reading->private_codecs || !codec_private((enum codec)record->codec));
	ASSERT(record->content.len >= 1 && record->content.len <= CHUNK_MAX_BYTES);
	reading->last = id;
	reading->count++;
	reading->content_bytes += record->content.len;
	reading->body_bytes += XORB_RECORD_HEADER_BYTES + record->payload.len;
	return 0;
}

static struct reading read_in_pieces(struct span body, const uint8_t *cuts, bool private_codecs)
{
	struct reading reading = {.private_codecs = private_codecs};
	struct xorb_parse *const parse = xorb_parse_new(take, &reading, private_codecs);
	struct error err = {0};
	int result = 0;
	for (size_t at = 0, i = 0; result == 0 && at < body.len; i++) {
		const size_t piece =
			cuts == NULL ? body.len : (size_t)cuts[i % CUTS] * cuts[i % CUTS] / 16 + 1;
		const struct span part = span_slice(body, at, piece);
		uint8_t *const own = memory_copy(part.data, part.len); /* exactly so long */
		result = xorb_parse_push(parse, span_of(own, part.len), &err);
		free(own);
		at += part.len;
	}
	reading.good = result == 0 && xorb_parse_end(parse, &reading.hash, &err) == 0;
	ASSERT(reading.good ? err.kind == ERROR_NONE : err.kind == ERROR_INVALID);
	xorb_parse_free(parse);
	return reading;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;
	const struct span body = span_of(data + HEAD_BYTES, size - HEAD_BYTES);
	const bool private_codecs = data[CUTS] % 2 != 0;
	const struct reading whole = read_in_pieces(body, NULL, private_codecs);
	const struct reading pieces = read_in_pieces(body, data, private_codecs);
	ASSERT(whole.good == pieces.good && whole.count == pieces.count &&
		whole.content_bytes == pieces.content_bytes);
	ASSERT(whole.body_bytes <= body.len && whole.content_bytes <= XORB_MAX_BYTES &&
		whole.count <= XORB_MAX_CHUNKS);
	if (!whole.good)
		return 0;
	ASSERT(whole.count >= 1 && chunk_id_equal(&whole.hash, &pieces.hash));
	ASSERT(whole.count > 1 || chunk_id_equal(&whole.hash, &whole.last));
	return 0;
}
