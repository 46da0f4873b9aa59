#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

#include "api/exchange/payload.h"

#define HEX      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define UNSIGNED "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
#define SIGNED   "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"

enum { NO_LENGTH = -1 };

static const struct request {
	const char *name;
	enum method method;
	const char *target;
	bool signs_chunks;
	int length; /* Content-Length; NO_LENGTH: Transfer-Encoding: chunked */
	const char *declared;
	const char *encoding;
	const char *decoded;
	const char *trailer;
	enum error_kind error; /* if none, the fields below: */
	enum payload_rule rule;
	int body_length; /* NO_LENGTH: unknown */
} requests[] = {
	{"plain", METHOD_PUT, "/b/k", false, 9, NULL, NULL, NULL, NULL, ERROR_NONE,
		PAYLOAD_UNSIGNED, 9},
	{"plain of unknown length", METHOD_PUT, "/b/k", false, NO_LENGTH, NULL, NULL, NULL, NULL,
		ERROR_NONE, PAYLOAD_UNSIGNED, NO_LENGTH},
	{"said to be unsigned", METHOD_PUT, "/b/k", true, 9, "UNSIGNED-PAYLOAD", NULL, NULL, NULL,
		ERROR_NONE, PAYLOAD_UNSIGNED, 9},
	{"digest", METHOD_PUT, "/b/k", true, 9, HEX, NULL, NULL, NULL, ERROR_NONE, PAYLOAD_SHA256,
		9},
	{"digest in capitals", METHOD_GET, "/b/k", true, 0,
		"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", NULL, NULL,
		NULL, ERROR_NONE, PAYLOAD_SHA256, 0},
	{"unsigned chunks", METHOD_PUT, "/b/k", true, 30, UNSIGNED, "aws-chunked", "9",
		"x-amz-checksum-crc32", ERROR_NONE, PAYLOAD_CHUNKED, 9},
	{"unsigned chunks, length nowhere", METHOD_PUT, "/b/k", true, NO_LENGTH, UNSIGNED,
		"aws-chunked", NULL, "x-amz-checksum-crc32", ERROR_NONE, PAYLOAD_CHUNKED,
		NO_LENGTH},
	{"unsigned chunks, not said twice", METHOD_PUT, "/b/k", false, 30, UNSIGNED, NULL, "9",
		NULL, ERROR_NONE, PAYLOAD_CHUNKED, 9},
	{"signed chunks", METHOD_PUT, "/b/k", true, 30, SIGNED, "aws-chunked", "9", NULL,
		ERROR_NONE, PAYLOAD_CHUNKED_SIGNED, 9},
	{"signed chunks and trailer", METHOD_PUT, "/b/k", true, 30, SIGNED "-TRAILER",
		"aws-chunked", "9", "x-amz-checksum-sha256", ERROR_NONE,
		PAYLOAD_CHUNKED_SIGNED_TRAILER, 9},
	{"chunks without a keyword", METHOD_PUT, "/b/k", false, 30, NULL, "gzip, AWS-Chunked", "9",
		"x-amz-checksum-crc32", ERROR_NONE, PAYLOAD_CHUNKED, 9},
	{"chunks said to be unsigned", METHOD_PUT, "/b/k", true, 30, "UNSIGNED-PAYLOAD",
		"aws-chunked", "9", NULL, ERROR_NONE, PAYLOAD_CHUNKED, 9},
	{"raw: both lengths agree", METHOD_PUT, "/b/k", true, 9, "UNSIGNED-PAYLOAD", "aws-chunked",
		"9", NULL, ERROR_NONE, PAYLOAD_UNSIGNED, 9},
	{"raw: digest of what comes", METHOD_PUT, "/b/k", true, 9, HEX, "aws-chunked, gzip", NULL,
		NULL, ERROR_NONE, PAYLOAD_SHA256, 9},
	{"no body, nothing to tell", METHOD_PUT, "/b/k", true, 0, NULL, "aws-chunked", NULL, NULL,
		ERROR_NONE, PAYLOAD_UNSIGNED, 0},

	{"encoding without any length", METHOD_PUT, "/b/k", false, 30, NULL, "aws-chunked", NULL,
		NULL, ERROR_INVALID_REQUEST, 0, 0},
	{"the same, said to be unsigned", METHOD_PUT, "/b/k", true, 30, "UNSIGNED-PAYLOAD",
		"aws-chunked", NULL, NULL, ERROR_INVALID_REQUEST, 0, 0},
	{"digest of a framed body", METHOD_PUT, "/b/k", true, 30, HEX, "aws-chunked", "9", NULL,
		ERROR_INVALID_REQUEST, 0, 0},
	{"another length without encoding", METHOD_PUT, "/b/k", true, 30, "UNSIGNED-PAYLOAD", NULL,
		"9", NULL, ERROR_INVALID_REQUEST, 0, 0},
	{"length that is none", METHOD_PUT, "/b/k", true, 30, UNSIGNED, "aws-chunked", "-9", NULL,
		ERROR_INVALID, 0, 0},
	{"trailer of a raw body", METHOD_PUT, "/b/k", true, 9, HEX, NULL, NULL,
		"x-amz-checksum-crc32", ERROR_INVALID_REQUEST, 0, 0},
	{"trailer that is no checksum", METHOD_PUT, "/b/k", true, 30, UNSIGNED, "aws-chunked", "9",
		"x-amz-meta-a", ERROR_INVALID_REQUEST, 0, 0},
	{"two trailers", METHOD_PUT, "/b/k", true, 30, UNSIGNED, "aws-chunked", "9",
		"x-amz-checksum-crc32, x-amz-checksum-sha1", ERROR_INVALID_REQUEST, 0, 0},
	{"trailer where none is signed", METHOD_PUT, "/b/k", true, 30, SIGNED, "aws-chunked", "9",
		"x-amz-checksum-crc32", ERROR_INVALID_REQUEST, 0, 0},
	{"no trailer announced", METHOD_PUT, "/b/k", true, 30, SIGNED "-TRAILER", "aws-chunked",
		"9", NULL, ERROR_INVALID_REQUEST, 0, 0},
	{"signed chunks of nobody", METHOD_PUT, "/b/k", false, 30, SIGNED, "aws-chunked", "9", NULL,
		ERROR_INVALID_REQUEST, 0, 0},
	{"chunks to read with", METHOD_GET, "/b/k", true, 30, UNSIGNED, "aws-chunked", "9", NULL,
		ERROR_INVALID_REQUEST, 0, 0},
	{"chunks of XML", METHOD_PUT, "/b", true, 30, UNSIGNED, "aws-chunked", "9", NULL,
		ERROR_INVALID_REQUEST, 0, 0},
	{"chunks to delete with", METHOD_DELETE, "/b/k", true, 30, SIGNED, "aws-chunked", "9", NULL,
		ERROR_INVALID_REQUEST, 0, 0},
	{"elliptic", METHOD_PUT, "/b/k", true, 30, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
		"aws-chunked", "9", NULL, ERROR_UNSUPPORTED, 0, 0},
	{"elliptic with trailer", METHOD_PUT, "/b/k", true, 30,
		"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER", "aws-chunked", "9", NULL,
		ERROR_UNSUPPORTED, 0, 0},
	{"unknown keyword", METHOD_PUT, "/b/k", true, 30, "STREAMING-NONSENSE", "aws-chunked", "9",
		NULL, ERROR_INVALID, 0, 0},
	{"short digest", METHOD_PUT, "/b/k", true, 9, "e3b0", NULL, NULL, NULL, ERROR_INVALID, 0,
		0},
	{"empty digest", METHOD_PUT, "/b/k", true, 9, "", NULL, NULL, NULL, ERROR_INVALID, 0, 0},
};

