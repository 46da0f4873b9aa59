/* The Hub's buckets through the router, over a real store: which callers may make, see, change,
 * move and delete which. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "storage/buckets/bucket.h"

static struct face_fixture fixture;
static const char *owner;    /* a key of the namespace "team" */
static const char *stranger; /* a key of the namespace "other" */

static void setup(void)
{
	face_fixture_open(&fixture);
	owner = face_fixture_key(&fixture, "team", NULL);
	stranger = face_fixture_key(&fixture, "other", NULL);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

#define HOST ((const char *const[]){"Host", "hub.example:9000", NULL})

static void as(const char *token)
{
	fixture.token = token;
}

static void create(const char *name, const char *body)
{
	as(owner);
	face_fixture_expect(&fixture, 200, METHOD_POST,
		arena_format(fixture.arena, "/api/buckets/team/%s", name), HOST, body);
}

static void expect(int status, enum method method, const char *target, const char *body)
{
	face_fixture_expect(&fixture, status, method, target, HOST, body);
}

/* The 404 that clients understand as "there is no such bucket". */
static void expect_unknown(enum method method, const char *target, const char *body)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 404, method, target, HOST, body);
	face_fixture_assert_header(fake, "X-Error-Code", "RepoNotFound");
	fake_exchange_free(fake);
}

static void expect_text(const char *target, const char *text)
{
	face_fixture_expect_text(&fixture, 200, METHOD_GET, target, HOST, NULL, text);
}

START_TEST(whoami_is_the_namespace)
{
	as(owner);
	expect_text("/api/whoami-v2", "\"name\":\"team\"");
	expect_text("/api/whoami-v2", "\"orgs\":[]");
	expect_text("/api/whoami-v2", "\"role\":\"write\"");
	const struct grant grant = {span_text("team--b"), {NULL, 0}, PERMISSION_READ};
	as(face_fixture_key(&fixture, "team", &grant));
	expect_text("/api/whoami-v2", "\"role\":\"fineGrained\"");
	as(arena_format(fixture.arena, "hf_%s", owner));
	expect_text("/api/whoami-v2", "\"name\":\"team\"");
	as(NULL);
	expect(401, METHOD_GET, "/api/whoami-v2", NULL);
	as("hf_garbage");
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 401, METHOD_GET, "/api/whoami-v2", HOST, NULL);
	face_fixture_assert_header(
		fake, "X-Error-Message", "Invalid credentials in Authorization header");
	face_fixture_assert_body(
		fake, "{\"error\":\"Invalid credentials in Authorization header\"}");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(a_bucket_is_made_once)
{
	as(owner);
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/api/buckets/team/one", HOST, "{}",
		"{\"url\":\"http://hub.example:9000/buckets/team/one\",\"name\":\"team/one\",\"id\":\"team/one\"}");
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/api/buckets/me/two", HOST, NULL,
		"\"url\":\"http://hub.example:9000/buckets/team/two\"");
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 409, METHOD_POST, "/api/buckets/me/one", HOST, "{\"private\":false}");
	face_fixture_assert_holds(fake, "\"error\":\"");
	face_fixture_assert_holds(fake, "\"url\":\"http://hub.example:9000/buckets/team/one\"");
	fake_exchange_free(fake);
	expect_text("/api/buckets/team/one", "\"private\":true");
	face_fixture_expect(&fixture, 200, METHOD_HEAD, "/team--one", NULL, NULL);
	fixture.context.public_url = "https://public.example";
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/api/buckets/team/three", HOST, "{}",
		"\"url\":\"https://public.example/buckets/team/three\"");
}
END_TEST

