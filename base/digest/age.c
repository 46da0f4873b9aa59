/* A file of age is a header and a payload. The header has the file key, wrapped for each recipient
 * in a stanza, and a MAC under that key. The payload is a nonce and chunks of 64 KiB, each sealed
 * with its number, and the last one with a mark, so that none can be cut off.
 *
 *     age-encryption.org/v1
 *     -> X25519 SHARE
 *     WRAPPED
 *     --- MAC
 *     NONCE CHUNK... */
#include "base/digest/age.h"

#include <nettle/chacha-poly1305.h>
#include <nettle/curve25519.h>
#include <string.h>

#include "base/digest/bech32.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/random.h"

enum {
	FILE_KEY_BYTES = 16,
	TAG_BYTES = CHACHA_POLY1305_DIGEST_SIZE,
	NONCE_BYTES = CHACHA_POLY1305_NONCE_SIZE,
	WRAPPED_BYTES = FILE_KEY_BYTES + TAG_BYTES,
	PAYLOAD_NONCE_BYTES = 16,
	CHUNK_BYTES = 64 * 1024,
	TEXT_BYTES = 43, /* 32 bytes in base64 without padding */
	HEADER_MAX_BYTES = 64 * 1024
};
_Static_assert(AGE_KEY_BYTES == CURVE25519_SIZE && AGE_KEY_BYTES == CHACHA_POLY1305_KEY_SIZE &&
		(int)AGE_KEY_BYTES == (int)SHA256_BYTES && WRAPPED_BYTES == 32,
	"sizes of the keys");

static const char TITLE[] = "age-encryption.org/v1\n";
static const char STANZA[] = "-> X25519 ";
static const char END[] = "--- ";
static const char RECIPIENT_PREFIX[] = "age";
static const char IDENTITY_PREFIX[] = "age-secret-key-";

struct age_header { /* as it was read */
	struct span signed_bytes;
	uint8_t mac[SHA256_BYTES];
	struct span payload;
};

static void derive(
	struct span secret, struct span salt, const char *info, uint8_t out[SHA256_BYTES]);
static bool wrap_key(const uint8_t own[AGE_KEY_BYTES], const uint8_t other[AGE_KEY_BYTES],
	struct span salt, uint8_t out[AGE_KEY_BYTES]);
static void add_header(const struct age_recipient *recipient,
	const uint8_t file_key[FILE_KEY_BYTES], struct buffer *out);
static void add_base64(const uint8_t bytes[32], struct buffer *out);
static bool read_base64(struct span text, uint8_t out[32]);
static void sign_header(
	const uint8_t file_key[FILE_KEY_BYTES], struct span header, uint8_t out[SHA256_BYTES]);
static void add_payload(
	const uint8_t file_key[FILE_KEY_BYTES], struct span plain, struct buffer *out);
static void begin_chunk(struct chacha_poly1305_ctx *cipher, uint64_t number, bool is_last);
static bool read_header(struct span sealed, struct age_header *out);
static bool take_line(struct span *rest, struct span *out_line);
static bool find_key(
	const struct age_identities *identities, struct span header, uint8_t out[FILE_KEY_BYTES]);
static bool unwrap(const struct age_identities *identities, struct span share_text,
	struct span wrapped_text, uint8_t out[FILE_KEY_BYTES]);
static bool unwrap_with(const uint8_t identity[AGE_KEY_BYTES], const uint8_t share[AGE_KEY_BYTES],
	const uint8_t wrapped[WRAPPED_BYTES], uint8_t out[FILE_KEY_BYTES]);
static bool open_payload(const uint8_t file_key[FILE_KEY_BYTES], struct span payload, uint8_t *out);

int age_recipient_parse(struct span text, struct age_recipient *out, struct error *err)
{
	if (bech32_decode(text, RECIPIENT_PREFIX, out->key, sizeof(out->key)))
		return 0;
	return error_set(err, ERROR_INVALID,
		"'%.*s' is not a public key of age, which begins with age1 and has 62 characters.",
		(int)(text.len < 80 ? text.len : 80), (const char *)text.data);
}

/* The message does not show what may be a secret with one wrong letter. */
int age_identities_parse(struct span text, struct age_identities *out, struct error *err)
{
	struct span line;
	*out = (struct age_identities){.count = 0};
	while (span_split(&text, '\n', &line)) {
		line = span_trim(line);
		while (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0 || line.data[0] == '#')
			continue;
		if (out->count == AGE_IDENTITIES_MAX ||
			!bech32_decode(line, IDENTITY_PREFIX, out->keys[out->count], AGE_KEY_BYTES))
			return error_set(err, ERROR_INVALID,
				"A line of the identity file is not an AGE-SECRET-KEY-1..., as age-keygen writes"
				" it, or there are more than %d.",
				AGE_IDENTITIES_MAX);
		out->count++;
	}
	return out->count > 0 ? 0 : error_set(err, ERROR_INVALID, "The identity file has no key.");
}

