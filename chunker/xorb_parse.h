/* Parses a serialized xorb that comes in pieces. It decodes, measures and names every record, and
 * gives the Merkle hash over all of them at the end. It accepts what Xet clients send
 * (docs/protocol/xet.md, "PostXorb"), with or without a footer. A record that lies whole in the
 * pushed bytes is not copied. The parser never holds more than one partial record (256 KiB), one
 * chunk and 44 bytes for each record. One thread at a time. */
#ifndef CHUNKER_XORB_PARSE_H
#define CHUNKER_XORB_PARSE_H

#include "base/error.h"
#include "chunker/xorb_record.h"

/* Enough for records of XORB_MAX_BYTES, their headers and the longest footer. */
enum { XORB_BODY_MAX_BYTES = 65 * 1024 * 1024 };

struct xorb_record { /* borrowed for the call */
	struct chunk_id id;
	uint8_t codec;
	struct span payload; /* as stored */
	struct span content;
	/* Not all clients would read the payload that came alike (codec_is_common). `codec` and
	 * `payload` are those of a raw record in its place. */
	bool is_recoded;
};
/* Returns 0 to go on, or -1 with the error set to stop the push. */
typedef int xorb_take_fn(void *taker, const struct xorb_record *record, struct error *err);

struct xorb_parse;
/* `private_codecs`: records may have codecs that Xet clients do not know. */
struct xorb_parse *xorb_parse_new(xorb_take_fn *take, void *taker, bool private_codecs);
void xorb_parse_free(struct xorb_parse *parse); /* NULL is fine */
/* Gives memory of `len` bytes for a record that comes in pieces: its header, then its payload. The
 * record stays there until it is taken, and `payload` then points into this memory. NULL with the
 * error set. A taker that keeps records saves a copy this way; without it the parser uses memory of
 * its own. */
typedef uint8_t *xorb_room_fn(void *taker, size_t len, struct error *err);
/* Must come before the first push. */
void xorb_parse_gather_into(struct xorb_parse *parse, xorb_room_fn *room);
/* Fails with invalid, saying where, or with the taker's error; only free may follow a failure. */
int xorb_parse_push(struct xorb_parse *parse, struct span bytes, struct error *err);
/* All bytes were pushed. Fails with invalid when they are not a xorb. */
int xorb_parse_end(struct xorb_parse *parse, struct chunk_id *out_hash, struct error *err);
/* The same, but fails with invalid too when the xorb has another hash. */
int xorb_parse_end_as(struct xorb_parse *parse, const struct chunk_id *hash, struct error *err);

#endif