static const struct {
	const char *target;
	const char *body;
	int status;
} refused[] = {
	{"/api/buckets/team/two--dashes", "{}", 400},
	{"/api/buckets/team/-x", "{}", 400},
	{"/api/buckets/team/x.git", "{}", 400},
	{"/api/buckets/team/a%20b", "{}", 400},
	{"/api/buckets/team/a%2Fb", "{}", 400},
	{"/api/buckets/other/x", "{}", 403},
	{"/api/buckets/main/x", "{}", 403},
	{"/api/buckets/-/team--x", "{}", 403},
	{"/api/buckets/team/x", "{", 400},
	{"/api/buckets/team/x", "[]", 400},
	{"/api/buckets/team/x", "{\"private\":1}", 400},
	{"/api/buckets/team/x", "{\"private\":\"yes\"}", 400},
	{"/api/buckets/team/x", "{\"visibility\":\"protected\"}", 400},
	{"/api/buckets/team/x", "{\"visibility\":true}", 400},
	{"/api/buckets/team/x", "{\"visibility\":\"public\",\"private\":true}", 400},
	{"/api/buckets/team/x", "{\"private\":true,\"private\":true}", 400},
};

START_TEST(a_bucket_that_may_not_be_is_not_made)
{
	as(owner);
	expect(refused[_i].status, METHOD_POST, refused[_i].target, refused[_i].body);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/api/buckets/me", HOST, NULL, "[]");
	as(NULL);
	expect(401, METHOD_POST, refused[_i].target, refused[_i].body);
}
END_TEST

START_TEST(root_makes_buckets_for_others)
{
	as(face_fixture_root_token);
	expect(200, METHOD_POST, "/api/buckets/team/given", "{}");
	expect(400, METHOD_POST, "/api/buckets/te--am/x", "{}");
	expect(400, METHOD_POST, "/api/buckets/Team/x", "{}");
	expect(400, METHOD_POST, "/api/buckets/main/team--x", "{}");
	expect(400, METHOD_POST, "/api/buckets/me/xet", "{}");
	as(owner);
	expect(200, METHOD_POST, "/api/buckets/me/xet", "{}");
	expect_text("/api/buckets/team/given", "\"author\":\"team\"");
	expect(200, METHOD_DELETE, "/api/buckets/team/given", NULL);
}
END_TEST

static const struct {
	const char *body;
	bool by_default;
	bool is_public;
} visibilities[] = {
	{"{}", false, false},
	{"{}", true, true},
	{"", true, true},
	{"{\"private\":true}", true, false},
	{"{\"private\":false}", false, true},
	{"{\"visibility\":\"private\"}", true, false},
	{"{\"visibility\":\"public\"}", false, true},
	{"{\"visibility\":\"public\",\"private\":false}", false, true},
	{"{\"private\":null,\"visibility\":null}", true, true},
	{"{\"region\":\"eu\",\"resourceGroupId\":\"x\",\"unknown\":[1]}", false, false},
};

START_TEST(a_new_bucket_is_as_public_as_it_was_asked_to_be)
{
	fixture.context.hub_buckets_public = visibilities[_i].by_default;
	create("b", visibilities[_i].body);
	expect_text("/api/buckets/team/b",
		visibilities[_i].is_public ? "\"private\":false,\"visibility\":\"public\""
					   : "\"private\":true,\"visibility\":\"private\"");
	as(NULL);
	expect(visibilities[_i].is_public ? 200 : 401, METHOD_GET, "/api/buckets/team/b", NULL);
}
END_TEST

START_TEST(the_object_of_a_bucket_says_what_is_in_it)
{
	create("b", "{}");
	expect_text("/api/buckets/team/b",
		"{\"id\":\"team/b\",\"name\":\"team/b\",\"author\":\"team\",\"private\":true,\"visibility\":\"private\",\"createdAt\":\"20");
	expect_text("/api/buckets/team/b", "Z\",\"size\":0,\"totalFiles\":0}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/a", NULL, "12345");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/c/d", NULL, "12345678");
	expect_text("/api/buckets/team/b", "\"size\":13,\"totalFiles\":2}");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/team--b/a", NULL, NULL);
	expect_text("/api/buckets/team/b", "\"size\":8,\"totalFiles\":1}");
	as(face_fixture_root_token);
	expect_text("/api/buckets/main/bkt", "\"id\":\"main/bkt\"");
}
END_TEST

/* hub-xet.md 2.12. Any write that changes the bucket counts. */
static const struct {
	const char *who;
	bool is_public;
	int info;
	int write;
} matrix[] = {
	{"owner", true, 200, 200},
	{"owner", false, 200, 200},
	{"stranger", true, 200, 403},
	{"stranger", false, 404, 404},
	{"nobody", true, 200, 401},
	{"nobody", false, 401, 401},
};

