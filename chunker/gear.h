/* Where chunks end: the Xet gear hash (64 KiB target, 8 KiB to 128 KiB). Pure arithmetic over
 * pushed bytes; feeding in pieces of any size gives the same cuts. One thread at a time. */
#ifndef CHUNKER_GEAR_H
#define CHUNKER_GEAR_H

#include "base/span.h"

struct gear {
	uint64_t hash;
	size_t length; /* bytes of the current chunk so far */
};

void gear_init(struct gear *gear);
/* Looks for the end of the current chunk in `bytes`: the count of bytes up to and with it (and
 * starts anew), or 0 when all bytes belong to the current chunk and it goes on. */
size_t gear_next(struct gear *gear, struct span bytes);

#endif
