/* Streams of events through the router, over a real store: what they tell to which callers, where
 * they begin, and how they end. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/hub/event_text.h"
#include "base/encode.h"
#include "storage/core/change_feed.h"

#define EVENTS "/api/buckets/main/bkt/events"

static struct face_fixture fixture;
static struct fake_exchange *stream;

static void setup(void)
{
	face_fixture_open(&fixture);
	stream = NULL;
}

/* A connection ends when nothing waits, so something must happen first. */
static void end(void)
{
	if (stream != NULL && stream->is_waiting && !fixture.stopping)
		face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/bye", NULL, "");
	fake_exchange_free(stream);
	stream = NULL;
}

static void teardown(void)
{
	end();
	face_fixture_close(&fixture);
}

/* Begins a stream and reads its first events. */
static void follow(const char *token, const char *target)
{
	stream = fake_exchange_new(&fixture.context, METHOD_GET, target);
	stream->leaves_body = true;
	if (token != NULL)
		fake_exchange_add(
			stream, "Authorization", arena_format(fixture.arena, "Bearer %s", token));
	const int status = fake_exchange_run(stream, span_text(""));
	ck_assert_msg(status == 200, "%s answered %d", target, status);
	ck_assert_str_eq(stream->exchange.reply.content_type, "text/event-stream");
	fake_exchange_read(stream);
}

/* Reads on until the text has come; it must. */
static void hear(const char *text)
{
	while (strstr(buffer_text(&stream->body), text) == NULL)
		ck_assert_msg(fake_exchange_read(stream), "the stream ended without %s: %s", text,
			buffer_text(&stream->body));
}

static void hear_end(void)
{
	while (fake_exchange_read(stream))
		;
}

static void expect_said(const char *text)
{
	ck_assert_str_eq(buffer_text(&stream->body), text);
}

static void expect_unsaid(const char *text)
{
	ck_assert_msg(strstr(buffer_text(&stream->body), text) == NULL, "%s says %s",
		buffer_text(&stream->body), text);
}

static void put(const char *target, const char *text)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, NULL, text);
}

static void delete (const char *target)
{
	face_fixture_expect(&fixture, 204, METHOD_DELETE, target, NULL, NULL);
}

/* The cursor of the last event of the stream. */
static const char *last_cursor(void)
{
	const char *found = NULL;
	for (const char *at = buffer_text(&stream->body);
		(at = strstr(at, "\"cursor\":\"")) != NULL; at++)
		found = at + strlen("\"cursor\":\"");
	ck_assert_ptr_nonnull(found);
	return arena_text(fixture.arena, span_of(found, (size_t)(strchr(found, '"') - found)));
}

static const char *updated_at(void)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/api/buckets/main/bkt", NULL, NULL);
	const char *const at =
		strstr(buffer_text(&fake->body), "\"updatedAt\":\"") + strlen("\"updatedAt\":\"");
	const char *const text =
		arena_text(fixture.arena, span_of(at, (size_t)(strchr(at, '"') - at)));
	fake_exchange_free(fake);
	return text;
}

static const char *from(const char *parameter, const char *value)
{
	return arena_format(fixture.arena, EVENTS "?%s=%s", parameter, value);
}

START_TEST(changes_come_as_they_happen)
{
	put("/bkt/old", "before");
	follow(fixture.token, EVENTS);
	hear("\n\n");
	expect_said(arena_format(
		fixture.arena, "event: ready\ndata: {\"cursor\":\"%s\"}\n\n", last_cursor()));
	put("/bkt/d/h.txt", "hello");
	hear("\"d/h.txt\",\"op\":\"add\",\"size\":5,\"xetHash\":\"");
	put("/bkt/d/h.txt", "more than hello");
	hear("\"d/h.txt\",\"op\":\"update\",\"size\":15,");
	delete ("/bkt/d/h.txt");
	hear("{\"path\":\"d/h.txt\",\"op\":\"delete\"}");
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/buckets/main/bkt/batch", NULL,
		"{\"type\":\"addFile\",\"path\":\"empty\",\"xetHash\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"mtime\":1700000000123}\n"
		"{\"type\":\"deleteFile\",\"path\":\"old\"}\n");
	hear("\"empty\",\"op\":\"add\",\"size\":0,\"xetHash\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"uploadedAt\":\"20");
	hear("\"mtime\":\"2023-11-14T22:13:20.123Z\"},{\"path\":\"old\",\"op\":\"delete\"}]}\n\n");
}
END_TEST

