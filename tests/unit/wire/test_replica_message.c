#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/wire/message_text.h"
#include "wire/pin_message.h"
#include "wire/replica_message.h"

static const char full_replica[] =
	"{\"id\":\"w:1\",\"state\":\"error\",\"step\":11,\"digest\":\"" DIGEST_A
	"\",\"wanted\":13,\"error\":\"no \\\"room\\\"\","
	"\"tensors\":\"*.experts\",\"host\":\"node\",\"pause_ms\":41,\"since\":\"2026-01-02T03:04:05.000Z\",\"updated\":\"2026-01-02T03:04:05.000Z\","
	"\"expired\":true,\"lease_s\":120,\"head\":13,\"staleness\":{\"steps\":2,\"seconds\":75}}";
static const char new_replica[] =
	"{\"id\":\"w\",\"state\":\"idle\",\"step\":null,\"wanted\":null,\"since\":\"2026-01-02T03:04:05.000Z\","
	"\"updated\":\"2026-01-02T03:04:05.000Z\",\"expired\":false,\"lease_s\":30,\"head\":null,\"staleness\":null}";
static const char full_pin[] =
	"{\"name\":\"best\",\"step\":12,\"created\":\"2026-01-02T03:04:05.000Z\",\"expires\":\"2026-01-02T03:04:06.000Z\"}";

static struct arena *arena;
static struct error err;
static struct buffer out;

static void set_up(void)
{
	arena = arena_new(4 * 1024 * 1024);
	buffer_init(&out, 1000000);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
	buffer_release(&out);
}

START_TEST(a_replica_goes_there_and_back)
{
	static const char *const texts[] = {full_replica, new_replica};
	struct replica_message replica;
	ck_assert_msg(replica_message_parse(span_text(texts[_i]), arena, &replica, &err) == 0, "%s",
		err.text);
	ck_assert_int_eq(replica.has_step, _i == 0);
	ck_assert_int_eq(replica.has_staleness, _i == 0);
	ck_assert(replica.has_pause == (_i == 0) && replica.pause_ms == (_i == 0 ? 41 : 0));
	replica_message_print(&replica, &out);
	ck_assert_str_eq(buffer_text(&out), texts[_i]);
}
END_TEST

START_TEST(a_request_has_only_what_a_worker_says)
{
	struct replica_message replica;
	ck_assert_int_eq(replica_message_parse(span_text(full_replica), arena, &replica, &err), 0);
	replica_message_print_request(&replica, &out);
	ck_assert_str_eq(buffer_text(&out),
		"{\"state\":\"error\",\"step\":11,\"digest\":\"" DIGEST_A
		"\",\"wanted\":13,\"error\":\"no \\\"room\\\"\","
		"\"tensors\":\"*.experts\",\"host\":\"node\",\"pause_ms\":41}");
}
END_TEST

#define CHUNK "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WANT(chunk, size, offset, length)                                   \
	"{\"chunk\":\"" chunk "\",\"size\":" size ",\"digest\":\"" DIGEST_A \
	"\",\"offset\":" offset ",\"length\":" length "}"
static const char with_wants[] =
	"{\"id\":\"w\",\"state\":\"idle\",\"step\":null,\"wanted\":null,\"since\":\"2026-01-02T03:04:05.000Z\","
	"\"updated\":\"2026-01-02T03:04:05.000Z\",\"expired\":false,\"lease_s\":2296,\"report_s\":574,\"passing_s\":573,\"head\":null,\"staleness\":null,"
	"\"wants\":[" WANT(CHUNK, "9", "4", "5") "," WANT(CHUNK, "9", "0", "9") "]}";

