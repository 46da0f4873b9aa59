/* The expensive parts of XXH3 in registers of 32 bytes. They take half the time of the
 * distribution's library, which is built for the oldest processor. Only base/digest/xxh3.c uses
 * them. */
#ifndef BASE_DIGEST_XXH3_WIDE_H
#define BASE_DIGEST_XXH3_WIDE_H

#include "base/span.h"

bool xxh3_wide_works(void); /* on this machine; if not, the calls below are forbidden */
uint64_t xxh3_wide_64(struct span bytes);
/* `state` is an XXH3_state_t of libxxhash, whose layout is part of its interface. */
void xxh3_wide_update(void *state, struct span bytes);

#endif
