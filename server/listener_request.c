/* Leads a request through its steps. libmicrohttpd calls the access handler once when the headers
 * are here, then with pieces of the body, then with an empty piece until a reply is queued. The
 * library has these properties (each measured), and this code follows from them:
 *
 * - A reply that is queued in the first call closes the connection. So the first call replies only
 *   when the client waits for 100 Continue, or when the body is too large to be dropped. The rest
 *   of the body is dropped after the close (lingering_close.h).
 * - The first call of an upload must not suspend. So routes with a body never wait in `begin`, and
 *   for other routes `begin` runs in the last call.
 * - While a body arrives, no reply can be queued. So the reply is kept, the rest of the body is
 *   dropped, and the last call queues the reply. If the rest is long, the reply is written directly
 *   to the socket and the connection is closed.
 * - A call with a piece may suspend only if it took nothing of the piece. */
#include "server/listener_internal.h"

#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/exchange/caller.h"
#include "api/route/route_metrics.h"
#include "api/route/router.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "server/raw_chunk.h"
#include "server/raw_header.h"

enum { HEADER_RECORD_BYTES = 64 }; /* libmicrohttpd's own memory for each header */

/* The name of a header that is added to keep libmicrohttpd from parsing cookies. It is recognised
 * by its address. */
static const char no_cookie[] = "Cookie";

struct header_search {
	const char *name;
	struct arena *arena;
	struct span found;
};

struct header_walk {
	void (*take)(void *taker, struct span name, struct span value);
	void *taker;
	bool trims; /* values: blanks around one are not a part of it (RFC 9110, 5.5) */
};

static const struct {
	const char *name;
	enum method method;
} methods[] = {{"GET", METHOD_GET}, {"HEAD", METHOD_HEAD}, {"PUT", METHOD_PUT},
	{"POST", METHOD_POST}, {"DELETE", METHOD_DELETE}, {"OPTIONS", METHOD_OPTIONS}};
enum { METHOD_COUNT = sizeof(methods) / sizeof(methods[0]) };

static struct span listener_request_find_header(struct exchange *exchange, const char *name);
static enum MHD_Result listener_request_search_header(void *taker, enum MHD_ValueKind kind,
	const char *name, size_t name_len, const char *value, size_t value_len);
static void walk_headers(struct request *request, const struct header_walk *walk);
static void listener_request_walk_headers(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker);
static enum MHD_Result listener_request_walk_header(void *taker, enum MHD_ValueKind kind,
	const char *name, size_t name_len, const char *value, size_t value_len);
static void listener_request_wake(struct exchange *exchange);
static void listener_request_cut(struct exchange *exchange);
static const char *listener_request_client(struct exchange *exchange);
static void set_client(struct request *request, struct client_address client);
static void skip_parsing(struct MHD_Connection *connection, const char *uri);
static enum MHD_Result first_call(struct request *request, const char *method);
static void read_raw(struct request *request, const char *method, struct raw_header *raw);
static void listener_request_take_raw(void *taker, struct span name, struct span value);
static bool leaves_room(const struct request *request, const struct raw_header *raw);
static void read_headers(struct request *request, const char *method);
static void read_host(struct request *request);
static void read_client(struct request *request);
static void listener_request_take_forwarded(void *taker, struct span name, struct span value);
static enum method parse_method(const char *text);
static int check_framing(struct request *request, const struct raw_header *raw, struct error *err);
static bool asks_whole_server(const struct exchange *exchange);
static enum MHD_Result refuse_at_once(struct request *request);
static enum MHD_Result begin_upload(struct request *request);
static enum next begin(struct request *request);
static bool take_wake(struct request *request);
static enum MHD_Result take_piece(struct request *request, const char *data, size_t *data_size);
static enum MHD_Result drop_piece(struct request *request, size_t *data_size);
static bool suspend(struct request *request);
static void drop_sink(struct request *request);
static enum MHD_Result last_call(struct request *request);
static enum MHD_Result run_steps(struct request *request, enum next next);
static enum next finish_body(struct request *request);
static void count_request(const struct request *request);
static void log_request(struct request *request, bool whole);
static const char *method_name(enum method method);

static const struct exchange_ops request_ops = {listener_request_find_header,
	listener_request_walk_headers, listener_request_wake, listener_request_cut,
	listener_request_client};

