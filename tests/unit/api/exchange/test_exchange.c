#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "base/memory.h"

static const struct {
	const char *target;
	const char *name;
	const char *value;
} queries[] = {
	{"/b?a=1", "a", "1"},
	{"/b?a=1&a=2", "a", "1"},
	{"/b?x=0&uploads", "uploads", ""},
	{"/b?delete=", "delete", ""},
	{"/b?p=a%2Fb+c", "p", "a/b c"},
	{"/b?%61=1", "a", "1"},
	{"/b?a+b=1", "a b", "1"},
	{"/b?&&a=1", "a", "1"},
	{"/b?a=1", "b", NULL},
	{"/b?ab=1", "a", NULL},
	{"/b", "a", NULL},
	{"/b?a=%zz", "a", NULL},
};

START_TEST(query_parameters)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_GET, queries[_i].target);
	struct span value = {NULL, 0};
	const bool found = exchange_query(&fake->exchange, queries[_i].name, &value);
	ck_assert_int_eq(found, queries[_i].value != NULL);
	if (found)
		ck_assert(span_equal_text(value, queries[_i].value));
	fake_exchange_free(fake);
}
END_TEST

/* The handlers of the tests. */

static enum next accept_ten(struct exchange *exchange)
{
	return exchange_accept_small(exchange, 10);
}

static enum next echo(struct exchange *exchange)
{
	return exchange_reply_body(exchange, 200, "text/plain", exchange_body(exchange));
}

static const struct route echo_route = {.begin = accept_ten, .finish = echo, .face = &face_steps};

static const struct {
	const char *body;
	size_t piece_bytes;
	int status;
} small_bodies[] = {{"", 0, 200}, {"hello", 0, 200}, {"helloworld", 1, 200}, {"helloworld", 3, 200},
	{"helloworld!", 0, 400}};

START_TEST(small_bodies_are_collected_up_to_their_cap)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_POST, "/x");
	fake->piece_bytes = small_bodies[_i].piece_bytes;
	ck_assert_int_eq(
		fake_exchange_run_route(fake, &echo_route, span_text(small_bodies[_i].body)),
		small_bodies[_i].status);
	if (small_bodies[_i].status == 200)
		ck_assert_str_eq(buffer_text(&fake->body), small_bodies[_i].body);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_chunked_body_over_the_cap_fails_while_it_comes)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_POST, "/x");
	fake->exchange.chunked = true;
	fake->piece_bytes = 4;
	ck_assert_int_eq(
		fake_exchange_run_route(fake, &echo_route, span_text("helloworld!!")), 400);
	ck_assert(strstr(buffer_text(&fake->body), "too_large") != NULL);
	fake_exchange_free(fake);
}
END_TEST

struct counted_sink {
	struct body_sink sink;
	int aborted;
};

static void count_abort(struct body_sink *sink)
{
	((struct counted_sink *)sink)->aborted++;
}

START_TEST(a_declared_length_over_the_limit_never_reaches_the_sink)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_PUT, "/b/k");
	struct counted_sink sink = {.sink = {.abort = count_abort}};
	fake->exchange.has_length = true;
	fake->exchange.length = fake->exchange.context->put_max_bytes + 1;
	ck_assert_int_eq(exchange_accept(&fake->exchange, &sink.sink), NEXT_REPLY);
	ck_assert_int_eq(sink.aborted, 1);
	ck_assert_int_eq(fake->exchange.reply.status, 400);
	ck_assert_ptr_null(fake->exchange.sink);
	fake_exchange_free(fake);
}
END_TEST

struct counted_source {
	struct body_source source;
	int *closed;
};

static void close_counted(struct body_source *source)
{
	(*((struct counted_source *)source)->closed)++;
}

