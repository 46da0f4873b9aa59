/* Every place where a chunk may end, found for a stretch of content without what lies before it: a
 * cut depends on the 64 bytes before it alone. Which of them are cuts follows from where the chunk
 * begins, and takes no look at the bytes. So threads can look through a file side by side and still
 * cut it where chunker/gear.h does. Pure; any thread. */
#ifndef CHUNKER_GEAR_MARKS_H
#define CHUNKER_GEAR_MARKS_H

#include "base/span.h"

enum { GEAR_MARKS_BEFORE = 64 };

/* Words of a bitmap over `len` bytes. */
size_t gear_marks_words(size_t len);
/* Bit i of `marks` (gear_marks_words of them, all written): the chunk may end behind byte i. The
 * GEAR_MARKS_BEFORE bytes before bytes.data are read: those before them in the content, or anything
 * at all where the content begins (no chunk can end so early). */
void gear_marks_find(struct span bytes, uint64_t *marks);
/* The end of the chunk that began `before` bytes before the stretch or, when that is negative,
 * within it: the count of bytes of the stretch up to and with its last, or 0 when it goes on behind
 * the stretch. No part of the chunk before the stretch may be marked as an end of it. */
size_t gear_marks_end(const uint64_t *marks, size_t len, ptrdiff_t before);

#endif