static const struct {
	enum method method;
	const char *path;
	const char *body;
} writes[] = {
	{METHOD_PUT, "/settings", "{}"},
	{METHOD_GET, "/xet-write-token", NULL},
	{METHOD_GET, "/xet-write-token/main?create_pr=1", NULL},
	{METHOD_DELETE, "", NULL},
};

static const char *token_of(const char *who)
{
	return strcmp(who, "owner") == 0 ? owner : strcmp(who, "stranger") == 0 ? stranger : NULL;
}

START_TEST(who_may_what)
{
	create("b", matrix[_i].is_public ? "{\"private\":false}" : "{\"private\":true}");
	as(token_of(matrix[_i].who));
	static const char *const reads[] = {"/api/buckets/team/b",
		"/api/buckets/team/b/xet-read-token", "/api/buckets/team/b/xet-read-token/main"};
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		expect(matrix[_i].info, METHOD_GET, reads[i], NULL);
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		const char *const target =
			arena_format(fixture.arena, "/api/buckets/team/b%s", writes[i].path);
		expect(matrix[_i].write, writes[i].method, target, writes[i].body);
		if (matrix[_i].write == 404)
			expect_unknown(writes[i].method, target, writes[i].body);
	}
	if (matrix[_i].info == 404)
		expect_unknown(METHOD_GET, "/api/buckets/team/b", NULL);
}
END_TEST

