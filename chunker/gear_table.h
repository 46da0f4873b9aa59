/* The 256 words of the gear hash: the table every Xet client uses, fixed for ever. docs/FORMAT.md,
 * "Chunks". */
#ifndef CHUNKER_GEAR_TABLE_H
#define CHUNKER_GEAR_TABLE_H

#include <stdint.h>

extern const uint64_t gear_table[256];

#endif
