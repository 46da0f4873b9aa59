/* The access of the owner, of keys with grants, of other accounts and of anonymous callers, by the
 * grants and ACLs of buckets and objects. */
#include "tests/unit/api/face_fixture.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "storage/objects/object_read.h"

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

static void set_acl(const char *target, const char *acl)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, HEADERS("x-amz-acl", acl), NULL);
	fixture.token = asker;
}

static void expect(int status, enum method method, const char *target)
{
	face_fixture_expect(
		&fixture, status, method, target, NULL, method == METHOD_PUT ? "new" : NULL);
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

static void put_as_root(const char *target, const char *body)
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
	put_as_root("/bkt?publicAccessBlock",
		"<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls></PublicAccessBlockConfiguration>");
	expect(403, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt?list-type=2");
	put_as_root("/bkt?publicAccessBlock",
		"<PublicAccessBlockConfiguration><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>");
	expect(200, METHOD_GET, "/bkt/a/k");
}
END_TEST

#define POLICY(principal, action, resource)                                                   \
	"{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":" principal ",\"Action\":" action \
	",\"Resource\":" resource "}}"

static void set_policy(const char *json)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 204, METHOD_PUT, "/bkt?policy", NULL, json);
	fixture.token = asker;
}

START_TEST(test_policy)
{
	const char *const team = face_fixture_key(&fixture, "team", NULL);
	const char *const other = face_fixture_key(&fixture, "other", NULL);
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/bkt?policy", NULL, NULL,
		"<Code>NoSuchBucketPolicy</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?policyStatus", NULL, NULL,
		"<IsPublic>false</IsPublic>");
	set_policy(POLICY("{\"AWS\":\"team\"}", "[\"s3:PutObject\",\"s3:GetObject\"]",
		"\"arn:aws:s3:::bkt/a/*\""));
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?policyStatus", NULL, NULL,
		"<IsPublic>false</IsPublic>");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/bkt?policy", NULL, NULL, "s3:PutObject");
	fixture.token = team;
	expect(200, METHOD_GET, "/bkt/a/k");
	expect(200, METHOD_PUT, "/bkt/a/new");
	expect(403, METHOD_DELETE, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt/b/k");
	expect(403, METHOD_PUT, "/bkt/b/new");
	expect(403, METHOD_GET, "/bkt?list-type=2");
	expect(200, METHOD_HEAD, "/bkt");
	expect(403, METHOD_GET, "/bkt?policy");
	fixture.token = other;
	expect(403, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_HEAD, "/bkt");
	set_policy(POLICY("\"*\"", "\"s3:*\"", "[\"arn:aws:s3:::bkt\",\"arn:aws:s3:::bkt/a/*\"]"));
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/a/k");
	expect(200, METHOD_GET, "/bkt?list-type=2");
	expect(200, METHOD_PUT, "/bkt/a/anonymous");
	expect(204, METHOD_DELETE, "/bkt/a/anonymous");
	expect(403, METHOD_GET, "/bkt/b/k");
	expect(403, METHOD_DELETE, "/bkt");
	expect(403, METHOD_PUT, "/bkt?versioning");
	face_fixture_expect(&fixture, 401, METHOD_POST, "/v1/runs/bkt/a", NULL, NULL);
	fixture.token = face_fixture_root_token;
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?policyStatus", NULL, NULL,
		"<IsPublic>true</IsPublic>");
	expect(204, METHOD_DELETE, "/bkt?policy");
	expect(404, METHOD_GET, "/bkt?policy");
	fixture.token = NULL;
	expect(403, METHOD_GET, "/bkt/a/k");
}
END_TEST

