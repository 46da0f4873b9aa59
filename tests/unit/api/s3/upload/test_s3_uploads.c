#include "tests/unit/api/face_fixture.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/s3/upload/complete_list.h"

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct face_fixture fixture;

static void set_up(void)
{
	face_fixture_open(&fixture);
}

static void tear_down(void)
{
	face_fixture_close(&fixture);
}

/* The text between <NAME> and </NAME> in a reply; "" when there is no such element. */
static void take_element(const struct fake_exchange *fake, const char *name, char out[64])
{
	char open[64];
	snprintf(open, sizeof(open), "<%s>", name);
	const char *const found = strstr(buffer_text(&fake->body), open);
	snprintf(out, 64, "%.*s", found == NULL ? 0 : (int)strcspn(found + strlen(open), "<"),
		found == NULL ? "" : found + strlen(open));
}

static const char *begin(const char *const *headers)
{
	static char id[64];
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_POST, "/bkt/k?uploads", headers, NULL);
	take_element(fake, "UploadId", id);
	ck_assert_uint_eq(strlen(id), 32);
	fake_exchange_free(fake);
	return id;
}

static const char *at(const char *path, const char *id)
{
	static char target[256];
	snprintf(target, sizeof(target), "%s%s", path, id);
	return target;
}

static const char *list_of(const char *etag)
{
	static char body[512];
	snprintf(body, sizeof(body),
		"<CompleteMultipartUpload><Part><ETag>%s</ETag><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
		etag);
	return body;
}

static const char hello_md5[] = "5d41402abc4b2a76b9719d911017c592";

START_TEST(an_upload_from_beginning_to_end)
{
	const char *const id =
		begin(HEADERS("x-amz-meta-step", "9", "x-amz-storage-class", "GLACIER_IR"));
	struct fake_exchange *fake = face_fixture_ask(
		&fixture, 200, METHOD_PUT, at("/bkt/k?partNumber=1&uploadId=", id), NULL, "hello");
	face_fixture_assert_header(fake, "ETag", "\"5d41402abc4b2a76b9719d911017c592\"");
	ck_assert_ptr_null(fake_exchange_reply_header(fake, "x-amz-checksum-crc64nvme"));
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?uploads", NULL, NULL, id);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, at("/bkt/k?uploadId=", id), NULL, NULL,
		"<StorageClass>GLACIER_IR</StorageClass>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
	for (int i = 0; i < 2; i++)
		face_fixture_expect_text(&fixture, 200, METHOD_POST, at("/bkt/k?uploadId=", id),
			NULL, list_of(hello_md5),
			"<ETag>&quot;62109206880d38a4010a98e11243924a-1&quot;</ETag>");
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_assert_body(fake, "hello");
	face_fixture_assert_header(fake, "x-amz-meta-step", "9");
	face_fixture_assert_header(fake, "ETag", "\"62109206880d38a4010a98e11243924a-1\"");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt?uploads", NULL, NULL);
	face_fixture_assert_lacks(fake, "<Upload>");
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 404, METHOD_DELETE, at("/bkt/k?uploadId=", id), NULL,
		NULL, "<Code>NoSuchUpload</Code>");
}
END_TEST

/* Damages one byte of the first record in the file of the only pack. */
static void flip_stored_byte(void)
{
	char command[1200];
	char path[1024] = "";
	snprintf(command, sizeof(command), "find %s/packs -name '*.pack'", fixture.folder);
	FILE *const found = popen(command, "r");
	ck_assert(found != NULL && fscanf(found, "%1023s", path) == 1 && pclose(found) == 0);
	FILE *const file = fopen(path, "r+b");
	ck_assert(file != NULL && fseek(file, 3000, SEEK_SET) == 0);
	const int byte = fgetc(file);
	ck_assert(
		byte != EOF && fseek(file, 3000, SEEK_SET) == 0 && fputc(byte ^ 0x10, file) != EOF);
	ck_assert_int_eq(fclose(file), 0);
}

/* Whether a GET delivers all bytes. */
static bool reads(const char *target)
{
	struct fake_exchange *const fake =
		face_fixture_ask_any(&fixture, METHOD_GET, target, NULL, NULL);
	const bool result = fake->exchange.reply.status == 200 && !fake->body_failed;
	fake_exchange_free(fake);
	return result;
}

static void put_noise(const char *target)
{
	enum { LENGTH = 600 * 1000 }; /* in a pack of its own */
	static char body[LENGTH + 1];
	uint32_t state = 1;
	for (size_t i = 0; i < LENGTH; i++) {
		state = state * 1664525 + 1013904223;
		body[i] = (char)('!' + (state >> 24) % 90);
	}
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, NULL, body);
}

