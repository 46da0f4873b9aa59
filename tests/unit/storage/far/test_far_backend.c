/* The backend against a service that answers as a script says. A real store: tests/scale. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/far/far_backend.h"
#include "tests/unit/s3_service.h"
#include "tests/unit/storage/store_fixture.h"

enum { PART = 5000, SIZE = 12000 };
static const char NAME[] = "0123.pack";
static const char BEGUN[] =
	"<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
static const char COMPLETED[] = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
static const struct s3_service_answer GOOD[] = {{.status = 200}, {0}};
/* The later answers fit parts and the completion. */
static const struct s3_service_answer PARTS[] = {{.status = 200, .body = BEGUN},
	{.status = 200, .headers = "ETag: \"e\"\r\n", .body = COMPLETED}, {0}};

static struct s3_service *service;
static struct backend *backend;
static uint8_t *bytes;
static char *scratch;
static char folder[4096];
static struct error err;

static void open_backend(void)
{
	char text[200];
	struct far_place place;
	snprintf(text, sizeof(text), "s3+%s/box/pre", s3_service_endpoint(service));
	ck_assert_int_eq(far_place_parse(text, &place, &err), 0);
	ck_assert_int_eq(far_place_take_key(&place, NULL, &err), 0);
	const struct far_options options = {.place = &place,
		.cache_folder = folder,
		.cache_bytes = 1 << 20,
		.part_bytes = PART,
		.block_bytes = 4096,
		.tries = 1,
		.pause_ms = 1};
	backend = far_backend_open(&options, &err);
	ck_assert_msg(backend != NULL, "%s", err.text);
	far_place_release(&place);
}

static void set_up(void)
{
	err = (struct error){0};
	setenv("DELTABUCKET_PACKS_KEY_ID", "k", 1);
	setenv("DELTABUCKET_PACKS_SECRET", "s", 1);
	bytes = fixture_noise(SIZE, 3);
	service = s3_service_start(GOOD);
	scratch = unit_scratch_make();
	snprintf(folder, sizeof(folder), "%s/packs", scratch);
	open_backend();
}

static void tear_down(void)
{
	backend->ops->free(backend);
	s3_service_stop(service);
	free(bytes);
	unit_scratch_remove(scratch);
}

static void reopen(void)
{
	backend->ops->free(backend);
	open_backend();
}

static struct backend_file *write_file(bool is_staged, size_t len)
{
	struct backend_file *file;
	int (*const create)(struct backend *, const char *, struct backend_file **,
		struct error *) = is_staged ? backend->ops->create_staged : backend->ops->create;
	ck_assert_int_eq(create(backend, NAME, &file, &err), 0);
	for (size_t at = 0; at < len; at += 1000) {
		const size_t piece = len - at < 1000 ? len - at : 1000;
		ck_assert_int_eq(
			backend->ops->append(file, span_of(bytes + at, piece), at, &err), 0);
	}
	return file;
}

static bool holds(size_t len)
{
	struct backend_file *file;
	uint8_t *const into = calloc(1, len);
	const struct iovec part = {.iov_base = into, .iov_len = len};
	ck_assert_int_eq(backend->ops->open(backend, NAME, &file, &err), 0);
	ck_assert_msg(backend->ops->read(file, &part, 1, 0, &err) == 0, "%s", err.text);
	const bool is_same = memcmp(into, bytes, len) == 0;
	backend->ops->close(file);
	free(into);
	return is_same;
}

