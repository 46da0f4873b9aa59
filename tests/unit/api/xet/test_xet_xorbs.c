/* Uploads of xorbs and questions about them, through the router. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "base/encode.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_parse.h"
#include "storage/buckets/bucket.h"
#include "storage/xet/xorb.h"
#include "tests/unit/api/face_fixture.h"
#include "tests/unit/storage/far_fixture.h"

Suite *test_xet_xorbs_suite(void);

#define HELLO "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"
#define ZERO  "0000000000000000000000000000000000000000000000000000000000000000"
#define OTHER "df93298cdbf67cd507aed28d6290c0cf7f9aa0aa88dfa629cffcf98680659410"
#define GRANT_BODY \
	"{\"length\":20,\"checksum\":{\"algo\":\"crc64nvme\",\"value\":\"3879687725877942381\"}}"

static const uint8_t hello[] = {
	0, 12, 0, 0, 0, 12, 0, 0, 'H', 'e', 'l', 'l', 'o', ' ', 'W', 'o', 'r', 'l', 'd', '!'};

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

enum { TOKEN_NONE, TOKEN_READ, TOKEN_WRITE, TOKEN_OVER };

static void add_token(struct fake_exchange *fake, int token)
{
	if (token == TOKEN_NONE)
		return;
	const char *const text = face_fixture_xet_token(&fixture, "bkt", face_fixture_root_token,
		token != TOKEN_READ, token == TOKEN_OVER ? -1 : 60);
	fake_exchange_add(fake, "authorization", arena_format(fixture.arena, "Bearer %s", text));
}

static struct fake_exchange *begin(enum method method, const char *target, int token)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, method, target);
	add_token(fake, token);
	fake->piece_bytes = 7;
	return fake;
}

/* Asserts the status and, unless NULL, a text in the body. */
static void expect(int status, enum method method, const char *target, int token, struct span body,
	const char *text)
{
	struct fake_exchange *const fake = begin(method, target, token);
	const int got = fake_exchange_run(fake, body);
	ck_assert_msg(got == status, "%s: %d %.*s", target, got, (int)fake->body.len,
		(const char *)fake->body.data);
	face_fixture_assert_header(fake, "X-Request-Id", fake->exchange.request_id);
	if (text != NULL)
		face_fixture_assert_holds(fake, text);
	fake_exchange_free(fake);
}

static bool is_stored(const char *hash)
{
	struct error err = {0};
	struct xorb xorb;
	struct chunk_id id;
	ck_assert(chunk_id_parse(span_text(hash), &id));
	return xorb_find(fixture.store, &id, &xorb, &err) == 0;
}

START_TEST(a_xorb_is_uploaded_once)
{
	const struct span body = span_of(hello, sizeof(hello));
	expect(404, METHOD_HEAD, "/xet/v1/xorbs/default/" HELLO, TOKEN_READ, span_text(""), NULL);
	expect(200, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE, body,
		"{\"was_inserted\":true}");
	expect(200, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE, body,
		"{\"was_inserted\":false}");
	expect(200, METHOD_POST, "/xet/xorbs/anything-1_2/" HELLO, TOKEN_WRITE, body,
		"{\"was_inserted\":false}");
	struct fake_exchange *const head =
		begin(METHOD_HEAD, "/xet/xorbs/default/" HELLO, TOKEN_READ);
	ck_assert_int_eq(fake_exchange_run(head, span_text("")), 200);
	ck_assert_uint_eq(head->exchange.reply.length, sizeof(hello));
	fake_exchange_free(head);
}
END_TEST

/* A helper loads the index of a pack in a far place. */
START_TEST(a_far_xorb_is_measured)
{
	static struct far_fixture far;
	face_fixture_close(&fixture);
	face_fixture_open_far(&fixture, &far);
	expect(200, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE,
		span_of(hello, sizeof(hello)), NULL);
	face_fixture_cool(&fixture);
	for (int i = 0; i < 2; i++) {
		struct fake_exchange *const head =
			begin(METHOD_HEAD, "/xet/xorbs/default/" HELLO, TOKEN_READ);
		ck_assert_int_eq(fake_exchange_run(head, span_text("")), 200);
		ck_assert_uint_eq(head->exchange.reply.length, sizeof(hello));
		ck_assert_int_eq(head->waits, 1 - i);
		fake_exchange_free(head);
	}
	face_fixture_cool(&fixture);
	atomic_store(&far.is_away, true);
	expect(503, METHOD_HEAD, "/xet/v1/xorbs/default/" HELLO, TOKEN_READ, span_text(""), NULL);
	atomic_store(&far.is_away, false);
	expect(200, METHOD_HEAD, "/xet/v1/xorbs/default/" HELLO, TOKEN_READ, span_text(""), NULL);
}
END_TEST

START_TEST(a_grant_says_whether_it_is_here)
{
	const struct span ask = span_text(GRANT_BODY);
	expect(404, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_WRITE, ask, "error");
	expect(200, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE,
		span_of(hello, sizeof(hello)), NULL);
	expect(200, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_WRITE, ask, "{}");
	expect(200, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_WRITE,
		span_text("{\"new\":[1]}"), NULL);
	expect(400, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_WRITE, span_text("[]"),
		"error");
	expect(400, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_WRITE, span_text("{"),
		"error");
	expect(404, METHOD_POST, "/xet/v1/xorb-grants/default/" OTHER, TOKEN_WRITE, ask, "error");
	expect(400, METHOD_POST, "/xet/v1/xorb-grants/default/zz", TOKEN_WRITE, ask, "error");
	expect(403, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_READ, ask, "error");
	expect(401, METHOD_POST, "/xet/v1/xorb-grants/default/" HELLO, TOKEN_NONE, ask,
		"gives\",\"code\""); /* the client adds the full stop */
	expect(404, METHOD_POST, "/xet/v1/xorb-commits/default/" HELLO "/grant/g-1", TOKEN_WRITE,
		span_text(""), "error");
}
END_TEST

