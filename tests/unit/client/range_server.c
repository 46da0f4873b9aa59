#include "tests/unit/client/range_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

enum { CONNECTIONS_MAX = 256, REQUEST_MAX_BYTES = 8192 };

struct connection {
	struct range_server *server;
	int fd;
	pthread_t thread;
};

struct range_server {
	struct span content;
	struct range_server_faults *faults;
	char endpoint[64];
	int fd;
	pthread_t thread;
	struct connection connections[CONNECTIONS_MAX];
	size_t count;
};

/* Takes one from a counter of faults. */
static bool take(atomic_int *counter)
{
	int left = atomic_load(counter);
	while (left > 0)
		if (atomic_compare_exchange_weak(counter, &left, left - 1))
			return true;
	return false;
}

static bool send_all(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		const ssize_t sent = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		done += (size_t)sent;
	}
	return true;
}

static bool send_status(int fd, int status)
{
	char head[128];
	const int len =
		snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status);
	return send_all(fd, head, (size_t)len);
}

static bool send_range(const struct connection *connection, int status, size_t from, size_t len)
{
	struct range_server_faults *const faults = connection->server->faults;
	char head[160];
	const int head_len = snprintf(
		head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status, len);
	uint8_t *const body = memory_copy(connection->server->content.data + from, len + 1);
	if (take(&faults->flips))
		body[len / 2] ^= 1;
	const bool cut = take(&faults->cuts);
	const size_t sent = cut ? len / 2 : len;
	atomic_fetch_add(&faults->sent, sent); /* before: who has the last byte may look at once */
	const bool result = send_all(connection->fd, head, (size_t)head_len) &&
		send_all(connection->fd, body, sent) && !cut;
	free(body);
	return result;
}

static bool answer(const struct connection *connection, const char *request)
{
	struct range_server_faults *const faults = connection->server->faults;
	const struct span content = connection->server->content;
	const char *const range = strstr(request, "Range: bytes=");
	size_t from = 0;
	size_t to = content.len - 1;
	atomic_fetch_add(&faults->requests, 1);
	if (atomic_load(&faults->status) != 0)
		return send_status(connection->fd, atomic_load(&faults->status));
	if (atomic_load(&faults->die) && !take(&faults->good))
		return false;
	if (take(&faults->refusals))
		return send_status(connection->fd, 503);
	const bool ranged = range != NULL && !atomic_load(&faults->ignore_range) &&
		sscanf(range, "Range: bytes=%zu-%zu", &from, &to) == 2;
	if (ranged && atomic_load(&faults->too_much) && to + 1 < content.len)
		to++;
	return send_range(connection, ranged ? 206 : 200, from, to - from + 1);
}

static void *serve(void *argument)
{
	struct connection *const connection = argument;
	char request[REQUEST_MAX_BYTES];
	size_t len = 0;
	for (;;) {
		const ssize_t got =
			recv(connection->fd, request + len, sizeof request - 1 - len, 0);
		if (got <= 0)
			break;
		len += (size_t)got;
		request[len] = '\0';
		if (strstr(request, "\r\n\r\n") == NULL)
			continue;
		len = 0;
		if (!answer(connection, request))
			break;
	}
	shutdown(connection->fd, SHUT_RDWR);
	return NULL;
}

static void *run(void *argument)
{
	struct range_server *const server = argument;
	for (;;) {
		const int fd = accept(server->fd, NULL, NULL);
		if (fd < 0)
			return NULL;
		/* A body must not wait for its head to be acknowledged. */
		const int yes = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
		ck_assert_uint_lt(server->count, CONNECTIONS_MAX);
		struct connection *const connection = &server->connections[server->count++];
		*connection = (struct connection){.server = server, .fd = fd};
		pthread_create(&connection->thread, NULL, serve, connection);
	}
}

struct range_server *range_server_start(struct span content, struct range_server_faults *faults)
{
	struct range_server *const server = memory_new(sizeof *server);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	server->content = content;
	server->faults = faults;
	server->fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_ge(server->fd, 0);
	ck_assert_int_eq(bind(server->fd, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(server->fd, 16), 0);
	ck_assert_int_eq(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
	snprintf(server->endpoint, sizeof server->endpoint, "http://127.0.0.1:%u",
		ntohs(address.sin_port));
	pthread_create(&server->thread, NULL, run, server);
	return server;
}

void range_server_stop(struct range_server *server)
{
	shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->fd);
	for (size_t i = 0; i < server->count; i++) {
		shutdown(server->connections[i].fd, SHUT_RDWR);
		pthread_join(server->connections[i].thread, NULL);
		close(server->connections[i].fd);
	}
	free(server);
}

const char *range_server_endpoint(const struct range_server *server)
{
	return server->endpoint;
}
