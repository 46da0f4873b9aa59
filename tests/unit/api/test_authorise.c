/* Who may what: the owner, keys with grants, other accounts and anonymous callers over what buckets and objects give. */
#include "tests/unit/api/face_fixture.h"

#include <string.h>

#include "api/authorise.h"

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/a/k", NULL, "text");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/b/k", NULL, "text");
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void set_acl(const char *const target, const char *const acl)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, HEADERS("x-amz-acl", acl), NULL);
	fixture.token = asker;
}

static void expect(const int status, const enum method method, const char *const target)
{
	face_fixture_expect(&fixture, status, method, target, NULL, method == METHOD_PUT ? "new" : NULL);
}

START_TEST(test_public_bucket)
{
	const char *const askers[] = {NULL, face_fixture_key(&fixture, "other", NULL)};
	set_acl("/bkt?acl", "public-read");
	for (size_t i = 0; i < 2; i++) {
		fixture.token = askers[i];
		expect(200, METHOD_GET, "/bkt/a/k");
		expect(200, METHOD_HEAD, "/bkt/a/k");
		expect(404, METHOD_GET, "/bkt/absent");
		expect(200, METHOD_GET, "/bkt?list-type=2");
		expect(200, METHOD_GET, "/bkt?list-type=2&prefix=a/");
		expect(200, METHOD_HEAD, "/bkt");
		expect(200, METHOD_GET, "/bkt?location");
		expect(403, METHOD_PUT, "/bkt/a/k");
		expect(403, METHOD_DELETE, "/bkt/a/k");
		expect(403, METHOD_DELETE, "/bkt");
		expect(403, METHOD_GET, "/bkt?acl");
		expect(403, METHOD_GET, "/bkt/a/k?acl");
		expect(403, METHOD_PUT, "/bkt?versioning");
	}
	fixture.token = NULL;
	face_fixture_expect(&fixture, 401, METHOD_POST, "/v1/runs/bkt/r", NULL, NULL);
	set_acl("/bkt?acl", "private");
	expect(403, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt?list-type=2");
	expect(403, METHOD_HEAD, "/bkt");
}
END_TEST

START_TEST(test_public_object)
{
	set_acl("/bkt/a/k?acl", "public-read");
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt/b/k");
	expect(403, METHOD_GET, "/bkt/absent");
	expect(403, METHOD_PUT, "/bkt/a/k");
	expect(403, METHOD_DELETE, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt?list-type=2");
	fixture.token = face_fixture_key(&fixture, "other", NULL);
	expect(200, METHOD_GET, "/bkt/a/k");
	fixture.token = face_fixture_root_token;
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/a/k?acl", NULL, NULL, "AllUsers");
	/* A new version is private again. */
	expect(200, METHOD_PUT, "/bkt/a/k");
	fixture.token = NULL;
	expect(403, METHOD_GET, "/bkt/a/k");
	set_acl("/bkt/a/k?acl", "public-read");
	set_acl("/bkt/a/k?acl", "private");
	expect(403, METHOD_GET, "/bkt/a/k");
}
END_TEST

static void put_as_root(const char *const target, const char *const body)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, NULL, body);
	fixture.token = asker;
}

START_TEST(test_ignored_acls)
{
	set_acl("/bkt?acl", "public-read");
	set_acl("/bkt/a/k?acl", "public-read");
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/a/k");
	put_as_root("/bkt?publicAccessBlock", "<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls></PublicAccessBlockConfiguration>");
	expect(403, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt?list-type=2");
	put_as_root("/bkt?publicAccessBlock", "<PublicAccessBlockConfiguration><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>");
	expect(200, METHOD_GET, "/bkt/a/k");
}
END_TEST

/* What a key's grants name is all that it may do, whoever else may do more. */
START_TEST(test_grants_stay_exact)
{
	const struct grant grant = {span_text("bkt"), span_text("a/"), PERMISSION_READ};
	const char *const token = face_fixture_key(&fixture, "main", &grant);
	set_acl("/bkt?acl", "public-read");
	fixture.token = token;
	expect(200, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt/b/k");
	expect(403, METHOD_GET, "/bkt?list-type=2&prefix=a/");
	expect(403, METHOD_DELETE, "/bkt/a/k");
	/* Something in the bucket is its own: it may know of the bucket. */
	expect(200, METHOD_HEAD, "/bkt");
	expect(200, METHOD_GET, "/bkt?location");
	expect(403, METHOD_GET, "/bkt?versioning");
}
END_TEST

START_TEST(test_write_grant_deletes)
{
	const struct grant grant = {span_text("bkt"), span_text("a/"), PERMISSION_WRITE};
	fixture.token = face_fixture_key(&fixture, "other", &grant);
	expect(204, METHOD_DELETE, "/bkt/a/k");
	expect(403, METHOD_DELETE, "/bkt/b/k");
	expect(403, METHOD_PUT, "/bkt/a/k?acl");
	expect(403, METHOD_GET, "/bkt/a/k");
}
END_TEST

/* Older versions of a public bucket's objects are not public. */
START_TEST(test_versions_are_not_public)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture.context, METHOD_GET, "/bkt/a/k?versionId=null");
	struct error err = {0};
	set_acl("/bkt?acl", "public-read");
	router_match(&fake->exchange);
	ck_assert_int_eq(authorise_key(&fake->exchange, span_text("bkt"), span_text("a/k"), PERMISSION_READ, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_CREDENTIALS);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_absent_bucket)
{
	fixture.token = NULL;
	expect(404, METHOD_GET, "/absent/k");
	expect(404, METHOD_PUT, "/absent/k");
	expect(403, METHOD_GET, "/absent?versioning");
	expect(403, METHOD_PUT, "/absent");
	fixture.token = face_fixture_key(&fixture, "other", NULL);
	expect(404, METHOD_GET, "/absent/k");
	expect(404, METHOD_GET, "/absent?versioning");
}
END_TEST

Suite *test_authorise_suite(void);
Suite *test_authorise_suite(void)
{
	Suite *const suite = suite_create("authorise");
	TCase *const rules = tcase_create("rules");
	tcase_add_checked_fixture(rules, setup, teardown);
	tcase_set_timeout(rules, 60);
	tcase_add_test(rules, test_public_bucket);
	tcase_add_test(rules, test_public_object);
	tcase_add_test(rules, test_ignored_acls);
	tcase_add_test(rules, test_grants_stay_exact);
	tcase_add_test(rules, test_write_grant_deletes);
	tcase_add_test(rules, test_versions_are_not_public);
	tcase_add_test(rules, test_absent_bucket);
	suite_add_tcase(suite, rules);
	return suite;
}
