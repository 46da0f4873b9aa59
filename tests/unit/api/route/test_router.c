#include "tests/unit/api/face_fixture.h"
#include "tests/unit/unit.h"

#include <string.h>

static const struct {
	enum method method;
	const char *target;
	const char *route;         /* NULL: none */
	const char *parameters[3]; /* still encoded */
} matches[] = {
	{METHOD_GET, "/", "ListBuckets", {NULL}},
	{METHOD_GET, "/?prefix=a", "ListBuckets", {NULL}},
	{METHOD_PUT, "/bkt", "CreateBucket", {"bkt"}},
	{METHOD_PUT, "/bkt/", "CreateBucket", {"bkt"}},
	{METHOD_HEAD, "/bkt", "HeadBucket", {"bkt"}},
	{METHOD_GET, "/bkt?list-type=2", "ListObjectsV2", {"bkt"}},
	{METHOD_GET, "/bkt/?prefix=p&list-type=2", "ListObjectsV2", {"bkt"}},
	{METHOD_GET, "/bkt?location", "GetBucketLocation", {"bkt"}},
	{METHOD_GET, "/bkt?location=", "GetBucketLocation", {"bkt"}},
	{METHOD_PUT, "/bkt/k", "PutObject", {"bkt", "k"}},
	{METHOD_PUT, "/bkt/a/b//c/", "PutObject", {"bkt", "a/b//c/"}},
	{METHOD_GET, "/bkt//k", "GetObject", {"bkt", "/k"}},
	{METHOD_GET, "/bkt/a%2Fb", "GetObject", {"bkt", "a%2Fb"}},
	{METHOD_GET, "/a%2Fb", "ListObjects", {"a%2Fb"}},
	{METHOD_GET, "/bkt/k?x-id=GetObject", "GetObject", {"bkt", "k"}},
	{METHOD_DELETE, "/bkt/k", "DeleteObject", {"bkt", "k"}},
	{METHOD_GET, "/-/health", "Health", {NULL}},
	{METHOD_GET, "/-/health/", "Health", {NULL}},
	{METHOD_DELETE, "/-/keys/DB1", "RevokeKey", {"DB1"}},
	{METHOD_DELETE, "/-/keys/a/b", NULL, {NULL}},
	{METHOD_GET, "/-/nothing", NULL, {NULL}},
	{METHOD_GET, "/-", NULL, {NULL}},
	{METHOD_POST, "/xet/damage-0af3/v1/xorbs/default/a", "PostXorb", {"default", "a"}},
	{METHOD_GET, "/xet/damage-/health", "Health", {NULL}},
	{METHOD_POST, "/xet/damage-0af3", NULL, {NULL}},
	{METHOD_POST, "/xet/damage-0af3/damage-1/v1/shards", NULL, {NULL}},
	{METHOD_PUT, "/bkt/xet/damage-0af3/k", "PutObject", {"bkt", "xet/damage-0af3/k"}},
	{METHOD_PUT, "/v1/nonsense", NULL, {NULL}},
	{METHOD_PUT, "/v1", NULL, {NULL}},
	{METHOD_GET, "/v11", "ListObjects", {"v11"}},
	{METHOD_PUT, "/v11", "CreateBucket", {"v11"}},
	{METHOD_OTHER, "/bkt/k", NULL, {NULL}},
	{METHOD_OPTIONS, "*", NULL, {NULL}},
};

