/* Streams of what changes, through the router and over a real store: how they begin and end, and
 * what a reader hears that was too slow. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "storage/core/run_feed.h"
#include "storage/run_tables/replica_table.h"

#define RUN          "/v1/runs/bkt/r"
#define END_OF_EVENT "]}\n\n"
#define RECONNECT    "event: reconnect\ndata: {}\n\n"

enum { MANY_REPLICAS = 600, PIECE_REPLICAS = 200 };

static struct face_fixture fixture;
static struct fake_exchange *stream;

static void setup(void)
{
	face_fixture_open(&fixture);
	stream = NULL;
	face_fixture_expect(&fixture, 200, METHOD_POST, RUN, NULL, "{}");
}

static void teardown(void)
{
	fake_exchange_free(stream);
	face_fixture_close(&fixture);
}

static void follow(const char *target)
{
	stream = fake_exchange_new(&fixture.context, METHOD_GET, target);
	stream->leaves_body = true;
	fake_exchange_add(
		stream, "Authorization", arena_format(fixture.arena, "Bearer %s", fixture.token));
	ck_assert_int_eq(fake_exchange_run(stream, span_text("")), 200);
	ck_assert_str_eq(stream->exchange.reply.content_type, "text/event-stream");
	fake_exchange_read(stream);
}

/* The last bytes that came. */
static const char *end_of_body(size_t bytes)
{
	const size_t len = stream->body.len;
	return buffer_text(&stream->body) + (len > bytes ? len - bytes : 0);
}

/* Reads on until the text has come; it must. */
static void hear(const char *text)
{
	while (strstr(buffer_text(&stream->body), text) == NULL)
		ck_assert_msg(fake_exchange_read(stream), "the stream ended without %s: %s", text,
			end_of_body(500));
}

static size_t count(const char *text)
{
	size_t found = 0;
	for (const char *at = buffer_text(&stream->body); (at = strstr(at, text)) != NULL; at++)
		found++;
	return found;
}

static void put_replica(const char *id, const char *body)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT,
		arena_format(fixture.arena, RUN "/replicas/%s", id), NULL, body);
}

static void put_many(const char *body)
{
	for (int i = 0; i < MANY_REPLICAS; i++)
		put_replica(arena_format(fixture.arena, "w-%d", i), body);
}

START_TEST(a_stream_begins_with_hello_and_tells_only_what_comes_later)
{
	put_replica("early", "{\"state\":\"idle\"}");
	follow("/-/events?runs=1&replicas=bkt/r");
	hear("event: hello\ndata: {\"time\":\"");
	put_replica("late", "{\"state\":\"ready\"}");
	hear("\"removed\":[],\"replicas\":[{\"id\":\"late\"");
	hear("event: run\ndata: {\"bucket\":\"bkt\",\"run\":\"r\"");
	ck_assert_uint_eq(count("\"early\""), 0);
}
END_TEST

START_TEST(an_event_of_many_replicas_is_whole_and_has_each_once)
{
	follow("/-/events?replicas=bkt/r");
	put_many("{\"state\":\"ready\"}");
	hear("\"w-599\"");
	hear(END_OF_EVENT);
	ck_assert_uint_eq(count("\"state\":\"ready\""), MANY_REPLICAS);
	ck_assert_uint_eq(count("event: replicas\n"), 1);
	ck_assert_uint_eq(
		count("\"states\":{\"idle\":0,\"fetching\":0,\"staging\":0,\"ready\":600"), 1);
}
END_TEST

/* Reads a little at a time, and tells the server to stop after the first bytes. */
struct stopping_source {
	struct body_source source;
	struct body_source *inner;
};

static ptrdiff_t live_events_read_and_stop(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct body_source *const inner = ((struct stopping_source *)source)->inner;
	const ptrdiff_t got = inner->read(inner, into, capacity < 100 ? capacity : 100, err);
	fixture.stopping = fixture.stopping || got > 0;
	return got;
}

static void live_events_close_inner(struct body_source *source)
{
	struct body_source *const inner = ((struct stopping_source *)source)->inner;
	inner->close(inner);
}

START_TEST(a_stop_in_the_middle_of_an_event_leaves_it_readable)
{
	struct stopping_source source = {
		.source = {.read = live_events_read_and_stop, .close = live_events_close_inner}};
	follow("/-/events?replicas=bkt/r");
	put_many("{\"state\":\"ready\"}");
	source.inner = stream->exchange.reply.source;
	stream->exchange.reply.source = &source.source;
	while (fake_exchange_read(stream))
		;
	ck_assert_str_eq(end_of_body(strlen(END_OF_EVENT RECONNECT)), END_OF_EVENT RECONNECT);
	ck_assert_uint_eq(count("\"state\":\"ready\""), PIECE_REPLICAS);
	fake_exchange_free(stream);
	stream = NULL;
}
END_TEST

static void rename_bucket(void)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/repos/move", NULL,
		"{\"fromRepo\":\"main/bkt\",\"toRepo\":\"main/moved\",\"type\":\"bucket\"}");
}

