/* Uploads by chunks: the questions, the requests, and the outcome when a server refuses some of
 * them. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/transfer/xet_upload.h"
#include "tests/unit/client/web_fixture.h"

#define NONE "{\"success\":true,\"failed\":[]}"
#define NO_B "{\"success\":false,\"failed\":[{\"path\":\"k/b\",\"error\":\"no bytes\"}]}"

enum { BYTES = 40000 };

static char *folder;
static char *paths[2];
static struct web *web;
static const char *batches[2]; /* the answers to the first batch, and to all others */
static unsigned batch_count;
static int grant; /* statuses of answers */
static int xorb;
static int shard;
static bool changes_meanwhile; /* the file b changes when its bytes arrive */
static char told[10];          /* the numbers of the files that were reported, in order */
static char asked[20];         /* a letter for each request: Token, Batch, Grant, Xorb, Shard */
static char last_batch[1000];

static void write_file(const char *path, uint8_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = memory_new(BYTES);
	const struct timespec times[2] = {
		{.tv_sec = 1700000000}, {.tv_sec = 1700000000, .tv_nsec = 123456789}};
	uint64_t state = seed;
	for (size_t i = 0; i < BYTES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, BYTES), 0644, &err), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	free(bytes);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Writes in place, like a program that has the file open. */
