/* What one gzip member holds; over ISA-L. Any thread. */
#ifndef BASE_FORMAT_GUNZIP_H
#define BASE_FORMAT_GUNZIP_H

#include "base/buffer.h"

/* Appends the content to `out`, whose cap bounds it. invalid: not exactly one whole member, or its
 * checksum is wrong; too_large: the content is over the cap. After a failure `out` holds part of
 * it. */
int gunzip(struct span member, struct buffer *out, struct error *err);

#endif
