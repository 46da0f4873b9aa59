#include "tests/unit/unit.h"

#include <string.h>

#include "base/net/s3/s3_upload.h"
#include "tests/unit/s3_service.h"

static const struct s3_service_answer GOOD[] = {{.status = 200}, {0}};
static const char GONE[] =
	"<Error><Code>NoSuchUpload</Code><Message>It is not there.</Message></Error>";
static const char DONE[] =
	"<?xml version=\"1.0\"?>\n  <CompleteMultipartUploadResult xmlns=\"x\"><Key>k</Key></CompleteMultipartUploadResult>";
static const struct s3_upload UPLOAD = {.name = "a b", .id = "2~id/+"};
static const struct s3_etag ETAGS[] = {{"e1"}, {"e2-x"}};
static struct s3_service *service;
static struct s3_client *client;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	service = s3_service_start(GOOD);
	client = s3_service_client(service, NULL);
}

static void tear_down(void)
{
	s3_client_free(client);
	s3_service_stop(service);
}

START_TEST(an_upload_begins_with_an_id)
{
	static const struct s3_service_answer good[] = {
		{.status = 200,
			.body = "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>box</Bucket><UploadId>2~a&amp;b</UploadId></InitiateMultipartUploadResult>"},
		{0}};
	char id[S3_UPLOAD_ID_BYTES];
	s3_service_answer_with(service, good);
	ck_assert_int_eq(s3_upload_begin(client, "a b", id, &err), 0);
	ck_assert_str_eq(id, "2~a&b");
	ck_assert_str_eq(s3_service_trace(service), "POST /box/in/a%20b?uploads=\n");
}
END_TEST

static char long_id[2000];
static const struct s3_service_answer wrong_begins[][2] = {
	{{.status = 200}},
	{{.status = 200, .body = "<InitiateMultipartUploadResult/>"}},
	{{.status = 200,
		.body = "<InitiateMultipartUploadResult><UploadId></UploadId></InitiateMultipartUploadResult>"}},
	{{.status = 200, .body = "<Other><UploadId>x</UploadId></Other>"}},
	{{.status = 200, .body = "<InitiateMultipartUploadResult><UploadId>x</UploadId>"}},
	{{.status = 200, .body = long_id}},
};

START_TEST(an_upload_without_an_id_is_refused)
{
	char id[S3_UPLOAD_ID_BYTES];
	memset(long_id, 'i', sizeof(long_id) - 1);
	memcpy(long_id, "<InitiateMultipartUploadResult><UploadId>", 41);
	memcpy(long_id + sizeof(long_id) - 1 - 43, "</UploadId></InitiateMultipartUploadResult>",
		43);
	s3_service_answer_with(service, wrong_begins[_i]);
	ck_assert_int_eq(s3_upload_begin(client, "a", id, &err), -1);
	ck_assert_msg(err.kind == ERROR_UPSTREAM, "%s", err.text);
}
END_TEST

static int put_part(struct s3_etag *out)
{
	return s3_upload_part(client, &UPLOAD, 7, span_text("bytes"), out, &err);
}

