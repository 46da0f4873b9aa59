/* URLs of step objects: with their content in the query, and signed for all. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/auth/shared_url.h"
#include "api/route/router.h"
#include "base/digest/xxh3.h"
#include "tests/unit/api/face_fixture.h"
#include "wire/step_message.h"

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define RUN          "/v1/runs/bkt/r"
#define OBJECT       RUN "/steps/0/objects/anchor/model.safetensors"

enum { ANCHOR_BYTES = 8 + 56 + 4, DIGEST_CHARACTERS = 32 };

/* 20 minutes past a full hour. */
static const int64_t begin_ms = INT64_C(1800001200000);
static const int64_t hour_ms = INT64_C(3600000);

static struct face_fixture fixture;
static struct clock_fake fake_clock;
static char digest[DIGEST_CHARACTERS + 1]; /* of the anchor of step 0 */

static void make_anchor(char value, char out[ANCHOR_BYTES])
{
	static const char header[56 + 1] =
		"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
	memset(out, 0, 8);
	out[0] = 56;
	memcpy(out + 8, header, 56);
	memset(out + 64, value, 4);
}

static void digest_of_model(const char *anchor, char out[DIGEST128_TEXT_BYTES])
{
	struct buffer text;
	const struct digest128 tensor = xxh3_128(span_of(anchor + 64, 4));
	buffer_init(&text, 64);
	buffer_add(&text,
		"w\0F32\0"
		"1\0",
		8);
	buffer_add(&text, tensor.bytes, sizeof(tensor.bytes));
	const struct digest128 whole = xxh3_128(buffer_span(&text));
	buffer_release(&text);
	digest128_format(&whole, out);
}

static void put(const char *target, struct span bytes)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_PUT, target);
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	ck_assert_int_eq(fake_exchange_run(fake, bytes), 200);
	fake_exchange_free(fake);
}

/* Opens a run and publishes step 0, an anchor with one tensor of four such bytes. Returns the reply
 * to the publish; in the arena. */
static const char *publish(const char *bucket, const char *run, char value)
{
	char anchor[ANCHOR_BYTES];
	char of_model[DIGEST128_TEXT_BYTES];
	char of_file[DIGEST128_TEXT_BYTES];
	make_anchor(value, anchor);
	digest_of_model(anchor, of_model);
	const struct digest128 file = xxh3_128(span_of(anchor, sizeof(anchor)));
	digest128_format(&file, of_file);
	put(arena_format(fixture.arena, "/%s/%s/m", bucket, run), span_of(anchor, sizeof(anchor)));
	const char *const base = arena_format(fixture.arena, "/v1/runs/%s/%s", bucket, run);
	face_fixture_expect(&fixture, 200, METHOD_POST, base, NULL, NULL);
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 201, METHOD_PUT,
		arena_format(fixture.arena, "%s/steps/0", base), NULL,
		arena_format(fixture.arena,
			"{\"step\":0,\"epoch\":1,\"digest\":\"%s\","
			"\"files\":[{\"path\":\"model.safetensors\",\"size\":%d,\"digest\":\"%s\"}],"
			"\"forms\":[{\"kind\":\"anchor\",\"format\":\"full\",\"objects\":["
			"{\"name\":\"model.safetensors\",\"key\":\"%s/m\",\"size\":%d,\"digest\":\"%s\"}]}]}",
			of_model, ANCHOR_BYTES, of_file, run, ANCHOR_BYTES, of_file));
	const char *const reply = arena_text(fixture.arena, buffer_span(&fake->body));
	fake_exchange_free(fake);
	return reply;
}

