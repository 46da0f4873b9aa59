/* CreateBucket, HeadBucket, GetBucketLocation, ListBuckets and DeleteBucket through the router,
 * over a real store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

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

START_TEST(test_create)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_PUT, "/new.bucket-1", NULL, NULL);
	face_fixture_assert_header(fake, "Location", "/new.bucket-1");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 200, METHOD_HEAD, "/new.bucket-1", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_HEAD, "/new.bucket-1/", NULL, NULL);
	/* The account has this bucket already. */
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/new.bucket-1", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/new.bucket-1/",
		HEADERS("x-amz-acl", "private", "x-amz-bucket-object-lock-enabled", "false"), NULL);
}
END_TEST

START_TEST(test_create_of_another_account)
{
	const char *const other = face_fixture_key(&fixture, "other", NULL);
	fixture.token = other;
	face_fixture_expect_text(
		&fixture, 409, METHOD_PUT, "/bkt", NULL, NULL, "<Code>BucketAlreadyExists</Code>");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/others", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/other--mine", NULL, NULL);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/main--mine", NULL, NULL,
		"<Code>InvalidBucketName</Code>");
	face_fixture_expect(&fixture, 403, METHOD_HEAD, "/bkt", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_DELETE, "/bkt", NULL, NULL);
}
END_TEST

static const char *const bad_names[] = {"/ab", "/Upper", "/under_score", "/dash-", "/-dash",
	"/two..dots", "/10.0.0.1", "/xn--x", "/health"};

START_TEST(test_bad_name)
{
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, bad_names[_i], NULL, NULL,
		"<Code>InvalidBucketName</Code>");
	face_fixture_expect(&fixture, 404, METHOD_HEAD, bad_names[_i], NULL, NULL);
}
END_TEST

#define CONFIGURATION(inside)                                                                  \
	"<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" inside \
	"</CreateBucketConfiguration>"

START_TEST(test_create_body)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/located", NULL,
		CONFIGURATION("<LocationConstraint>eu-west-1</LocationConstraint>"));
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/empty-body", NULL, CONFIGURATION(""));
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bad1", NULL,
		"<CreateBucketConfiguration>", "<Code>MalformedXML</Code>");
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, "/bad2", NULL, "<Other/>", "<Code>MalformedXML</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bad3", NULL,
		"<!DOCTYPE x><CreateBucketConfiguration/>", "<Code>MalformedXML</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bad4", NULL,
		CONFIGURATION(
			"<LocationConstraint>"
			"a-region-whose-name-is-so-long-that-nobody-could-mean-it-in-earnest-today</LocationConstraint>"),
		"<Code>InvalidLocationConstraint</Code>");
	face_fixture_expect(
		&fixture, 400, METHOD_PUT, "/bad5", NULL, CONFIGURATION("<Tags><Tag/></Tags>"));
	face_fixture_expect(&fixture, 400, METHOD_PUT, "/bad5", NULL, CONFIGURATION("<Other/>"));
	face_fixture_expect(&fixture, 501, METHOD_PUT, "/bad6",
		HEADERS("x-amz-acl", "log-delivery-write"), NULL);
	face_fixture_expect(
		&fixture, 400, METHOD_PUT, "/bad6", HEADERS("x-amz-acl", "nonsense"), NULL);
	face_fixture_expect(
		&fixture, 501, METHOD_PUT, "/bad6", HEADERS("x-amz-grant-read", "id=main"), NULL);
	face_fixture_expect(
		&fixture, 400, METHOD_PUT, "/bad6", HEADERS("x-deltabucket-etag", "sha1"), NULL);
	face_fixture_expect(&fixture, 400, METHOD_PUT, "/bad6",
		HEADERS("x-amz-object-ownership", "Nobody"), NULL);
	face_fixture_expect(&fixture, 400, METHOD_PUT, "/bad6",
		HEADERS("x-amz-object-ownership", "BucketOwnerEnforced", "x-amz-acl",
			"public-read"),
		NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bad6", NULL, NULL);
	face_fixture_expect(&fixture, 501, METHOD_PUT, "/bad7",
		HEADERS("x-amz-bucket-object-lock-enabled", "true"), NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bad1", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bad7", NULL, NULL);
}
END_TEST

