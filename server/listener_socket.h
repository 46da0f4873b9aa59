/* Listening sockets: parses and binds their addresses. */
#ifndef SERVER_LISTENER_SOCKET_H
#define SERVER_LISTENER_SOCKET_H

#include <sys/types.h>

#include "base/buffer.h"

/* The reactors that serve a socket. */
enum listener_group { GROUP_MAIN, GROUP_LOCAL, GROUP_CONTROL, GROUP_COUNT };

struct listener_socket {
	int fd;
	enum listener_group group;
	char *unix_path; /* to unlink at close; NULL for TCP */
};

/* Checks the text of a "--listen" address; fails with invalid. It may still be impossible to
 * bind. */
int listener_socket_check(const char *address, struct error *err);
/* Binds one "--listen" address. Fails with invalid or with the system's error. A stale Unix socket,
 * on which no process answers, is replaced; a live one gives busy. */
int listener_socket_open(struct listener_socket *socket, const char *address, struct error *err);
/* Tries whether a TCP address can be bound, and closes it again. For a Unix socket it only checks
 * the text. */
int listener_socket_try(const char *address, struct error *err);
/* Binds a Unix socket with this mode. */
int listener_socket_open_unix(
	struct listener_socket *socket, const char *path, mode_t mode, struct error *err);
void listener_socket_close(struct listener_socket *socket);
/* The bound port; 0 for a Unix socket. */
unsigned listener_socket_port(const struct listener_socket *socket);
/* Prints "https://HOST:PORT" for clients on this machine, with a note if the socket is bound to all
 * addresses. */
void listener_socket_print(
	const struct listener_socket *socket, const char *scheme, struct buffer *out);

#endif
