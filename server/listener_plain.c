/* A client that sends plain HTTP to a TLS port gets a plain reply with the reason; GnuTLS would
 * close the connection without one. GnuTLS reads through a function of this file, which looks at
 * the first byte. A TLS record begins with its type, which is not a letter; an HTTP request begins
 * with the letters of its method. This needs no wait and no further read. */
#include <gnutls/gnutls.h>
#include <sys/socket.h>

#include "server/listener_internal.h"

/* The reply ends with the connection. */
static const char answer[] =
	"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
	"Client sent an HTTP request to an HTTPS server: use https:// in the URL.\n";

static ssize_t listener_plain_read(gnutls_transport_ptr_t from, void *into, size_t capacity);
static bool is_letter(uint8_t byte);
static void answer_plain(struct connection *connection);
static int listener_plain_await(gnutls_transport_ptr_t from, unsigned ms);

/* The connection outlives the session, because libmicrohttpd ends the session before it reports the
 * end of the connection. */
void connection_answer_plain(struct connection *connection, struct MHD_Connection *handle)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(handle, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (info == NULL || info->tls_session == NULL)
		return;
	gnutls_session_t const session = info->tls_session;
	gnutls_transport_set_ptr2(
		session, connection, (gnutls_transport_ptr_t)(intptr_t)connection->fd);
	gnutls_transport_set_pull_function(session, listener_plain_read);
	gnutls_transport_set_pull_timeout_function(session, listener_plain_await);
}

/* Returns 0 to GnuTLS for the end of the stream. */
static ssize_t listener_plain_read(gnutls_transport_ptr_t from, void *into, size_t capacity)
{
	struct connection *const connection = from;
	const ssize_t got = recv(connection->fd, into, capacity, 0);
	if (got <= 0 || connection->has_begun)
		return got;
	connection->has_begun = true;
	if (!is_letter(*(const uint8_t *)into))
		return got;
	answer_plain(connection);
	return 0;
}

static bool is_letter(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z';
}

/* The client may still be sending. Those bytes are dropped, so that the reply reaches it. */
static void answer_plain(struct connection *connection)
{
	char client[CLIENT_ADDRESS_TEXT_BYTES];
	struct log *const log = connection->reactor->listener->context->log;
	/* The first bytes of a connection always have room in the socket. */
	(void)!send(connection->fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	connection->lingers = true;
	if (log == NULL)
		return;
	client_address_format(&connection->peer, client);
	const struct log_field field = log_text("client", client);
	log_event(log, LOG_INFO, NULL, "plain_http_refused", &field, 1);
}

static int listener_plain_await(gnutls_transport_ptr_t from, unsigned ms)
{
	const struct connection *const connection = from;
	return gnutls_system_recv_timeout((gnutls_transport_ptr_t)(intptr_t)connection->fd, ms);
}