void age_identities_wipe(struct age_identities *identities)
{
	explicit_bzero(identities, sizeof(*identities));
}

void age_identity_recipient(
	const struct age_identities *identities, size_t number, struct age_recipient *out)
{
	ASSERT(number < identities->count);
	curve25519_mul_g(out->key, identities->keys[number]);
}

void age_recipient_print(const struct age_recipient *recipient, char out[AGE_RECIPIENT_BYTES])
{
	struct buffer text;
	buffer_init(&text, AGE_RECIPIENT_BYTES);
	bech32_encode(RECIPIENT_PREFIX, span_of(recipient->key, sizeof(recipient->key)), &text);
	memcpy(out, buffer_text(&text), text.len + 1);
	buffer_release(&text);
}

uint64_t age_sealed_bytes(uint64_t plain)
{
	const uint64_t header =
		sizeof(TITLE) - 1 + sizeof(STANZA) - 1 + sizeof(END) - 1 + 3 * (TEXT_BYTES + 1);
	const uint64_t chunks = plain == 0 ? 1 : (plain + CHUNK_BYTES - 1) / CHUNK_BYTES;
	return header + PAYLOAD_NONCE_BYTES + plain + chunks * TAG_BYTES;
}

void age_seal(const struct age_recipient *recipient, struct span plain, struct buffer *out)
{
	uint8_t file_key[FILE_KEY_BYTES];
	random_bytes(file_key, sizeof(file_key));
	add_header(recipient, file_key, out);
	add_payload(file_key, plain, out);
	explicit_bzero(file_key, sizeof(file_key));
}

int age_open(const struct age_identities *identities, struct span sealed, struct buffer *out,
	struct error *err)
{
	struct age_header header;
	uint8_t file_key[FILE_KEY_BYTES];
	uint8_t mac[SHA256_BYTES];
	if (!read_header(sealed, &header))
		return error_set(err, ERROR_CORRUPT, "It is not a file of age.");
	if (!find_key(identities, header.signed_bytes, file_key))
		return error_set(err, ERROR_DENIED,
			"It is encrypted to another key than those of the identity file.");
	sign_header(file_key, header.signed_bytes, mac);
	uint8_t *const room = buffer_reserve(out, header.payload.len);
	bool is_right = room != NULL &&
		span_equal_secret(span_of(mac, sizeof(mac)), span_of(header.mac, sizeof(mac))) &&
		open_payload(file_key, header.payload, room);
	explicit_bzero(file_key, sizeof(file_key));
	if (room == NULL)
		return buffer_check(out, "the decrypted text", err);
	if (!is_right)
		return error_set(err, ERROR_CORRUPT, "It is damaged: it does not decrypt.");
	const uint64_t left = header.payload.len - PAYLOAD_NONCE_BYTES;
	const uint64_t sealed_chunk = CHUNK_BYTES + TAG_BYTES;
	buffer_commit(out, (size_t)(left - (left + sealed_chunk - 1) / sealed_chunk * TAG_BYTES));
	return 0;
}

/* HKDF with SHA-256, of one block. */
static void derive(
	struct span secret, struct span salt, const char *info, uint8_t out[SHA256_BYTES])
{
	static const uint8_t none[SHA256_BYTES];
	uint8_t extracted[SHA256_BYTES];
	uint8_t message[64];
	const size_t len = strlen(info);
	ASSERT(len < sizeof(message));
	memcpy(message, info, len);
	message[len] = 1;
	hmac_sha256(salt.len > 0 ? salt : span_of(none, sizeof(none)), secret, extracted);
	hmac_sha256(span_of(extracted, sizeof(extracted)), span_of(message, len + 1), out);
	explicit_bzero(extracted, sizeof(extracted));
}

/* False for a point that gives everybody the same secret. */
static bool wrap_key(const uint8_t own[AGE_KEY_BYTES], const uint8_t other[AGE_KEY_BYTES],
	struct span salt, uint8_t out[AGE_KEY_BYTES])
{
	static const uint8_t none[AGE_KEY_BYTES];
	uint8_t shared[AGE_KEY_BYTES];
	curve25519_mul(shared, own, other);
	const bool is_sound =
		!span_equal_secret(span_of(shared, sizeof(shared)), span_of(none, sizeof(none)));
	derive(span_of(shared, sizeof(shared)), salt, "age-encryption.org/v1/X25519", out);
	explicit_bzero(shared, sizeof(shared));
	return is_sound;
}

