/* LifecycleConfiguration read and printed, and through the router. */
#include "api/s3/bucket/lifecycle_xml.h"

#include <string.h>

#include "tests/unit/api/face_fixture.h"

#define RULE(inside) "<Rule>" inside "</Rule>"
#define ON           "<Status>Enabled</Status>"
#define ALL          "<Filter></Filter>"
#define DAYS(n)      "<Expiration><Days>" n "</Days></Expiration>"
#define RULES(rules)                                                                       \
	"<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" rules \
	"</LifecycleConfiguration>"
#define TAG(k, v) "<Tag><Key>" k "</Key><Value>" v "</Value></Tag>"

/* Rules are printed as they were read. */
static const char *const good[] = {
	RULES(RULE("<ID>a</ID>" ON ALL DAYS("1"))),
	RULES(RULE("<ID>a</ID><Status>Disabled</Status><Prefix>logs/</Prefix>" DAYS("365"))),
	RULES(RULE("<ID>a</ID>" ON "<Prefix></Prefix>" DAYS("1"))),
	RULES(RULE("<ID>a</ID>" ON "<Filter><Prefix>a &amp; b/</Prefix></Filter>" DAYS("1"))),
	RULES(RULE("<ID>a</ID>" ON "<Filter>" TAG("k", "v") "</Filter>" DAYS("1"))),
	RULES(RULE(
		"<ID>a</ID>" ON
		"<Filter><ObjectSizeGreaterThan>500</ObjectSizeGreaterThan></Filter>" DAYS("1"))),
	RULES(RULE("<ID>a</ID>" ON "<Filter><And><Prefix>p</Prefix>" TAG("k", "v")
			TAG("l", "") "<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>6</ObjectSizeLessThan></And></Filter>" DAYS(
				"1"))),
	RULES(RULE("<ID>a</ID>" ON ALL
		   "<Expiration><Date>2030-01-01T00:00:00.000Z</Date></Expiration>")),
	RULES(RULE(
		"<ID>a</ID>" ON ALL
		"<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>")),
	RULES(RULE(
		"<ID>a</ID>" ON ALL
		"<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration>")),
	RULES(RULE(
		"<ID>a</ID>" ON ALL
		"<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays>"
		"<NewerNoncurrentVersions>100</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
		"<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>")),
	RULES(RULE("<ID>a</ID>" ON ALL DAYS("1")) RULE("<ID>b</ID>" ON ALL DAYS("2"))),
};

START_TEST(test_good)
{
	struct arena *const arena = arena_new(256 * 1024);
	struct lifecycle lifecycle;
	struct error err = {0};
	struct buffer out;
	buffer_init(&out, 64 * 1024);
	ck_assert_msg(lifecycle_xml_parse(span_text(good[_i]), arena, &lifecycle, &err) == 0,
		"%s: %s", good[_i], err.text);
	lifecycle_xml_print(&lifecycle, &out);
	ck_assert_msg(strstr(buffer_text(&out), good[_i]) != NULL, "%s became %s", good[_i],
		buffer_text(&out));
	buffer_release(&out);
	arena_free(arena);
}
END_TEST

