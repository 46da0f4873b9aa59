/* HTTP on the wire: connections that are kept alive or closed, and replies before the body. */
#include "tests/unit/server/server_fixture.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/net/http_client.h"
#include "base/thread/lock.h"
#include "server/control_socket.h"
#include "tests/unit/storage/far_fixture.h"

#define AUTHORIZATION "Host: localhost\r\nAuthorization: Bearer root-token-of-the-tests\r\n"

enum { ANSWER_BYTES = 4096 };

static int connect_plain(const struct server_fixture *fixture)
{
	struct sockaddr_in where = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	where.sin_port = htons((uint16_t)atoi(strrchr(fixture->endpoint, ':') + 1));
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&where, sizeof where), 0);
	const struct timeval patience = {.tv_sec = 20};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return fd;
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads one reply: its head, and its body by Content-Length. Returns the status; 0 when the
 * connection has ended. */
static int hear(int fd, char answer[ANSWER_BYTES])
{
	size_t len = 0;
	char *end = NULL;
	size_t wanted = 0;
	memset(answer, 0, ANSWER_BYTES);
	while (end == NULL || len < wanted) {
		const ssize_t got = recv(fd, answer + len, end == NULL ? 1 : wanted - len, 0);
		if (got <= 0)
			return 0;
		len += (size_t)got;
		ck_assert_uint_lt(len, ANSWER_BYTES - 1);
		if (end != NULL || (end = strstr(answer, "\r\n\r\n")) == NULL)
			continue;
		const char *const length = strstr(answer, "Content-Length: ");
		const bool bodyless =
			strncmp(answer + 9, "304", 3) == 0 || strncmp(answer + 9, "100", 3) == 0;
		wanted = len + (length != NULL && !bodyless ? (size_t)atoi(length + 16) : 0);
	}
	return atoi(answer + 9);
}

static void expect(int fd, const char *request, int status, const char *holds)
{
	char answer[ANSWER_BYTES];
	say(fd, request);
	const int got = hear(fd, answer);
	ck_assert_msg(got == status, "%s\nanswered %d: %s", request, got, answer);
	if (holds != NULL)
		ck_assert_msg(strstr(answer, holds) != NULL, "%s\nlacks %s", answer, holds);
}

static void open_plain(struct server_fixture *fixture, int *out_fd)
{
	server_fixture_open(fixture);
	server_fixture_listen(fixture, false);
	*out_fd = connect_plain(fixture);
	expect(*out_fd, "PUT /bkt HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n", 200,
		NULL);
}

static void close_plain(struct server_fixture *fixture, int fd)
{
	close(fd);
	server_fixture_close(fixture);
}

