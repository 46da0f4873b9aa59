/* Versioning, tags, ownership, public access and the settings that this server does not have,
 * through the router over a real store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/s3/bucket/bucket_fixed.h"

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
#define XMLNS        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static void put(int status, const char *target, const char *body)
{
	face_fixture_expect(&fixture, status, METHOD_PUT, target, NULL, body);
}

static void get_holds(int status, const char *target, const char *text)
{
	face_fixture_expect_text(&fixture, status, METHOD_GET, target, NULL, NULL, text);
}

#define STATUS(status) \
	"<VersioningConfiguration " XMLNS "><Status>" status "</Status></VersioningConfiguration>"

START_TEST(test_versioning)
{
	get_holds(200, "/bkt?versioning",
		"<VersioningConfiguration " XMLNS "></VersioningConfiguration>");
	put(200, "/bkt?versioning", STATUS("Enabled"));
	get_holds(200, "/bkt?versioning", "<Status>Enabled</Status>");
	put(200, "/bkt?versioning",
		"<VersioningConfiguration><MfaDelete>Disabled</MfaDelete><Status>Suspended</Status></VersioningConfiguration>");
	get_holds(200, "/bkt?versioning", "<Status>Suspended</Status>");
	get_holds(404, "/nope?versioning", "<Code>NoSuchBucket</Code>");
	put(404, "/nope?versioning", STATUS("Enabled"));
}
END_TEST

static const struct {
	const char *body;
	int status;
	const char *code;
} bad_versioning[] = {
	{STATUS("enabled"), 400, "MalformedXML"},
	{STATUS(""), 400, "MalformedXML"},
	{"<VersioningConfiguration/>", 400, "IllegalVersioningConfigurationException"},
	{"<VersioningConfiguration><Status>Enabled</Status><Status>Enabled</Status></VersioningConfiguration>",
		400, "MalformedXML"},
	{"<VersioningConfiguration><Other/></VersioningConfiguration>", 400, "MalformedXML"},
	{"<VersioningConfiguration><MfaDelete>Enabled</MfaDelete><Status>Enabled</Status></VersioningConfiguration>",
		501, "NotImplemented"},
	{"", 400, "MalformedXML"},
};

START_TEST(test_bad_versioning)
{
	struct fake_exchange *const fake = face_fixture_ask(&fixture, bad_versioning[_i].status,
		METHOD_PUT, "/bkt?versioning", NULL, bad_versioning[_i].body);
	face_fixture_assert_holds(fake, bad_versioning[_i].code);
	fake_exchange_free(fake);
	get_holds(200, "/bkt?versioning",
		"<VersioningConfiguration " XMLNS "></VersioningConfiguration>");
}
END_TEST

START_TEST(test_body_is_verified)
{
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?versioning",
		HEADERS("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="), STATUS("Enabled"),
		"<Code>BadDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?versioning",
		HEADERS("Content-MD5", "nonsense"), STATUS("Enabled"),
		"<Code>InvalidDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?versioning",
		HEADERS("x-amz-checksum-crc32", "AAAAAA=="), STATUS("Enabled"),
		"<Code>BadDigest</Code>");
	get_holds(200, "/bkt?versioning",
		"<VersioningConfiguration " XMLNS "></VersioningConfiguration>");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?versioning",
		HEADERS("x-amz-checksum-crc32", "pkhA4A==", "x-amz-expected-bucket-owner", "main"),
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>");
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt?versioning",
		HEADERS("x-amz-expected-bucket-owner", "other"), STATUS("Suspended"));
	get_holds(200, "/bkt?versioning", "<Status>Enabled</Status>");
}
END_TEST

#define TAG(key, value) "<Tag><Key>" key "</Key><Value>" value "</Value></Tag>"
#define TAGGING(tags)   "<Tagging " XMLNS "><TagSet>" tags "</TagSet></Tagging>"

START_TEST(test_tagging)
{
	get_holds(404, "/bkt?tagging", "<Code>NoSuchTagSet</Code>");
	put(200, "/bkt?tagging", TAGGING(TAG("team", "rl") TAG("a @ b", "")));
	get_holds(200, "/bkt?tagging", TAGGING(TAG("a @ b", "") TAG("team", "rl")));
	put(200, "/bkt?tagging", TAGGING(TAG("k", "v")));
	get_holds(200, "/bkt?tagging", TAGGING(TAG("k", "v")));
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?tagging", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?tagging", NULL, NULL);
	get_holds(404, "/bkt?tagging", "<Code>NoSuchTagSet</Code>");
	face_fixture_expect(&fixture, 404, METHOD_DELETE, "/nope?tagging", NULL, NULL);
	/* A bucket's settings end with it: a new bucket of its name has none. */
	put(200, "/bkt?tagging", TAGGING(TAG("k", "v")));
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt", NULL, NULL);
	put(200, "/bkt", NULL);
	get_holds(404, "/bkt?tagging", "<Code>NoSuchTagSet</Code>");
}
END_TEST