START_TEST(test_head)
{
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_HEAD, "/bkt", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-bucket-region", "us-east-1");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 404, METHOD_HEAD, "/nope", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-bucket-region", "us-east-1");
	fake_exchange_free(fake);
	fixture.token = NULL;
	fake = face_fixture_ask(&fixture, 403, METHOD_HEAD, "/bkt", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-bucket-region", "us-east-1");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_location)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt?location", NULL, NULL);
	face_fixture_assert_body(fake,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"></LocationConstraint>");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/nope?location", NULL, NULL);
	fixture.context.region = "garage";
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/?location", NULL, NULL,
		">garage</LocationConstraint>");
}
END_TEST

START_TEST(test_delete)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k", NULL, "x");
	face_fixture_expect_text(
		&fixture, 409, METHOD_DELETE, "/bkt", NULL, NULL, "<Code>BucketNotEmpty</Code>");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/k", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_DELETE, "/bkt",
		HEADERS("x-amz-expected-bucket-owner", "other"), NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 404, METHOD_DELETE, "/bkt", NULL, NULL, "<Code>NoSuchBucket</Code>");
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bkt", NULL, NULL);
}
END_TEST

START_TEST(test_delete_with_runs)
{
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/bkt/r", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 409, METHOD_DELETE, "/bkt", NULL, NULL, "<Code>BucketNotEmpty</Code>");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/v1/runs/bkt/r", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt", NULL, NULL);
}
END_TEST

START_TEST(test_list_pages)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/ccc", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/aaa", NULL, NULL);
	struct fake_exchange *fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/", NULL, NULL);
	face_fixture_assert_holds(fake,
		"<Owner><ID>main</ID><DisplayName>main</DisplayName></Owner><Buckets><Bucket><Name>aaa</Name><CreationDate>");
	face_fixture_assert_holds(
		fake, "<BucketRegion>us-east-1</BucketRegion></Bucket><Bucket><Name>bkt</Name>");
	face_fixture_assert_holds(fake, "<Name>ccc</Name>");
	face_fixture_assert_lacks(fake, "ContinuationToken");
	face_fixture_assert_lacks(fake, "Prefix");
	fake_exchange_free(fake);

	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/?max-buckets=1", NULL, NULL);
	face_fixture_assert_holds(fake, "<Name>aaa</Name>");
	face_fixture_assert_lacks(fake, "<Name>bkt</Name>");
	face_fixture_assert_holds(fake, "<ContinuationToken>616161</ContinuationToken>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/?max-buckets=2&continuation-token=616161", NULL, NULL);
	face_fixture_assert_lacks(fake, "<Name>aaa</Name>");
	face_fixture_assert_holds(fake, "<Name>bkt</Name>");
	face_fixture_assert_holds(fake, "<Name>ccc</Name>");
	face_fixture_assert_lacks(fake, "ContinuationToken");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/?prefix=b", NULL, NULL);
	face_fixture_assert_lacks(fake, "<Name>aaa</Name>");
	face_fixture_assert_holds(fake, "<Name>bkt</Name>");
	face_fixture_assert_holds(fake, "<Prefix>b</Prefix>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/?bucket-region=elsewhere", NULL, NULL);
	face_fixture_assert_holds(fake, "<Buckets></Buckets>");
	fake_exchange_free(fake);
}
END_TEST

static const char *const bad_lists[] = {"/?max-buckets=0", "/?max-buckets=-1", "/?max-buckets=x",
	"/?continuation-token=zz", "/?continuation-token=616"};

START_TEST(test_bad_list)
{
	face_fixture_expect_text(&fixture, 400, METHOD_GET, bad_lists[_i], NULL, NULL,
		"<Code>InvalidArgument</Code>");
}
END_TEST