START_TEST(test_refused_policy_changes_nothing)
{
	set_policy(POLICY("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/*\""));
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt?policy", NULL, "{}",
		"<Code>MalformedPolicy</Code>");
	face_fixture_expect_text(&fixture, 501, METHOD_PUT, "/bkt?policy", NULL,
		POLICY("\"*\"", "\"s3:PutBucketAcl\"", "\"arn:aws:s3:::bkt\""),
		"<Code>NotImplemented</Code>");
	put_as_root("/bkt?publicAccessBlock",
		"<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>");
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt?policy", NULL,
		POLICY("\"*\"", "\"s3:PutObject\"", "\"arn:aws:s3:::bkt/*\""));
	set_policy(POLICY("{\"AWS\":\"team\"}", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/*\""));
	fixture.token = NULL;
	expect(403, METHOD_GET, "/bkt/a/k");
}
END_TEST

/* A key with grants may do only what they name, even where others may do more. */
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
	/* It has a grant for something in the bucket, so it may know of the bucket. */
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
	put_as_root("/bkt?versioning",
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>");
	put_as_root("/bkt/a/k", "newer");
	set_acl("/bkt?acl", "public-read");
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/a/k");
	expect(403, METHOD_GET, "/bkt/a/k?versionId=null");
	expect(403, METHOD_GET, "/bkt?versions");
	set_policy(POLICY("\"*\"", "[\"s3:GetObjectVersion\",\"s3:ListBucketVersions\"]", "\"*\""));
	expect(200, METHOD_GET, "/bkt/a/k?versionId=null");
	expect(200, METHOD_GET, "/bkt?versions");
	/* Only one version is public, by its own ACL. */
	fixture.token = face_fixture_root_token;
	expect(204, METHOD_DELETE, "/bkt?policy");
	set_acl("/bkt/b/k?acl&versionId=null", "public-read");
	put_as_root("/bkt/b/k", "newer");
	set_acl("/bkt?acl", "private");
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/b/k?versionId=null");
	expect(403, METHOD_GET, "/bkt/b/k");
	expect(403, METHOD_GET, "/bkt/b/k?versionId=nonsense");
}
END_TEST

/* Making an object public needs more than writing it. Deleting a list of keys needs access to each,
 * and copying needs access to the source. */
START_TEST(test_handlers_ask_again)
{
	const struct grant grant = {
		span_text("bkt"), span_text("a/"), PERMISSION_READ | PERMISSION_WRITE};
	const char *const writer = face_fixture_key(&fixture, "other", &grant);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/a/shown",
		HEADERS("x-amz-acl", "public-read"), "text");
	fixture.token = writer;
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/a/mine",
		HEADERS("x-amz-acl", "public-read"), "text");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/a/mine", HEADERS("x-amz-acl", "private"), "text");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/a/copy",
		HEADERS("x-amz-copy-source", "/bkt/a/k"), NULL);
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/a/copy",
		HEADERS("x-amz-copy-source", "/bkt/b/k"), NULL);
	fixture.token = NULL;
	expect(200, METHOD_GET, "/bkt/a/shown");
	expect(403, METHOD_GET, "/bkt/a/shown?tagging");
	expect(403, METHOD_GET, "/bkt/a/mine");
	set_policy(
		POLICY("\"*\"", "[\"s3:PutObject\",\"s3:GetObject\"]", "\"arn:aws:s3:::bkt/a/*\""));
	expect(200, METHOD_PUT, "/bkt/a/new");
	expect(403, METHOD_PUT, "/bkt/a/new?tagging");
	expect(403, METHOD_GET, "/bkt/a/new?tagging");
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/a/new",
		HEADERS("x-amz-acl", "public-read"), "text");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/a/copy",
		HEADERS("x-amz-copy-source", "/bkt/a/k"), NULL);
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/a/copy",
		HEADERS("x-amz-copy-source", "/bkt/a/k?versionId=null"), NULL);
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/a/copy",
		HEADERS("x-amz-copy-source", "/bkt/b/k"), NULL);
}
END_TEST

static struct fake_exchange *ask(const char *token, const char *target)
{
	fixture.token = token;
	return face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
}

