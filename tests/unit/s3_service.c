#include "tests/unit/s3_service.h"

#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum { CONNECTIONS_MAX = 256, REQUEST_MAX_BYTES = 4 * 1024 * 1024, TLS_HANDSHAKE = 22 };

struct connection {
	struct s3_service *service;
	int fd;
	pthread_t thread;
};

struct s3_service {
	char endpoint[64];
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards all that follows */
	const struct s3_service_answer *answers;
	unsigned count;
	unsigned running;
	unsigned most;
	struct buffer trace;
	struct buffer head;
	struct buffer body;
	struct connection connections[CONNECTIONS_MAX];
	size_t connection_count;
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

static bool is_end(const struct s3_service_answer *answer)
{
	return answer->status == 0 && answer->delay_ms == 0 && !answer->hangs;
}

/* Notes the request and gives its answer. */
static struct s3_service_answer begin(
	struct s3_service *service, struct span head, struct span body)
{
	struct span line = head;
	struct span method;
	struct span target;
	pthread_mutex_lock(&service->mutex);
	span_split(&line, ' ', &method);
	span_split(&line, ' ', &target);
	buffer_format(&service->trace, "%.*s %.*s\n", (int)method.len, method.data, (int)target.len,
		target.data);
	buffer_reset(&service->head);
	buffer_add_span(&service->head, head);
	buffer_reset(&service->body);
	buffer_add_span(&service->body, body);
	unsigned at = 0;
	while (at < service->count && at + 1 < S3_SERVICE_ANSWERS_MAX &&
		!is_end(&service->answers[at + 1]))
		at++;
	service->count++;
	service->running++;
	if (service->running > service->most)
		service->most = service->running;
	const struct s3_service_answer given = service->answers[at];
	pthread_mutex_unlock(&service->mutex);
	return given;
}

static void end(struct s3_service *service)
{
	pthread_mutex_lock(&service->mutex);
	service->running--;
	pthread_mutex_unlock(&service->mutex);
}

static bool send_filler(int fd, size_t len)
{
	char *spaces = memory_new(len + 1);
	memset(spaces, ' ', len);
	const bool goes_on = send_all(fd, spaces, len);
	free(spaces);
	return goes_on;
}

static bool answer(int fd, const struct s3_service_answer *given, bool is_head)
{
	const char *body = given->body != NULL ? given->body : "";
	const size_t len = given->filler + strlen(body);
	char head[1024];
	char byte;
	if (given->delay_ms > 0)
		nanosleep(&(struct timespec){.tv_nsec = given->delay_ms * 1000000L}, NULL);
	if (given->hangs)
		while (recv(fd, &byte, 1, 0) > 0)
			;
	if (given->status == 0 || given->hangs)
		return false;
	const int head_len =
		snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n",
			given->status, given->length != 0 ? given->length : len,
			given->headers != NULL ? given->headers : "");
	bool goes_on = send_all(fd, head, (size_t)head_len);
	if (is_head)
		return goes_on;
	goes_on = goes_on && send_filler(fd, given->filler);
	return goes_on && send_all(fd, body, strlen(body)) &&
		(given->length == 0 || given->length == len);
}

static bool receive(int fd, struct buffer *into)
{
	char piece[64 * 1024];
	const ssize_t got = recv(fd, piece, sizeof(piece), 0);
	if (got > 0)
		buffer_add(into, piece, (size_t)got);
	return got > 0 && !buffer_failed(into);
}

static bool serve_one(struct connection *connection, struct buffer *bytes)
{
	static const char name[] = "\r\nContent-Length: ";
	buffer_reset(bytes);
	while (strstr(buffer_text(bytes), "\r\n\r\n") == NULL)
		if (!receive(connection->fd, bytes) || bytes->data[0] == TLS_HANDSHAKE)
			return false;
	const char *text = buffer_text(bytes);
	const size_t head = (size_t)(strstr(text, "\r\n\r\n") - text) + 4;
	const char *length = strcasestr(text, name);
	const size_t whole =
		head + (length == NULL ? 0 : strtoul(length + sizeof(name) - 1, NULL, 10));
	if (strcasestr(text, "\r\nExpect: 100-continue") != NULL &&
		!send_all(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25))
		return false;
	while (bytes->len < whole)
		if (!receive(connection->fd, bytes))
			return false;
	const struct s3_service_answer given = begin(connection->service,
		span_of(bytes->data, head), span_of(bytes->data + head, whole - head));
	const bool goes_on =
		answer(connection->fd, &given, strncmp(buffer_text(bytes), "HEAD ", 5) == 0);
	end(connection->service);
	return goes_on;
}

