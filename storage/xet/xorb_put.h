/* A serialized xorb that a client sends: verified while it comes (chunker/xorb_parse.h), kept as it
 * lies, found by its hash and promised (xet_options) once its call has ended, which is when all of
 * that is durable. A xorb that is there already is only verified, its promise renewed, and what is
 * stored of it mended when it is damaged (xorb_repeat.h); of two uploads of one hash at a time, one
 * is kept. An object_put's life: open, write, then its call. */
#ifndef STORAGE_XET_XORB_PUT_H
#define STORAGE_XET_XORB_PUT_H

#include "base/stream.h"
#include "chunker/chunk.h"
#include "storage/core/call.h"

struct xorb_put;
struct xorb_put_params {
	struct chunk_id hash;
	bool private_codecs; /* the client is one of ours */
	/* a write that answered SINK_WAIT may be tried again; may be NULL */
	void (*room)(void *owner);
	void *owner; /* of room */
};
struct xorb_put *xorb_put_open(
	struct store *store, const struct xorb_put_params *params, struct error *err);
/* invalid: the bytes are no xorb. */
enum sink_result xorb_put_write(struct xorb_put *put, struct span bytes, struct error *err);
/* The call that ends the upload once all is written. invalid (another hash, cut off...), and what
 * storing gives: then nothing is kept. busy: what is there is damaged, and mended when the xorb is
 * sent again. The put goes with it: call_free aborts one that was never started. */
struct call *xorb_put_call(struct xorb_put *put);
/* Once that has ended well. False: the xorb was there already, and right. */
bool xorb_put_inserted(const struct xorb_put *put);

#endif
