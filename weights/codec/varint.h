/* Numbers of one to five bytes: seven bits in each, the lowest first; the top bit says that more
 * bytes follow. Any thread. */
#ifndef WEIGHTS_CODEC_VARINT_H
#define WEIGHTS_CODEC_VARINT_H

#include "base/span.h"

enum { VARINT_BYTES_MAX = 5 };

/* Returns the count of bytes written. */
size_t varint_write(uint32_t value, uint8_t into[VARINT_BYTES_MAX]);
/* Takes a number off the front. False when it is cut off, longer than necessary, or over 32
 * bits. */
bool varint_read(struct span *rest, uint32_t *out_value);

#endif
