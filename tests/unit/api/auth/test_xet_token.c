#include "api/auth/xet_token.h"

#include <string.h>

#include "api/auth/keyring.h"
#include "api/exchange/base_url.h"
#include "base/encode.h"
#include "base/little_endian.h"
#include "storage/buckets/bucket.h"
#include "tests/unit/api/face_fixture.h"

struct asked {
	struct face_fixture fixture;
	struct fake_exchange *fake;
	struct bucket bucket;
};

static void open_fixture(struct asked *asked)
{
	struct error err = {0};
	face_fixture_open(&asked->fixture);
	memset(asked->fixture.context.token_key, 7, sizeof(asked->fixture.context.token_key));
	asked->fake = fake_exchange_new(&asked->fixture.context, METHOD_GET, "/xet/v1/anything");
	ck_assert_int_eq(bucket_find(asked->fixture.store, bucket_named(span_text("bkt")),
				 asked->fixture.arena, &asked->bucket, &err),
		0);
}

static void close_fixture(struct asked *asked)
{
	fake_exchange_free(asked->fake);
	face_fixture_close(&asked->fixture);
}

static const char *print(struct asked *asked, const char *key_id, int64_t seconds)
{
	const int64_t now_ms = asked->fixture.context.clock->wall_ms(asked->fixture.context.clock);
	const struct xet_token token = {.bucket_id = asked->bucket.id,
		.key_id = span_text(key_id),
		.is_write = true,
		.expires_s = now_ms / 1000 + seconds};
	return xet_token_print(&asked->fake->exchange, &token);
}

START_TEST(a_token_speaks_for_its_key_and_bucket)
{
	struct asked asked;
	struct error err = {0};
	open_fixture(&asked);
	struct exchange *const exchange = &asked.fake->exchange;
	asked.fixture.token = face_fixture_key(&asked.fixture, "team", NULL);
	const struct principal *const principal = keyring_find_token(
		asked.fixture.keyring, span_text(asked.fixture.token), asked.fixture.arena);
	const char *const text =
		print(&asked, arena_text(asked.fixture.arena, principal->key_id), 60);
	ck_assert_int_eq(xet_token_identify(exchange, span_text(text), &err), 0);
	ck_assert(
		span_equal_text(exchange->transfer->bucket, "bkt") && exchange->transfer->is_write);
	ck_assert(span_equal_text(exchange->transfer->account, "team") &&
		span_equal(exchange->principal->key_id, principal->key_id));
	close_fixture(&asked);
}
END_TEST

