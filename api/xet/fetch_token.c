/* The sealed bytes have a fixed head and then the spans. Most spans of a token lie in one pack, so
 * a span names its pack only if the span before lies in another one: that keeps URLs short. */
#include "api/xet/fetch_token.h"

#include <string.h>

#include "base/digest/seal.h"
#include "base/encode.h"
#include "base/little_endian.h"

/* Head: u8 version, u8 flags, u64 expiry, u64 bucket, u32 total, u8 length of the key id, the key
 * id. Each span: u8 1 and the id of its
 * pack, or u8 0 for the pack of the span before; u32 first, count, offset, length. Inline bytes
 * have u64 version and u32 length in place of the spans. */
enum {
	VERSION = 2,
	FLAG_AS_STORED = 1,
	FLAG_INLINE = 2,
	FLAG_SHARED = 4,
	FLAGS = FLAG_AS_STORED | FLAG_INLINE | FLAG_SHARED,
	HEAD_BYTES = 23, /* without the key id */
	INLINE_BYTES = 12,
	SPAN_NUMBERS = 4
};

static const char purpose[] = "fetch token";

static size_t put_number(uint8_t *bytes, size_t at, uint64_t value, unsigned size);
static size_t put_span(
	uint8_t *bytes, size_t at, const struct fetch_span *span, const struct fetch_span *before);
static bool is_sound(const struct fetch_token *token);
static bool take_key_id(struct span *rest, struct fetch_token *out);
static bool take_inline(struct span rest, struct fetch_token *out);
static bool take_span(struct span *rest, struct fetch_token *out);

void fetch_token_print(
	const struct fetch_token *token, const uint8_t key[FETCH_KEY_BYTES], struct buffer *out)
{
	uint8_t bytes[FETCH_TOKEN_MAX_BYTES];
	struct buffer sealed;
	ASSERT(token->span_count >= 1 && token->span_count <= FETCH_SPANS_MAX);
	ASSERT(token->version == 0 || token->span_count == 1);
	ASSERT(token->key_id_len <= FETCH_KEY_ID_MAX);
	ASSERT(!token->is_shared || token->key_id_len == 0);
	bytes[0] = VERSION;
	bytes[1] = (uint8_t)((token->as_stored ? FLAG_AS_STORED : 0) |
		(token->version != 0 ? FLAG_INLINE : 0) | (token->is_shared ? FLAG_SHARED : 0));
	size_t at = put_number(bytes, 2, (uint64_t)token->expires_s, 8);
	at = put_number(bytes, at, (uint64_t)token->bucket, 8);
	at = put_number(bytes, at, token->total, 4);
	at = put_number(bytes, at, token->key_id_len, 1);
	memcpy(bytes + at, token->key_id, token->key_id_len);
	at += token->key_id_len;
	if (token->version != 0) {
		at = put_number(bytes, at, (uint64_t)token->version, 8);
		at = put_number(bytes, at, token->spans[0].length, 4);
	}
	for (size_t i = 0; i < token->span_count && token->version == 0; i++)
		at = put_span(bytes, at, &token->spans[i], i > 0 ? &token->spans[i - 1] : NULL);
	buffer_init(&sealed, FETCH_TOKEN_MAX_BYTES);
	seal_token(key, purpose, span_of(bytes, at), &sealed);
	ASSERT(!buffer_failed(&sealed));
	encode_base64_url(buffer_span(&sealed), out);
	buffer_release(&sealed);
}

bool fetch_token_decode(struct span bytes, struct fetch_token *out)
{
	memset(out, 0, sizeof(*out));
	if (bytes.len < HEAD_BYTES || bytes.data[0] != VERSION || bytes.data[1] > FLAGS)
		return false;
	out->is_shared = (bytes.data[1] & FLAG_SHARED) != 0;
	out->as_stored = (bytes.data[1] & FLAG_AS_STORED) != 0;
	out->expires_s = (int64_t)little_endian_get(bytes.data + 2, 8);
	out->bucket = (int64_t)little_endian_get(bytes.data + 10, 8);
	out->total = (uint32_t)little_endian_get(bytes.data + 18, 4);
	struct span rest = span_slice(bytes, HEAD_BYTES - 1, bytes.len);
	if (!take_key_id(&rest, out) || (out->is_shared && out->key_id_len > 0))
		return false;
	if ((bytes.data[1] & FLAG_INLINE) != 0)
		return take_inline(rest, out) && is_sound(out);
	while (rest.len > 0)
		if (out->span_count == FETCH_SPANS_MAX || !take_span(&rest, out))
			return false;
	return is_sound(out);
}