static void *serve(void *argument)
{
	struct connection *connection = argument;
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
	struct s3_service *service = argument;
	for (int fd; (fd = accept(service->fd, NULL, NULL)) >= 0;) {
		ck_assert_uint_lt(service->connection_count, CONNECTIONS_MAX);
		struct connection *connection = &service->connections[service->connection_count++];
		*connection = (struct connection){.service = service, .fd = fd};
		pthread_create(&connection->thread, NULL, serve, connection);
	}
	return NULL;
}

struct s3_service *s3_service_start(const struct s3_service_answer *answers)
{
	struct s3_service *service = memory_new(sizeof(*service));
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	service->answers = answers;
	pthread_mutex_init(&service->mutex, NULL);
	buffer_init(&service->trace, REQUEST_MAX_BYTES);
	buffer_init(&service->head, REQUEST_MAX_BYTES);
	buffer_init(&service->body, REQUEST_MAX_BYTES);
	service->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(service->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(service->fd, 64), 0);
	ck_assert_int_eq(getsockname(service->fd, (struct sockaddr *)&address, &len), 0);
	snprintf(service->endpoint, sizeof(service->endpoint), "http://127.0.0.1:%u",
		ntohs(address.sin_port));
	pthread_create(&service->thread, NULL, run, service);
	return service;
}

void s3_service_stop(struct s3_service *service)
{
	shutdown(service->fd, SHUT_RDWR);
	pthread_join(service->thread, NULL);
	close(service->fd);
	for (size_t i = 0; i < service->connection_count; i++) {
		shutdown(service->connections[i].fd, SHUT_RDWR);
		pthread_join(service->connections[i].thread, NULL);
		close(service->connections[i].fd);
	}
	pthread_mutex_destroy(&service->mutex);
	buffer_release(&service->trace);
	buffer_release(&service->head);
	buffer_release(&service->body);
	free(service);
}

void s3_service_answer_with(struct s3_service *service, const struct s3_service_answer *answers)
{
	pthread_mutex_lock(&service->mutex);
	service->answers = answers;
	service->count = 0;
	service->most = 0;
	buffer_reset(&service->trace);
	pthread_mutex_unlock(&service->mutex);
}

const char *s3_service_endpoint(const struct s3_service *service)
{
	return service->endpoint;
}

const char *s3_service_trace(const struct s3_service *service)
{
	return buffer_text(&service->trace);
}

const char *s3_service_head(const struct s3_service *service)
{
	return buffer_text(&service->head);
}

struct span s3_service_body(const struct s3_service *service)
{
	return buffer_span(&service->body);
}

unsigned s3_service_count(struct s3_service *service)
{
	pthread_mutex_lock(&service->mutex);
	const unsigned count = service->count;
	pthread_mutex_unlock(&service->mutex);
	return count;
}

unsigned s3_service_most_at_once(const struct s3_service *service)
{
	return service->most;
}

struct s3_client *s3_service_client(
	const struct s3_service *service, const struct s3_client_options *more)
{
	struct s3_client_options options =
		more != NULL ? *more : (struct s3_client_options){.tries = 3};
	struct error err = {0};
	options.endpoint = options.endpoint != NULL ? options.endpoint : service->endpoint;
	options.bucket = "box";
	options.prefix = "in/";
	options.signing = (struct http_signing){
		.key_id = "KEYID", .secret = "the-secret", .session = "the-session"};
	options.pause_ms = options.pause_ms != 0 ? options.pause_ms : 2;
	struct s3_client *client = s3_client_open(&options, &err);
	ck_assert_msg(client != NULL, "%s", err.text);
	return client;
}