START_TEST(what_is_over_or_revoked_or_gone_is_refused)
{
	struct asked asked;
	struct error err = {0};
	open_fixture(&asked);
	struct exchange *const exchange = &asked.fake->exchange;
	ck_assert_int_ne(xet_token_identify(exchange, span_text(print(&asked, "", -1)), &err), 0);
	ck_assert_int_eq(err.kind, ERROR_UNKNOWN_KEY_ID);
	ck_assert_int_ne(
		xet_token_identify(exchange, span_text(print(&asked, "nobody", 60)), &err), 0);
	ck_assert_int_eq(err.kind, ERROR_UNKNOWN_KEY_ID);
	ck_assert_int_eq(xet_token_identify(exchange, span_text(print(&asked, "", 60)), &err), 0);
	asked.bucket.id += 1;
	ck_assert_int_ne(xet_token_identify(exchange, span_text(print(&asked, "", 60)), &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	close_fixture(&asked);
}
END_TEST

START_TEST(nothing_of_a_token_can_be_read)
{
	struct asked asked;
	uint8_t bytes[512];
	uint8_t number[8];
	size_t len;
	open_fixture(&asked);
	const char *const text = print(&asked, "KEY", 60);
	little_endian_put(number, (uint64_t)asked.bucket.id, sizeof(number));
	ck_assert(decode_base64(span_text(text + strlen("xet_")), bytes, sizeof(bytes), &len));
	ck_assert_ptr_null(memmem(bytes, len, number, sizeof(number)));
	ck_assert_ptr_null(memmem(bytes, len, "KEY", 3));
	close_fixture(&asked);
}
END_TEST

START_TEST(no_byte_of_a_token_can_be_changed)
{
	struct asked asked;
	struct xet_token out;
	open_fixture(&asked);
	struct arena *const arena = asked.fixture.arena;
	const uint8_t *const key = asked.fixture.context.token_key;
	const char *const text = print(&asked, "KEY", 60);
	ck_assert(xet_token_parse(arena, key, span_text(text), &out) &&
		span_equal_text(out.key_id, "KEY"));
	for (size_t i = 0; i < strlen(text); i++) {
		char *const changed = arena_text(arena, span_text(text));
		changed[i] = changed[i] == 'A' ? 'Q' : 'A';
		ck_assert_msg(!xet_token_parse(arena, key, span_text(changed), &out), "at %zu", i);
		ck_assert(!xet_token_parse(arena, key, span_of((const uint8_t *)text, i), &out));
	}
	close_fixture(&asked);
}
END_TEST

START_TEST(tokens_open_only_the_face_they_are_for)
{
	struct asked asked;
	open_fixture(&asked);
	asked.fixture.token = print(&asked, "", 60);
	face_fixture_expect(&asked.fixture, 401, METHOD_GET, "/api/buckets/main/bkt", NULL, "");
	face_fixture_expect(&asked.fixture, 403, METHOD_GET, "/bkt?list-type=2", NULL, "");
	face_fixture_expect(&asked.fixture, 404, METHOD_GET, "/xet/v1/nothing", NULL, "");
	asked.fixture.token = "xet_nonsense";
	face_fixture_expect(&asked.fixture, 401, METHOD_GET, "/xet/v1/nothing", NULL, "");
	asked.fixture.token = arena_format(asked.fixture.arena, "hf_%s", face_fixture_root_token);
	face_fixture_expect(&asked.fixture, 200, METHOD_GET, "/bkt?list-type=2", NULL, "");
	close_fixture(&asked);
}
END_TEST

static const struct {
	const char *host;
	const char *proto;
	const char *url;
} hosts[] = {
	{"models.example.org:9000", "", "http://models.example.org:9000"},
	{"[::1]:9000", "", "http://[::1]:9000"},
	{"evil\"; rel=\"x", "", "http://localhost"},
	{"a/b", "", "http://localhost"},
	{"", "", "http://localhost"},
	{"models.example.org", "https", "https://models.example.org"},
	{"a/b", "https", "https://localhost"},
	{"models.example.org", "http", "http://models.example.org"},
	{"models.example.org", "ftp", "http://models.example.org"},
};

START_TEST(the_base_of_urls_is_what_the_client_called)
{
	struct api_context context = {.clock = clock_system()};
	struct fake_exchange *fake = fake_exchange_new(&context, METHOD_GET, "/");
	fake_exchange_add(fake, "Host", hosts[_i].host);
	if (hosts[_i].proto[0] != '\0')
		fake_exchange_add(fake, "X-Forwarded-Proto", hosts[_i].proto);
	ck_assert_str_eq(base_url(&fake->exchange), hosts[_i].url);
	context.public_url = "https://bucket.example.org";
	ck_assert_str_eq(base_url(&fake->exchange), "https://bucket.example.org");
	fake_exchange_free(fake);
}
END_TEST

Suite *test_xet_token_suite(void);
Suite *test_xet_token_suite(void)
{
	Suite *const suite = suite_create("xet_token");
	TCase *const cases = tcase_create("all");
	tcase_add_test(cases, a_token_speaks_for_its_key_and_bucket);
	tcase_add_test(cases, what_is_over_or_revoked_or_gone_is_refused);
	tcase_add_test(cases, nothing_of_a_token_can_be_read);
	tcase_add_test(cases, no_byte_of_a_token_can_be_changed);
	tcase_add_test(cases, tokens_open_only_the_face_they_are_for);
	tcase_add_loop_test(cases, the_base_of_urls_is_what_the_client_called, 0,
		(int)(sizeof(hosts) / sizeof(hosts[0])));
	suite_add_tcase(suite, cases);
	return suite;
}