START_TEST(paths_find_their_rows)
{
	struct fake_exchange *const fake =
		fake_exchange_new(NULL, matches[_i].method, matches[_i].target);
	const struct exchange *const exchange = &fake->exchange;
	router_match(&fake->exchange);
	const bool refused = exchange->route != NULL &&
		exchange->route->access == ACCESS_SIGNED_IN &&
		strcmp(exchange->route->name, "ListBuckets") != 0 &&
		strcmp(exchange->route->name, "GetBucketLocation") != 0;
	if (matches[_i].route == NULL)
		ck_assert_msg(exchange->route == NULL || refused, "%s is %s", matches[_i].target,
			exchange->route->name);
	else
		ck_assert_msg(exchange->route != NULL &&
				strcmp(exchange->route->name, matches[_i].route) == 0,
			"%s is %s", matches[_i].target,
			exchange->route != NULL ? exchange->route->name : "nothing");
	for (size_t i = 0; matches[_i].parameters[i] != NULL; i++)
		ck_assert(span_equal_text(exchange->parameters[i], matches[_i].parameters[i]));
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *authorization;
	const char *target;
	const char *face;
} names[] = {
	{"AWS4-HMAC-SHA256 Credential=x", "/api", "s3"},
	{"AWS4-HMAC-SHA256 Credential=x", "/v1/", "s3"},
	{"AWS4-HMAC-SHA256 Credential=x", "/-?acl", "s3"},
	{"AWS id:signature", "/xet", "s3"},
	{NULL, "/hot_load?X-Amz-Algorithm=AWS4-HMAC-SHA256", "s3"},
	{NULL, "/buckets?AWSAccessKeyId=x&Expires=1&Signature=x", "s3"},
	{"AWS4-HMAC-SHA256 Credential=x", "/api/x", "hub"},
	{"AWS4-HMAC-SHA256 Credential=x", "/v1/runs/bkt", "steps"},
	{"AWS4-HMAC-SHA256 Credential=x", "/v1//", "steps"},
	{"Bearer x", "/api", "hub"},
	{NULL, "/api", "hub"},
	{NULL, "/v1", "steps"},
};

START_TEST(a_signed_name_alone_means_a_bucket)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_PUT, names[_i].target);
	if (names[_i].authorization != NULL)
		fake_exchange_add(fake, "Authorization", names[_i].authorization);
	router_match(&fake->exchange);
	ck_assert_str_eq(fake->exchange.face->name, names[_i].face);
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *host;
	const char *target;
	const char *bucket;
	const char *key;
} hosts[] = {
	{"models.example.org", "/k", "models", "k"},
	{"models.example.org:9000", "/a/b", "models", "a/b"},
	{"MODELS.Example.ORG", "/k", "models", "k"},
	{"a.b.example.org", "/k", "a.b", "k"},
	{"models.example.org", "/", "models", NULL},
	{"models.example.org", "/v1/runs", "models", "v1/runs"},
	{"models.example.org", "/-/health", "models", "-/health"},
	{"models.example.org", "/xet/damage-1/k", "models", "xet/damage-1/k"},
	{"example.org", "/models/k", "models", "k"},
	{"other.net", "/models/k", "models", "k"},
	{"xexample.org", "/models/k", "models", "k"},
};

START_TEST(virtual_hosts_name_the_bucket)
{
	const struct api_context context = {.domain = "example.org", .clock = clock_system()};
	struct fake_exchange *const fake = fake_exchange_new(
		&context, hosts[_i].key != NULL ? METHOD_GET : METHOD_HEAD, hosts[_i].target);
	fake_exchange_add(fake, "Host", hosts[_i].host);
	router_match(&fake->exchange);
	ck_assert_ptr_nonnull(fake->exchange.route);
	ck_assert_str_eq(
		fake->exchange.route->name, hosts[_i].key != NULL ? "GetObject" : "HeadBucket");
	ck_assert(span_equal_text(fake->exchange.parameters[0], hosts[_i].bucket));
	if (hosts[_i].key != NULL)
		ck_assert(span_equal_text(fake->exchange.parameters[1], hosts[_i].key));
	/* Signatures need the path as sent. */
	ck_assert(span_equal_text(fake->exchange.path, hosts[_i].target));
	fake_exchange_free(fake);
}
END_TEST

