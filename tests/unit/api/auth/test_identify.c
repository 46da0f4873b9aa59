/* The requests are signed with the canonical request and the HMAC, which test_signature_v4.c proves
 * with Amazon's examples. */
#include "tests/unit/api/face_fixture.h"
#include "tests/unit/unit.h"

#include <string.h>

#include "api/auth/identify.h"
#include "api/auth/keyring.h"
#include "api/exchange/payload.h"
#include "base/digest/digest.h"
#include "base/encode.h"

#define KEY_ID       "ROOTKEYOFTHETESTS000"
#define KEY_SECRET   "secret-of-the-root-key-of-the-tests-0000"
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const int64_t now_ms = INT64_C(1770000000000); /* 2026-02-02T02:40:00Z */

struct signing { /* the differences to a good request */
	const char *secret;
	const char *amz_date; /* header; NULL: none */
	const char *date;     /* Date header; NULL: none */
	const char *scope_date;
	const char *payload; /* x-amz-content-sha256; NULL: none */
	const char *signed_headers;
	const char *extra_name; /* a further header */
	const char *extra_value;
};
static const struct signing good = {KEY_SECRET, "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
	"host;x-amz-content-sha256;x-amz-date", NULL, NULL};

struct desk {
	struct face_fixture fixture;
	struct clock_fake clock;
	struct fake_exchange *fake;
};

static void open_desk(struct desk *desk)
{
	face_fixture_open(&desk->fixture);
	clock_fake_init(&desk->clock, now_ms);
	desk->fixture.context.clock = &desk->clock.source;
	desk->fake = fake_exchange_new(&desk->fixture.context, METHOD_GET, "/bkt/k?b=2&a=1");
}

static void close_desk(struct desk *desk)
{
	fake_exchange_free(desk->fake);
	face_fixture_close(&desk->fixture);
}

static const char *header_of(struct desk *desk, struct span name)
{
	char text[64] = {0};
	ck_assert_uint_lt(name.len, sizeof text);
	memcpy(text, name.data, name.len);
	const struct span value = exchange_header(&desk->fake->exchange, text);
	return arena_text(desk->fixture.arena, value);
}

static void hex_of(const uint8_t bytes[SHA256_BYTES], char out[2 * SHA256_BYTES + 1])
{
	encode_hex(span_of(bytes, SHA256_BYTES), out);
}

static void make_signature(
	struct desk *desk, const struct signing *signing, char out[2 * SHA256_BYTES + 1])
{
	struct buffer text;
	uint8_t key[SHA256_BYTES];
	uint8_t next[SHA256_BYTES];
	buffer_init(&text, 10000);
	buffer_add_text(&text, "GET\n/bkt/k\na=1&b=2\n");
	struct span rest = span_text(signing->signed_headers);
	struct span name;
	while (span_split(&rest, ';', &name))
		buffer_format(&text, "%.*s:%s\n", (int)name.len, (const char *)name.data,
			header_of(desk, name));
	buffer_format(&text, "\n%s\n%s", signing->signed_headers,
		signing->payload != NULL ? signing->payload : "");
	sha256(buffer_span(&text), key);
	hex_of(key, out);
	buffer_reset(&text);
	buffer_format(&text, "AWS4%s", signing->secret);
	hmac_sha256(buffer_span(&text), span_text(signing->scope_date), key);
	const char *const links[] = {"us-east-1", "s3", "aws4_request"};
	for (size_t i = 0; i < 3; i++) {
		hmac_sha256(span_of(key, sizeof key), span_text(links[i]), next);
		memcpy(key, next, sizeof key);
	}
	buffer_reset(&text);
	const char *const date = signing->amz_date != NULL ? signing->amz_date : "20260202T024000Z";
	buffer_format(&text, "AWS4-HMAC-SHA256\n%s\n%s/us-east-1/s3/aws4_request\n%s", date,
		signing->scope_date, out);
	hmac_sha256(span_of(key, sizeof key), buffer_span(&text), next);
	hex_of(next, out);
	buffer_release(&text);
}

