/* A new xorb of an upload as it is sent: its chunks read from their files, each in the codec that
 * makes it smallest. The server proves what it gets against the name of the xorb, so nothing is
 * hashed a second time here; what it refuses is looked into. One thread at a time; each has its
 * own, with up to 65 MiB of memory that serves one xorb after the other. */
#ifndef CLIENT_TRANSFER_XORB_BODY_H
#define CLIENT_TRANSFER_XORB_BODY_H

#include "base/buffer.h"
#include "client/transfer/upload_plan.h"

struct xorb_body;
/* The plan, the chunk lists it was made from and the files' paths, all borrowed. */
struct xorb_body *xorb_body_new(
	const struct upload_plan *plan, const struct file_chunks *files, const char *const *paths);
void xorb_body_free(struct xorb_body *body); /* NULL is fine */
/* *out: good until the next call. invalid when a file got shorter meanwhile. */
int xorb_body_make(struct xorb_body *body, size_t xorb, struct span *out, struct error *err);
/* Whether the chunks are in their files as they were when those were chunked: 0; invalid when a
 * file changed meanwhile. */
int xorb_body_check(struct xorb_body *body, size_t xorb, struct error *err);

#endif