START_TEST(wants_go_there_and_back)
{
	struct replica_message replica;
	ck_assert_msg(replica_message_parse(span_text(with_wants), arena, &replica, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(replica.want_count, 2);
	ck_assert_uint_eq(replica.wants[0].offset, 4);
	ck_assert(replica.report_s == 574 && replica.passing_s == 573);
	replica_message_print(&replica, &out);
	ck_assert_str_eq(buffer_text(&out), with_wants);
}
END_TEST

/* A range must lie in its file, whatever the numbers are. */
START_TEST(wants_that_make_no_sense_are_left_out)
{
	static const char *const bad[] = {WANT(CHUNK, "9", "5", "5"), WANT(CHUNK, "9", "0", "10"),
		WANT(CHUNK, "9", "9223372036854775807", "1"),
		WANT(CHUNK, "9", "2", "9223372036854775807"), WANT("0011", "9", "4", "5"),
		WANT(CHUNK, "-9", "4", "5"), "7", "{}"};
	struct replica_message replica;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *const text =
			message_text_replace(with_wants, WANT(CHUNK, "9", "4", "5"), bad[i]);
		ck_assert_int_eq(replica_message_parse(span_text(text), arena, &replica, &err), 0);
		ck_assert_msg(
			replica.want_count == 1 && replica.wants[0].length == 9, "%s", bad[i]);
		free(text);
	}
}
END_TEST

START_TEST(too_many_wants_are_left_out)
{
	struct replica_message replica;
	buffer_add_text(&out, "{\"state\":\"idle\",\"wants\":[" WANT(CHUNK, "9", "4", "5"));
	for (int i = 0; i < 3 * REPLICA_WANTS_MAX; i++)
		buffer_add_text(&out, "," WANT(CHUNK, "9", "4", "5"));
	buffer_add_text(&out, "]}");
	ck_assert_int_eq(replica_message_parse(buffer_span(&out), arena, &replica, &err), 0);
	ck_assert_uint_eq(replica.want_count, REPLICA_WANTS_MAX);
}
END_TEST

static const struct {
	const char *old, *with;
} bad_rows[] = {
	{"\"state\":\"error\",", ""},
	{"\"error\",", "\"broken\","},
	{"\"step\":11", "\"step\":\"11\""},
	{"\"step\":11,", ""},
	{DIGEST_A, "md5"},
	{"\"wanted\":13", "\"wanted\":-1"},
	{"\"host\":\"node\"", "\"host\":7"},
	{"true", "1"},
	{"\"steps\":2,", ""},
	{"\"lease_s\":120", "\"lease_s\":1.5"},
	{"\"lease_s\":120", "\"report_s\":\"soon\""},
	{"\"lease_s\":120", "\"passing_s\":-1"},
	{"2026-01-02", "yesterday"},
};

START_TEST(bad_replicas_are_refused)
{
	struct replica_message replica;
	char *const text = message_text_replace(full_replica, bad_rows[_i].old, bad_rows[_i].with);
	ck_assert_msg(replica_message_parse(span_text(text), arena, &replica, &err) == -1,
		"taken: %s", text);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

START_TEST(a_list_goes_there_and_back)
{
	struct replica_list_message list = {.count = 2,
		.next = span_text("w"),
		.lease_s = 120,
		.has_head = true,
		.head = 13,
		.rollback = {.is_on = true, .step = 7, .created_ms = INT64_C(1767323045000)},
		.counts = {.states = {1, 2, 3, 4, 5},
			.expired = 6,
			.has_oldest = true,
			.oldest = 9,
			.without_step = 3,
			.has_report = true,
			.oldest_report_s = 29},
		.report_s = 30};
	struct replica_list_message read;
	list.replicas = arena_take_array(arena, 2, sizeof(*list.replicas));
	ck_assert_int_eq(
		replica_message_parse(span_text(full_replica), arena, &list.replicas[0], &err), 0);
	ck_assert_int_eq(
		replica_message_parse(span_text(new_replica), arena, &list.replicas[1], &err), 0);
	replica_list_message_print(&list, &out);
	ck_assert_msg(replica_list_message_parse(buffer_span(&out), arena, &read, &err) == 0, "%s",
		err.text);
	ck_assert(read.count == 2 && read.head == 13 && read.counts.oldest == 9 &&
		read.counts.expired == 6 && read.counts.without_step == 3 &&
		read.counts.states[REPLICA_ERROR] == 5);
	ck_assert(
		read.report_s == 30 && read.counts.has_report && read.counts.oldest_report_s == 29);
	ck_assert(read.rollback.is_on && read.rollback.step == 7 &&
		read.rollback.created_ms == INT64_C(1767323045000));
	ck_assert(span_equal_text(read.next, "w") && span_equal_text(read.replicas[1].id, "w") &&
		read.replicas[0].behind_s == 75);
}
END_TEST

static const struct {
	const char *id;
	bool good;
} ids[] = {{"w", true}, {"Node-7:0_a.b", true}, {"", false}, {".w", false}, {"-w", false},
	{"a b", false}, {"a/b", false}, {"ä", false}};

START_TEST(ids_are_checked)
{
	ck_assert_int_eq(
		replica_check_id("An id", span_text(ids[_i].id), &err), ids[_i].good ? 0 : -1);
}
END_TEST

START_TEST(a_rollback_names_a_step)
{
	struct rollback_message rollback;
	ck_assert_int_eq(rollback_message_parse(span_text("{\"step\":12}"), &rollback, &err), 0);
	ck_assert(rollback.is_on && rollback.step == 12 && rollback.created_ms == 0);
	static const char *const bad[] = {
		"", "{}", "[]", "12", "{\"step\":\"12\"}", "{\"step\":-1}", "{\"step\":null}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(rollback_message_parse(span_text(bad[i]), &rollback, &err) == -1,
			"taken: %s", bad[i]);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
	}
}
END_TEST

START_TEST(a_pin_goes_there_and_back)
{
	struct pin_message pin;
	struct pin_message *pins;
	size_t count;
	ck_assert_msg(
		pin_message_parse(span_text(full_pin), arena, &pin, &err) == 0, "%s", err.text);
	ck_assert(pin.step == 12 && pin.ttl_s == 0 && pin.expires_ms == pin.created_ms + 1000);
	pin_message_print(&pin, &out);
	ck_assert_str_eq(buffer_text(&out), full_pin);
	buffer_reset(&out);
	pin_list_print(&pin, 1, &out);
	ck_assert_int_eq(pin_list_parse(buffer_span(&out), arena, &pins, &count, &err), 0);
	ck_assert(count == 1 && span_equal_text(pins[0].name, "best"));
	ck_assert_int_eq(
		pin_message_parse(span_text("{\"step\":1,\"ttl_s\":60}"), arena, &pin, &err), 0);
	ck_assert_uint_eq(pin.ttl_s, 60);
	ck_assert_int_eq(pin_message_parse(span_text("{\"ttl_s\":60}"), arena, &pin, &err), -1);
	ck_assert_int_eq(pin_message_parse(
				 span_text("{\"step\":1,\"ttl_s\":9999999999}"), arena, &pin, &err),
		-1);
}
END_TEST

Suite *test_replica_message_suite(void);
Suite *test_replica_message_suite(void)
{
	Suite *const suite = suite_create("replica_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, a_replica_goes_there_and_back, 0, 2);
	tcase_add_test(tc, a_request_has_only_what_a_worker_says);
	tcase_add_loop_test(
		tc, bad_replicas_are_refused, 0, sizeof(bad_rows) / sizeof(bad_rows[0]));
	tcase_add_test(tc, wants_go_there_and_back);
	tcase_add_test(tc, wants_that_make_no_sense_are_left_out);
	tcase_add_test(tc, too_many_wants_are_left_out);
	tcase_add_test(tc, a_list_goes_there_and_back);
	tcase_add_loop_test(tc, ids_are_checked, 0, sizeof(ids) / sizeof(ids[0]));
	tcase_add_test(tc, a_rollback_names_a_step);
	tcase_add_test(tc, a_pin_goes_there_and_back);
	suite_add_tcase(suite, tc);
	return suite;
}
