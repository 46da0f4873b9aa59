/* The three CRCs as plain numbers. Other rooms use base/digest/checksum.h. ISA-L computes CRC32 and
 * CRC32C. Any thread. */
#ifndef BASE_DIGEST_CHECKSUM_CRC_H
#define BASE_DIGEST_CHECKSUM_CRC_H

#include "base/digest/checksum.h"

/* Continues a CRC: `before` is that of the bytes before `bytes` (0: there were none). `algorithm`
 * is one of the three CRCs. */
uint64_t checksum_crc(enum checksum_algorithm algorithm, uint64_t before, struct span bytes);

#endif
