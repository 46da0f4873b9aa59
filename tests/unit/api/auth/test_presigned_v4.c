/* The valid URL is that of Amazon's published example. */
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include "api/auth/presigned_v4.h"
#include "api/auth/signing_key.h"

#define ALGORITHM "X-Amz-Algorithm=AWS4-HMAC-SHA256"
#define CREDENTIAL \
	"X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
#define DATE      "X-Amz-Date=20130524T000000Z"
#define SIGNED    "X-Amz-SignedHeaders=host"
#define SIGNATURE "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
#define GOOD \
	"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE

static const int64_t signed_ms = INT64_C(1369353600000);

struct desk {
	struct clock_fake clock;
	struct api_context context;
	struct fake_exchange *fake;
};

static void open_desk(struct desk *desk, enum method method, const char *target)
{
	clock_fake_init(&desk->clock, signed_ms);
	desk->context = (struct api_context){.clock = &desk->clock.source, .region = "us-east-1"};
	desk->fake = fake_exchange_new(&desk->context, method, target);
	fake_exchange_add(desk->fake, "Host", "examplebucket.s3.amazonaws.com");
}

static int check(struct desk *desk, struct error *err)
{
	struct exchange *const exchange = &desk->fake->exchange;
	struct presigned_v4 presigned;
	uint8_t key[SHA256_BYTES];
	if (presigned_v4_parse(exchange, &presigned, err) != 0 ||
		presigned_v4_check_time(exchange, &presigned, err) != 0)
		return -1;
	signing_key_derive(span_text("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
		presigned.signature.date, presigned.signature.region, key);
	return presigned_v4_check(exchange, &presigned, key, err);
}

static const struct {
	const char *target;
	enum method method;
	enum error_kind kind;
} targets[] = {
	{GOOD, METHOD_GET, ERROR_NONE},
	{"/test.txt?" SIGNATURE "&" SIGNED "&X-Amz-Expires=86400&" DATE "&" CREDENTIAL
	 "&" ALGORITHM,
		METHOD_GET, ERROR_NONE},
	{"/%74est.txt?" SIGNATURE "&" SIGNED "&X-Amz-Expires=86400&" DATE "&" CREDENTIAL
	 "&" ALGORITHM,
		METHOD_GET, ERROR_NONE},
	{GOOD, METHOD_HEAD, ERROR_SIGNATURE},
	{GOOD, METHOD_PUT, ERROR_SIGNATURE},
	{GOOD "&versionId=1", METHOD_GET, ERROR_SIGNATURE},
	{"/test.txu?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED
	 "&" SIGNATURE,
		METHOD_GET, ERROR_SIGNATURE},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86401&" SIGNED
	 "&" SIGNATURE,
		METHOD_GET, ERROR_SIGNATURE},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE
	 "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host%3Brange&" SIGNATURE,
		METHOD_GET, ERROR_SIGNATURE},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE
	 "&X-Amz-Expires=86400&X-Amz-SignedHeaders=range&" SIGNATURE,
		METHOD_GET, ERROR_DENIED},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=0&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_DENIED},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=604801&" SIGNED
	 "&" SIGNATURE,
		METHOD_GET, ERROR_DENIED},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=-1&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_DENIED},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=soon&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&" SIGNED "&" SIGNATURE, METHOD_GET,
		ERROR_AUTH_QUERY},
	{"/test.txt?" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE, METHOD_GET,
		ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" DATE "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE, METHOD_GET,
		ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED, METHOD_GET,
		ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED
	 "&X-Amz-Signature=",
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&" DATE "&X-Amz-Expires=86400&" SIGNED
	 "&X-Amz-Signature=zz",
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA512&" CREDENTIAL "&" DATE
	 "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM
	 "&X-Amz-Credential=AKIA%2F20130524%2Fus-east-1%2Fec2%2Faws4_request&" DATE
	 "&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL
	 "&X-Amz-Date=20130525T000000Z&X-Amz-Expires=86400&" SIGNED "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{"/test.txt?" ALGORITHM "&" CREDENTIAL "&X-Amz-Date=today&X-Amz-Expires=86400&" SIGNED
	 "&" SIGNATURE,
		METHOD_GET, ERROR_AUTH_QUERY},
	{GOOD "&X-Amz-Security-Token=t", METHOD_GET, ERROR_INVALID_TOKEN},
};

