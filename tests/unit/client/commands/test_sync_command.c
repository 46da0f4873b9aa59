/* sync, when all goes well and when it does not, against a bucket in memory that holds the objects
 * "old" and "same". */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/web_fixture.h"

#define CONTENT(key)                                                                       \
	"<Contents><Key>" key "</Key><Size>4</Size><LastModified>2026-01-02T03:04:05.000Z" \
	"</LastModified><ETag>\"e\"</ETag></Contents>"
#define LIST(truncated, content)                                                    \
	"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>" truncated \
	"</IsTruncated>" content "</ListBucketResult>"

#define HASH "0000000000000001000000000000000000000000000000000000000000000000"

static const char TOKEN[] = "{\"accessToken\":\"t\",\"casUrl\":\"http://h\",\"exp\":99999999999}";
#define FILE_OF(path, size) \
	"{\"type\":\"file\",\"path\":\"" path "\",\"size\":" size ",\"xetHash\":\"" HASH "\"}"
static const char TREE[] = "[" FILE_OF("old", "4") "]";

static char *scratch;
static struct web *web;
static const char *listing;
static int refusal;   /* the status of answers to a PUT or GET of an object */
static int refusals;  /* how many requests are answered with it */
static int by_chunks; /* the status of answers to requests that move chunks */
static const char *tree;
static bool has_digest;   /* answers have the digest of "same" */
static const char *batch; /* the answer to many changes at once; NULL: not supported */

/* The server has the hash of "old", but cannot give its reconstruction. */
static void answer_chunks(const char *target, struct web_reply *reply)
{
	const bool is_plan = strncmp(target, "/v2/", 4) == 0;
	const bool is_batch = strcmp(target, "/api/buckets/-/b/batch") == 0;
	reply->status = is_plan && by_chunks == 200 ? 500
		: is_batch && batch == NULL         ? 404
						    : by_chunks;
	if (reply->status == 200)
		buffer_add_text(&reply->body,
			is_batch                                   ? batch
				: strstr(target, "-token") != NULL ? TOKEN
								   : tree);
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	const struct digest128 digest = xxh3_128(span_text("same"));
	const bool is_listing = strncmp(request->target, "/b?", 3) == 0;
	const bool is_object = strncmp(request->target, "/b/", 3) == 0;
	const bool moves =
		strcmp(request->method, "PUT") == 0 || strcmp(request->method, "GET") == 0;
	char text[DIGEST128_TEXT_BYTES];
	(void)owner;
	digest128_format(&digest, text);
	if (!is_listing && !is_object) {
		answer_chunks(request->target, reply);
		return;
	}
	reply->status = !is_listing && moves && refusals > 0 ? refusal : 200;
	refusals -= reply->status != 200;
	snprintf(reply->headers, sizeof reply->headers,
		"ETag: \"e\"\r\nx-deltabucket-digest: %s\r\n", has_digest ? text : "none");
	if (reply->status == 200 && strcmp(request->method, "PUT") != 0)
		buffer_add_text(&reply->body, is_listing ? listing : "same");
}

static void refuse(int times, int status)
{
	refusals = times;
	refusal = status;
}

static void put(const char *name, const char *text)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path, span_text(text), 0644, &err), 0);
	free(path);
}

static bool is_there(const char *name)
{
	char *const path = folder_files_join(scratch, name);
	const bool found = file_exists(path);
	free(path);
	return found;
}

static void set_up(void)
{
	scratch = unit_scratch_make();
	setenv("XDG_CACHE_HOME", scratch, 1);
	refusals = 0;
	by_chunks = 404;
	tree = TREE;
	has_digest = true;
	batch = NULL;
	listing = LIST("false", CONTENT("old") CONTENT("same"));
	web = web_start(answer, NULL);
	put("here/new", "moved");
	put("here/same", "same");
}

static void tear_down(void)
{
	web_stop(web);
	unit_scratch_remove(scratch);
}

static struct command_result sync_with(bool up, const char *more)
{
	char words[4096];
	snprintf(words, sizeof words,
		up ? "--quiet --retries 0 %s %s/here b" : "--quiet --retries 0 %s b %s/here", more,
		scratch);
	return command_fixture_run(command_sync, COMMAND_SYNC, web_endpoint(web), words);
}

/* Files move by chunks if the server supports that. */
static void expect_any_way(bool up, const char *more, bool is_well)
{
	struct command_result result = sync_with(up, more);
	ck_assert_msg((result.status == 0) == is_well, "%s", result.err.text);
	command_result_release(&result);
}

