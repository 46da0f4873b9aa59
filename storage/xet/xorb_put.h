/* A serialized xorb that a client sends. It is verified while it comes (chunker/xorb_parse.h) and
 * stored as it is. When the call has ended the xorb is durable, is found by its hash, and is
 * promised (xet_options.h). If the xorb is stored already, it is only verified, its promise is
 * renewed, and its stored bytes are mended when they are damaged (xorb_repeat.h). When two uploads
 * of one hash meet, one is kept. It is used like an object_put: open, write, then its call. */
#ifndef STORAGE_XET_XORB_PUT_H
#define STORAGE_XET_XORB_PUT_H

#include "base/stream.h"
#include "chunker/chunk.h"
#include "storage/core/call.h"

struct xorb_put;
struct xorb_put_params {
	struct chunk_id hash;
	bool private_codecs; /* the client is deltabucket's own */
	/* A helper calls it when a write that answered SINK_WAIT may be tried again. NULL is
	 * fine. */
	void (*room)(void *owner);
	void *owner; /* of room */
};
struct xorb_put *xorb_put_open(
	struct store *store, const struct xorb_put_params *params, struct error *err);
/* invalid: the bytes are not a xorb. */
enum sink_result xorb_put_write(struct xorb_put *put, struct span bytes, struct error *err);
/* The call that ends the upload once everything is written. invalid (another hash, cut off, ...),
 * or a failure of storing: then nothing is kept. busy: the stored bytes are damaged, and will be
 * mended when the xorb is sent again. The put is part of the call: call_free frees it, also when it
 * was never started. */
struct call *xorb_put_call(struct xorb_put *put);
/* After the call has ended well: whether its bytes were stored or mended. False: the xorb was
 * stored already, and right. */
bool xorb_put_inserted(const struct xorb_put *put);

#endif
