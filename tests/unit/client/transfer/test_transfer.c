#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"
#include "client/transfer/transfer.h"
#include "tests/unit/client/range_server.h"
#include "tests/unit/client/web_fixture.h"

enum { CONTENT_BYTES = 100000, PART_BYTES = 7000 };

static uint8_t content[CONTENT_BYTES + 1];
static struct range_server_faults faults;
static struct range_server *server;
static struct remote_options remote;
static struct transfer_options options;
static struct transfer_download download;
static char *folder;
static char *path;
static char *part_path;
static char *journal_path;

static void set_up(void)
{
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13);
	memset(&faults, 0, sizeof faults);
	server = range_server_start(span_of(content, CONTENT_BYTES), &faults);
	remote = (struct remote_options){.endpoint = range_server_endpoint(server), .retries = 3};
	options = (struct transfer_options){
		.remote = &remote, .files = file_system(), .parallel = 3, .part_bytes = PART_BYTES};
	folder = unit_scratch_make();
	path = folder_files_join(folder, "x");
	part_path = folder_files_join(folder, "x.part");
	journal_path = folder_files_join(folder, "x.part.journal");
	download = (struct transfer_download){
		.target = "/b/x",
		.size = CONTENT_BYTES,
		.has_digest = true,
		.digest = xxh3_128(span_of(content, CONTENT_BYTES)),
		.path = path,
		.part_path = part_path,
	};
}

static void tear_down(void)
{
	range_server_stop(server);
	free(journal_path);
	free(part_path);
	free(path);
	unit_scratch_remove(folder);
}

static void check_arrived(void)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, 2 * CONTENT_BYTES);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	ck_assert_uint_eq(bytes.len, CONTENT_BYTES);
	ck_assert_mem_eq(bytes.data, content, CONTENT_BYTES);
	buffer_release(&bytes);
	ck_assert(!file_exists(part_path));
	ck_assert(!file_exists(journal_path));
}

static void check_fails(enum error_kind kind)
{
	struct error err = {0};
	ck_assert_int_eq(transfer_download(&options, &download, 1, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert(!file_exists(path));
}

static void check_succeeds(void)
{
	struct error err = {0};
	ck_assert_msg(transfer_download(&options, &download, 1, &err) == 0, "%s", err.text);
	check_arrived();
}

START_TEST(a_file_comes_in_parts)
{
	check_succeeds();
	ck_assert_int_eq(
		atomic_load(&faults.requests), (CONTENT_BYTES + PART_BYTES - 1) / PART_BYTES);
	ck_assert_uint_eq(atomic_load(&faults.sent), CONTENT_BYTES);
}
END_TEST

START_TEST(a_small_file_comes_whole)
{
	options.part_bytes = 0;
	check_succeeds();
	ck_assert_int_eq(atomic_load(&faults.requests), 1);
}
END_TEST

START_TEST(what_is_there_is_not_fetched_again)
{
	check_succeeds();
	atomic_store(&faults.status, 404);
	check_succeeds();
}
END_TEST

START_TEST(a_file_of_the_same_size_is_not_taken_for_it)
{
	struct error err = {0};
	uint8_t *const other = calloc(1, CONTENT_BYTES);
	ck_assert_int_eq(
		file_publish(file_system(), path, span_of(other, CONTENT_BYTES), 0600, &err), 0);
	free(other);
	download.has_digest = _i == 0; /* otherwise nothing at all is known about it */
	check_succeeds();
}
END_TEST

START_TEST(lost_connections_and_refusals_are_survived)
{
	atomic_store(&faults.cuts, 3);
	atomic_store(&faults.refusals, 2);
	check_succeeds();
}
END_TEST

/* A part whose connection was cut resumes where it stopped. */
START_TEST(nothing_is_sent_twice_after_a_cut)
{
	options.part_bytes = 0;
	atomic_store(&faults.cuts, 1);
	check_succeeds();
	ck_assert_uint_eq(atomic_load(&faults.sent), CONTENT_BYTES);
	ck_assert_int_eq(atomic_load(&faults.requests), 2);
}
END_TEST

START_TEST(a_damaged_part_makes_it_come_again_once)
{
	atomic_store(&faults.flips, 1);
	check_succeeds();
	ck_assert_uint_eq(atomic_load(&faults.sent), 2 * CONTENT_BYTES);
}
END_TEST

START_TEST(damage_that_stays_is_an_error_and_leaves_no_trust)
{
	atomic_store(&faults.flips, 1000);
	check_fails(ERROR_DIGEST_MISMATCH);
	atomic_store(&faults.flips, 0);
	check_succeeds();
}
END_TEST

START_TEST(a_later_call_resumes)
{
	remote.retries = 0;
	atomic_store(&faults.good, 7);
	atomic_store(&faults.die, true);
	check_fails(ERROR_UPSTREAM);
	ck_assert(file_exists(journal_path));
	atomic_store(&faults.die, false);
	check_succeeds();
	ck_assert_uint_eq(atomic_load(&faults.sent), CONTENT_BYTES); /* no byte was sent twice */
}
END_TEST

/* The object was overwritten between the two calls. */
START_TEST(parts_of_another_object_are_not_mixed_in)
{
	remote.retries = 0;
	atomic_store(&faults.good, 7);
	atomic_store(&faults.die, true);
	check_fails(ERROR_UPSTREAM);
	atomic_store(&faults.die, false);
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] ^= 0x55;
	download.digest = xxh3_128(span_of(content, CONTENT_BYTES));
	check_succeeds();
}
END_TEST

/* The same when only the ETag distinguishes the objects. */
START_TEST(parts_of_another_version_are_not_mixed_in)
{
	remote.retries = 0;
	download.has_digest = false;
	download.etag = "first";
	atomic_store(&faults.good, 7);
	atomic_store(&faults.die, true);
	check_fails(ERROR_UPSTREAM);
	atomic_store(&faults.die, false);
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] ^= 0x55;
	download.etag = "second";
	check_succeeds();
}
END_TEST

