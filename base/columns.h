/* Help texts in two columns: a name on the left, its meaning on the right, broken between words. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include "base/buffer.h"

enum { COLUMNS_LINE_BYTES = 100, COLUMNS_LEFT_MAX_BYTES = 34 };

/* Returns the width of the left column that fits `left` as well as the entries before. Entries
 * longer than COLUMNS_LEFT_MAX_BYTES do not count: they get a line of their own. */
size_t columns_widen(size_t width, const char *left);
/* Adds one entry; each of its lines ends with a newline. */
void columns_add(struct buffer *out, const char *left, size_t width, const char *right);

#endif
