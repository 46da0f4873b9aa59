/* Turns the exchange's reply into a response of libmicrohttpd. A body in memory stays in the arena
 * or in reply.bytes, which outlive the sending. A streamed body is read in blocks of
 * ASSEMBLE_BLOCK_BYTES. A reply that cannot wait for the end of the request's body is written
 * directly to the socket. */
#include "server/listener_internal.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "storage/packs/assemble.h"

enum { STREAM_BLOCK_BYTES = 4096, DIRECT_MAX_BYTES = 32 * 1024 };

typedef bool add_header_fn(void *to, const char *name, const char *value);

static struct MHD_Response *make_response(struct request *request);
static ssize_t listener_reply_read_stream(
	void *owner, uint64_t position, char *into, size_t capacity);
static ssize_t listener_reply_read_nothing(
	void *owner, uint64_t position, char *into, size_t capacity);
static ssize_t listener_reply_read_source(
	void *owner, uint64_t position, char *into, size_t capacity);
static ptrdiff_t read_source(
	struct request *request, char *into, size_t capacity, struct error *err);
static void add_headers(const struct request *request, add_header_fn *add, void *to);
static void disarm(const struct exchange *exchange, add_header_fn *add, void *to);
static bool listener_reply_add_to_response(void *to, const char *name, const char *value);
static bool must_close(const struct request *request);
static bool listener_reply_add_to_text(void *to, const char *name, const char *value);
static enum MHD_Result send_direct(struct request *request, struct span text);

enum MHD_Result request_send(struct request *request)
{
	struct MHD_Response *const response = make_response(request);
	if (response == NULL)
		return MHD_NO;
	add_headers(request, listener_reply_add_to_response, response);
	if (must_close(request))
		listener_reply_add_to_response(response, "Connection", "close");
	const enum MHD_Result queued = MHD_queue_response(
		request->connection, (unsigned)request->exchange.reply.status, response);
	MHD_destroy_response(response);
	request->phase = PHASE_SENT;
	return queued;
}

enum MHD_Result request_send_direct(struct request *request)
{
	const struct exchange *const exchange = &request->exchange;
	const struct clock_source *const clock = exchange->context->clock;
	const unsigned status = (unsigned)exchange->reply.status;
	const struct span body =
		exchange->reply.source == NULL ? exchange->reply.body : span_text("");
	char date[CLOCK_TEXT_BYTES];
	struct buffer text;
	clock_format_http(clock->wall_ms(clock), date);
	buffer_init(&text, DIRECT_MAX_BYTES);
	buffer_format(&text, "HTTP/1.1 %u %s\r\nDate: %s\r\n", status,
		MHD_get_reason_phrase_for(status), date);
	add_headers(request, listener_reply_add_to_text, &text);
	buffer_format(&text, "Connection: close\r\nContent-Length: %zu\r\n\r\n", body.len);
	buffer_add_span(&text, body);
	request->sent = body.len;
	const enum MHD_Result result = buffer_failed(&text)
		? request_send_bare(request, status)
		: send_direct(request, buffer_span(&text));
	buffer_release(&text);
	return result;
}

enum MHD_Result request_send_bare(struct request *request, unsigned status)
{
	char text[128];
	snprintf(text, sizeof(text),
		"HTTP/1.1 %u %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
		MHD_get_reason_phrase_for(status));
	request->exchange.reply.status = (int)status;
	return send_direct(request, span_text(text));
}

static struct MHD_Response *make_response(struct request *request)
{
	const struct reply *const reply = &request->exchange.reply;
	const bool is_head = request->exchange.method == METHOD_HEAD;
	const uint64_t block =
		reply->length < ASSEMBLE_BLOCK_BYTES ? reply->length : ASSEMBLE_BLOCK_BYTES;
	if (reply->is_endless && reply->source != NULL)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES,
			listener_reply_read_stream, request, NULL);
	const bool announces = is_head || reply->status == 304;
	if (announces && reply->length_known && reply->length > 0)
		return MHD_create_response_from_callback(
			reply->length, 1, listener_reply_read_nothing, NULL, NULL);
	if (reply->source != NULL && reply->length > 0)
		return MHD_create_response_from_callback(
			reply->length, (size_t)block, listener_reply_read_source, request, NULL);
	const size_t len = reply->source == NULL ? reply->body.len : 0;
	if (!is_head)
		request->sent = len;
	return MHD_create_response_from_buffer(
		len, len > 0 ? (void *)(uintptr_t)reply->body.data : "", MHD_RESPMEM_PERSISTENT);
}

