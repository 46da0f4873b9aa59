/* How often secrets may be guessed at the console's sign-in: GUESS_BURST times by one address for
 * one key, then once in GUESS_PAUSE_MS; by one address for all keys six times as often. What other
 * addresses do is not counted, so nobody can lock out somebody else. A right guess costs nothing.
 *
 * The table has a fixed size; when it is full, what was idle for the longest time is forgotten.
 * Internally locked; any thread. */
#ifndef API_AUTH_GUESS_LIMIT_H
#define API_AUTH_GUESS_LIMIT_H

#include "base/clock.h"

enum { GUESS_BURST = 10, GUESS_PAUSE_MS = 6000 };

struct guess_limit;
struct guess_limit *guess_limit_new(const struct clock_source *clock);
void guess_limit_free(struct guess_limit *limit); /* NULL is fine */
/* Counts a guess by the address (a hash) at the key. Returns 0, or the seconds after which the next
 * one may come; then this one must not be judged. NULL allows all. */
unsigned guess_limit_take(struct guess_limit *limit, uint64_t peer, struct span key_id);
/* The guess was right: takes back what guess_limit_take counted. */
void guess_limit_give(struct guess_limit *limit, uint64_t peer, struct span key_id);

#endif
