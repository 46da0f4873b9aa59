/* Failures that are tried again and failures that are not, and the headers of answers. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/remote/remote_object.h"
#include "tests/unit/client/web_fixture.h"

#define DIGEST "xxh3-128:00112233445566778899aabbccddeeff"
#define HASH   "0000000000000001000000000000000000000000000000000000000000000000"

static struct web *web;
static struct remote_options options;
static int statuses[2]; /* of the first answer, and of all others; 0: the connection breaks */
static unsigned answers;
static const char *headers;
static const char *body;

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	(void)owner;
	(void)request;
	reply->status = statuses[answers++ == 0 ? 0 : 1];
	snprintf(reply->headers, sizeof reply->headers, "%s", headers);
	buffer_add_text(&reply->body, body);
}

static void set_up(void)
{
	statuses[0] = 200;
	statuses[1] = 200;
	answers = 0;
	headers = "";
	body = "";
	web = web_start(answer, NULL);
	options = (struct remote_options){.endpoint = web_endpoint(web), .retries = 1};
}

static void tear_down(void)
{
	web_stop(web);
}

static int delete_one(struct error *err)
{
	struct remote *const remote = remote_new(&options, err);
	const int result = remote_object_delete(remote, "/b/k", err);
	remote_free(remote);
	return result;
}

static const struct {
	int status;
	enum error_kind kind; /* ERROR_NONE: it is tried again */
} FAILURES[] = {
	{0, ERROR_NONE},
	{429, ERROR_NONE},
	{500, ERROR_NONE},
	{502, ERROR_NONE},
	{503, ERROR_NONE},
	{504, ERROR_NONE},
	{304, ERROR_UPSTREAM},
	{400, ERROR_INVALID},
	{403, ERROR_DENIED},
	{404, ERROR_NOT_FOUND},
	{412, ERROR_PRECONDITION},
	{507, ERROR_NO_SPACE},
};

START_TEST(what_may_pass_is_tried_again_and_nothing_else)
{
	struct error err = {0};
	const bool passes = FAILURES[_i].kind == ERROR_NONE;
	statuses[0] = FAILURES[_i].status;
	ck_assert_int_eq(delete_one(&err), passes ? 0 : -1);
	ck_assert_msg(passes || err.kind == FAILURES[_i].kind, "%s", err.text);
	ck_assert_uint_eq(answers, passes ? 2 : 1);
}
END_TEST

