/* Marks every place of a stretch of content where a chunk may end. A place depends on the 64 bytes
 * before it alone, so the content before the stretch is not needed. Which places are cuts depends
 * on where the chunk begins, and is then found from the marks without the bytes. So threads can
 * search the stretches of a file side by side and still cut it where chunker/gear.h does. Pure; any
 * thread. */
#ifndef CHUNKER_GEAR_MARKS_H
#define CHUNKER_GEAR_MARKS_H

#include "base/span.h"

enum { GEAR_MARKS_BEFORE = 64 };

/* The count of words of a bitmap over `len` bytes. */
size_t gear_marks_words(size_t len);
/* Writes all gear_marks_words(bytes.len) words of `marks`: bit i is set when a chunk may end behind
 * byte i. Reads the GEAR_MARKS_BEFORE bytes before bytes.data too. They must be the bytes before
 * the stretch; where the content begins they may be anything, because no chunk ends so early. */
void gear_marks_find(struct span bytes, uint64_t *marks);
/* The end of the chunk that begins `before` bytes before the stretch, or -before bytes within it
 * when `before` is negative. Returns the count of bytes of the stretch up to that end, or 0 when
 * the chunk goes on behind the stretch. The chunk must not have an end before the stretch. */
size_t gear_marks_end(const uint64_t *marks, size_t len, ptrdiff_t before);

#endif
