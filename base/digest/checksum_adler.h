/* Adler-32, the weakest checksum that weight deltas carry; over ISA-L. Any thread. */
#ifndef BASE_DIGEST_CHECKSUM_ADLER_H
#define BASE_DIGEST_CHECKSUM_ADLER_H

#include "base/span.h"

#define ADLER32_SEED UINT32_C(1)

/* Continues a checksum: `so_far` is that of the bytes before `bytes` (ADLER32_SEED: there were
 * none). */
uint32_t checksum_adler32(uint32_t so_far, struct span bytes);

#endif