/* Serves the first two answers from one version of the object and the others from the next. */
static void answer_changing(void *owner, const struct web_request *request, struct web_reply *reply)
{
	int *const answers = owner;
	const bool is_first = (*answers)++ < 2;
	if (strstr(request->head, is_first ? "If-Match: \"second\"" : "If-Match: \"first\"") !=
		NULL) {
		reply->status = 412;
		return;
	}
	reply->status = 200;
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		buffer_add_byte(&reply->body, (uint8_t)(content[i] ^ (is_first ? 0 : 0x55)));
}

/* Without a digest nothing else would notice. */
START_TEST(an_object_that_changes_meanwhile_is_not_a_mixture)
{
	int answers = 0;
	struct web *const web = web_start(answer_changing, &answers);
	remote.endpoint = web_endpoint(web);
	download.has_digest = false;
	download.etag = "first";
	check_fails(ERROR_PRECONDITION);
	web_stop(web);
}
END_TEST

/* Another process is downloading the second of two files. */
START_TEST(one_file_that_cannot_be_begun_fails_the_call)
{
	struct error err = {0};
	char *const other = folder_files_join(folder, "y");
	char *const other_part = folder_files_join(folder, "y.part");
	const int taken = part_file_open(file_system(), other_part, CONTENT_BYTES, &err);
	ck_assert_int_ge(taken, 0);
	struct transfer_download both[2] = {download, download};
	both[1].path = other;
	both[1].part_path = other_part;
	ck_assert_int_eq(transfer_download(&options, both, 2, &err), -1);
	ck_assert_msg(err.kind == ERROR_BUSY, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert(!file_exists(other));
	close(taken);
	free(other_part);
	free(other);
}
END_TEST

START_TEST(refusals_that_stay_are_reported)
{
	atomic_store(&faults.status, 404);
	check_fails(ERROR_NOT_FOUND);
	/* not repeated: one per connection at most */
	ck_assert_int_le(atomic_load(&faults.requests), 3);
}
END_TEST

START_TEST(retries_run_out)
{
	remote.retries = 1;
	options.parallel = 1;
	options.part_bytes = 0;
	atomic_store(&faults.refusals, 100);
	check_fails(ERROR_UPSTREAM);
	ck_assert_int_eq(atomic_load(&faults.requests), 2);
}
END_TEST

/* A connection that breaks again and again, but each time after some bytes. */
START_TEST(retries_begin_anew_where_something_came)
{
	remote.retries = 1;
	options.parallel = 1;
	options.part_bytes = 0;
	atomic_store(&faults.cuts, 4);
	check_succeeds();
	ck_assert_int_eq(atomic_load(&faults.requests), 5);
}
END_TEST

static void answer_short(void *owner, const struct web_request *request, struct web_reply *reply)
{
	const bool *const is_ranged = owner;
	ck_assert((strstr(request->head, "\r\nRange: ") != NULL) == *is_ranged);
	reply->status = *is_ranged ? 206 : 200;
	buffer_add(&reply->body, content, *is_ranged ? PART_BYTES - 1 : CONTENT_BYTES - 1);
}

START_TEST(less_than_was_asked_for_is_refused)
{
	bool is_ranged = _i == 0;
	struct web *const web = web_start(answer_short, &is_ranged);
	remote.endpoint = web_endpoint(web);
	options.part_bytes = is_ranged ? PART_BYTES : 0;
	options.parallel = 1;
	check_fails(ERROR_CORRUPT);
	ck_assert_str_eq(web_trace(web), "GET /b/x\n");
	web_stop(web);
}
END_TEST

START_TEST(wrong_ranges_are_refused)
{
	if (_i == 0)
		atomic_store(&faults.ignore_range, true);
	else
		atomic_store(&faults.too_much, true);
	check_fails(ERROR_CORRUPT);
}
END_TEST

START_TEST(an_empty_file_needs_no_request)
{
	struct error err = {0};
	uint64_t size = 1;
	download.size = 0;
	download.digest = xxh3_128((struct span){0});
	ck_assert_int_eq(transfer_download(&options, &download, 1, &err), 0);
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, 0);
	ck_assert_int_eq(atomic_load(&faults.requests), 0);
}
END_TEST

