#include "tests/unit/client/web_fixture.h"

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

enum { CONNECTIONS_MAX = 512, REQUEST_MAX_BYTES = 4 * 1024 * 1024, SHOWN_BYTES = 1000 };

struct connection {
	struct web *web;
	int fd;
	pthread_t thread;
};

struct web {
	web_answer_fn *answer;
	void *owner;
	char endpoint[64];
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex; /* answers, trace */
	struct buffer trace;
	struct connection connections[CONNECTIONS_MAX];
	size_t count;
};

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

static void note(struct web *web, const struct web_request *request)
{
	buffer_format(&web->trace, "%s %s", request->method, request->target);
	if (request->body.len > 0 && request->body.len <= SHOWN_BYTES) {
		buffer_add_byte(&web->trace, ' ');
		buffer_add_span(&web->trace, request->body);
	}
	buffer_add_byte(&web->trace, '\n');
}

/* The range that was asked for, of a body that is there. */
static struct span take_range(const struct web_request *request, struct web_reply *reply)
{
	const struct span body = buffer_span(&reply->body);
	const char *const range = strstr(request->head, "Range: bytes=");
	size_t from;
	size_t to;
	if (reply->status != 200 || range == NULL ||
		sscanf(range, "Range: bytes=%zu-%zu", &from, &to) != 2)
		return body;
	reply->status = 206;
	return span_slice(body, from, to + 1 - from);
}

static bool answer(const struct connection *connection, const struct web_request *request)
{
	struct web *const web = connection->web;
	struct web_reply reply = {.status = 404};
	char head[8192];
	buffer_init(&reply.body, REQUEST_MAX_BYTES);
	pthread_mutex_lock(&web->mutex);
	note(web, request);
	web->answer(web->owner, request, &reply);
	pthread_mutex_unlock(&web->mutex);
	const struct span body = take_range(request, &reply);
	const int len =
		snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n",
			reply.status, reply.headers, body.len);
	const bool is_head = strcmp(request->method, "HEAD") == 0;
	const bool sent = reply.status != 0 && send_all(connection->fd, head, (size_t)len) &&
		(is_head || send_all(connection->fd, body.data, body.len));
	buffer_release(&reply.body);
	return sent;
}

static bool receive(int fd, struct buffer *into)
{
	char piece[64 * 1024];
	const ssize_t got = recv(fd, piece, sizeof piece, 0);
	if (got > 0)
		buffer_add(into, piece, (size_t)got);
	return got > 0 && !buffer_failed(into);
}

static size_t body_bytes(const char *head)
{
	const char *const length = strcasestr(head, "\r\nContent-Length: ");
	return length == NULL ? 0 : strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
}

/* Reads one request whole and answers it. */
static bool serve_one(const struct connection *connection, struct buffer *bytes)
{
	char method[16];
	char target[4096];
	buffer_reset(bytes);
	while (strstr(buffer_text(bytes), "\r\n\r\n") == NULL)
		if (!receive(connection->fd, bytes))
			return false;
	const size_t head =
		(size_t)(strstr(buffer_text(bytes), "\r\n\r\n") - buffer_text(bytes)) + 4;
	const size_t whole = head + body_bytes(buffer_text(bytes));
	if (strcasestr(buffer_text(bytes), "\r\nExpect: 100-continue") != NULL &&
		!send_all(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25))
		return false;
	while (bytes->len < whole)
		if (!receive(connection->fd, bytes))
			return false;
	ck_assert_int_eq(sscanf(buffer_text(bytes), "%15s %4095s", method, target), 2);
	const struct web_request request = {.method = method,
		.target = target,
		.body = span_of(bytes->data + head, whole - head),
		.head = buffer_text(bytes)};
	return answer(connection, &request);
}

static void *serve(void *argument)
{
	const struct connection *const connection = argument;
	struct buffer bytes;
	buffer_init(&bytes, REQUEST_MAX_BYTES);
	while (serve_one(connection, &bytes))
		;
	buffer_release(&bytes);
	shutdown(connection->fd, SHUT_RDWR);
	return NULL;
}

static void *run(void *argument)
{
	struct web *const web = argument;
	const int yes = 1;
	for (;;) {
		const int fd = accept(web->fd, NULL, NULL);
		if (fd < 0)
			return NULL;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
		ck_assert_uint_lt(web->count, CONNECTIONS_MAX);
		struct connection *const connection = &web->connections[web->count++];
		*connection = (struct connection){.web = web, .fd = fd};
		pthread_create(&connection->thread, NULL, serve, connection);
	}
}

struct web *web_start(web_answer_fn *answers, void *owner)
{
	struct web *const web = memory_new(sizeof *web);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	web->answer = answers;
	web->owner = owner;
	pthread_mutex_init(&web->mutex, NULL);
	buffer_init(&web->trace, REQUEST_MAX_BYTES);
	web->fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_ge(web->fd, 0);
	ck_assert_int_eq(bind(web->fd, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(web->fd, 16), 0);
	ck_assert_int_eq(getsockname(web->fd, (struct sockaddr *)&address, &len), 0);
	snprintf(web->endpoint, sizeof web->endpoint, "http://127.0.0.1:%u",
		ntohs(address.sin_port));
	pthread_create(&web->thread, NULL, run, web);
	return web;
}

void web_stop(struct web *web)
{
	shutdown(web->fd, SHUT_RDWR);
	pthread_join(web->thread, NULL);
	close(web->fd);
	for (size_t i = 0; i < web->count; i++)
		shutdown(web->connections[i].fd, SHUT_RDWR);
	web_settle(web);
	pthread_mutex_destroy(&web->mutex);
	buffer_release(&web->trace);
	free(web);
}

void web_settle(struct web *web)
{
	for (size_t i = 0; i < web->count; i++) {
		pthread_join(web->connections[i].thread, NULL);
		close(web->connections[i].fd);
	}
	web->count = 0;
}

const char *web_endpoint(const struct web *web)
{
	return web->endpoint;
}

const char *web_trace(const struct web *web)
{
	return buffer_text(&web->trace);
}

void web_forget_trace(struct web *web)
{
	buffer_reset(&web->trace);
}