struct request *request_new(
	struct reactor *reactor, struct MHD_Connection *connection, const char *uri)
{
	struct request *const request = memory_new(sizeof(*request));
	struct exchange *const exchange = &request->exchange;
	const struct api_context *const context = reactor->listener->context;
	uint8_t id[16];
	random_bytes(id, sizeof(id));
	encode_hex(span_of(id, sizeof(id)), exchange->request_id);
	request->reactor = reactor;
	request->connection = connection;
	request->link = connection_find(connection);
	request->started_ms = context->clock->monotonic_ms(context->clock);
	request->started_us = clock_monotonic_us();
	request->target_text = memory_copy_text(uri);
	exchange->ops = &request_ops;
	exchange->context = context;
	exchange->arena = arena_new(EXCHANGE_ARENA_BYTES);
	exchange->secure = reactor->secure;
	set_client(request, request->link->peer);
	exchange->control = reactor->control;
	exchange->face = &face_s3;
	exchange->target = span_text(request->target_text);
	request->target = request_target_parse(exchange->target);
	exchange->path = request->target.path;
	exchange->query = request->target.query;
	atomic_fetch_add(&reactor->listener->open, 1);
	skip_parsing(connection, uri);
	return request;
}

enum MHD_Result request_call(
	struct request *request, const char *method, const char *data, size_t *data_size)
{
	if (!request->started) {
		request->started = true;
		return first_call(request, method);
	}
	if (request->suspended && !take_wake(request))
		return MHD_YES;
	const size_t memory = request->reactor->listener->options.connection_memory_bytes;
	if (*data_size > 0 && request->body != NULL &&
		!raw_chunk_is_plain(request->body, data, memory))
		return request_send_bare(request, MHD_HTTP_BAD_REQUEST);
	if (*data_size > 0)
		return take_piece(request, data, data_size);
	return last_call(request);
}

enum MHD_Result request_drop(struct request *request)
{
	return request->suspended && !take_wake(request) ? MHD_YES : MHD_NO;
}

/* Counts itself in `inside` before it reads `dropping`, as calls of the handler do (listener.c). */
ptrdiff_t request_stream(struct request *request, char *into, size_t capacity, struct error *err)
{
	struct exchange *const exchange = &request->exchange;
	struct listener *const listener = request->reactor->listener;
	ptrdiff_t got = -1;
	ASSERT(exchange->reply.source != NULL);
	atomic_fetch_add(&listener->inside, 1);
	const bool dropping = atomic_load(&listener->dropping) ||
		(exchange->reply.is_endless && atomic_load(&request->link->hung_up));
	if (request->suspended && !take_wake(request))
		got = SOURCE_WAIT;
	else if (!dropping)
		while ((got = exchange->reply.source->read(exchange->reply.source, (uint8_t *)into,
				capacity, err)) == SOURCE_WAIT &&
			!suspend(request))
			take_wake(request);
	if (dropping && got == -1)
		error_set(err, ERROR_BUSY, "The server is stopping.");
	atomic_fetch_sub(&listener->inside, 1);
	if (got > 0)
		request->sent += (uint64_t)got;
	return got;
}

void request_end(struct request *request, bool whole)
{
	struct exchange *const exchange = &request->exchange;
	struct listener *const listener = request->reactor->listener;
	/* It was resumed, but the client hung up before the handler was called again. */
	if (request->suspended) {
		const bool woken = take_wake(request);
		ASSERT(woken);
	}
	drop_sink(request);
	if (whole && exchange->sent != NULL)
		exchange->sent(exchange);
	if (exchange->reply.source != NULL)
		exchange->reply.source->close(exchange->reply.source);
	exchange_release(exchange);
	connection_set_caller(request->link, request->link->caller, false);
	count_request(request);
	log_request(request, whole);
	buffer_release(&exchange->reply.bytes);
	arena_free(exchange->arena);
	free(request->target_text);
	free(request);
	atomic_fetch_sub(&listener->open, 1);
}

static struct span listener_request_find_header(struct exchange *exchange, const char *name)
{
	struct request *const request = (struct request *)exchange;
	struct header_search search = {name, exchange->arena, {NULL, 0}};
	if (request->target.authority.len > 0 && span_equal_text(span_text(name), "host"))
		return request->target.authority;
	MHD_get_connection_values_n(
		request->connection, MHD_HEADER_KIND, listener_request_search_header, &search);
	return search.found;
}