static void setup(void)
{
	char anchor[ANCHOR_BYTES];
	char text[DIGEST128_TEXT_BYTES];
	face_fixture_open(&fixture);
	clock_fake_init(&fake_clock, begin_ms);
	fixture.context.clock = &fake_clock.source;
	memset(fixture.context.token_key, 5, sizeof(fixture.context.token_key));
	make_anchor('A', anchor);
	const struct digest128 file = xxh3_128(span_of(anchor, sizeof(anchor)));
	digest128_format(&file, text);
	memcpy(digest, text + strlen("xxh3-128:"), sizeof(digest));
	publish("bkt", "r", 'A');
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

static void pass_ms(int64_t ms)
{
	atomic_fetch_add(&fake_clock.now_ms, ms);
}

/* The first `url` of a reply, as a target of requests; in the arena. */
static const char *url_in(const char *reply)
{
	const char *const mark = strstr(reply, "\"url\":\"");
	ck_assert_msg(mark != NULL, "%s", reply);
	const char *const url = mark + strlen("\"url\":\"");
	return arena_format(fixture.arena, RUN "/%.*s", (int)strcspn(url, "\""), url);
}

static const char *told_at(const char *target)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
	const char *const url = url_in(arena_text(fixture.arena, buffer_span(&fake->body)));
	fake_exchange_free(fake);
	return url;
}

static const char *told(void)
{
	return told_at(RUN "/steps/0");
}

/* Asks without credentials. */
static struct fake_exchange *ask_anonymous(
	int status, enum method method, const char *target, const char *const *headers)
{
	const char *const token = fixture.token;
	fixture.token = NULL;
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, status, method, target, headers, NULL);
	fixture.token = token;
	return fake;
}

static void expect_anonymous(int status, enum method method, const char *target)
{
	fake_exchange_free(ask_anonymous(status, method, target, NULL));
}

static void expect_as(const char *token, int status, const char *target)
{
	const char *const before = fixture.token;
	fixture.token = token;
	face_fixture_expect(&fixture, status, METHOD_GET, target, NULL, NULL);
	fixture.token = before;
}

/* The URL with one text in it replaced by another. */
static const char *changed(const char *url, const char *from, const char *to)
{
	const char *const at = strstr(url, from);
	ck_assert_msg(at != NULL, "%s in %s", from, url);
	return arena_format(fixture.arena, "%.*s%s%s", (int)(at - url), url, to, at + strlen(from));
}

static const char *sign_of(const char *url)
{
	const char *const at = strstr(url, "&sign=");
	ck_assert_msg(at != NULL, "%s", url);
	return at + strlen("&sign=");
}

START_TEST(test_every_url_names_its_content)
{
	static const char *const targets[] = {
		RUN "/steps/0", RUN "/steps/latest", RUN "/steps", RUN "/path"};
	const char *const wanted = arena_format(fixture.arena, OBJECT "?v=%s", digest);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		ck_assert_str_eq(told_at(targets[i]), wanted);
	const char *const reply = publish("bkt", "s", 'B');
	ck_assert_ptr_nonnull(strstr(reply, "objects/anchor/model.safetensors?v="));
}
END_TEST

START_TEST(test_other_content_is_not_there)
{
	face_fixture_expect(&fixture, 200, METHOD_GET, told(), NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_HEAD, told(), NULL, NULL);
	static const char *const others[] = {
		"?v=", "?v=00000000000000000000000000000000", "?v=x", "?v=xxh3-128:"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct fake_exchange *const fake = face_fixture_ask(&fixture, 404, METHOD_GET,
			arena_format(fixture.arena, OBJECT "%s", others[i]), NULL, NULL);
		face_fixture_assert_holds(fake, "\"code\":\"no_key\"");
		face_fixture_assert_header(fake, "Cache-Control", "no-store");
		fake_exchange_free(fake);
	}
	/* No request without a right learns which content is there. */
	expect_anonymous(401, METHOD_GET, told());
	expect_anonymous(401, METHOD_GET, OBJECT "?v=x");
}
END_TEST

START_TEST(test_a_run_made_anew_has_other_urls)
{
	fixture.context.shared_urls = true;
	const char *const signed_url = told();
	const char *const plain = arena_format(fixture.arena, OBJECT "?v=%s", digest);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, RUN, NULL, NULL);
	publish("bkt", "r", 'Z');
	ck_assert_str_ne(told(), signed_url);
	face_fixture_expect(&fixture, 404, METHOD_GET, plain, NULL, NULL);
	struct fake_exchange *const fake = ask_anonymous(404, METHOD_GET, signed_url, NULL);
	face_fixture_assert_header(fake, "Cache-Control", "no-store");
	fake_exchange_free(fake);
	expect_anonymous(200, METHOD_GET, told());
}
END_TEST