static void add_headers(struct fake_exchange *fake, const struct request *request)
{
	const struct {
		const char *name;
		const char *value;
	} headers[] = {{"Content-Encoding", request->encoding},
		{"X-Amz-Decoded-Content-Length", request->decoded},
		{"X-Amz-Trailer", request->trailer}};
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
		if (headers[i].value != NULL)
			fake_exchange_add(fake, headers[i].name, headers[i].value);
	fake->exchange.has_length = request->length != NO_LENGTH;
	fake->exchange.length = request->length != NO_LENGTH ? (uint64_t)request->length : 0;
	fake->exchange.chunked = request->length == NO_LENGTH;
	router_match(&fake->exchange);
	ck_assert_ptr_nonnull(fake->exchange.route);
}

START_TEST(what_the_headers_say)
{
	const struct request *const request = &requests[_i];
	struct fake_exchange *const fake =
		fake_exchange_new(NULL, request->method, request->target);
	const struct exchange *const exchange = &fake->exchange;
	struct error err = {0};
	add_headers(fake, request);
	const int outcome = payload_read(
		&fake->exchange, span_text(request->declared), request->signs_chunks, &err);
	ck_assert_msg(err.kind == request->error && (outcome == 0) == (err.kind == ERROR_NONE),
		"%s: %s %s", request->name, error_kind_name(err.kind), err.text);
	if (outcome == 0) {
		ck_assert_msg(exchange->payload_rule == (int)request->rule, "%s: rule %d",
			request->name, exchange->payload_rule);
		ck_assert_int_eq(exchange->has_body_length, request->body_length != NO_LENGTH);
		ck_assert(!exchange->has_body_length ||
			exchange->body_length == (uint64_t)request->body_length);
		ck_assert_int_eq(
			exchange->trailer_algorithm != CHECKSUM_NONE, request->trailer != NULL);
	}
	fake_exchange_free(fake);
}
END_TEST

Suite *test_payload_suite(void);

Suite *test_payload_suite(void)
{
	Suite *const suite = suite_create("payload");
	TCase *const tcase = tcase_create("payload");
	tcase_add_loop_test(tcase, what_the_headers_say, 0, sizeof requests / sizeof requests[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
