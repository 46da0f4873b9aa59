/* Finds where chunks end, with the Xet gear hash: 8 KiB to 128 KiB, 64 KiB as the target. Pure
 * arithmetic over pushed bytes; the size of the pieces does not change the cuts. One thread at a
 * time. */
#ifndef CHUNKER_GEAR_H
#define CHUNKER_GEAR_H

#include "base/span.h"

struct gear {
	uint64_t hash;
	size_t length; /* bytes of the current chunk so far */
};

void gear_init(struct gear *gear);
/* Looks for the end of the current chunk in `bytes`. Returns the count of bytes up to the end and
 * begins a new chunk, or returns 0 when the current chunk takes all bytes and goes on. */
size_t gear_next(struct gear *gear, struct span bytes);

#endif