static const char *const bad_tags[] = {TAGGING(TAG("k", "1") TAG("k", "2")), TAGGING(TAG("", "v")),
	TAGGING(TAG("aws:x", "v")), TAGGING("<Tag><Key>k</Key></Tag>"), TAGGING("<Other/>"),
	"<Tagging/>", "<Tagging><TagSet/><TagSet/></Tagging>"};

START_TEST(test_bad_tagging)
{
	put(400, "/bkt?tagging", bad_tags[_i]);
	get_holds(404, "/bkt?tagging", "<Code>NoSuchTagSet</Code>");
}
END_TEST

START_TEST(test_many_tags)
{
	struct buffer body;
	for (unsigned count = 50; count <= 51; count++) {
		buffer_init(&body, 64 * 1024);
		buffer_add_text(&body, "<Tagging><TagSet>");
		for (unsigned i = 0; i < count; i++)
			buffer_format(&body, TAG("k%u", "v"), i);
		buffer_add_text(&body, "</TagSet></Tagging>");
		put(count == 50 ? 200 : 400, "/bkt?tagging", buffer_text(&body));
		buffer_release(&body);
	}
	get_holds(200, "/bkt?tagging", "<Key>k49</Key>");
}
END_TEST

START_TEST(test_created_with_settings)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/made",
		HEADERS("x-amz-acl", "public-read", "x-amz-object-ownership", "ObjectWriter",
			"x-deltabucket-etag", "fast"),
		"<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint><Tags>" TAG(
			"k", "v") "</Tags></CreateBucketConfiguration>");
	get_holds(200, "/made?tagging", TAG("k", "v"));
	get_holds(
		200, "/made?ownershipControls", "<ObjectOwnership>ObjectWriter</ObjectOwnership>");
	get_holds(200, "/made?acl", "AllUsers");
	get_holds(200, "/-/buckets/made", "\"etag\":\"fast\"");
	/* Creating it again changes nothing. */
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/made", HEADERS("x-amz-acl", "private"), NULL);
	get_holds(200, "/made?acl", "AllUsers");
	get_holds(200, "/made?tagging", TAG("k", "v"));
}
END_TEST

START_TEST(test_etag_policy)
{
	get_holds(200, "/-/buckets/bkt", "\"etag\":\"default\",\"etag_in_use\":\"md5\"");
	put(200, "/-/buckets/bkt", "{\"etag\": \"fast\"}");
	get_holds(200, "/-/buckets/bkt", "\"namespace\":\"main\"");
	get_holds(200, "/-/buckets/bkt",
		"\"versioning\":\"never\",\"etag\":\"fast\",\"etag_in_use\":\"fast\"");
	put(400, "/-/buckets/bkt", "{\"etag\": \"sha1\"}");
	put(400, "/-/buckets/bkt", "{}");
	put(400, "/-/buckets/bkt", "{\"etag\": \"md5\", \"other\": 1}");
	put(400, "/-/buckets/bkt", "[\"md5\"]");
	put(404, "/-/buckets/nope", "{\"etag\": \"md5\"}");
	get_holds(404, "/-/buckets/nope", "no_bucket");
	fixture.token = face_fixture_key(&fixture, "other", NULL);
	get_holds(403, "/-/buckets/bkt", "denied");
	put(403, "/-/buckets/bkt", "{\"etag\": \"md5\"}");
	fixture.token = NULL;
	get_holds(401, "/-/buckets/bkt", "no_credentials");
}
END_TEST

#define OWNERSHIP(value)                                             \
	"<OwnershipControls " XMLNS "><Rule><ObjectOwnership>" value \
	"</ObjectOwnership></Rule></OwnershipControls>"

START_TEST(test_ownership)
{
	get_holds(404, "/bkt?ownershipControls", "<Code>OwnershipControlsNotFoundError</Code>");
	put(400, "/bkt?ownershipControls", OWNERSHIP("Nobody"));
	put(200, "/bkt?ownershipControls", OWNERSHIP("BucketOwnerEnforced"));
	get_holds(200, "/bkt?ownershipControls", OWNERSHIP("BucketOwnerEnforced"));
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?acl",
		HEADERS("x-amz-acl", "public-read"), NULL,
		"<Code>AccessControlListNotSupported</Code>");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt?acl", HEADERS("x-amz-acl", "private"), NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?ownershipControls", NULL, NULL);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt?acl", HEADERS("x-amz-acl", "public-read"), NULL);
}
END_TEST