static int copy_part(const char *target, const char *const *headers)
{
	struct fake_exchange *const fake =
		face_fixture_ask_any(&fixture, METHOD_PUT, target, headers, NULL);
	const int status = fake->exchange.reply.status;
	fake_exchange_free(fake);
	return status;
}

/* A copy of the whole object reads none of its bytes; a copy of a range reads some. */
START_TEST(damaged_content_is_not_copied_into_a_part)
{
	const char *const *const source = HEADERS("x-amz-copy-source", "/bkt/source");
	const char *const *const range = HEADERS(
		"x-amz-copy-source", "/bkt/source", "x-amz-copy-source-range", "bytes=100-5000");
	const char *const id = begin(NULL);
	put_noise("/bkt/source");
	flip_stored_byte();
	ck_assert(!reads("/bkt/source")); /* the damage is seen */
	const char *const target = at("/bkt/k?partNumber=1&uploadId=", id);
	face_fixture_expect_text(
		&fixture, 409, METHOD_PUT, target, source, NULL, "<Code>ContentDamaged</Code>");
	face_fixture_expect_text(
		&fixture, 409, METHOD_PUT, target, range, NULL, "&apos;source&apos; are damaged");
	put_noise("/bkt/again"); /* uploading the same bytes mends the stored ones */
	for (int i = 0; i < 2000 && copy_part(target, source) == 409; i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_PUT, target, source, NULL, "<CopyPartResult");
	ck_assert(reads("/bkt/source"));
}
END_TEST

/* A request that names an upload is never taken for one on the object. */
START_TEST(requests_on_unknown_uploads_leave_the_object_alone)
{
	static const enum method methods[] = {METHOD_GET, METHOD_POST, METHOD_DELETE};
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k", NULL, "kept");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		face_fixture_expect_text(&fixture, 404, methods[i], "/bkt/k?uploadId=x", NULL,
			methods[i] == METHOD_POST ? list_of("x") : NULL,
			"<Code>NoSuchUpload</Code>");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/bkt/k?partNumber=1&uploadId=x", NULL,
		"new", "<UploadId>x</UploadId>");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT,
		"/bkt/k?partNumber=1&uploadId=00000000000000000000000000000000", NULL, "new",
		"<Code>NoSuchUpload</Code>");
	face_fixture_expect(&fixture, 405, METHOD_PUT, "/bkt/k?uploadId=x", NULL, "new");
	face_fixture_expect(&fixture, 405, METHOD_PUT, "/bkt/k?partNumber=1", NULL, "new");
	face_fixture_expect(&fixture, 501, METHOD_PUT, "/bkt/k?uploads", NULL, "new");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/none/k?partNumber=1&uploadId=x", NULL,
		"new", "<Code>NoSuchBucket</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, "kept");
}
END_TEST

START_TEST(others_may_not)
{
	const char *const id = begin(NULL);
	const struct grant grant = {.bucket = span_text("bkt"),
		.prefix = span_text("other/"),
		.permissions = PERMISSION_WRITE | PERMISSION_LIST};
	fixture.token = face_fixture_key(&fixture, "team", &grant);
	face_fixture_expect(&fixture, 403, METHOD_POST, "/bkt/k?uploads", NULL, NULL);
	face_fixture_expect(
		&fixture, 403, METHOD_PUT, at("/bkt/k?partNumber=1&uploadId=", id), NULL, "x");
	face_fixture_expect(
		&fixture, 403, METHOD_POST, at("/bkt/k?uploadId=", id), NULL, list_of("x"));
	face_fixture_expect(&fixture, 403, METHOD_DELETE, at("/bkt/k?uploadId=", id), NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, at("/bkt/k?uploadId=", id), NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt?uploads", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt?uploads&prefix=other/", NULL, NULL);
	/* The id is unknown under another key. */
	face_fixture_expect(&fixture, 404, METHOD_PUT,
		at("/bkt/other/k?partNumber=1&uploadId=", id), NULL, "x");
	fixture.token = NULL;
	face_fixture_expect(&fixture, 403, METHOD_POST, "/bkt/k?uploads", NULL, NULL);
}
END_TEST