static void expect(bool up, const char *more, bool is_well)
{
	char words[100];
	snprintf(words, sizeof words, "--plain %s", more);
	expect_any_way(up, words, is_well);
}

/* A file that was only renamed is there under at least one name at any moment. */
START_TEST(what_is_gone_is_removed_when_the_new_is_there)
{
	expect(true, "--delete", true);
	const char *const sent = strstr(web_trace(web), "PUT /b/new");
	const char *const removed = strstr(web_trace(web), "DELETE /b/old\n");
	ck_assert_ptr_ne(sent, NULL);
	ck_assert_ptr_ne(removed, NULL);
	ck_assert(sent < removed);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE /b/same"), NULL);
}
END_TEST

START_TEST(an_upload_that_was_refused_for_now_is_sent_whole_again)
{
	refuse(1, 503);
	expect(true, "--retries 1", true);
	ck_assert_ptr_ne(strstr(web_trace(web), "PUT /b/new moved\nPUT /b/new moved\n"), NULL);
}
END_TEST

START_TEST(an_upload_that_fails_removes_nothing)
{
	refuse(1, 507);
	expect(true, "--delete", false);
	ck_assert_ptr_ne(strstr(web_trace(web), "PUT /b/new"), NULL);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
}
END_TEST

START_TEST(a_download_that_fails_removes_nothing)
{
	refuse(1, 403);
	expect(false, "--delete", false);
	ck_assert(is_there("here/new") && is_there("here/same"));
}
END_TEST

/* A source that cannot be read completely must not empty the target either. */
START_TEST(a_folder_that_cannot_be_read_changes_nothing)
{
	char *const link = folder_files_join(scratch, "here/link");
	ck_assert_int_eq(symlink("nowhere", link), 0);
	expect(true, "--delete", false);
	expect(false, "--delete", false);
	ck_assert_ptr_eq(strstr(web_trace(web), "PUT"), NULL);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
	ck_assert(is_there("here/new") && !is_there("here/old"));
	free(link);
}
END_TEST

static const char *const bad_listings[] = {
	/* there is more, but no token for it */
	LIST("true", CONTENT("same")),
	/* the same page forever */
	LIST("true", "<NextContinuationToken>n</NextContinuationToken>"),
	LIST("false", CONTENT("at") CONTENT("at/below")), /* a file and a folder at once */
	LIST("false", CONTENT("same") CONTENT("../out")),
};

/* Files that a listing does not name are removed, so it must be complete and make sense. */
START_TEST(a_listing_that_cannot_be_followed_changes_nothing)
{
	listing = bad_listings[_i];
	expect(false, "--delete", false);
	ck_assert(is_there("here/new") && is_there("here/same"));
	ck_assert(!is_there("out") && !is_there("here/at"));
	ck_assert_ptr_eq(strstr(web_trace(web), "GET /b/"), NULL);
	const char *const second = strstr(web_trace(web), "&continuation-token=n\n");
	ck_assert(second == NULL || strstr(second + 1, "&continuation-token=n\n") == NULL);
}
END_TEST

START_TEST(nothing_is_removed_unless_that_is_asked_for)
{
	expect(true, "", true);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
	put("here/old", "same");
	expect(false, "", true);
	ck_assert(is_there("here/new"));
}
END_TEST

static void expect_said(bool up, const char *more, const char *lines)
{
	struct command_result result = sync_with(up, more);
	const char *const output = buffer_text(&result.output);
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_msg(strstr(output, lines) != NULL, "%s", output);
	command_result_release(&result);
}

START_TEST(a_dry_run_says_what_it_would_do_and_does_nothing)
{
	expect_said(true, "--json --delete --dry-run --create-bucket",
		"{\"event\":\"would_upload\",\"name\":\"new\",\"bytes\":5}\n"
		"{\"event\":\"would_remove\",\"name\":\"old\",\"bytes\":4}\n");
	ck_assert_ptr_eq(strstr(web_trace(web), "PUT"), NULL);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
	expect_said(false, "--json --delete --dry-run",
		"{\"event\":\"would_download\",\"name\":\"old\",\"bytes\":4}\n"
		"{\"event\":\"would_remove\",\"name\":\"new\",\"bytes\":5}\n");
	ck_assert(is_there("here/new") && !is_there("here/old"));
}
END_TEST