/* If only an object's own ACL gives access, the caller may read only that version. */
START_TEST(test_the_version_that_was_judged)
{
	struct error err = {0};
	struct object object;
	set_acl("/bkt/a/k?acl", "public-read");
	struct fake_exchange *fake = ask(NULL, "/bkt/a/k");
	const struct object_ref ref = {.bucket = exchange_bucket(&fake->exchange),
		.key = span_text("a/k"),
		.judged_version = fake->exchange.judged_version};
	ck_assert(ref.bucket.id != 0 && ref.judged_version != 0);
	ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), 0);
	put_as_root("/bkt/a/k", "private");
	ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	fake_exchange_free(fake);
	set_acl("/bkt?acl", "public-read");
	set_acl("/bkt/a/k?acl", "public-read");
	fake = ask(NULL, "/bkt/a/k");
	ck_assert_int_eq(fake->exchange.judged_version, 0); /* the bucket's ACL gives access */
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_the_bucket_that_was_judged)
{
	static const struct span whole = {NULL, 0};
	struct error err = {0};
	struct bucket bucket;
	struct bucket_ref ref = bucket_named(span_text("bkt"));
	struct fake_exchange *fake = ask(face_fixture_key(&fixture, "main", NULL), "/bkt/a/k");
	ck_assert_int_eq(bucket_find(fixture.store, ref, fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(fake->exchange.bucket_id, bucket.id);
	ck_assert_int_eq(authorise_key(&fake->exchange, &ref, whole, PERMISSION_READ, &err), 0);
	ck_assert_int_eq(ref.id, bucket.id);
	ck_assert_int_eq(
		authorise_owned_key(&fake->exchange, &ref, whole, PERMISSION_ADMIN, &err), 0);
	ref.id++; /* as if another bucket had the name by now */
	ck_assert_int_eq(authorise_key(&fake->exchange, &ref, whole, PERMISSION_READ, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(authorise_permits(&fake->exchange, &ref, whole, PERMISSION_READ, &err), 0);
	ck_assert(!authorise_knows(&fake->exchange, ref));
	fake_exchange_free(fake);
	ref.id = 0;
	fake = ask(face_fixture_root_token, "/bkt/a/k");
	ck_assert_int_eq(authorise_key(&fake->exchange, &ref, whole, PERMISSION_READ, &err), 0);
	ck_assert(ref.id == 0 && fake->exchange.bucket_id == 0); /* any bucket with the name */
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

/* While a body arrives, another account may make the missing bucket, or take the name of a bucket
 * that is deleted. */
static void make_bucket(void)
{
	const char *const asker = fixture.token;
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/slow", NULL, NULL);
	expect(200, METHOD_PUT, "/slow/k");
	fixture.token = asker;
}

static void take_over(void)
{
	expect(204, METHOD_DELETE, "/slow/k");
	expect(204, METHOD_DELETE, "/slow");
	make_bucket();
}

static const struct {
	enum method method;
	const char *target;
	int status;
	const char *body;
} slow_bodies[] = {
	{METHOD_PUT, "/slow?policy", 403, POLICY("\"*\"", "\"s3:*\"", "\"*\"")},
	{METHOD_PUT, "/slow?versioning", 403,
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"},
	{METHOD_PUT, "/slow/k?tagging", 403,
		"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"},
	{METHOD_PUT, "/slow/k", 404, "text"},
	{METHOD_POST, "/slow?delete", 403,
		"<Delete><Quiet>true</Quiet><Object><Key>k</Key></Object></Delete>"},
	{METHOD_POST, "/v1/runs/slow/r", 403, "{}"},
};

static void revoke_asker(void)
{
	struct error err = {0};
	const struct principal *const asker =
		keyring_find_token(fixture.keyring, span_text(fixture.token), fixture.arena);
	ck_assert_int_eq(keyring_revoke(fixture.keyring, asker->key_id, &err), 0);
}

static int ask_slowly(int index, void (*meanwhile)(void))
{
	struct fake_exchange *const fake = fake_exchange_new(
		&fixture.context, slow_bodies[index].method, slow_bodies[index].target);
	fake_exchange_add(
		fake, "Authorization", arena_format(fixture.arena, "Bearer %s", fixture.token));
	fake->before_finish = meanwhile;
	const int status = fake_exchange_run(fake, span_text(slow_bodies[index].body));
	fake_exchange_free(fake);
	return status;
}

START_TEST(test_slow_bodies)
{
	fixture.token = face_fixture_key(&fixture, "other", NULL);
	ck_assert_int_eq(ask_slowly(_i, make_bucket), 404);
}
END_TEST

/* A small request is executed when its whole body is here, and refused if the key was revoked by
 * then. */
START_TEST(test_revoked_meanwhile)
{
	static const struct {
		enum method method;
		const char *target, *body;
	} requests[] = {
		{METHOD_PUT, "/slow?policy", POLICY("\"*\"", "\"s3:*\"", "\"*\"")},
		{METHOD_POST, "/api/buckets/-/slow/batch",
			"{\"type\":\"deleteFile\",\"path\":\"k\"}\n"},
		{METHOD_POST, "/v1/runs/slow/r", "{}"},
	};
	static const int statuses[] = {403, 401, 401};
	make_bucket();
	const struct grant grant = {span_text("slow"), {NULL, 0},
		PERMISSION_READ | PERMISSION_WRITE | PERMISSION_LIST | PERMISSION_ADMIN};
	fixture.token = face_fixture_key(&fixture, "other", &grant);
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, requests[_i].method, requests[_i].target);
	fake_exchange_add(
		fake, "Authorization", arena_format(fixture.arena, "Bearer %s", fixture.token));
	fake->before_finish = revoke_asker;
	ck_assert_int_eq(fake_exchange_run(fake, span_text(requests[_i].body)), statuses[_i]);
	fake_exchange_free(fake);
	fixture.token = face_fixture_root_token;
	expect(200, METHOD_GET, "/slow/k");
	expect(404, METHOD_GET, "/slow?policy");
	expect(404, METHOD_GET, "/v1/runs/slow/r");
}
END_TEST

START_TEST(test_squatted_names)
{
	fixture.token = face_fixture_key(&fixture, "other", NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/slow", NULL, NULL);
	expect(200, METHOD_PUT, "/slow/k");
	ck_assert_int_eq(ask_slowly(_i, take_over), slow_bodies[_i].status);
	expect(403, METHOD_GET, "/slow/k");
	fixture.token = face_fixture_root_token;
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/slow/k", NULL, NULL, "new");
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
	tcase_add_test(rules, test_policy);
	tcase_add_test(rules, test_refused_policy_changes_nothing);
	tcase_add_test(rules, test_grants_stay_exact);
	tcase_add_test(rules, test_write_grant_deletes);
	tcase_add_test(rules, test_versions_are_not_public);
	tcase_add_test(rules, test_handlers_ask_again);
	tcase_add_test(rules, test_the_version_that_was_judged);
	tcase_add_test(rules, test_the_bucket_that_was_judged);
	tcase_add_test(rules, test_absent_bucket);
	tcase_add_loop_test(
		rules, test_slow_bodies, 0, sizeof(slow_bodies) / sizeof(slow_bodies[0]));
	tcase_add_loop_test(rules, test_revoked_meanwhile, 0, 3);
	tcase_add_loop_test(
		rules, test_squatted_names, 0, sizeof(slow_bodies) / sizeof(slow_bodies[0]));
	suite_add_tcase(suite, rules);
	return suite;
}
