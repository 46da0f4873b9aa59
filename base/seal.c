/* A sealed text is nonce, ciphertext, tag. Nonces are random: with 96 bits and the few secrets of a catalog they do not meet. */
#include "base/seal.h"

#include <nettle/chacha-poly1305.h>
#include <string.h>

#include "base/random.h"

enum { NONCE_BYTES = CHACHA_POLY1305_NONCE_SIZE, TAG_BYTES = CHACHA_POLY1305_DIGEST_SIZE };
_Static_assert(SEAL_KEY_BYTES == CHACHA_POLY1305_KEY_SIZE && SEAL_OVERHEAD_BYTES == NONCE_BYTES + TAG_BYTES, "sizes of the cipher");

void seal(const uint8_t key[SEAL_KEY_BYTES], const struct span plain, struct buffer *const out)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t *const nonce = buffer_reserve(out, plain.len + SEAL_OVERHEAD_BYTES);
	if (nonce == NULL)
		return;
	uint8_t *const text = nonce + NONCE_BYTES;
	random_bytes(nonce, NONCE_BYTES);
	chacha_poly1305_set_key(&cipher, key);
	chacha_poly1305_set_nonce(&cipher, nonce);
	if (plain.len > 0)
		chacha_poly1305_encrypt(&cipher, plain.len, text, plain.data);
	chacha_poly1305_digest(&cipher, TAG_BYTES, text + plain.len);
	buffer_commit(out, plain.len + SEAL_OVERHEAD_BYTES);
	explicit_bzero(&cipher, sizeof cipher);
}

/* The plain text becomes part of `out` only once the tag has proven it. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], const struct span sealed, struct buffer *const out, struct error *const err)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t tag[TAG_BYTES];
	if (sealed.len < SEAL_OVERHEAD_BYTES)
		return error_set(err, ERROR_CORRUPT, "the sealed secret has %zu bytes, fewer than the seal itself", sealed.len);
	const size_t len = sealed.len - SEAL_OVERHEAD_BYTES;
	uint8_t *const plain = buffer_reserve(out, len);
	if (plain == NULL)
		return buffer_check(out, "the opened secret", err);
	chacha_poly1305_set_key(&cipher, key);
	chacha_poly1305_set_nonce(&cipher, sealed.data);
	if (len > 0)
		chacha_poly1305_decrypt(&cipher, len, plain, sealed.data + NONCE_BYTES);
	chacha_poly1305_digest(&cipher, TAG_BYTES, tag);
	explicit_bzero(&cipher, sizeof cipher);
	if (!span_equal_secret(span_of(tag, TAG_BYTES), span_slice(sealed, NONCE_BYTES + len, TAG_BYTES))) {
		explicit_bzero(plain, len);
		return error_set(err, ERROR_CORRUPT, "the sealed secret was made with another key or has changed");
	}
	buffer_commit(out, len);
	return 0;
}
