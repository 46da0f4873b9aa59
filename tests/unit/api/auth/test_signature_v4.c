/* The four signed requests are those of Amazon's published examples. */
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include "api/auth/signature_v4.h"
#include "api/auth/signing_key.h"

#define SCOPE          "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
#define EMPTY_SHA256   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SOME_SIGNATURE "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"

static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

static const struct {
	enum method method;
	const char *target;
	const char *headers[10]; /* names and values in turn */
	const char *signed_headers;
	const char *payload;
	const char *signature;
} vectors[] = {
	{METHOD_GET, "/test.txt",
		{"Host", "examplebucket.s3.amazonaws.com", "Range", "bytes=0-9",
			"x-amz-content-sha256", EMPTY_SHA256, "x-amz-date", "20130524T000000Z"},
		"host;range;x-amz-content-sha256;x-amz-date", EMPTY_SHA256, SOME_SIGNATURE},
	{METHOD_PUT, "/test$file.text",
		{"Host", "examplebucket.s3.amazonaws.com", "Date", "Fri, 24 May 2013 00:00:00 GMT",
			"x-amz-content-sha256",
			"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			"x-amz-date", "20130524T000000Z", "x-amz-storage-class",
			"REDUCED_REDUNDANCY"},
		"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
		"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
	{METHOD_GET, "/?lifecycle",
		{"Host", "examplebucket.s3.amazonaws.com", "x-amz-content-sha256", EMPTY_SHA256,
			"x-amz-date", "20130524T000000Z"},
		"host;x-amz-content-sha256;x-amz-date", EMPTY_SHA256,
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	{METHOD_GET, "/?max-keys=2&prefix=J",
		{"Host", "examplebucket.s3.amazonaws.com", "x-amz-content-sha256", EMPTY_SHA256,
			"x-amz-date", "20130524T000000Z"},
		"host;x-amz-content-sha256;x-amz-date", EMPTY_SHA256,
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static struct fake_exchange *make_request(int at, const char *target)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, vectors[at].method, target);
	for (size_t i = 0; i < 10 && vectors[at].headers[i] != NULL; i += 2)
		fake_exchange_add(fake, vectors[at].headers[i], vectors[at].headers[i + 1]);
	return fake;
}

static int check_request(
	struct fake_exchange *fake, int at, const char *with_secret, struct error *err)
{
	const char *const authorization = arena_format(fake->exchange.arena,
		"AWS4-HMAC-SHA256 Credential=%s,SignedHeaders=%s,Signature=%s", SCOPE,
		vectors[at].signed_headers, vectors[at].signature);
	const struct canonical_request request = {.payload = span_text(vectors[at].payload)};
	struct signature_v4 signature;
	uint8_t key[SHA256_BYTES];
	ck_assert_msg(signature_v4_parse(span_text(authorization), &signature, err) == 0, "%s",
		err->text);
	signing_key_derive(span_text(with_secret), signature.date, signature.region, key);
	return signature_v4_check(
		&fake->exchange, &signature, key, span_text("20130524T000000Z"), request, err);
}

START_TEST(published_examples_verify)
{
	struct fake_exchange *const fake = make_request(_i, vectors[_i].target);
	struct error err = {0};
	ck_assert_msg(check_request(fake, _i, secret, &err) == 0, "%s", err.text);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(another_secret_path_query_or_header_does_not_verify)
{
	struct error err = {0};
	struct fake_exchange *fake = make_request(0, "/test.txt");
	ck_assert_int_eq(
		check_request(fake, 0, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEZ", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_SIGNATURE);
	fake->headers[1].value = span_text("bytes=0-99");
	ck_assert_int_eq(check_request(fake, 0, secret, &err), -1);
	fake_exchange_free(fake);
	fake = make_request(0, "/test.txu");
	ck_assert_int_eq(check_request(fake, 0, secret, &err), -1);
	fake_exchange_free(fake);
	fake = make_request(3, "/?max-keys=2&prefix=K");
	ck_assert_int_eq(check_request(fake, 3, secret, &err), -1);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(how_the_client_escaped_does_not_matter)
{
	struct error err = {0};
	struct fake_exchange *fake = make_request(1, "/test%24file%2Etext");
	ck_assert_msg(check_request(fake, 1, secret, &err) == 0, "%s", err.text);
	fake_exchange_free(fake);
	fake = make_request(3, "/?prefix=%4a&max-keys=2");
	ck_assert_msg(check_request(fake, 3, secret, &err) == 0, "%s", err.text);
	fake_exchange_free(fake);
	fake = make_request(2, "/?lifecycle=");
	ck_assert_msg(check_request(fake, 2, secret, &err) == 0, "%s", err.text);
	fake_exchange_free(fake);
}
END_TEST

#define CREDENTIAL "Credential=" SCOPE
#define REST       "SignedHeaders=host;x-amz-date, Signature=" SOME_SIGNATURE

static const char *const well_formed[] = {
	"AWS4-HMAC-SHA256 " CREDENTIAL ", " REST,
	"AWS4-HMAC-SHA256 " CREDENTIAL ",SignedHeaders=host;x-amz-date,Signature=" SOME_SIGNATURE,
	"AWS4-HMAC-SHA256 " REST ", " CREDENTIAL,
};

START_TEST(header_forms_that_clients_send)
{
	struct signature_v4 signature;
	struct error err = {0};
	ck_assert_msg(signature_v4_parse(span_text(well_formed[_i]), &signature, &err) == 0, "%s",
		err.text);
	ck_assert(span_equal_text(signature.key_id, "AKIAIOSFODNN7EXAMPLE"));
	ck_assert(span_equal_text(signature.date, "20130524"));
	ck_assert(span_equal_text(signature.region, "us-east-1"));
	ck_assert(span_equal_text(signature.signed_headers, "host;x-amz-date"));
	ck_assert(span_equal_text(signature.signature, SOME_SIGNATURE));
	ck_assert(signature_v4_signs(&signature, span_text("Host")));
	ck_assert(signature_v4_signs(&signature, span_text("X-Amz-Date")));
	ck_assert(!signature_v4_signs(&signature, span_text("date")));
}
END_TEST

static const struct {
	const char *header;
	enum error_kind kind;
} malformed[] = {
	{"", ERROR_INVALID},
	{"Basic dXNlcjpwYXNz", ERROR_INVALID},
	{"AWS4-HMAC-SHA512 " CREDENTIAL ", " REST, ERROR_INVALID},
	{"AWS4-HMAC-SHA256  " CREDENTIAL ", " REST, ERROR_INVALID},
	{"AWS4-HMAC-SHA256" CREDENTIAL ", " REST, ERROR_INVALID},
	{"AWS4-HMAC-SHA256 ", ERROR_INVALID},
	{"AWS4-HMAC-SHA256 " CREDENTIAL, ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 " CREDENTIAL ", " CREDENTIAL ", " REST, ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 " CREDENTIAL ", Other=1, " REST, ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=, " REST, ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/20130524/us-east-1/s3, " REST, ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/20130524/us-east-1/s3/aws4_request/, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/B/20130524/us-east-1/s3/aws4_request, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=/20130524/us-east-1/s3/aws4_request, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/2013-05-24/us-east-1/s3/aws4_request, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/20130524/us-east-1/ec2/aws4_request, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 Credential=A/20130524/us-east-1/s3/aws5_request, " REST,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=, Signature=" SOME_SIGNATURE,
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=host, Signature=abcd",
		ERROR_AUTH_MALFORMED},
	{"AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=host, Signature=z" SOME_SIGNATURE,
		ERROR_AUTH_MALFORMED},
};

START_TEST(malformed_headers_are_refused)
{
	struct signature_v4 signature;
	struct error err = {0};
	ck_assert_int_eq(signature_v4_parse(span_text(malformed[_i].header), &signature, &err), -1);
	ck_assert_int_eq(err.kind, malformed[_i].kind);
}
END_TEST

static const struct {
	const char *query;
	const char *canonical;
} queries[] = {
	{"", ""},
	{"uploads", "uploads="},
	{"b=2&a=1", "a=1&b=2"},
	{"a=2&a=1&a", "a=&a=1&a=2"},
	{"a-b=1&a=2", "a=2&a-b=1"},
	{"p=a+b", "p=a%20b"},
	{"p=a%2Bb%2f", "p=a%2Bb%2F"},
	{"p=x;y", "p=x%3By"},
	{"p=~_-.", "p=~_-."},
	{"p=%c3%a4", "p=%C3%A4"},
	{"&&a=1&", "a=1"},
	{"a=b=c", "a=b%3Dc"},
};

START_TEST(canonical_queries)
{
	struct buffer out;
	struct error err = {0};
	buffer_init(&out, 1000);
	ck_assert_int_eq(
		canonical_request_query(span_text(queries[_i].query), NULL, &out, &err), 0);
	ck_assert_str_eq(buffer_text(&out), queries[_i].canonical);
	buffer_release(&out);
}
END_TEST

static const struct {
	const char *path;
	const char *canonical;
} paths[] = {
	{"/", "/"},
	{"/a//b/./../c", "/a//b/./../c"},
	{"/a+b", "/a%2Bb"},
	{"/a%20b", "/a%20b"},
	{"/!*'()", "/%21%2A%27%28%29"},
	{"/%21%2a", "/%21%2A"},
	{"/%2541", "/%2541"},
};

START_TEST(canonical_paths)
{
	struct buffer out;
	struct error err = {0};
	buffer_init(&out, 1000);
	ck_assert_int_eq(canonical_request_path(span_text(paths[_i].path), &out, &err), 0);
	ck_assert_str_eq(buffer_text(&out), paths[_i].canonical);
	buffer_release(&out);
}
END_TEST

START_TEST(bad_escapes_are_bad_uris)
{
	static const char *const bad[] = {"/%", "/%4", "/%zz", "/a%00b"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct buffer out;
		struct error err = {0};
		buffer_init(&out, 1000);
		ck_assert_int_eq(canonical_request_path(span_text(bad[i]), &out, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_BAD_URI);
		ck_assert_int_eq(canonical_request_query(span_text(bad[i]), NULL, &out, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_BAD_URI);
		buffer_release(&out);
	}
}
END_TEST

START_TEST(a_flood_of_parameters_is_too_large)
{
	struct buffer query;
	struct buffer out;
	struct error err = {0};
	buffer_init(&query, 10000);
	buffer_init(&out, 10000);
	for (int i = 0; i < 300; i++)
		buffer_format(&query, "p%d=1&", i);
	ck_assert_int_eq(canonical_request_query(buffer_span(&query), NULL, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_release(&query);
	buffer_release(&out);
}
END_TEST

START_TEST(values_are_trimmed_and_their_spaces_joined)
{
	struct buffer out;
	buffer_init(&out, 1000);
	canonical_request_value(span_text("  a   b  c "), &out);
	canonical_request_value(span_text(""), &out);
	canonical_request_value(span_text("   "), &out);
	ck_assert_str_eq(buffer_text(&out), "a b c");
	buffer_release(&out);
}
END_TEST

Suite *test_signature_v4_suite(void);

Suite *test_signature_v4_suite(void)
{
	Suite *const suite = suite_create("signature_v4");
	TCase *const tcase = tcase_create("signature_v4");
	tcase_add_loop_test(
		tcase, published_examples_verify, 0, sizeof vectors / sizeof vectors[0]);
	tcase_add_test(tcase, another_secret_path_query_or_header_does_not_verify);
	tcase_add_test(tcase, how_the_client_escaped_does_not_matter);
	tcase_add_loop_test(tcase, header_forms_that_clients_send, 0,
		sizeof well_formed / sizeof well_formed[0]);
	tcase_add_loop_test(
		tcase, malformed_headers_are_refused, 0, sizeof malformed / sizeof malformed[0]);
	tcase_add_loop_test(tcase, canonical_queries, 0, sizeof queries / sizeof queries[0]);
	tcase_add_loop_test(tcase, canonical_paths, 0, sizeof paths / sizeof paths[0]);
	tcase_add_test(tcase, bad_escapes_are_bad_uris);
	tcase_add_test(tcase, a_flood_of_parameters_is_too_large);
	tcase_add_test(tcase, values_are_trimmed_and_their_spaces_joined);
	suite_add_tcase(suite, tcase);
	return suite;
}