static enum MHD_Result listener_request_search_header(void *taker, enum MHD_ValueKind kind,
	const char *name, size_t name_len, const char *value, size_t value_len)
{
	(void)kind;
	struct header_search *const search = taker;
	if (name == no_cookie || !span_equal_nocase(span_of(name, name_len), search->name))
		return MHD_YES;
	const struct span text =
		span_trim(span_of(value != NULL ? value : "", value != NULL ? value_len : 0));
	const struct span before = search->found;
	if (before.data == NULL)
		search->found = text;
	else
		search->found = span_text(arena_format(search->arena, "%.*s, %.*s", (int)before.len,
			(const char *)before.data, (int)text.len, (const char *)text.data));
	return MHD_YES;
}

static void listener_request_walk_headers(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker)
{
	walk_headers((struct request *)exchange,
		&(const struct header_walk){.take = take, .taker = taker, .trims = true});
}

static void walk_headers(struct request *request, const struct header_walk *walk)
{
	MHD_get_connection_values_n(
		request->connection, MHD_HEADER_KIND, listener_request_walk_header, (void *)walk);
}

static enum MHD_Result listener_request_walk_header(void *taker, enum MHD_ValueKind kind,
	const char *name, size_t name_len, const char *value, size_t value_len)
{
	(void)kind;
	const struct header_walk *const walk = taker;
	if (name == no_cookie)
		return MHD_YES;
	const struct span text = value != NULL ? span_of(value, value_len) : span_text("");
	walk->take(walk->taker, span_of(name, name_len), walk->trims ? span_trim(text) : text);
	return MHD_YES;
}

/* May run before the reactor has suspended the connection. The reactor then finds WOKEN and
 * continues at once. */
static void listener_request_wake(struct exchange *exchange)
{
	struct request *const request = (struct request *)exchange;
	struct MHD_Connection *const connection = request->connection;
	const int before = atomic_exchange(&request->wait_state, WAIT_WOKEN);
	ASSERT(before != WAIT_WOKEN); /* There is exactly one wake for each wait. */
	if (before == WAIT_SUSPENDED)
		MHD_resume_connection(connection);
}

static void listener_request_cut(struct exchange *exchange)
{
	connection_cut(((struct request *)exchange)->link);
}

static const char *listener_request_client(struct exchange *exchange)
{
	char text[CLIENT_ADDRESS_TEXT_BYTES];
	client_address_format(&((struct request *)exchange)->client, text);
	return arena_text(exchange->arena, span_text(text));
}

static void set_client(struct request *request, struct client_address client)
{
	request->client = client;
	request->exchange.peer = client_address_hash(&client);
}

/* Keeps libmicrohttpd from parsing parameters and cookies, which this server does not ask it for.
 * It would use 64 bytes of the connection's memory for each. When that memory ends, 0.9.75 stops
 * replying and reading (parameters), or replies twice or not at all (cookies). `uri` lies in its
 * buffer, and it is about to end the path at the question mark itself. It parses only the first
 * Cookie header, so an empty one is added before. */
static void skip_parsing(struct MHD_Connection *connection, const char *uri)
{
	const char *const mark = strchr(uri, '?');
	if (mark != NULL)
		((char *)(uintptr_t)mark)[1] = '\0';
	MHD_set_connection_value(connection, MHD_HEADER_KIND, no_cookie, "");
}

static enum MHD_Result first_call(struct request *request, const char *method)
{
	struct exchange *const exchange = &request->exchange;
	struct raw_header raw;
	struct error err = {0};
	connection_set_caller(request->link, request->link->caller, true);
	read_raw(request, method, &raw);
	if (!leaves_room(request, &raw))
		return request_send_bare(request,
			raw.fault != NULL ? MHD_HTTP_BAD_REQUEST
				: exchange->target.len > raw.len / 2
				? MHD_HTTP_URI_TOO_LONG
				: MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE);
	read_headers(request, method);
	router_match(exchange);
	if (check_framing(request, &raw, &err) != 0) {
		exchange_fail(exchange, &err);
		return refuse_at_once(request);
	}
	if (exchange->chunked && !request->reactor->listener->strict_library)
		request->body = raw.text + raw.len;
	if (raw.bytes > HEADERS_MAX_BYTES)
		error_set(&err, ERROR_HEADERS_TOO_LARGE,
			"The headers of the request have %zu bytes, and the limit is %d bytes.",
			raw.bytes, HEADERS_MAX_BYTES);
	const bool takes_body = exchange->route == NULL || exchange->route->body != BODY_NONE;
	if (err.kind == ERROR_NONE && request->has_body && takes_body)
		return begin_upload(request);
	if (err.kind == ERROR_NONE && request->has_body && exchange->length > DRAIN_MAX_BYTES)
		error_set(&err, ERROR_TOO_LARGE, "This request must not have a body.");
	if (err.kind == ERROR_NONE)
		return MHD_YES;
	exchange_fail(exchange, &err);
	request->phase = PHASE_REPLY;
	return request->has_body ? refuse_at_once(request) : MHD_YES;
}