static const struct {
	const char *xml;
	enum error_kind kind;
} bad[] = {
	{"", ERROR_MALFORMED_XML},
	{"<Other/>", ERROR_MALFORMED_XML},
	{RULES(""), ERROR_MALFORMED_XML},
	{RULES(RULE(ON DAYS("1"))), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL "<Prefix/>" DAYS("1"))), ERROR_MALFORMED_XML},
	{RULES(RULE(ALL DAYS("1"))), ERROR_MALFORMED_XML},
	{RULES(RULE("<Status>enabled</Status>" ALL DAYS("1"))), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL DAYS("1") "<Other/>")), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL DAYS("1") DAYS("2"))), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL "<Expiration/>")), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL
		 "<Expiration><Days>1</Days><Date>2030-01-01T00:00:00Z</Date></Expiration>")),
		ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL "<Expiration><Date>20300101</Date></Expiration>")), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL
		 "<Expiration><ExpiredObjectDeleteMarker>1</ExpiredObjectDeleteMarker></Expiration>")),
		ERROR_MALFORMED_XML},
	{RULES(RULE(ON "<Filter><Prefix>a</Prefix>" TAG("k", "v") "</Filter>" DAYS("1"))),
		ERROR_MALFORMED_XML},
	{RULES(RULE(ON "<Filter><And><And/></And></Filter>" DAYS("1"))), ERROR_MALFORMED_XML},
	{RULES(RULE(ON ALL DAYS("0"))), ERROR_INVALID},
	{RULES(RULE(ON ALL DAYS("-1"))), ERROR_INVALID},
	{RULES(RULE(ON ALL DAYS("x"))), ERROR_INVALID},
	{RULES(RULE(ON ALL DAYS("99999999999"))), ERROR_INVALID},
	{RULES(RULE(ON ALL "<Expiration><Date>2030-01-01T01:00:00Z</Date></Expiration>")),
		ERROR_INVALID},
	{RULES(RULE("<ID>a</ID>" ON ALL DAYS("1")) RULE("<ID>a</ID>" ON ALL DAYS("2"))),
		ERROR_INVALID},
	{RULES(RULE(ON ALL "<NoncurrentVersionExpiration/>")), ERROR_INVALID},
	{RULES(RULE(ON ALL
		 "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>101</NewerNoncurrentVersions>"
		 "</NoncurrentVersionExpiration>")),
		ERROR_INVALID},
	{RULES(RULE(ON ALL "<AbortIncompleteMultipartUpload/>")), ERROR_INVALID},
	{RULES(RULE(ON "<Filter><ObjectSizeLessThan>x</ObjectSizeLessThan></Filter>" DAYS("1"))),
		ERROR_INVALID},
	{RULES(RULE(ON ALL)), ERROR_INVALID_REQUEST},
	{RULES(RULE(ON
		 "<Filter><And><ObjectSizeGreaterThan>6</ObjectSizeGreaterThan><ObjectSizeLessThan>6</ObjectSizeLessThan></And></Filter>" DAYS(
			 "1"))),
		ERROR_INVALID_REQUEST},
	{RULES(RULE(ON "<Filter>" TAG("k",
		 "v") "</Filter>"
		      "<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>")),
		ERROR_INVALID_REQUEST},
	{RULES(RULE(ON "<Filter>" TAG("k",
		 "v") "</Filter><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>")),
		ERROR_INVALID_REQUEST},
	{RULES(RULE(ON "<Filter><And>" TAG("k", "v") TAG("k", "w") "</And></Filter>" DAYS("1"))),
		ERROR_BAD_TAG},
	{RULES(RULE(ON "<Filter>" TAG("", "v") "</Filter>" DAYS("1"))), ERROR_BAD_TAG},
	{RULES(RULE(ON ALL
		 "<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>")),
		ERROR_UNSUPPORTED},
	{RULES(RULE(ON ALL DAYS("1") "<NoncurrentVersionTransition/>")), ERROR_UNSUPPORTED},
};

START_TEST(test_bad)
{
	struct arena *const arena = arena_new(256 * 1024);
	struct lifecycle lifecycle;
	struct error err = {0};
	ck_assert_int_eq(lifecycle_xml_parse(span_text(bad[_i].xml), arena, &lifecycle, &err), -1);
	ck_assert_msg(err.kind == bad[_i].kind, "%s: %s", bad[_i].xml, err.text);
	arena_free(arena);
}
END_TEST

