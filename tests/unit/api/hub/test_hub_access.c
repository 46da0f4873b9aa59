/* Every request about a bucket, by every kind of caller, of a public, a private and a missing
 * bucket: hub-xet.md 2.12, and what keys with grants add to it. */
#include "tests/unit/api/face_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "base/memory.h"

enum caller { OWNER, ROOT, STRANGER, NOBODY, PREFIX_KEY, READ_KEY, REVOKED, GARBAGE, CALLERS };
enum kind { PUBLIC, PRIVATE, MISSING, KINDS };

static const char *const caller_names[] = {"owner", "root", "stranger", "nobody", "key for in/",
	"key that reads", "revoked key", "garbage"};
static const char *const kind_names[] = {"public", "private", "missing"};

static struct face_fixture fixture;
static const char *tokens[CALLERS];

#define HOST       ((const char *const[]){"Host", "hub.example:9000", NULL})
#define ZEROS      "0000000000000000000000000000000000000000000000000000000000000000"
#define ADD(path)  "{\"type\":\"addFile\",\"path\":\"" path "\",\"xetHash\":\"" ZEROS "\"}\n"
#define DROP(path) "{\"type\":\"deleteFile\",\"path\":\"" path "\"}\n"
#define PATHS      "{\"paths\":[\"in/f\",\"out/f\"]}"
#define MOVE       "{\"fromRepo\":\"team/b\",\"toRepo\":\"team/c\",\"type\":\"bucket\"}"
#define API        "/api/buckets/team/b"
#define WEB        "/buckets/team/b"

/* Statuses for the callers in their order. The grants of a key name the bucket whether it exists or
 * not. */
