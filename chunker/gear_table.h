/* The 256 words of the gear hash. Every Xet client uses this table; it never changes.
 * docs/FORMAT.md, "Chunks". */
#ifndef CHUNKER_GEAR_TABLE_H
#define CHUNKER_GEAR_TABLE_H

#include <stdint.h>

extern const uint64_t gear_table[256];

#endif