START_TEST(a_dry_run_does_not_even_make_the_folder)
{
	char words[4096];
	snprintf(words, sizeof words, "--plain --retries 0 --dry-run b %s/absent", scratch);
	struct command_result result =
		command_fixture_run(command_sync, COMMAND_SYNC, web_endpoint(web), words);
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_str_eq(buffer_text(&result.output), "would download old\nwould download same\n");
	ck_assert(!is_there("absent"));
	command_result_release(&result);
}
END_TEST

/* Consoles make such folders: a key that ends in a slash. */
START_TEST(markers_of_folders_are_left_alone)
{
	listing = LIST("false", CONTENT("folder/") CONTENT("old") CONTENT("same"));
	expect(true, "--delete", true);
	ck_assert_ptr_ne(strstr(web_trace(web), "DELETE /b/old\n"), NULL);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE /b/folder/"), NULL);
	expect(false, "", true);
}
END_TEST

START_TEST(what_was_moved_and_removed_is_counted)
{
	expect_said(true, "--json --delete",
		"{\"event\":\"synced\",\"files\":2,"
		"\"sent\":1,\"bytes\":5,\"sent_bytes\":5,\"removed\":1,\"refused\":0}");
	expect_said(false, "--json --delete",
		"{\"event\":\"synced\",\"files\":2,"
		"\"sent\":1,\"bytes\":4,\"received_bytes\":4,\"removed\":1,\"refused\":0}");
	ck_assert(is_there("here/old") && !is_there("here/new"));
}
END_TEST

/* A mistyped source looks like an empty source. */
START_TEST(an_empty_source_does_not_empty_the_target)
{
	char words[4096];
	struct error err = {0};
	char *const empty = folder_files_join(scratch, "empty");
	ck_assert_int_eq(file_make_folder(file_system(), empty, 0755, &err), 0);
	snprintf(words, sizeof words, "--plain --retries 0 --delete %s b", empty);
	struct command_result result =
		command_fixture_run(command_sync, COMMAND_SYNC, web_endpoint(web), words);
	ck_assert_int_eq(result.status, -1);
	ck_assert_ptr_eq(strstr(web_trace(web), "DELETE"), NULL);
	listing = LIST("false", "");
	expect(false, "--delete", false);
	ck_assert(is_there("here/new") && is_there("here/same"));
	command_result_release(&result);
	free(empty);
}
END_TEST

/* One file comes by a plain request, the other does not come at all. */
START_TEST(a_download_of_which_one_way_fails_is_a_failure)
{
	by_chunks = 200;
	listing = LIST("false", CONTENT("old") CONTENT("other"));
	expect_any_way(false, "--delete", false);
	ck_assert(!is_there("here/old"));
	ck_assert(is_there("here/new") && is_there("here/same"));
}
END_TEST

/* The object changed between the two listings: the hash belongs to the other version. */
START_TEST(a_hash_of_another_size_is_not_used)
{
	by_chunks = 200;
	tree = "[" FILE_OF("old", "5") "]";
	expect_any_way(false, "", true);
	ck_assert(is_there("here/old"));
	ck_assert_ptr_eq(strstr(web_trace(web), "GET /v2/"), NULL);
}
END_TEST

/* Files of the same size with other bytes, or with bytes that nothing is known of. */
START_TEST(what_may_differ_is_sent)
{
	has_digest = _i == 0;
	put("here/same", _i == 0 ? "else" : "same");
	expect(true, "", true);
	ck_assert_ptr_ne(strstr(web_trace(web), "PUT /b/same "), NULL);
	has_digest = true;
	put("here/same", "same");
	web_forget_trace(web);
	expect(true, "", true);
	ck_assert_ptr_eq(strstr(web_trace(web), "PUT /b/same "), NULL);
}
END_TEST

static void list_three(void)
{
	by_chunks = 200;
	listing = LIST("false", CONTENT("old") CONTENT("older") CONTENT("same"));
	tree = "[" FILE_OF("old", "4") "," FILE_OF("older", "4") "]";
}

static unsigned removals(void)
{
	unsigned count = 0;
	for (const char *at = web_trace(web); (at = strstr(at, "DELETE /b/")) != NULL; at++)
		count++;
	return count;
}