START_TEST(test_a_shared_url_needs_no_key)
{
	char anchor[ANCHOR_BYTES];
	expect_anonymous(401, METHOD_GET, told());
	fixture.context.shared_urls = true;
	const char *const url = told();
	make_anchor('A', anchor);
	struct fake_exchange *fake = ask_anonymous(200, METHOD_GET, url, NULL);
	ck_assert(span_equal(buffer_span(&fake->body), span_of(anchor, sizeof(anchor))));
	fake_exchange_free(fake);
	fake = ask_anonymous(206, METHOD_GET, url, HEADERS("Range", "bytes=64-67"));
	face_fixture_assert_body(fake, "AAAA");
	fake_exchange_free(fake);
	fake = ask_anonymous(200, METHOD_HEAD, url, NULL);
	ck_assert_uint_eq(fake->exchange.reply.length, ANCHOR_BYTES);
	fake_exchange_free(fake);
	/* The same path, encoded in another way. */
	expect_anonymous(200, METHOD_GET, changed(url, "model.safetensors", "mode%6C.safetensors"));
	/* As a log and the errors show it. */
	fake = ask_anonymous(200, METHOD_GET, url, NULL);
	ck_assert(span_equal_text(router_log_path(&fake->exchange), OBJECT));
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_all_are_told_the_same_url)
{
	const struct grant grant = {.bucket = span_text("bkt"),
		.prefix = span_text("r/"),
		.permissions = PERMISSION_READ};
	const char *const reader = face_fixture_key(&fixture, "main", &grant);
	const char *const root = fixture.token;
	fixture.context.shared_urls = true;
	const char *const url = told();
	const char *const expiry = arena_format(
		fixture.arena, "&expires=%" PRId64 "&", (begin_ms / hour_ms + 2) * 3600);
	ck_assert_ptr_nonnull(strstr(url, expiry));
	fixture.token = reader;
	ck_assert_str_eq(told(), url);
	ck_assert_str_eq(told_at(RUN "/path"), url);
	pass_ms(40 * 60 * 1000 - 1); /* the end of the hour */
	ck_assert_str_eq(told(), url);
	pass_ms(1);
	ck_assert_str_ne(told(), url);
	fixture.token = root;
	ck_assert_str_ne(told(), url);
}
END_TEST

START_TEST(test_the_expiry_is_a_full_hour)
{
	for (int64_t minute = 0; minute < 120; minute++) {
		const int64_t now_ms = begin_ms + minute * 60 * 1000;
		const int64_t left_s = shared_url_expiry_s(now_ms) - now_ms / 1000;
		ck_assert_int_eq(shared_url_expiry_s(now_ms) % 3600, 0);
		ck_assert(left_s > 3600 && left_s <= 7200);
	}
}
END_TEST

START_TEST(test_a_shared_url_ends)
{
	fixture.context.shared_urls = true;
	const char *const url = told();
	pass_ms(100 * 60 * 1000 - 1);
	expect_anonymous(200, METHOD_GET, url);
	pass_ms(1);
	struct fake_exchange *const fake = ask_anonymous(403, METHOD_GET, url, NULL);
	face_fixture_assert_holds(fake, "{\"error\":{\"code\":\"denied\"");
	fake_exchange_free(fake);
	expect_anonymous(403, METHOD_HEAD, url);
	/* The key of a worker whose download outlasts the URL is enough. */
	face_fixture_expect(&fixture, 200, METHOD_GET, url, NULL, NULL);
	/* Another time cannot be written in. */
	expect_anonymous(403, METHOD_GET, changed(url, "&expires=18000", "&expires=19000"));
}
END_TEST