bool fetch_token_parse(
	struct span text, const uint8_t key[FETCH_KEY_BYTES], struct fetch_token *out)
{
	uint8_t sealed[FETCH_TOKEN_MAX_BYTES];
	uint8_t bytes[FETCH_TOKEN_MAX_BYTES];
	size_t len;
	return decode_base64_url(text, sealed, sizeof(sealed), &len) &&
		seal_token_open(key, purpose, span_of(sealed, len), bytes, sizeof(bytes), &len) &&
		fetch_token_decode(span_of(bytes, len), out);
}

static size_t put_number(uint8_t *bytes, size_t at, uint64_t value, unsigned size)
{
	little_endian_put(bytes + at, value, size);
	return at + size;
}

static size_t put_span(
	uint8_t *bytes, size_t at, const struct fetch_span *span, const struct fetch_span *before)
{
	const bool same =
		before != NULL && memcmp(&before->pack, &span->pack, sizeof(span->pack)) == 0;
	bytes[at++] = !same;
	if (!same) {
		memcpy(bytes + at, span->pack.bytes, PACK_ID_BYTES);
		at += PACK_ID_BYTES;
	}
	at = put_number(bytes, at, span->first, 4);
	at = put_number(bytes, at, span->count, 4);
	at = put_number(bytes, at, span->offset, 4);
	return put_number(bytes, at, span->length, 4);
}

/* Whether the spans rise, do not overlap and lie in the xorb. */
static bool is_sound(const struct fetch_token *token)
{
	uint64_t end = 0;
	for (size_t i = 0; i < token->span_count; i++) {
		const struct fetch_span *const span = &token->spans[i];
		if (span->offset < end || span->length == 0 ||
			(token->version == 0 && span->count == 0))
			return false;
		end = (uint64_t)span->offset + span->length;
	}
	return token->span_count > 0 && end <= token->total;
}

/* Takes the length and the key id from the front. */
static bool take_key_id(struct span *rest, struct fetch_token *out)
{
	const size_t len = rest->data[0];
	if (len > FETCH_KEY_ID_MAX || rest->len < 1 + len)
		return false;
	memcpy(out->key_id, rest->data + 1, len);
	out->key_id_len = len;
	*rest = span_slice(*rest, 1 + len, rest->len);
	return true;
}

static bool take_inline(struct span rest, struct fetch_token *out)
{
	if (rest.len != INLINE_BYTES)
		return false;
	out->version = (int64_t)little_endian_get(rest.data, 8);
	out->spans[0].length = (uint32_t)little_endian_get(rest.data + 8, 4);
	out->span_count = 1;
	return out->version != 0;
}

/* Takes the next span from the front. */
static bool take_span(struct span *rest, struct fetch_token *out)
{
	struct fetch_span *const span = &out->spans[out->span_count];
	const bool has_pack = rest->len > 0 && rest->data[0] == 1;
	const size_t size = 1 + (has_pack ? PACK_ID_BYTES : 0) + 4 * SPAN_NUMBERS;
	if (rest->len < size || rest->data[0] > 1 || (!has_pack && out->span_count == 0))
		return false;
	const uint8_t *at = rest->data + 1;
	if (has_pack)
		memcpy(span->pack.bytes, at, PACK_ID_BYTES);
	else
		span->pack = out->spans[out->span_count - 1].pack;
	at += has_pack ? PACK_ID_BYTES : 0;
	span->first = (uint32_t)little_endian_get(at, 4);
	span->count = (uint32_t)little_endian_get(at + 4, 4);
	span->offset = (uint32_t)little_endian_get(at + 8, 4);
	span->length = (uint32_t)little_endian_get(at + 12, 4);
	*rest = span_slice(*rest, size, rest->len);
	out->span_count++;
	return true;
}