static void add_header(const struct age_recipient *recipient,
	const uint8_t file_key[FILE_KEY_BYTES], struct buffer *out)
{
	static const uint8_t nonce[NONCE_BYTES];
	struct chacha_poly1305_ctx cipher;
	uint8_t own[AGE_KEY_BYTES];
	uint8_t salt[2 * AGE_KEY_BYTES]; /* the share and the recipient */
	uint8_t key[AGE_KEY_BYTES];
	uint8_t wrapped[WRAPPED_BYTES];
	const size_t begin = out->len;
	random_bytes(own, sizeof(own));
	curve25519_mul_g(salt, own);
	memcpy(salt + AGE_KEY_BYTES, recipient->key, AGE_KEY_BYTES);
	(void)wrap_key(own, recipient->key, span_of(salt, sizeof(salt)), key);
	chacha_poly1305_set_key(&cipher, key);
	chacha_poly1305_set_nonce(&cipher, nonce);
	chacha_poly1305_encrypt(&cipher, FILE_KEY_BYTES, wrapped, file_key);
	chacha_poly1305_digest(&cipher, TAG_BYTES, wrapped + FILE_KEY_BYTES);
	buffer_add_text(out, TITLE);
	buffer_add_text(out, STANZA);
	add_base64(salt, out);
	buffer_add_byte(out, '\n');
	add_base64(wrapped, out);
	buffer_add_text(out, "\n---");
	if (!buffer_failed(out))
		sign_header(file_key, span_slice(buffer_span(out), begin, out->len), key);
	buffer_add_byte(out, ' ');
	add_base64(key, out);
	buffer_add_byte(out, '\n');
	explicit_bzero(own, sizeof(own));
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&cipher, sizeof(cipher));
}

static void add_base64(const uint8_t bytes[32], struct buffer *out)
{
	struct buffer text;
	buffer_init(&text, TEXT_BYTES + 2);
	encode_base64(span_of(bytes, 32), &text);
	buffer_add_span(out, span_slice(buffer_span(&text), 0, TEXT_BYTES));
	buffer_release(&text);
}

static bool read_base64(struct span text, uint8_t out[32])
{
	uint8_t padded[TEXT_BYTES + 1];
	size_t len = 0;
	if (text.len != TEXT_BYTES)
		return false;
	memcpy(padded, text.data, TEXT_BYTES);
	padded[TEXT_BYTES] = '=';
	return decode_base64(span_of(padded, sizeof(padded)), out, 32, &len) && len == 32;
}

static void sign_header(
	const uint8_t file_key[FILE_KEY_BYTES], struct span header, uint8_t out[SHA256_BYTES])
{
	uint8_t key[SHA256_BYTES];
	derive(span_of(file_key, FILE_KEY_BYTES), span_of(NULL, 0), "header", key);
	hmac_sha256(span_of(key, sizeof(key)), header, out);
	explicit_bzero(key, sizeof(key));
}

static void add_payload(
	const uint8_t file_key[FILE_KEY_BYTES], struct span plain, struct buffer *out)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t nonce[PAYLOAD_NONCE_BYTES];
	uint8_t key[AGE_KEY_BYTES];
	random_bytes(nonce, sizeof(nonce));
	buffer_add(out, nonce, sizeof(nonce));
	derive(span_of(file_key, FILE_KEY_BYTES), span_of(nonce, sizeof(nonce)), "payload", key);
	chacha_poly1305_set_key(&cipher, key);
	uint64_t number = 0;
	do {
		const struct span chunk = span_slice(plain, 0, CHUNK_BYTES);
		plain = span_slice(plain, chunk.len, plain.len);
		uint8_t *const into = buffer_reserve(out, chunk.len + TAG_BYTES);
		if (into == NULL)
			break;
		begin_chunk(&cipher, number++, plain.len == 0);
		chacha_poly1305_encrypt(&cipher, chunk.len, into, chunk.data);
		chacha_poly1305_digest(&cipher, TAG_BYTES, into + chunk.len);
		buffer_commit(out, chunk.len + TAG_BYTES);
	} while (plain.len > 0);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&cipher, sizeof(cipher));
}

static void begin_chunk(struct chacha_poly1305_ctx *cipher, uint64_t number, bool is_last)
{
	uint8_t nonce[NONCE_BYTES] = {0};
	for (int i = 0; i < 8; i++)
		nonce[NONCE_BYTES - 2 - i] = (uint8_t)(number >> (8 * i));
	nonce[NONCE_BYTES - 1] = is_last ? 1 : 0;
	chacha_poly1305_set_nonce(cipher, nonce);
}

