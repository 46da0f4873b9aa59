/* The cyclic checksums by number; the rest of the house uses base/digest/checksum.h. CRC32 and
 * CRC32C are ISA-L's. Any thread. */
#ifndef BASE_DIGEST_CHECKSUM_CRC_H
#define BASE_DIGEST_CHECKSUM_CRC_H

#include "base/digest/checksum.h"

/* The CRC of what came before, whose CRC is `before` (0: nothing did), and `bytes`. The algorithm
 * is one of the three. */
uint64_t checksum_crc(enum checksum_algorithm algorithm, uint64_t before, struct span bytes);

#endif
