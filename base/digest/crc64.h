/* CRC-64/NVME: reflected polynomial 9A6C9329AC4BC9B5, register inverted before and after (NVM
 * Express NVM Command Set, 64b CRC). Some 40 GB/s with AVX-512, 10 GB/s where the processor
 * multiplies without carry, 1.5 GB/s elsewhere. Any thread. */
#ifndef BASE_DIGEST_CRC64_H
#define BASE_DIGEST_CRC64_H

#include "base/span.h"

/* The CRC of what came before, whose CRC is `before` (0: nothing did), and `bytes`. */
uint64_t crc64_nvme(uint64_t before, struct span bytes);
/* The same by tables, on any machine. */
uint64_t crc64_nvme_portable(uint64_t before, struct span bytes);

#endif
