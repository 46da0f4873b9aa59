/* Authenticated encryption of small secrets at rest (ChaCha20-Poly1305 over nettle, random 96-bit
 * nonce in front), and of tokens that are given out. Any thread. */
#ifndef BASE_DIGEST_SEAL_H
#define BASE_DIGEST_SEAL_H

#include "base/buffer.h"

enum { SEAL_KEY_BYTES = 32, SEAL_OVERHEAD_BYTES = 12 + 16 };

void seal(const uint8_t key[SEAL_KEY_BYTES], struct span plain, struct buffer *out);
/* corrupt when the key is another or a bit changed. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], struct span sealed, struct buffer *out,
	struct error *err);

enum { SEAL_TOKEN_OVERHEAD_BYTES = 32 };

/* Tokens are too many for random nonces, so their signature (HMAC-SHA256, behind the text) is the
 * nonce: equal texts make equal tokens. `purpose` tells kinds of tokens of one key apart. Adds the
 * token. */
void seal_token(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span plain,
	struct buffer *out);
/* False when it is not a token of this key and purpose, or longer than `capacity` when opened. */
bool seal_token_open(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span token,
	uint8_t *out, size_t capacity, size_t *out_len);

#endif
