/* Only the random bytes are secret, and they are never compared: their HMAC is looked up. A key id
 * may have characters that a cookie may not have, so it is percent-encoded; it may have dots, so
 * the last one separates. */
#include "api/auth/session_cookie.h"

#include <string.h>

#include "api/auth/keyring.h"
#include "api/exchange/base_url.h"
#include "base/digest/digest.h"
#include "base/encode.h"

#define COOKIE_NAME "deltabucket_session"
/* Browsers take a cookie of this prefix only if it is Secure, has Path=/ and no Domain, and came
 * over TLS. So neither a host of the same domain nor a page without TLS can put one in its place.
 */
#define SECURE_NAME "__Host-" COOKIE_NAME

enum { HEX_CHARACTERS = 2 * SESSION_COOKIE_BYTES, KEY_ID_MAX_BYTES = 128 };

static bool parse_value(struct span value, struct arena *arena, struct session_cookie *out);
static bool has_console_face(const struct exchange *exchange);
static int find_session(struct exchange *exchange, const struct session_cookie *cookie,
	struct session_record *session, struct error *err);

bool session_cookie_parse(
	struct span header, bool is_secure, struct arena *arena, struct session_cookie *out)
{
	const struct span name = span_text(is_secure ? SECURE_NAME "=" : COOKIE_NAME "=");
	struct span value = {NULL, 0};
	struct span pair;
	size_t count = 0;
	while (span_split(&header, ';', &pair)) {
		struct span piece; /* headers that came twice are joined by a comma */
		while (span_split(&pair, ',', &piece)) {
			piece = span_trim(piece);
			if (!span_starts(piece, name))
				continue;
			value = span_slice(piece, name.len, piece.len);
			count++;
		}
	}
	return count == 1 && parse_value(value, arena, out);
}

void session_cookie_print(const struct session_cookie *cookie, bool is_secure, struct buffer *out)
{
	char hex[HEX_CHARACTERS + 1];
	encode_hex(span_of(cookie->bytes, sizeof(cookie->bytes)), hex);
	buffer_add_text(out, is_secure ? SECURE_NAME "=" : COOKIE_NAME "=");
	encode_percent(cookie->key_id, false, out);
	buffer_format(out, ".%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", hex,
		SESSION_TOTAL_MS / 1000, is_secure ? "; Secure" : "");
	explicit_bzero(hex, sizeof(hex));
}

const char *session_cookie_none(bool is_secure)
{
	return is_secure ? SECURE_NAME "=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"
			 : COOKIE_NAME "=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict";
}

bool session_cookie_is_secure(struct exchange *exchange)
{
	return exchange->secure || strncmp(base_url(exchange), "https://", 8) == 0;
}

void session_cookie_id(
	const struct session_cookie *cookie, struct span secret, uint8_t out[SESSION_ID_BYTES])
{
	_Static_assert((int)SESSION_ID_BYTES == (int)SHA256_BYTES, "an id is an HMAC-SHA256");
	hmac_sha256(secret, span_of(cookie->bytes, sizeof(cookie->bytes)), out);
}

bool session_cookie_is_console(struct exchange *exchange)
{
	return span_equal_text(span_trim(exchange_header(exchange, "x-deltabucket-console")), "1");
}

int session_cookie_identify(struct exchange *exchange, bool is_use, struct error *err)
{
	struct session_cookie cookie;
	if (!has_console_face(exchange) || !session_cookie_is_console(exchange) ||
		!session_cookie_parse(exchange_header(exchange, "cookie"),
			session_cookie_is_secure(exchange), exchange->arena, &cookie))
		return 0;
	struct session_record *const session = arena_take(exchange->arena, sizeof(*session));
	const int found = session != NULL ? find_session(exchange, &cookie, session, err) : 0;
	explicit_bzero(&cookie, sizeof(cookie));
	if (found != 1)
		return found;
	exchange->session = session;
	if (is_use)
		session_touch(exchange->context->store, session,
			exchange->context->clock->wall_ms(exchange->context->clock));
	return 0;
}

static bool parse_value(struct span value, struct arena *arena, struct session_cookie *out)
{
	struct buffer id;
	if (value.len < HEX_CHARACTERS + 2)
		return false;
	const size_t dot = value.len - HEX_CHARACTERS - 1;
	if (value.data[dot] != '.' || dot > 3 * (size_t)KEY_ID_MAX_BYTES ||
		!decode_hex(span_slice(value, dot + 1, value.len), out->bytes, sizeof(out->bytes)))
		return false;
	buffer_init(&id, dot);
	const bool is_good = decode_percent(span_slice(value, 0, dot), false, &id);
	out->key_id = arena_copy(arena, buffer_span(&id));
	buffer_release(&id);
	return is_good && out->key_id.len > 0 && out->key_id.len <= KEY_ID_MAX_BYTES;
}

/* hot_load has the steps face too, but is not the console's. */
static bool has_console_face(const struct exchange *exchange)
{
	const struct span path = exchange->resource;
	return exchange->face == &face_steps &&
		(span_starts(path, span_text("/-/")) || span_starts(path, span_text("/v1/")));
}

/* Returns 1 and sets the principal, 0 when there is no such session, or -1. */
static int find_session(struct exchange *exchange, const struct session_cookie *cookie,
	struct session_record *session, struct error *err)
{
	const struct api_context *const context = exchange->context;
	uint8_t id[SESSION_ID_BYTES];
	struct span secret = {NULL, 0};
	const struct principal *const principal =
		keyring_find_id(context->keyring, cookie->key_id, exchange->arena, &secret);
	if (principal == NULL)
		return 0;
	session_cookie_id(cookie, secret, id);
	explicit_bzero((void *)(uintptr_t)secret.data, secret.len);
	const int found = session_find(context->store, id, context->clock->wall_ms(context->clock),
		exchange->arena, session, err);
	if (found != 1 || !span_equal(session->key_id, principal->key_id))
		return found < 0 ? -1 : 0;
	exchange->principal = principal;
	return 1;
}