static int identify_signed(struct desk *desk, const struct signing *signing, struct error *err)
{
	struct fake_exchange *const fake = desk->fake;
	char signature[2 * SHA256_BYTES + 1];
	fake_exchange_add(fake, "Host", "localhost:9000");
	if (signing->amz_date != NULL)
		fake_exchange_add(fake, "X-Amz-Date", signing->amz_date);
	if (signing->date != NULL)
		fake_exchange_add(fake, "Date", signing->date);
	if (signing->payload != NULL)
		fake_exchange_add(fake, "X-Amz-Content-SHA256", signing->payload);
	if (signing->extra_name != NULL)
		fake_exchange_add(fake, signing->extra_name, signing->extra_value);
	make_signature(desk, signing, signature);
	fake_exchange_add(fake, "Authorization",
		arena_format(desk->fixture.arena,
			"AWS4-HMAC-SHA256 Credential=%s/%s/us-east-1/s3/aws4_request, "
			"SignedHeaders=%s, Signature=%s",
			KEY_ID, signing->scope_date, signing->signed_headers, signature));
	return identify(&fake->exchange, err);
}

START_TEST(a_good_signature_names_its_key)
{
	struct desk desk;
	struct error err = {0};
	uint8_t empty[SHA256_BYTES];
	open_desk(&desk);
	ck_assert_msg(identify_signed(&desk, &good, &err) == 0, "%s", err.text);
	ck_assert(span_equal_text(desk.fake->exchange.principal->key_id, KEY_ID));
	ck_assert(desk.fake->exchange.principal->is_root);
	ck_assert_int_eq(desk.fake->exchange.payload_rule, PAYLOAD_SHA256);
	sha256(span_text(""), empty);
	ck_assert_mem_eq(desk.fake->exchange.payload_sha256, empty, SHA256_BYTES);
	close_desk(&desk);
}
END_TEST

START_TEST(an_unsigned_payload_is_not_checked)
{
	struct desk desk;
	struct error err = {0};
	struct signing signing = good;
	signing.payload = "UNSIGNED-PAYLOAD";
	open_desk(&desk);
	ck_assert_msg(identify_signed(&desk, &signing, &err) == 0, "%s", err.text);
	ck_assert_int_eq(desk.fake->exchange.payload_rule, PAYLOAD_UNSIGNED);
	close_desk(&desk);
}
END_TEST

START_TEST(the_date_header_serves_when_there_is_no_amz_date)
{
	struct desk desk;
	struct error err = {0};
	struct signing signing = good;
	signing.amz_date = NULL;
	signing.date = "Mon, 02 Feb 2026 02:40:00 GMT";
	signing.signed_headers = "date;host;x-amz-content-sha256";
	open_desk(&desk);
	ck_assert_msg(identify_signed(&desk, &signing, &err) == 0, "%s", err.text);
	close_desk(&desk);
}
END_TEST

static const struct {
	struct signing signing;
	enum error_kind kind;
} bad[] = {
	{{"another-secret", "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_SIGNATURE},
	{{KEY_SECRET, "20260202T025501Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_SKEW},
	{{KEY_SECRET, "20260202T022459Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_SKEW},
	{{KEY_SECRET, NULL, NULL, "20260202", EMPTY_SHA256, "host;x-amz-content-sha256", NULL,
		 NULL},
		ERROR_DENIED},
	{{KEY_SECRET, "yesterday", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_DENIED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260201", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_AUTH_MALFORMED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256", NULL, NULL},
		ERROR_DENIED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
		 "x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_DENIED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date", "x-amz-meta-a", "1"},
		ERROR_DENIED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", NULL, "host;x-amz-date", NULL, NULL},
		ERROR_INVALID_REQUEST},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", "abc",
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_INVALID},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
		 "host;x-amz-content-sha256;x-amz-date", NULL, NULL},
		ERROR_INVALID_REQUEST}, /* a GET */
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202",
		 "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "host;x-amz-content-sha256;x-amz-date",
		 NULL, NULL},
		ERROR_UNSUPPORTED},
	{{KEY_SECRET, "20260202T024000Z", NULL, "20260202", EMPTY_SHA256,
		 "host;x-amz-content-sha256;x-amz-date;x-amz-security-token",
		 "X-Amz-Security-Token", "t"},
		ERROR_INVALID_TOKEN},
};