START_TEST(a_part_gives_its_etag)
{
	static const struct s3_service_answer good[] = {
		{.status = 503}, {.status = 200, .headers = "ETag: \"abc-1\"\r\n"}, {0}};
	static const struct s3_service_answer gone[] = {{.status = 404, .body = GONE}, {0}};
	struct s3_etag etag;
	s3_service_answer_with(service, good);
	ck_assert_int_eq(put_part(&etag), 0);
	ck_assert_str_eq(etag.text, "abc-1");
	ck_assert_str_eq(s3_service_trace(service),
		"PUT /box/in/a%20b?partNumber=7&uploadId=2~id%2F%2B\n"
		"PUT /box/in/a%20b?partNumber=7&uploadId=2~id%2F%2B\n");
	ck_assert(span_equal_text(s3_service_body(service), "bytes"));
	s3_service_answer_with(service, gone);
	ck_assert_int_eq(put_part(&etag), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_part_without_an_etag_is_refused)
{
	static const struct s3_service_answer wrong[][2] = {{{.status = 200}},
		{{.status = 200, .headers = "ETag: \"<Part>\"\r\n"}},
		{{.status = 200, .headers = "ETag: \"\"\r\n"}}};
	struct s3_etag etag;
	s3_service_answer_with(service, wrong[_i]);
	ck_assert_int_eq(put_part(&etag), -1);
	ck_assert_msg(err.kind == ERROR_UPSTREAM, "%s", err.text);
}
END_TEST

static int complete(void)
{
	return s3_upload_complete(client, &UPLOAD, ETAGS, 2, 1234, &err);
}

START_TEST(a_completion_names_the_parts)
{
	static const struct s3_service_answer good[] = {{.status = 200, .body = DONE}, {0}};
	s3_service_answer_with(service, good);
	ck_assert_msg(complete() == 0, "%s", err.text);
	ck_assert_str_eq(s3_service_trace(service), "POST /box/in/a%20b?uploadId=2~id%2F%2B\n");
	ck_assert(span_equal_text(s3_service_body(service),
		"<CompleteMultipartUpload>"
		"<Part><PartNumber>1</PartNumber><ETag>&quot;e1&quot;</ETag></Part>"
		"<Part><PartNumber>2</PartNumber><ETag>&quot;e2-x&quot;</ETag></Part>"
		"</CompleteMultipartUpload>"));
}
END_TEST

static const struct {
	struct s3_service_answer answers[S3_SERVICE_ANSWERS_MAX];
	enum error_kind kind;
	unsigned requests;
} completions[] = {
	/* an error that hides in a 200 is tried again */
	{{{.status = 200, .body = "<Error><Code>InternalError</Code></Error>"},
		 {.status = 200, .body = DONE}},
		ERROR_NONE, 2},
	{{{.status = 200, .body = "<Error><Code>InvalidPart</Code></Error>"}, {.status = 404},
		 {.status = 200}},
		ERROR_UPSTREAM, 4},
	/* the answer was lost: the size decides */
	{{{.status = 500}, {.status = 404, .body = GONE}, {.status = 200, .length = 1234}},
		ERROR_NONE, 3},
	{{{.status = 500}, {.status = 500}, {.status = 500}, {.status = 200, .length = 1234}},
		ERROR_NONE, 4},
	{{{.status = 404, .body = GONE}, {.status = 200, .length = 1233}}, ERROR_CORRUPT, 2},
	{{{.status = 404, .body = GONE}, {.status = 404}, {.status = 200}}, ERROR_NOT_FOUND, 3},
	{{{.status = 404, .body = GONE}, {.status = 404}}, ERROR_UPSTREAM, 3},
	{{{.status = 404, .body = GONE}, {.status = 503}}, ERROR_BUSY, 4},
	/* an answer that says nothing: the same */
	{{{.status = 200}, {.status = 200, .length = 1234}}, ERROR_NONE, 2},
	{{{.status = 200, .body = "<Comple"}, {.status = 200, .length = 1234}}, ERROR_NONE, 2},
	/* the object is not there, nor of the size: the upload may be */
	{{{.status = 200, .body = "<Other/>"}, {.status = 200, .length = 9},
		 {.status = 404, .body = GONE}},
		ERROR_CORRUPT, 3},
	{{{.status = 500}, {.status = 500}, {.status = 500}, {.status = 200, .length = 9},
		 {.status = 200, .body = "<ListPartsResult/>"}},
		ERROR_BUSY, 5},
	{{{.status = 500}, {.status = 500}, {.status = 500}, {.status = 404}, {.status = 200},
		 {.status = 404, .body = GONE}},
		ERROR_NOT_FOUND, 6},
	{{{.status = 500}}, ERROR_BUSY, 6},
	{{{.status = 403}}, ERROR_DENIED, 1},
	{{{.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"}}, ERROR_UPSTREAM, 1},
};

START_TEST(a_completion_is_certain)
{
	s3_service_answer_with(service, completions[_i].answers);
	const int result = complete();
	ck_assert_msg(err.kind == completions[_i].kind, "%s", err.text);
	ck_assert_int_eq(result, err.kind == ERROR_NONE ? 0 : -1);
	ck_assert_uint_eq(s3_service_count(service), completions[_i].requests);
}
END_TEST

START_TEST(an_abort_of_nothing_is_fine)
{
	static const struct s3_service_answer gone[] = {{.status = 404, .body = GONE}, {0}};
	static const struct s3_service_answer denied[] = {{.status = 403}, {0}};
	ck_assert_int_eq(s3_upload_abort(client, &UPLOAD, &err), 0);
	ck_assert_str_eq(s3_service_trace(service), "DELETE /box/in/a%20b?uploadId=2~id%2F%2B\n");
	s3_service_answer_with(service, gone);
	ck_assert_int_eq(s3_upload_abort(client, &UPLOAD, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NONE);
	s3_service_answer_with(service, denied);
	ck_assert_int_eq(s3_upload_abort(client, &UPLOAD, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
}
END_TEST

Suite *test_s3_upload_suite(void);

Suite *test_s3_upload_suite(void)
{
	Suite *suite = suite_create("s3_upload");
	TCase *cases = tcase_create("one upload");
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, an_upload_begins_with_an_id);
	tcase_add_loop_test(cases, an_upload_without_an_id_is_refused, 0,
		(int)(sizeof(wrong_begins) / sizeof(wrong_begins[0])));
	tcase_add_test(cases, a_part_gives_its_etag);
	tcase_add_loop_test(cases, a_part_without_an_etag_is_refused, 0, 3);
	tcase_add_test(cases, a_completion_names_the_parts);
	tcase_add_loop_test(cases, a_completion_is_certain, 0,
		(int)(sizeof(completions) / sizeof(completions[0])));
	tcase_add_test(cases, an_abort_of_nothing_is_fine);
	suite_add_tcase(suite, cases);
	return suite;
}
