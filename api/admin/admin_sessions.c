#include "api/admin/admin_sessions.h"

#include <string.h>

#include "api/auth/audit_note.h"
#include "api/auth/grant_text.h"
#include "api/auth/keyring.h"
#include "api/auth/session_cookie.h"
#include "api/exchange/base_url.h"
#include "api/exchange/principal.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "base/random.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 1024 * 1024, GRANT_MAX_BYTES = 8192 };
enum { LINK_BYTES = 32 };

struct link_work { /* the exchange's state */
	char code[2 * LINK_BYTES + 1];
	int64_t ends_ms;
};

static int64_t now_ms(const struct exchange *exchange);
static void print_time(struct json_writer *json, const char *name, int64_t ms);
static void print_grants(const struct principal *principal, struct json_writer *json);
static void print_server(struct exchange *exchange, struct json_writer *json);
static const char *console_url(struct exchange *exchange);
static void print_session(const struct session_record *session, struct json_writer *json);
static int parse_link(struct exchange *exchange, struct span *out_key_id, struct error *err);
static enum next make_link(struct exchange *exchange, struct span key_id);

enum next admin_session_get_begin(struct exchange *exchange)
{
	struct buffer body;
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_session_print(exchange, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

void admin_session_print(struct exchange *exchange, struct buffer *out)
{
	const struct principal *const principal = exchange->principal;
	const struct session_record *const session = exchange->session;
	struct json_writer json;
	ASSERT(principal != NULL);
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "key_id", principal->key_id);
	json_writer_text(&json, "name",
		keyring_find_name(exchange->context->keyring, principal->key_id, exchange->arena));
	json_writer_text(&json, "namespace", principal->namespace);
	json_writer_bool(&json, "root", principal->is_root);
	json_writer_bool(&json, "metrics", principal_may_read_metrics(principal));
	print_grants(principal, &json);
	if (session != NULL)
		print_time(&json, "expires", session->made_ms + SESSION_TOTAL_MS);
	else
		json_writer_null(&json, "expires");
	json_writer_u64(&json, "idle_s", SESSION_IDLE_MS / 1000);
	print_server(exchange, &json);
	json_writer_end(&json, '}');
}

enum next admin_session_end_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (exchange->session == NULL) {
		error_set(&err, ERROR_NOT_FOUND,
			"This request has no session that could end: a token or a signature named its caller.");
		return exchange_fail(exchange, &err);
	}
	const struct audit_entry audit = audit_note_entry(
		exchange, "sign_out", exchange->principal->key_id, (struct span){NULL, 0});
	return exchange_await(exchange,
		session_end_call(exchange->context->store, exchange->session->id,
			exchange->principal->key_id, &audit));
}

/* A session that has ended meanwhile is signed out too. */
enum next admin_session_end_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0 && err.kind != ERROR_NOT_FOUND)
		return exchange_fail(exchange, &err);
	exchange_add_header(
		exchange, "Set-Cookie", session_cookie_none(session_cookie_is_secure(exchange)));
	return exchange_reply_empty(exchange, 204);
}

