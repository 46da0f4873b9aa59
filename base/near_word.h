/* Finds the known word that a mistyped word may have meant. Lives on the caller's stack; borrows
 * its words. One thread at a time. */
#ifndef BASE_NEAR_WORD_H
#define BASE_NEAR_WORD_H

#include "base/span.h"

struct near_word {
	struct span given;
	const char *best; /* NULL: none is near */
	unsigned distance;
};

void near_word_begin(struct near_word *near, struct span given);
/* Keeps `word` when it is near enough and nearer than the words before. Near are words with up to a
 * third of their letters missing, added, wrong or swapped, and words that begin with `given`. */
void near_word_offer(struct near_word *near, const char *word);

/* Writes "; did you mean WORD?" to `out`, cut to its size, or "" when no word is near. Returns
 * `out`. */
enum { NEAR_WORD_HINT_BYTES = 96 };
const char *near_word_hint(const struct near_word *near, char out[NEAR_WORD_HINT_BYTES]);

#endif
