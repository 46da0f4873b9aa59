/* CORS rules alone, and preflights and headers through the router. */
#include "api/s3/bucket/cors_rules.h"

#include <string.h>

#include "tests/unit/api/face_fixture.h"

#define RULE(inside) "<CORSRule>" inside "</CORSRule>"
#define CORS(rules)                                                                   \
	"<CORSConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" rules \
	"</CORSConfiguration>"
#define O(origin) "<AllowedOrigin>" origin "</AllowedOrigin>"
#define M(method) "<AllowedMethod>" method "</AllowedMethod>"
#define H(header) "<AllowedHeader>" header "</AllowedHeader>"
#define E(header) "<ExposeHeader>" header "</ExposeHeader>"

static const char rules_text[] = CORS(RULE("<ID>first</ID>" O("*suffix") M("GET"))
		RULE(O("start*end") O("https://exact.example") M("GET") M("PUT") H("x-amz-*")
				H("Content-Type") E("ETag") "<MaxAgeSeconds>600</MaxAgeSeconds>")
			RULE(O("*.delete") M("DELETE") H("*")));

/* `rule` is the index of the rule that matches; -1: none. */
static const struct {
	const char *origin;
	const char *method;
	const char *headers;
	int rule;
} matches[] = {
	{"foo.suffix", "GET", "", 0},
	{"suffix", "GET", "", 0},
	{"foo.suffix", "PUT", "", -1},
	{"foo.suffix", "GET", "x-amz-date", -1},
	{"foo.suffix.bar", "GET", "", -1},
	{"startend", "GET", "", 1},
	{"start1end", "PUT", "X-Amz-Date, content-type", 1},
	{"start1end", "PUT", "X-Amz-Date,authorization", -1},
	{"starend", "GET", "", -1},
	{"https://exact.example", "GET", "", 1},
	{"https://exact.example:444", "GET", "", -1},
	{"HTTPS://exact.example", "GET", "", -1},
	{"a.delete", "DELETE", "anything, else", 2},
	{"a.delete", "delete", "", -1},
	{"", "GET", "", -1},
};

START_TEST(test_match)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct cors_rules rules;
	struct error err = {0};
	ck_assert_int_eq(cors_rules_parse(span_text(rules_text), arena, &rules, &err), 0);
	ck_assert_uint_eq(rules.count, 3);
	const struct cors_rule *const rule = cors_rules_match(&rules, span_text(matches[_i].origin),
		span_text(matches[_i].method), span_text(matches[_i].headers));
	ck_assert_int_eq(rule == NULL ? -1 : (int)(rule - rules.rules), matches[_i].rule);
	arena_free(arena);
}
END_TEST

START_TEST(test_print)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct cors_rules rules;
	struct error err = {0};
	struct buffer out;
	buffer_init(&out, 64 * 1024);
	ck_assert_int_eq(cors_rules_parse(span_text(rules_text), arena, &rules, &err), 0);
	cors_rules_print(&rules, &out);
	ck_assert_ptr_nonnull(strstr(buffer_text(&out), rules_text));
	buffer_release(&out);
	arena_free(arena);
}
END_TEST

static const struct {
	const char *xml;
	enum error_kind kind;
} bad[] = {
	{CORS(""), ERROR_MALFORMED_XML},
	{CORS(RULE("")), ERROR_MALFORMED_XML},
	{CORS(RULE(O("*"))), ERROR_MALFORMED_XML},
	{CORS(RULE(M("GET"))), ERROR_MALFORMED_XML},
	{CORS(RULE(O("") M("GET"))), ERROR_MALFORMED_XML},
	{CORS(RULE(O("a&#10;b") M("GET"))), ERROR_MALFORMED_XML},
	{CORS(RULE(O("*") M("GET") "<Other/>")), ERROR_MALFORMED_XML},
	{CORS(RULE(O("*") M("GET") "<MaxAgeSeconds>-x</MaxAgeSeconds>")), ERROR_MALFORMED_XML},
	{CORS(RULE(O("*") M("GET") "<MaxAgeSeconds>2147483648</MaxAgeSeconds>")),
		ERROR_MALFORMED_XML},
	{CORS(RULE(O("*.*") M("GET"))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M("OPTIONS"))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M("get"))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M(""))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M("GET") H("a b"))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M("GET") H("*-*"))), ERROR_INVALID_REQUEST},
	{CORS(RULE(O("*") M("GET") E("x-*"))), ERROR_INVALID_REQUEST},
	{"<Other/>", ERROR_MALFORMED_XML},
};

START_TEST(test_bad)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct cors_rules rules;
	struct error err = {0};
	ck_assert(cors_rules_parse(span_text(bad[_i].xml), arena, &rules, &err) == -1 ||
		cors_rules_check(&rules, &err) == -1);
	ck_assert_msg(err.kind == bad[_i].kind, "%s: %s", bad[_i].xml, err.text);
	arena_free(arena);
}
END_TEST

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void put_rules(const char *xml)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?cors", NULL, xml);
	fixture.token = asker;
}

START_TEST(test_settings)
{
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/bkt?cors", NULL, NULL,
		"<Code>NoSuchCORSConfiguration</Code>");
	put_rules(rules_text);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?cors", NULL, NULL, rules_text);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?cors", NULL, CORS(""),
		"<Code>MalformedXML</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?cors", NULL,
		CORS(RULE(O("*") M("PATCH"))), "<Code>InvalidRequest</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?cors", NULL, NULL, rules_text);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?cors", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt?cors", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_PUT, "/nope?cors", NULL, rules_text);
}
END_TEST