START_TEST(rows_are_well_formed)
{
	const struct route *const tables[] = {admin_routes, console_routes, steps_routes,
		hot_load_routes, hub_routes, xet_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) - 1; i++)
		for (const struct route *route = tables[i]; route->pattern != NULL; route++) {
			ck_assert_msg(route->pattern[0] == '/' && route->begin != NULL &&
					route->face != NULL && route->name != NULL,
				"%s", route->name);
			ck_assert_msg(strchr(route->pattern + 1, '/') != NULL ||
					route->access == ACCESS_ANYONE,
				"%s has a path that is a bucket's to whoever signs", route->name);
			ck_assert_msg(route->body == BODY_NONE || route->finish != NULL,
				"%s takes a body and does not finish it", route->name);
			const bool names_bucket = strstr(route->pattern, "{bucket}") != NULL;
			const bool has_token = route->access == ACCESS_XET_READ ||
				route->access == ACCESS_XET_WRITE;
			ck_assert_msg(
				names_bucket || has_token || route->access < ACCESS_CREATE_BUCKET,
				"%s has no bucket to ask about", route->name);
		}
}
END_TEST

struct ask {
	enum method method;
	const char *target;
	int status;
	const char *holds; /* a text in the body, or NULL */
};

static void check_asks(struct face_fixture *fixture, const struct ask *asks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct fake_exchange *const fake =
			fake_exchange_new(&fixture->context, asks[i].method, asks[i].target);
		if (fixture->token != NULL)
			fake_exchange_add(fake, "Authorization",
				arena_format(fixture->arena, "Bearer %s", fixture->token));
		const int status = fake_exchange_run(fake, span_text(""));
		ck_assert_msg(status == asks[i].status, "%s: %d, not %d: %s", asks[i].target,
			status, asks[i].status, buffer_text(&fake->body));
		if (asks[i].holds != NULL)
			face_fixture_assert_holds(fake, asks[i].holds);
		fake_exchange_free(fake);
	}
}