START_TEST(what_is_not_there_is_unknown)
{
	as(owner);
	expect_unknown(METHOD_GET, "/api/buckets/team/none", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/main/none", NULL);
	expect_unknown(METHOD_DELETE, "/api/buckets/team/none", NULL);
	expect_unknown(METHOD_DELETE, "/api/buckets/none", NULL);
	expect_unknown(METHOD_PUT, "/api/buckets/team/none/settings", "{\"private\":true}");
	expect_unknown(METHOD_GET, "/api/buckets/team/none/xet-read-token", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/team/none/xet-write-token", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/none", NULL);
	expect_unknown(METHOD_GET, "/api/models/missing/repo", NULL);
	expect_unknown(METHOD_GET, "/api/datasets/missing/repo/tree/main", NULL);
	expect_unknown(METHOD_GET, "/api/spaces/x", NULL);
	as(face_fixture_root_token);
	expect_unknown(METHOD_GET, "/api/buckets/team/none", NULL);
	expect_unknown(METHOD_DELETE, "/api/buckets/team/none", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/team/none/xet-write-token", NULL);
	as(NULL);
	expect(401, METHOD_GET, "/api/buckets/team/none", NULL);
	expect(401, METHOD_DELETE, "/api/buckets/team/none", NULL);
	expect(404, METHOD_GET, "/api/settings/webhooks", NULL);
	face_fixture_expect_text(&fixture, 404, METHOD_POST, "/oauth/device", HOST,
		"client_id=x&scope=y", "hf auth login --token");
	expect(404, METHOD_PUT, "/api/buckets/team/none", "x");
	expect_text("/api/agent-harnesses", "{\"standardEnvVars\":[],\"harnesses\":{}}");
}
END_TEST

START_TEST(settings_change_who_sees_it)
{
	create("b", "{}");
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, "/api/buckets/team/b/settings", HOST,
		"{\"private\":false,\"other\":1}", "\"private\":false");
	as(NULL);
	expect(200, METHOD_GET, "/api/buckets/team/b", NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/team--b", NULL, NULL);
	as(owner);
	expect(200, METHOD_PUT, "/api/buckets/team/b/settings", "{\"visibility\":\"private\"}");
	as(NULL);
	expect(401, METHOD_GET, "/api/buckets/team/b", NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/team--b", NULL, NULL);
	as(owner);
	expect(400, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":\"no\"}");
	expect(400, METHOD_PUT, "/api/buckets/team/b/settings", "not json");
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, "/api/buckets/team/b/settings", HOST,
		NULL, "\"private\":true");
}
END_TEST

#define BLOCK(bits)                                              \
	"<PublicAccessBlockConfiguration><BlockPublicAcls>" bits \
	"</BlockPublicAcls></PublicAccessBlockConfiguration>"
static const char open_policy[] =
	"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":[\"s3:GetObject\",\"s3:ListBucket\"],"
	"\"Resource\":[\"arn:aws:s3:::team--b\",\"arn:aws:s3:::team--b/*\"]}]}";

START_TEST(what_s3_says_of_public_access_holds_here)
{
	create("b", "{}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b?acl",
		((const char *const[]){"x-amz-acl", "public-read", NULL}), NULL);
	expect_text("/api/buckets/team/b", "\"private\":false");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b?acl",
		((const char *const[]){"x-amz-acl", "private", NULL}), NULL);
	expect_text("/api/buckets/team/b", "\"private\":true");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/team--b?publicAccessBlock", NULL, BLOCK("true"));
	expect(403, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":false}");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/team--b?publicAccessBlock", NULL, BLOCK("false"));
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b?ownershipControls", NULL,
		"<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>");
	expect(400, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":false}");
	face_fixture_expect(&fixture, 204, METHOD_PUT, "/team--b?policy", NULL, open_policy);
	expect_text("/api/buckets/team/b", "\"private\":false");
	expect(400, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":true}");
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/team--b?policy", NULL, NULL);
	expect(200, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":true}");
}
END_TEST

START_TEST(a_bucket_is_deleted_with_all_it_holds)
{
	create("b", "{}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/k", NULL, "12345");
	expect(200, METHOD_DELETE, "/api/buckets/team/b", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/team/b", NULL);
	expect_unknown(METHOD_DELETE, "/api/buckets/team/b", NULL);
	create("b", "{}");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/team--b/k", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_POST, "/v1/runs/team--b/run", NULL, "{}");
	expect(409, METHOD_DELETE, "/api/buckets/team/b", NULL);
}
END_TEST

#define MOVE(from, to) "{\"fromRepo\":\"" from "\",\"toRepo\":\"" to "\",\"type\":\"bucket\"}"

START_TEST(a_bucket_moves)
{
	create("b", "{\"private\":false}");
	create("taken", "{}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/k", NULL, "12345");
	expect(409, METHOD_POST, "/api/repos/move", MOVE("team/b", "team/taken"));
	expect(403, METHOD_POST, "/api/repos/move", MOVE("team/b", "other/b"));
	expect(400, METHOD_POST, "/api/repos/move", MOVE("team/b", "team/b--c"));
	expect(400, METHOD_POST, "/api/repos/move", MOVE("team/b", "bare"));
	expect(400, METHOD_POST, "/api/repos/move", MOVE("team/b", "team/a/b"));
	expect(400, METHOD_POST, "/api/repos/move", MOVE("team/b", "/x"));
	expect(400, METHOD_POST, "/api/repos/move",
		"{\"fromRepo\":\"team/b\",\"type\":\"bucket\"}");
	expect_unknown(METHOD_POST, "/api/repos/move", MOVE("team/none", "team/new"));
	expect_unknown(METHOD_POST, "/api/repos/move",
		"{\"fromRepo\":\"team/b\",\"toRepo\":\"team/c\",\"type\":\"model\"}");
	expect_unknown(
		METHOD_POST, "/api/repos/move", "{\"fromRepo\":\"team/b\",\"toRepo\":\"team/c\"}");
	expect(200, METHOD_POST, "/api/repos/move", MOVE("team/b", "team/new"));
	expect_unknown(METHOD_GET, "/api/buckets/team/b", NULL);
	expect_text("/api/buckets/team/new", "\"private\":false");
	expect_text("/api/buckets/team/new", "\"size\":5,\"totalFiles\":1}");
	as(stranger);
	expect(403, METHOD_POST, "/api/repos/move", MOVE("team/new", "other/mine"));
	expect_unknown(METHOD_POST, "/api/repos/move", MOVE("team/taken", "other/mine"));
	as(NULL);
	expect(401, METHOD_POST, "/api/repos/move", MOVE("team/new", "team/x"));
	as(face_fixture_root_token);
	expect(200, METHOD_POST, "/api/repos/move", MOVE("team/new", "other/mine"));
	as(stranger);
	expect_text("/api/buckets/me", "\"id\":\"other/mine\"");
	expect(200, METHOD_DELETE, "/api/buckets/other/mine", NULL);
}
END_TEST

static void expect_ids(const char *target, const char *const *ids)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, target, HOST, NULL);
	const char *at = buffer_text(&fake->body);
	size_t count = 0;
	for (; (at = strstr(at, "{\"id\":\"")) != NULL; at += 7)
		count++;
	size_t wanted = 0;
	for (; ids[wanted] != NULL; wanted++)
		face_fixture_assert_holds(
			fake, arena_format(fixture.arena, "{\"id\":\"%s\"", ids[wanted]));
	ck_assert_msg(count == wanted, "%s: %s", target, buffer_text(&fake->body));
	fake_exchange_free(fake);
}
#define IDS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