static void read_raw(struct request *request, const char *method, struct raw_header *raw)
{
	const union MHD_ConnectionInfo *const info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	raw_header_begin(
		raw, method, request->exchange.target, info != NULL ? info->header_size : 0);
	walk_headers(request,
		&(const struct header_walk){.take = listener_request_take_raw, .taker = raw});
	raw_header_end(raw);
}

static void listener_request_take_raw(void *taker, struct span name, struct span value)
{
	raw_header_take(taker, name, value);
}

/* Whether each reply has room in the connection's memory beside the head. Without room
 * libmicrohttpd closes without a reply. The headers of a reply may repeat the target, and headers
 * that were stored with an object. */
static bool leaves_room(const struct request *request, const struct raw_header *raw)
{
	const size_t taken = raw->len + raw->count * HEADER_RECORD_BYTES +
		request->exchange.target.len + HEADERS_MAX_BYTES;
	return taken <= request->reactor->listener->options.connection_memory_bytes;
}

static void read_headers(struct request *request, const char *method)
{
	struct exchange *const exchange = &request->exchange;
	read_host(request);
	read_client(request);
	exchange->method = parse_method(method);
	exchange->chunked = exchange_header(exchange, "transfer-encoding").data != NULL;
	exchange->has_length = !exchange->chunked &&
		span_parse_u64(exchange_header(exchange, "content-length"), &exchange->length);
	request->has_body = exchange->chunked || (exchange->has_length && exchange->length > 0);
	request->expects_continue =
		span_equal_nocase(exchange_header(exchange, "expect"), "100-continue");
}

/* The header Host is ignored if the request line names another host (RFC 9112, 3.2.2). It is used
 * if both name the same host, because its text may be signed. */
static void read_host(struct request *request)
{
	struct request_target *const target = &request->target;
	const struct span authority = target->authority;
	target->authority = span_text("");
	const struct span host = span_trim(exchange_header(&request->exchange, "host"));
	if (authority.len == 0 || request_target_is_same_host(host, authority))
		return;
	request->exchange.differs_from_host = host.data != NULL;
	target->authority = authority;
}

/* Takes the client from X-Forwarded-For, if the peer is a trusted proxy. */
static void read_client(struct request *request)
{
	const struct listener_options *const options = &request->reactor->listener->options;
	struct buffer list;
	if (!trusted_proxies_have(options->proxies, &request->client))
		return;
	buffer_init(&list, options->connection_memory_bytes); /* all headers fit there */
	listener_request_walk_headers(&request->exchange, listener_request_take_forwarded, &list);
	set_client(request,
		trusted_proxies_client(options->proxies, &request->link->peer, buffer_span(&list)));
	buffer_release(&list);
}

static void listener_request_take_forwarded(void *taker, struct span name, struct span value)
{
	struct buffer *const list = taker;
	if (!span_equal_nocase(name, "x-forwarded-for"))
		return;
	if (buffer_span(list).len > 0)
		buffer_add_text(list, ",");
	buffer_add_span(list, value);
}

static enum method parse_method(const char *text)
{
	for (size_t i = 0; i < METHOD_COUNT; i++)
		if (strcmp(methods[i].name, text) == 0)
			return methods[i].method;
	return METHOD_OTHER;
}

/* The end of the body must be unambiguous. Otherwise a proxy in front could see other requests on
 * this connection than this server. */
