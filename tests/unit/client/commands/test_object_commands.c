/* put and get of one object against a bucket in memory: the names, the bytes, and what is left
 * after a failure. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/web_fixture.h"

static char *scratch;
static struct web *web;
static bool has_bucket;
static const char *content; /* of the object b/folder/key */
static bool is_replaced;    /* another object takes its name after the HEAD */

static void answer_put(const char *target, struct web_reply *reply)
{
	static const char none[] = "<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>";
	has_bucket = has_bucket || strcmp(target, "/b") == 0;
	reply->status = has_bucket ? 200 : 404;
	buffer_add_text(&reply->body, has_bucket ? "" : none);
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	const struct digest128 digest = xxh3_128(span_text("content"));
	char text[DIGEST128_TEXT_BYTES];
	(void)owner;
	digest128_format(&digest, text);
	if (is_replaced && strstr(request->head, "\r\nIf-Match: \"e\"\r\n") != NULL) {
		reply->status = 412;
	} else if (strcmp(request->method, "PUT") == 0) {
		answer_put(request->target, reply);
	} else if (strcmp(request->target, "/b") == 0) {
		reply->status = has_bucket ? 200 : 404;
	} else if (strcmp(request->target, "/b/folder/key") == 0) {
		reply->status = 200;
		snprintf(reply->headers, sizeof reply->headers,
			"ETag: \"e\"\r\nx-deltabucket-digest: %s\r\n", text);
		buffer_add_text(&reply->body, content);
	}
}

static void put_file(const char *name, const char *text)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_int_eq(file_place(file_system(), path, span_text(text), 0644, &err), 0);
	free(path);
}

static void expect_file(const char *name, const char *text)
{
	struct error err = {0};
	struct buffer bytes;
	char *const path = folder_files_join(scratch, name);
	buffer_init(&bytes, 1000);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&bytes), text);
	buffer_release(&bytes);
	free(path);
}

static void set_up(void)
{
	scratch = unit_scratch_make();
	has_bucket = true;
	is_replaced = false;
	content = "content";
	web = web_start(answer, NULL);
	put_file("file", "mine");
}

static void tear_down(void)
{
	web_stop(web);
	unit_scratch_remove(scratch);
}

/* '@' stands for the scratch folder. */
static struct command_result run(command_fn *command, enum command_bit bit, const char *format)
{
	char words[4096];
	const char *const at = strchr(format, '@');
	snprintf(words, sizeof words, "--retries 0 %.*s%s%s", (int)(at - format), format, scratch,
		at + 1);
	return command_fixture_run(command, bit, web_endpoint(web), words);
}

static struct command_result put(const char *format)
{
	return run(command_put, COMMAND_PUT, format);
}

static struct command_result get(const char *format)
{
	return run(command_get, COMMAND_GET, format);
}

static void expect(struct command_result result, const char *said)
{
	ck_assert_msg(result.status == 0, "%s", result.err.text);
	ck_assert_str_eq(buffer_text(&result.output), said);
	command_result_release(&result);
}

static void expect_failed(struct command_result result, enum error_kind kind, const char *said)
{
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == kind, "%s", result.err.text);
	ck_assert_msg(strstr(result.err.text, said) != NULL, "%s", result.err.text);
	ck_assert(!result.usage && result.output.len == 0);
	command_result_release(&result);
}

static const struct {
	const char *words;
	const char *trace;
	const char *said;
} uploads[] = {
	{"@/file b/key", "PUT /b/key mine\n", "put b/key, 4 B, sent 4 B\n"},
	{"@/file b", "PUT /b/file mine\n", "put b/file, 4 B, sent 4 B\n"},
	{"--json @/file b/folder/", "PUT /b/folder/file mine\n",
		"{\"event\":\"put\",\"bucket\":\"b\",\"key\":\"folder/file\",\"bytes\":4,"
		"\"sent\":4}\n"},
};

START_TEST(a_file_is_put_under_the_key_or_under_its_own_name)
{
	expect(put(uploads[_i].words), uploads[_i].said);
	ck_assert_str_eq(web_trace(web), uploads[_i].trace);
}
END_TEST

START_TEST(a_bucket_is_made_only_when_that_is_wanted)
{
	has_bucket = false;
	expect_failed(put("@/file b/key"), ERROR_NO_BUCKET,
		"there is no bucket b, and none can be made of this name");
	ck_assert_ptr_eq(strstr(web_trace(web), "PUT /b\n"), NULL);
	expect(put("--create-bucket @/file b/key"), "put b/key, 4 B, sent 4 B\n");
}
END_TEST