START_TEST(refusals_speak_the_language_of_the_path)
{
	static const struct ask asks[] = {
		{METHOD_GET, "/-/nothing", 404, "{\"error\""},
		{METHOD_GET, "/v1/nothing", 404, "{\"error\""},
		{METHOD_PUT, "/-/health", 405, "{\"error\""},
		{METHOD_OTHER, "/bkt/k", 405, "<Code>MethodNotAllowed</Code>"},
		{METHOD_GET, "/bkt/%zz", 400, "<Code>InvalidURI</Code>"},
		{METHOD_GET, "/bkt/%ff", 400, "<Code>InvalidURI</Code>"},
		{METHOD_GET, "/bkt/a%00b", 400, "<Code>InvalidURI</Code>"},
		{METHOD_DELETE, "/bkt/k?versionId=%zz", 400, "<Code>InvalidURI</Code>"},
		{METHOD_GET, "/bkt?list-type=2&prefix=%0", 400, "<Code>InvalidURI</Code>"},
		{METHOD_GET, "/bkt?list-type=2&prefix=a%00b", 400, "<Code>InvalidURI</Code>"},
		{METHOD_GET, "/v1/runs/bkt?after=%", 400, "\"bad_uri\""},
	};
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	check_asks(&fixture, asks, sizeof asks / sizeof asks[0]);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(a_wrong_method_lists_the_right_ones)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 405, METHOD_DELETE, "/-/health", NULL, NULL);
	face_fixture_assert_header(fake, "Allow", "GET, HEAD");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 405, METHOD_PUT, "/-/keys", NULL, NULL);
	face_fixture_assert_header(fake, "Allow", "GET, POST");
	fake_exchange_free(fake);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(strangers_see_health_and_nothing_else)
{
	static const struct ask asks[] = {
		{METHOD_GET, "/-/health", 200, "ok"},
		{METHOD_GET, "/-/ready", 200, "ready"},
		{METHOD_GET, "/-/metrics", 401, "no_credentials"},
		{METHOD_GET, "/-/keys", 401, NULL},
		{METHOD_GET, "/", 403, "<Code>AccessDenied</Code>"},
		{METHOD_PUT, "/new-bucket", 403, "<Code>AccessDenied</Code>"},
		{METHOD_GET, "/bkt/k", 403, "<Code>AccessDenied</Code>"},
		{METHOD_GET, "/absent-bucket/k", 404, "<Code>NoSuchBucket</Code>"},
		{METHOD_GET, "/v1/runs/bkt/r", 401, NULL},
	};
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	fixture.token = NULL;
	check_asks(&fixture, asks, sizeof asks / sizeof asks[0]);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(other_accounts_are_kept_out_and_told_of_what_does_not_exist)
{
	static const struct ask asks[] = {
		{METHOD_GET, "/bkt/k", 403, "<Code>AccessDenied</Code>"},
		{METHOD_PUT, "/bkt/k", 403, NULL},
		{METHOD_GET, "/bkt?list-type=2", 403, NULL},
		{METHOD_DELETE, "/bkt", 403, NULL},
		{METHOD_GET, "/absent-bucket/k", 404, "<Code>NoSuchBucket</Code>"},
		{METHOD_GET, "/v1/runs/bkt/r", 403, "denied"},
		{METHOD_GET, "/-/metrics", 403, "denied"},
		{METHOD_GET, "/-/keys", 403, NULL},
		{METHOD_GET, "/", 200, NULL},
		{METHOD_PUT, "/own-bucket", 200, NULL},
		{METHOD_PUT, "/own-bucket/k", 200, NULL},
		{METHOD_GET, "/own-bucket?list-type=2", 200, "<Key>k</Key>"},
	};
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	fixture.token = face_fixture_key(&fixture, "team", NULL);
	check_asks(&fixture, asks, sizeof asks / sizeof asks[0]);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(a_key_with_grants_may_do_what_they_name)
{
	static const struct ask asks[] = {
		{METHOD_PUT, "/bkt/run/k", 200, NULL},
		{METHOD_GET, "/bkt/run/k", 200, NULL},
		{METHOD_GET, "/bkt/other", 403, NULL},
		{METHOD_PUT, "/bkt/other", 403, NULL},
		{METHOD_GET, "/bkt?list-type=2&prefix=run/", 200, "<Key>run/k</Key>"},
		{METHOD_GET, "/bkt?list-type=2&prefix=run%2Fk", 200, NULL},
		{METHOD_GET, "/bkt?list-type=2", 403, NULL},
		{METHOD_GET, "/bkt?list-type=2&prefix=ru", 403, NULL},
		{METHOD_DELETE, "/bkt", 403, NULL},
		{METHOD_PUT, "/new-bucket", 403, NULL},
		{METHOD_GET, "/absent-bucket/k", 403, NULL},
		{METHOD_GET, "/v1/runs/bkt/run", 404, "no_run"},
		{METHOD_GET, "/v1/runs/bkt/runner", 403, NULL},
		{METHOD_GET, "/v1/runs/bkt", 403, NULL},
		{METHOD_GET, "/v1/runs/bkt?prefix=run/", 403, NULL},
	};
	struct face_fixture fixture;
	const struct grant grant = {span_text("bkt"), span_text("run/"),
		PERMISSION_READ | PERMISSION_WRITE | PERMISSION_LIST};
	face_fixture_open(&fixture);
	fixture.token = face_fixture_key(&fixture, "team", &grant);
	check_asks(&fixture, asks, sizeof asks / sizeof asks[0]);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(ready_says_when_the_server_stops)
{
	static const struct ask asks[] = {
		{METHOD_GET, "/-/ready", 503, "busy"}, {METHOD_GET, "/-/health", 200, NULL}};
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	fixture.stopping = true;
	check_asks(&fixture, asks, 2);
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(keys_are_added_listed_and_revoked)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	const char *const root = fixture.token;
	struct fake_exchange *fake = face_fixture_ask(&fixture, 201, METHOD_POST, "/-/keys", NULL,
		"{\"name\":\"w\",\"namespace\":\"team\",\"grants\":[\"bkt/run/=read,list\"]}");
	face_fixture_assert_holds(fake, "\"namespace\":\"team\"");
	const char *const body = buffer_text(&fake->body);
	const char *const token_at = strstr(body, "\"token\":\"") + 9;
	const char *const id_at = strstr(body, "\"key_id\":\"") + 10;
	const char *const token =
		arena_format(fixture.arena, "%.*s", (int)strcspn(token_at, "\""), token_at);
	const char *const target =
		arena_format(fixture.arena, "/-/keys/%.*s", (int)strcspn(id_at, "\""), id_at);
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/-/keys", NULL, NULL,
		"\"grants\":[\"bkt/run/=read,list\"]");
	fixture.token = token;
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/run/k", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/-/keys", NULL, NULL);
	fixture.token = root;
	face_fixture_expect(&fixture, 204, METHOD_DELETE, target, NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_DELETE, target, NULL, NULL);
	fixture.token = token;
	face_fixture_expect_text(
		&fixture, 403, METHOD_GET, "/bkt/run/k", NULL, NULL, "InvalidAccessKeyId");
	face_fixture_close(&fixture);
}
END_TEST

static const char *const bad_keys[] = {"[]", "{", "{\"name\":1}", "{\"grants\":\"b=read\"}",
	"{\"grants\":[1]}", "{\"grants\":[\"b\"]}", "{\"namespace\":\"a--b\"}",
	"{\"namespace\":\"\"}"};

START_TEST(malformed_key_requests_are_refused)
{
	struct face_fixture fixture;
	face_fixture_open(&fixture);
	face_fixture_expect_text(
		&fixture, 400, METHOD_POST, "/-/keys", NULL, bad_keys[_i], "\"code\":\"invalid\"");
	face_fixture_close(&fixture);
}
END_TEST

START_TEST(metrics_are_for_root)
{
	struct face_fixture fixture;
	struct metrics *const metrics = metrics_new();
	face_fixture_open(&fixture);
	fixture.context.metrics = metrics;
	metrics_add(metrics, METRIC_STEPS_PUBLISHED, 7);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/-/metrics", NULL, NULL,
		"deltabucket_steps_published 7");
	face_fixture_close(&fixture);
	metrics_free(metrics);
}
END_TEST

