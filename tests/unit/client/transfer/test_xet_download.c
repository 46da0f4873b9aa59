/* Downloads by chunks: a file gets its name when its bytes are those that the server promised. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/shard.h"
#include "chunker/xorb_record.h"
#include "client/local/folder_files.h"
#include "client/transfer/xet_download.h"
#include "tests/unit/client/web_fixture.h"

#define XORB "0000000000000001000000000000000000000000000000000000000000000000"

enum { BYTES = 3000 };

static const char TOKEN[] = "{\"accessToken\":\"t\",\"casUrl\":\"http://h\",\"exp\":99999999999}";
static const char PLAN[] =
	"{\"offset_into_first_range\":0,\"terms\":[{\"hash\":\"" XORB "\","
	"\"unpacked_length\":3000,\"range\":{\"start\":0,\"end\":1}}],\"xorbs\":{\"" XORB "\":["
	"{\"url\":\"http://h/records\",\"ranges\":[{\"chunks\":{\"start\":0,\"end\":1},"
	"\"bytes\":{\"start\":0,\"end\":3007}}]}]}}";

static uint8_t content[BYTES]; /* the content of the file, which is one chunk */
static unsigned wrong;         /* the number of answers that are a valid record with other bytes */
static unsigned answers;
static struct web *web;
static const struct file_ops *files;
static char *folder;
static char *path;
static char *part;
static char *seed;        /* may be used for the download; NULL: there is none */
static bool seed_changes; /* it changes when the server is asked about its chunk */

static void answer_record(struct web_reply *reply)
{
	const struct xorb_record_header header = {
		.codec = CODEC_RAW, .stored = BYTES, .size = BYTES};
	uint8_t bytes[XORB_RECORD_HEADER_BYTES];
	xorb_record_put_header(&header, bytes);
	reply->status = 200;
	buffer_add(&reply->body, bytes, sizeof bytes);
	buffer_add(&reply->body, content, BYTES);
	if (answers++ < wrong)
		reply->body.data[sizeof bytes] ^= 1;
}

static struct chunk_entry only_chunk(void)
{
	return (struct chunk_entry){.id = chunk_hash(span_of(content, BYTES)), .size = BYTES};
}

/* Writes in place, so that a program which has opened the file reads the new bytes. */
static void change_seed(void)
{
	static const char other[] = "other bytes";
	const int fd = open(seed, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, other, sizeof other, 0), sizeof other);
	close(fd);
}

/* Answers that the one chunk is in the xorb. */
static void answer_chunk(struct web_reply *reply)
{
	const struct shard_answer facts = {.created_s = 1, .expires_s = 2};
	const struct chunk_entry entry = only_chunk();
	struct chunk_id xorb;
	ck_assert(chunk_id_parse(span_text(XORB), &xorb));
	reply->status = 200;
	shard_write_answer(&reply->body, &facts, &xorb, &entry, 1);
	if (seed_changes)
		change_seed();
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	(void)owner;
	if (strcmp(request->target, "/records") == 0) {
		answer_record(reply);
		return;
	}
	if (strncmp(request->target, "/v1/chunks/", 11) == 0) {
		answer_chunk(reply);
		return;
	}
	const bool is_plan = strncmp(request->target, "/v2/reconstructions/", 20) == 0;
	reply->status = is_plan ? 206 : 200;
	buffer_add_text(&reply->body, is_plan ? PLAN : TOKEN);
}

static void set_up(void)
{
	for (size_t i = 0; i < BYTES; i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13);
	wrong = 0;
	answers = 0;
	seed = NULL;
	seed_changes = false;
	web = web_start(answer, NULL);
	files = file_system();
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x");
	part = folder_files_join(folder, "x.part");
}

static void tear_down(void)
{
	web_stop(web);
	free(seed);
	free(part);
	free(path);
	unit_scratch_remove(folder);
}

static int download(struct error *err)
{
	const struct chunk_entry entry = only_chunk();
	const char *const seeds[] = {seed};
	const struct xet_download_file file = {.hash = chunk_hash_file(&entry, 1),
		.size = BYTES,
		.path = path,
		.part_path = part,
		.seeds = seeds,
		.seed_count = seed != NULL};
	const struct remote_options options = {.endpoint = web_endpoint(web)};
	struct remote *const own = remote_new(&options, err);
	struct xet_access *const access = xet_access_open(own, span_text("b"), false, err);
	ck_assert_msg(access != NULL, "%s", err->text);
	struct hash_cache *const cache = hash_cache_open(file_system(), NULL);
	const struct xet_download job = {.files = files,
		.options = &options,
		.own = own,
		.access = access,
		.parallel = 1,
		.cache = cache};
	const int result = xet_download(&job, &file, 1, err);
	hash_cache_close(cache);
	xet_access_close(access);
	remote_free(own);
	return result;
}

static void expect_content(void)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, 2 * BYTES);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	ck_assert(span_equal(buffer_span(&bytes), span_of(content, BYTES)));
	buffer_release(&bytes);
}

START_TEST(a_file_that_came_wrong_is_fetched_once_more)
{
	struct error err = {0};
	wrong = (unsigned)_i;
	ck_assert_msg(download(&err) == 0, "%s", err.text);
	expect_content();
	ck_assert_uint_eq(answers, wrong + 1);
}
END_TEST

START_TEST(a_file_that_comes_wrong_twice_gets_no_name)
{
	struct error err = {0};
	wrong = 100;
	ck_assert_int_eq(download(&err), -1);
	ck_assert_msg(err.kind == ERROR_DIGEST_MISMATCH, "%s", err.text);
	ck_assert_uint_eq(answers, 2);
	ck_assert(!file_exists(path));
	wrong = 0; /* and the next call succeeds all the same */
	ck_assert_msg(download(&err) == 0, "%s", err.text);
}
END_TEST

/* The disk is full at any one of the writes. */
START_TEST(a_file_for_which_there_is_no_room_gets_no_name)
{
	struct error err = {0};
	struct file_faults full;
	file_faults_init(&full, FILE_FAULT_WRITE, _i, ENOSPC);
	files = &full.ops;
	ck_assert_int_eq(download(&err), -1);
	ck_assert_msg(err.kind == ERROR_NO_SPACE, "%s", err.text);
	ck_assert(!file_exists(path));
	files = file_system(); /* and when there is room, the next call succeeds */
	ck_assert_msg(download(&err) == 0, "%s", err.text);
	expect_content();
}
END_TEST

/* The seed is read before its chunks are copied, and may change in between. */
START_TEST(a_seed_that_changes_meanwhile_gives_nothing)
{
	struct error err = {0};
	seed = folder_files_join(folder, "seed");
	ck_assert_int_eq(file_place(files, seed, span_of(content, BYTES), 0644, &err), 0);
	seed_changes = _i == 1;
	ck_assert_msg(download(&err) == 0, "%s", err.text);
	expect_content();
	ck_assert_uint_eq(answers, seed_changes ? 1 : 0);
}
END_TEST

Suite *test_xet_download_suite(void);
Suite *test_xet_download_suite(void)
{
	Suite *const suite = suite_create("xet_download");
	TCase *const tests = tcase_create("xet_download");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_file_that_came_wrong_is_fetched_once_more, 0, 2);
	tcase_add_test(tests, a_file_that_comes_wrong_twice_gets_no_name);
	tcase_add_loop_test(tests, a_file_for_which_there_is_no_room_gets_no_name, 0, 5);
	tcase_add_loop_test(tests, a_seed_that_changes_meanwhile_gives_nothing, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
