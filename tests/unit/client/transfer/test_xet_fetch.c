/* A range of a file as records: the bytes that are written, and the outcome of damaged, refused and
 * hostile answers. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_record.h"
#include "client/local/folder_files.h"
#include "client/transfer/xet_fetch.h"
#include "tests/unit/client/web_fixture.h"

#define XORB "0000000000000001000000000000000000000000000000000000000000000000"
#define TERM(bytes, first, end)                                                            \
	"{\"hash\":\"" XORB "\",\"unpacked_length\":" bytes ",\"range\":{\"start\":" first \
	",\"end\":" end "}}"
#define FETCH(first, end, from, to)                                                               \
	"{\"url\":\"http://h/records\",\"ranges\":[{\"chunks\":{\"start\":" first ",\"end\":" end \
	"},\"bytes\":{\"start\":" from ",\"end\":" to "}}]}"
#define PLAN(skip, terms, fetches)                                                       \
	"{\"offset_into_first_range\":" skip ",\"terms\":[" terms "],\"xorbs\":{\"" XORB \
	"\":[" fetches "]}}"
#define ALL FETCH("0", "3", "0", "6023")

enum { CHUNKS = 3, BYTES = 6000, SECOND_RECORD = 3008, THIRD_RECORD = 5016, FAULTS_MAX = 8 };

static const uint32_t sizes[CHUNKS] = {3000, 2000, 1000};

static uint8_t content[BYTES];
static struct buffer records;
static struct web *web;
static struct remote_options options;
static const char *plan;
static int plan_status;
static bool was_told_of_token; /* the host of the records */
static bool asked_well;        /* for the reconstruction of bytes 1000 to 3999 */
/* The faults of each answer with records. */
static struct fault {
	int status;  /* sent instead of the records; 0: none */
	size_t flip; /* the index of a byte to damage; 0: none */
	size_t keep; /* the number of bytes to send; 0: all */
} faults[FAULTS_MAX];
static unsigned answers;
static unsigned plans;
static char *folder;
static char *path;
static struct map_chunk *chunks;
static size_t chunk_count;

static void answer_records(const struct fault *fault, struct web_reply *reply)
{
	reply->status = fault->status != 0 ? fault->status : 200;
	if (reply->status != 200)
		return;
	buffer_add(&reply->body, records.data, fault->keep != 0 ? fault->keep : records.len);
	if (fault->flip != 0)
		reply->body.data[fault->flip] ^= 1;
}

static void answer(void *owner, const struct web_request *request, struct web_reply *reply)
{
	(void)owner;
	reply->status = 200;
	if (strcmp(request->target, "/records") == 0) {
		was_told_of_token = strstr(request->head, "Authorization") != NULL;
		answer_records(&faults[answers++ % FAULTS_MAX], reply);
	} else if (strncmp(request->target, "/v2/reconstructions/", 20) == 0) {
		asked_well = strstr(request->head, "\r\nRange: bytes=1000-3999\r\n") != NULL &&
			strstr(request->head, "\r\nAuthorization: Bearer t\r\n") != NULL;
		reply->status = plan_status;
		plans++;
		buffer_add_text(&reply->body, plan);
	} else {
		buffer_add_text(&reply->body,
			"{\"accessToken\":\"t\",\"casUrl\":\"http://h\",\"exp\":99999999999}");
	}
}

static void add_records(void)
{
	size_t at = 0;
	buffer_init(&records, 2 * BYTES);
	for (size_t i = 0; i < CHUNKS; i++) {
		const struct xorb_record_header header = {
			.codec = CODEC_RAW, .stored = sizes[i], .size = sizes[i]};
		uint8_t bytes[XORB_RECORD_HEADER_BYTES];
		xorb_record_put_header(&header, bytes);
		buffer_add(&records, bytes, sizeof bytes);
		buffer_add(&records, content + at, sizes[i]);
		at += sizes[i];
	}
}

