/* A serialized xorb in pushed pieces: every record is decoded, measured and named; the merkle hash
 * over all of them comes at the end. Takes what Xet clients send (docs/PROTOCOL.md, "Xorbs"), with
 * a footer or without. A record that lies whole in the pushed bytes is not copied. Holds at most
 * one partial record (256 KiB), one chunk and 44 bytes for each record, whatever comes. One thread
 * at a time. */
#ifndef CHUNKER_XORB_PARSE_H
#define CHUNKER_XORB_PARSE_H

#include "base/error.h"
#include "chunker/xorb_record.h"

/* records of XORB_MAX_BYTES with their headers and the longest footer, and some to spare */
enum { XORB_BODY_MAX_BYTES = 65 * 1024 * 1024 };

struct xorb_record { /* borrowed for the call */
	struct chunk_id id;
	uint8_t codec;
	struct span payload; /* as stored */
	struct span content;
	/* what came is not read alike by all clients (codec_is_common): codec and payload are those
	 * of a plain record */
	bool is_recoded;
};
/* 0 to go on, -1 with the error set to stop the push. */
typedef int xorb_take_fn(void *taker, const struct xorb_record *record, struct error *err);

struct xorb_parse;
/* `private_codecs`: records may have codecs that Xet clients do not know. */
struct xorb_parse *xorb_parse_new(xorb_take_fn *take, void *taker, bool private_codecs);
void xorb_parse_free(struct xorb_parse *parse); /* NULL is fine */
/* Gives `len` bytes for a record that comes in pieces, its header in front, where it stays until it
 * is taken: `payload` then lies in them, behind the header. NULL with the error set. A taker that
 * keeps records spares a copy so; without it the parser has memory of its own. */
typedef uint8_t *xorb_room_fn(void *taker, size_t len, struct error *err);
/* before the first push */
void xorb_parse_gather_into(struct xorb_parse *parse, xorb_room_fn *room);
/* invalid, saying where, or the taker's error; then only free may follow. */
int xorb_parse_push(struct xorb_parse *parse, struct span bytes, struct error *err);
/* The bytes are whole. invalid when they are not a xorb. */
int xorb_parse_end(struct xorb_parse *parse, struct chunk_id *out_hash, struct error *err);
/* The same; invalid too when the hash is another one. */
int xorb_parse_end_as(struct xorb_parse *parse, const struct chunk_id *hash, struct error *err);

#endif