START_TEST(a_bucket_with_a_new_name_renames_its_runs)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/s", NULL, "{}");
	follow("/-/events?runs=1&replicas=bkt/r");
	rename_bucket();
	hear("event: run_removed\ndata: {\"bucket\":\"bkt\",\"run\":\"r\"}\n\n");
	hear("event: run\ndata: {\"bucket\":\"moved\",\"run\":\"r\"");
	hear("event: run_removed\ndata: {\"bucket\":\"bkt\",\"run\":\"s\"}\n\n");
	hear("event: run\ndata: {\"bucket\":\"moved\",\"run\":\"s\"");
	hear("event: reset\ndata: {\"reason\":\"run_removed\",\"run\":\"bkt/r\"}\n\n");
	ck_assert_uint_eq(count("event: reset"), 1);
}
END_TEST

START_TEST(a_key_that_cannot_be_told_of_a_new_name_begins_anew_once)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/s", NULL, "{}");
	const char *const root = fixture.token;
	fixture.token = face_fixture_key(&fixture, "main", NULL);
	follow("/-/events?runs=1");
	fixture.token = root;
	rename_bucket();
	hear("event: reset\ndata: {\"reason\":\"bucket_removed\"}\n\n");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/v1/runs/moved/s/settings", NULL, "{\"keep_steps\":9}");
	hear("event: run\ndata: {\"bucket\":\"moved\",\"run\":\"s\"");
	ck_assert_uint_eq(count("event: reset"), 1);
	ck_assert_uint_eq(count("\"bucket\":\"bkt\""), 0);
}
END_TEST

/* Only those that might have read the run may hear its name. */
START_TEST(the_next_owner_of_a_bucket_hears_nothing_of_runs_before)
{
	const char *const root = fixture.token;
	const char *const next = face_fixture_key(&fixture, "next", NULL);
	fixture.token = next;
	follow("/-/events?runs=1");
	fixture.token = root;
	face_fixture_expect(&fixture, 204, METHOD_DELETE, RUN, NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt", NULL, NULL);
	fixture.token = next;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/own", NULL, "{}");
	hear("event: reset\ndata: {\"reason\":\"bucket_removed\"}\n\n");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/v1/runs/bkt/own", NULL, NULL);
	hear("event: run_removed\ndata: {\"bucket\":\"bkt\",\"run\":\"own\"}\n\n");
	ck_assert_uint_eq(count("event: run_removed"), 1);
}
END_TEST

START_TEST(a_reader_that_missed_changes_of_runs_begins_anew)
{
	struct run_feed *const feed = store_run_feed(fixture.store);
	follow("/-/events?runs=1");
	for (int i = 0; i <= RUN_FEED_CHANGES; i++)
		run_feed_note(feed, 1);
	run_feed_show(feed);
	hear("event: reset\ndata: {\"reason\":\"too_far_behind\"}\n\n");
	face_fixture_expect(&fixture, 200, METHOD_PUT, RUN "/settings", NULL, "{\"keep_steps\":9}");
	hear("\"keep_steps\":9");
	ck_assert_uint_eq(count("event: reset"), 1);
}
END_TEST

START_TEST(a_reader_that_missed_removals_begins_anew)
{
	struct replica_table *const table = store_parts(fixture.store)->replicas;
	const struct replica_message idle = {.state = REPLICA_IDLE};
	follow("/-/events?replicas=bkt/r");
	for (int i = 0; i <= REPLICA_REMOVALS_MAX; i++) {
		struct error err = {0};
		bool saved;
		const struct replica_row row = {.run = 1,
			.id = span_text("w"),
			.document = span_text("{\"state\":\"idle\"}"),
			.lease_ms = 60000};
		ck_assert_int_eq(replica_table_put(table, &row, &idle, &saved, &err), 0);
		replica_table_remove(table, 1, row.id);
	}
	hear("event: reset\ndata: {\"reason\":\"too_far_behind\",\"run\":\"bkt/r\"}\n\n");
	put_replica("after", "{\"state\":\"error\"}");
	hear("\"after\"");
	ck_assert_uint_eq(count("event: reset"), 1);
}
END_TEST

Suite *test_live_events_suite(void);
Suite *test_live_events_suite(void)
{
	Suite *const suite = suite_create("live_events");
	TCase *const tests = tcase_create("live_events");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_stream_begins_with_hello_and_tells_only_what_comes_later);
	tcase_add_test(tests, an_event_of_many_replicas_is_whole_and_has_each_once);
	tcase_add_test(tests, a_stop_in_the_middle_of_an_event_leaves_it_readable);
	tcase_add_test(tests, a_bucket_with_a_new_name_renames_its_runs);
	tcase_add_test(tests, a_key_that_cannot_be_told_of_a_new_name_begins_anew_once);
	tcase_add_test(tests, the_next_owner_of_a_bucket_hears_nothing_of_runs_before);
	tcase_add_test(tests, a_reader_that_missed_changes_of_runs_begins_anew);
	tcase_add_test(tests, a_reader_that_missed_removals_begins_anew);
	suite_add_tcase(suite, tests);
	return suite;
}
