/* Which of the known words a mistyped one may have meant. On the caller's stack; borrows its
 * words. */
#ifndef BASE_NEAR_WORD_H
#define BASE_NEAR_WORD_H

#include "base/span.h"

struct near_word {
	struct span given;
	const char *best; /* NULL: none is near */
	unsigned distance;
};

void near_word_begin(struct near_word *near, struct span given);
/* Keeps `word` when it is near enough and nearer than those before: letters missing, too many,
 * wrong or swapped, up to a third of them; or `given` is how it begins. */
void near_word_offer(struct near_word *near, const char *word);

/* "; did you mean WORD?", or "" where none is near. In `out`, cut to its size. */
enum { NEAR_WORD_HINT_BYTES = 96 };
const char *near_word_hint(const struct near_word *near, char out[NEAR_WORD_HINT_BYTES]);

#endif