static ssize_t listener_reply_read_stream(
	void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)position;
	struct error err = {0};
	const ptrdiff_t got = request_stream(owner, into, capacity, &err);
	if (got == SOURCE_WAIT)
		return 0;
	return got > 0     ? (ssize_t)got
		: got == 0 ? MHD_CONTENT_READER_END_OF_STREAM
			   : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* For HEAD and 304, which only announce a length. libmicrohttpd does not read the body. */
static ssize_t listener_reply_read_nothing(
	void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)owner;
	(void)position;
	(void)into;
	(void)capacity;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t listener_reply_read_source(
	void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)position;
	struct request *const request = owner;
	struct exchange *const exchange = &request->exchange;
	struct error err = {0};
	const ptrdiff_t got = read_source(request, into, capacity, &err);
	if (got > 0 || got == SOURCE_WAIT)
		return got > 0 ? got : 0;
	if (got == 0)
		error_set(&err, ERROR_CORRUPT, "The body ended before its announced length.");
	if (exchange->context->log != NULL && err.kind != ERROR_BUSY)
		log_failure(exchange->context->log, LOG_ERROR, exchange->request_id, "body_failed",
			&err);
	/* The length is sent already, so the connection must break (invariant 7). */
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ptrdiff_t read_source(
	struct request *request, char *into, size_t capacity, struct error *err)
{
	const struct reply *const reply = &request->exchange.reply;
	ASSERT(reply->source != NULL);
	if (reply->may_wait)
		return request_stream(request, into, capacity, err);
	const ptrdiff_t got = reply->source->read(reply->source, (uint8_t *)into, capacity, err);
	request->sent += got > 0 ? (uint64_t)got : 0;
	return got;
}

/* A header that cannot be sent is dropped with a log line, so that the reply is not lost. */
static void add_headers(const struct request *request, add_header_fn *add, void *to)
{
	const struct exchange *const exchange = &request->exchange;
	const struct reply *const reply = &exchange->reply;
	add(to, "Server", "deltabucket");
	add(to, "x-amz-request-id", exchange->request_id);
	add(to, "x-amz-id-2", exchange->request_id);
	disarm(exchange, add, to);
	if (reply->content_type != NULL)
		add(to, "Content-Type", reply->content_type);
	for (size_t i = 0; i < reply->header_count; i++)
		if (!add(to, reply->headers[i].name, reply->headers[i].value) &&
			exchange->context->log != NULL) {
			const struct log_field field = log_text("header", reply->headers[i].name);
			log_event(exchange->context->log, LOG_WARNING, exchange->request_id,
				"header_dropped", &field, 1);
		}
}

/* What users have stored shares the origin of the console and of the Hub's pages, and errors and
 * lists hold words of it. So a reply runs no script in that origin unless its handler has set a
 * policy of its own. A 304 too, because browsers update cached headers from it. */
static void disarm(const struct exchange *exchange, add_header_fn *add, void *to)
{
	add(to, "X-Content-Type-Options", "nosniff");
	if (!exchange_has_reply_header(exchange, "Content-Security-Policy"))
		add(to, "Content-Security-Policy", "sandbox");
}

/* libmicrohttpd refuses line breaks and an empty value. A blank means the same, because readers
 * trim values. */
static bool listener_reply_add_to_response(void *to, const char *name, const char *value)
{
	return MHD_add_response_header(to, name, value[0] != '\0' ? value : " ") == MHD_YES;
}

static bool must_close(const struct request *request)
{
	return atomic_load(&request->reactor->listener->quiesced) ||
		atomic_load(&request->link->hung_up) || request->body != NULL;
}

static bool listener_reply_add_to_text(void *to, const char *name, const char *value)
{
	if (strpbrk(value, "\r\n") != NULL)
		return false;
	buffer_format(to, "%s: %s\r\n", name, value);
	return true;
}

/* The text is so short that the socket takes all of it, unless the client does not read. */
static enum MHD_Result send_direct(struct request *request, struct span text)
{
	struct MHD_Connection *const connection = request->connection;
	const union MHD_ConnectionInfo *const session =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (session != NULL)
		gnutls_record_send(session->tls_session, text.data, text.len);
	else
		send(request->link->fd, text.data, text.len, MSG_NOSIGNAL);
	request->phase = PHASE_SENT;
	request->link->lingers = true;
	return MHD_NO;
}
