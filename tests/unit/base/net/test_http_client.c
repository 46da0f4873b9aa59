/* Tests the client with a small scripted server, which takes whole requests, keeps the last one for
 * the test to look at, and answers from a table by the first letter of the path. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/net/http_client.h"
#include "base/thread/lock.h"

static struct {
	int listener;
	char endpoint[64];
	pthread_t thread;
	_Atomic int connections;
	_Atomic int requests;
	char head[4096]; /* of the last request; tests read it after its answer came */
	struct buffer body;
} server;

static const struct {
	char letter;
	const char *answer;
} answers[] = {
	{'o',
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"abc\"\r\nx-amz-request-id: id-1\r\n"
		"X-Deltabucket-Digest: xxh3-128:00112233445566778899aabbccddeeff\r\n\r\nhello"},
	{'h', "HTTP/1.1 200 OK\r\nContent-Length: 123456\r\nETag: W/\"weak\"\r\n\r\n"},
	{'n', "HTTP/1.1 204 No Content\r\nX-Request-Id:  id-2 \r\n\r\n"},
	{'c', "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
	{'e', "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 7\r\n\r\nbusy"},
	{'r', "HTTP/1.1 307 There\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/elsewhere\r\n\r\n"},
	{'i', "HTTP/1.1 100 Continue\r\nETag: \"interim\"\r\nRetry-After: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	{'s', "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nonly this"},
	{'g', "what is this\r\n\r\n"},
	{'l', "HTTP/1.1 500 Large\r\nContent-Length: 100000\r\n\r\n"},
	{'p', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nLink: <http://h/x?cursor=1>; rel=\"next\"\r\n\r\n"},
	{'x', ""},
};

static bool read_head(int fd, struct buffer *text, size_t *out_len)
{
	for (;;) {
		const char *const end = strstr(buffer_text(text), "\r\n\r\n");
		if (end != NULL) {
			*out_len = (size_t)(end - buffer_text(text)) + 4;
			return true;
		}
		uint8_t *const into = buffer_reserve(text, 4096);
		const ssize_t got = read(fd, into, 4096);
		if (got <= 0)
			return false;
		buffer_commit(text, (size_t)got);
	}
}

static bool read_body(int fd, struct buffer *text, size_t len)
{
	while (text->len < len) {
		uint8_t *const into = buffer_reserve(text, len - text->len);
		const ssize_t got = read(fd, into, len - text->len);
		if (got <= 0)
			return false;
		buffer_commit(text, (size_t)got);
	}
	return true;
}

static void answer(int fd)
{
	const char *const target = strchr(server.head, ' ');
	const char letter = target != NULL && strlen(target) > 2 ? target[2] : '?';
	const char *text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
	char filler[10000];
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
		if (answers[i].letter == letter)
			text = answers[i].answer;
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	memset(filler, 'f', sizeof filler);
	for (int i = 0; letter == 'l' && i < 10; i++)
		send(fd, filler, sizeof filler, MSG_NOSIGNAL);
	if (letter == 'x') /* does not answer, until the client goes away */
		while (read(fd, filler, sizeof filler) > 0)
			continue;
	if (letter == 's' || letter == 'g')
		shutdown(fd, SHUT_RDWR);
}

static void serve_connection(int fd)
{
	struct buffer text;
	size_t head_len;
	buffer_init(&text, 4 * 1024 * 1024);
	while (read_head(fd, &text, &head_len)) {
		snprintf(
			server.head, sizeof server.head, "%.*s", (int)head_len, buffer_text(&text));
		const char *const length = strstr(server.head, "Content-Length: ");
		const size_t body_len = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
		buffer_remove_front(&text, head_len);
		if (!read_body(fd, &text, body_len))
			break;
		buffer_reset(&server.body);
		buffer_add(&server.body, text.data, body_len);
		buffer_remove_front(&text, body_len);
		atomic_fetch_add(&server.requests, 1);
		answer(fd);
	}
	buffer_release(&text);
}

static void *serve(void *argument)
{
	(void)argument;
	for (int fd; (fd = accept(server.listener, NULL, NULL)) >= 0; close(fd)) {
		atomic_fetch_add(&server.connections, 1);
		serve_connection(fd);
	}
	return NULL;
}

static struct http_client *client;
static struct http_response response;
static struct error err;

static struct http_client *make_client(const char *token, int stall_timeout_ms)
{
	const struct http_client_options options = {
		.endpoint = server.endpoint, .token = token, .stall_timeout_ms = stall_timeout_ms};
	struct http_client *const made = http_client_new(&options, &err);
	ck_assert_msg(made != NULL, "%s", err.text);
	return made;
}

static void set_up(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	err = (struct error){0};
	atomic_store(&server.connections, 0);
	atomic_store(&server.requests, 0);
	buffer_init(&server.body, 4 * 1024 * 1024);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(
		bind(server.listener, (const struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(server.listener, 8), 0);
	ck_assert_int_eq(getsockname(server.listener, (struct sockaddr *)&address, &len), 0);
	snprintf(server.endpoint, sizeof server.endpoint, "http://127.0.0.1:%d",
		ntohs(address.sin_port));
	lock_thread_start(&server.thread, "server", serve, NULL);
	client = make_client("a-token", 0);
}

static void tear_down(void)
{
	http_response_release(&response);
	http_client_free(client);
	shutdown(server.listener, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.listener);
	buffer_release(&server.body);
}

static int send_request(const char *method, const char *target)
{
	const struct http_request request = {.method = method, .target = target};
	http_response_release(&response);
	return http_client_send(client, &request, &response, &err);
}

static void check_sent(const char *method, const char *target)
{
	ck_assert_msg(send_request(method, target) == 0, "%s", err.text);
}

START_TEST(get_gives_status_headers_and_body)
{
	check_sent("GET", "/o/a/../b%20c?x=1");
	ck_assert_int_eq(response.status, 200);
	ck_assert_str_eq(buffer_text(&response.body), "hello");
	ck_assert_str_eq(response.etag, "abc");
	ck_assert_str_eq(response.digest, "xxh3-128:00112233445566778899aabbccddeeff");
	ck_assert_str_eq(response.request_id, "id-1");
	ck_assert(response.content_length == 5);
	ck_assert_str_eq(response.location, "");
	ck_assert_int_eq(response.retry_after_s, -1);
	ck_assert(strncmp(server.head, "GET /o/a/../b%20c?x=1 HTTP/1.1\r\n", 32) == 0);
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nAuthorization: Bearer a-token\r\n"));
	ck_assert_ptr_null(strstr(server.head, "Content-Length"));
}
END_TEST

/* A header that is signed must be sent: a service adds up those that it got. */
START_TEST(signed_requests_sign_what_they_send)
{
	static const char names[] = "SignedHeaders=";
	static const char *const headers[] = {
		"x-amz-content-sha256: 00", "Content-Type: text/plain", NULL};
	const struct http_client_options options = {.endpoint = server.endpoint,
		.signing = {.key_id = "ID", .secret = "secret", .session = "s", .region = "r1"}};
	const struct http_request request = {
		.method = "PUT", .target = "/o", .headers = headers, .body = span_text("body")};
	struct http_client *signing = http_client_new(&options, &err);
	ck_assert_int_eq(http_client_send(signing, &request, &response, &err), 0);
	http_client_free(signing);
	ck_assert_ptr_nonnull(strstr(server.head, "/r1/s3/aws4_request"));
	ck_assert_ptr_nonnull(strstr(server.head, "Credential=ID/"));
	ck_assert_ptr_null(strstr(server.head, "secret"));
	char *list = strstr(server.head, names) + sizeof(names) - 1;
	list[strcspn(list, ",")] = '\0';
	char *rest = list + strlen(list) + 1;
	ck_assert_ptr_nonnull(strstr(list, "x-amz-security-token"));
	for (char *save, *name = strtok_r(list, ";", &save); name != NULL;
		name = strtok_r(NULL, ";", &save)) {
		char line[64];
		snprintf(line, sizeof(line), "\n%s:", name);
		ck_assert_msg(
			strcasestr(rest, line) != NULL || strcmp(name, "host") == 0, "%s", name);
	}
}
END_TEST

START_TEST(a_request_may_bring_its_own_token_or_none)
{
	const struct http_request other = {.method = "GET", .target = "/o", .bearer = "xet_1"};
	ck_assert_int_eq(http_client_send(client, &other, &response, &err), 0);
	http_response_release(&response);
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nAuthorization: Bearer xet_1\r\n"));
	ck_assert_ptr_null(strstr(server.head, "a-token"));
	const struct http_request none = {.method = "GET", .target = "/o", .bearer = ""};
	ck_assert_int_eq(http_client_send(client, &none, &response, &err), 0);
	ck_assert_ptr_null(strstr(server.head, "Authorization"));
}
END_TEST

START_TEST(an_errors_body_comes_whole_where_that_is_wanted)
{
	const struct http_request request = {.method = "GET", .target = "/l", .whole_errors = true};
	ck_assert_int_eq(http_client_send(client, &request, &response, &err), 0);
	ck_assert_int_eq(response.status, 500);
	ck_assert_uint_eq(response.body.len, 100000);
}
END_TEST

START_TEST(a_link_is_kept)
{
	check_sent("GET", "/p");
	ck_assert_str_eq(response.link, "<http://h/x?cursor=1>; rel=\"next\"");
	check_sent("GET", "/o");
	ck_assert_str_eq(response.link, "");
}
END_TEST

START_TEST(one_connection_serves_many_requests)
{
	check_sent("GET", "/o");
	check_sent("DELETE", "/n");
	check_sent("HEAD", "/h");
	check_sent("GET", "/c");
	check_sent("GET", "/e");
	ck_assert_int_eq(atomic_load(&server.requests), 5);
	ck_assert_int_eq(atomic_load(&server.connections), 1);
}
END_TEST

START_TEST(head_tells_the_length)
{
	check_sent("HEAD", "/h");
	ck_assert(response.content_length == 123456);
	ck_assert_str_eq(response.etag, "weak");
	ck_assert_uint_eq(response.body.len, 0);
}
END_TEST

START_TEST(no_content_and_chunked)
{
	check_sent("DELETE", "/n");
	ck_assert_int_eq(response.status, 204);
	ck_assert_str_eq(response.request_id, "id-2");
	ck_assert(strncmp(server.head, "DELETE ", 7) == 0);
	check_sent("GET", "/c");
	ck_assert_str_eq(buffer_text(&response.body), "abcde");
	ck_assert(response.content_length == UINT64_MAX);
}
END_TEST

START_TEST(error_answers_are_answers)
{
	check_sent("GET", "/e");
	ck_assert_int_eq(response.status, 503);
	ck_assert_int_eq(response.retry_after_s, 7);
	ck_assert_str_eq(buffer_text(&response.body), "busy");
}
END_TEST

START_TEST(large_error_bodies_are_cut)
{
	check_sent("GET", "/l");
	ck_assert_int_eq(response.status, 500);
	ck_assert_uint_eq(response.body.len, 64 * 1024);
	check_sent("GET", "/o");
}
END_TEST

START_TEST(redirects_are_not_followed)
{
	check_sent("GET", "/r");
	ck_assert_int_eq(response.status, 307);
	ck_assert_str_eq(response.location, "http://127.0.0.1:1/elsewhere");
	ck_assert_int_eq(atomic_load(&server.requests), 1);
}
END_TEST

START_TEST(interim_headers_are_forgotten)
{
	check_sent("GET", "/i");
	ck_assert_int_eq(response.status, 200);
	ck_assert_str_eq(response.etag, "");
	ck_assert_int_eq(response.retry_after_s, -1);
	ck_assert_str_eq(buffer_text(&response.body), "ok");
}
END_TEST

static const char *const bodied_methods[] = {"PUT", "POST"};

START_TEST(span_bodies_go_out_whole)
{
	static const char *const headers[] = {
		"Content-Type: application/json", "If-Match: \"e\"", NULL};
	const struct http_request request = {.method = bodied_methods[_i],
		.target = "/o",
		.headers = headers,
		.body = span_of("a\0b", 3)};
	ck_assert_msg(http_client_send(client, &request, &response, &err) == 0, "%s", err.text);
	ck_assert(span_equal(buffer_span(&server.body), span_of("a\0b", 3)));
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nContent-Length: 3\r\n"));
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nContent-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nIf-Match: \"e\"\r\n"));
	ck_assert(strncmp(server.head, bodied_methods[_i], strlen(bodied_methods[_i])) == 0);
}
END_TEST

START_TEST(empty_bodies_have_a_length_and_no_type)
{
	check_sent(bodied_methods[_i], "/o");
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nContent-Length: 0\r\n"));
	ck_assert_ptr_null(strstr(server.head, "Content-Type"));
	ck_assert(strncmp(server.head, bodied_methods[_i], strlen(bodied_methods[_i])) == 0);
}
END_TEST

/* Gives `len` bytes 'z' in uneven pieces, then the end; or fails where it is told to. */
struct test_source {
	struct body_source source;
	size_t len;
	size_t given;
	size_t fail_at;
};

static ptrdiff_t test_source_read(
	struct body_source *base, uint8_t *into, size_t capacity, struct error *read_err)
{
	struct test_source *const source = (struct test_source *)base;
	if (source->fail_at > 0 && source->given >= source->fail_at)
		return error_set(read_err, ERROR_CORRUPT, "the source is broken");
	size_t len = source->len - source->given;
	len = len > 7777 ? 7777 : len;
	len = len > capacity ? capacity : len;
	memset(into, 'z', len);
	source->given += len;
	return (ptrdiff_t)len;
}

static int send_source(struct test_source *source, uint64_t declared)
{
	const struct http_request request = {.method = "PUT",
		.target = "/o",
		.source = &source->source,
		.source_size = declared};
	source->source.read = test_source_read;
	http_response_release(&response);
	return http_client_send(client, &request, &response, &err);
}

START_TEST(sources_are_streamed_with_their_length)
{
	struct test_source source = {.len = 3000000};
	ck_assert_msg(send_source(&source, 3000000) == 0, "%s", err.text);
	ck_assert_int_eq(response.status, 200);
	ck_assert_uint_eq(server.body.len, 3000000);
	ck_assert_ptr_nonnull(strstr(server.head, "\r\nContent-Length: 3000000\r\n"));
	ck_assert_ptr_null(strstr(server.head, "Expect"));
	ck_assert_ptr_null(strstr(server.head, "Transfer-Encoding"));
	size_t others = 0;
	for (size_t i = 0; i < server.body.len; i++)
		others += server.body.data[i] != 'z';
	ck_assert_uint_eq(others, 0);
	struct test_source nothing = {.len = 0};
	ck_assert_msg(send_source(&nothing, 0) == 0, "%s", err.text);
	ck_assert_uint_eq(server.body.len, 0);
}
END_TEST

START_TEST(sources_with_more_are_cut_at_the_declared_length)
{
	struct test_source source = {.len = 50000};
	ck_assert_msg(send_source(&source, 20000) == 0, "%s", err.text);
	ck_assert_uint_eq(server.body.len, 20000);
	check_sent("GET", "/o");
	ck_assert_int_eq(atomic_load(&server.connections), 1);
}
END_TEST

START_TEST(sources_with_less_or_broken_fail_with_their_error)
{
	struct test_source shorter = {.len = 20000};
	ck_assert_int_eq(send_source(&shorter, 20001), -1);
	ck_assert_int_eq(err.kind, ERROR_INCOMPLETE_BODY);
	struct test_source broken = {.len = 50000, .fail_at = 10000};
	ck_assert_int_eq(send_source(&broken, 50000), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_str_eq(err.text, "the source is broken");
	check_sent("GET", "/o");
}
END_TEST

struct test_sink {
	struct body_sink sink;
	struct buffer taken;
	enum sink_result result;
};

static enum sink_result test_sink_write(
	struct body_sink *base, struct span bytes, struct error *write_err)
{
	struct test_sink *const sink = (struct test_sink *)base;
	if (sink->result == SINK_FAILED)
		error_set(write_err, ERROR_NO_SPACE, "the sink is full");
	buffer_add_span(&sink->taken, bytes);
	return sink->result;
}

static int send_to_sink(struct test_sink *sink, const char *target, enum sink_result result)
{
	const struct http_request request = {
		.method = "GET", .target = target, .sink = &sink->sink};
	*sink = (struct test_sink){.sink = {.write = test_sink_write}, .result = result};
	buffer_init(&sink->taken, 1000000);
	http_response_release(&response);
	return http_client_send(client, &request, &response, &err);
}

START_TEST(good_bodies_go_to_the_sink_and_errors_do_not)
{
	struct test_sink sink;
	ck_assert_msg(send_to_sink(&sink, "/c", SINK_TAKEN) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&sink.taken), "abcde");
	ck_assert_uint_eq(response.body.len, 0);
	buffer_release(&sink.taken);
	ck_assert_int_eq(send_to_sink(&sink, "/e", SINK_TAKEN), 0);
	ck_assert_uint_eq(sink.taken.len, 0);
	ck_assert_str_eq(buffer_text(&response.body), "busy");
	buffer_release(&sink.taken);
}
END_TEST

START_TEST(failing_and_waiting_sinks_end_the_download)
{
	struct test_sink sink;
	ck_assert_int_eq(send_to_sink(&sink, "/o", SINK_FAILED), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_str_eq(err.text, "the sink is full");
	buffer_release(&sink.taken);
	ck_assert_int_eq(send_to_sink(&sink, "/o", SINK_WAIT), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	buffer_release(&sink.taken);
	check_sent("GET", "/o");
}
END_TEST

static const char *const broken_targets[] = {"/s", "/g"};

START_TEST(broken_answers_are_upstream_failures)
{
	ck_assert_int_eq(send_request("GET", broken_targets[_i]), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_ptr_nonnull(strstr(err.text, server.endpoint));
	ck_assert_ptr_nonnull(strstr(err.text, broken_targets[_i]));
	ck_assert_ptr_null(strstr(err.text, "a-token"));
}
END_TEST

START_TEST(silent_servers_time_out)
{
	http_client_free(client);
	client = make_client(NULL, 1);
	ck_assert_int_eq(send_request("GET", "/x"), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	while (atomic_load(&server.requests) ==
		0) /* the server may be slower than the client's second */
		usleep(1000);
	ck_assert_int_eq(atomic_load(&server.requests), 1);
	ck_assert_ptr_null(strstr(server.head, "Authorization"));
}
END_TEST

static unsigned silences;

static void end_it(void *owner)
{
	(void)owner;
	silences++;
	http_client_cancel(client);
}

/* "/x" gets no answer, which would fail as a lost connection if the cancel did not come first. */
START_TEST(silence_is_told_once_and_only_where_there_is_some)
{
	const struct http_client_options options = {.endpoint = server.endpoint,
		.on_silence = end_it,
		.silence_ms = 1,
		.stall_timeout_ms = 30 * 1000};
	const struct http_client_options patient = {.endpoint = server.endpoint,
		.on_silence = end_it,
		.silence_ms = INT_MAX,
		.stall_timeout_ms = 1};
	http_client_free(client);
	client = http_client_new(_i == 0 ? &options : &patient, &err);
	silences = 0;
	ck_assert_int_eq(send_request("GET", "/x"), -1);
	ck_assert_int_eq(err.kind, _i == 0 ? ERROR_BUSY : ERROR_UPSTREAM);
	ck_assert_uint_eq(silences, _i == 0 ? 1 : 0);
}
END_TEST

START_TEST(requests_can_be_bounded_as_a_whole)
{
	const struct http_client_options options = {
		.endpoint = server.endpoint, .total_timeout_ms = 300};
	http_client_free(client);
	client = http_client_new(&options, &err);
	const int64_t before = clock_system()->monotonic_ms(clock_system());
	ck_assert_int_eq(send_request("GET", "/x"), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_int_lt(clock_system()->monotonic_ms(clock_system()) - before, 20 * 1000);
}
END_TEST

START_TEST(unreachable_servers_are_upstream_failures)
{
	const struct http_client_options options = {.endpoint = "http://127.0.0.1:1"};
	const struct http_request request = {.method = "GET", .target = "/"};
	struct http_client *const other = http_client_new(&options, &err);
	ck_assert_int_eq(http_client_send(other, &request, &response, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	http_client_free(other);
}
END_TEST

static void *cancel_once_asked(void *argument)
{
	while (atomic_load(&server.requests) == 0)
		usleep(1000);
	http_client_cancel(argument);
	return NULL;
}

START_TEST(cancel_ends_a_blocked_and_every_later_request)
{
	pthread_t thread;
	lock_thread_start(&thread, "canceller", cancel_once_asked, client);
	ck_assert_int_eq(send_request("GET", "/x"), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	pthread_join(thread, NULL);
	err = (struct error){0};
	ck_assert_int_eq(send_request("GET", "/o"), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(atomic_load(&server.requests), 1);
}
END_TEST

static const char *const bad_endpoints[] = {
	"",
	"127.0.0.1:9000",
	"ftp://host",
	"https://",
	"https:///path",
	"http://:80",
	"https://user@host",
	"https://host#x",
	"https://host?x",
	"https://ho st",
	"https://host\r\nX: y",
	"file:///etc/passwd",
};

START_TEST(bad_endpoints_are_refused)
{
	const struct http_client_options options = {.endpoint = bad_endpoints[_i]};
	ck_assert_ptr_null(http_client_new(&options, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(bad_tokens_and_ca_files_are_refused)
{
	const struct http_client_options forged = {
		.endpoint = "http://h", .token = "t\r\nX-Other: y"};
	const struct http_client_options missing = {
		.endpoint = "https://h", .ca_file = "/no/such/ca.pem"};
	const struct http_client_options unverified = {
		.endpoint = "https://h", .token = "t", .unverified = true};
	/* a token for a server that is not checked */
	ck_assert_ptr_null(http_client_new(&unverified, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_null(http_client_new(&forged, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_null(strstr(err.text, "X-Other"));
	ck_assert_ptr_null(http_client_new(&missing, &err));
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

/* "http://127.0.0.1:9000" and "@other.host/" would make a URL of another host. */
START_TEST(targets_cannot_leave_the_endpoint)
{
	ck_assert_int_eq(send_request("GET", "@other.host/"), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(send_request("GET", ""), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(atomic_load(&server.requests), 0);
}
END_TEST

Suite *test_http_client_suite(void);
Suite *test_http_client_suite(void)
{
	Suite *const suite = suite_create("http_client");
	TCase *const tc = tcase_create("all");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, get_gives_status_headers_and_body);
	tcase_add_test(tc, signed_requests_sign_what_they_send);
	tcase_add_test(tc, a_request_may_bring_its_own_token_or_none);
	tcase_add_test(tc, an_errors_body_comes_whole_where_that_is_wanted);
	tcase_add_test(tc, a_link_is_kept);
	tcase_add_test(tc, one_connection_serves_many_requests);
	tcase_add_test(tc, head_tells_the_length);
	tcase_add_test(tc, no_content_and_chunked);
	tcase_add_test(tc, error_answers_are_answers);
	tcase_add_test(tc, large_error_bodies_are_cut);
	tcase_add_test(tc, redirects_are_not_followed);
	tcase_add_test(tc, interim_headers_are_forgotten);
	tcase_add_loop_test(tc, span_bodies_go_out_whole, 0, 2);
	tcase_add_loop_test(tc, empty_bodies_have_a_length_and_no_type, 0, 2);
	tcase_add_test(tc, sources_are_streamed_with_their_length);
	tcase_add_test(tc, sources_with_more_are_cut_at_the_declared_length);
	tcase_add_test(tc, sources_with_less_or_broken_fail_with_their_error);
	tcase_add_test(tc, good_bodies_go_to_the_sink_and_errors_do_not);
	tcase_add_test(tc, failing_and_waiting_sinks_end_the_download);
	tcase_add_loop_test(tc, broken_answers_are_upstream_failures, 0, 2);
	tcase_add_test(tc, silent_servers_time_out);
	tcase_add_loop_test(tc, silence_is_told_once_and_only_where_there_is_some, 0, 2);
	tcase_add_test(tc, requests_can_be_bounded_as_a_whole);
	tcase_add_test(tc, unreachable_servers_are_upstream_failures);
	tcase_add_test(tc, cancel_ends_a_blocked_and_every_later_request);
	tcase_add_loop_test(
		tc, bad_endpoints_are_refused, 0, sizeof bad_endpoints / sizeof bad_endpoints[0]);
	tcase_add_test(tc, bad_tokens_and_ca_files_are_refused);
	tcase_add_test(tc, targets_cannot_leave_the_endpoint);
	suite_add_tcase(suite, tc);
	return suite;
}
