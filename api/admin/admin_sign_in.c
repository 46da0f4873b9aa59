/* A sign-in names a key in one of three ways. Whichever it is, a wrong one gets the same words as
 * one that does not exist, costs a guess (guess_limit.h), and is answered when its entry in the
 * audit trail is written, so that guesses come no faster than the disk. */
#include "api/admin/admin_sessions.h"

#include <string.h>

#include "api/auth/audit_note.h"
#include "api/auth/guess_limit.h"
#include "api/auth/identify.h"
#include "api/auth/keyring.h"
#include "api/auth/session_cookie.h"
#include "api/exchange/principal.h"
#include "api/exchange/secret_body.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "base/random.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 256 * 1024, COOKIE_MAX_BYTES = 1024 };

struct sign_in {            /* the exchange's state; texts in its arena */
	struct span key_id; /* as given; empty with a token or a link */
	struct span secret;
	struct span token;
	struct span link;
	uint8_t link_id[SESSION_ID_BYTES];
	const struct session_record *earlier; /* of the cookie that came along; NULL: none */
	const struct principal *principal;    /* the key that signs in; NULL: refused */
	struct session_cookie cookie;
	struct session_record session;
};

static int parse(struct exchange *exchange, struct sign_in *out, struct error *err);
static int take(const struct json_node *root, const char *name, struct arena *arena,
	struct span *out, struct error *err);
static int count_ways(const struct sign_in *in);
static int find_key(struct exchange *exchange, struct sign_in *in, struct error *err);
static void find_by_secret(struct exchange *exchange, struct sign_in *in);
static int find_by_link(struct exchange *exchange, struct sign_in *in, struct error *err);
static enum next refuse(struct exchange *exchange, struct sign_in *in);
static void wipe(struct span text);
static const char *way_of(const struct sign_in *in);
static enum next open_session(struct exchange *exchange, struct sign_in *in);
static enum next reply_busy(struct exchange *exchange, unsigned seconds);

enum next admin_sign_in_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (session_cookie_is_console(exchange))
		return secret_body_accept(exchange, REQUEST_MAX_BYTES);
	error_set(&err, ERROR_DENIED,
		"A sign-in needs the header X-Deltabucket-Console: 1, which shows that no other site sends it.");
	return exchange_fail(exchange, &err);
}

enum next admin_sign_in_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct sign_in *const in = arena_take(exchange->arena, sizeof(*in));
	ASSERT(in != NULL && exchange->state == NULL); /* the body is small */
	exchange->state = in;
	in->earlier = exchange->session;
	exchange->principal = NULL; /* the earlier session gives no rights here */
	exchange->session = NULL;
	unsigned seconds = 0;
	int outcome = parse(exchange, in, &err);
	secret_body_wipe(exchange);
	if (outcome == 0)
		seconds = guess_limit_take(exchange->context->guesses, exchange->peer, in->key_id);
	if (outcome == 0 && seconds == 0)
		outcome = find_key(exchange, in, &err);
	wipe(in->secret);
	wipe(in->token);
	wipe(in->link);
	if (seconds > 0)
		return reply_busy(exchange, seconds);
	if (outcome != 0)
		return exchange_fail(exchange, &err);
	if (in->principal == NULL)
		return refuse(exchange, in);
	guess_limit_give(exchange->context->guesses, exchange->peer, in->key_id);
	return open_session(exchange, in);
}

enum next admin_sign_in_resume(struct exchange *exchange)
{
	struct sign_in *const in = exchange->state;
	struct error err = {0};
	struct buffer body;
	struct buffer cookie;
	ASSERT(in != NULL);
	const int outcome = call_outcome(exchange->call, &err);
	if (in->principal == NULL || (outcome != 0 && err.kind == ERROR_NOT_FOUND))
		error_set(&err, ERROR_UNKNOWN_KEY_ID, "%s",
			in->link.len > 0 ? "The link was used before, or is older than 5 minutes."
					 : "The key id, the secret or the token is wrong.");
	if (in->principal == NULL || outcome != 0)
		return exchange_fail(exchange, &err);
	exchange->principal = in->principal;
	exchange->session = &in->session;
	buffer_init(&cookie, COOKIE_MAX_BYTES);
	session_cookie_print(&in->cookie, session_cookie_is_secure(exchange), &cookie);
	explicit_bzero(in->cookie.bytes, sizeof(in->cookie.bytes));
	exchange_add_header(
		exchange, "Set-Cookie", arena_text(exchange->arena, buffer_span(&cookie)));
	buffer_release(&cookie);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_session_print(exchange, &body);
	return exchange_reply_buffer(exchange, 201, "application/json", &body);
}

static int parse(struct exchange *exchange, struct sign_in *out, struct error *err)
{
	struct json_node *const root =
		json_node_parse(exchange_body(exchange), "The request body", err);
	if (root == NULL)
		return -1;
	int outcome = 0;
	if (take(root, "key_id", exchange->arena, &out->key_id, err) != 0 ||
		take(root, "secret", exchange->arena, &out->secret, err) != 0 ||
		take(root, "token", exchange->arena, &out->token, err) != 0 ||
		take(root, "link", exchange->arena, &out->link, err) != 0)
		outcome = -1;
	else if (count_ways(out) != 1)
		outcome = error_set(err, ERROR_INVALID,
			"The request body must have \"key_id\" and \"secret\", or \"token\", or \"link\".");
	json_node_wipe(root);
	json_node_free(root);
	return outcome;
}