static int check_framing(struct request *request, const struct raw_header *raw, struct error *err)
{
	struct exchange *const exchange = &request->exchange;
	const bool gives_length = exchange_header(exchange, "content-length").data != NULL;
	if (raw->fault != NULL)
		return error_set(err, ERROR_INVALID_REQUEST, "%s", raw->fault);
	if (request->target.fault != NULL && !asks_whole_server(exchange))
		return error_set(err, ERROR_INVALID_REQUEST, "%s", request->target.fault);
	if (exchange->chunked && raw->is_1_0)
		return error_set(err, ERROR_INVALID_REQUEST, "HTTP/1.0 has no Transfer-Encoding.");
	if (exchange->chunked &&
		!span_equal_nocase(exchange_header(exchange, "transfer-encoding"), "chunked"))
		return error_set(err, ERROR_INVALID_REQUEST,
			"A Transfer-Encoding other than chunked is not supported.");
	if (exchange->chunked && gives_length)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Content-Length and Transfer-Encoding exclude each other.");
	if (gives_length && !exchange->has_length)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Content-Length must be given once, in digits.");
	return 0;
}

/* "OPTIONS *" is about the server and not about a path. */
static bool asks_whole_server(const struct exchange *exchange)
{
	return exchange->method == METHOD_OPTIONS && span_equal_text(exchange->target, "*");
}

static enum MHD_Result refuse_at_once(struct request *request)
{
	exchange_add_header(&request->exchange, "Connection", "close");
	request->link->lingers = true;
	request->phase = PHASE_REPLY;
	return request_send(request);
}

static enum MHD_Result begin_upload(struct request *request)
{
	struct exchange *const exchange = &request->exchange;
	const enum next next = begin(request);
	ASSERT(next != NEXT_WAIT); /* Routes with a body do not wait in begin. */
	request->phase = next == NEXT_BODY ? PHASE_BODY : PHASE_REPLY;
	if (next == NEXT_REPLY && (request->expects_continue || exchange->length > DRAIN_MAX_BYTES))
		return refuse_at_once(request);
	return MHD_YES;
}

/* Runs `begin`, after which the caller is known. */
static enum next begin(struct request *request)
{
	const enum next next = router_begin(&request->exchange);
	const struct share_caller caller = caller_of(&request->exchange);
	if (caller.id != request->link->caller.id || caller.rank != request->link->caller.rank)
		connection_set_caller(request->link, caller, true);
	return next;
}

/* False when libmicrohttpd called without a wake. */
static bool take_wake(struct request *request)
{
	int expected = WAIT_WOKEN;
	if (!atomic_compare_exchange_strong(&request->wait_state, &expected, WAIT_RUNNING))
		return false;
	request->suspended = false;
	/* Not in `suspend`: there the exchange may be another thread's already. */
	request->waited |= request->exchange.wait != NULL || request->exchange.reply.is_endless;
	connection_end_wait(request->link);
	metrics_add(request->exchange.context->metrics, METRIC_WAITING, -1);
	atomic_fetch_sub(&request->reactor->listener->inside, 1);
	return true;
}

static enum MHD_Result take_piece(struct request *request, const char *data, size_t *data_size)
{
	struct exchange *const exchange = &request->exchange;
	struct error err = {0};
	enum sink_result result = SINK_TAKEN;
	if (request->phase != PHASE_BODY)
		return drop_piece(request, data_size);
	ASSERT(exchange->sink != NULL);
	while ((result = exchange->sink->write(exchange->sink, span_of(data, *data_size), &err)) ==
		SINK_WAIT) {
		if (suspend(request))
			return MHD_YES; /* Nothing was taken, so the same bytes come again. */
		take_wake(request);
	}
	if (result == SINK_TAKEN) {
		request->received += *data_size;
		*data_size = 0;
		return MHD_YES;
	}
	drop_sink(request);
	exchange_fail_body(exchange, &err);
	request->phase = PHASE_REPLY;
	return drop_piece(request, data_size);
}

static enum MHD_Result drop_piece(struct request *request, size_t *data_size)
{
	const struct exchange *const exchange = &request->exchange;
	const uint64_t taken = request->received + request->dropped;
	const uint64_t left =
		exchange->has_length && exchange->length > taken ? exchange->length - taken : 0;
	if (left > DRAIN_MAX_BYTES || request->dropped > DRAIN_MAX_BYTES)
		return request_send_direct(request);
	request->dropped += *data_size;
	*data_size = 0;
	return MHD_YES;
}

