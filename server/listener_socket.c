/* A Unix socket is made with its final mode, set by the umask during bind, so that no other user
 * can connect before a chmod. An existing socket is replaced only if no process answers on it.
 * Errors of TCP addresses get advice from a table by errno. */
#include "server/listener_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

enum { BACKLOG = 4096, ADDRESS_MAX_BYTES = 300 };

static const struct {
	int fault;
	const char *advice;
} advices[] = {
	{EADDRINUSE,
		"another program listens there; stop it, or name a free port with --listen HOST:PORT"},
	{EADDRNOTAVAIL,
		"this machine does not have it; --listen takes one that it has, or 0.0.0.0:PORT for all"},
	{EACCES, "ports below 1024 are for root; --listen takes another one"},
};

static int check_unix_path(struct span path, struct error *err);
static bool split_address(const char *address, char host[ADDRESS_MAX_BYTES], const char **out_port);
static int bad_address(const char *address, struct error *err);
static int bind_unix(struct listener_socket *opened, const struct sockaddr_un *where, mode_t mode,
	struct error *err);
static int connect_unix(const struct sockaddr_un *where);
static int open_tcp(struct listener_socket *opened, const char *address, struct error *err);
static int bind_tcp(const struct addrinfo *where);
static int refuse_address(const char *address, struct error *err);

int listener_socket_check(const char *address, struct error *err)
{
	char host[ADDRESS_MAX_BYTES];
	const char *port;
	uint64_t number;
	if (strncmp(address, "unix:", 5) == 0)
		return check_unix_path(span_text(address + 5), err);
	if (!split_address(address, host, &port) || !span_parse_u64(span_text(port), &number) ||
		number > UINT16_MAX)
		return bad_address(address, err);
	return 0;
}

int listener_socket_open_unix(
	struct listener_socket *opened, const char *path, mode_t mode, struct error *err)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	*opened = (struct listener_socket){.fd = -1, .group = GROUP_LOCAL};
	if (check_unix_path(span_text(path), err) != 0)
		return -1;
	memcpy(where.sun_path, path, strlen(path) + 1);
	return bind_unix(opened, &where, mode, err);
}

int listener_socket_open(struct listener_socket *opened, const char *address, struct error *err)
{
	*opened = (struct listener_socket){.fd = -1, .group = GROUP_MAIN};
	if (listener_socket_check(address, err) != 0)
		return -1;
	if (strncmp(address, "unix:", 5) == 0)
		return listener_socket_open_unix(opened, address + 5, 0666, err);
	return open_tcp(opened, address, err);
}

int listener_socket_try(const char *address, struct error *err)
{
	struct listener_socket opened;
	if (strncmp(address, "unix:", 5) == 0)
		return listener_socket_check(address, err);
	if (listener_socket_open(&opened, address, err) != 0)
		return -1;
	listener_socket_close(&opened);
	return 0;
}

void listener_socket_close(struct listener_socket *opened)
{
	if (opened->fd >= 0)
		close(opened->fd);
	if (opened->unix_path != NULL)
		unlink(opened->unix_path);
	free(opened->unix_path);
	*opened = (struct listener_socket){.fd = -1};
}

unsigned listener_socket_port(const struct listener_socket *opened)
{
	struct sockaddr_storage where;
	socklen_t len = sizeof(where);
	if (opened->unix_path != NULL ||
		getsockname(opened->fd, (struct sockaddr *)&where, &len) != 0)
		return 0;
	return where.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&where)->sin6_port)
					   : ntohs(((const struct sockaddr_in *)&where)->sin_port);
}

