/* The body that uploads a new xorb: its chunks are read from their files and encoded, each with the
 * codec that makes it smallest. The server checks the body against the xorb's hash, so the chunks
 * are not hashed again here; xorb_body_check finds the reason for a refusal. One thread at a time;
 * each thread has its own body, which uses up to 65 MiB of memory and serves one xorb after the
 * other. */
#ifndef CLIENT_TRANSFER_XORB_BODY_H
#define CLIENT_TRANSFER_XORB_BODY_H

#include "base/buffer.h"
#include "client/transfer/upload_plan.h"

struct xorb_body;
/* `plan`, the chunk lists that it was made from and the files' paths are borrowed. */
struct xorb_body *xorb_body_new(
	const struct upload_plan *plan, const struct file_chunks *files, const char *const *paths);
void xorb_body_free(struct xorb_body *body); /* NULL is fine */
/* *out is valid until the next call. invalid when a file became shorter meanwhile. */
int xorb_body_make(struct xorb_body *body, size_t xorb, struct span *out, struct error *err);
/* Checks that the files still have the chunks of the xorb: 0; -1 with invalid when a file has
 * changed. */
int xorb_body_check(struct xorb_body *body, size_t xorb, struct error *err);

#endif
