/* From the exchange's reply to libmicrohttpd's. Bodies in memory stay in the arena, which outlives the sending; streamed ones are read
 * in blocks as large as assemble likes them. */
#include "server/listener_internal.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "storage/assemble.h"

enum { STREAM_BLOCK_BYTES = 4096 };

static ssize_t read_source(void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)position;
	struct request *const request = owner;
	struct exchange *const exchange = &request->exchange;
	struct error err = {0};
	const ptrdiff_t got = exchange->reply.source->read(exchange->reply.source, (uint8_t *)into, capacity, &err);
	if (got > 0) {
		request->sent += (uint64_t)got;
		return got;
	}
	if (got == 0)
		error_set(&err, ERROR_CORRUPT, "the body ended before its announced length");
	if (exchange->context->log != NULL)
		log_failure(exchange->context->log, LOG_ERROR, exchange->request_id, "body_failed", &err);
	return MHD_CONTENT_READER_END_WITH_ERROR; /* the length is out already: the connection must break (invariant 7) */
}

static ssize_t read_stream(void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)position;
	return request_stream(owner, into, capacity);
}

/* For the sizes that HEAD and 304 announce: libmicrohttpd reads no body then. */
static ssize_t read_nothing(void *owner, uint64_t position, char *into, size_t capacity)
{
	(void)owner;
	(void)position;
	(void)into;
	(void)capacity;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *make_response(struct request *request)
{
	const struct reply *const reply = &request->exchange.reply;
	const bool is_head = request->exchange.method == METHOD_HEAD;
	const uint64_t block = reply->length < ASSEMBLE_BLOCK_BYTES ? reply->length : ASSEMBLE_BLOCK_BYTES;
	if (reply->is_endless && reply->source != NULL)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, request, NULL);
	const bool announces = is_head || reply->status == 304;
	if (announces && reply->length_known && reply->length > 0)
		return MHD_create_response_from_callback(reply->length, 1, read_nothing, NULL, NULL);
	if (reply->source != NULL && reply->length > 0)
		return MHD_create_response_from_callback(reply->length, (size_t)block, read_source, request, NULL);
	const size_t len = reply->source == NULL ? reply->body.len : 0;
	if (!is_head)
		request->sent = len;
	return MHD_create_response_from_buffer(len, len > 0 ? (void *)(uintptr_t)reply->body.data : "", MHD_RESPMEM_PERSISTENT);
}

/* libmicrohttpd refuses an empty value. A blank one is the same to readers: they trim it. */
static bool add(struct MHD_Response *response, const char *name, const char *value)
{
	return MHD_add_response_header(response, name, value[0] != '\0' ? value : " ") == MHD_YES;
}

/* libmicrohttpd refuses values with line breaks: such a header is dropped, and said so, instead of losing the whole reply. */
static void add_headers(struct request *request, struct MHD_Response *response)
{
	const struct exchange *const exchange = &request->exchange;
	const struct reply *const reply = &exchange->reply;
	add(response, "Server", "deltabucket");
	add(response, "x-amz-request-id", exchange->request_id);
	add(response, "x-amz-id-2", exchange->request_id);
	if (reply->content_type != NULL)
		add(response, "Content-Type", reply->content_type);
	for (size_t i = 0; i < reply->header_count; i++)
		if (!add(response, reply->headers[i].name, reply->headers[i].value) && exchange->context->log != NULL) {
			const struct log_field field = log_text("header", reply->headers[i].name);
			log_event(exchange->context->log, LOG_WARNING, exchange->request_id, "header_dropped", &field, 1);
		}
	if (atomic_load(&request->reactor->listener->quiesced) || atomic_load(&request->link->hung_up) || request->body != NULL)
		add(response, "Connection", "close");
}

enum MHD_Result request_send(struct request *request)
{
	struct MHD_Response *const response = make_response(request);
	if (response == NULL)
		return MHD_NO;
	add_headers(request, response);
	const enum MHD_Result queued = MHD_queue_response(request->connection, (unsigned)request->exchange.reply.status, response);
	MHD_destroy_response(response);
	request->phase = PHASE_SENT;
	return queued;
}

/* So short that a socket takes it whole, unless its client reads nothing and will not miss it. */
enum MHD_Result request_send_bare(struct request *request, unsigned status)
{
	struct MHD_Connection *const connection = request->connection;
	char text[128];
	snprintf(text, sizeof text, "HTTP/1.1 %u %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		status, MHD_get_reason_phrase_for(status));
	request->exchange.reply.status = (int)status;
	request->phase = PHASE_SENT;
	const union MHD_ConnectionInfo *const session =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (session != NULL)
		gnutls_record_send(session->tls_session, text, strlen(text));
	else
		send(connection_find(connection)->fd, text, strlen(text), MSG_NOSIGNAL);
	return MHD_NO;
}
