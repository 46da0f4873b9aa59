/* Unpacks one gzip member, over ISA-L. Any thread. */
#ifndef BASE_FORMAT_GUNZIP_H
#define BASE_FORMAT_GUNZIP_H

#include "base/buffer.h"

/* Appends the content to `out`, whose cap bounds it. invalid: `member` is not exactly one whole
 * member, or its checksum is wrong. too_large: the content is over the cap, or the member over 4
 * GiB. After a failure `out` holds part of the content. */
int gunzip(struct span member, struct buffer *out, struct error *err);

#endif
