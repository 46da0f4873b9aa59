/* Bodies that are parsed whole: large ones are parsed away from the reactors, and all of them stay
 * within the memory that callers share. */
#include "tests/unit/api/face_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "api/exchange/body_work.h"
#include "base/memory.h"

enum { LARGE_BYTES = BODY_WORK_LEAST_BYTES + 1000 };

static struct face_fixture fixture;
static pthread_t finisher;
static char *large;

static void setup(void)
{
	face_fixture_open(&fixture);
	fixture.context.body_work = body_work_start(1);
	large = NULL;
}

static void teardown(void)
{
	body_work_stop(fixture.context.body_work);
	share_pool_free(fixture.context.shares.bodies);
	free(large);
	face_fixture_close(&fixture);
}

static void share_bodies(uint64_t limit)
{
	const struct share_options options = {.limit = limit};
	fixture.context.shares.bodies = share_pool_new(&options);
}

/* The text after blanks, with `bytes` bytes in all. */
static const char *pad(const char *text, size_t bytes)
{
	free(large);
	large = memory_new_array(bytes + 1, 1);
	memset(large, ' ', bytes);
	memcpy(large + bytes - strlen(text), text, strlen(text));
	return large;
}

/* Routes of the tests. */

static enum next accept_much(struct exchange *exchange)
{
	return exchange_accept_small(exchange, 1024 * 1024);
}

static enum next remember_thread(struct exchange *exchange)
{
	finisher = pthread_self();
	return exchange_reply_empty(exchange, 200);
}

/* The work that it starts may end before it returns. */
static enum next wake_at_once(struct exchange *exchange)
{
	exchange_wake(exchange);
	return NEXT_WAIT;
}

static enum next reply_once_woken(struct exchange *exchange)
{
	return exchange_reply_empty(exchange, 200);
}

static enum next wait_for_another_thread(struct exchange *exchange);

static const struct route rows[] = {
	{.begin = accept_much,
		.finish = remember_thread,
		.face = &face_steps,
		.body = BODY_SMALL,
		.access = ACCESS_ANYONE},
	{.begin = accept_much,
		.finish = wake_at_once,
		.resume = reply_once_woken,
		.face = &face_steps,
		.body = BODY_SMALL,
		.access = ACCESS_ANYONE},
	{.begin = accept_much,
		.finish = wait_for_another_thread,
		.resume = reply_once_woken,
		.face = &face_steps,
		.body = BODY_SMALL,
		.access = ACCESS_ANYONE},
};

static void *wake_later(void *exchange)
{
	exchange_wake(exchange);
	return NULL;
}

static enum next wait_for_another_thread(struct exchange *exchange)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wake_later, exchange);
	pthread_detach(thread);
	return NEXT_WAIT;
}

/* Through router_finish and router_resume, as under the listener. */
static void run(const struct route *row, const char *body)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_POST, "/x");
	fake->is_routed = true;
	ck_assert_int_eq(fake_exchange_run_route(fake, row, span_text(body)), 200);
	ck_assert_int_eq(fake->woken, 0);
	fake_exchange_free(fake);
}

START_TEST(small_bodies_are_parsed_where_they_are)
{
	run(&rows[0], pad("", BODY_WORK_LEAST_BYTES));
	ck_assert(pthread_equal(finisher, pthread_self()));
}
END_TEST

START_TEST(large_bodies_are_parsed_elsewhere)
{
	run(&rows[0], pad("", BODY_WORK_LEAST_BYTES + 1));
	ck_assert(!pthread_equal(finisher, pthread_self()));
}
END_TEST

START_TEST(what_is_woken_early_goes_on)
{
	for (int i = 0; i < 200; i++)
		run(&rows[1 + i % 2], pad("", LARGE_BYTES));
}
END_TEST

START_TEST(real_requests_do_as_with_small_bodies)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/a", NULL, "x");
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/bkt?delete", NULL,
		pad("<Delete><Object><Key>a</Key></Object></Delete>", LARGE_BYTES),
		"<Deleted><Key>a</Key></Deleted>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/a", NULL, NULL);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/v1/runs/bkt/r/steps/0", NULL,
		pad("{", LARGE_BYTES), "not valid JSON");
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/api/buckets/main/bkt/paths-info",
		NULL, pad("{\"paths\":[\"a\"]}", LARGE_BYTES), "[]");
}
END_TEST

static void expect_values(size_t values, const char *text)
{
	struct buffer body;
	buffer_init(&body, 16 * 1024 * 1024);
	buffer_add_text(&body, "{\"x\":[0");
	for (size_t i = 0; i < values; i++)
		buffer_add_text(&body, ",0");
	buffer_add_text(&body, "]}");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/v1/runs/bkt/r/steps/0", NULL,
		buffer_text(&body), text);
	buffer_release(&body);
}

START_TEST(manifests_have_no_end_of_values)
{
	expect_values(1000, "\\\"step\\\" is missing");
	expect_values(200 * 1000, "more than 131072 values");
}
END_TEST

static const char *const tag_begins[] = {"<Delete", "<Delete x=\">\"", "<Delete x='>'",
	"<!-- > <y x=\" --><Delete x=\"\" z='>'", "<?p > '?><Delete"};

