/* A serialized xorb that a client sends: verified while it comes (chunker/xorb_parse.h), kept as it
 * lies, found by its hash and promised (xet_options) once the outcome is known, which is when
 * all of that is durable. A xorb that is there already is only verified, its promise renewed, and
 * what is stored of it mended when it is damaged (xorb_repeat.h); of two uploads of one hash at a
 * time, one is kept. An object_put's life: open, write, finish, done, outcome, free. */
#ifndef STORAGE_XET_XORB_PUT_H
#define STORAGE_XET_XORB_PUT_H

#include "base/stream.h"
#include "chunker/chunk.h"
#include "storage/core/store.h"

struct xorb_put;
struct xorb_put_params {
	struct chunk_id hash;
	bool private_codecs; /* the client is one of ours */
	/* a write that answered SINK_WAIT may be tried again; may be NULL */
	void (*room)(void *owner);
	/* the outcome is known; from the committer, a helper or within finish */
	void (*done)(void *owner);
	void *owner;
};
struct xorb_put *xorb_put_open(
	struct store *store, const struct xorb_put_params *params, struct error *err);
/* invalid: the bytes are no xorb. */
enum sink_result xorb_put_write(struct xorb_put *put, struct span bytes, struct error *err);
void xorb_put_finish(struct xorb_put *put);
/* 0, or invalid (another hash, cut off...) and what storing gives; then nothing is kept.
 * *out_inserted false: it was there already, and right. busy: what is there is damaged, and mended
 * when the xorb is sent again. */
int xorb_put_outcome(struct xorb_put *put, bool *out_inserted, struct error *err);
/* Before finish: aborts. After finish: only after done. NULL is fine. */
void xorb_put_free(struct xorb_put *put);

#endif