START_TEST(lists_show_what_the_caller_may_see)
{
	create("secret", "{\"private\":true}");
	create("open", "{\"private\":false}");
	create("Data_1", "{\"private\":true}");
	/* team's, but named in main */
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/plain", NULL, NULL);
	expect_ids("/api/buckets/me", IDS("team/secret", "team/open", "team/Data_1", "main/plain"));
	expect_ids("/api/buckets/team", IDS("team/secret", "team/open", "team/Data_1"));
	expect_ids("/api/buckets/main", IDS("main/plain"));
	expect_ids("/api/buckets/me?search=OPE", IDS("team/open"));
	expect_ids("/api/buckets/me?search=data", IDS("team/Data_1"));
	expect_ids("/api/buckets/me?search=ATA_", IDS("team/Data_1"));
	expect_ids("/api/buckets/me?search=team", IDS());
	expect_ids("/api/buckets/me?search=e", IDS("team/secret", "team/open"));
	expect_ids("/api/buckets/me?search=",
		IDS("team/secret", "team/open", "team/Data_1", "main/plain"));
	expect(400, METHOD_GET, "/api/buckets/me?limit=0", NULL);
	expect(400, METHOD_GET, "/api/buckets/me?limit=x", NULL);
	as(stranger);
	expect_ids("/api/buckets/team", IDS("team/open"));
	expect_ids("/api/buckets/main", IDS());
	expect_ids("/api/buckets/me", IDS());
	expect_unknown(METHOD_GET, "/api/buckets/nobody", NULL);
	as(NULL);
	expect_ids("/api/buckets/team", IDS("team/open"));
	expect(401, METHOD_GET, "/api/buckets/me", NULL);
	expect_unknown(METHOD_GET, "/api/buckets/nobody", NULL);
	as(face_fixture_root_token);
	expect_ids("/api/buckets/team", IDS("team/secret", "team/open", "team/Data_1"));
	expect_ids("/api/buckets/main", IDS("main/plain", "main/bkt"));
	expect_ids("/api/buckets/me", IDS("main/bkt"));
}
END_TEST

START_TEST(repositories_come_with_their_storage)
{
	create("a", "{\"private\":false}");
	create("b", "{}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--a/k", NULL, "1234567");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/k", NULL, "1");
	expect_ids("/api/settings/repositories", IDS("team/a", "team/b"));
	expect_text("/api/settings/repositories",
		"[{\"id\":\"team/a\",\"type\":\"bucket\",\"updatedAt\":\"20");
	expect_text("/api/settings/repositories",
		"Z\",\"visibility\":\"public\",\"storage\":7,\"storagePercent\":87.5}");
	expect_text("/api/organizations/team/settings/repositories",
		"\"visibility\":\"private\",\"storage\":1,\"storagePercent\":12.5}");
	expect_unknown(METHOD_GET, "/api/organizations/nobody/settings/repositories", NULL);
	as(stranger);
	expect_ids("/api/settings/repositories", IDS());
	expect(403, METHOD_GET, "/api/organizations/team/settings/repositories", NULL);
	as(face_fixture_root_token);
	expect_ids("/api/organizations/team/settings/repositories", IDS("team/a", "team/b"));
	const struct grant grant = {
		span_text("team--a"), {NULL, 0}, PERMISSION_READ | PERMISSION_LIST};
	as(face_fixture_key(&fixture, "other", &grant));
	expect_text("/api/settings/repositories", "\"storage\":7}]");
	as(NULL);
	expect(401, METHOD_GET, "/api/settings/repositories", NULL);
	expect(401, METHOD_GET, "/api/organizations/team/settings/repositories", NULL);
}
END_TEST