static const struct row {
	enum method method;
	const char *target;
	const char *body;
	int statuses[KINDS][CALLERS];
} rows[] = {
	{METHOD_GET, API, NULL,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, API "/xet-read-token", NULL,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, API "/xet-write-token", NULL,
		{{200, 200, 403, 401, 200, 403, 401, 401}, {200, 200, 404, 401, 200, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, API "/tree", NULL,
		{{200, 200, 200, 200, 403, 200, 401, 401}, {200, 200, 404, 401, 403, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, API "/tree/in?recursive=false", NULL,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, API "/tree/out", NULL,
		{{200, 200, 200, 200, 403, 200, 401, 401}, {200, 200, 404, 401, 403, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API "/paths-info", PATHS,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API "/batch", ADD("in/f"),
		{{200, 200, 403, 401, 200, 403, 401, 401}, {200, 200, 404, 401, 200, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API "/batch", ADD("out/f"),
		{{200, 200, 403, 401, 403, 403, 401, 401}, {200, 200, 404, 401, 403, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API "/batch", DROP("out/none"),
		{{200, 200, 403, 401, 403, 403, 401, 401}, {200, 200, 404, 401, 403, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API "/batch", ADD("in/f") DROP("out/none"),
		{{200, 200, 403, 401, 422, 403, 401, 401}, {200, 200, 404, 401, 422, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, WEB "/resolve/in/f", NULL,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_HEAD, WEB "/resolve/out%2Ff", NULL,
		{{200, 200, 200, 200, 403, 200, 401, 401}, {200, 200, 404, 401, 403, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, WEB "/resolve/in/none", NULL,
		{{404, 404, 404, 404, 404, 404, 401, 401}, {404, 404, 404, 401, 404, 404, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, WEB, NULL,
		{{200, 200, 200, 200, 403, 200, 401, 401}, {200, 200, 404, 401, 403, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_GET, WEB "/tree/in", NULL,
		{{200, 200, 200, 200, 200, 200, 401, 401}, {200, 200, 404, 401, 200, 200, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_PUT, API "/settings", "{}",
		{{200, 200, 403, 401, 403, 403, 401, 401}, {200, 200, 404, 401, 403, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_POST, API, "{}",
		{{409, 409, 403, 401, 403, 403, 401, 401}, {409, 409, 403, 401, 403, 403, 401, 401},
			{200, 200, 403, 401, 403, 403, 401, 401}}},
	{METHOD_POST, "/api/repos/move", MOVE,
		{{200, 200, 403, 401, 403, 403, 401, 401}, {200, 200, 404, 401, 403, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
	{METHOD_DELETE, API, NULL,
		{{200, 200, 403, 401, 403, 403, 401, 401}, {200, 200, 404, 401, 403, 403, 401, 401},
			{404, 404, 404, 401, 404, 404, 401, 401}}},
};

static int status_of(const char *token, enum method method, const char *target, const char *body)
{
	fixture.token = token;
	struct fake_exchange *const fake =
		face_fixture_ask_any(&fixture, method, target, HOST, body);
	const int status = fake->exchange.reply.status;
	fake_exchange_free(fake);
	return status;
}

/* Makes a bucket of this kind with two files, or none, whatever the last request left. */
static void restore(enum kind kind)
{
	status_of(tokens[OWNER], METHOD_DELETE, "/api/buckets/team/c", NULL);
	if (kind == MISSING) {
		status_of(tokens[OWNER], METHOD_DELETE, API, NULL);
		return;
	}
	if (status_of(tokens[OWNER], METHOD_POST, API,
		    kind == PUBLIC ? "{\"private\":false}" : "{\"private\":true}") == 200)
		ck_assert_int_eq(status_of(tokens[OWNER], METHOD_POST, API "/batch",
					 ADD("in/f") ADD("out/f")),
			200);
}

static void setup(void)
{
	const struct grant prefix = {span_text("team--b"), span_text("in/"),
		PERMISSION_READ | PERMISSION_LIST | PERMISSION_WRITE};
	const struct grant reads = {
		span_text("team--b"), {NULL, 0}, PERMISSION_READ | PERMISSION_LIST};
	face_fixture_open(&fixture);
	tokens[OWNER] = face_fixture_key(&fixture, "team", NULL);
	tokens[ROOT] = face_fixture_root_token;
	tokens[STRANGER] = face_fixture_key(&fixture, "other", NULL);
	tokens[NOBODY] = NULL;
	tokens[PREFIX_KEY] = face_fixture_key(&fixture, "other", &prefix);
	tokens[READ_KEY] = face_fixture_key(&fixture, "other", &reads);
	tokens[REVOKED] = face_fixture_revoked_key(&fixture, "team");
	tokens[GARBAGE] = "hf_garbage";
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

/* A 404 tells callers with a key what does not exist. A bucket that they may not see gives the same
 * reply as one that does not exist. */
static void check_code(const struct fake_exchange *fake, const struct row *row, bool sees_bucket)
{
	if (fake->exchange.reply.status == 404)
		face_fixture_assert_header(fake, "X-Error-Code",
			strstr(row->target, "/resolve/") != NULL && sees_bucket ? "EntryNotFound"
										: "RepoNotFound");
	if (fake->exchange.reply.status == 401)
		face_fixture_assert_header(fake, "X-Error-Code", NULL);
}

START_TEST(each_request_by_each_caller)
{
	const enum kind kind = (enum kind)_i;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int caller = 0; caller < CALLERS; caller++) {
			restore(kind);
			fixture.token = tokens[caller];
			struct fake_exchange *const fake = face_fixture_ask_any(
				&fixture, rows[i].method, rows[i].target, HOST, rows[i].body);
			ck_assert_msg(fake->exchange.reply.status == rows[i].statuses[kind][caller],
				"%s bucket, %s, %s (%s): %d, not %d: %s", kind_names[kind],
				caller_names[caller], rows[i].target,
				rows[i].body != NULL ? rows[i].body : "",
				fake->exchange.reply.status, rows[i].statuses[kind][caller],
				buffer_text(&fake->body));
			check_code(fake, &rows[i], rows[0].statuses[kind][caller] == 200);
			fake_exchange_free(fake);
		}
}
END_TEST

static void expect(
	int status, const char *token, enum method method, const char *target, const char *body)
{
	fixture.token = token;
	face_fixture_expect(&fixture, status, method, target, HOST, body);
}

/* Puts in/f with these bytes, and then with others. */
static const char *overwrite(const char *first, const char *const *headers)
{
	fixture.token = tokens[OWNER];
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/in/f", headers, first);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_HEAD, WEB "/resolve/in/f", HOST, NULL);
	const char *const hash = arena_text(
		fixture.arena, span_text(fake_exchange_reply_header(fake, "X-Xet-Hash")));
	fake_exchange_free(fake);
	expect(200, tokens[OWNER], METHOD_PUT, "/team--b?versioning",
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>");
	expect(200, tokens[OWNER], METHOD_PUT, "/team--b/in/f", "newer");
	return hash;
}

/* The current version is served, so the ACL of an older one does not count, whatever the query
 * names. */
START_TEST(the_acl_of_an_older_version_opens_no_newer_one)
{
	static const char *const open[] = {"x-amz-acl", "public-read", NULL};
	restore(PRIVATE);
	overwrite("older", open);
	expect(200, NULL, METHOD_GET, "/team--b/in/f?versionId=null", NULL);
	expect(401, NULL, METHOD_GET, WEB "/resolve/in/f?versionId=null", NULL);
	expect(401, NULL, METHOD_HEAD, WEB "/resolve/in/f?versionId=null&versions", NULL);
	expect(404, tokens[STRANGER], METHOD_GET, WEB "/resolve/in/f?versionId=null", NULL);
	expect(200, tokens[OWNER], METHOD_GET, WEB "/resolve/in/f?versionId=null", NULL);
}
END_TEST

static void check_reads(int status, const char *bearer, const char *hash)
{
	const char *const target = arena_format(fixture.arena, "/xet/v2/reconstructions/%s", hash);
	expect(status, face_fixture_xet_token(&fixture, "team--b", bearer, false, 60), METHOD_GET,
		target, NULL);
}

/* Older versions in a public bucket are not public, also for callers that have seen their hash. */
START_TEST(older_versions_are_not_public_by_their_hash)
{
	restore(PUBLIC);
	const char *const hash = overwrite("older", NULL);
	check_reads(200, tokens[OWNER], hash);
	check_reads(200, tokens[READ_KEY], hash);
	check_reads(404, tokens[STRANGER], hash);
	check_reads(404, NULL, hash);
	expect(204, tokens[OWNER], METHOD_PUT, "/team--b?policy",
		"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","
		"\"Action\":\"s3:PutObject\",\"Resource\":\"arn:aws:s3:::team--b/*\"}]}");
	const char *const line = arena_format(fixture.arena,
		"{\"type\":\"addFile\",\"path\":\"in/g\",\"xetHash\":\"%s\"}\n", hash);
	expect(422, tokens[STRANGER], METHOD_POST, API "/batch", line);
	expect(200, tokens[OWNER], METHOD_POST, API "/batch", line);
	check_reads(200, tokens[STRANGER], hash);
	expect(200, tokens[STRANGER], METHOD_POST, API "/batch", line);
}
END_TEST

/* The number of callers without a key is unlimited, so each gets little memory for a body. */
START_TEST(strangers_send_no_large_bodies)
{
	static const char *const targets[] = {API "/batch", API "/paths-info"};
	static const char *const texts[] = {DROP("out/none"), PATHS};
	const size_t length = _i == 0 ? 70 * 1024 : 1100 * 1024;
	restore(PUBLIC);
	char *const body = memory_new_array(length + 1, 1);
	memset(body, ' ', length);
	memcpy(body + length - strlen(texts[_i]), texts[_i], strlen(texts[_i]));
	expect(_i == 0 ? 401 : 400, NULL, METHOD_POST, targets[_i], body);
	expect(200, tokens[OWNER], METHOD_POST, targets[_i], body);
	free(body);
}
END_TEST

Suite *test_hub_access_suite(void);
Suite *test_hub_access_suite(void)
{
	Suite *const suite = suite_create("hub_access");
	TCase *const tests = tcase_create("hub_access");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, each_request_by_each_caller, 0, KINDS);
	tcase_add_loop_test(tests, strangers_send_no_large_bodies, 0, 2);
	tcase_add_test(tests, the_acl_of_an_older_version_opens_no_newer_one);
	tcase_add_test(tests, older_versions_are_not_public_by_their_hash);
	suite_add_tcase(suite, tests);
	return suite;
}