static const struct {
	const char *request;
	int status;
	const char *holds;
} kept[] = {
	{"GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "\r\n\r\nok\n"},
	{"GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "x-amz-request-id: "},
	{"GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "Server: deltabucket\r\n"},
	{"GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200,
		"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox\r\n"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello", 200,
		"ETag: \"5d41402abc4b2a76b9719d911017c592\""},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n", 200,
		"ETag: \"d41d8cd98f00b204e9800998ecf8427e\""},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
	 "Expect: something\r\nContent-Length: 5\r\n\r\nhello",
		200, NULL},
	{"PUT /absent/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello", 404,
		"NoSuchBucket"},
	{"PUT /bkt/k HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 403, "AccessDenied"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
	 "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\nContent-Length: 5\r\n\r\nhello",
		400, "BadDigest"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "\r\n", 411, "MissingContentLength"},
	{"DELETE /bkt/absent HTTP/1.1\r\n" AUTHORIZATION "\r\n", 204, NULL},
	{"DELETE /bkt/absent HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello", 204,
		NULL},
	{"GET /bkt/absent HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello", 404,
		"NoSuchKey"},
	{"POST /-/keys HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 2\r\n\r\n{}", 201,
		"\"key_id\""},
	{"GET /v1/nothing HTTP/1.1\r\n" AUTHORIZATION "\r\n", 404, "\"not_found\""},
	{"BREW /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 405, "Allow: GET, HEAD"},
};

START_TEST(answered_and_kept_alive)
{
	struct server_fixture fixture;
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, kept[_i].request, kept[_i].status, kept[_i].holds);
	expect(fd, "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok\n");
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(chunks_are_put_together)
{
	struct server_fixture fixture;
	int fd;
	open_plain(&fixture, &fd);
	expect(fd,
		"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
		200, "ETag: \"5eb63bbbe01eeed093cb22bb8f5acdc3\"");
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(head_announces_the_true_size_and_not_modified_too)
{
	struct server_fixture fixture;
	char answer[ANSWER_BYTES] = {0};
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, "PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello", 200,
		NULL);
	expect(fd,
		"GET /bkt/k HTTP/1.1\r\n" AUTHORIZATION
		"If-None-Match: \"5d41402abc4b2a76b9719d911017c592\"\r\n\r\n",
		304, "Content-Length: 5\r\n");
	expect(fd, "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok\n");
	say(fd, "HEAD /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Connection: close\r\n\r\n");
	ck_assert_int_gt(recv(fd, answer, sizeof answer - 1, MSG_WAITALL), 0);
	ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 5\r\n"));
	ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(empty_header_values_come_back)
{
	struct server_fixture fixture;
	int fd;
	open_plain(&fixture, &fd);
	expect(fd,
		"PUT /bkt/e HTTP/1.1\r\n" AUTHORIZATION
		"Content-Length: 1\r\nx-amz-meta-none:\r\n\r\nx",
		200, NULL);
	expect(fd, "GET /bkt/e HTTP/1.1\r\n" AUTHORIZATION "\r\n", 200, "\r\nx-amz-meta-none: ");
	expect(fd, "GET /bkt/e?response-content-type= HTTP/1.1\r\n" AUTHORIZATION "\r\n", 200,
		"\r\nContent-Type: ");
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(a_body_is_called_for_only_once_it_is_wanted)
{
	struct server_fixture fixture;
	char answer[ANSWER_BYTES];
	int fd;
	open_plain(&fixture, &fd);
	expect(fd,
		"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
		"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
		100, NULL);
	expect(fd, "hello", 200, "5d41402abc4b2a76b9719d911017c592");
	expect(fd,
		"PUT /absent/k HTTP/1.1\r\n" AUTHORIZATION
		"Expect: 100-Continue\r\nContent-Length: 5\r\n\r\n",
		404, "Connection: close");
	ck_assert_int_eq(hear(fd, answer), 0);
	close_plain(&fixture, fd);
}
END_TEST

static const struct {
	const char *request;
	int status;
	const char *holds;
} closed[] = {
	{"PUT /absent/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 1000000000\r\n\r\n", 404,
		"NoSuchBucket"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 6000000000\r\n\r\n", 400,
		"EntityTooLarge"},
	{"DELETE /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 1000000000\r\n\r\n", 400,
		"EntityTooLarge"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length: -1\r\n\r\n", 400, NULL},
	/* The end of the body is ambiguous. */
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
	 "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		400, "InvalidRequest"},
	{"POST /v1/runs/bkt/r HTTP/1.1\r\n" AUTHORIZATION
	 "Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}",
		400, "\"invalid_request\""},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
	 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		400, "InvalidRequest"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Transfer-Encoding: xchunked\r\n\r\nhello", 400,
		"InvalidRequest"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION
	 "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		400, "InvalidRequest"},
	{"PUT /bkt/k HTTP/1.1\r\n" AUTHORIZATION "Content-Length : 5\r\n\r\nhello", 400,
		"InvalidRequest"},
};

START_TEST(answered_and_closed)
{
	struct server_fixture fixture;
	char answer[ANSWER_BYTES];
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, closed[_i].request, closed[_i].status, closed[_i].holds);
	ck_assert_int_eq(hear(fd, answer), 0);
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(headers_over_eight_kib_are_refused_in_the_faces_own_words)
{
	struct server_fixture fixture;
	struct buffer request;
	int fd;
	open_plain(&fixture, &fd);
	buffer_init(&request, 20000);
	buffer_add_text(&request, "GET /bkt/k HTTP/1.1\r\n" AUTHORIZATION "x-long: ");
	for (int i = 0; i < 8192; i++)
		buffer_add_byte(&request, 'x');
	buffer_add_text(&request, "\r\n\r\n");
	expect(fd, buffer_text(&request), 400, "RequestHeaderSectionTooLarge");
	expect(fd, "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok\n");
	buffer_release(&request);
	close_plain(&fixture, fd);
}
END_TEST

/* Waits until no request is active. An upload whose client is gone ends too, although the end of
 * the stream came with its last bytes. */
static void wait_until_idle(struct listener *listener)
{
	for (int i = 0; i < 2000 && listener_active(listener) > 0; i++) {
		listener_sweep(listener);
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
	}
	ck_assert_int_eq(listener_active(listener), 0);
}

START_TEST(cut_requests_leave_nothing)
{
	static const char *const cut[] = {"PUT /bkt/cut HTTP/1.1\r\n" AUTHORIZATION
					  "Content-Length: 500000\r\n\r\nhello",
		"PUT /bkt/whole HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 5\r\n\r\nhello",
		"GET /bkt/k HTTP/1.1\r\nHost: ", "GET /bkt/",
		"GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n"};
	struct server_fixture fixture;
	int fd;
	open_plain(&fixture, &fd);
	for (size_t i = 0; i < 25; i++) {
		const int other = connect_plain(&fixture);
		say(other, cut[i % 5]);
		close(other);
	}
	wait_until_idle(fixture.listener);
	expect(fd, "GET /bkt/cut HTTP/1.1\r\n" AUTHORIZATION "\r\n", 404, "NoSuchKey");
	close_plain(&fixture, fd);
}
END_TEST

/* The last connections are served; the connections that were idle longest were closed for them. */
START_TEST(connections_over_the_limit_take_the_place_of_those_that_rest)
{
	enum { ASKED = SERVER_FIXTURE_CONNECTIONS + 16, LAST = 16 };
	struct server_fixture fixture;
	int fds[ASKED];
	char answer[ANSWER_BYTES];
	server_fixture_open(&fixture);
	server_fixture_listen(&fixture, false);
	for (int round = 0; round < 3; round++) {
		int served = 0;
		for (size_t i = 0; i < ASKED; i++) {
			fds[i] = connect_plain(&fixture);
			expect(fds[i], "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok");
		}
		for (size_t i = 0; i < ASKED; i++) {
			send(fds[i], "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 35, MSG_NOSIGNAL);
			const bool is_served = hear(fds[i], answer) == 200;
			served += is_served;
			ck_assert_msg(is_served || i < ASKED - LAST,
				"the connection %zu of %d was closed", i, ASKED);
		}
		for (size_t i = 0; i < ASKED; i++)
			close(fds[i]);
		ck_assert_int_le(served, SERVER_FIXTURE_CONNECTIONS);
		ck_assert_int_ge(metrics_get(fixture.metrics, METRIC_CONNECTIONS_DISPLACED),
			16 * (round + 1));
		while (metrics_get(fixture.metrics, METRIC_CONNECTIONS) > 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	}
	server_fixture_close(&fixture);
}
END_TEST

struct poll {
	int fd;
	int status;
};

static void *run_poll(void *owner)
{
	struct poll *const poll = owner;
	char answer[ANSWER_BYTES];
	say(poll->fd, "GET /v1/runs/bkt/r/steps/latest?wait=60 HTTP/1.1\r\n" AUTHORIZATION "\r\n");
	poll->status = hear(poll->fd, answer);
	return NULL;
}

static void wait_for_waiting(const struct server_fixture *fixture, int64_t count)
{
	while (metrics_get(fixture->metrics, METRIC_WAITING) != count)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

/* Nothing wakes the waits and their deadlines are far away: each round ends because its clients are
 * gone. Clients of the last round close at once, possibly before they wait. No connection follows
 * them that would need their room. */
START_TEST(clients_that_hang_up_wait_no_more)
{
	enum { CLIENTS = 32, ROUNDS = 3 };
	struct server_fixture fixture;
	int fds[CLIENTS];
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, "POST /v1/runs/bkt/r HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n",
		200, NULL);
	for (int round = 1; round <= ROUNDS; round++) {
		for (size_t i = 0; i < CLIENTS; i++) {
			fds[i] = connect_plain(&fixture);
			say(fds[i],
				"GET /v1/runs/bkt/r/steps/latest?wait=60 HTTP/1.1\r\n" AUTHORIZATION
				"\r\n");
			if (round == ROUNDS)
				close(fds[i]);
		}
		if (round < ROUNDS)
			wait_for_waiting(&fixture, CLIENTS);
		for (size_t i = 0; round < ROUNDS && i < CLIENTS; i++)
			close(fds[i]);
		while (metrics_get(fixture.metrics, METRIC_CONNECTIONS) > 1)
			nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
		wait_for_waiting(&fixture, 0);
	}
	expect(fd, "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, "ok\n");
	close_plain(&fixture, fd);
}
END_TEST

/* A client that has closed its sending side may still read, but the server does not wait for it. */
START_TEST(clients_that_have_said_all_wait_no_more)
{
	struct server_fixture fixture;
	char answer[ANSWER_BYTES];
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, "POST /v1/runs/bkt/r HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n",
		200, NULL);
	say(fd, "GET /v1/runs/bkt/r/steps/latest?wait=60 HTTP/1.1\r\n" AUTHORIZATION "\r\n");
	wait_for_waiting(&fixture, 1);
	shutdown(fd, SHUT_WR);
	ck_assert_int_eq(hear(fd, answer), 499);
	ck_assert_ptr_nonnull(strstr(answer, "Connection: close"));
	close_plain(&fixture, fd);
}
END_TEST

START_TEST(stopping_answers_long_polls)
{
	struct server_fixture fixture;
	pthread_t threads[8];
	struct poll polls[8];
	int fd;
	open_plain(&fixture, &fd);
	expect(fd, "POST /v1/runs/bkt/r HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n",
		200, NULL);
	for (size_t i = 0; i < 8; i++) {
		polls[i] = (struct poll){.fd = connect_plain(&fixture)};
		lock_thread_start(&threads[i], "poll", run_poll, &polls[i]);
	}
	while (metrics_get(fixture.metrics, METRIC_WAITING) < 8)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	server_fixture_stop_listening(&fixture);
	for (size_t i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(polls[i].status, 204);
		close(polls[i].fd);
	}
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_WAITING), 0);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_CONNECTIONS), 0);
	close_plain(&fixture, fd);
}
END_TEST

/* Reads until the text has come, or the connection has ended without it. */
static void hear_text(int fd, struct buffer *heard, const char *text)
{
	char piece[512];
	ssize_t got = 1;
	while (strstr(buffer_text(heard), text) == NULL &&
		(got = recv(fd, piece, sizeof piece, 0)) > 0)
		buffer_add(heard, piece, (size_t)got);
	ck_assert_msg(got > 0, "the connection ended without %s: %s", text, buffer_text(heard));
}

#define FOLLOW "GET /api/buckets/main/bkt/events HTTP/1.1\r\n" AUTHORIZATION "\r\n"

/* An endless reply is suspended while it has no bytes, is resumed by changes and by the stop, and
 * ends as a complete chunked body. */
START_TEST(streams_wait_and_go_on)
{
	struct server_fixture fixture;
	struct buffer heard[4];
	int fds[4];
	int fd;
	open_plain(&fixture, &fd);
	for (size_t i = 0; i < 4; i++) {
		buffer_init(&heard[i], 1024 * 1024);
		fds[i] = connect_plain(&fixture);
		say(fds[i], FOLLOW);
		hear_text(fds[i], &heard[i], "event: ready");
		ck_assert_ptr_nonnull(
			strstr(buffer_text(&heard[i]), "Transfer-Encoding: chunked\r\n"));
	}
	while (metrics_get(fixture.metrics, METRIC_WAITING) < 4)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	close(fds[3]); /* without sending anything */
	for (int round = 0; round < 3; round++) {
		char request[200];
		char wanted[20];
		snprintf(request, sizeof request,
			"PUT /bkt/key-%d HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 1\r\n\r\nx",
			round);
		snprintf(wanted, sizeof wanted, "key-%d", round);
		expect(fd, request, 200, NULL);
		for (size_t i = 0; i < 3; i++)
			hear_text(fds[i], &heard[i], wanted);
	}
	server_fixture_stop_listening(&fixture);
	for (size_t i = 0; i < 3; i++) {
		hear_text(fds[i], &heard[i], "event: reconnect");
		hear_text(fds[i], &heard[i], "\r\n0\r\n\r\n");
		close(fds[i]);
	}
	for (size_t i = 0; i < 4; i++)
		buffer_release(&heard[i]);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_WAITING), 0);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_CONNECTIONS), 0);
	close_plain(&fixture, fd);
}
END_TEST

