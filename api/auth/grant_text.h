/* The text form of grants. Pure; any thread. */
#ifndef API_AUTH_GRANT_TEXT_H
#define API_AUTH_GRANT_TEXT_H

#include "base/buffer.h"
#include "storage/buckets/account.h"

/* Parses one grant: "BUCKET[/PREFIX]=read,write,list,admin" or "metrics". Fails with invalid for
 * other texts. The spans of *out point into `text`. */
int grant_text_parse(struct span text, struct grant *out, struct error *err);
void grant_text_print(const struct grant *grant, struct buffer *out);

#endif
