/* The first signature is that of Amazon's published example; another program made the second. */
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include "api/auth/signature_v2.h"

#define PUPPY \
	"AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620"
#define BUSY \
	"AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=y81yDj1SYXmekJIVYgfufTEqJCk%3D&Expires=1175139620"

static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
static const int64_t expires_ms = INT64_C(1175139620000);

struct desk {
	struct clock_fake clock;
	struct api_context context;
	struct fake_exchange *fake;
};

static void open_desk(struct desk *desk, enum method method, const char *target)
{
	clock_fake_init(&desk->clock, expires_ms);
	desk->context = (struct api_context){.clock = &desk->clock.source,
		.region = "us-east-1",
		.domain = "s3.amazonaws.com",
		.sigv2 = true};
	desk->fake = fake_exchange_new(&desk->context, method, target);
}

static int check(struct desk *desk, struct error *err)
{
	struct exchange *const exchange = &desk->fake->exchange;
	struct signature_v2 signature;
	router_match(exchange);
	if (signature_v2_parse(exchange, &signature, err) != 0 ||
		signature_v2_check_route(exchange, err) != 0)
		return -1;
	return signature_v2_check(exchange, &signature, span_text(secret), err);
}

static const struct {
	enum method method;
	const char *host;
	const char *target;
	enum error_kind kind;
} targets[] = {
	{METHOD_GET, "johnsmith.s3.amazonaws.com", "/photos/puppy.jpg?" PUPPY, ERROR_NONE},
	{METHOD_GET, "JohnSmith.s3.amazonaws.com:8080", "/photos/puppy.jpg?" PUPPY, ERROR_NONE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?" PUPPY, ERROR_NONE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?other=1&" PUPPY, ERROR_NONE},
	{METHOD_HEAD, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?" PUPPY, ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/kitten.jpg?" PUPPY, ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?versionId=1&" PUPPY,
		ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?%76ersionId=1&" PUPPY,
		ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?response-content-typ%65=text/html&" PUPPY,
		ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?%61cl&" PUPPY,
		ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?attributes&" PUPPY,
		ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com", "/johnsmith/photos/puppy.jpg?retention&" PUPPY,
		ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D",
		ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Expires=1175139620", ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Signature=x&Expires=soon",
		ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Signature=x&Expires=1175139619",
		ERROR_DENIED},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Signature=&Expires=1175139621",
		ERROR_SIGNATURE},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos/puppy.jpg?AWSAccessKeyId=A&Signature=%%%&Expires=1175139621",
		ERROR_DENIED},
	/* A bucket may be signed with and without a slash at its end. For a key the slash
	 * counts. */
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith?prefix=x&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Expires=1175139620"
		"&Signature=C2UQEgXq2OUblYhiCn4CbBlpja8%3D",
		ERROR_NONE},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith?prefix=x&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Expires=1175139620"
		"&Signature=O0v6SWPdo4x4nFD0qcXbN1ErM%2F8%3D",
		ERROR_NONE},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/?prefix=x&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Expires=1175139620"
		"&Signature=O0v6SWPdo4x4nFD0qcXbN1ErM%2F8%3D",
		ERROR_NONE},
	{METHOD_GET, "s3.amazonaws.com",
		"/johnsmith/photos?prefix=x&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Expires=1175139620"
		"&Signature=hTW1pUvrh4EJi1e5SAEBjTb4gSc%3D",
		ERROR_SIGNATURE},
};

START_TEST(a_url_is_good_or_refused)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk, targets[_i].method, targets[_i].target);
	fake_exchange_add(desk.fake, "Host", targets[_i].host);
	const int outcome = check(&desk, &err);
	ck_assert_msg(err.kind == targets[_i].kind && (outcome == 0) == (err.kind == ERROR_NONE),
		"%s: %s %s", targets[_i].target, error_kind_name(err.kind), err.text);
	fake_exchange_free(desk.fake);
}
END_TEST

START_TEST(headers_and_sub_resources_are_signed)
{
	static const char *const acls[] = {"private", "public-read"};
	for (size_t i = 0; i < 2; i++) {
		struct desk desk;
		struct error err = {0};
		open_desk(&desk, METHOD_PUT,
			"/b/k%20x?versionId=a%2Bb&uploads&partNumber=1&x=y&" BUSY);
		fake_exchange_add(desk.fake, "X-Amz-Meta-B", " two  words ");
		fake_exchange_add(desk.fake, "x-amz-acl", acls[i]);
		fake_exchange_add(desk.fake, "Content-Type", "a/b");
		fake_exchange_add(desk.fake, "x-amz-acl", "more");
		fake_exchange_add(desk.fake, "Content-MD5", "q");
		fake_exchange_add(desk.fake, "Range", "bytes=0-0");
		check(&desk, &err);
		ck_assert_msg(err.kind == (i == 0 ? ERROR_NONE : ERROR_SIGNATURE), "%s", err.text);
		fake_exchange_free(desk.fake);
	}
}
END_TEST

START_TEST(a_switched_off_version_is_refused)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk, METHOD_GET, targets[2].target);
	desk.context.sigv2 = false;
	ck_assert_int_eq(check(&desk, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
	fake_exchange_free(desk.fake);
}
END_TEST

START_TEST(a_wrong_signature_shows_what_was_signed)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk, METHOD_HEAD, targets[2].target);
	ck_assert_int_eq(check(&desk, &err), -1);
	const struct exchange *const exchange = &desk.fake->exchange;
	ck_assert_uint_eq(exchange->error_field_count, 4);
	ck_assert_str_eq(exchange->error_fields[1].name, "StringToSign");
	ck_assert(span_equal_text(exchange->error_fields[1].value,
		"HEAD\n\n\n1175139620\n/johnsmith/photos/puppy.jpg"));
	fake_exchange_free(desk.fake);
}
END_TEST

Suite *test_signature_v2_suite(void);

Suite *test_signature_v2_suite(void)
{
	Suite *const suite = suite_create("signature_v2");
	TCase *const tcase = tcase_create("signature_v2");
	tcase_add_loop_test(tcase, a_url_is_good_or_refused, 0, sizeof targets / sizeof targets[0]);
	tcase_add_test(tcase, headers_and_sub_resources_are_signed);
	tcase_add_test(tcase, a_switched_off_version_is_refused);
	tcase_add_test(tcase, a_wrong_signature_shows_what_was_signed);
	suite_add_tcase(suite, tcase);
	return suite;
}