enum { FAR_BYTES = 2000000 };
#define GET_FAR "GET /bkt/far HTTP/1.1\r\n" AUTHORIZATION "\r\n"

/* A server whose packs are far, with the object bkt/far; its fetches are held back. */
static void open_far(struct server_fixture *fixture, struct far_fixture *far, char *folder)
{
	char head[200];
	char *const body = malloc(FAR_BYTES + 1);
	uint64_t state = 1;
	for (size_t i = 0; i < FAR_BYTES; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		body[i] = (char)('a' + (state >> 40) % 26);
	}
	body[FAR_BYTES] = '\0';
	*far = (struct far_fixture){.folder = folder};
	server_fixture_open_far(fixture, far);
	server_fixture_listen(fixture, false);
	const int fd = connect_plain(fixture);
	expect(fd, "PUT /bkt HTTP/1.1\r\n" AUTHORIZATION "Content-Length: 0\r\n\r\n", 200, NULL);
	snprintf(head, sizeof head,
		"PUT /bkt/far HTTP/1.1\r\n" AUTHORIZATION "Content-Length: %d\r\n\r\n", FAR_BYTES);
	say(fd, head);
	expect(fd, body, 200, NULL);
	close(fd);
	free(body);
	far_fixture_cool(far);
	atomic_store(&far->holds_back, true);
}

