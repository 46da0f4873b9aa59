/* The tables that base/digest/crc64.c uses where the processor has no carry-less multiplication:
 * `crc64_table[k][n]` is the register after the byte n and k zero bytes, for the reflected
 * polynomial 9A6C9329AC4BC9B5. */
#ifndef BASE_DIGEST_CRC64_TABLE_H
#define BASE_DIGEST_CRC64_TABLE_H

#include <stdint.h>

extern const uint64_t crc64_table[8][256];

#endif
