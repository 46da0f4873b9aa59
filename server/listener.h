/* HTTP and HTTPS over libmicrohttpd: N single-threaded reactors (an MHD daemon each, epoll), one
 * accept thread that deals connections among them in turn, every request an exchange for
 * api/route/router. Sockets below unix: paths speak plain HTTP on reactors of their own; the
 * control socket has one too, whose requests act as root.
 *
 * Start and stop from one thread. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "api/exchange/context.h"
#include "server/trusted_proxies.h"

struct listener;

struct listener_options {
	const struct api_context *context;
	char *const *addresses; /* HOST:PORT, [HOST]:PORT, unix:PATH */
	size_t address_count;
	const char *control_path;              /* NULL: none */
	const struct trusted_proxies *proxies; /* NULL: none; outlives the listener */
	/* TLS on TCP addresses, with the certificate opened last (certificate.h) */
	bool secure;
	const char *tls_priorities;
	unsigned reactors; /* at least 1 */
	unsigned connections;
	size_t connection_memory_bytes;
	unsigned idle_timeout_s;
};

/* Binds all; who connects waits until it serves. What `options` points to outlives the listener. */
struct listener *listener_bind(const struct listener_options *options, struct error *err);
int listener_serve(struct listener *listener, struct error *err);
/* The port that addresses[number] was bound to; 0 for a unix socket. */
unsigned listener_port(const struct listener *listener, size_t number);
/* URLs of what it listens on, for people, separated by spaces; port 0 shows the port it got. */
void listener_print_endpoints(const struct listener *listener, struct buffer *out);
/* No further connections; replies close theirs. */
void listener_quiesce(struct listener *listener);
/* Ends the waits of clients that have hung up. The listener does so itself until it is quiesced. */
void listener_sweep(struct listener *listener);
/* Requests under way. */
int64_t listener_active(const struct listener *listener);
/* After quiesce, and after all long polls were woken for good: drops what is still under way (waits
 * for commits to end first), frees. */
void listener_stop(struct listener *listener);

#endif