START_TEST(a_failure_takes_the_place_of_a_prepared_reply)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_GET, "/b/k");
	int closed = 0;
	struct counted_source source = {.source = {.close = close_counted}, .closed = &closed};
	struct error err = {0};
	exchange_add_header(&fake->exchange, "x-kept", "1");
	exchange_reply_source(&fake->exchange, 200, "text/plain", &source.source, 10);
	error_set(&err, ERROR_NO_KEY, "gone");
	ck_assert_int_eq(exchange_fail(&fake->exchange, &err), NEXT_REPLY);
	ck_assert_int_eq(closed, 1);
	ck_assert_int_eq(fake->exchange.reply.status, 404);
	ck_assert_ptr_null(fake->exchange.reply.source);
	ck_assert_str_eq(fake_exchange_reply_header(fake, "X-Kept"), "1");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(strangers_get_403_on_s3_and_401_on_the_others)
{
	struct error err = {0};
	error_set(&err, ERROR_NO_CREDENTIALS, "who are you");
	struct fake_exchange *fake = fake_exchange_new(NULL, METHOD_GET, "/b/k");
	exchange_fail(&fake->exchange, &err);
	ck_assert_int_eq(fake->exchange.reply.status, 403);
	ck_assert_ptr_null(fake_exchange_reply_header(fake, "WWW-Authenticate"));
	fake_exchange_free(fake);
	fake = fake_exchange_new(NULL, METHOD_GET, "/v1/runs/b/r");
	fake->exchange.face = &face_steps;
	exchange_fail(&fake->exchange, &err);
	ck_assert_int_eq(fake->exchange.reply.status, 401);
	ck_assert_str_eq(fake_exchange_reply_header(fake, "WWW-Authenticate"), "Bearer");
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const struct face *face;
	int status;
} full[] = {
	{&face_s3, 507},
	{&face_steps, 507},
	{&face_hub, 507},
	{&face_xet, 413},
};

START_TEST(a_full_disk_is_said_so_that_clients_end)
{
	struct fake_exchange *const fake =
		fake_exchange_new(NULL, METHOD_PUT, "/xet/v1/xorbs/default/x");
	struct error err = {0};
	fake->exchange.face = full[_i].face;
	error_set(&err, ERROR_NO_SPACE, "the disk is full");
	exchange_fail(&fake->exchange, &err);
	ck_assert_int_eq(fake->exchange.reply.status, full[_i].status);
	if (full[_i].face == &face_xet)
		ck_assert(span_equal_text(fake->exchange.reply.body,
			"{\"error\":\"The server's disk is full\",\"code\":\"no_space\"}"));
	fake_exchange_free(fake);
}
END_TEST

/* A caller with a key may learn how full the disk is, but not where the data folder is. */
START_TEST(how_full_a_disk_is_is_for_those_with_a_key)
{
	static const char room[] = "The server's disk is full: 1.0 MB are free";
	static const struct principal somebody = {.is_root = true};
	const char *const said = _i == 0 ? room : "/srv/data: No space left on device";
	for (int known = 0; known < 2; known++) {
		struct fake_exchange *const fake =
			fake_exchange_new(NULL, METHOD_PUT, "/v1/runs/b/r");
		struct error err = {0};
		fake->exchange.face = &face_steps;
		fake->exchange.principal = known ? &somebody : NULL;
		error_set(&err, ERROR_NO_SPACE, "%s", said);
		exchange_fail(&fake->exchange, &err);
		const struct span body = fake->exchange.reply.body;
		ck_assert_int_eq(
			memmem(body.data, body.len, room, strlen(room)) != NULL, known && _i == 0);
		ck_assert_ptr_nonnull(memmem(body.data, body.len, "The server's disk is full", 25));
		ck_assert_ptr_null(memmem(body.data, body.len, "/srv", 4));
		fake_exchange_free(fake);
	}
}
END_TEST

static const struct {
	const struct face *face;
	bool stops;
	int status;
	bool paces;
} busy[] = {
	{&face_hub, false, 429, true},
	{&face_xet, false, 429, true},
	{&face_hub, true, 503, false},
	{&face_xet, true, 503, false},
	{&face_s3, false, 503, false},
	{&face_steps, false, 503, false},
};

START_TEST(clients_of_the_hub_are_told_when_to_come_again)
{
	const _Atomic bool stopping = busy[_i].stops;
	const struct api_context context = {.clock = clock_system(), .stopping = &stopping};
	struct fake_exchange *const fake =
		fake_exchange_new(&context, METHOD_GET, "/api/buckets/b");
	struct error err = {0};
	unsigned seconds = 0;
	fake->exchange.face = busy[_i].face;
	error_set(&err, ERROR_BUSY, "too much to do");
	exchange_fail(&fake->exchange, &err);
	ck_assert_int_eq(fake->exchange.reply.status, busy[_i].status);
	const char *const pace = fake_exchange_reply_header(fake, "RateLimit");
	ck_assert_int_eq(pace != NULL, busy[_i].paces);
	if (pace != NULL) {
		char text[32];
		ck_assert_int_eq(sscanf(pace, "\"api\";r=0;t=%u", &seconds), 1);
		ck_assert(seconds >= 2 && seconds <= 5);
		snprintf(text, sizeof text, "%u", seconds);
		ck_assert_str_eq(fake_exchange_reply_header(fake, "Retry-After"), text);
		ck_assert_ptr_nonnull(
			strstr(fake_exchange_reply_header(fake, "RateLimit-Policy"), text));
	}
	fake_exchange_free(fake);
}
END_TEST