static const struct {
	const char *xml;
	size_t count;     /* 0: an error */
	const char *etag; /* of the last part */
	uint32_t number;  /* of the last part; of an error its kind, where 0 is malformed_xml */
} lists[] = {
	{"<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><ETag>\"ab\"</ETag><PartNumber>7</PartNumber></Part>"
	 "</CompleteMultipartUpload>",
		1, "ab", 7},
	{"<CompleteMultipartUpload>\n <Part>\n <PartNumber> 1 </PartNumber> <ETag> &quot;ab&quot; </ETag></Part><Part><PartNumber>2</PartNumber>"
	 "<ETag>cd</ETag><Unknown>x</Unknown></Part></CompleteMultipartUpload>",
		2, "cd", 2},
	{"<CompleteMultipartUpload><Unknown><ETag>x</ETag></Unknown><Part><PartNumber>3</PartNumber><ETag></ETag></Part></CompleteMultipartUpload>",
		1, "", 3},
	{"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>01234567890123456789012345678901234567890123456789012345678901234567890123456789"
	 "</ETag></Part></CompleteMultipartUpload>",
		1, "", 1},
	{"<CompleteMultipartUpload></CompleteMultipartUpload>", 0, NULL, 0},
	{"<Other><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></Other>", 0, NULL, 0},
	{"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
		0, NULL, 0},
	{"<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>", 0, NULL,
		0},
	{"<CompleteMultipartUpload><Part><ETag>x</ETag><PartNumber>one</PartNumber></Part></CompleteMultipartUpload>",
		0, NULL, 0},
	{"<CompleteMultipartUpload><Part><ETag>x</ETag><PartNumber>-1</PartNumber></Part></CompleteMultipartUpload>",
		0, NULL, ERROR_INVALID},
	{"<CompleteMultipartUpload><Part><ETag>x</ETag><PartNumber>99999999999</PartNumber></Part></CompleteMultipartUpload>",
		0, NULL, ERROR_INVALID},
	{"<CompleteMultipartUpload><Part><ETag>x</ETag><PartNumber>0</PartNumber></Part></CompleteMultipartUpload>",
		0, NULL, ERROR_INVALID},
	{"<CompleteMultipartUpload><Part>", 0, NULL, 0},
	{"", 0, NULL, 0},
};

START_TEST(lists_are_parsed)
{
	struct upload_listed_part *parts = NULL;
	size_t count = 0;
	struct error err = {0};
	const int result =
		complete_list_parse(span_text(lists[_i].xml), fixture.arena, &parts, &count, &err);
	ck_assert_int_eq(result, lists[_i].count > 0 ? 0 : -1);
	if (result != 0) {
		ck_assert_int_eq(err.kind,
			lists[_i].number == 0 ? ERROR_MALFORMED_XML
					      : (enum error_kind)lists[_i].number);
		return;
	}
	ck_assert_uint_eq(count, lists[_i].count);
	ck_assert_str_eq(parts[count - 1].etag, lists[_i].etag);
	ck_assert_uint_eq(parts[count - 1].number, lists[_i].number);
}
END_TEST

START_TEST(lists_have_a_length_and_checksums)
{
	struct upload_listed_part *parts = NULL;
	size_t count = 0;
	struct error err = {0};
	struct buffer xml;
	struct arena *const arena = arena_new(EXCHANGE_ARENA_BYTES);
	buffer_init(&xml, 4 * 1024 * 1024);
	for (unsigned most = UPLOAD_PARTS_MAX; most <= UPLOAD_PARTS_MAX + 1; most++) {
		buffer_reset(&xml);
		buffer_add_text(&xml, "<CompleteMultipartUpload>");
		for (unsigned i = 1; i <= most; i++)
			buffer_format(&xml,
				"<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag><ChecksumCRC32>%s</ChecksumCRC32></Part>",
				i, hello_md5, i % 2 == 0 ? "y/Q5Jg==" : "");
		buffer_add_text(&xml, "</CompleteMultipartUpload>");
		ck_assert_int_eq(
			complete_list_parse(buffer_span(&xml), arena, &parts, &count, &err),
			most == UPLOAD_PARTS_MAX ? 0 : -1);
	}
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
	ck_assert_uint_eq(parts[9999].number, UPLOAD_PARTS_MAX);
	ck_assert_int_eq(parts[9999].checksum.algorithm, CHECKSUM_CRC32);
	ck_assert_uint_eq(parts[9999].checksum.len, 4);
	ck_assert_int_eq(parts[9998].checksum.algorithm, CHECKSUM_NONE);
	buffer_release(&xml);
	arena_free(arena);
}
END_TEST

Suite *test_s3_uploads_suite(void);

Suite *test_s3_uploads_suite(void)
{
	Suite *const suite = suite_create("uploads");
	TCase *const tests = tcase_create("uploads");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, an_upload_from_beginning_to_end);
	tcase_add_test(tests, damaged_content_is_not_copied_into_a_part);
	tcase_add_test(tests, requests_on_unknown_uploads_leave_the_object_alone);
	tcase_add_test(tests, others_may_not);
	tcase_add_loop_test(tests, lists_are_parsed, 0, sizeof(lists) / sizeof(lists[0]));
	tcase_add_test(tests, lists_have_a_length_and_checksums);
	suite_add_tcase(suite, tests);
	return suite;
}
