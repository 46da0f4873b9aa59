/* Tokens of the Xet face: which are accepted, where they are sent, and when another is fetched. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "client/transfer/xet_access.h"
#include "tests/unit/client/web_fixture.h"

#define TOKEN(token, url, end) \
	"{\"accessToken\":\"" token "\",\"casUrl\":\"" url "\",\"exp\":" end "}"
#define ASKED "GET /api/buckets/-/b/xet-read-token\n"

static struct web *web;
static struct remote_options options;
static struct remote *remote;
static const char *tokens[2]; /* the answers to the first request for a token, and to all others */
static unsigned asked;
static int status;          /* of answers with tokens */
static const char *refused; /* the token that all other requests refuse */

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	char line[200];
	(void)owner;
	snprintf(line, sizeof line, "\r\nAuthorization: Bearer %s\r\n", refused);
	reply->status = strstr(request->head, line) != NULL ? 401 : 200;
	if (strstr(request->target, "-token") == NULL)
		return;
	reply->status = status;
	buffer_add_text(&reply->body, tokens[asked++ == 0 ? 0 : 1]);
}

static void set_up(void)
{
	struct error err = {0};
	tokens[0] = TOKEN("t", "http://h/xet", "99999999999");
	tokens[1] = TOKEN("u", "http://h/xet", "99999999999");
	asked = 0;
	status = 200;
	refused = "none";
	web = web_start(answer, NULL);
	options = (struct remote_options){.endpoint = web_endpoint(web), .token = "mine"};
	remote = remote_new(&options, &err);
	ck_assert_msg(remote != NULL, "%s", err.text);
}

static void tear_down(void)
{
	remote_free(remote);
	web_stop(web);
}

static int send_one(struct error *err)
{
	struct xet_access *const access = xet_access_open(remote, span_text("b"), false, err);
	ck_assert_msg(access != NULL, "%s", err->text);
	const struct http_request request = {.method = "GET", .target = "/v1/x"};
	struct http_response response;
	const int result = xet_access_send(access, remote, &request, &response, err);
	http_response_release(&response);
	xet_access_close(access);
	return result;
}

static const struct {
	const char *token;
	const char *trace;
} BASES[] = {
	{TOKEN("t", "http://h/xet", "99999999999"), ASKED "GET /xet/v1/x\n"},
	{TOKEN("t", "http://h/xet//", "99999999999"), ASKED "GET /xet/v1/x\n"},
	{TOKEN("t", "https://elsewhere:1", "99999999999"), ASKED "GET /v1/x\n"},
	{TOKEN("t", "https://elsewhere/", "99999999999"), ASKED "GET /v1/x\n"},
};

START_TEST(requests_go_below_the_path_that_the_server_names)
{
	struct error err = {0};
	tokens[0] = BASES[_i].token;
	ck_assert_msg(send_one(&err) == 0, "%s", err.text);
	ck_assert_str_eq(web_trace(web), BASES[_i].trace);
}
END_TEST

START_TEST(a_token_that_is_refused_is_replaced_once)
{
	struct error err = {0};
	refused = "t";
	ck_assert_msg(send_one(&err) == 0, "%s", err.text);
	ck_assert_str_eq(web_trace(web), ASKED "GET /xet/v1/x\n" ASKED "GET /xet/v1/x\n");
	web_forget_trace(web);
	refused = "u";
	ck_assert_int_eq(send_one(&err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_CREDENTIALS);
	ck_assert_str_eq(web_trace(web), ASKED "GET /xet/v1/x\n" ASKED "GET /xet/v1/x\n");
}
END_TEST

START_TEST(a_token_that_is_over_is_not_sent)
{
	struct error err = {0};
	tokens[0] = TOKEN("t", "http://h/xet", "1000000000");
	refused = "t";
	ck_assert_msg(send_one(&err) == 0, "%s", err.text);
	ck_assert_str_eq(web_trace(web), ASKED ASKED "GET /xet/v1/x\n");
}
END_TEST

static const char *const WRONG[] = {
	"",
	"[]",
	"{}",
	"{\"accessToken\":\"t\",\"exp\":99999999999}",
	"{\"accessToken\":\"t\",\"casUrl\":\"http://h\"}",
	TOKEN("", "http://h", "99999999999"),
	TOKEN("t", "", "99999999999"),
	TOKEN("t\\r\\nx-other: 1", "http://h", "99999999999"),
	TOKEN("two words", "http://h", "99999999999"),
	TOKEN("\\u00e9", "http://h", "99999999999"),
	TOKEN("t", "http://h", "\"soon\""),
};

START_TEST(what_is_no_token_is_refused)
{
	struct error err = {0};
	tokens[0] = WRONG[_i];
	ck_assert_ptr_null(xet_access_open(remote, span_text("b"), false, &err));
	ck_assert_msg(err.kind == ERROR_UPSTREAM, "%s", err.text);
}
END_TEST

START_TEST(a_token_has_a_longest_length)
{
	struct error err = {0};
	char text[2 * XET_TOKEN_MAX_BYTES];
	const int length = XET_TOKEN_MAX_BYTES - 1 + _i;
	snprintf(text, sizeof text,
		"{\"accessToken\":\"%0*d\",\"casUrl\":\"http://h\",\"exp\":99999999999}", length,
		0);
	tokens[0] = text;
	struct xet_access *const access = xet_access_open(remote, span_text("b"), false, &err);
	ck_assert((access != NULL) == (_i == 0));
	xet_access_close(access);
}
END_TEST

static const struct {
	int status;
	bool is_without; /* the server has no such face, or not for this caller */
} STATUSES[] = {
	{302, true},
	{400, true},
	{401, true},
	{403, true},
	{404, true},
	{405, true},
	{501, true},
	{429, false},
	{500, false},
	{502, false},
	{503, false},
	{507, false},
};

START_TEST(a_server_without_the_half_is_told_from_one_that_fails)
{
	struct error err = {0};
	status = STATUSES[_i].status;
	ck_assert_ptr_null(xet_access_open(remote, span_text("b"), false, &err));
	ck_assert_msg((err.kind == ERROR_UNSUPPORTED) == STATUSES[_i].is_without, "%s: %s",
		error_kind_name(err.kind), err.text);
}
END_TEST

START_TEST(who_writes_asks_for_another_token)
{
	struct error err = {0};
	xet_access_close(xet_access_open(remote, span_text("b c"), true, &err));
	ck_assert_str_eq(web_trace(web), "GET /api/buckets/-/b%20c/xet-write-token\n");
}
END_TEST

Suite *test_xet_access_suite(void);

Suite *test_xet_access_suite(void)
{
	Suite *const suite = suite_create("xet_access");
	TCase *const tests = tcase_create("xet_access");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, requests_go_below_the_path_that_the_server_names, 0,
		sizeof BASES / sizeof BASES[0]);
	tcase_add_test(tests, a_token_that_is_refused_is_replaced_once);
	tcase_add_test(tests, a_token_that_is_over_is_not_sent);
	tcase_add_loop_test(tests, what_is_no_token_is_refused, 0, sizeof WRONG / sizeof WRONG[0]);
	tcase_add_loop_test(tests, a_token_has_a_longest_length, 0, 2);
	tcase_add_loop_test(tests, a_server_without_the_half_is_told_from_one_that_fails, 0,
		sizeof STATUSES / sizeof STATUSES[0]);
	tcase_add_test(tests, who_writes_asks_for_another_token);
	suite_add_tcase(suite, tests);
	return suite;
}