/* True when the handler must wait; false when its wake has come already. */
static bool suspend(struct request *request)
{
	int expected = WAIT_RUNNING;
	ASSERT(!request->suspended);
	request->suspended = true;
	atomic_fetch_add(&request->reactor->listener->inside, 1);
	metrics_add(request->exchange.context->metrics, METRIC_WAITING, 1);
	connection_begin_wait(request->link, request);
	if (atomic_load(&request->wait_state) == WAIT_RUNNING) {
		MHD_suspend_connection(request->connection);
		if (!atomic_compare_exchange_strong(
			    &request->wait_state, &expected, WAIT_SUSPENDED))
			MHD_resume_connection(request->connection);
		return true;
	}
	return false;
}

static void drop_sink(struct request *request)
{
	struct exchange *const exchange = &request->exchange;
	if (exchange->sink != NULL)
		exchange->sink->abort(exchange->sink);
	exchange->sink = NULL;
}

static enum MHD_Result last_call(struct request *request)
{
	switch (request->phase) {
	case PHASE_BEGIN:
		return run_steps(request, begin(request));
	case PHASE_BODY:
		return run_steps(request, finish_body(request));
	case PHASE_WAIT:
		return run_steps(request, router_resume(&request->exchange));
	case PHASE_REPLY:
		return request_send(request);
	case PHASE_SENT:
		break;
	}
	return MHD_YES;
}

/* For calls without a piece of the body: continues until there is a reply or a wait. */
static enum MHD_Result run_steps(struct request *request, enum next next)
{
	while (next != NEXT_REPLY) {
		if (next == NEXT_BODY) { /* No body came, so it is empty and complete. */
			next = finish_body(request);
			continue;
		}
		request->phase = PHASE_WAIT;
		if (suspend(request))
			return MHD_YES;
		take_wake(request);
		next = router_resume(&request->exchange);
	}
	request->phase = PHASE_REPLY;
	return request_send(request);
}

static enum next finish_body(struct request *request)
{
	struct exchange *const exchange = &request->exchange;
	struct error err = {0};
	ASSERT(exchange->sink != NULL);
	if (exchange->sink->finish(exchange->sink, &err) != 0) {
		drop_sink(request);
		return exchange_fail_body(exchange, &err);
	}
	exchange->sink = NULL;
	return router_finish(exchange);
}

static void count_request(const struct request *request)
{
	struct metrics *const metrics = request->exchange.context->metrics;
	metrics_add(metrics, METRIC_REQUESTS, 1);
	if (request->exchange.reply.status >= 500)
		metrics_add(metrics, METRIC_REQUEST_ERRORS, 1);
	metrics_add(
		metrics, METRIC_BYTES_RECEIVED, (int64_t)(request->received + request->dropped));
	metrics_add(metrics, METRIC_BYTES_SENT, (int64_t)request->sent);
	const struct route_sample sample = {
		.face = request->exchange.face,
		.route = request->exchange.route,
		.status = request->exchange.reply.status,
		.waited = request->waited,
		.us = clock_monotonic_us() - request->started_us,
		.reply_bytes = request->sent,
	};
	route_metrics_count(request->exchange.context->route_metrics, &sample);
}

static void log_request(struct request *request, bool whole)
{
	struct exchange *const exchange = &request->exchange;
	const struct api_context *const context = exchange->context;
	if (context->log == NULL || !log_wants(context->log, LOG_INFO))
		return;
	const struct span nobody = span_text("-");
	const struct span agent = exchange_header(exchange, "user-agent");
	char client[CLIENT_ADDRESS_TEXT_BYTES];
	client_address_format(&request->client, client);
	const struct log_field fields[] = {
		log_text("method", method_name(exchange->method)),
		log_span("path", router_log_path(exchange)),
		log_text("route", exchange->route != NULL ? exchange->route->name : "-"),
		log_number("status", exchange->reply.status),
		log_number("received", (int64_t)request->received),
		log_number("sent", (int64_t)request->sent),
		log_number(
			"ms", context->clock->monotonic_ms(context->clock) - request->started_ms),
		log_text("client", client),
		log_span("key", exchange->principal != NULL ? exchange->principal->key_id : nobody),
		log_span("agent", agent.data != NULL ? span_slice(agent, 0, 128) : nobody),
		log_text("end", whole ? "whole" : "listener_request_cut"),
	};
	log_event(context->log, LOG_INFO, exchange->request_id, "request", fields,
		sizeof(fields) / sizeof(fields[0]));
}

static const char *method_name(enum method method)
{
	for (size_t i = 0; i < METHOD_COUNT; i++)
		if (methods[i].method == method)
			return methods[i].name;
	return "OTHER";
}
