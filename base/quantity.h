/* Sizes and durations as people write them, a number and a unit: "5GiB", "1.5 GB", "30s", "10min".
 * Read exactly or refused; without sign or exponent. Any thread. */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include "base/span.h"

/* Bytes: B, kB, MB, GB, TB, PB (powers of ten) and KiB, MiB, GiB, TiB, PiB or K, M, G, T, P (powers
 * of two). Seconds: ms, s, sec, min, m, h, d. Upper and lower case mean the same. */
enum quantity_kind { QUANTITY_BYTES, QUANTITY_SECONDS };

/* Gives the quantity in units of `scale` bytes or seconds (1: bytes, 1024: KiB, 3600: hours). A
 * number without a unit counts in these units too. False when the text is malformed, has a unit of
 * the other kind, is over 2^64, or is not a whole number of these units. `scale` is at least 1. */
bool quantity_parse(struct span text, enum quantity_kind kind, uint64_t scale, uint64_t *out);

/* "1.2 GB": a number of bytes for people, in powers of ten and rounded. */
enum { QUANTITY_TEXT_BYTES = 24 };
void quantity_format(uint64_t bytes, char out[QUANTITY_TEXT_BYTES]);

#endif
