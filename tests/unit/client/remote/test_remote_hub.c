/* How the client reads the answers of a Hub face: batches with refused lines, listings with several
 * pages, files that do not exist. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "client/remote/remote_hub.h"
#include "tests/unit/client/web_fixture.h"

#define H1 "0000000000000001000000000000000000000000000000000000000000000000"
#define H2 "0000000000000002000000000000000000000000000000000000000000000000"
#define FILE_OF(path, size, hash) \
	"{\"type\":\"file\",\"path\":\"" path "\",\"size\":" size ",\"xetHash\":\"" hash "\"}"

static struct web *web;
static struct remote_options options;
static struct remote *remote;
static int status;
static const char *body;
static const char *next; /* the Link header of every page but the second; NULL: none */

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	(void)owner;
	const bool is_second = strstr(request->target, "cursor=two") != NULL;
	reply->status = status;
	if (next != NULL && !is_second)
		snprintf(reply->headers, sizeof reply->headers, "Link: %s\r\n", next);
	buffer_add_text(&reply->body, is_second ? "[" FILE_OF("p/second", "2", H2) "]" : body);
}

static void set_up(void)
{
	struct error err = {0};
	status = 200;
	next = NULL;
	web = web_start(answer, NULL);
	options = (struct remote_options){.endpoint = web_endpoint(web)};
	remote = remote_new(&options, &err);
	ck_assert_msg(remote != NULL, "%s", err.text);
}

static void tear_down(void)
{
	remote_free(remote);
	web_stop(web);
}

static struct hub_change changes[3];

static void name_changes(void)
{
	static const char *const names[] = {"a", "b \"c\"", "d"};
	for (size_t i = 0; i < 3; i++) {
		changes[i] = (struct hub_change){.key = span_text(names[i]),
			.kind = i == 1 ? HUB_CHANGE_DELETE : HUB_CHANGE_ADD,
			.mtime_ms = 1234,
			.failure = {.kind = ERROR_IO}};
		ck_assert(chunk_id_parse(span_text(H1), &changes[i].hash));
	}
}