START_TEST(many_are_removed_at_once)
{
	list_three();
	batch = "{\"success\":true,\"failed\":[]}";
	struct command_result result = sync_with(true, "--json --delete");
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_ptr_ne(strstr(buffer_text(&result.output),
				 "{\"event\":\"removed\",\"name\":\"old\",\"bytes\":4}\n"
				 "{\"event\":\"removed\",\"name\":\"older\",\"bytes\":4}\n"),
		NULL);
	ck_assert_ptr_ne(
		strstr(web_trace(web),
			"POST /api/buckets/-/b/batch {\"type\":\"deleteFile\",\"path\":\"old\"}\n"
			"{\"type\":\"deleteFile\",\"path\":\"older\"}\n"),
		NULL);
	ck_assert_uint_eq(removals(), 0);
	command_result_release(&result);
}
END_TEST

/* For example an object under a hold. */
START_TEST(a_removal_that_is_refused_is_named_and_stops_no_other)
{
	list_three();
	batch = "{\"success\":false,\"failed\":[{\"path\":\"older\",\"code\":\"denied\",\"error\":\"held\"}]}";
	struct command_result result = sync_with(true, "--json --delete");
	ck_assert_int_eq(result.status, -1);
	ck_assert_int_eq(result.err.kind, ERROR_DENIED);
	ck_assert_str_eq(
		result.err.text, "1 of the objects to remove stay, the first because: held");
	const char *const output = buffer_text(&result.output);
	ck_assert_msg(
		strstr(output,
			"{\"event\":\"removed\",\"name\":\"old\",\"bytes\":4}\n"
			"{\"event\":\"refused\",\"name\":\"older\",\"code\":\"denied\",\"message\":\"held\"}\n") !=
			NULL,
		"%s", output);
	ck_assert_msg(strstr(output, "\"removed\":1,\"refused\":1}") != NULL, "%s", output);
	ck_assert_uint_eq(removals(), 0);
	command_result_release(&result);
}
END_TEST

START_TEST(without_batches_each_is_removed_alone)
{
	list_three();
	expect_any_way(true, "--delete", true);
	ck_assert_uint_eq(removals(), 2);
}
END_TEST

static const int no_chunks[] = {401, 403, 404, 405, 501};

/* Answers of other servers, and of keys that may only put and get. */
START_TEST(who_may_not_move_by_chunks_moves_whole_objects)
{
	by_chunks = no_chunks[_i];
	expect_any_way(true, "", true);
	ck_assert_ptr_ne(strstr(web_trace(web), "PUT /b/new moved\n"), NULL);
	expect_any_way(false, "", true);
	ck_assert(is_there("here/old"));
}
END_TEST

Suite *test_sync_command_suite(void);

Suite *test_sync_command_suite(void)
{
	Suite *const suite = suite_create("sync_command");
	TCase *const tests = tcase_create("sync_command");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_is_gone_is_removed_when_the_new_is_there);
	tcase_add_test(tests, an_upload_that_was_refused_for_now_is_sent_whole_again);
	tcase_add_test(tests, an_upload_that_fails_removes_nothing);
	tcase_add_test(tests, a_download_that_fails_removes_nothing);
	tcase_add_test(tests, a_folder_that_cannot_be_read_changes_nothing);
	tcase_add_loop_test(tests, a_listing_that_cannot_be_followed_changes_nothing, 0,
		sizeof bad_listings / sizeof bad_listings[0]);
	tcase_add_test(tests, nothing_is_removed_unless_that_is_asked_for);
	tcase_add_test(tests, a_dry_run_says_what_it_would_do_and_does_nothing);
	tcase_add_test(tests, a_dry_run_does_not_even_make_the_folder);
	tcase_add_test(tests, markers_of_folders_are_left_alone);
	tcase_add_test(tests, what_was_moved_and_removed_is_counted);
	tcase_add_test(tests, an_empty_source_does_not_empty_the_target);
	tcase_add_test(tests, a_download_of_which_one_way_fails_is_a_failure);
	tcase_add_test(tests, a_hash_of_another_size_is_not_used);
	tcase_add_loop_test(tests, what_may_differ_is_sent, 0, 2);
	tcase_add_test(tests, many_are_removed_at_once);
	tcase_add_test(tests, a_removal_that_is_refused_is_named_and_stops_no_other);
	tcase_add_test(tests, without_batches_each_is_removed_alone);
	tcase_add_loop_test(tests, who_may_not_move_by_chunks_moves_whole_objects, 0,
		sizeof no_chunks / sizeof no_chunks[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