START_TEST(many_changes_of_a_file_are_one)
{
	follow(fixture.token, EVENTS);
	hear("ready");
	const char *const cursor = last_cursor();
	put("/bkt/a", "1");
	put("/bkt/a", "22");
	put("/bkt/gone", "3");
	delete ("/bkt/gone");
	put("/bkt/z", "last");
	hear("\"z\"");
	end();
	follow(fixture.token, from("cursor", cursor));
	hear("ready");
	expect_unsaid("gone");
	ck_assert_ptr_nonnull(strstr(buffer_text(&stream->body),
		"\"changes\":[{\"path\":\"a\",\"op\":\"add\",\"size\":2,"));
	ck_assert_ptr_null(strstr(strstr(buffer_text(&stream->body), "\"a\"") + 1, "\"a\""));
}
END_TEST

START_TEST(what_was_missed_comes_before_ready)
{
	put("/bkt/a", "1");
	const char *const since = updated_at();
	follow(fixture.token, EVENTS);
	const char *const cursor = last_cursor();
	end();
	put("/bkt/b", "2");
	follow(fixture.token, from("cursor", cursor));
	ck_assert_int_eq(strncmp(buffer_text(&stream->body), "event: changes\n", 15), 0);
	hear("event: ready");
	expect_unsaid("\"a\"");
	end();
	follow(fixture.token, from("since", since));
	ck_assert_int_eq(strncmp(buffer_text(&stream->body), "event: changes\n", 15), 0);
	hear("\"b\",\"op\":\"add\"");
	hear("event: ready");
	expect_unsaid("\"a\"");
}
END_TEST

START_TEST(nothing_newer_is_ready_at_once)
{
	const char *const made = updated_at();
	follow(fixture.token, from("since", made));
	ck_assert_int_eq(strncmp(buffer_text(&stream->body), "event: ready\n", 13), 0);
	end();
	for (int i = 0; i < 5; i++) {
		const char *const before = updated_at();
		put("/bkt/a", "1");
		ck_assert_str_gt(updated_at(), before);
		follow(fixture.token, from("since", updated_at()));
		ck_assert_int_eq(strncmp(buffer_text(&stream->body), "event: ready\n", 13), 0);
		end();
	}
	follow(fixture.token, from("since", "2999-01-01T00:00:00.000Z"));
	hear("ready");
}
END_TEST

START_TEST(what_cannot_be_told_is_a_reset)
{
	static const char *const lost[] = {"since=2001-01-01T00:00:00.000Z", "cursor=1-1-1-1",
		"cursor=ffffffffffffffff-ffffffffffffffff-0-0",
		/* a cursor of an earlier version */
		"cursor=AbC_9",
		"cursor=ffffffffffffffff-ffffffffffffffff-ffffffffffffffff-ffffffffffffffff"};
	put("/bkt/a", "1");
	follow(fixture.token, arena_format(fixture.arena, EVENTS "?%s", lost[_i]));
	expect_said("event: reset\ndata: {\"reason\":\"cursor_too_old\"}\n\n");
	ck_assert(!fake_exchange_read(stream));
}
END_TEST

START_TEST(a_cursor_of_an_earlier_life_is_good_where_nothing_was_missed)
{
	struct event_cursor cursor;
	char text[EVENT_CURSOR_BYTES];
	put("/bkt/a", "1");
	follow(fixture.token, EVENTS);
	ck_assert(event_cursor_parse(span_text(last_cursor()), fixture.context.token_key, &cursor));
	end();
	cursor.life ^= 1;
	put("/bkt/b", "2");
	event_cursor_print(&cursor, fixture.context.token_key, text);
	follow(fixture.token, from("cursor", text));
	hear("ready");
	hear("\"b\"");
	expect_unsaid("\"a\"");
	end();
	cursor.bucket += 1; /* another bucket had the name */
	event_cursor_print(&cursor, fixture.context.token_key, text);
	follow(fixture.token, from("cursor", text));
	hear("reset");
}
END_TEST

/* The cursor counts changes of other buckets, but readers can see neither them nor that there were
 * any. */
START_TEST(a_cursor_tells_nothing_of_other_buckets)
{
	struct event_cursor first;
	struct event_cursor second;
	uint8_t bytes[EVENT_CURSOR_BYTES];
	size_t len;
	put("/bkt/a", "1");
	follow(fixture.token, EVENTS);
	const char *const quiet = last_cursor();
	end();
	follow(fixture.token, EVENTS);
	const char *const still = last_cursor();
	end();
	ck_assert_str_ne(quiet, still);
	ck_assert_uint_eq(strlen(quiet), strlen(still));
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/other", NULL, NULL);
	put("/other/b", "2");
	follow(fixture.token, EVENTS);
	const char *const busy = last_cursor();
	ck_assert_uint_eq(strlen(quiet), strlen(busy));
	ck_assert(event_cursor_parse(span_text(quiet), fixture.context.token_key, &first));
	ck_assert(event_cursor_parse(span_text(busy), fixture.context.token_key, &second));
	ck_assert_uint_gt(second.position.number, first.position.number);
	ck_assert(decode_base64_url(span_text(busy), bytes, sizeof(bytes), &len));
	ck_assert_ptr_null(memmem(bytes, len, &second.life, sizeof(second.life)));
	ck_assert_ptr_null(memmem(bytes, len, &second.position.moment_ms, 6));
	/* the front of any small number */
	ck_assert_ptr_null(memmem(bytes, len, (const uint8_t[6]){0}, 6));
}
END_TEST