START_TEST(a_url_is_good_or_refused)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk, targets[_i].method, targets[_i].target);
	ck_assert(presigned_v4_is_present(&desk.fake->exchange));
	const int outcome = check(&desk, &err);
	ck_assert_msg(err.kind == targets[_i].kind && (outcome == 0) == (err.kind == ERROR_NONE),
		"%s: %s %s", targets[_i].target, error_kind_name(err.kind), err.text);
	fake_exchange_free(desk.fake);
}
END_TEST

static const struct {
	int64_t after_ms;
	enum error_kind kind;
} times[] = {{0, ERROR_NONE}, {86400000, ERROR_NONE}, {86400001, ERROR_DENIED},
	{-900000, ERROR_NONE}, {-900001, ERROR_DENIED}};

START_TEST(a_url_has_its_time)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk, METHOD_GET, GOOD);
	clock_fake_init(&desk.clock, signed_ms + times[_i].after_ms);
	check(&desk, &err);
	ck_assert_int_eq(err.kind, times[_i].kind);
	if (times[_i].after_ms > 86400000) {
		const struct error_field *const fields = desk.fake->exchange.error_fields;
		ck_assert_uint_eq(desk.fake->exchange.error_field_count, 3);
		ck_assert(span_equal_text(fields[0].value, "86400"));
		ck_assert(span_equal_text(fields[1].value, "2013-05-25T00:00:00.000Z"));
		ck_assert(span_equal_text(fields[2].value, "2013-05-25T00:00:00.001Z"));
	}
	fake_exchange_free(desk.fake);
}
END_TEST

START_TEST(headers_that_change_the_request_must_be_signed)
{
	static const struct {
		const char *name;
		enum error_kind kind;
	} headers[] = {{"x-amz-meta-a", ERROR_DENIED}, {"X-Amz-Acl", ERROR_DENIED},
		{"x-amz-content-sha256", ERROR_NONE}, {"Range", ERROR_NONE}};
	for (size_t i = 0; i < 4; i++) {
		struct desk desk;
		struct error err = {0};
		open_desk(&desk, METHOD_GET, GOOD);
		fake_exchange_add(desk.fake, headers[i].name, "UNSIGNED-PAYLOAD");
		check(&desk, &err);
		ck_assert_msg(err.kind == headers[i].kind, "%s: %s", headers[i].name, err.text);
		fake_exchange_free(desk.fake);
	}
}
END_TEST

START_TEST(other_queries_are_not_meant)
{
	static const char *const others[] = {"/test.txt", "/test.txt?versionId=1",
		"/test.txt?a=X-Amz-Signature", "/test.txt?Signature=1"};
	for (size_t i = 0; i < 4; i++) {
		struct desk desk;
		open_desk(&desk, METHOD_GET, others[i]);
		ck_assert(!presigned_v4_is_present(&desk.fake->exchange));
		fake_exchange_free(desk.fake);
	}
}
END_TEST

Suite *test_presigned_v4_suite(void);

Suite *test_presigned_v4_suite(void)
{
	Suite *const suite = suite_create("presigned_v4");
	TCase *const tcase = tcase_create("presigned_v4");
	tcase_add_loop_test(tcase, a_url_is_good_or_refused, 0, sizeof targets / sizeof targets[0]);
	tcase_add_loop_test(tcase, a_url_has_its_time, 0, sizeof times / sizeof times[0]);
	tcase_add_test(tcase, headers_that_change_the_request_must_be_signed);
	tcase_add_test(tcase, other_queries_are_not_meant);
	suite_add_tcase(suite, tcase);
	return suite;
}
