/* A new xorb of an upload as it is sent: its chunks read from their files, each proven to be what it was when the file was chunked, each in the codec that
 * makes it smallest. One thread at a time; each has its own. */
#ifndef CLIENT_XORB_BODY_H
#define CLIENT_XORB_BODY_H

#include "base/buffer.h"
#include "client/upload_plan.h"

struct xorb_body;
/* The plan, the chunk lists it was made from and the files' paths, all borrowed. */
struct xorb_body *xorb_body_new(const struct upload_plan *plan, const struct file_chunks *files, const char *const *paths);
void xorb_body_free(struct xorb_body *body); /* NULL is fine */
/* Fills `out`, which is empty and may hold XORB_BODY_MAX_BYTES. invalid when a file changed meanwhile. */
int xorb_body_make(struct xorb_body *body, size_t xorb, struct buffer *out, struct error *err);

#endif