START_TEST(tries_run_out)
{
	struct error err = {0};
	statuses[0] = 503;
	statuses[1] = 503;
	ck_assert_int_eq(delete_one(&err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_uint_eq(answers, 2);
}
END_TEST

/* One second is the shortest wait that a server can ask for. */
START_TEST(a_server_that_says_when_is_asked_then)
{
	struct error err = {0};
	const struct clock_source *const clock = clock_system();
	const int64_t started = clock->monotonic_ms(clock);
	statuses[0] = 503;
	headers = "Retry-After: 1\r\n";
	ck_assert_int_eq(delete_one(&err), 0);
	ck_assert_int_ge(clock->monotonic_ms(clock) - started, 1000);
}
END_TEST

static int head(struct remote_object_facts *facts, struct error *err)
{
	struct remote *const remote = remote_new(&options, err);
	const int result = remote_object_head(remote, "/b/k", facts, err);
	remote_free(remote);
	return result;
}

static enum sink_result drop(struct body_sink *sink, struct span bytes, struct error *err)
{
	(void)sink;
	(void)bytes;
	(void)err;
	return SINK_TAKEN;
}

/* An answer of another status, none, a short one, a long one and a whole one to a range. */
static const struct {
	int status;
	uint64_t offset;
	uint64_t size;
	const char *body;
} SECRET_ANSWERS[] = {
	{403, 0, 4, ""}, {0, 0, 4, ""}, {200, 0, 4, ""}, {200, 0, 4, "bytes"}, {200, 1, 4, "byte"}};

/* The query of a URL may have a signature that is a secret. */
START_TEST(no_message_has_the_query_of_a_url)
{
	struct error err = {0};
	struct body_sink sink = {.write = drop};
	const struct remote_object_range range = {.target = "/v1/object?v=1&sign=secret",
		.offset = SECRET_ANSWERS[_i].offset,
		.size = SECRET_ANSWERS[_i].size,
		.whole = SECRET_ANSWERS[_i].offset == 0};
	statuses[0] = SECRET_ANSWERS[_i].status;
	statuses[1] = SECRET_ANSWERS[_i].status;
	body = SECRET_ANSWERS[_i].body;
	struct remote *const remote = remote_new(&options, &err);
	ck_assert_int_eq(remote_object_get(remote, &range, &sink, &err), -1);
	remote_free(remote);
	ck_assert_msg(strstr(err.text, "/v1/object") != NULL, "%s", err.text);
	ck_assert_msg(strstr(err.text, "secret") == NULL, "%s", err.text);
}
END_TEST

START_TEST(the_head_of_an_object_says_what_it_is)
{
	struct error err = {0};
	struct remote_object_facts facts = {0};
	struct digest128 digest;
	struct chunk_id hash;
	ck_assert(digest128_parse(span_text(DIGEST), &digest));
	ck_assert(chunk_id_parse(span_text(HASH), &hash));
	body = "seven b";
	headers = "ETag: \"e\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
		  "x-deltabucket-digest: " DIGEST "\r\nx-deltabucket-file-hash: " HASH
		  "\r\nx-deltabucket-derived: true\r\n";
	ck_assert_msg(head(&facts, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(facts.size, 7);
	ck_assert_str_eq(facts.etag, "e");
	ck_assert(facts.has_digest && digest128_equal(&facts.digest, &digest));
	ck_assert(facts.has_hash && chunk_id_equal(&facts.hash, &hash));
	ck_assert(facts.is_derived);
	ck_assert_int_eq(facts.modified_ms, 784111777000);
	headers =
		"x-deltabucket-digest: md5:1\r\nx-deltabucket-file-hash: 12\r\nx-deltabucket-derived: false\r\n";
	ck_assert_msg(head(&facts, &err) == 0, "%s", err.text);
	ck_assert(!facts.has_digest && !facts.has_hash && !facts.is_derived);
	ck_assert_str_eq(facts.etag, "");
	ck_assert_int_eq(facts.modified_ms, -1);
}
END_TEST

START_TEST(an_object_that_is_not_there_is_told_from_a_refusal)
{
	struct error err = {0};
	struct remote_object_facts facts;
	statuses[0] = _i == 0 ? 404 : 403;
	headers = "x-amz-request-id: id-1\r\n";
	ck_assert_int_eq(head(&facts, &err), -1);
	ck_assert_int_eq(err.kind, _i == 0 ? ERROR_NO_KEY : ERROR_DENIED);
	ck_assert_ptr_nonnull(strstr(err.text, "b/k"));
	ck_assert_str_eq(err.request_id, "id-1");
}
END_TEST

static const struct {
	int status;
	const char *code;
	enum error_kind kind;
} BUCKETS[] = {
	{200, "", ERROR_NONE},
	{409, "BucketAlreadyOwnedByYou", ERROR_NONE},
	{409, "BucketAlreadyExists", ERROR_BUCKET_TAKEN},
	{403, "AccessDenied", ERROR_DENIED},
};

START_TEST(a_bucket_that_is_ours_already_is_made)
{
	struct error err = {0};
	char text[200];
	struct remote *const remote = remote_new(&options, &err);
	snprintf(text, sizeof text, "<Error><Code>%s</Code><Message>m</Message></Error>",
		BUCKETS[_i].code);
	statuses[0] = BUCKETS[_i].status;
	body = text;
	const int result = remote_object_make_bucket(remote, span_text("a b"), &err);
	ck_assert_int_eq(result, BUCKETS[_i].kind == ERROR_NONE ? 0 : -1);
	ck_assert_msg(result == 0 || err.kind == BUCKETS[_i].kind, "%s: %s",
		error_kind_name(err.kind), err.text);
	ck_assert_str_eq(web_trace(web), "PUT /a%20b\n");
	remote_free(remote);
}
END_TEST

Suite *test_remote_suite(void);

Suite *test_remote_suite(void)
{
	Suite *const suite = suite_create("remote");
	TCase *const tests = tcase_create("remote");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, what_may_pass_is_tried_again_and_nothing_else, 0,
		sizeof FAILURES / sizeof FAILURES[0]);
	tcase_add_loop_test(tests, no_message_has_the_query_of_a_url, 0,
		sizeof SECRET_ANSWERS / sizeof SECRET_ANSWERS[0]);
	tcase_add_test(tests, tries_run_out);
	tcase_add_test(tests, a_server_that_says_when_is_asked_then);
	tcase_add_test(tests, the_head_of_an_object_says_what_it_is);
	tcase_add_loop_test(tests, an_object_that_is_not_there_is_told_from_a_refusal, 0, 2);
	tcase_add_loop_test(tests, a_bucket_that_is_ours_already_is_made, 0,
		sizeof BUCKETS / sizeof BUCKETS[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