START_TEST(test_public_access_block)
{
	static const char body[] =
		"<PublicAccessBlockConfiguration " XMLNS "><BlockPublicAcls>TRUE</BlockPublicAcls>"
		"<RestrictPublicBuckets>false</RestrictPublicBuckets></PublicAccessBlockConfiguration>";
	get_holds(
		404, "/bkt?publicAccessBlock", "<Code>NoSuchPublicAccessBlockConfiguration</Code>");
	put(400, "/bkt?publicAccessBlock",
		"<PublicAccessBlockConfiguration><BlockPublicAcls>yes</BlockPublicAcls></PublicAccessBlockConfiguration>");
	put(200, "/bkt?publicAccessBlock", body);
	get_holds(200, "/bkt?publicAccessBlock",
		"<BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>false</IgnorePublicAcls>"
		"<BlockPublicPolicy>false</BlockPublicPolicy><RestrictPublicBuckets>false</RestrictPublicBuckets>");
	face_fixture_expect(
		&fixture, 403, METHOD_PUT, "/bkt?acl", HEADERS("x-amz-acl", "public-read"), NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt?publicAccessBlock", NULL, NULL);
	get_holds(
		404, "/bkt?publicAccessBlock", "<Code>NoSuchPublicAccessBlockConfiguration</Code>");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt?acl", HEADERS("x-amz-acl", "public-read"), NULL);
}
END_TEST

/* A GET answers as its row says, and a PUT of the same document succeeds where the row says so. */
START_TEST(test_fixed)
{
	size_t count;
	const struct bucket_fixed *const rows = bucket_fixed_rows(&count);
	put(200, "/bkt/k", "x");
	for (size_t i = 0; i < count; i++) {
		char target[64];
		snprintf(target, sizeof(target), "/bkt%s?%s", rows[i].on_objects ? "/k" : "",
			rows[i].query);
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, rows[i].status, METHOD_GET, target, NULL, NULL);
		face_fixture_assert_holds(fake, rows[i].root != NULL ? rows[i].root : rows[i].code);
		put(rows[i].takes_same ? 200 : 501, target,
			rows[i].root != NULL ? buffer_text(&fake->body) : "<Any/>");
		fake_exchange_free(fake);
		if (!rows[i].on_objects)
			face_fixture_expect(&fixture, rows[i].drops ? 204 : 501, METHOD_DELETE,
				target, NULL, NULL);
		snprintf(target, sizeof(target), "/nope%s?%s", rows[i].on_objects ? "/k" : "",
			rows[i].query);
		face_fixture_expect(&fixture, 404, METHOD_GET, target, NULL, NULL);
		put(404, target, "<Any/>");
	}
	get_holds(404, "/bkt?inventory&id=x", "<Code>NoSuchConfiguration</Code>");
	face_fixture_expect(&fixture, 404, METHOD_DELETE, "/bkt?metrics&id=x", NULL, NULL);
	put(501, "/bkt?requestPayment",
		"<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>");
	put(501, "/bkt?logging", "<BucketLoggingStatus><LoggingEnabled/></BucketLoggingStatus>");
	put(400, "/bkt?logging", "<Other/>");
}
END_TEST

/* Callers that may list or read a bucket may still not see its settings. */
START_TEST(test_settings_are_the_owners)
{
	const struct grant whole = {span_text("bkt"), span_text(""),
		PERMISSION_READ | PERMISSION_LIST | PERMISSION_WRITE};
	const struct grant part = {span_text("bkt"), span_text("x/"),
		PERMISSION_READ | PERMISSION_LIST | PERMISSION_ADMIN};
	const char *const whole_token = face_fixture_key(&fixture, "other", &whole);
	const char *const part_token = face_fixture_key(&fixture, "other", &part);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt?acl", HEADERS("x-amz-acl", "public-read"), NULL);
	fixture.token = NULL;
	get_holds(403, "/bkt?versioning", "AccessDenied");
	get_holds(403, "/bkt?acl", "AccessDenied");
	fixture.token = whole_token;
	get_holds(200, "/bkt?versioning", "VersioningConfiguration");
	put(403, "/bkt?versioning", STATUS("Enabled"));
	fixture.token = part_token;
	get_holds(403, "/bkt?versioning", "AccessDenied");
	put(403, "/bkt?versioning", STATUS("Enabled"));
}
END_TEST

Suite *test_s3_bucket_settings_suite(void);
Suite *test_s3_bucket_settings_suite(void)
{
	Suite *const suite = suite_create("s3_bucket_settings");
	TCase *const settings = tcase_create("settings");
	tcase_add_checked_fixture(settings, setup, teardown);
	tcase_set_timeout(settings, 60);
	tcase_add_test(settings, test_versioning);
	tcase_add_loop_test(settings, test_bad_versioning, 0,
		sizeof(bad_versioning) / sizeof(bad_versioning[0]));
	tcase_add_test(settings, test_body_is_verified);
	tcase_add_test(settings, test_tagging);
	tcase_add_loop_test(settings, test_bad_tagging, 0, sizeof(bad_tags) / sizeof(bad_tags[0]));
	tcase_add_test(settings, test_many_tags);
	tcase_add_test(settings, test_created_with_settings);
	tcase_add_test(settings, test_etag_policy);
	tcase_add_test(settings, test_ownership);
	tcase_add_test(settings, test_public_access_block);
	tcase_add_test(settings, test_fixed);
	tcase_add_test(settings, test_settings_are_the_owners);
	suite_add_tcase(suite, settings);
	return suite;
}