static void expect_page(const char *target, int status, const char *const *texts)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, status, METHOD_GET, target, HOST, NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "text/html; charset=utf-8");
	face_fixture_assert_header(fake, "Content-Security-Policy", "default-src 'none'");
	for (size_t i = 0; texts[i] != NULL; i++)
		face_fixture_assert_holds(fake, texts[i]);
	face_fixture_assert_lacks(fake, "<script");
	fake_exchange_free(fake);
}

/* The addresses of buckets that `hf` prints. */
START_TEST(a_browser_gets_a_page)
{
	create("b", "{\"private\":false}");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/team--b/%3Cscript%3E%22%26%27.txt", NULL, "12345");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/d/%23%3F", NULL, "1");
	as(NULL);
	expect_page("/buckets/team/b", 200,
		IDS("<h1>team/b</h1>", "A public bucket: 2 files, 6 bytes",
			"<a href=\"/buckets/team/b/tree/d\">d/</a>",
			"<a href=\"/buckets/team/b/resolve/%3Cscript%3E%22%26%27.txt\">&lt;script&gt;&quot;&amp;&#39;.txt</a> 5"));
	expect_page("/buckets/team/b/tree/d/", 200,
		IDS("<a href=\"/buckets/team/b/resolve/d/%23%3F\">d/#?</a> 1"));
	expect_page("/buckets/team/none", 401, IDS("hf buckets ls"));
	create("hidden", "{}");
	expect_page("/buckets/team/hidden", 200, IDS("A private bucket: 0 files"));
	as(stranger);
	expect_page("/buckets/team/hidden", 404, IDS("does not exist"));
	create("part", "{}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--part/d/e", NULL, "1");
	const struct grant grant = {.bucket = span_text("team--part"),
		.prefix = span_text("d/"),
		.permissions = PERMISSION_LIST};
	as(face_fixture_key(&fixture, "team", &grant)); /* sees what is below its prefix */
	expect_page("/buckets/team/part/tree/d", 200, IDS("/resolve/d/e"));
	expect_page("/buckets/team/part", 403, IDS("<p>"));
}
END_TEST

/* Names of 1,000 bytes, each of which takes nine in the page. */
START_TEST(a_page_too_large_is_a_failure_with_one_policy)
{
	enum { NAMES = 960, QUOTES = 1000 };
	struct buffer target;
	create("b", "{\"private\":false}");
	buffer_init(&target, 8192);
	for (int i = 0; i < NAMES; i++) {
		buffer_reset(&target);
		buffer_format(&target, "/team--b/%03d", i);
		for (int k = 0; k < QUOTES; k++)
			buffer_add_text(&target, "%22");
		face_fixture_expect(&fixture, 200, METHOD_PUT, buffer_text(&target), NULL, "1");
	}
	buffer_release(&target);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 503, METHOD_GET, "/buckets/team/b", HOST, NULL);
	const struct reply *const reply = &fake->exchange.reply;
	size_t policies = 0;
	for (size_t i = 0; i < reply->header_count; i++)
		policies += strcmp(reply->headers[i].name, "Content-Security-Policy") == 0;
	ck_assert_uint_eq(policies, 1);
	fake_exchange_free(fake);
}
END_TEST

/* Follows the links, as clients do, and counts the buckets. */
static size_t walk(const char *target, size_t *out_pages)
{
	size_t count = 0;
	for (*out_pages = 0; target != NULL && *out_pages < 50; (*out_pages)++) {
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, 200, METHOD_GET, target, HOST, NULL);
		for (const char *at = buffer_text(&fake->body);
			(at = strstr(at, "{\"id\":\"")) != NULL; at += 7)
			count++;
		const char *const link = fake_exchange_reply_header(fake, "Link");
		target = NULL;
		if (link != NULL) {
			static const char start[] = "<http://hub.example:9000";
			ck_assert_msg(strncmp(link, start, sizeof(start) - 1) == 0 &&
					strstr(link, ">; rel=\"next\"") != NULL,
				"%s", link);
			ck_assert_msg(strstr(link, "team--b") == NULL,
				"%s: a page may end at a bucket that is hidden", link);
			target = arena_text(fixture.arena,
				span_of(link + sizeof(start) - 1,
					(size_t)(strchr(link, '>') - link) - sizeof(start) + 1));
		}
		fake_exchange_free(fake);
	}
	return count;
}