START_TEST(test_list_shows_ones_own)
{
	const struct grant grant = {span_text("bkt"), span_text("x/"), PERMISSION_READ};
	const char *const other = face_fixture_key(&fixture, "other", NULL);
	const char *const granted = face_fixture_key(&fixture, "third", &grant);
	fixture.token = other;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/others", NULL, NULL);
	struct fake_exchange *fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/", NULL, NULL);
	face_fixture_assert_holds(fake, "<ID>other</ID>");
	face_fixture_assert_holds(fake, "<Name>others</Name>");
	face_fixture_assert_lacks(fake, "<Name>bkt</Name>");
	fake_exchange_free(fake);

	fixture.token = granted;
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/", NULL, NULL);
	face_fixture_assert_holds(fake, "<Name>bkt</Name>");
	face_fixture_assert_lacks(fake, "<Name>others</Name>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/?prefix=zz", NULL, NULL);
	face_fixture_assert_holds(fake, "<Buckets></Buckets>");
	fake_exchange_free(fake);

	fixture.token = face_fixture_root_token;
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/", NULL, NULL);
	face_fixture_assert_holds(fake, "<Name>bkt</Name>");
	face_fixture_assert_holds(fake, "<Name>others</Name>");
	fake_exchange_free(fake);
	fixture.token = NULL;
	face_fixture_expect(&fixture, 403, METHOD_GET, "/", NULL, NULL);
}
END_TEST

static const char *const markers[] = {"accelerate", "acl", "analytics", "cors", "encryption",
	"intelligent-tiering", "inventory", "lifecycle", "logging", "metrics", "notification",
	"object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock",
	"replication", "requestPayment", "tagging", "uploads", "versioning", "website"};

/* Above all, DELETE /bkt?policy is not DELETE /bkt, and PUT /nope?policy does not make a bucket. */
START_TEST(test_marker_is_no_plain_request)
{
	static const enum method methods[] = {METHOD_GET, METHOD_PUT, METHOD_POST, METHOD_DELETE};
	char target[64];
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(target, sizeof(target), "/bkt?%s", markers[_i]);
		fake_exchange_free(face_fixture_ask_any(&fixture, methods[i], target, NULL, NULL));
		snprintf(target, sizeof(target), "/nope?%s", markers[_i]);
		struct fake_exchange *const fake =
			face_fixture_ask_any(&fixture, methods[i], target, NULL, NULL);
		ck_assert_msg(fake->exchange.reply.status >= 400, "%s: %d", target,
			fake->exchange.reply.status);
		fake_exchange_free(fake);
	}
	face_fixture_expect(&fixture, 200, METHOD_HEAD, "/bkt", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/nope", NULL, NULL);
}
END_TEST

START_TEST(test_other_requests)
{
	face_fixture_expect(&fixture, 412, METHOD_POST, "/bkt", NULL, NULL); /* not a form */
	face_fixture_expect(&fixture, 405, METHOD_POST, "/", NULL, "Action=AssumeRole");
	face_fixture_expect(&fixture, 501, METHOD_PUT, "/bkt?location", NULL, NULL);
}
END_TEST

Suite *test_s3_buckets_suite(void);
Suite *test_s3_buckets_suite(void)
{
	Suite *const suite = suite_create("s3_buckets");
	TCase *const buckets = tcase_create("buckets");
	tcase_add_checked_fixture(buckets, setup, teardown);
	tcase_set_timeout(buckets, 60);
	tcase_add_test(buckets, test_create);
	tcase_add_test(buckets, test_create_of_another_account);
	tcase_add_loop_test(buckets, test_bad_name, 0, sizeof(bad_names) / sizeof(bad_names[0]));
	tcase_add_test(buckets, test_create_body);
	tcase_add_test(buckets, test_head);
	tcase_add_test(buckets, test_location);
	tcase_add_test(buckets, test_delete);
	tcase_add_test(buckets, test_delete_with_runs);
	tcase_add_test(buckets, test_list_pages);
	tcase_add_loop_test(buckets, test_bad_list, 0, sizeof(bad_lists) / sizeof(bad_lists[0]));
	tcase_add_test(buckets, test_list_shows_ones_own);
	tcase_add_loop_test(
		buckets, test_marker_is_no_plain_request, 0, sizeof(markers) / sizeof(markers[0]));
	tcase_add_test(buckets, test_other_requests);
	suite_add_tcase(suite, buckets);
	return suite;
}
