/* The parts of XXH3 that take the time, in registers of 32 bytes: half the time of the
 * distribution's library, which is built for the oldest processor. base/digest/xxh3.c's alone. */
#ifndef BASE_DIGEST_XXH3_WIDE_H
#define BASE_DIGEST_XXH3_WIDE_H

#include "base/span.h"

bool xxh3_wide_works(void); /* here; otherwise the others must not be called */
uint64_t xxh3_wide_64(struct span bytes);
/* `state` is an XXH3_state_t of libxxhash, whose layout is part of its interface. */
void xxh3_wide_update(void *state, struct span bytes);

#endif
