/* Sizes and durations as people write them: a number and a unit, "5GiB", "1.5 GB", "30s", "10min".
 * Exact or refused; no sign, no exponent. Any thread. */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include "base/span.h"

/* Bytes: B, kB, MB, GB, TB, PB (powers of ten), KiB, MiB, GiB, TiB, PiB, and K, M, G, T, P for
 * these (powers of two); any case but for the difference of "i". Seconds: ms, s, sec, min, m, h,
 * d. */
enum quantity_kind { QUANTITY_BYTES, QUANTITY_SECONDS };

/* The quantity in units of `scale` bytes or seconds (1: bytes, 1024: KiB, 3600: hours); a number
 * alone counts in these units too. False: malformed, of another kind, over 2^64, or no whole number
 * of them. */
bool quantity_parse(struct span text, enum quantity_kind kind, uint64_t scale, uint64_t *out);

#endif