START_TEST(each_fault_has_its_own_answer)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	ck_assert_int_eq(identify_signed(&desk, &bad[_i].signing, &err), -1);
	ck_assert_msg(err.kind == bad[_i].kind, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_ptr_null(desk.fake->exchange.principal);
	close_desk(&desk);
}
END_TEST

START_TEST(fifteen_minutes_of_skew_are_allowed)
{
	static const char *const dates[] = {"20260202T025500Z", "20260202T022500Z"};
	for (size_t i = 0; i < 2; i++) {
		struct desk desk;
		struct error err = {0};
		struct signing signing = good;
		signing.amz_date = dates[i];
		open_desk(&desk);
		ck_assert_msg(identify_signed(&desk, &signing, &err) == 0, "%s", err.text);
		close_desk(&desk);
	}
}
END_TEST

static const struct {
	const char *authorization;
	bool accepted;
	bool anonymous;
	enum error_kind kind;
} plain[] = {
	{NULL, true, true, ERROR_NONE},
	{"Bearer root-token-of-the-tests", true, false, ERROR_NONE},
	{"bearer   root-token-of-the-tests ", true, false, ERROR_NONE},
	{"Bearer root-token-of-the-testz", false, true, ERROR_UNKNOWN_KEY_ID},
	{"Bearer ", false, true, ERROR_INVALID},
	{"Bearer  ", false, true, ERROR_UNKNOWN_KEY_ID},
	{"AWS AKID:c2lnbmF0dXJl", false, true, ERROR_INVALID_REQUEST},
	{"Basic cm9vdDp0b2tlbg==", false, true, ERROR_INVALID},
	{"AWS4-HMAC-SHA256 Credential=NOBODY/20260202/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=" EMPTY_SHA256,
		false, true, ERROR_UNKNOWN_KEY_ID},
};

START_TEST(other_authorization_headers)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	if (plain[_i].authorization != NULL)
		fake_exchange_add(desk.fake, "Authorization", plain[_i].authorization);
	ck_assert_int_eq(identify(&desk.fake->exchange, &err), plain[_i].accepted ? 0 : -1);
	ck_assert_int_eq(err.kind, plain[_i].kind);
	ck_assert_int_eq(desk.fake->exchange.principal == NULL, plain[_i].anonymous);
	close_desk(&desk);
}
END_TEST

static const struct {
	const char *target;
	const char *authorization;
	enum error_kind kind;
} queries[] = {
	{"/bkt/k?X-Amz-Algorithm=AWS4-HMAC-SHA256", NULL, ERROR_AUTH_QUERY},
	{"/bkt/k?x-amz-signature=00", NULL, ERROR_AUTH_QUERY},
	{"/bkt/k?X-Amz-Signature=00", "Bearer root-token-of-the-tests", ERROR_INVALID},
	{"/bkt/k?Signature=00&AWSAccessKeyId=" KEY_ID "&Expires=1770000001",
		"Bearer root-token-of-the-tests", ERROR_INVALID},
	{"/bkt/k?Signature=00", NULL, ERROR_DENIED},
	{"/bkt/k?Signature=00&AWSAccessKeyId=" KEY_ID "&Expires=1770000001", NULL, ERROR_SIGNATURE},
	{"/bkt/k?Signature=00&AWSAccessKeyId=NOBODY&Expires=1770000001", NULL,
		ERROR_UNKNOWN_KEY_ID},
	{"/bkt/k?Signature=00&AWSAccessKeyId=" KEY_ID "&Expires=1769999999", NULL, ERROR_DENIED},
	{"/bkt/k?response-content-type=text/html", NULL, ERROR_INVALID_REQUEST},
	{"/bkt/k?response-content-type=text/html", "Bearer root-token-of-the-tests", ERROR_NONE},
	{"/bkt/k?prefix=Signature", NULL, ERROR_NONE},
};