START_TEST(what_is_no_file_is_not_put)
{
	struct command_result folder = put("@ b/key");
	ck_assert(
		folder.usage && strstr(folder.err.text, "is a folder; `deltabucket sync") != NULL);
	command_result_release(&folder);
	expect_failed(
		command_fixture_run(command_put, COMMAND_PUT, web_endpoint(web), "/dev/null b/key"),
		ERROR_INVALID, "is not a regular file");
	expect_failed(put("@/none b/key"), ERROR_NOT_FOUND, "none");
	ck_assert_str_eq(web_trace(web), "");
}
END_TEST

/* The device here is /dev/null. A test that runs as root would have lost it. */
START_TEST(no_device_or_pipe_is_replaced)
{
	char pipe[4096];
	char link[4096];
	struct stat facts;
	snprintf(pipe, sizeof pipe, "%s/pipe", scratch);
	snprintf(link, sizeof link, "%s/link", scratch);
	ck_assert_int_eq(mkfifo(pipe, 0600), 0);
	ck_assert_int_eq(symlink(pipe, link), 0);
	expect_failed(get("b/folder/key @/pipe"), ERROR_INVALID, "is a device, a pipe or a socket");
	expect_failed(get("b/folder/key @/link"), ERROR_INVALID, "is a device, a pipe or a socket");
	ck_assert_int_eq(lstat(pipe, &facts), 0);
	ck_assert(S_ISFIFO(facts.st_mode));
	ck_assert_int_eq(lstat(link, &facts), 0);
	ck_assert(S_ISLNK(facts.st_mode));
}
END_TEST

START_TEST(an_object_goes_to_the_file_or_below_the_folder)
{
	char said[4096];
	snprintf(said, sizeof said, "got %s/key, 7 B, received 7 B\n", scratch);
	expect(get("b/folder/key @"), said);
	expect_file("key", "content");
	snprintf(said, sizeof said,
		"{\"event\":\"got\",\"path\":\"%s/file\",\"bytes\":7,\"received\":7}\n", scratch);
	expect(get("--json b/folder/key @/file"), said);
	expect_file("file", "content");
}
END_TEST

/* deltabucket get b/folder/key - | tar x */
START_TEST(only_the_object_goes_to_stdout)
{
	expect(command_fixture_run(command_get, COMMAND_GET, web_endpoint(web), "b/folder/key -"),
		"content");
}
END_TEST

/* Half of one object and half of the other would be neither. */
START_TEST(an_object_that_was_replaced_meanwhile_is_not_taken_for_the_one_that_was_found)
{
	is_replaced = true;
	expect_failed(get("b/folder/key @/file"), ERROR_PRECONDITION, "");
	expect_file("file", "mine");
	struct command_result piped =
		command_fixture_run(command_get, COMMAND_GET, web_endpoint(web), "b/folder/key -");
	expect_failed(piped, ERROR_PRECONDITION, "");
}
END_TEST

START_TEST(a_download_that_fails_leaves_the_file_as_it_was)
{
	expect_failed(get("b/none @/file"), ERROR_NO_KEY, "none");
	expect_failed(get("c/none @/file"), ERROR_NO_BUCKET, "there is no bucket c");
	expect_file("file", "mine");
	content = "Content";
	expect_failed(get("b/folder/key @/file"), ERROR_DIGEST_MISMATCH, "arrived twice");
	expect_file("file", "mine");
}
END_TEST

Suite *test_object_commands_suite(void);

Suite *test_object_commands_suite(void)
{
	Suite *const suite = suite_create("object_commands");
	TCase *const tests = tcase_create("object_commands");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_file_is_put_under_the_key_or_under_its_own_name, 0,
		sizeof uploads / sizeof uploads[0]);
	tcase_add_test(tests, a_bucket_is_made_only_when_that_is_wanted);
	tcase_add_test(tests, what_is_no_file_is_not_put);
	tcase_add_test(tests, no_device_or_pipe_is_replaced);
	tcase_add_test(tests, an_object_goes_to_the_file_or_below_the_folder);
	tcase_add_test(tests, only_the_object_goes_to_stdout);
	tcase_add_test(tests,
		an_object_that_was_replaced_meanwhile_is_not_taken_for_the_one_that_was_found);
	tcase_add_test(tests, a_download_that_fails_leaves_the_file_as_it_was);
	suite_add_tcase(suite, tests);
	return suite;
}
