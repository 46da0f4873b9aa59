/* A sealed text is nonce, ciphertext, tag. Nonces are random: with 96 bits and the few secrets of a
 * catalog they do not repeat. A token is ciphertext and signature, and its key stream follows from
 * the signature. */
#include "base/digest/seal.h"

#include <nettle/chacha-poly1305.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/random.h"

enum { NONCE_BYTES = CHACHA_POLY1305_NONCE_SIZE, TAG_BYTES = CHACHA_POLY1305_DIGEST_SIZE };
_Static_assert(SEAL_KEY_BYTES == CHACHA_POLY1305_KEY_SIZE &&
		SEAL_OVERHEAD_BYTES == NONCE_BYTES + TAG_BYTES,
	"sizes of the cipher");

/* One key signs, the other encrypts. */
struct token_keys {
	uint8_t sign[SHA256_BYTES];
	uint8_t hide[SHA256_BYTES];
};
_Static_assert(
	SHA256_BYTES == CHACHA_KEY_SIZE && (int)SHA256_BYTES == (int)SEAL_TOKEN_OVERHEAD_BYTES,
	"a digest is a key and a signature");

static void derive_keys(
	const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct token_keys *out);
static void mask(const struct token_keys *keys, const uint8_t signature[SHA256_BYTES],
	struct span from, uint8_t *to);

void seal(const uint8_t key[SEAL_KEY_BYTES], struct span plain, struct buffer *out)
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
	explicit_bzero(&cipher, sizeof(cipher));
}

/* The plain text becomes part of `out` only after the tag has proven it. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], struct span sealed, struct buffer *out,
	struct error *err)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t tag[TAG_BYTES];
	if (sealed.len < SEAL_OVERHEAD_BYTES)
		return error_set(err, ERROR_CORRUPT,
			"the sealed secret has %zu bytes, fewer than the seal itself", sealed.len);
	const size_t len = sealed.len - SEAL_OVERHEAD_BYTES;
	uint8_t *const plain = buffer_reserve(out, len);
	if (plain == NULL)
		return buffer_check(out, "the opened secret", err);
	chacha_poly1305_set_key(&cipher, key);
	chacha_poly1305_set_nonce(&cipher, sealed.data);
	if (len > 0)
		chacha_poly1305_decrypt(&cipher, len, plain, sealed.data + NONCE_BYTES);
	chacha_poly1305_digest(&cipher, TAG_BYTES, tag);
	explicit_bzero(&cipher, sizeof(cipher));
	if (!span_equal_secret(
		    span_of(tag, TAG_BYTES), span_slice(sealed, NONCE_BYTES + len, TAG_BYTES))) {
		explicit_bzero(plain, len);
		return error_set(err, ERROR_CORRUPT,
			"the sealed secret was made with another key or has changed");
	}
	buffer_commit(out, len);
	return 0;
}

void seal_token(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span plain,
	struct buffer *out)
{
	struct token_keys keys;
	uint8_t *const text = buffer_reserve(out, plain.len + SHA256_BYTES);
	if (text == NULL)
		return;
	derive_keys(key, purpose, &keys);
	hmac_sha256(span_of(keys.sign, sizeof(keys.sign)), plain, text + plain.len);
	mask(&keys, text + plain.len, plain, text);
	buffer_commit(out, plain.len + SHA256_BYTES);
	explicit_bzero(&keys, sizeof(keys));
}

bool seal_token_open(const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct span token,
	uint8_t *out, size_t capacity, size_t *out_len)
{
	struct token_keys keys;
	uint8_t expected[SHA256_BYTES];
	if (token.len < SHA256_BYTES || token.len - SHA256_BYTES > capacity)
		return false;
	const size_t len = token.len - SHA256_BYTES;
	derive_keys(key, purpose, &keys);
	mask(&keys, token.data + len, span_slice(token, 0, len), out);
	hmac_sha256(span_of(keys.sign, sizeof(keys.sign)), span_of(out, len), expected);
	explicit_bzero(&keys, sizeof(keys));
	*out_len = len;
	if (span_equal_secret(span_of(expected, SHA256_BYTES), span_slice(token, len, token.len)))
		return true;
	explicit_bzero(out, len);
	return false;
}

static void derive_keys(
	const uint8_t key[SEAL_KEY_BYTES], const char *purpose, struct token_keys *out)
{
	ASSERT(purpose != NULL && purpose[0] != '\0');
	uint8_t own[SHA256_BYTES];
	hmac_sha256(span_of(key, SEAL_KEY_BYTES), span_text(purpose), own);
	hmac_sha256(span_of(own, sizeof(own)), span_text("sign"), out->sign);
	hmac_sha256(span_of(own, sizeof(own)), span_text("hide"), out->hide);
	explicit_bzero(own, sizeof(own));
}

/* The key of the stream depends on the whole signature, so the stream's own nonce can be
 * constant. */
static void mask(const struct token_keys *keys, const uint8_t signature[SHA256_BYTES],
	struct span from, uint8_t *to)
{
	static const uint8_t nonce[CHACHA_NONCE_SIZE] = {0};
	struct chacha_ctx cipher;
	uint8_t key[SHA256_BYTES];
	hmac_sha256(span_of(keys->hide, sizeof(keys->hide)), span_of(signature, SHA256_BYTES), key);
	chacha_set_key(&cipher, key);
	chacha_set_nonce(&cipher, nonce);
	if (from.len > 0)
		chacha_crypt(&cipher, from.len, to, from.data);
	explicit_bzero(&cipher, sizeof(cipher));
	explicit_bzero(key, sizeof(key));
}