START_TEST(lists_come_in_pages)
{
	size_t pages;
	for (int i = 0; i < 7; i++)
		create(arena_format(fixture.arena, "b%d", i),
			i % 2 == 0 ? "{\"private\":false}" : "{}");
	ck_assert_uint_eq(walk("/api/buckets/me", &pages), 7);
	ck_assert_uint_eq(pages, 1);
	ck_assert_uint_eq(walk("/api/buckets/me?search=B&limit=3", &pages), 7);
	ck_assert_uint_eq(pages, 3);
	ck_assert_uint_eq(walk("/api/buckets/team?limit=7", &pages), 7);
	ck_assert_uint_eq(pages, 1);
	static const char *const forged[] = {"", "team--b1", "AAAA", "%00"};
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		expect(400, METHOD_GET,
			arena_format(fixture.arena, "/api/buckets/team?cursor=%s", forged[i]),
			NULL);
	char padding[8181];
	memset(padding, 'x', sizeof(padding) - 1);
	padding[sizeof(padding) - 1] = '\0';
	struct fake_exchange *const fake = face_fixture_ask_any(&fixture, METHOD_GET,
		arena_format(fixture.arena, "/api/buckets/me?limit=3&y=%s", padding), HOST, NULL);
	/* no header could have the link */
	ck_assert_int_eq(fake->exchange.reply.status, 400);
	fake_exchange_free(fake);
	as(stranger);
	ck_assert_uint_eq(walk("/api/buckets/team?limit=1", &pages), 4);
}
END_TEST

START_TEST(a_key_with_grants_sees_and_does_what_they_name)
{
	create("b", "{\"private\":false}");
	create("shown", "{\"private\":false}");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/team--b/in/k", NULL, "12345");
	const struct grant reads = {
		span_text("team--b"), span_text("in/"), PERMISSION_READ | PERMISSION_LIST};
	const struct grant sends = {span_text("team--b"), span_text("in/"), PERMISSION_WRITE};
	const struct grant rules = {span_text("team--b"), {NULL, 0}, PERMISSION_ADMIN};
	const struct grant makes = {span_text("other--new"), {NULL, 0}, PERMISSION_ADMIN};
	as(face_fixture_key(&fixture, "other", &reads));
	expect_text("/api/buckets/team/b", "\"size\":0,\"totalFiles\":0}"); /* not shown to it */
	expect(200, METHOD_GET, "/api/buckets/team/b/xet-read-token", NULL);
	expect(403, METHOD_GET, "/api/buckets/team/b/xet-write-token", NULL);
	expect(403, METHOD_DELETE, "/api/buckets/team/b", NULL);
	expect(403, METHOD_PUT, "/api/buckets/team/b/settings", "{}");
	expect(403, METHOD_POST, "/api/buckets/other/x", "{}");
	expect_unknown(METHOD_GET, "/api/buckets/team/shown", NULL);
	expect_ids("/api/buckets/me", IDS("team/b"));
	expect_ids("/api/buckets/team", IDS("team/b"));
	expect_ids("/api/buckets/other", IDS());
	as(face_fixture_key(&fixture, "other", &sends));
	expect(200, METHOD_GET, "/api/buckets/team/b/xet-write-token", NULL);
	as(face_fixture_key(&fixture, "other", &makes));
	expect(403, METHOD_POST, "/api/buckets/other/old", "{}");
	expect(200, METHOD_POST, "/api/buckets/other/new", "{}");
	expect(403, METHOD_POST, "/api/repos/move", MOVE("other/new", "other/old"));
	expect(200, METHOD_DELETE, "/api/buckets/other/new", NULL);
	as(face_fixture_key(&fixture, "other", &rules));
	expect(403, METHOD_GET, "/api/buckets/team/b/xet-write-token", NULL);
	expect(200, METHOD_PUT, "/api/buckets/team/b/settings", "{\"private\":true}");
	expect(200, METHOD_DELETE, "/api/buckets/team/b", NULL);
}
END_TEST

