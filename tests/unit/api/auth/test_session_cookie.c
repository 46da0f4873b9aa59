/* Cookies as text, and sessions over a clock that the test moves. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/auth/identify.h"
#include "api/auth/keyring.h"
#include "api/auth/session_cookie.h"
#include "storage/core/committer.h"

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HEX          "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define NAME         "deltabucket_session="
#define MINUTE_MS    INT64_C(60000)

static const int64_t start_ms = INT64_C(1770000000000);

static struct face_fixture fixture;
static struct clock_fake clock_now;
static char cookie[512];

/* The body of a sign-in has a secret, right or wrong. */
static void assert_wiped(const struct buffer *body)
{
	ck_assert_ptr_nonnull(body->data);
	for (size_t i = 0; i < body->capacity; i++)
		ck_assert_uint_eq(body->data[i], 0);
}

static void sign_in(void)
{
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 201, METHOD_POST,
		"/-/sessions", HEADERS("X-Deltabucket-Console", "1"),
		"{\"token\":\"root-token-of-the-tests\"}");
	const char *const set = fake_exchange_reply_header(fake, "Set-Cookie");
	ck_assert_ptr_nonnull(set);
	snprintf(cookie, sizeof(cookie), "%.*s", (int)(strchr(set, ';') - set), set);
	assert_wiped(&fake->exchange.small_body);
	fake_exchange_free(fake);
}

static void setup(void)
{
	face_fixture_open(&fixture);
	clock_fake_init(&clock_now, start_ms);
	fixture.context.clock = &clock_now.source;
	fixture.token = NULL;
	sign_in();
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

static int apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

/* A use is written down behind the request. */
static void settle(void)
{
	struct change change = {.apply = apply_nothing};
	struct error err = {0};
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
}

static void expect(int status, int64_t at_ms)
{
	clock_now.now_ms = at_ms;
	face_fixture_expect(&fixture, status, METHOD_GET, "/-/session",
		HEADERS("X-Deltabucket-Console", "1", "Cookie", cookie), NULL);
	settle();
}

START_TEST(a_session_that_is_not_used_ends)
{
	expect(200, start_ms);
	expect(200, start_ms + 30 * MINUTE_MS - 1);
	expect(200, start_ms + 59 * MINUTE_MS);
	expect(401, start_ms + 59 * MINUTE_MS + 30 * MINUTE_MS);
}
END_TEST

START_TEST(a_session_that_is_used_ends_after_a_day)
{
	const int64_t day_ms = 24 * 60 * MINUTE_MS;
	for (int64_t at = 0; at < day_ms; at += 20 * MINUTE_MS)
		expect(200, start_ms + at);
	expect(200, start_ms + day_ms - 1);
	expect(401, start_ms + day_ms);
}
END_TEST

/* A row from the future is damaged, or the clock went back. */
START_TEST(a_session_from_the_future_has_ended)
{
	expect(200, start_ms - 4 * MINUTE_MS);
	expect(401, start_ms - 6 * MINUTE_MS);
}
END_TEST

START_TEST(the_body_of_a_refused_sign_in_is_wiped_too)
{
	static const char *const bodies[] = {"{\"token\":\"wrong-token\"}",
		"{\"key_id\":\"KEY\",\"secret\":\"s\",\"token\":\"t\"}", "{\"secret\": \"not JSON"};
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, i == 0 ? 401 : 400, METHOD_POST, "/-/sessions",
				HEADERS("X-Deltabucket-Console", "1"), bodies[i]);
		assert_wiped(&fake->exchange.small_body);
		fake_exchange_free(fake);
	}
}
END_TEST

START_TEST(a_link_ends_after_five_minutes)
{
	static const int64_t ages[] = {5 * MINUTE_MS - 1, 5 * MINUTE_MS};
	for (size_t i = 0; i < 2; i++) {
		char body[256];
		clock_now.now_ms = start_ms;
		fixture.token = face_fixture_root_token;
		struct fake_exchange *const fake = face_fixture_ask(
			&fixture, 201, METHOD_POST, "/-/session-links", NULL, NULL);
		fixture.token = NULL;
		const char *const code =
			strstr(buffer_text(&fake->body), "#link=") + strlen("#link=");
		snprintf(body, sizeof(body), "{\"link\":\"%.64s\"}", code);
		fake_exchange_free(fake);
		clock_now.now_ms = start_ms + ages[i];
		face_fixture_expect(&fixture, i == 0 ? 201 : 401, METHOD_POST, "/-/sessions",
			HEADERS("X-Deltabucket-Console", "1"), body);
	}
}
END_TEST