static const char *const malformed[] = {"cursor=", "cursor=a+b", "cursor=%00", "cursor={}",
	"cursor=1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
	"since=", "since=yesterday", "since=1700000000"};

START_TEST(malformed_positions_are_refused)
{
	face_fixture_expect(&fixture, 400, METHOD_GET,
		arena_format(fixture.arena, EVENTS "?%s", malformed[_i]), NULL, NULL);
}
END_TEST

/* Changes that the caller is not told of still make the stream look at the clock. */
START_TEST(silence_is_broken_by_pings)
{
	struct clock_fake clock;
	clock_fake_init(&clock, 1000000);
	fixture.context.clock = &clock.source;
	follow(fixture.token, EVENTS);
	hear("ready");
	clock.now_ms += 29000;
	put("/bkt/a//b", "1");
	put("/bkt/plain", "2");
	hear("plain");
	expect_unsaid(": ping");
	clock.now_ms += 30000;
	put("/bkt/a//b", "3");
	hear("\n\n: ping\n\n");
	end();
	fixture.context.clock = clock_system();
}
END_TEST

START_TEST(names_that_are_no_paths_are_left_out)
{
	follow(fixture.token, EVENTS);
	put("/bkt/a//b", "1");
	put("/bkt/./x", "2");
	put("/bkt/plain", "3");
	hear("\"plain\"");
	expect_unsaid("a//b");
	expect_unsaid("./x");
}
END_TEST

START_TEST(who_may_not_know_of_it_hears_nothing)
{
	const char *const owner = face_fixture_key(&fixture, "team", NULL);
	const char *const stranger = face_fixture_key(&fixture, "other", NULL);
	fixture.token = owner;
	face_fixture_expect(
		&fixture, 200, METHOD_POST, "/api/buckets/team/b", NULL, "{\"private\":true}");
	fixture.token = stranger;
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 404, METHOD_GET, "/api/buckets/team/b/events", NULL, NULL);
	face_fixture_assert_header(fake, "X-Error-Code", "RepoNotFound");
	fake_exchange_free(fake);
	fixture.token = NULL;
	face_fixture_expect(&fixture, 401, METHOD_GET, "/api/buckets/team/b/events", NULL, NULL);
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 404, METHOD_GET, "/api/buckets/main/none/events", NULL, NULL);
	fixture.token = owner;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/api/buckets/team/b/settings", NULL,
		"{\"private\":false}");
	follow(NULL, "/api/buckets/team/b/events");
	hear("ready");
	put("/team--b/k", "1");
	hear("\"k\",\"op\":\"add\"");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/api/buckets/team/b/settings", NULL,
		"{\"private\":true}");
	put("/team--b/secret", "2");
	hear_end();
	expect_unsaid("secret");
	expect_unsaid("reset");
}
END_TEST

START_TEST(a_limited_key_hears_of_its_prefix)
{
	const struct grant grant = {
		span_text("bkt"), span_text("mine/"), PERMISSION_LIST | PERMISSION_READ};
	follow(face_fixture_key(&fixture, "main", &grant), EVENTS);
	hear("ready");
	put("/bkt/other", "1");
	put("/bkt/mine/a", "2");
	hear("\"mine/a\"");
	delete ("/bkt/other");
	delete ("/bkt/mine/a");
	hear("\"mine/a\",\"op\":\"delete\"");
	expect_unsaid("other");
}
END_TEST

START_TEST(a_revoked_key_hears_no_more)
{
	const struct keyring_new_key key = {.namespace = "main"};
	struct keyring_made_key made;
	struct error err = {0};
	ck_assert_int_eq(keyring_add(fixture.keyring, &key, fixture.arena, &made, &err), 0);
	follow(made.token, EVENTS);
	hear("ready");
	put("/bkt/a", "1");
	hear("\"a\"");
	ck_assert_int_eq(keyring_revoke(fixture.keyring, span_text(made.id), &err), 0);
	put("/bkt/b", "2");
	hear_end();
	expect_unsaid("\"b\"");
}
END_TEST