START_TEST(tags_have_no_end_of_attributes)
{
	struct buffer body;
	buffer_init(&body, 4 * 1024 * 1024);
	buffer_add_text(&body, tag_begins[_i]);
	for (int i = 0; i < 5000; i++)
		buffer_format(&body, " a%d=\"\"", i);
	buffer_add_text(&body, "><Object><Key>a</Key></Object></Delete>");
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/bkt?delete", NULL,
		buffer_text(&body), "A tag of the XML body is over");
	buffer_release(&body);
}
END_TEST

static struct fake_exchange *begin_body(const char *token, const char *part)
{
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_PUT, "/v1/runs/bkt/r/steps/0");
	fake_exchange_add(fake, "Authorization", arena_format(fixture.arena, "Bearer %s", token));
	fake_exchange_cut(fake, span_text(part), 1000 * 1000);
	return fake;
}

START_TEST(memory_for_bodies_is_shared)
{
	const char *const one = face_fixture_key(&fixture, "main", NULL);
	const char *const other = face_fixture_key(&fixture, "main", NULL);
	const char *const part = pad("", 400 * 1000);
	share_bodies(1000 * 1000);
	struct fake_exchange *const older = begin_body(one, part);
	struct fake_exchange *const younger = begin_body(one, part);
	ck_assert_uint_eq(share_held(fixture.context.shares.bodies), 800 * 1000);
	struct fake_exchange *const refused =
		begin_body(one, part); /* this caller has its share of the memory */
	ck_assert_int_eq(refused->exchange.reply.status, 503);
	ck_assert_ptr_nonnull(fake_exchange_reply_header(refused, "Retry-After"));
	ck_assert(!older->is_cut);
	struct fake_exchange *const others = begin_body(other, part);
	ck_assert_int_eq(others->exchange.reply.status, 0);
	ck_assert(older->is_cut);
	ck_assert(!younger->is_cut);
	fake_exchange_free(older);
	fake_exchange_free(younger);
	fake_exchange_free(refused);
	fake_exchange_free(others);
	ck_assert_uint_eq(share_held(fixture.context.shares.bodies), 0);
}
END_TEST

START_TEST(a_body_is_held_until_the_reply_is_out)
{
	share_bodies(1000 * 1000);
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 400, METHOD_PUT, "/v1/runs/bkt/r/steps/0", NULL, pad("{}", LARGE_BYTES));
	ck_assert_uint_eq(share_held(fixture.context.shares.bodies), LARGE_BYTES);
	fake_exchange_free(fake);
	ck_assert_uint_eq(share_held(fixture.context.shares.bodies), 0);
}
END_TEST

/* Routes that take lists of many keys refuse a caller without any access before the body comes. */
static const struct {
	const char *target;
	int status;
} lists[] = {
	{"/bkt?delete", 403},
	{"/api/buckets/main/bkt/batch", 403},
	{"/nothing?delete", 403},
	{"/api/buckets/main/nothing/batch", 404},
};

START_TEST(lists_are_not_taken_from_those_that_may_do_nothing)
{
	const struct grant grant = {
		span_text("bkt"), span_text("p/"), PERMISSION_READ | PERMISSION_LIST};
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_POST, lists[_i].target);
	fake_exchange_add(fake, "Authorization",
		arena_format(
			fixture.arena, "Bearer %s", face_fixture_key(&fixture, "main", &grant)));
	fake_exchange_cut(fake, span_text("<"), 1000);
	ck_assert_int_eq(fake->exchange.reply.status, lists[_i].status);
	ck_assert_uint_eq(exchange_body(&fake->exchange).len, 0);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(lists_are_taken_from_those_that_may_do_some_of_it)
{
	const struct grant grant = {span_text("bkt"), span_text("p/"), PERMISSION_WRITE};
	fixture.token = face_fixture_key(&fixture, "main", &grant);
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/bkt?delete", NULL,
		"<Delete><Object><Key>p/a</Key></Object><Object><Key>a</Key></Object></Delete>",
		"<Code>AccessDenied</Code>");
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/buckets/main/bkt/batch", NULL,
		"{\"type\":\"deleteFile\",\"path\":\"p/a\"}\n");
}
END_TEST

Suite *test_body_work_suite(void);
Suite *test_body_work_suite(void)
{
	Suite *const suite = suite_create("body_work");
	TCase *const all = tcase_create("all");
	tcase_set_timeout(all, 60);
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, small_bodies_are_parsed_where_they_are);
	tcase_add_test(all, large_bodies_are_parsed_elsewhere);
	tcase_add_test(all, what_is_woken_early_goes_on);
	tcase_add_test(all, real_requests_do_as_with_small_bodies);
	tcase_add_test(all, manifests_have_no_end_of_values);
	tcase_add_loop_test(
		all, tags_have_no_end_of_attributes, 0, sizeof tag_begins / sizeof tag_begins[0]);
	tcase_add_test(all, memory_for_bodies_is_shared);
	tcase_add_test(all, a_body_is_held_until_the_reply_is_out);
	tcase_add_loop_test(all, lists_are_not_taken_from_those_that_may_do_nothing, 0,
		(int)(sizeof(lists) / sizeof(lists[0])));
	tcase_add_test(all, lists_are_taken_from_those_that_may_do_some_of_it);
	suite_add_tcase(suite, all);
	return suite;
}