static void set_up(void)
{
	for (size_t i = 0; i < BYTES; i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
	add_records();
	memset(faults, 0, sizeof faults);
	answers = 0;
	plans = 0;
	plan_status = 206;
	plan = PLAN("0", TERM("6000", "0", "3"), ALL);
	web = web_start(answer, NULL);
	options = (struct remote_options){.endpoint = web_endpoint(web), .token = "mine"};
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x.part");
	chunks = NULL;
}

static void tear_down(void)
{
	free(chunks);
	free(path);
	unit_scratch_remove(folder);
	web_stop(web);
	buffer_release(&records);
}

static int fetch(uint64_t size, uint64_t from, uint64_t to, struct error *err)
{
	struct remote *const remote = remote_new(&options, err);
	struct xet_access *const access = xet_access_open(remote, span_text("b"), false, err);
	ck_assert_msg(access != NULL, "%s", err->text);
	const struct xet_remote xet = {access, remote};
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	const struct xet_fetch what = {
		.size = size, .files = file_system(), .fd = fd, .path = path};
	const struct map_gap gap = {.from = from, .to = to};
	free(chunks);
	const int result = xet_fetch_range(&what, &xet, &gap, &chunks, &chunk_count, err);
	close(fd);
	xet_access_close(access);
	remote_free(remote);
	return result;
}

/* Bytes [from, to) of the content are in their place, and nothing else. */
static void expect_only(size_t from, size_t to)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, 2 * BYTES);
	ck_assert_msg(file_read_all(path, &bytes, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(bytes.len, to);
	for (size_t i = 0; i < to; i++)
		ck_assert_msg(bytes.data[i] == (i < from ? 0 : content[i]), "at %zu", i);
	buffer_release(&bytes);
}

static void expect_whole(void)
{
	struct error err = {0};
	ck_assert_msg(fetch(BYTES, 0, BYTES, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(chunk_count, CHUNKS);
	expect_only(0, BYTES);
}

static void expect_failure(enum error_kind kind)
{
	struct error err = {0};
	ck_assert_int_eq(fetch(BYTES, 0, BYTES, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_uint_eq(chunk_count, 0);
}

START_TEST(a_range_is_written_and_nothing_beside_it)
{
	struct error err = {0};
	plan = PLAN("1000", TERM("5000", "0", "2"), FETCH("0", "2", "0", "5015"));
	ck_assert_msg(fetch(BYTES, 1000, 4000, &err) == 0, "%s", err.text);
	ck_assert(asked_well);
	ck_assert(!was_told_of_token);
	expect_only(1000, 4000);
	ck_assert_uint_eq(chunk_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct chunk_id id = chunk_hash(span_of(content + 3000 * i, sizes[i]));
		ck_assert_uint_eq(chunks[i].offset, 3000 * i);
		ck_assert_uint_eq(chunks[i].size, sizes[i]);
		ck_assert(chunk_id_equal(&chunks[i].id, &id));
	}
}
END_TEST

START_TEST(records_come_from_the_middle_of_a_xorb)
{
	plan = PLAN("0", TERM("3000", "0", "1") "," TERM("3000", "1", "3"),
		FETCH("1", "3", "3008", "6023") "," FETCH("0", "1", "0", "3007"));
	expect_whole();
	ck_assert_uint_eq(answers, 2);
}
END_TEST

START_TEST(a_chunk_that_repeats_comes_once)
{
	memcpy(content + 3000, content, 3000);
	plan = PLAN("0", TERM("3000", "0", "1") "," TERM("3000", "0", "1"),
		FETCH("0", "1", "0", "3007"));
	struct error err = {0};
	ck_assert_msg(fetch(BYTES, 0, BYTES, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(chunk_count, 2);
	ck_assert_uint_eq(answers, 1);
	expect_only(0, BYTES);
}
END_TEST

/* The damage follows a good record: the next fetch starts again from the beginning. */
START_TEST(damaged_records_come_again_a_few_times)
{
	for (int i = 0; i < _i; i++)
		faults[i].flip = SECOND_RECORD;
	if (_i < 3)
		expect_whole();
	else
		expect_failure(ERROR_CORRUPT);
	ck_assert_uint_eq(answers, _i < 3 ? _i + 1 : 3);
}
END_TEST

static const size_t SHORTER[] = {SECOND_RECORD, THIRD_RECORD, THIRD_RECORD + 500};

START_TEST(records_that_are_missing_come_again)
{
	faults[0].keep = SHORTER[_i];
	expect_whole();
	for (unsigned i = 0; i < FAULTS_MAX; i++)
		faults[i].keep = SHORTER[_i];
	expect_failure(ERROR_CORRUPT);
}
END_TEST

START_TEST(an_address_that_is_over_is_asked_for_again)
{
	faults[0].status = 403;
	expect_whole();
	ck_assert_uint_eq(plans, 2);
	for (unsigned i = 0; i < FAULTS_MAX; i++)
		faults[i].status = 403;
	plans = 0;
	expect_failure(ERROR_DENIED);
	ck_assert_uint_eq(plans, 4);
}
END_TEST

START_TEST(a_server_that_is_busy_is_asked_again)
{
	static const int statuses[] = {503, 429, 500};
	for (unsigned i = 0; i < FAULTS_MAX; i++)
		faults[i].status = i == 0 || i > 1 ? statuses[_i] : 0;
	options.retries = 1;
	expect_whole();
	options.retries = 0;
	expect_failure(ERROR_UPSTREAM);
	ck_assert_uint_eq(answers, 3);
}
END_TEST

START_TEST(records_that_are_gone_are_told)
{
	options.retries = 2;
	faults[0].status = 404;
	expect_failure(ERROR_NOT_FOUND);
	ck_assert_uint_eq(answers, 1);
	plan_status = 404;
	plan = "";
	expect_failure(ERROR_NOT_FOUND);
	ck_assert_uint_eq(answers, 1);
}
END_TEST

static const struct {
	const char *plan;
	enum error_kind kind;
} WRONG[] = {
	/* the reconstruction is too short, too long, begins before the file */
	{PLAN("0", TERM("5000", "0", "2"), ALL), ERROR_UPSTREAM},
	{PLAN("0", TERM("6000", "0", "3") "," TERM("1000", "2", "3"), ALL), ERROR_UPSTREAM},
	{PLAN("1", TERM("6000", "0", "3"), ALL), ERROR_UPSTREAM},
	{PLAN("0", "", ALL), ERROR_UPSTREAM},
	/* the records have more, or fewer, bytes than was announced */
	{PLAN("0", TERM("2999", "0", "1") "," TERM("3001", "1", "3"), ALL), ERROR_CORRUPT},
	{PLAN("0", TERM("3001", "0", "1") "," TERM("2999", "1", "3"), ALL), ERROR_CORRUPT},
	/* fewer and more records than were announced */
	{PLAN("0", TERM("6000", "0", "3"), FETCH("0", "4", "0", "6023")), ERROR_CORRUPT},
	{PLAN("0", TERM("3000", "0", "1") "," TERM("3000", "0", "1"), FETCH("0", "1", "0", "6023")),
		ERROR_CORRUPT},
};

START_TEST(a_wrong_way_is_refused)
{
	plan = WRONG[_i].plan;
	expect_failure(WRONG[_i].kind);
	ck_assert(WRONG[_i].kind == ERROR_CORRUPT || answers == 0);
}
END_TEST

START_TEST(a_disk_without_room_is_not_tried_again)
{
	struct error err = {0};
	struct file_faults full;
	file_faults_init(&full, FILE_FAULT_WRITE, 1, 28);
	struct remote *const remote = remote_new(&options, &err);
	struct xet_access *const access = xet_access_open(remote, span_text("b"), false, &err);
	const struct xet_remote xet = {access, remote};
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	const struct xet_fetch what = {.size = BYTES, .files = &full.ops, .fd = fd, .path = path};
	const struct map_gap gap = {.to = BYTES};
	ck_assert_int_eq(xet_fetch_range(&what, &xet, &gap, &chunks, &chunk_count, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_uint_eq(answers, 1);
	close(fd);
	xet_access_close(access);
	remote_free(remote);
}
END_TEST

Suite *test_xet_fetch_suite(void);

Suite *test_xet_fetch_suite(void)
{
	Suite *const suite = suite_create("xet_fetch");
	TCase *const tests = tcase_create("xet_fetch");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_range_is_written_and_nothing_beside_it);
	tcase_add_test(tests, records_come_from_the_middle_of_a_xorb);
	tcase_add_test(tests, a_chunk_that_repeats_comes_once);
	tcase_add_loop_test(tests, damaged_records_come_again_a_few_times, 0, 5);
	tcase_add_loop_test(
		tests, records_that_are_missing_come_again, 0, sizeof SHORTER / sizeof SHORTER[0]);
	tcase_add_test(tests, an_address_that_is_over_is_asked_for_again);
	tcase_add_loop_test(tests, a_server_that_is_busy_is_asked_again, 0, 3);
	tcase_add_test(tests, records_that_are_gone_are_told);
	tcase_add_loop_test(tests, a_wrong_way_is_refused, 0, sizeof WRONG / sizeof WRONG[0]);
	tcase_add_test(tests, a_disk_without_room_is_not_tried_again);
	suite_add_tcase(suite, tests);
	return suite;
}