/* As a stream of events does: waiting is no use, and it ends with its session. */
START_TEST(a_long_request_ends_with_its_session)
{
	struct error err = {0};
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_GET, "/-/session");
	fake_exchange_add(fake, "X-Deltabucket-Console", "1");
	fake_exchange_add(fake, "Cookie", cookie);
	router_match(&fake->exchange);
	ck_assert_int_eq(identify(&fake->exchange, &err), 0);
	ck_assert_ptr_nonnull(fake->exchange.session);
	clock_now.now_ms = start_ms + 20 * MINUTE_MS;
	ck_assert_int_eq(identify_again(&fake->exchange, &err), 0);
	clock_now.now_ms = start_ms + 30 * MINUTE_MS;
	ck_assert_int_eq(identify_again(&fake->exchange, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNKNOWN_KEY_ID);
	ck_assert_ptr_null(fake->exchange.principal);
	clock_now.now_ms = start_ms;
	ck_assert_int_eq(identify(&fake->exchange, &err), 0);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/-/session",
		HEADERS("X-Deltabucket-Console", "1", "Cookie", cookie), NULL);
	ck_assert_int_eq(identify_again(&fake->exchange, &err), -1);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_key_has_a_bounded_number_of_sessions)
{
	char first[sizeof(cookie)];
	snprintf(first, sizeof(first), "%s", cookie);
	for (int i = 0; i < SESSIONS_OF_KEY_MAX; i++) {
		clock_now.now_ms = start_ms + 1 + i;
		sign_in();
	}
	expect(200, start_ms + MINUTE_MS);
	snprintf(cookie, sizeof(cookie), "%s", first);
	expect(401, start_ms + MINUTE_MS);
}
END_TEST

static const struct {
	const char *header;
	const char *key_id; /* NULL: refused */
	bool is_secure;
} headers[] = {
	{"__Host-" NAME "KEY." HEX, "KEY", true},
	{"__Host-" NAME "KEY." HEX "; " NAME "OTHER." HEX, "KEY", true},
	{"__Host-" NAME "KEY." HEX "; __Host-" NAME "KEY." HEX, NULL, true},
	{NAME "KEY." HEX, NULL, true},
	{"__Host-" NAME "KEY." HEX, NULL, false},
	{"__Host-" NAME "OTHER." HEX "; " NAME "KEY." HEX, "KEY", false},
	{NAME "KEY." HEX, "KEY", false},
	{"a=b; " NAME "KEY." HEX "; c=d", "KEY", false},
	{NAME "a.b%3Bc%22." HEX, "a.b;c\"", false},
	{"a=b, " NAME "KEY." HEX, "KEY", false},
	{NAME "KEY." HEX ", " NAME "KEY." HEX, NULL, false},
	{NAME "KEY." HEX ";" NAME, NULL, false},
	{NAME "." HEX, NULL, false},
	{NAME "KEY." HEX "0", NULL, false},
	{NAME "KEY%." HEX, NULL, false},
	{NAME "KEY" HEX, NULL, false},
	{"x" NAME "KEY." HEX, NULL, false},
	{"", NULL, false},
};

START_TEST(a_header_names_one_session_or_none)
{
	struct session_cookie found;
	const bool is_good = session_cookie_parse(
		span_text(headers[_i].header), headers[_i].is_secure, fixture.arena, &found);
	ck_assert_int_eq(is_good, headers[_i].key_id != NULL);
	if (!is_good)
		return;
	ck_assert(span_equal_text(found.key_id, headers[_i].key_id));
	struct session_cookie again;
	struct buffer printed;
	buffer_init(&printed, 4096);
	session_cookie_print(&found, headers[_i].is_secure, &printed);
	struct span rest = buffer_span(&printed);
	struct span pair = {NULL, 0};
	span_split(&rest, ';', &pair);
	ck_assert(session_cookie_parse(pair, headers[_i].is_secure, fixture.arena, &again));
	ck_assert(span_equal(again.key_id, found.key_id));
	ck_assert_mem_eq(again.bytes, found.bytes, sizeof(found.bytes));
	ck_assert(span_equal_text(rest,
		headers[_i].is_secure ? " Path=/; Max-Age=86400; HttpOnly; SameSite=Strict; Secure"
				      : " Path=/; Max-Age=86400; HttpOnly; SameSite=Strict"));
	buffer_release(&printed);
}
END_TEST

Suite *test_session_cookie_suite(void);
Suite *test_session_cookie_suite(void)
{
	Suite *const suite = suite_create("session_cookie");
	TCase *const tcase = tcase_create("session_cookie");
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_session_that_is_not_used_ends);
	tcase_add_test(tcase, a_session_that_is_used_ends_after_a_day);
	tcase_add_test(tcase, a_session_from_the_future_has_ended);
	tcase_add_test(tcase, the_body_of_a_refused_sign_in_is_wiped_too);
	tcase_add_test(tcase, a_link_ends_after_five_minutes);
	tcase_add_test(tcase, a_long_request_ends_with_its_session);
	tcase_add_test(tcase, a_key_has_a_bounded_number_of_sessions);
	tcase_add_loop_test(
		tcase, a_header_names_one_session_or_none, 0, sizeof(headers) / sizeof(headers[0]));
	suite_add_tcase(suite, tcase);
	return suite;
}