void listener_socket_print(
	const struct listener_socket *opened, const char *scheme, struct buffer *out)
{
	struct sockaddr_storage where;
	socklen_t len = sizeof(where);
	char host[ADDRESS_MAX_BYTES];
	char port[32];
	if (opened->unix_path != NULL) {
		buffer_format(out, "unix:%s", opened->unix_path);
		return;
	}
	if (getsockname(opened->fd, (struct sockaddr *)&where, &len) != 0 ||
		getnameinfo((struct sockaddr *)&where, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	const bool v6 = where.ss_family == AF_INET6;
	const bool is_all = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
	const char *const from_here = !is_all ? host : v6 ? "::1" : "127.0.0.1";
	buffer_format(out, "%s://%s%s%s:%s%s", scheme, v6 ? "[" : "", from_here, v6 ? "]" : "",
		port, is_all ? " (listens on all addresses)" : "");
}

static int check_unix_path(struct span path, struct error *err)
{
	static const struct sockaddr_un room;
	if (path.len == 0 || path.len >= sizeof(room.sun_path))
		return error_set(err, ERROR_INVALID,
			"the socket path '%.*s' must have 1 to %zu bytes", (int)path.len,
			(const char *)path.data, sizeof(room.sun_path) - 1);
	return 0;
}

/* Splits "host:port" or "[host]:port". */
static bool split_address(const char *address, char host[ADDRESS_MAX_BYTES], const char **out_port)
{
	const char *const colon = strrchr(address, ':');
	if (colon == NULL || colon[1] == '\0' || strlen(address) >= ADDRESS_MAX_BYTES)
		return false;
	size_t len = (size_t)(colon - address);
	const bool bracketed = address[0] == '[';
	if (bracketed && (len < 3 || address[len - 1] != ']'))
		return false;
	if (!bracketed && memchr(address, ':', len) != NULL)
		return false; /* an IPv6 address without brackets */
	memset(host, 0, ADDRESS_MAX_BYTES);
	memcpy(host, address + bracketed, len - (bracketed ? 2 : 0));
	*out_port = colon + 1;
	return true;
}

static int bad_address(const char *address, struct error *err)
{
	return error_set(err, ERROR_INVALID,
		"the address '%s' is not HOST:PORT, [HOST]:PORT or unix:PATH, with a port of up to 65535",
		address);
}

static int bind_unix(struct listener_socket *opened, const struct sockaddr_un *where, mode_t mode,
	struct error *err)
{
	const char *const path = where->sun_path;
	struct stat facts;
	if (connect_unix(where) == 0)
		return error_set(err, ERROR_BUSY, "another process answers on %s", path);
	if (lstat(path, &facts) == 0 && !S_ISSOCK(facts.st_mode))
		return error_set(err, ERROR_EXISTS, "%s exists and is not a socket", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return error_set_errno(err, "cannot remove the old socket %s", path);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(err, "cannot make a socket for %s", path);
	const mode_t old = umask(0777 & ~mode);
	const int bound = bind(fd, (const struct sockaddr *)where, sizeof(*where));
	umask(old);
	if (bound != 0 || listen(fd, BACKLOG) != 0) {
		error_set_errno(err, "cannot listen on %s", path);
		close(fd);
		return -1;
	}
	opened->fd = fd;
	opened->unix_path = memory_copy_text(path);
	return 0;
}

static int connect_unix(const struct sockaddr_un *where)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	const int outcome = connect(fd, (const struct sockaddr *)where, sizeof(*where));
	close(fd);
	return outcome;
}

static int open_tcp(struct listener_socket *opened, const char *address, struct error *err)
{
	char host[ADDRESS_MAX_BYTES];
	const char *port;
	struct addrinfo *found = NULL;
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	if (!split_address(address, host, &port))
		return bad_address(address, err);
	const int code = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
	if (code != 0)
		return error_set(err, ERROR_INVALID,
			"cannot listen on %s: %s; --listen takes an address of this machine",
			address, gai_strerror(code));
	opened->fd = bind_tcp(found);
	if (opened->fd < 0)
		refuse_address(address, err);
	freeaddrinfo(found);
	return opened->fd < 0 ? -1 : 0;
}

static int bind_tcp(const struct addrinfo *where)
{
	const int on = 1;
	const int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (where->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	const int fault = errno;
	close(fd);
	errno = fault;
	return -1;
}

/* Sets the error from errno, with advice. */
static int refuse_address(const char *address, struct error *err)
{
	const char *advice = "--listen takes another address";
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (advices[i].fault == errno)
			advice = advices[i].advice;
	error_set_errno(err, "cannot listen on %s", address);
	return error_advise(err, "%s", advice);
}
