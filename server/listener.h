/* HTTP and HTTPS over libmicrohttpd. Each of N reactors is an MHD daemon with one thread and epoll.
 * One accept thread deals connections to them in turn. Each request is an exchange for
 * api/route/router. Unix sockets (unix:PATH) serve plain HTTP on reactors of their own. The control
 * socket has a reactor too, whose requests act as root.
 *
 * Start and stop from one thread. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "api/exchange/context.h"
#include "base/net/trusted_proxies.h"

struct listener;

struct listener_options {
	const struct api_context *context;
	char *const *addresses; /* HOST:PORT, [HOST]:PORT, unix:PATH */
	size_t address_count;
	const char *control_path;              /* NULL: none */
	const struct trusted_proxies *proxies; /* NULL: none; must outlive the listener */
	/* TLS on TCP addresses, with the certificate of certificate.h */
	bool secure;
	const char *tls_priorities;
	unsigned reactors; /* at least 1 */
	unsigned connections;
	size_t connection_memory_bytes;
	unsigned idle_timeout_s;
};

/* Binds all addresses. Clients may connect, and wait until listener_serve. All that `options`
 * points to must outlive the listener. */
struct listener *listener_bind(const struct listener_options *options, struct error *err);
int listener_serve(struct listener *listener, struct error *err);
/* The port that addresses[number] was bound to; 0 for a Unix socket. Not after listener_quiesce. */
unsigned listener_port(const struct listener *listener, size_t number);
/* Prints the URLs of its addresses for people, separated by spaces. For port 0 it prints the port
 * that the system chose. */
void listener_print_endpoints(const struct listener *listener, struct buffer *out);
/* Accepts no more connections; each further reply closes its connection. */
void listener_quiesce(struct listener *listener);
/* Ends the waits of clients that have hung up. Until it is quiesced the listener does so by
 * itself. */
void listener_sweep(struct listener *listener);
/* The count of requests that have begun and not ended. */
int64_t listener_active(const struct listener *listener);
/* Drops the requests that have not ended, after waiting for their commits, and frees the listener.
 * Must be called after all long polls were woken for good. Quiesces if that was not done. NULL is
 * fine. */
void listener_stop(struct listener *listener);

#endif