static int take(const struct json_node *root, const char *name, struct arena *arena,
	struct span *out, struct error *err)
{
	const struct json_node *const node = json_node_member(root, name);
	struct span text;
	if (node == NULL)
		return 0;
	if (!json_node_text(node, &text) || text.len == 0)
		return error_set(
			err, ERROR_INVALID, "\"%s\" must be a text that is not empty.", name);
	*out = arena_copy(arena, text);
	return 0;
}

static int count_ways(const struct sign_in *in)
{
	const bool has_pair = in->key_id.len > 0 && in->secret.len > 0;
	const bool has_half = (in->key_id.len > 0) != (in->secret.len > 0);
	return has_half ? 0 : has_pair + (in->token.len > 0) + (in->link.len > 0);
}

/* Sets the principal, or leaves it NULL when the key is not proven. Fails when the catalog cannot
 * be read. */
static int find_key(struct exchange *exchange, struct sign_in *in, struct error *err)
{
	if (in->link.len > 0)
		return find_by_link(exchange, in, err);
	if (in->token.len > 0)
		in->principal = identify_token(exchange, in->token);
	else
		find_by_secret(exchange, in);
	return 0;
}

/* The hashes are compared, so that the time tells nothing of the length either. */
static void find_by_secret(struct exchange *exchange, struct sign_in *in)
{
	struct span secret = {NULL, 0};
	uint8_t given[SHA256_BYTES];
	uint8_t right[SHA256_BYTES];
	const struct principal *const principal =
		keyring_find_id(exchange->context->keyring, in->key_id, exchange->arena, &secret);
	sha256(in->secret, given);
	sha256(secret, right);
	wipe(secret);
	if (span_equal_secret(span_of(given, sizeof(given)), span_of(right, sizeof(right))))
		in->principal = principal;
	explicit_bzero(right, sizeof(right));
}

static int find_by_link(struct exchange *exchange, struct sign_in *in, struct error *err)
{
	const struct api_context *const context = exchange->context;
	uint8_t code[SESSION_COOKIE_BYTES];
	struct span key_id = {NULL, 0};
	if (!decode_hex(in->link, code, sizeof(code)))
		return 0;
	sha256(span_of(code, sizeof(code)), in->link_id);
	const int found = session_link_find(context->store, in->link_id,
		context->clock->wall_ms(context->clock), exchange->arena, &key_id, err);
	if (found == 1)
		in->principal = keyring_find_caller(context->keyring, key_id, exchange->arena);
	return found < 0 ? -1 : 0;
}

static enum next refuse(struct exchange *exchange, struct sign_in *in)
{
	const struct audit_entry entry = audit_note_entry(
		exchange, AUDIT_SIGN_IN_REFUSED, in->key_id, span_text(way_of(in)));
	return exchange_await(exchange, audit_call(exchange->context->store, &entry));
}

static void wipe(struct span text)
{
	if (text.len > 0)
		explicit_bzero((void *)(uintptr_t)text.data, text.len);
}

static const char *way_of(const struct sign_in *in)
{
	return in->link.len > 0 ? "link" : in->token.len > 0 ? "token" : "secret";
}

static enum next open_session(struct exchange *exchange, struct sign_in *in)
{
	const struct api_context *const context = exchange->context;
	struct session_opening opening = {.key_id = in->principal->key_id,
		.now_ms = context->clock->wall_ms(context->clock),
		.by_link = in->link.len > 0};
	struct span secret = {NULL, 0};
	if (keyring_find_id(context->keyring, in->principal->key_id, exchange->arena, &secret) ==
		NULL) { /* revoked just now */
		in->principal = NULL;
		return refuse(exchange, in);
	}
	in->cookie.key_id = in->principal->key_id;
	random_bytes(in->cookie.bytes, sizeof(in->cookie.bytes));
	session_cookie_id(&in->cookie, secret, opening.id);
	wipe(secret);
	memcpy(opening.link, in->link_id, sizeof(opening.link));
	memcpy(in->session.id, opening.id, sizeof(in->session.id));
	in->session.key_id = in->principal->key_id;
	in->session.made_ms = opening.now_ms;
	opening.audit =
		audit_note_entry(exchange, "sign_in", in->principal->key_id, span_text(way_of(in)));
	opening.audit.key_id = in->principal->key_id;
	opening.replaces = in->earlier != NULL;
	if (opening.replaces)
		memcpy(opening.replaced, in->earlier->id, sizeof(opening.replaced));
	return exchange_await(exchange, session_open_call(context->store, &opening));
}

static enum next reply_busy(struct exchange *exchange, unsigned seconds)
{
	struct error err = {0};
	exchange_add_header(exchange, "Retry-After", arena_format(exchange->arena, "%u", seconds));
	error_set(&err, ERROR_BUSY,
		"There were too many failed sign-ins from this address; try again in %u seconds.",
		seconds);
	return exchange_fail(exchange, &err);
}
