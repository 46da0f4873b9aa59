/* The distance of two words is that of Damerau and Levenshtein in its restricted form (optimal
 * string alignment), from a table of all pairs of prefixes. Words are at most 40 bytes, so the
 * table lies on the stack. */
#include "base/near_word.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { WORD_MAX_BYTES = 40, FAR = 1000, BEGINNING_MIN_BYTES = 3 };

static unsigned distance(struct span a, struct span b);
static unsigned least(unsigned a, unsigned b, unsigned c);

void near_word_begin(struct near_word *near, struct span given)
{
	*near = (struct near_word){.given = given, .distance = FAR};
}

void near_word_offer(struct near_word *near, const char *word)
{
	ASSERT(word != NULL);
	const struct span candidate = span_text(word);
	const struct span given = near->given;
	if (given.len == 0 || given.len > WORD_MAX_BYTES || candidate.len > WORD_MAX_BYTES)
		return;
	const size_t longer = given.len > candidate.len ? given.len : candidate.len;
	const bool begins = given.len >= BEGINNING_MIN_BYTES && span_starts(candidate, given);
	const unsigned found = begins ? 1 : distance(given, candidate);
	const size_t allowed = longer <= 3 ? 1 : longer / 3;
	if (found > allowed || found >= longer || found >= near->distance)
		return;
	near->best = word;
	near->distance = found;
}

const char *near_word_hint(const struct near_word *near, char out[NEAR_WORD_HINT_BYTES])
{
	out[0] = '\0';
	if (near->best != NULL)
		snprintf(out, NEAR_WORD_HINT_BYTES, "; did you mean %s?", near->best);
	return out;
}

/* How many insertions, deletions, replacements and swaps of neighbours lead from one to the
 * other. */
static unsigned distance(struct span a, struct span b)
{
	ASSERT(a.len <= WORD_MAX_BYTES && b.len <= WORD_MAX_BYTES);
	unsigned table[WORD_MAX_BYTES + 1][WORD_MAX_BYTES + 1];
	for (size_t i = 0; i <= a.len; i++)
		table[i][0] = (unsigned)i;
	for (size_t j = 0; j <= b.len; j++)
		table[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.len; i++)
		for (size_t j = 1; j <= b.len; j++) {
			const bool same = a.data[i - 1] == b.data[j - 1];
			table[i][j] = least(table[i - 1][j] + 1, table[i][j - 1] + 1,
				table[i - 1][j - 1] + (same ? 0 : 1));
			const bool swapped = i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
				a.data[i - 2] == b.data[j - 1];
			if (swapped && table[i - 2][j - 2] + 1 < table[i][j])
				table[i][j] = table[i - 2][j - 2] + 1;
		}
	return table[a.len][b.len];
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	const unsigned less = a < b ? a : b;
	return less < c ? less : c;
}
