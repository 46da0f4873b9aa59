/* Grants as people write them. Pure; any thread. */
#ifndef API_AUTH_GRANT_TEXT_H
#define API_AUTH_GRANT_TEXT_H

#include "base/buffer.h"
#include "storage/buckets/account.h"

/* One grant as people write it, "BUCKET[/PREFIX]=read,write,list,admin", or "metrics": invalid
 * otherwise. Spans point into `text`. */
int grant_text_parse(struct span text, struct grant *out, struct error *err);
void grant_text_print(const struct grant *grant, struct buffer *out);

#endif
