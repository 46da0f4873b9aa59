/* Help texts: a name on the left, what it means on the right, broken between words. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include "base/buffer.h"

enum { COLUMNS_LINE_BYTES = 100, COLUMNS_LEFT_MAX_BYTES = 34 };

/* How wide the left column has to be for `left` beside the others; longer ones than
 * COLUMNS_LEFT_MAX_BYTES get a line of their own. */
size_t columns_widen(size_t width, const char *left);
/* One entry; its lines end in a newline. */
void columns_add(struct buffer *out, const char *left, size_t width, const char *right);

#endif