START_TEST(a_bucket_that_is_another_ends_it)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/buckets/main/short", NULL, "{}");
	follow(fixture.token, "/api/buckets/main/short/events");
	hear("ready");
	put("/short/a", "1");
	face_fixture_expect(&fixture, 200, METHOD_DELETE, "/api/buckets/main/short", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/api/buckets/main/short", NULL, "{}");
	put("/short/b", "2");
	hear_end();
	expect_unsaid("\"b\"");
}
END_TEST

START_TEST(a_server_that_stops_sends_them_elsewhere)
{
	struct event_cursor ready;
	struct event_cursor last;
	follow(fixture.token, EVENTS);
	hear("ready");
	const char *const cursor = last_cursor();
	fixture.stopping = true;
	step_watch_wake_all(store_step_watch(fixture.store));
	hear_end();
	hear("event: reconnect\ndata: {\"cursor\":\"");
	ck_assert(event_cursor_parse(span_text(cursor), fixture.context.token_key, &ready));
	ck_assert(event_cursor_parse(span_text(last_cursor()), fixture.context.token_key, &last));
	ck_assert_mem_eq(&last, &ready, sizeof(last));
}
END_TEST

static void share_streams(uint64_t limit)
{
	const struct share_options options = {.limit = limit};
	fixture.context.shares.streams = share_pool_new(&options);
}

static void free_streams(void)
{
	end();
	share_pool_free(fixture.context.shares.streams);
	fixture.context.shares.streams = NULL;
}

START_TEST(streams_are_not_without_number)
{
	share_streams(1);
	follow(face_fixture_key(&fixture, "main", NULL), EVENTS);
	fixture.token = face_fixture_key(&fixture, "main", NULL);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 429, METHOD_GET, EVENTS, NULL, NULL);
	ck_assert_ptr_nonnull(fake_exchange_reply_header(fake, "Retry-After"));
	fake_exchange_free(fake);
	end();
	follow(fixture.token, EVENTS);
	free_streams();
}
END_TEST

START_TEST(one_key_does_not_keep_all_streams_from_another)
{
	const char *const one = face_fixture_key(&fixture, "main", NULL);
	const char *const other = face_fixture_key(&fixture, "main", NULL);
	share_streams(2);
	follow(one, EVENTS);
	hear("ready");
	struct fake_exchange *const first = stream;
	follow(one, EVENTS);
	struct fake_exchange *const second = stream;
	follow(other, EVENTS);
	hear("ready");
	struct fake_exchange *const others = stream;
	stream = first;
	hear_end();
	hear("event: reconnect\ndata: {\"cursor\":\"");
	end();
	stream = second;
	end();
	stream = others;
	free_streams();
}
END_TEST

/* More changes than one event takes, read in small pieces. */
START_TEST(long_replays_come_in_several_events)
{
	const char *const since = updated_at();
	for (int i = 0; i < 450; i++)
		put(arena_format(fixture.arena, "/bkt/f%03d", i), "x");
	follow(fixture.token, from("since", since));
	hear("ready");
	size_t events = 0;
	for (const char *at = buffer_text(&stream->body);
		(at = strstr(at, "event: changes")) != NULL; at++)
		events++;
	ck_assert_uint_eq(events, 3);
	for (int i = 0; i < 450; i++)
		hear(arena_format(fixture.arena, "\"f%03d\",\"op\":\"add\"", i));
}
END_TEST

Suite *test_hub_events_suite(void);
Suite *test_hub_events_suite(void)
{
	Suite *const suite = suite_create("hub_events");
	TCase *const tests = tcase_create("events");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, changes_come_as_they_happen);
	tcase_add_test(tests, many_changes_of_a_file_are_one);
	tcase_add_test(tests, what_was_missed_comes_before_ready);
	tcase_add_test(tests, nothing_newer_is_ready_at_once);
	tcase_add_loop_test(tests, what_cannot_be_told_is_a_reset, 0, 5);
	tcase_add_test(tests, a_cursor_of_an_earlier_life_is_good_where_nothing_was_missed);
	tcase_add_test(tests, a_cursor_tells_nothing_of_other_buckets);
	tcase_add_loop_test(tests, malformed_positions_are_refused, 0,
		sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tests, silence_is_broken_by_pings);
	tcase_add_test(tests, names_that_are_no_paths_are_left_out);
	tcase_add_test(tests, who_may_not_know_of_it_hears_nothing);
	tcase_add_test(tests, a_limited_key_hears_of_its_prefix);
	tcase_add_test(tests, a_revoked_key_hears_no_more);
	tcase_add_test(tests, a_bucket_that_is_another_ends_it);
	tcase_add_test(tests, a_server_that_stops_sends_them_elsewhere);
	tcase_add_test(tests, streams_are_not_without_number);
	tcase_add_test(tests, one_key_does_not_keep_all_streams_from_another);
	tcase_add_test(tests, long_replays_come_in_several_events);
	suite_add_tcase(suite, tests);
	return suite;
}