/* Lets fetches go until the body has come. */
static size_t hear_far(struct far_fixture *far, int fd)
{
	char piece[65536];
	size_t heard = 0;
	ssize_t got = 1;
	while (heard < FAR_BYTES && got != 0) {
		far_fixture_let_go(far);
		got = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
		heard += got > 0 ? (size_t)got : 0;
	}
	return heard;
}

static struct far_fixture *far_of_the_stop;

static void *let_go_at_the_stop(void *owner)
{
	struct server_fixture *const fixture = owner;
	while (!fixture->stopping)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	far_fixture_let_go(far_of_the_stop);
	return NULL;
}

/* A reply of known length is suspended while its bytes are fetched. Clients that go meanwhile, and
 * the stop, leave nothing. */
START_TEST(replies_wait_for_far_bytes)
{
	static struct far_fixture far;
	struct server_fixture fixture;
	char folder[4096];
	pthread_t thread;
	char *const scratch = unit_scratch_make();
	snprintf(folder, sizeof folder, "%s/far", scratch);
	open_far(&fixture, &far, folder);
	const int fd = connect_plain(&fixture);
	say(fd, GET_FAR);
	wait_for_waiting(&fixture, 1);
	expect(connect_plain(&fixture), "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n", 200, NULL);
	ck_assert_uint_ge(hear_far(&far, fd), FAR_BYTES);
	wait_for_waiting(&fixture, 0);
	far_fixture_cool(&far);
	const int gone = connect_plain(&fixture);
	say(gone, GET_FAR);
	wait_for_waiting(&fixture, 1);
	close(gone);
	ck_assert(far_fixture_let_go(&far));
	wait_for_waiting(&fixture, 0);
	far_fixture_cool(&far);
	const int last = connect_plain(&fixture);
	say(last, GET_FAR);
	wait_for_waiting(&fixture, 1);
	far_of_the_stop = &far;
	lock_thread_start(&thread, "stop", let_go_at_the_stop, &fixture);
	atomic_store(&far.holds_back, false);
	server_fixture_stop_listening(&fixture);
	pthread_join(thread, NULL);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_WAITING), 0);
	close(last);
	close_plain(&fixture, fd);
	unit_scratch_remove(scratch);
}
END_TEST