Suite *test_router_suite(void);

Suite *test_router_suite(void)
{
	Suite *const suite = suite_create("router");
	TCase *const tcase = tcase_create("router");
	tcase_add_loop_test(tcase, paths_find_their_rows, 0, sizeof matches / sizeof matches[0]);
	tcase_add_loop_test(
		tcase, a_signed_name_alone_means_a_bucket, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_loop_test(
		tcase, virtual_hosts_name_the_bucket, 0, sizeof hosts / sizeof hosts[0]);
	tcase_add_test(tcase, rows_are_well_formed);
	tcase_add_test(tcase, refusals_speak_the_language_of_the_path);
	tcase_add_test(tcase, a_wrong_method_lists_the_right_ones);
	tcase_add_test(tcase, strangers_see_health_and_nothing_else);
	tcase_add_test(tcase, other_accounts_are_kept_out_and_told_of_what_does_not_exist);
	tcase_add_test(tcase, a_key_with_grants_may_do_what_they_name);
	tcase_add_test(tcase, ready_says_when_the_server_stops);
	tcase_add_test(tcase, keys_are_added_listed_and_revoked);
	tcase_add_loop_test(
		tcase, malformed_key_requests_are_refused, 0, sizeof bad_keys / sizeof bad_keys[0]);
	tcase_add_test(tcase, metrics_are_for_root);
	suite_add_tcase(suite, tcase);
	return suite;
}
