#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "tests/unit/s3_service.h"

static const char BUSY_XML[] =
	"<Error><Code>SlowDown</Code><Message>Please reduce your rate.</Message></Error>";
static const struct s3_service_answer GOOD[] = {{.status = 200}, {0}};
static struct s3_service *service;
static struct s3_client *client;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	service = s3_service_start(GOOD);
	client = s3_service_client(service, NULL);
}

static void tear_down(void)
{
	s3_client_free(client);
	s3_service_stop(service);
}

static int put(const char *body)
{
	return s3_client_put(client, "a", span_text(body), &err);
}

static void put_fails(const struct s3_service_answer *answers, enum error_kind kind, unsigned count)
{
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(put("x"), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_uint_eq(s3_service_count(service), count);
}

START_TEST(a_put_signs_the_sum_of_its_body)
{
	static const char name[] = "x-amz-content-sha256: ";
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	const char *bodies[] = {"some bytes", ""};
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(put(bodies[i]), 0);
		const char *head = s3_service_head(service);
		sha256(span_text(bodies[i]), digest);
		encode_hex(span_of(digest, sizeof(digest)), hex);
		ck_assert_ptr_nonnull(strstr(head, name));
		ck_assert(strncmp(strstr(head, name) + sizeof(name) - 1, hex, strlen(hex)) == 0);
		const char *list = strstr(head, "SignedHeaders=");
		ck_assert_ptr_nonnull(list);
		ck_assert_ptr_nonnull(strstr(list, "x-amz-content-sha256"));
		ck_assert_ptr_nonnull(strstr(head, "x-amz-security-token: the-session\r\n"));
		ck_assert(span_equal_text(s3_service_body(service), bodies[i]));
	}
	ck_assert_ptr_nonnull(strstr(s3_service_head(service), "/us-east-1/s3/aws4_request"));
	ck_assert_ptr_null(strstr(s3_service_head(service), "the-secret"));
}
END_TEST

