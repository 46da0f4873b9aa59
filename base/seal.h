/* Authenticated encryption of small secrets at rest (ChaCha20-Poly1305 over nettle, random 96-bit nonce in front). Any thread. */
#ifndef BASE_SEAL_H
#define BASE_SEAL_H

#include "base/buffer.h"

enum { SEAL_KEY_BYTES = 32, SEAL_OVERHEAD_BYTES = 12 + 16 };

void seal(const uint8_t key[SEAL_KEY_BYTES], struct span plain, struct buffer *out);
/* corrupt when the key is another or a bit changed. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], struct span sealed, struct buffer *out, struct error *err);

#endif