static const struct {
	const char *origin;
	const char *method;
	const char *headers;
	int status;
	const char *code;
} preflights[] = {
	{NULL, NULL, NULL, 400, "BadRequest"},
	{"foo.suffix", NULL, NULL, 400, "BadRequest"},
	{"foo.suffix", "GET", NULL, 200, NULL},
	{"foo.suffix", "PUT", NULL, 403, "AccessForbidden"},
	{"foo.bar", "GET", NULL, 403, "AccessForbidden"},
	{"start-end", "PUT", "x-amz-acl, content-type", 200, NULL},
	{"start-end", "PUT", "x-other", 403, "AccessForbidden"},
};

START_TEST(test_preflight)
{
	static const char *const targets[] = {
		"/bkt", "/bkt/a/key", "/bkt/key?partNumber=1&uploadId=x"};
	put_rules(rules_text);
	fixture.token = NULL;
	for (size_t i = 0; i < 3; i++) {
		struct fake_exchange *const fake =
			fake_exchange_new(&fixture.context, METHOD_OPTIONS, targets[i]);
		if (preflights[_i].origin != NULL)
			fake_exchange_add(fake, "Origin", preflights[_i].origin);
		if (preflights[_i].method != NULL)
			fake_exchange_add(
				fake, "Access-Control-Request-Method", preflights[_i].method);
		if (preflights[_i].headers != NULL)
			fake_exchange_add(
				fake, "Access-Control-Request-Headers", preflights[_i].headers);
		const int status = fake_exchange_run(fake, span_text(""));
		ck_assert_int_eq(status, preflights[_i].status);
		if (status == 200)
			face_fixture_assert_header(
				fake, "Access-Control-Allow-Headers", preflights[_i].headers);
		else
			face_fixture_assert_holds(fake, preflights[_i].code);
		face_fixture_assert_header(fake, "Access-Control-Allow-Origin",
			status == 200 ? preflights[_i].origin : NULL);
		fake_exchange_free(fake);
	}
}
END_TEST

START_TEST(test_preflight_without_rules)
{
	const char *const *const headers =
		HEADERS("Origin", "https://x", "Access-Control-Request-Method", "GET");
	fixture.token = NULL;
	face_fixture_expect_text(&fixture, 403, METHOD_OPTIONS, "/bkt/k", headers, NULL,
		"<Code>AccessForbidden</Code>");
	face_fixture_expect_text(&fixture, 404, METHOD_OPTIONS, "/nope/k", headers, NULL,
		"<Code>NoSuchBucket</Code>");
	face_fixture_expect(&fixture, 405, METHOD_OPTIONS, "/", headers, NULL);
}
END_TEST

START_TEST(test_replies)
{
	const char *const *const from_end = HEADERS("Origin", "start-end");
	put_rules(rules_text);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k", NULL, "text");
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k", from_end, NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", "start-end");
	face_fixture_assert_header(fake, "Access-Control-Allow-Credentials", "true");
	face_fixture_assert_header(fake, "Access-Control-Allow-Methods", "GET, PUT");
	face_fixture_assert_header(fake, "Access-Control-Expose-Headers", "ETag");
	face_fixture_assert_header(fake, "Access-Control-Max-Age", "600");
	fake_exchange_free(fake);
	/* Errors have the headers too, also for unknown and anonymous callers. */
	fake = face_fixture_ask(&fixture, 404, METHOD_GET, "/bkt/absent", from_end, NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", "start-end");
	fake_exchange_free(fake);
	fixture.token = "no such token";
	fake = face_fixture_ask(&fixture, 403, METHOD_GET, "/bkt/k", from_end, NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", "start-end");
	fake_exchange_free(fake);
	fixture.token = NULL;
	fake = face_fixture_ask(&fixture, 403, METHOD_DELETE, "/bkt/k", from_end, NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", NULL);
	fake_exchange_free(fake);
	fixture.token = face_fixture_root_token;
	fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/bkt/k", HEADERS("Origin", "https://elsewhere"), NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", NULL);
	fake_exchange_free(fake);
	put_rules(CORS(RULE(O("*") M("GET"))));
	fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/bkt/k", HEADERS("Origin", "https://elsewhere"), NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", "*");
	face_fixture_assert_header(fake, "Access-Control-Allow-Credentials", NULL);
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_assert_header(fake, "Access-Control-Allow-Origin", NULL);
	face_fixture_assert_header(fake, "Vary", NULL);
	fake_exchange_free(fake);
}
END_TEST

Suite *test_s3_cors_suite(void);
Suite *test_s3_cors_suite(void)
{
	Suite *const suite = suite_create("s3_cors");
	TCase *const rules = tcase_create("rules");
	tcase_add_loop_test(rules, test_match, 0, sizeof(matches) / sizeof(matches[0]));
	tcase_add_test(rules, test_print);
	tcase_add_loop_test(rules, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	suite_add_tcase(suite, rules);
	TCase *const requests = tcase_create("requests");
	tcase_add_checked_fixture(requests, setup, teardown);
	tcase_set_timeout(requests, 60);
	tcase_add_test(requests, test_settings);
	tcase_add_loop_test(
		requests, test_preflight, 0, sizeof(preflights) / sizeof(preflights[0]));
	tcase_add_test(requests, test_preflight_without_rules);
	tcase_add_test(requests, test_replies);
	suite_add_tcase(suite, requests);
	return suite;
}
