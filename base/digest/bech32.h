/* Bech32 (BIP 173), the text form of the keys of age, without its limit of 90 characters. Any
 * thread. */
#ifndef BASE_DIGEST_BECH32_H
#define BASE_DIGEST_BECH32_H

#include "base/buffer.h"

/* Appends the text of `bytes` in lower case: prefix, '1', and 5 bits in each character. `prefix` is
 * lower-case. */
void bech32_encode(const char *prefix, struct span bytes, struct buffer *out);
/* Accepts exactly `len` bytes under that prefix, in lower case or in upper case. False for mixed
 * case, another prefix, a wrong checksum, and padding that is not zero. */
bool bech32_decode(struct span text, const char *prefix, uint8_t *out, size_t len);

#endif