START_TEST(a_batch_has_a_line_for_each_change)
{
	struct error err = {0};
	body = "{\"success\":true,\"failed\":[]}";
	name_changes();
	ck_assert_int_eq(remote_hub_change(remote, span_text("bucket"), changes, 3, &err), 0);
	ck_assert_int_eq(remote_hub_check(changes, 3, &err), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(changes[i].failure.kind, ERROR_NONE);
	ck_assert_str_eq(web_trace(web),
		"POST /api/buckets/-/bucket/batch "
		"{\"type\":\"addFile\",\"path\":\"a\",\"xetHash\":\"" H1 "\",\"mtime\":1234}\n"
		"{\"type\":\"deleteFile\",\"path\":\"b \\\"c\\\"\"}\n"
		"{\"type\":\"addFile\",\"path\":\"d\",\"xetHash\":\"" H1 "\",\"mtime\":1234}\n\n");
}
END_TEST

/* In any order of the answer, and whether or not some changes were made. */
START_TEST(lines_that_were_refused_are_marked_and_the_first_is_named)
{
	struct error err = {0};
	status = _i == 0 ? 200 : 422;
	body = "{\"success\":false,\"failed\":[{\"path\":\"d\",\"error\":\"no such bytes\"},{\"path\":\"a\",\"code\":\"denied\",\"error\":\"other\"}]}";
	name_changes();
	ck_assert_msg(
		remote_hub_change(remote, span_text("b"), changes, 3, &err) == 0, "%s", err.text);
	ck_assert_int_eq(changes[0].failure.kind, ERROR_DENIED);
	ck_assert_int_eq(changes[1].failure.kind, ERROR_NONE);
	ck_assert_int_eq(changes[2].failure.kind, ERROR_INVALID);
	ck_assert_str_eq(changes[2].failure.text, "no such bytes");
	ck_assert_int_eq(remote_hub_check(changes, 3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_str_eq(err.text, "a: other");
}
END_TEST

START_TEST(an_answer_that_says_less_than_it_has_to_is_no_answer)
{
	static const struct {
		int status;
		const char *body;
	} cases[] = {
		{422, "{\"failed\":[]}"},
		{200, "{\"success\":true}"},
		{200, ""},
		{200, "[]"},
		{200, "{\"failed\":"},
		{200, "{\"failed\":[{\"path\":\"other\",\"error\":\"e\"}]}"},
		{200, "{\"failed\":[{\"error\":\"e\"}]}"},
		{400, "{\"failed\":[]}"},
		{500, "{\"failed\":[]}"},
		{409, "{\"failed\":[{\"path\":\"a\",\"error\":\"e\"}]}"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct error err = {0};
		status = cases[i].status;
		body = cases[i].body;
		name_changes();
		ck_assert_msg(remote_hub_change(remote, span_text("b"), changes, 3, &err) == -1,
			"%zu", i);
		ck_assert_int_ne(err.kind, ERROR_NONE);
	}
}
END_TEST

static int take(void *owner, const struct hub_file *file, struct error *err)
{
	struct buffer *const seen = owner;
	char hash[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&file->hash, hash);
	buffer_format(seen, "%.*s %d %c\n", (int)file->key.len, (const char *)file->key.data,
		(int)file->size, hash[15]);
	return span_equal_text(file->key, "stop") ? error_set(err, ERROR_BUSY, "stop") : 0;
}

static int list(const char *prefix, const char *seen_wanted, struct error *err)
{
	struct buffer seen;
	buffer_init(&seen, 1000);
	const int result =
		remote_hub_list(remote, span_text("b"), span_text(prefix), take, &seen, err);
	ck_assert_str_eq(buffer_text(&seen), seen_wanted);
	buffer_release(&seen);
	return result;
}

START_TEST(a_listing_goes_on_with_the_next_page)
{
	struct error err = {0};
	body = "[{\"type\":\"directory\",\"path\":\"p/x\"}," FILE_OF("p/first", "1", H1) "]";
	next = "<http://elsewhere/api/tree?cursor=two>; rel=\"next\"";
	ck_assert_msg(list(_i == 0 ? "p" : "p/", "p/first 1 1\np/second 2 2\n", &err) == 0, "%s",
		err.text);
	ck_assert_str_eq(web_trace(web),
		"GET /api/buckets/-/b/tree/p?recursive=true&limit=1000\nGET /api/tree?cursor=two\n");
}
END_TEST

/* A key of 1,024 bytes has up to 3,072 in a URL. */
START_TEST(a_next_page_may_begin_at_the_longest_key)
{
	struct error err = {0};
	struct buffer link;
	buffer_init(&link, 8000);
	buffer_add_text(&link, "<http://h/api/tree?cursor=two");
	for (int i = 0; i < 512; i++)
		buffer_add_text(&link, "%C3%BC");
	buffer_add_text(&link, ">; rel=\"next\"");
	body = "[" FILE_OF("first", "1", H1) "]";
	next = buffer_text(&link);
	ck_assert_msg(list("", "first 1 1\np/second 2 2\n", &err) == 0, "%s", err.text);
	buffer_release(&link);
}
END_TEST

START_TEST(other_links_lead_nowhere)
{
	static const char *const links[] = {NULL, "<http://h/api/tree?cursor=two>; rel=\"prev\""};
	struct error err = {0};
	body = "[]";
	next = links[_i];
	ck_assert_msg(list("", "", &err) == 0, "%s", err.text);
	ck_assert_str_eq(web_trace(web), "GET /api/buckets/-/b/tree?recursive=true&limit=1000\n");
}
END_TEST

/* What came so far would pass for the whole, and `sync --delete` would delete the rest. */
START_TEST(a_next_page_that_is_not_understood_is_an_error)
{
	static const char *const links[] = {"http://h/api/tree?cursor=two; rel=\"next\"",
		"<no-url>; rel=\"next\"", "</api/tree?cursor=two>; rel=next"};
	struct error err = {0};
	body = "[" FILE_OF("first", "1", H1) "]";
	next = links[_i];
	ck_assert_int_eq(list("", "first 1 1\n", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_ptr_nonnull(strstr(err.text, links[_i]));
}
END_TEST

static const char *const BAD_PAGES[] = {
	"{}",
	"",
	"[{\"type\":\"file\",\"path\":\"p\",\"size\":1}]",
	"[{\"type\":\"file\",\"size\":1,\"xetHash\":\"" H1 "\"}]",
	"[{\"type\":\"file\",\"path\":\"p\",\"xetHash\":\"" H1 "\"}]",
	"[" FILE_OF("p", "1", "12") "]",
	"[" FILE_OF("p", "-1", H1) "]",
};

START_TEST(a_listing_that_says_less_than_it_has_to_is_refused)
{
	struct error err = {0};
	body = BAD_PAGES[_i];
	ck_assert_int_eq(list("", "", &err), -1);
	ck_assert_msg(err.kind == ERROR_UPSTREAM, "%s", err.text);
}
END_TEST

START_TEST(a_listing_ends_where_its_reader_fails)
{
	struct error err = {0};
	body = "[" FILE_OF("stop", "1", H1) "," FILE_OF("more", "1", H1) "]";
	next = "<http://h/api/tree?cursor=two>; rel=\"next\"";
	ck_assert_int_eq(list("", "stop 1 1\n", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
}
END_TEST

START_TEST(a_file_is_found_by_its_whole_name)
{
	struct error err = {0};
	uint64_t size = 0;
	struct chunk_id hash;
	body = "[" FILE_OF("k", "7", H2) "," FILE_OF("k2", "8", H1) "]";
	ck_assert_int_eq(
		remote_hub_find(remote, span_text("b"), span_text("k"), &size, &hash, &err), 1);
	ck_assert_uint_eq(size, 7);
	struct chunk_id wanted;
	ck_assert(chunk_id_parse(span_text(H2), &wanted));
	ck_assert(chunk_id_equal(&hash, &wanted));
	ck_assert_str_eq(web_trace(web), "POST /api/buckets/-/b/paths-info {\"paths\":[\"k\"]}\n");
	ck_assert_int_eq(
		remote_hub_find(remote, span_text("b"), span_text("k3"), &size, &hash, &err), 0);
	status = 403;
	ck_assert_int_eq(
		remote_hub_find(remote, span_text("b"), span_text("k"), &size, &hash, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
}
END_TEST

Suite *test_remote_hub_suite(void);

Suite *test_remote_hub_suite(void)
{
	Suite *const suite = suite_create("remote_hub");
	TCase *const tests = tcase_create("remote_hub");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_batch_has_a_line_for_each_change);
	tcase_add_loop_test(tests, lines_that_were_refused_are_marked_and_the_first_is_named, 0, 2);
	tcase_add_test(tests, an_answer_that_says_less_than_it_has_to_is_no_answer);
	tcase_add_loop_test(tests, a_listing_goes_on_with_the_next_page, 0, 2);
	tcase_add_test(tests, a_next_page_may_begin_at_the_longest_key);
	tcase_add_loop_test(tests, other_links_lead_nowhere, 0, 2);
	tcase_add_loop_test(tests, a_next_page_that_is_not_understood_is_an_error, 0, 3);
	tcase_add_loop_test(tests, a_listing_that_says_less_than_it_has_to_is_refused, 0,
		sizeof BAD_PAGES / sizeof BAD_PAGES[0]);
	tcase_add_test(tests, a_listing_ends_where_its_reader_fails);
	tcase_add_test(tests, a_file_is_found_by_its_whole_name);
	suite_add_tcase(suite, tests);
	return suite;
}