static void spoil_file(const char *path)
{
	FILE *const file = fopen(path, "r+");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs("other", file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

static void note(char letter)
{
	ck_assert_uint_lt(strlen(asked), sizeof asked - 1);
	asked[strlen(asked)] = letter;
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	(void)owner;
	reply->status = 200;
	if (strstr(request->target, "/batch") != NULL) {
		note('B');
		snprintf(last_batch, sizeof last_batch, "%.*s", (int)request->body.len,
			(const char *)request->body.data);
		buffer_add_text(&reply->body, batches[batch_count++ == 0 ? 0 : 1]);
	} else if (begins(request->target, "/v1/xorb-grants/")) {
		note('G');
		reply->status = grant;
	} else if (begins(request->target, "/v1/xorbs/")) {
		note('X');
		reply->status = xorb;
		if (changes_meanwhile)
			spoil_file(paths[1]);
	} else if (begins(request->target, "/v1/shards")) {
		note('S');
		reply->status = shard;
	} else {
		note('T');
		buffer_add_text(&reply->body,
			"{\"accessToken\":\"t\",\"casUrl\":\"http://h\",\"exp\":99999999999}");
	}
}

static void set_up(void)
{
	folder = unit_scratch_make();
	paths[0] = folder_files_join(folder, "a");
	paths[1] = folder_files_join(folder, "b");
	write_file(paths[0], 1);
	write_file(paths[1], 2);
	batches[0] = NO_B;
	batches[1] = NONE;
	batch_count = 0;
	grant = 204;
	xorb = 200;
	shard = 200;
	changes_meanwhile = false;
	memset(told, 0, sizeof told);
	memset(asked, 0, sizeof asked);
	web = web_start(answer, NULL);
}

static void tear_down(void)
{
	web_stop(web);
	free(paths[0]);
	free(paths[1]);
	unit_scratch_remove(folder);
}

static int tell(void *owner, size_t index, struct error *err)
{
	(void)owner;
	(void)err;
	ck_assert_uint_lt(strlen(told), sizeof told - 1);
	told[strlen(told)] = (char)('0' + index);
	return 0;
}

static int upload(struct error *err)
{
	const struct xet_upload_file files[2] = {
		{paths[0], span_text("k/a")}, {paths[1], span_text("k/b")}};
	const struct remote_options options = {.endpoint = web_endpoint(web)};
	struct remote *const own = remote_new(&options, err);
	struct xet_access *const access = xet_access_open(own, span_text("bucket"), true, err);
	ck_assert_msg(access != NULL, "%s", err->text);
	struct hash_cache *const cache = hash_cache_open(file_system(), NULL);
	const struct xet_upload what = {.options = &options,
		.own = own,
		.access = access,
		.bucket = span_text("bucket"),
		.parallel = 1,
		.cache = cache,
		.done = tell};
	const int result = xet_upload(&what, files, 2, err);
	hash_cache_close(cache);
	xet_access_close(access);
	remote_free(own);
	return result;
}

static void expect_failure(enum error_kind kind, const char *says)
{
	struct error err = {0};
	ck_assert_int_eq(upload(&err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, says) != NULL, "%s: %s",
		error_kind_name(err.kind), err.text);
	ck_assert_str_eq(told, "");
}

START_TEST(what_the_server_has_is_only_named)
{
	struct error err = {0};
	batches[0] = NONE;
	ck_assert_msg(upload(&err) == 0, "%s", err.text);
	ck_assert_str_eq(told, "01");
	ck_assert_str_eq(asked, "TB");
	const char *const second = strchr(last_batch, '\n');
	ck_assert(begins(last_batch, "{\"type\":\"addFile\",\"path\":\"k/a\",\"xetHash\":\""));
	ck_assert(begins(second, "\n{\"type\":\"addFile\",\"path\":\"k/b\",\"xetHash\":\""));
	ck_assert_str_eq(strrchr(last_batch, ','), ",\"mtime\":1700000000123}\n");
}
END_TEST

/* For the missing file, and no other: first the bytes, then their description, then the name. */
START_TEST(what_the_server_lacks_is_sent)
{
	struct error err = {0};
	ck_assert_msg(upload(&err) == 0, "%s", err.text);
	ck_assert_str_eq(asked, "TBGXSB");
	ck_assert(begins(last_batch, "{\"type\":\"addFile\",\"path\":\"k/b\",\"xetHash\":\""));
	ck_assert_str_eq(strchr(last_batch, '\n'), "\n");
	ck_assert_str_eq(told, "01");
}
END_TEST

START_TEST(a_line_that_is_refused_again_is_a_failure)
{
	batches[1] = NO_B;
	expect_failure(ERROR_INVALID, "k/b: no bytes");
	ck_assert_str_eq(asked, "TBGXSB");
}
END_TEST

static const struct {
	int status;
	bool sends;
} GRANTS[] = {{200, false}, {204, true}, {400, true}, {403, true}, {404, true}, {405, true}};

/* Other servers do not know this question. */
START_TEST(bytes_that_the_server_has_already_are_not_sent)
{
	struct error err = {0};
	grant = GRANTS[_i].status;
	ck_assert_msg(upload(&err) == 0, "%s", err.text);
	ck_assert_str_eq(asked, GRANTS[_i].sends ? "TBGXSB" : "TBGSB");
	ck_assert_str_eq(told, "01");
}
END_TEST

START_TEST(a_server_that_fails_gets_no_bytes)
{
	grant = 500;
	expect_failure(ERROR_UPSTREAM, "");
	ck_assert_str_eq(asked, "TBG");
}
END_TEST

START_TEST(bytes_that_are_refused_are_not_named)
{
	xorb = _i == 0 ? 400 : 507;
	expect_failure(_i == 0 ? ERROR_INVALID : ERROR_NO_SPACE, "");
	ck_assert_str_eq(asked, "TBGX");
}
END_TEST

START_TEST(a_file_that_changes_meanwhile_is_called_so)
{
	changes_meanwhile = true;
	xorb = 400;
	expect_failure(ERROR_INVALID, "changed while it was uploaded");
}
END_TEST

START_TEST(a_description_that_is_refused_ends_it)
{
	shard = 400;
	expect_failure(ERROR_INVALID, "");
	ck_assert_str_eq(asked, "TBGXS");
}
END_TEST

START_TEST(a_file_that_is_gone_ends_it_before_it_begins)
{
	ck_assert_int_eq(remove(paths[1]), 0);
	expect_failure(ERROR_NOT_FOUND, paths[1]);
	ck_assert_str_eq(asked, "T");
}
END_TEST

Suite *test_xet_upload_suite(void);

Suite *test_xet_upload_suite(void)
{
	Suite *const suite = suite_create("xet_upload");
	TCase *const tests = tcase_create("xet_upload");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_the_server_has_is_only_named);
	tcase_add_test(tests, what_the_server_lacks_is_sent);
	tcase_add_test(tests, a_line_that_is_refused_again_is_a_failure);
	tcase_add_loop_test(tests, bytes_that_the_server_has_already_are_not_sent, 0,
		sizeof GRANTS / sizeof GRANTS[0]);
	tcase_add_test(tests, a_server_that_fails_gets_no_bytes);
	tcase_add_loop_test(tests, bytes_that_are_refused_are_not_named, 0, 2);
	tcase_add_test(tests, a_file_that_changes_meanwhile_is_called_so);
	tcase_add_test(tests, a_description_that_is_refused_ends_it);
	tcase_add_test(tests, a_file_that_is_gone_ends_it_before_it_begins);
	suite_add_tcase(suite, tests);
	return suite;
}