static unsigned times(const char *text)
{
	unsigned count = 0;
	for (const char *at = s3_service_trace(service); (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

static void await_requests(unsigned count)
{
	for (int i = 0; i < 5000 && s3_service_count(service) < count; i++)
		usleep(2000);
	ck_assert_uint_eq(s3_service_count(service), count);
}

START_TEST(a_small_file_is_one_request)
{
	struct backend_file *const file = write_file(true, 4000);
	ck_assert_uint_eq(s3_service_count(service), 0);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_str_eq(s3_service_trace(service), "PUT /box/pre/packs/01/0123.pack\n");
	ck_assert(span_equal(s3_service_body(service), span_of(bytes, 4000)));
	backend->ops->close(file);
	reopen();
	ck_assert(holds(4000));
	ck_assert_uint_eq(s3_service_count(service), 1);
}
END_TEST

START_TEST(a_large_file_goes_up_in_parts_while_it_grows)
{
	s3_service_answer_with(service, PARTS);
	struct backend_file *const file = write_file(false, SIZE);
	await_requests(3);
	ck_assert_uint_eq(times("partNumber="), 2);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_uint_eq(times("partNumber=3&uploadId=u1"), 1);
	ck_assert_uint_eq(s3_service_count(service), 5);
	ck_assert(holds(SIZE));
	backend->ops->close(file);
	ck_assert_uint_eq(times("DELETE"), 0);
}
END_TEST

START_TEST(a_staged_file_asks_nobody_until_it_is_synced)
{
	s3_service_answer_with(service, PARTS);
	struct backend_file *const file = write_file(true, SIZE);
	ck_assert(holds(SIZE));
	ck_assert_uint_eq(s3_service_count(service), 0);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_uint_eq(s3_service_count(service), 5);
	backend->ops->close(file);
}
END_TEST

/* What was sent already and is written anew goes up again. */
START_TEST(bytes_that_changed_are_sent_again)
{
	s3_service_answer_with(service, PARTS);
	struct backend_file *const file = write_file(false, SIZE);
	await_requests(3);
	ck_assert_int_eq(backend->ops->truncate(file, PART + 100, &err), 0);
	ck_assert_int_eq(backend->ops->append(file, span_of(bytes, 5000), PART + 100, &err), 0);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_uint_eq(times("partNumber=1&"), 1);
	ck_assert_uint_eq(times("partNumber=2&"), 2);
	ck_assert_uint_eq(times("partNumber=3&"), 1);
	backend->ops->close(file);
}
END_TEST

/* The answer is lost; the size of the object decides. */
START_TEST(a_write_in_doubt_is_decided_by_the_size)
{
	static const struct s3_service_answer there[] = {
		{.status = 500}, {.status = 200, .length = 4000}, {0}};
	static const struct s3_service_answer other[] = {
		{.status = 500}, {.status = 200, .length = 3999}, {0}};
	static const struct s3_service_answer cut[] = {
		{.status = 0, .delay_ms = 1}, {.status = 200, .length = 4000}, {0}};
	s3_service_answer_with(service, other);
	struct backend_file *const file = write_file(true, 4000);
	ck_assert_int_eq(backend->ops->sync(file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	s3_service_answer_with(service, there);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	backend->ops->close(file);
	s3_service_answer_with(service, GOOD);
	ck_assert_int_eq(backend->ops->remove(backend, NAME, &err), 0);
	s3_service_answer_with(service, cut);
	struct backend_file *const again = write_file(true, 4000);
	(void)backend->ops->sync(again, &err);
	ck_assert_int_eq(backend->ops->sync(again, &err), 0);
	backend->ops->close(again);
}
END_TEST

START_TEST(a_sync_that_failed_can_be_tried_again)
{
	static const struct s3_service_answer bad[] = {
		{.status = 200, .body = BEGUN}, {.status = 503}, {0}};
	s3_service_answer_with(service, bad);
	struct backend_file *const file = write_file(true, SIZE);
	ck_assert_int_eq(backend->ops->sync(file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	s3_service_answer_with(service, PARTS + 1);
	ck_assert_int_eq(backend->ops->sync(file, &err), 0);
	ck_assert_uint_eq(times("uploads="), 0);
	backend->ops->close(file);
}
END_TEST

START_TEST(what_was_given_up_leaves_nothing)
{
	s3_service_answer_with(service, PARTS);
	struct backend_file *file = write_file(false, SIZE);
	await_requests(3);
	backend->ops->close(file);
	ck_assert_int_eq(backend->ops->remove(backend, NAME, &err), 0);
	await_requests(4);
	ck_assert_uint_eq(times("DELETE /box/pre/packs/01/0123.pack?uploadId=u1"), 1);
	ck_assert_uint_eq(times("DELETE"), 1);
	file = write_file(true, 100);
	backend->ops->close(file);
	ck_assert_int_eq(backend->ops->remove(backend, NAME, &err), 0);
	ck_assert_uint_eq(times("DELETE"), 1);
}
END_TEST

START_TEST(reads_ask_for_ranges)
{
	static const struct s3_service_answer script[] = {{.status = 200, .length = 4},
		{.status = 206, .headers = "Content-Range: bytes 0-3/4\r\n", .body = "abcd"}, {0}};
	char into[2];
	const struct iovec part = {.iov_base = into, .iov_len = 2};
	struct backend_file *file;
	s3_service_answer_with(service, script);
	ck_assert_int_eq(backend->ops->open(backend, NAME, &file, &err), 0);
	ck_assert(!backend->ops->is_near(file, 1, 2));
	ck_assert_uint_eq(s3_service_count(service), 0);
	ck_assert_msg(backend->ops->read(file, &part, 1, 1, &err) == 0, "%s", err.text);
	ck_assert_int_eq(memcmp(into, "bc", 2), 0);
	ck_assert_str_eq(s3_service_trace(service),
		"HEAD /box/pre/packs/01/0123.pack\nGET /box/pre/packs/01/0123.pack\n");
	ck_assert(backend->ops->is_near(file, 0, 4));
	backend->ops->forget(file, 0, 1);
	ck_assert(!backend->ops->is_near(file, 0, 4));
	backend->ops->close(file);
}
END_TEST

START_TEST(wrong_lengths_never_become_bytes)
{
	static const struct s3_service_answer script[] = {{.status = 200, .length = 4},
		{.status = 206, .headers = "Content-Range: bytes 0-2/3\r\n", .body = "abc"}, {0}};
	char into[4];
	const struct iovec part = {.iov_base = into, .iov_len = 4};
	struct backend_file *file;
	s3_service_answer_with(service, script);
	ck_assert_int_eq(backend->ops->open(backend, NAME, &file, &err), 0);
	ck_assert_int_eq(backend->ops->read(file, &part, 1, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	backend->ops->close(file);
}
END_TEST

START_TEST(an_absent_file_shows_at_its_first_read)
{
	static const struct s3_service_answer absent[] = {{.status = 404}, {.status = 200}, {0}};
	char into[4];
	uint64_t size;
	const struct iovec part = {.iov_base = into, .iov_len = 4};
	struct backend_file *file;
	s3_service_answer_with(service, absent);
	ck_assert_int_eq(backend->ops->open(backend, NAME, &file, &err), 0);
	ck_assert_int_eq(backend->ops->read(file, &part, 1, 0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	s3_service_answer_with(service, absent);
	ck_assert_int_eq(backend->ops->size(file, &size, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	backend->ops->close(file);
}
END_TEST

START_TEST(indexes_are_kept_here_too)
{
	struct buffer out;
	buffer_init(&out, 100);
	ck_assert_int_eq(
		backend->ops->put_derived(backend, "01.index", span_text("index"), &err), 0);
	reopen();
	ck_assert_int_eq(backend->ops->get(backend, "01.index", &out, &err), 0);
	ck_assert(span_equal_text(buffer_span(&out), "index"));
	ck_assert_str_eq(s3_service_trace(service), "PUT /box/pre/packs/01/01.index\n");
	static const struct s3_service_answer other[] = {{.status = 200, .body = "other"}, {0}};
	s3_service_answer_with(service, other);
	for (int i = 0; i < 2; i++) {
		buffer_reset(&out);
		ck_assert_int_eq(backend->ops->get(backend, "02.index", &out, &err), 0);
		ck_assert(span_equal_text(buffer_span(&out), "other"));
	}
	ck_assert_uint_eq(s3_service_count(service), 1);
	buffer_release(&out);
}
END_TEST

static void *get_index(void *argument)
{
	struct buffer out;
	struct error why;
	(void)argument;
	for (int i = 0; i < 30; i++) {
		buffer_init(&out, 100);
		ck_assert_msg(
			backend->ops->get(backend, "01.index", &out, &why) == 0, "%s", why.text);
		ck_assert(span_equal_text(buffer_span(&out), "index"));
		buffer_release(&out);
		if (i % 10 == 0)
			ck_assert_int_eq(backend->ops->put_derived(
						 backend, "01.index", span_text("index"), &why),
				0);
	}
	return NULL;
}

START_TEST(threads_may_put_and_get_one_index)
{
	static const struct s3_service_answer script[] = {{.status = 200, .body = "index"}, {0}};
	pthread_t threads[6];
	s3_service_answer_with(service, script);
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, get_index, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

static int take(void *taker, const char *name, uint64_t size, struct error *why)
{
	(void)why;
	buffer_format(taker, "%s %u\n", name, (unsigned)size);
	return 0;
}

START_TEST(a_listing_has_what_belongs_to_the_store)
{
#define OBJECT(key)                     \
	"<Contents><Key>pre/packs/" key \
	"</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><Size>7</Size></Contents>"
	static const struct s3_service_answer script[] = {
		{.status = 200,
			.body = "<ListBucketResult><IsTruncated>false</IsTruncated>" OBJECT(
				"01/0123.pack") OBJECT("other") OBJECT("02/0123.pack")
				OBJECT("01/x/0123.pack") "</ListBucketResult>"},
		{0}};
	struct buffer out;
	buffer_init(&out, 1000);
	s3_service_answer_with(service, script);
	ck_assert_msg(backend->ops->list(backend, take, &out, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&out), "0123.pack 7\n");
	buffer_release(&out);
}
END_TEST

Suite *test_far_backend_suite(void);
Suite *test_far_backend_suite(void)
{
	Suite *const suite = suite_create("far_backend");
	TCase *const tests = tcase_create("far_backend");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_small_file_is_one_request);
	tcase_add_test(tests, a_large_file_goes_up_in_parts_while_it_grows);
	tcase_add_test(tests, a_staged_file_asks_nobody_until_it_is_synced);
	tcase_add_test(tests, bytes_that_changed_are_sent_again);
	tcase_add_test(tests, a_write_in_doubt_is_decided_by_the_size);
	tcase_add_test(tests, a_sync_that_failed_can_be_tried_again);
	tcase_add_test(tests, what_was_given_up_leaves_nothing);
	tcase_add_test(tests, reads_ask_for_ranges);
	tcase_add_test(tests, wrong_lengths_never_become_bytes);
	tcase_add_test(tests, an_absent_file_shows_at_its_first_read);
	tcase_add_test(tests, indexes_are_kept_here_too);
	tcase_add_test(tests, threads_may_put_and_get_one_index);
	tcase_add_test(tests, a_listing_has_what_belongs_to_the_store);
	suite_add_tcase(suite, tests);
	return suite;
}