static bool read_header(struct span sealed, struct age_header *out)
{
	struct span rest = span_slice(sealed, 0, HEADER_MAX_BYTES);
	struct span line;
	if (!span_starts(rest, span_text(TITLE)))
		return false;
	while (take_line(&rest, &line)) {
		if (!span_starts(line, span_text(END)))
			continue;
		const size_t end = (size_t)(line.data - sealed.data);
		out->signed_bytes = span_slice(sealed, 0, end + sizeof(END) - 2);
		out->payload = span_slice(sealed, end + line.len + 1, sealed.len);
		return out->payload.len >= PAYLOAD_NONCE_BYTES + TAG_BYTES &&
			read_base64(span_slice(line, sizeof(END) - 1, line.len), out->mac);
	}
	return false;
}

/* False when no line feed follows. */
static bool take_line(struct span *rest, struct span *out_line)
{
	const ptrdiff_t end = span_find(*rest, '\n');
	if (end < 0)
		return false;
	*out_line = span_slice(*rest, 0, (size_t)end);
	*rest = span_slice(*rest, (size_t)end + 1, rest->len);
	return true;
}

/* Stanzas of other kinds are passed over: a body ends with a line of less than 64 characters, and
 * no such line looks like the beginning of a stanza. */
static bool find_key(
	const struct age_identities *identities, struct span header, uint8_t out[FILE_KEY_BYTES])
{
	struct span line;
	struct span body;
	while (take_line(&header, &line))
		if (span_starts(line, span_text(STANZA)) && take_line(&header, &body) &&
			unwrap(identities, span_slice(line, sizeof(STANZA) - 1, line.len), body,
				out))
			return true;
	return false;
}

static bool unwrap(const struct age_identities *identities, struct span share_text,
	struct span wrapped_text, uint8_t out[FILE_KEY_BYTES])
{
	uint8_t share[AGE_KEY_BYTES];
	uint8_t wrapped[WRAPPED_BYTES];
	if (!read_base64(share_text, share) || !read_base64(wrapped_text, wrapped))
		return false;
	for (size_t i = 0; i < identities->count; i++)
		if (unwrap_with(identities->keys[i], share, wrapped, out))
			return true;
	return false;
}

static bool unwrap_with(const uint8_t identity[AGE_KEY_BYTES], const uint8_t share[AGE_KEY_BYTES],
	const uint8_t wrapped[WRAPPED_BYTES], uint8_t out[FILE_KEY_BYTES])
{
	static const uint8_t nonce[NONCE_BYTES];
	struct chacha_poly1305_ctx cipher;
	uint8_t salt[2 * AGE_KEY_BYTES];
	uint8_t key[AGE_KEY_BYTES];
	uint8_t tag[TAG_BYTES];
	memcpy(salt, share, AGE_KEY_BYTES);
	curve25519_mul_g(salt + AGE_KEY_BYTES, identity);
	const bool is_sound = wrap_key(identity, share, span_of(salt, sizeof(salt)), key);
	chacha_poly1305_set_key(&cipher, key);
	chacha_poly1305_set_nonce(&cipher, nonce);
	chacha_poly1305_decrypt(&cipher, FILE_KEY_BYTES, out, wrapped);
	chacha_poly1305_digest(&cipher, TAG_BYTES, tag);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&cipher, sizeof(cipher));
	return is_sound &&
		span_equal_secret(
			span_of(tag, sizeof(tag)), span_of(wrapped + FILE_KEY_BYTES, sizeof(tag)));
}

/* `out` has room for as many bytes as the payload. An empty last chunk is right only when it is the
 * first. */
static bool open_payload(const uint8_t file_key[FILE_KEY_BYTES], struct span payload, uint8_t *out)
{
	struct chacha_poly1305_ctx cipher;
	uint8_t key[AGE_KEY_BYTES];
	uint8_t tag[TAG_BYTES];
	bool is_right = true;
	derive(span_of(file_key, FILE_KEY_BYTES), span_slice(payload, 0, PAYLOAD_NONCE_BYTES),
		"payload", key);
	chacha_poly1305_set_key(&cipher, key);
	struct span rest = span_slice(payload, PAYLOAD_NONCE_BYTES, payload.len);
	for (uint64_t number = 0; is_right && rest.len > 0; number++) {
		const struct span chunk = span_slice(rest, 0, CHUNK_BYTES + TAG_BYTES);
		rest = span_slice(rest, chunk.len, rest.len);
		if (chunk.len < TAG_BYTES || (chunk.len == TAG_BYTES && number > 0))
			is_right = false;
		if (!is_right)
			break;
		const size_t len = chunk.len - TAG_BYTES;
		begin_chunk(&cipher, number, rest.len == 0);
		chacha_poly1305_decrypt(&cipher, len, out, chunk.data);
		chacha_poly1305_digest(&cipher, TAG_BYTES, tag);
		is_right = span_equal_secret(
			span_of(tag, sizeof(tag)), span_of(chunk.data + len, sizeof(tag)));
		out += len;
	}
	explicit_bzero(key, sizeof(key));
	explicit_bzero(&cipher, sizeof(cipher));
	return is_right;
}