static int ask(const struct http_client_options *options, const char *target, struct error *err)
{
	struct http_client *const client = http_client_new(options, err);
	ck_assert_ptr_nonnull(client);
	const struct http_request request = {.method = "GET", .target = target};
	struct http_response response;
	int status = -1;
	if (http_client_send(client, &request, &response, err) == 0)
		status = response.status;
	http_response_release(&response);
	http_client_free(client);
	return status;
}

START_TEST(https_verifies_against_the_ca_before_and_after_a_reload)
{
	struct server_fixture fixture;
	struct error err = {0};
	server_fixture_open(&fixture);
	server_fixture_listen(&fixture, true);
	ck_assert_int_eq(strncmp(fixture.endpoint, "https://127.0.0.1:", 18), 0);
	const struct http_client_options options = {.endpoint = fixture.endpoint,
		.ca_file = certificate_ca_path(fixture.certificate),
		.token = server_fixture_token};
	const struct http_client_options strange = {
		.endpoint = fixture.endpoint, .token = server_fixture_token};
	ck_assert_msg(ask(&options, "/-/ready", &err) == 200, "%s", err.text);
	ck_assert_int_eq(certificate_reload(fixture.certificate, &err), 0);
	ck_assert_msg(ask(&options, "/-/metrics", &err) == 200, "%s", err.text);
	ck_assert_int_eq(ask(&strange, "/-/ready", &err), -1);
	server_fixture_close(&fixture);
}
END_TEST