enum next admin_sessions_list_begin(struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	const struct span key_id = principal->is_root ? (struct span){NULL, 0} : principal->key_id;
	struct session_list *const list = arena_take(exchange->arena, sizeof(*list));
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	ASSERT(list != NULL);
	if (session_list_read(exchange->context->store, key_id, now_ms(exchange), exchange->arena,
		    list, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "sessions");
	for (size_t i = 0; i < list->count; i++)
		print_session(&list->sessions[i], &json);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

enum next admin_sessions_end_begin(struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	const struct span none = {NULL, 0};
	uint8_t id[SESSION_ID_BYTES];
	struct error err = {0};
	if (!decode_hex(exchange->parameters[0], id, sizeof(id))) {
		error_set(&err, ERROR_INVALID, "The id of a session has %d hex digits.",
			2 * SESSION_ID_BYTES);
		return exchange_fail(exchange, &err);
	}
	/* The subject is the key of the session, which the change finds out. */
	const struct audit_entry audit =
		audit_note_entry(exchange, "sign_out", none, span_text("by its id"));
	return exchange_await(exchange,
		session_end_call(exchange->context->store, id,
			principal->is_root ? none : principal->key_id, &audit));
}

enum next admin_sessions_end_resume(struct exchange *exchange)
{
	struct error err = {0};
	return call_outcome(exchange->call, &err) != 0 ? exchange_fail(exchange, &err)
						       : exchange_reply_empty(exchange, 204);
}

enum next admin_session_link_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_session_link_finish(struct exchange *exchange)
{
	struct span key_id = exchange->control
		? keyring_find_root(exchange->context->keyring, exchange->arena)
		: exchange->principal->key_id;
	struct error err = {0};
	if (parse_link(exchange, &key_id, &err) != 0)
		return exchange_fail(exchange, &err);
	if (keyring_find_caller(exchange->context->keyring, key_id, exchange->arena) != NULL)
		return make_link(exchange, key_id);
	error_set(&err, ERROR_NOT_FOUND, "The key '%.*s' does not exist.", (int)key_id.len,
		(const char *)key_id.data);
	return exchange_fail(exchange, &err);
}

enum next admin_session_link_resume(struct exchange *exchange)
{
	struct link_work *const work = exchange->state;
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	ASSERT(work != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	char *const url = arena_format(
		exchange->arena, "%s/console/#link=%s", console_url(exchange), work->code);
	explicit_bzero(work->code, sizeof(work->code));
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "url", span_text(url));
	print_time(&json, "expires", work->ends_ms);
	json_writer_end(&json, '}');
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return exchange_reply_buffer(exchange, 201, "application/json", &body);
}

static int64_t now_ms(const struct exchange *exchange)
{
	return exchange->context->clock->wall_ms(exchange->context->clock);
}

static void print_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}

static void print_grants(const struct principal *principal, struct json_writer *json)
{
	json_writer_array(json, "grants");
	for (size_t i = 0; i < principal->grant_count; i++) {
		struct buffer text;
		buffer_init(&text, GRANT_MAX_BYTES);
		grant_text_print(&principal->grants[i], &text);
		json_writer_text(json, NULL, buffer_span(&text));
		buffer_release(&text);
	}
	json_writer_end(json, ']');
}

static void print_server(struct exchange *exchange, struct json_writer *json)
{
	json_writer_object(json, "server");
	json_writer_text(json, "version", span_text(PACKAGE_VERSION));
	json_writer_text(
		json, "default_namespace", span_text(exchange->context->default_namespace));
	json_writer_text(json, "url", span_text(console_url(exchange)));
	json_writer_text(json, "region", span_text(exchange->context->region));
	json_writer_end(json, '}');
}

/* A request over DIR/control.sock names no host that a browser could use. */
static const char *console_url(struct exchange *exchange)
{
	const struct api_context *const context = exchange->context;
	return exchange->control && context->public_url == NULL && context->endpoint != NULL
		? context->endpoint
		: base_url(exchange);
}

static void print_session(const struct session_record *session, struct json_writer *json)
{
	char id[2 * SESSION_ID_BYTES + 1];
	encode_hex(span_of(session->id, sizeof(session->id)), id);
	json_writer_object(json, NULL);
	json_writer_text(json, "id", span_text(id));
	json_writer_text(json, "key_id", session->key_id);
	print_time(json, "made", session->made_ms);
	print_time(json, "seen", session->seen_ms);
	json_writer_text(json, "address", session->address);
	json_writer_end(json, '}');
}

/* Leaves the key as it is when the body names none. */
static int parse_link(struct exchange *exchange, struct span *out_key_id, struct error *err)
{
	const struct span body = exchange_body(exchange);
	struct json_node *const root =
		json_node_parse(body.len > 0 ? body : span_text("{}"), "The request body", err);
	struct span text;
	if (root == NULL)
		return -1;
	const struct json_node *const node = json_node_member(root, "key_id");
	int outcome = 0;
	if (!json_node_is_object(root) || (node != NULL && !json_node_text(node, &text)))
		outcome = error_set(err, ERROR_INVALID,
			"The request body must be {\"key_id\": \"...\"}, or empty.");
	else if (node != NULL)
		*out_key_id = arena_copy(exchange->arena, text);
	json_node_free(root);
	return outcome;
}

static enum next make_link(struct exchange *exchange, struct span key_id)
{
	struct link_work *const work = arena_take(exchange->arena, sizeof(*work));
	uint8_t code[LINK_BYTES];
	uint8_t id[SESSION_ID_BYTES];
	ASSERT(work != NULL && exchange->state == NULL);
	exchange->state = work;
	random_bytes(code, sizeof(code));
	sha256(span_of(code, sizeof(code)), id);
	encode_hex(span_of(code, sizeof(code)), work->code);
	explicit_bzero(code, sizeof(code));
	work->ends_ms = now_ms(exchange) + SESSION_LINK_MS;
	const struct audit_entry audit =
		audit_note_entry(exchange, "link_made", key_id, (struct span){NULL, 0});
	return exchange_await(exchange,
		session_link_call(exchange->context->store, id, key_id, now_ms(exchange), &audit));
}