static void read_token(const char *target, struct xet_token *out)
{
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, target, HOST, NULL);
	const char *const token = fake_exchange_reply_header(fake, "X-Xet-Access-Token");
	const char *const expiry = fake_exchange_reply_header(fake, "X-Xet-Token-Expiration");
	ck_assert_ptr_nonnull(token);
	ck_assert_ptr_nonnull(expiry);
	face_fixture_assert_header(fake, "X-Xet-Cas-Url", "http://hub.example:9000/xet");
	face_fixture_assert_body(fake,
		arena_format(fixture.arena,
			"{\"accessToken\":\"%s\",\"exp\":%s,\"casUrl\":\"http://hub.example:9000/xet\"}",
			token, expiry));
	ck_assert(xet_token_parse(fixture.arena, fixture.context.token_key, span_text(token), out));
	ck_assert(span_equal_text(
		span_text(expiry), arena_format(fixture.arena, "%lld", (long long)out->expires_s)));
	fake_exchange_free(fake);
}

START_TEST(tokens_are_of_the_bucket_and_the_caller)
{
	struct xet_token token;
	struct error err = {0};
	struct bucket bucket;
	const int64_t now_s = fixture.context.clock->wall_ms(fixture.context.clock) / 1000;
	create("b", "{\"private\":false}");
	ck_assert_int_eq(bucket_find(fixture.store, bucket_named(span_text("team--b")),
				 fixture.arena, &bucket, &err),
		0);
	read_token("/api/buckets/team/b/xet-write-token", &token);
	ck_assert(token.is_write && token.bucket_id == bucket.id && token.key_id.len > 0);
	ck_assert(token.expires_s >= now_s + 900 && token.expires_s <= now_s + 4000);
	read_token("/api/buckets/team/b/xet-read-token/main?x=1", &token);
	ck_assert(!token.is_write && token.key_id.len > 0);
	as(NULL);
	read_token("/api/buckets/team/b/xet-read-token", &token);
	ck_assert(!token.is_write && token.key_id.len == 0 && token.bucket_id == bucket.id);
	as(face_fixture_root_token);
	read_token("/api/buckets/team/b/xet-write-token", &token);
	ck_assert_int_eq(token.bucket_id, bucket.id);
}
END_TEST

Suite *test_hub_buckets_suite(void);
Suite *test_hub_buckets_suite(void)
{
	Suite *const suite = suite_create("hub_buckets");
	TCase *const tests = tcase_create("hub_buckets");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, whoami_is_the_namespace);
	tcase_add_test(tests, a_bucket_is_made_once);
	tcase_add_loop_test(tests, a_bucket_that_may_not_be_is_not_made, 0,
		sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tests, root_makes_buckets_for_others);
	tcase_add_loop_test(tests, a_new_bucket_is_as_public_as_it_was_asked_to_be, 0,
		sizeof(visibilities) / sizeof(visibilities[0]));
	tcase_add_test(tests, the_object_of_a_bucket_says_what_is_in_it);
	tcase_add_loop_test(tests, who_may_what, 0, sizeof(matrix) / sizeof(matrix[0]));
	tcase_add_test(tests, what_is_not_there_is_unknown);
	tcase_add_test(tests, settings_change_who_sees_it);
	tcase_add_test(tests, what_s3_says_of_public_access_holds_here);
	tcase_add_test(tests, a_bucket_is_deleted_with_all_it_holds);
	tcase_add_test(tests, a_bucket_moves);
	tcase_add_test(tests, lists_show_what_the_caller_may_see);
	tcase_add_test(tests, repositories_come_with_their_storage);
	tcase_add_test(tests, a_browser_gets_a_page);
	tcase_add_test(tests, a_page_too_large_is_a_failure_with_one_policy);
	tcase_add_test(tests, lists_come_in_pages);
	tcase_add_test(tests, a_key_with_grants_sees_and_does_what_they_name);
	tcase_add_test(tests, tokens_are_of_the_bucket_and_the_caller);
	suite_add_tcase(suite, tests);
	return suite;
}