START_TEST(a_file_digest_is_that_of_its_bytes)
{
	struct error err = {0};
	struct digest128 digest;
	check_succeeds();
	ck_assert_int_eq(transfer_file_digest(path, &digest, &err), 0);
	ck_assert(digest128_equal(&digest, &download.digest));
	ck_assert_int_eq(transfer_file_digest(part_path, &digest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

Suite *test_transfer_suite(void);
Suite *test_transfer_suite(void)
{
	Suite *const suite = suite_create("transfer");
	TCase *const tests = tcase_create("transfer");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_file_comes_in_parts);
	tcase_add_test(tests, a_small_file_comes_whole);
	tcase_add_test(tests, what_is_there_is_not_fetched_again);
	tcase_add_loop_test(tests, a_file_of_the_same_size_is_not_taken_for_it, 0, 2);
	tcase_add_test(tests, lost_connections_and_refusals_are_survived);
	tcase_add_test(tests, nothing_is_sent_twice_after_a_cut);
	tcase_add_test(tests, a_damaged_part_makes_it_come_again_once);
	tcase_add_test(tests, damage_that_stays_is_an_error_and_leaves_no_trust);
	tcase_add_test(tests, a_later_call_resumes);
	tcase_add_test(tests, parts_of_another_object_are_not_mixed_in);
	tcase_add_test(tests, parts_of_another_version_are_not_mixed_in);
	tcase_add_test(tests, an_object_that_changes_meanwhile_is_not_a_mixture);
	tcase_add_test(tests, one_file_that_cannot_be_begun_fails_the_call);
	tcase_add_test(tests, refusals_that_stay_are_reported);
	tcase_add_test(tests, retries_run_out);
	tcase_add_test(tests, retries_begin_anew_where_something_came);
	tcase_add_loop_test(tests, less_than_was_asked_for_is_refused, 0, 2);
	tcase_add_loop_test(tests, wrong_ranges_are_refused, 0, 2);
	tcase_add_test(tests, an_empty_file_needs_no_request);
	tcase_add_test(tests, a_file_digest_is_that_of_its_bytes);
	suite_add_tcase(suite, tests);
	return suite;
}
