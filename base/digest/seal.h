/* Authenticated encryption of small secrets at rest (ChaCha20-Poly1305 over nettle, with a random
 * 96-bit nonce in front), and of tokens for clients. Any thread. */
#ifndef BASE_DIGEST_SEAL_H
#define BASE_DIGEST_SEAL_H

#include "base/buffer.h"

enum { SEAL_KEY_BYTES = 32, SEAL_OVERHEAD_BYTES = 12 + 16 };

void seal(const uint8_t key[SEAL_KEY_BYTES], struct span plain, struct buffer *out);
/* corrupt when the key is not the right one or a bit has changed. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], struct span sealed, struct buffer *out,
	struct error *err);

enum { SEAL_TOKEN_OVERHEAD_BYTES = 32 };

/* There are too many tokens for random nonces, so the signature of a token (HMAC-SHA256, after the
 * text) is its nonce: equal texts make equal tokens. `purpose` separates kinds of tokens under one
 * key. Appends the token to `out`. */
void seal_token(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span plain,
	struct buffer *out);
/* False when it is not a token of this key and purpose, or when its text does not fit into
 * `capacity`. */
bool seal_token_open(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span token,
	uint8_t *out, size_t capacity, size_t *out_len);

#endif
