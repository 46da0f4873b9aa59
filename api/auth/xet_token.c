/* A token is a sealed record of fixed fields, so that the server keeps no list of tokens. It
 * contains the bucket's id, not its name, so a token never opens a later bucket of the same
 * name. */
#include "api/auth/xet_token.h"

#include <string.h>

#include "api/auth/keyring.h"
#include "base/digest/seal.h"
#include "base/encode.h"
#include "base/little_endian.h"
#include "storage/buckets/bucket.h"

/* The sealed record: version, rights, bucket (u64), expiry (u64), length of the key id, the key
 * id. */
enum {
	VERSION = 1,
	AT_RIGHTS = 1,
	AT_BUCKET = 2,
	AT_EXPIRY = 10,
	AT_KEY_LENGTH = 18,
	AT_KEY = 19,
	KEY_ID_MAX = 128,
	PLAIN_MAX = AT_KEY + KEY_ID_MAX,
	TOKEN_MAX = PLAIN_MAX + SEAL_TOKEN_OVERHEAD_BYTES
};
enum { RIGHT_READ = 0, RIGHT_WRITE = 1 };

static const char prefix[] = "xet_";
static const char purpose[] = "xet token";

static int find_principal(struct exchange *exchange, struct xet_token *token, struct error *err);

const char *xet_token_print(struct exchange *exchange, const struct xet_token *token)
{
	uint8_t bytes[PLAIN_MAX];
	struct buffer sealed;
	struct buffer text;
	ASSERT(token->key_id.len <= KEY_ID_MAX);
	bytes[0] = VERSION;
	bytes[AT_RIGHTS] = token->is_write ? RIGHT_WRITE : RIGHT_READ;
	little_endian_put(bytes + AT_BUCKET, (uint64_t)token->bucket_id, 8);
	little_endian_put(bytes + AT_EXPIRY, (uint64_t)token->expires_s, 8);
	bytes[AT_KEY_LENGTH] = (uint8_t)token->key_id.len;
	if (token->key_id.len > 0)
		memcpy(bytes + AT_KEY, token->key_id.data, token->key_id.len);
	buffer_init(&sealed, TOKEN_MAX);
	buffer_init(&text, 2 * TOKEN_MAX);
	seal_token(exchange->context->token_key, purpose,
		span_of(bytes, AT_KEY + token->key_id.len), &sealed);
	buffer_add_text(&text, prefix);
	encode_base64(buffer_span(&sealed), &text);
	const char *const printed = arena_text(exchange->arena, buffer_span(&text));
	buffer_release(&sealed);
	buffer_release(&text);
	return printed;
}

bool xet_token_has_prefix(struct span text)
{
	return span_starts(text, span_text(prefix));
}

bool xet_token_parse(
	struct arena *arena, const uint8_t key[32], struct span text, struct xet_token *out)
{
	uint8_t sealed[TOKEN_MAX];
	uint8_t bytes[PLAIN_MAX];
	size_t len = 0;
	if (!xet_token_has_prefix(text) ||
		!decode_base64(span_slice(text, sizeof(prefix) - 1, text.len), sealed,
			sizeof(sealed), &len) ||
		!seal_token_open(key, purpose, span_of(sealed, len), bytes, sizeof(bytes), &len))
		return false;
	if (len < AT_KEY || bytes[0] != VERSION || bytes[AT_RIGHTS] > RIGHT_WRITE ||
		len != (size_t)AT_KEY + bytes[AT_KEY_LENGTH])
		return false;
	*out = (struct xet_token){
		.bucket_id = (int64_t)little_endian_get(bytes + AT_BUCKET, 8),
		.expires_s = (int64_t)little_endian_get(bytes + AT_EXPIRY, 8),
		.is_write = bytes[AT_RIGHTS] == RIGHT_WRITE,
		.key_id = arena_copy(arena, span_of(bytes + AT_KEY, bytes[AT_KEY_LENGTH])),
	};
	return !arena_overflowed(arena);
}

int xet_token_identify(struct exchange *exchange, struct span text, struct error *err)
{
	struct xet_token *const token = arena_take(exchange->arena, sizeof(*token));
	struct bucket bucket;
	if (token == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	if (!xet_token_parse(exchange->arena, exchange->context->token_key, text, token))
		return error_set(
			err, ERROR_UNKNOWN_KEY_ID, "This server did not issue the Xet token.");
	if (token->expires_s * 1000 <= exchange->context->clock->wall_ms(exchange->context->clock))
		return error_set(err, ERROR_UNKNOWN_KEY_ID, "The Xet token has expired.");
	if (find_principal(exchange, token, err) != 0)
		return -1;
	if (bucket_find_id(
		    exchange->context->store, token->bucket_id, exchange->arena, &bucket, err) != 0)
		return -1;
	token->bucket = bucket.name;
	exchange->transfer = token;
	return 0;
}

static int find_principal(struct exchange *exchange, struct xet_token *token, struct error *err)
{
	if (token->key_id.len == 0)
		return 0;
	exchange->principal =
		keyring_find_caller(exchange->context->keyring, token->key_id, exchange->arena);
	if (exchange->principal == NULL)
		return error_set(err, ERROR_UNKNOWN_KEY_ID,
			"The key that this Xet token was issued to was revoked.");
	token->account = exchange->principal->namespace;
	return 0;
}