START_TEST(names_are_encoded)
{
	ck_assert_int_eq(s3_client_put(client, "a b+c%/\xc3\xa9?#&=~", span_text("x"), &err), 0);
	ck_assert_str_eq(
		s3_service_trace(service), "PUT /box/in/a%20b%2Bc%25/%C3%A9%3F%23%26%3D~\n");
	char name[1100] = "";
	memset(name, 'n', 1022);
	ck_assert_int_eq(s3_client_put(client, name, span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_KEY_TOO_LONG);
	ck_assert_uint_eq(s3_service_count(service), 1);
}
END_TEST

START_TEST(what_passes_is_tried_again)
{
	static const int statuses[] = {408, 429, 500, 502, 503, 504};
	const struct s3_service_answer answers[] = {
		{.status = statuses[_i], .body = BUSY_XML}, {.status = 200}, {0}};
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(put("x"), 0);
	ck_assert_uint_eq(s3_service_count(service), 2);
	ck_assert_int_eq(err.kind, ERROR_NONE);
}
END_TEST

START_TEST(a_service_that_does_not_recover_is_busy)
{
	static const struct s3_service_answer answers[] = {
		{.status = 503, .headers = "x-amz-request-id: r-1\r\n", .body = BUSY_XML}, {0}};
	put_fails(answers, ERROR_BUSY, 3);
	ck_assert_str_eq(err.text,
		"PUT /box/in/a was answered with status 503 (SlowDown): Please reduce your rate.");
	ck_assert_str_eq(err.request_id, "r-1");
}
END_TEST

START_TEST(a_refusal_is_not_tried_again)
{
	static const struct {
		struct s3_service_answer answers[2];
		enum error_kind kind;
	} cases[] = {
		{{{.status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"}},
			ERROR_DENIED},
		{{{.status = 401}}, ERROR_DENIED},
		{{{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"}},
			ERROR_NOT_FOUND},
		{{{.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"}},
			ERROR_UPSTREAM},
		{{{.status = 400}}, ERROR_UPSTREAM},
		{{{.status = 501}}, ERROR_UPSTREAM},
		{{{.status = 307, .headers = "Location: http://127.0.0.1:1/\r\n"}}, ERROR_UPSTREAM},
		{{{.status = 301, .headers = "Location: /elsewhere\r\n"}}, ERROR_UPSTREAM},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		put_fails(cases[i].answers, cases[i].kind, 1);
}
END_TEST

START_TEST(words_of_a_service_are_printable_and_short)
{
	static char body[4000];
	static const struct s3_service_answer answers[] = {{.status = 400, .body = body}, {0}};
	memset(body, 'w', sizeof(body) - 1);
	memcpy(body, "<Error><Message>one\ntwo\x7f\xc3\xa9", 26);
	memcpy(body + sizeof(body) - 18, "</Message></Error>", 18);
	body[sizeof(body) - 1] = '\0';
	memcpy(body + sizeof(body) - 19, "</Message></Error>", 18);
	put_fails(answers, ERROR_UPSTREAM, 1);
	ck_assert_ptr_nonnull(strstr(err.text, ": one?two???www"));
	ck_assert_uint_lt(strlen(err.text), 300);
	static const struct s3_service_answer hostile[] = {
		{.status = 400,
			.body = "<!DOCTYPE a [<!ENTITY b \"c\">]><Error><Message>&b;</Message></Error>"},
		{0}};
	put_fails(hostile, ERROR_UPSTREAM, 1);
	ck_assert_str_eq(err.text, "PUT /box/in/a was answered with status 400.");
}
END_TEST

START_TEST(a_wait_that_is_too_long_is_not_begun)
{
	static const struct s3_service_answer answers[] = {
		{.status = 503, .headers = "Retry-After: 3600\r\n"}, {0}};
	put_fails(answers, ERROR_BUSY, 1);
}
END_TEST

static atomic_uint told;
static char told_text[ERROR_TEXT_BYTES];

static void note(void *owner, const struct error *why)
{
	ck_assert_ptr_eq(owner, &told);
	snprintf(told_text, sizeof(told_text), "%s", why->text);
	atomic_fetch_add(&told, 1);
}

START_TEST(retries_are_told)
{
	static const struct s3_service_answer answers[] = {
		{.status = 500}, {.status = 200, .body = "cut", .length = 9}, {.status = 200}, {0}};
	const struct s3_client_options options = {.on_retry = note, .owner = &told, .tries = 3};
	struct s3_client *telling = s3_service_client(service, &options);
	atomic_store(&told, 0);
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(s3_client_put(telling, "a", span_text("x"), &err), 0);
	ck_assert_uint_eq(atomic_load(&told), 2);
	ck_assert_ptr_nonnull(strstr(told_text, "failed: "));
	s3_client_free(telling);
}
END_TEST

static int get(struct buffer *out)
{
	return s3_client_get(client, "a", out, &err);
}

START_TEST(a_get_is_whole)
{
	static const struct s3_service_answer answers[] = {
		{.status = 200, .body = "some", .length = 10}, /* cut */
		{.status = 503, .body = BUSY_XML}, {.status = 200, .body = "some bytes"}, {0}};
	static const struct s3_service_answer piece[] = {{.status = 206, .body = "some"}, {0}};
	static const struct s3_service_answer gone[] = {
		{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"}, {0}};
	struct buffer out;
	buffer_init(&out, 20);
	buffer_add_text(&out, "before ");
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(get(&out), 0);
	ck_assert_str_eq(buffer_text(&out), "before some bytes");
	ck_assert_int_eq(get(&out), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_reset(&out);
	s3_service_answer_with(service, piece);
	ck_assert_int_eq(get(&out), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	s3_service_answer_with(service, gone);
	ck_assert_int_eq(get(&out), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	buffer_release(&out);
}
END_TEST

static uint8_t memory[16];

static int get_range(uint64_t *out_total)
{
	struct s3_range range = {.offset = 10, .length = 4, .into = memory};
	memset(memory, '.', sizeof(memory));
	const int result = s3_client_get_range(client, "a", &range, &err);
	*out_total = range.total;
	return result;
}

START_TEST(a_range_is_exact)
{
	static const struct s3_service_answer answers[] = {
		{.status = 206,
			.headers = "Content-Range: bytes 10-13/100\r\n",
			.body = "ab",
			.length = 4}, /* cut */
		{.status = 206, .headers = "Content-Range: bytes 10-13/100\r\n", .body = "abcd"},
		{0}};
	uint64_t total = 0;
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(get_range(&total), 0);
	ck_assert(memcmp(memory, "abcd....", 8) == 0);
	ck_assert_uint_eq(total, 100);
	ck_assert_uint_eq(s3_service_count(service), 2);
	ck_assert_ptr_nonnull(strstr(s3_service_head(service), "\r\nRange: bytes=10-13\r\n"));
}
END_TEST

static const struct {
	struct s3_service_answer answers[2];
	uint64_t total;
} wrong_ranges[] = {
	{{{.status = 200, .body = "abcd"}}, UINT64_MAX},
	{{{.status = 200, .body = "the whole of it, with all its bytes"}}, UINT64_MAX},
	{{{.status = 206, .body = "abcd"}}, UINT64_MAX},
	{{{.status = 206, .headers = "Content-Range: bytes 10-12/13\r\n", .body = "abc"}}, 13},
	{{{.status = 206, .headers = "Content-Range: bytes 10-13/100\r\n", .body = "abc"}}, 100},
	{{{.status = 206, .headers = "Content-Range: bytes 10-13/100\r\n", .body = "abcdefghijkl"}},
		100},
	{{{.status = 206, .headers = "Content-Range: bytes 0-3/100\r\n", .body = "abcd"}}, 100},
	{{{.status = 206, .headers = "Content-Range: bytes 9-13/100\r\n", .body = "abcd"}}, 100},
	{{{.status = 200, .headers = "Content-Range: bytes 10-13/100\r\n", .body = "abcd"}}, 100},
	{{{.status = 206, .headers = "Content-Range: bytes 10-14/100\r\n", .body = "abcd"}}, 100},
	{{{.status = 206, .headers = "Content-Range: bytes 10-13/12\r\n", .body = "abcd"}}, 12},
	{{{.status = 206, .headers = "Content-Range: bytes 10-13/*\r\n", .body = "abcd"}},
		UINT64_MAX},
	{{{.status = 206, .headers = "Content-Range: bytes nonsense\r\n", .body = "abcd"}},
		UINT64_MAX},
	{{{.status = 416, .headers = "Content-Range: bytes */9\r\n"}}, 9},
};

START_TEST(a_wrong_range_is_refused_at_once)
{
	uint64_t total = 0;
	s3_service_answer_with(service, wrong_ranges[_i].answers);
	ck_assert_int_eq(get_range(&total), -1);
	ck_assert_msg(err.kind == ERROR_CORRUPT, "%s", err.text);
	ck_assert_uint_eq(total, wrong_ranges[_i].total);
	ck_assert_uint_eq(s3_service_count(service), 1);
	ck_assert(memcmp(memory + 4, "............", 12) == 0);
	s3_service_answer_with(service, GOOD);
	ck_assert_int_eq(put("x"), 0);
}
END_TEST

START_TEST(head_tells_the_size)
{
	static const struct s3_service_answer answers[] = {{.status = 200, .length = 12345}, {0}};
	static const struct s3_service_answer gone[] = {{.status = 404}, {.status = 200}, {0}};
	static const struct s3_service_answer private[] = {{.status = 404}, {.status = 403}, {0}};
	static const struct s3_service_answer nowhere[] = {{.status = 404}, {0}};
	uint64_t bytes = 0;
	s3_service_answer_with(service, answers);
	ck_assert_int_eq(s3_client_head(client, "a", &bytes, &err), 0);
	ck_assert_uint_eq(bytes, 12345);
	ck_assert_str_eq(s3_service_trace(service), "HEAD /box/in/a\n");
	s3_service_answer_with(service, gone);
	ck_assert_int_eq(s3_client_head(client, "a", &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_str_eq(s3_service_trace(service), "HEAD /box/in/a\nHEAD /box\n");
	s3_service_answer_with(service, private);
	ck_assert_int_eq(s3_client_head(client, "a", &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	s3_service_answer_with(service, nowhere);
	ck_assert_int_eq(s3_client_head(client, "a", &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
}
END_TEST

START_TEST(a_removal_of_nothing_is_fine)
{
	static const struct s3_service_answer done[] = {{.status = 204}, {0}};
	static const struct s3_service_answer gone[] = {
		{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"}, {0}};
	static const struct s3_service_answer nowhere[] = {
		{.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"}, {0}};
	s3_service_answer_with(service, done);
	ck_assert_int_eq(s3_client_remove(client, "a", &err), 0);
	ck_assert_str_eq(s3_service_trace(service), "DELETE /box/in/a\n");
	s3_service_answer_with(service, gone);
	ck_assert_int_eq(s3_client_remove(client, "a", &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NONE);
	s3_service_answer_with(service, nowhere);
	ck_assert_int_eq(s3_client_remove(client, "a", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
}
END_TEST

/* The service takes requests again while the client thinks that it does not. */
START_TEST(a_silent_service_is_asked_now_and_then)
{
	static const struct s3_service_answer silent[] = {{.delay_ms = 1}, {0}};
	put_fails(silent, ERROR_BUSY, 3);
	s3_service_answer_with(service, GOOD);
	ck_assert_int_eq(put("x"), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "does not answer"));
	ck_assert_uint_eq(s3_service_count(service), 0);
	for (int i = 0; i < 200 && put("x") != 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	ck_assert_uint_eq(s3_service_count(service), 1);
	ck_assert_int_eq(put("x"), 0);
}
END_TEST

START_TEST(a_silent_service_is_tried_once_by_one)
{
	static const struct s3_service_answer silent[] = {{.delay_ms = 1}, {0}};
	put_fails(silent, ERROR_BUSY, 3);
	s3_service_answer_with(service, silent);
	for (int i = 0; i < 200 && s3_service_count(service) == 0; i++) {
		ck_assert_int_eq(put("x"), -1);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
	ck_assert_uint_eq(s3_service_count(service), 1);
	ck_assert_int_eq(put("x"), -1);
	ck_assert_uint_eq(s3_service_count(service), 1);
}
END_TEST

START_TEST(nobody_listens)
{
	const struct s3_client_options options = {.endpoint = "http://127.0.0.1:1", .tries = 2};
	struct s3_client *lost = s3_service_client(service, &options);
	ck_assert_int_eq(s3_client_put(lost, "a", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "127.0.0.1:1"));
	s3_client_free(lost);
}
END_TEST

START_TEST(tls_that_is_not_agreed_on_is_not_tried_again)
{
	char endpoint[80];
	snprintf(endpoint, sizeof(endpoint), "https%s", s3_service_endpoint(service) + 4);
	const struct s3_client_options options = {
		.endpoint = endpoint, .tries = 3, .on_retry = note, .owner = &told};
	struct s3_client *wrong = s3_service_client(service, &options);
	atomic_store(&told, 0);
	ck_assert_int_eq(s3_client_put(wrong, "a", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_uint_eq(atomic_load(&told), 0);
	s3_client_free(wrong);
}
END_TEST

enum { THREADS = 6 };

static struct s3_client *shared;
static atomic_int kinds[ERROR_TOO_MANY_TAGS + 1];

static void *put_one(void *argument)
{
	struct error own = {0};
	(void)argument;
	s3_client_put(shared, "a", span_text("x"), &own);
	atomic_fetch_add(&kinds[own.kind], 1);
	return NULL;
}

static void put_by_threads(const struct s3_service_answer *answers, pthread_t *threads)
{
	const struct s3_client_options options = {
		.connections = 2, .tries = 2, .stall_timeout_ms = 3600 * 1000};
	for (size_t i = 0; i <= ERROR_TOO_MANY_TAGS; i++)
		atomic_store(&kinds[i], 0);
	s3_service_answer_with(service, answers);
	shared = s3_service_client(service, &options);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, put_one, NULL);
}

static void end_threads(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	s3_client_free(shared);
}

START_TEST(requests_beyond_the_connections_wait)
{
	static const struct s3_service_answer slow[] = {{.status = 200, .delay_ms = 20}, {0}};
	pthread_t threads[THREADS];
	put_by_threads(slow, threads);
	end_threads(threads);
	ck_assert_int_eq(atomic_load(&kinds[ERROR_NONE]), THREADS);
	ck_assert_uint_eq(s3_service_count(service), THREADS);
	ck_assert_uint_eq(s3_service_most_at_once(service), 2);
}
END_TEST

/* Two of them are at the service, the others wait for a connection. */
START_TEST(a_cancel_ends_all)
{
	static const struct s3_service_answer never[] = {{.hangs = true}, {0}};
	pthread_t threads[THREADS];
	put_by_threads(never, threads);
	while (s3_service_most_at_once(service) < 2)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	s3_client_cancel(shared);
	struct s3_client *cancelled = shared;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(atomic_load(&kinds[ERROR_BUSY]), THREADS);
	ck_assert_int_eq(s3_client_put(cancelled, "a", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	s3_client_free(cancelled);
	ck_assert_uint_eq(s3_service_count(service), 2);
}
END_TEST

static void *cancel_soon(void *argument)
{
	while (atomic_load(&told) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	s3_client_cancel(argument);
	return NULL;
}

START_TEST(a_cancel_ends_a_pause)
{
	static const struct s3_service_answer busy[] = {
		{.status = 503, .headers = "Retry-After: 3600\r\n"}, {0}};
	const struct s3_client_options options = {
		.tries = 5, .give_up_ms = 7200 * 1000, .on_retry = note, .owner = &told};
	pthread_t thread;
	atomic_store(&told, 0);
	s3_service_answer_with(service, busy);
	struct s3_client *pausing = s3_service_client(service, &options);
	pthread_create(&thread, NULL, cancel_soon, pausing);
	ck_assert_int_eq(s3_client_put(pausing, "a", span_text("x"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	pthread_join(thread, NULL);
	s3_client_free(pausing);
}
END_TEST

static const struct s3_client_options wrong_options[] = {
	{.endpoint = "ftp://h", .bucket = "b", .signing = {.key_id = "K", .secret = "hush"}},
	{.endpoint = "https://u:p@h", .bucket = "b", .signing = {.key_id = "K", .secret = "hush"}},
	{.endpoint = "https://h", .bucket = "", .signing = {.key_id = "K", .secret = "hush"}},
	{.endpoint = "https://h", .bucket = "a/b", .signing = {.key_id = "K", .secret = "hush"}},
	{.endpoint = "https://h", .bucket = "b", .signing = {.key_id = "K"}},
	{.endpoint = "https://h", .bucket = "b", .signing = {.key_id = "", .secret = "hush"}},
	{.endpoint = "https://h", .bucket = "b", .signing = {.key_id = "K", .secret = "hush\n"}},
	{.endpoint = "https://h",
		.bucket = "b",
		.signing = {.key_id = "K\r\nX: y", .secret = "hush"}},
	{.endpoint = "https://h",
		.bucket = "b",
		.signing = {.key_id = "K", .secret = "hush", .session = "hush hush"}},
	{.endpoint = "https://h",
		.bucket = "b",
		.signing = {.key_id = "K", .secret = "hush", .region = "a:b"}},
};

START_TEST(wrong_options_are_refused_without_a_secret)
{
	ck_assert_ptr_null(s3_client_open(&wrong_options[_i], &err));
	ck_assert_msg(err.kind == ERROR_INVALID, "%s", err.text);
	ck_assert_ptr_null(strstr(err.text, "hush"));
}
END_TEST

Suite *test_s3_client_suite(void);
Suite *test_s3_client_suite(void)
{
	Suite *suite = suite_create("s3_client");
	TCase *cases = tcase_create("one client");
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, a_put_signs_the_sum_of_its_body);
	tcase_add_test(cases, names_are_encoded);
	tcase_add_loop_test(cases, what_passes_is_tried_again, 0, 6);
	tcase_add_test(cases, a_service_that_does_not_recover_is_busy);
	tcase_add_test(cases, a_refusal_is_not_tried_again);
	tcase_add_test(cases, words_of_a_service_are_printable_and_short);
	tcase_add_test(cases, a_wait_that_is_too_long_is_not_begun);
	tcase_add_test(cases, retries_are_told);
	tcase_add_test(cases, a_get_is_whole);
	tcase_add_test(cases, a_range_is_exact);
	tcase_add_loop_test(cases, a_wrong_range_is_refused_at_once, 0,
		(int)(sizeof(wrong_ranges) / sizeof(wrong_ranges[0])));
	tcase_add_test(cases, head_tells_the_size);
	tcase_add_test(cases, a_removal_of_nothing_is_fine);
	tcase_add_test(cases, a_silent_service_is_asked_now_and_then);
	tcase_add_test(cases, a_silent_service_is_tried_once_by_one);
	tcase_add_test(cases, nobody_listens);
	tcase_add_test(cases, tls_that_is_not_agreed_on_is_not_tried_again);
	tcase_add_test(cases, requests_beyond_the_connections_wait);
	tcase_add_test(cases, a_cancel_ends_all);
	tcase_add_test(cases, a_cancel_ends_a_pause);
	tcase_add_loop_test(cases, wrong_options_are_refused_without_a_secret, 0,
		(int)(sizeof(wrong_options) / sizeof(wrong_options[0])));
	suite_add_tcase(suite, cases);
	return suite;
}