START_TEST(tokens_decide)
{
	const struct span body = span_of(hello, sizeof(hello));
	expect(401, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_NONE, body, "error");
	expect(401, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_OVER, body, "error");
	expect(403, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_READ, body, "error");
	expect(401, METHOD_HEAD, "/xet/v1/xorbs/default/" HELLO, TOKEN_NONE, span_text(""), NULL);
	ck_assert(!is_stored(HELLO));
}
END_TEST

START_TEST(bad_requests_store_nothing)
{
	static const char *const hashes[] = {"", "d8d4", HELLO "0",
		"D8D408E608FB9CA213B9909A65D86D725F2DE4D8D540324BE8A363E7A6E228CB",
		"g8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"};
	const struct span body = span_of(hello, sizeof(hello));
	for (size_t i = 0; i < sizeof(hashes) / sizeof(*hashes); i++) {
		char target[200];
		snprintf(target, sizeof(target), "/xet/v1/xorbs/default/%s", hashes[i]);
		expect(i == 0 ? 404 : 400, METHOD_POST, target, TOKEN_WRITE, body, "error");
	}
	expect(400, METHOD_POST, "/xet/v1/xorbs/default/" OTHER, TOKEN_WRITE, body, "not " OTHER);
	expect(400, METHOD_POST, "/xet/v1/xorbs/default/" ZERO, TOKEN_WRITE, body, "not " ZERO);
	expect(400, METHOD_POST, "/xet/v1/xorbs/default/" ZERO, TOKEN_WRITE, span_text(""),
		"no records");
	expect(400, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE, span_text(""),
		"no records");
	for (size_t len = 1; len < sizeof(hello); len++)
		expect(400, METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE,
			span_slice(body, 0, len), "ends within");
	ck_assert(!is_stored(HELLO) && !is_stored(OTHER));
}
END_TEST

START_TEST(a_body_that_is_too_long_is_not_asked_for)
{
	struct fake_exchange *const fake =
		begin(METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE);
	fake->exchange.has_length = true;
	fake->exchange.length = XORB_BODY_MAX_BYTES + 1;
	ck_assert_int_eq(fake_exchange_run(fake, span_of(hello, sizeof(hello))), 400);
	face_fixture_assert_holds(fake, "at most");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_connection_that_breaks_leaves_nothing)
{
	struct fake_exchange *const fake =
		begin(METHOD_POST, "/xet/v1/xorbs/default/" HELLO, TOKEN_WRITE);
	fake_exchange_cut(fake, span_of(hello, 15), sizeof(hello));
	fake_exchange_free(fake);
	ck_assert(!is_stored(HELLO));
}
END_TEST

START_TEST(private_codecs_are_taken_from_our_own_client)
{
	enum { CHUNK = 20000 };
	static uint8_t content[CHUNK], body[2 * CHUNK];
	char hash[CHUNK_ID_TEXT_BYTES], target[200];
	struct codec_context *const codec = codec_context_new();
	const struct chunk_id id = chunk_hash(span_of(content, CHUNK));
	const size_t stored = codec_encode(codec, CODEC_ZSTD, span_of(content, CHUNK),
		body + XORB_RECORD_HEADER_BYTES, codec_bound(CHUNK));
	xorb_record_put_header(
		&(struct xorb_record_header){
			.codec = CODEC_ZSTD, .stored = (uint32_t)stored, .size = CHUNK},
		body);
	chunk_id_format(&id, hash);
	snprintf(target, sizeof(target), "/xet/v1/xorbs/default/%s", hash);
	const struct span bytes = span_of(body, XORB_RECORD_HEADER_BYTES + stored);
	expect(400, METHOD_POST, target, TOKEN_WRITE, bytes, "compression scheme 64");
	struct fake_exchange *const fake = begin(METHOD_POST, target, TOKEN_WRITE);
	fake_exchange_add(fake, "x-deltabucket-codecs", "all");
	ck_assert_int_eq(fake_exchange_run(fake, bytes), 200);
	fake_exchange_free(fake);
	ck_assert(is_stored(hash));
	codec_context_free(codec);
}
END_TEST

Suite *test_xet_xorbs_suite(void)
{
	Suite *const suite = suite_create("xet_xorbs");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, a_xorb_is_uploaded_once);
	tcase_add_test(all, a_far_xorb_is_measured);
	tcase_add_test(all, a_grant_says_whether_it_is_here);
	tcase_add_test(all, tokens_decide);
	tcase_add_test(all, bad_requests_store_nothing);
	tcase_add_test(all, a_body_that_is_too_long_is_not_asked_for);
	tcase_add_test(all, a_connection_that_breaks_leaves_nothing);
	tcase_add_test(all, private_codecs_are_taken_from_our_own_client);
	suite_add_tcase(suite, all);
	return suite;
}
