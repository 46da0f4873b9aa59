/* Listening sockets: parsed addresses, bound. */
#ifndef SERVER_LISTENER_SOCKET_H
#define SERVER_LISTENER_SOCKET_H

#include <sys/types.h>

#include "base/buffer.h"

/* which reactors serve it */
enum listener_group { GROUP_MAIN, GROUP_LOCAL, GROUP_CONTROL, GROUP_COUNT };

struct listener_socket {
	int fd;
	enum listener_group group;
	char *unix_path; /* to unlink at close; NULL for TCP */
};

/* Is this the text of a "--listen" address? invalid when not; whether it can be bound is another
 * question. */
int listener_socket_check(const char *address, struct error *err);
/* Binds one "--listen" address: invalid, or the system's word. A stale unix socket (nobody answers)
 * is replaced; a live one is busy. */
int listener_socket_open(struct listener_socket *socket, const char *address, struct error *err);
/* Whether a TCP address could be bound now; it is let go again. Of a unix socket only the text is
 * judged. */
int listener_socket_try(const char *address, struct error *err);
/* A unix socket with this mode. */
int listener_socket_open_unix(
	struct listener_socket *socket, const char *path, mode_t mode, struct error *err);
void listener_socket_close(struct listener_socket *socket);
/* The port as bound; 0 for a unix socket. */
unsigned listener_socket_port(const struct listener_socket *socket);
/* "https://HOST:PORT" by which this machine's clients reach it; one that is bound to all addresses
 * says so behind it. */
void listener_socket_print(
	const struct listener_socket *socket, const char *scheme, struct buffer *out);

#endif