START_TEST(headers_beyond_all_bounds_are_dropped)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_GET, "/b/k");
	char *const giant = memory_new(10000);
	memset(giant, 'x', 9999);
	exchange_add_header(&fake->exchange, "a", NULL);
	exchange_add_header(&fake->exchange, "b", giant);
	ck_assert_uint_eq(fake->exchange.reply.header_count, 0);
	for (int i = 0; i < EXCHANGE_REPLY_HEADERS_MAX + 5; i++)
		exchange_add_header(&fake->exchange, "c", "1");
	ck_assert_uint_eq(fake->exchange.reply.header_count, EXCHANGE_REPLY_HEADERS_MAX);
	free(giant);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_buffer_over_its_cap_becomes_an_error_not_half_a_reply)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_GET, "/b/k");
	struct buffer body;
	buffer_init(&body, 4);
	buffer_add_text(&body, "hello");
	exchange_reply_buffer(&fake->exchange, 200, "text/plain", &body);
	ck_assert_int_eq(fake->exchange.reply.status, 503);
	fake_exchange_free(fake);
}
END_TEST

/* Calls that end at once. Freed calls are counted. */
static int freed;

static void resume_at_once(struct call *call)
{
	call_resume(call, NULL);
}

static void count_freed(struct call *call)
{
	(void)call;
	freed++;
}

static struct call *counted_call(void)
{
	static const struct call_kind kind = {
		.stages = {{.begin = resume_at_once}}, .release = count_freed};
	return call_new(sizeof(struct call), &kind, NULL, 0);
}

static enum next await_first(struct exchange *exchange)
{
	return exchange_await(exchange, counted_call());
}

static enum next await_held(struct exchange *exchange)
{
	exchange->call = counted_call();
	return exchange_await(exchange, exchange->call);
}

static enum next await_second(struct exchange *exchange)
{
	struct error err = {0};
	if (exchange->state != NULL)
		return exchange_reply_empty(
			exchange, call_outcome(exchange->call, &err) == 0 ? 204 : 500);
	exchange->state = &freed;
	return exchange_await(exchange, counted_call());
}

static enum next hold_and_reply(struct exchange *exchange)
{
	exchange->call = counted_call();
	return exchange_reply_empty(exchange, 204);
}

static const struct {
	struct route route;
	int freed_early;
	int freed;
} awaiting[] = {
	{{.begin = await_first, .resume = await_second}, 1, 2},
	{{.begin = await_held, .resume = await_second}, 1, 2},
	{{.begin = hold_and_reply}, 0, 1},
};

START_TEST(a_call_is_freed_when_another_takes_its_place_and_with_the_exchange)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_PUT, "/b/k");
	freed = 0;
	ck_assert_int_eq(fake_exchange_run_route(fake, &awaiting[_i].route, span_text("")), 204);
	ck_assert_int_eq(freed, awaiting[_i].freed_early);
	fake_exchange_free(fake);
	ck_assert_int_eq(freed, awaiting[_i].freed);
}
END_TEST

Suite *test_exchange_suite(void);

Suite *test_exchange_suite(void)
{
	Suite *const suite = suite_create("exchange");
	TCase *const tcase = tcase_create("exchange");
	tcase_add_loop_test(tcase, query_parameters, 0, sizeof queries / sizeof queries[0]);
	tcase_add_loop_test(tcase, small_bodies_are_collected_up_to_their_cap, 0,
		sizeof small_bodies / sizeof small_bodies[0]);
	tcase_add_test(tcase, a_chunked_body_over_the_cap_fails_while_it_comes);
	tcase_add_test(tcase, a_declared_length_over_the_limit_never_reaches_the_sink);
	tcase_add_test(tcase, a_failure_takes_the_place_of_a_prepared_reply);
	tcase_add_test(tcase, strangers_get_403_on_s3_and_401_on_the_others);
	tcase_add_loop_test(tcase, clients_of_the_hub_are_told_when_to_come_again, 0,
		sizeof busy / sizeof busy[0]);
	tcase_add_loop_test(tcase, how_full_a_disk_is_is_for_those_with_a_key, 0, 2);
	tcase_add_loop_test(
		tcase, a_full_disk_is_said_so_that_clients_end, 0, sizeof full / sizeof full[0]);
	tcase_add_test(tcase, headers_beyond_all_bounds_are_dropped);
	tcase_add_test(tcase, a_buffer_over_its_cap_becomes_an_error_not_half_a_reply);
	tcase_add_loop_test(tcase,
		a_call_is_freed_when_another_takes_its_place_and_with_the_exchange, 0,
		sizeof awaiting / sizeof awaiting[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