START_TEST(what_the_query_says)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	struct fake_exchange *const fake =
		fake_exchange_new(&desk.fixture.context, METHOD_GET, queries[_i].target);
	if (queries[_i].authorization != NULL)
		fake_exchange_add(fake, "Authorization", queries[_i].authorization);
	identify(&fake->exchange, &err);
	ck_assert_msg(err.kind == queries[_i].kind, "%s: %s %s", queries[_i].target,
		error_kind_name(err.kind), err.text);
	ck_assert_int_eq(fake->exchange.principal != NULL,
		err.kind == ERROR_NONE && queries[_i].authorization != NULL);
	fake_exchange_free(fake);
	close_desk(&desk);
}
END_TEST

START_TEST(version_2_can_be_switched_off)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	desk.fixture.context.sigv2 = false;
	struct fake_exchange *const fake =
		fake_exchange_new(&desk.fixture.context, METHOD_GET, queries[5].target);
	ck_assert_int_eq(identify(&fake->exchange, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
	fake_exchange_free(fake);
	close_desk(&desk);
}
END_TEST

START_TEST(a_wrong_signature_shows_what_was_signed)
{
	static const char *const names[] = {"AWSAccessKeyId", "StringToSign", "SignatureProvided",
		"StringToSignBytes", "CanonicalRequest", "CanonicalRequestBytes"};
	struct desk desk;
	struct error err = {0};
	struct signing signing = good;
	signing.secret = "another-secret";
	open_desk(&desk);
	ck_assert_int_eq(identify_signed(&desk, &signing, &err), -1);
	const struct exchange *const exchange = &desk.fake->exchange;
	ck_assert_uint_eq(exchange->error_field_count, 6);
	for (size_t i = 0; i < 6; i++)
		ck_assert_str_eq(exchange->error_fields[i].name, names[i]);
	ck_assert(span_equal_text(exchange->error_fields[0].value, KEY_ID));
	ck_assert(span_starts(exchange->error_fields[1].value,
		span_text(
			"AWS4-HMAC-SHA256\n20260202T024000Z\n20260202/us-east-1/s3/aws4_request\n")));
	ck_assert(span_starts(exchange->error_fields[4].value,
		span_text("GET\n/bkt/k\na=1&b=2\nhost:localhost:9000\n")));
	ck_assert(span_starts(exchange->error_fields[5].value, span_text("47 45 54 0a")));
	close_desk(&desk);
}
END_TEST

START_TEST(the_control_socket_acts_as_root)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	desk.fake->exchange.control = true;
	ck_assert_int_eq(identify(&desk.fake->exchange, &err), 0);
	ck_assert(desk.fake->exchange.principal->is_root);
	ck_assert(span_equal_text(desk.fake->exchange.principal->namespace, "main"));
	close_desk(&desk);
}
END_TEST

Suite *test_identify_suite(void);

Suite *test_identify_suite(void)
{
	Suite *const suite = suite_create("identify");
	TCase *const tcase = tcase_create("identify");
	tcase_add_test(tcase, a_good_signature_names_its_key);
	tcase_add_test(tcase, an_unsigned_payload_is_not_checked);
	tcase_add_test(tcase, the_date_header_serves_when_there_is_no_amz_date);
	tcase_add_loop_test(tcase, each_fault_has_its_own_answer, 0, sizeof bad / sizeof bad[0]);
	tcase_add_test(tcase, fifteen_minutes_of_skew_are_allowed);
	tcase_add_loop_test(tcase, other_authorization_headers, 0, sizeof plain / sizeof plain[0]);
	tcase_add_loop_test(tcase, what_the_query_says, 0, sizeof queries / sizeof queries[0]);
	tcase_add_test(tcase, version_2_can_be_switched_off);
	tcase_add_test(tcase, a_wrong_signature_shows_what_was_signed);
	tcase_add_test(tcase, the_control_socket_acts_as_root);
	suite_add_tcase(suite, tcase);
	return suite;
}