START_TEST(test_ids)
{
	struct arena *const arena = arena_new(256 * 1024);
	struct lifecycle lifecycle;
	struct error err = {0};
	struct buffer xml;
	ck_assert_int_eq(
		lifecycle_xml_parse(span_text(RULES(RULE(ON ALL DAYS("1")) RULE(ON ALL DAYS("1")))),
			arena, &lifecycle, &err),
		0);
	ck_assert_uint_eq(lifecycle.rules[0].id.len, 32);
	ck_assert(!span_equal(lifecycle.rules[0].id, lifecycle.rules[1].id));
	for (unsigned len = 255; len <= 256; len++) {
		buffer_init(&xml, 64 * 1024);
		buffer_add_text(&xml, "<LifecycleConfiguration><Rule><ID>");
		for (unsigned i = 0; i < len; i++)
			buffer_add_byte(&xml, 'x');
		buffer_add_text(&xml, "</ID>" ON ALL DAYS("1") "</Rule></LifecycleConfiguration>");
		ck_assert_int_eq(lifecycle_xml_parse(buffer_span(&xml), arena, &lifecycle, &err),
			len == 255 ? 0 : -1);
		buffer_release(&xml);
	}
	ck_assert_int_eq(err.kind, ERROR_INVALID);
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

START_TEST(test_settings)
{
	static const char rules[] = RULES(RULE("<ID>a</ID>" ON ALL DAYS("1")));
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/bkt?lifecycle", NULL, NULL,
		"<Code>NoSuchLifecycleConfiguration</Code>");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?lifecycle", NULL, rules);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?lifecycle", NULL, NULL, rules);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?lifecycle", NULL,
		RULES(RULE(ON ALL DAYS("0"))), "<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?lifecycle", NULL, RULES(""),
		"<Code>MalformedXML</Code>");
	face_fixture_expect_text(&fixture, 501, METHOD_PUT, "/bkt?lifecycle", NULL,
		RULES(RULE(ON ALL "<Transition/>")), "<Code>NotImplemented</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?lifecycle", NULL, NULL, rules);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?lifecycle", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?lifecycle", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt?lifecycle", NULL, NULL);
}
END_TEST

static void expect_expiration(enum method method, const char *target, const char *rule)
{
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 200, method, target, NULL, method == METHOD_PUT ? "text" : NULL);
	const char *const header = fake_exchange_reply_header(fake, "x-amz-expiration");
	ck_assert_msg((header != NULL) == (rule != NULL), "%s: %s", target,
		header != NULL ? header : "(none)");
	if (rule != NULL)
		ck_assert_msg(strstr(header, "expiry-date=\"") == header &&
				strstr(header, " 00:00:00 GMT\"") != NULL &&
				strstr(header, rule) != NULL,
			"%s", header);
	fake_exchange_free(fake);
}

START_TEST(test_expiration_header)
{
	expect_expiration(METHOD_PUT, "/bkt/logs/a", NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?lifecycle", NULL,
		RULES(RULE("<ID>the rule</ID>" ON
			   "<Filter><Prefix>logs/</Prefix></Filter>" DAYS("2"))));
	expect_expiration(METHOD_GET, "/bkt/logs/a", "rule-id=\"the%20rule\"");
	expect_expiration(METHOD_HEAD, "/bkt/logs/a", "rule-id=\"the%20rule\"");
	expect_expiration(METHOD_PUT, "/bkt/logs/b", "rule-id=\"the%20rule\"");
	expect_expiration(METHOD_PUT, "/bkt/other", NULL);
	expect_expiration(METHOD_GET, "/bkt/other", NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?lifecycle", NULL, NULL);
	expect_expiration(METHOD_GET, "/bkt/logs/a", NULL);
}
END_TEST

Suite *test_s3_lifecycle_suite(void);
Suite *test_s3_lifecycle_suite(void)
{
	Suite *const suite = suite_create("s3_lifecycle");
	TCase *const xml = tcase_create("xml");
	tcase_add_loop_test(xml, test_good, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(xml, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(xml, test_ids);
	suite_add_tcase(suite, xml);
	TCase *const requests = tcase_create("requests");
	tcase_add_checked_fixture(requests, setup, teardown);
	tcase_set_timeout(requests, 60);
	tcase_add_test(requests, test_settings);
	tcase_add_test(requests, test_expiration_header);
	suite_add_tcase(suite, requests);
	return suite;
}
