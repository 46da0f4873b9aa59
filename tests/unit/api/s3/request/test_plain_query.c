#include <string.h>

#include "tests/unit/api/face_fixture.h"
#include "tests/unit/unit.h"

/* Requests with a parameter that this server does not know. None may list, make, delete, read or
 * write anything. */
static const struct {
	enum method method;
	const char *target;
	const char *name;
} unknown[] = {
	{METHOD_PUT, "/bkt/k?annotation", "annotation"},
	{METHOD_PUT, "/bkt/k?annotation&annotationName=n", "annotation"},
	{METHOD_PUT, "/bkt/k?versionid-x=1", "versionid-x"},
	{METHOD_PUT, "/bkt/k?prefix=p", "prefix"},
	{METHOD_DELETE, "/bkt/k?annotation", "annotation"},
	{METHOD_DELETE, "/bkt/k?versionId=null&later=1", "later"},
	{METHOD_DELETE, "/bkt/k?versionid=1", "versionid"},
	{METHOD_POST, "/bkt/k?annotation", "annotation"},
	{METHOD_GET, "/bkt/k?annotation", "annotation"},
	{METHOD_GET, "/bkt/k?annotation=&x=1", "annotation"},
	{METHOD_GET, "/bkt/k?%61bac", "abac"},
	{METHOD_HEAD, "/bkt/k?annotation", NULL},
	{METHOD_GET, "/bkt?abac", "abac"},
	{METHOD_GET, "/bkt?list-type=2&abac", "abac"},
	{METHOD_HEAD, "/bkt?abac", NULL},
	{METHOD_PUT, "/bkt?abac", "abac"},
	{METHOD_PUT, "/made?metadataInventoryTable", "metadataInventoryTable"},
	{METHOD_PUT, "/made?later=1", "later"},
	{METHOD_DELETE, "/empty?abac", "abac"},
	{METHOD_DELETE, "/empty?later=1", "later"},
	{METHOD_POST, "/bkt?later=1", "later"},
	{METHOD_GET, "/?later", "later"},
	{METHOD_GET, "/?events=s3:ObjectCreated:*", "events"},
	{METHOD_GET, "/bkt?prefix=&suffix=&events=s3:ObjectCreated:*&ping=10", "events"},
	{METHOD_GET, "/?max-directory-buckets=10", "max-directory-buckets"},
	{METHOD_GET, "/?x-id=ListDirectoryBuckets", "x-id=ListDirectoryBuckets"},
};

static const struct {
	enum method method;
	const char *target;
	int status;
} known[] = {
	{METHOD_PUT, "/bkt/other?x-id=PutObject", 200},
	{METHOD_PUT, "/bkt/other?x-for-the-log", 200},
	{METHOD_PUT, "/bkt/other?content-type=text%2Fplain&Content-MD5=1B2M2Y8AsgTpgAmY7PhCfg",
		200},
	{METHOD_DELETE, "/bkt/other?x-id=DeleteObject&versionId=null&Content-Type=text%2Fplain",
		204},
	{METHOD_GET, "/bkt/k?response-content-type=&versionId=null&partNumber=1", 206},
	{METHOD_GET, "/bkt/k?_=1722470400&download=true", 200},
	{METHOD_HEAD, "/bkt/k?response-expires", 200},
	{METHOD_GET, "/bkt?prefix=&delimiter=&marker=&encoding-type=&max-keys=10", 200},
	{METHOD_GET, "/bkt?list-type=2&prefix&continuation-token&start-after&fetch-owner&a=b", 200},
	{METHOD_GET, "/?prefix&max-buckets=10&bucket-region&x-id=ListBuckets", 200},
	{METHOD_PUT, "/other-bucket?x-id=CreateBucket", 200},
	{METHOD_DELETE, "/other-bucket?x-id=DeleteBucket", 204},
};

static void put_all(struct face_fixture *fixture)
{
	face_fixture_expect(fixture, 200, METHOD_PUT, "/bkt/k", NULL, "content");
	face_fixture_expect(fixture, 200, METHOD_PUT, "/empty", NULL, NULL);
}

START_TEST(what_nobody_knows_is_never_a_plain_request)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	put_all(&fixture);
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 501, unknown[_i].method, unknown[_i].target, NULL, "other");
	const char *const name = unknown[_i].name;
	if (name != NULL)
		face_fixture_assert_holds(
			fake, arena_format(fixture.arena, "<Header>%s</Header>", name));
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, "content");
	face_fixture_expect(&fixture, 200, METHOD_HEAD, "/empty", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/made", NULL, NULL);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(what_clients_send_with_plain_requests_is_known)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	put_all(&fixture);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		face_fixture_expect(
			&fixture, known[i].status, known[i].method, known[i].target, NULL, NULL);
	face_fixture_close(&fixture);
}
END_TEST

/* Callers that may not make the plain request learn only that. */
START_TEST(strangers_are_refused_first)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	put_all(&fixture);
	fixture.token = NULL;
	face_fixture_expect(&fixture, 403, METHOD_DELETE, "/bkt/k?annotation", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt?abac", NULL, NULL);
	face_fixture_close(&fixture);
}
END_TEST

Suite *test_plain_query_suite(void);
Suite *test_plain_query_suite(void)
{
	Suite *const suite = suite_create("plain_query");
	TCase *const refusals = tcase_create("refusals");
	tcase_add_loop_test(refusals, what_nobody_knows_is_never_a_plain_request, 0,
		sizeof(unknown) / sizeof(unknown[0]));
	tcase_add_test(refusals, strangers_are_refused_first);
	suite_add_tcase(suite, refusals);
	TCase *const passes = tcase_create("passes");
	tcase_add_test(passes, what_clients_send_with_plain_requests_is_known);
	suite_add_tcase(suite, passes);
	return suite;
}