START_TEST(test_the_setting_ends_all)
{
	fixture.context.shared_urls = true;
	const char *const url = told();
	fixture.context.shared_urls = false;
	expect_anonymous(403, METHOD_GET, url);
	face_fixture_expect(&fixture, 200, METHOD_GET, url, NULL, NULL);
}
END_TEST

/* Whoever holds a shared URL and no key, and tries what else it may open. */
START_TEST(test_a_shared_url_opens_nothing_else)
{
	publish("bkt", "s", 'A');
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/other", NULL, NULL);
	publish("other", "r", 'A');
	fixture.context.shared_urls = true;
	const char *const url = told();
	const char *const query = strchr(url, '?');
	const char *const paths[] = {"/v1/runs/bkt/s/steps/0/objects/anchor/model.safetensors",
		"/v1/runs/other/r/steps/0/objects/anchor/model.safetensors",
		RUN "/steps/00/objects/anchor/model.safetensors",
		RUN "/steps/1/objects/anchor/model.safetensors",
		RUN "/steps/0/objects/delta/model.safetensors",
		RUN "/steps/0/objects/anchor/model.safetensor",
		RUN "/steps/0%2Fobjects%2Fanchor/objects/model.safetensors",
		RUN "/folds/0/objects/anchor/model.safetensors"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		expect_anonymous(
			403, METHOD_GET, arena_format(fixture.arena, "%s%s", paths[i], query));
	const char *const others[] = {RUN "/steps/0", RUN "/steps/latest", RUN "/steps",
		RUN "/path", RUN, RUN "/steps/0/changes", RUN "/replicas", "/v1/runs/bkt"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		expect_anonymous(
			401, METHOD_GET, arena_format(fixture.arena, "%s%s", others[i], query));
	expect_anonymous(403, METHOD_GET, arena_format(fixture.arena, "/bkt/r/m%s", query));
	expect_anonymous(405, METHOD_PUT, url);
	expect_anonymous(405, METHOD_DELETE, url);
}
END_TEST

START_TEST(test_a_changed_shared_url_opens_nothing)
{
	fixture.context.shared_urls = true;
	const char *const url = told();
	const char *const sign = sign_of(url);
	char flipped[SHARED_URL_SIGN_TEXT_BYTES];
	for (size_t i = 0; i < strlen(sign); i++) {
		snprintf(flipped, sizeof(flipped), "%s", sign);
		flipped[i] = flipped[i] == '0' ? '1' : '0';
		expect_anonymous(403, METHOD_GET, changed(url, sign, flipped));
	}
	const char *const upper = "0123456789ABCDEF0123456789ABCDEF";
	const char *const values[] = {"", "0", upper,
		arena_format(fixture.arena, "%s%s", sign, "00"),
		arena_format(fixture.arena, "%.*s", SHARED_URL_SIGN_BYTES, sign)};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		expect_anonymous(403, METHOD_GET, changed(url, sign, values[i]));
	expect_anonymous(403, METHOD_GET, changed(url, "&expires=", "&expire="));
	expect_anonymous(403, METHOD_GET, changed(url, "&expires=", "&expires=-"));
	expect_anonymous(403, METHOD_GET, changed(url, "&expires=", "&expires=9999999999999999"));
	expect_anonymous(403, METHOD_GET, changed(url, "?v=", "?w="));
	expect_anonymous(403, METHOD_GET, changed(url, digest, "00000000000000000000000000000000"));
	expect_anonymous(403, METHOD_GET, changed(url, digest, ""));
	/* The key of another server. */
	fixture.context.token_key[31] ^= 1;
	expect_anonymous(403, METHOD_GET, url);
}
END_TEST

START_TEST(test_a_later_bucket_of_the_name_is_another)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/other", NULL, NULL);
	publish("other", "r", 'A');
	fixture.context.shared_urls = true;
	const char *const url = changed(told_at("/v1/runs/other/r/steps/0"), "/bkt/", "/other/");
	expect_anonymous(200, METHOD_GET, url);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/v1/runs/other/r", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/other/r/m", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/other", NULL, NULL);
	expect_anonymous(403, METHOD_GET, url);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/other", NULL, NULL);
	publish("other", "r", 'A');
	expect_anonymous(403, METHOD_GET, url);
}
END_TEST

START_TEST(test_keys_without_grants_and_revoked_keys)
{
	const struct grant grant = {.bucket = span_text("bkt"),
		.prefix = span_text("elsewhere/"),
		.permissions = PERMISSION_READ | PERMISSION_WRITE};
	const char *const stranger = face_fixture_key(&fixture, "main", &grant);
	const char *const revoked = face_fixture_revoked_key(&fixture, "main");
	fixture.context.shared_urls = true;
	const char *const url = told();
	expect_as(stranger, 403, OBJECT);
	expect_as(stranger, 403, arena_format(fixture.arena, OBJECT "?v=%s", digest));
	expect_as(stranger, 403, changed(url, sign_of(url), "00000000000000000000000000000000"));
	expect_as(stranger, 403, RUN "/steps/0");
	expect_as(stranger, 200, url); /* somebody told it */
	expect_as(revoked, 401, url);
	expect_as(revoked, 401, RUN "/steps/0");
}
END_TEST

static void expect_cache(const char *target, bool anonymous, const char *value)
{
	struct fake_exchange *const fake = anonymous
		? ask_anonymous(200, METHOD_GET, target, NULL)
		: face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
	face_fixture_assert_header(fake, "Cache-Control", value);
	fake_exchange_free(fake);
}

START_TEST(test_what_caches_may_keep)
{
	const char *const plain = told();
	expect_cache(OBJECT, false, "private, max-age=31536000, immutable");
	expect_cache(plain, false, "private, max-age=31536000, immutable");
	fixture.context.shared_urls = true;
	const char *const url = told();
	expect_cache(url, true, "private, max-age=6000, immutable");
	expect_cache(url, false, "private, max-age=6000, immutable");
	fixture.context.shared_cache = true;
	/* It would serve on what a signature opens for two hours. */
	expect_cache(plain, false, "private, max-age=31536000, immutable");
	fixture.context.shared_urls = false;
	expect_cache(plain, false, "public, max-age=31536000, immutable");
	fixture.context.shared_urls = true;
	pass_ms(1000 * 1000);
	expect_cache(url, true, "public, max-age=5000, immutable");
	/* It may mean other bytes one day. */
	expect_cache(OBJECT, false, "private, max-age=31536000, immutable");
	/* A cache must not serve on what only a key has opened. */
	expect_cache(changed(url, sign_of(url), "00000000000000000000000000000000"), false,
		"private, no-store");
	pass_ms(5000 * 1000);
	expect_cache(url, false, "private, no-store");
}
END_TEST

Suite *test_step_url_suite(void);

Suite *test_step_url_suite(void)
{
	Suite *const suite = suite_create("step_url");
	TCase *const content = tcase_create("content");
	TCase *const shared = tcase_create("shared");
	tcase_add_checked_fixture(content, setup, teardown);
	tcase_add_test(content, test_every_url_names_its_content);
	tcase_add_test(content, test_other_content_is_not_there);
	tcase_add_test(content, test_a_run_made_anew_has_other_urls);
	tcase_add_test(content, test_what_caches_may_keep);
	suite_add_tcase(suite, content);
	tcase_add_checked_fixture(shared, setup, teardown);
	tcase_add_test(shared, test_a_shared_url_needs_no_key);
	tcase_add_test(shared, test_all_are_told_the_same_url);
	tcase_add_test(shared, test_the_expiry_is_a_full_hour);
	tcase_add_test(shared, test_a_shared_url_ends);
	tcase_add_test(shared, test_the_setting_ends_all);
	tcase_add_test(shared, test_a_shared_url_opens_nothing_else);
	tcase_add_test(shared, test_a_changed_shared_url_opens_nothing);
	tcase_add_test(shared, test_a_later_bucket_of_the_name_is_another);
	tcase_add_test(shared, test_keys_without_grants_and_revoked_keys);
	suite_add_tcase(suite, shared);
	return suite;
}