START_TEST(the_control_socket_needs_no_token)
{
	struct server_fixture fixture;
	struct error err = {0};
	struct http_response response;
	const struct http_request request = {.method = "GET", .target = "/-/keys"};
	server_fixture_open(&fixture);
	server_fixture_listen(&fixture, false);
	ck_assert_msg(control_socket_send(fixture.folder, &request, &response, &err) == 0, "%s",
		err.text);
	ck_assert_int_eq(response.status, 200);
	ck_assert_ptr_nonnull(strstr(buffer_text(&response.body), "\"root\":true"));
	http_response_release(&response);
	const struct http_client_options options = {.endpoint = fixture.endpoint};
	ck_assert_int_eq(ask(&options, "/-/keys", &err), 401);
	server_fixture_close(&fixture);
}
END_TEST

Suite *test_listener_suite(void);

Suite *test_listener_suite(void)
{
	Suite *const suite = suite_create("listener");
	TCase *const tcase = tcase_create("listener");
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, answered_and_kept_alive, 0, sizeof kept / sizeof kept[0]);
	tcase_add_test(tcase, chunks_are_put_together);
	tcase_add_test(tcase, head_announces_the_true_size_and_not_modified_too);
	tcase_add_test(tcase, empty_header_values_come_back);
	tcase_add_test(tcase, a_body_is_called_for_only_once_it_is_wanted);
	tcase_add_loop_test(tcase, answered_and_closed, 0, sizeof closed / sizeof closed[0]);
	tcase_add_test(tcase, headers_over_eight_kib_are_refused_in_the_faces_own_words);
	tcase_add_test(tcase, cut_requests_leave_nothing);
	tcase_add_test(tcase, connections_over_the_limit_take_the_place_of_those_that_rest);
	tcase_add_test(tcase, clients_that_hang_up_wait_no_more);
	tcase_add_test(tcase, clients_that_have_said_all_wait_no_more);
	tcase_add_test(tcase, stopping_answers_long_polls);
	tcase_add_test(tcase, streams_wait_and_go_on);
	tcase_add_test(tcase, replies_wait_for_far_bytes);
	tcase_add_test(tcase, https_verifies_against_the_ca_before_and_after_a_reload);
	tcase_add_test(tcase, the_control_socket_needs_no_token);
	suite_add_tcase(suite, tcase);
	return suite;
}
