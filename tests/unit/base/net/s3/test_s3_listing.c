#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/net/s3/s3_listing.h"
#include "tests/unit/s3_service.h"

#define TIME              "<LastModified>2026-11-28T00:00:00.000Z</LastModified>"
#define OBJECT(key, size) "<Contents><Key>" key "</Key>" TIME "<Size>" size "</Size></Contents>"
#define LIST(content)                                                                  \
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" content \
	"</ListBucketResult>"
#define UPLOAD(key, id)                           \
	"<Upload><Key>" key "</Key><UploadId>" id \
	"</UploadId><Initiated>2026-11-28T00:00:00.000Z</Initiated></Upload>"
#define UPLOADS(content) "<ListMultipartUploadsResult>" content "</ListMultipartUploadsResult>"

static const int64_t TIME_MS = 1795824000000;
static const struct s3_service_answer GOOD[] = {{.status = 200}, {0}};
static struct s3_service *service;
static struct s3_client *client;
static struct error err;
static struct buffer taken; /* "NAME BYTES TIME\n" each */
static unsigned refuse_at;  /* the taker fails at this object; 0: never */
static unsigned takes;

static void set_up(void)
{
	err = (struct error){0};
	refuse_at = 0;
	takes = 0;
	buffer_init(&taken, 64 * 1024 * 1024);
	service = s3_service_start(GOOD);
	client = s3_service_client(service, NULL);
}

static void tear_down(void)
{
	s3_client_free(client);
	s3_service_stop(service);
	buffer_release(&taken);
}

static int take_object(void *taker, const struct s3_object *object, struct error *out_err)
{
	ck_assert_ptr_eq(taker, &taken);
	ck_assert(object->changed_ms == TIME_MS);
	buffer_format(&taken, "%s %llu\n", object->name, (unsigned long long)object->bytes);
	return ++takes == refuse_at ? error_set(out_err, ERROR_NO_SPACE, "That is enough.") : 0;
}

static int take_upload(void *taker, const struct s3_unfinished *upload, struct error *out_err)
{
	ck_assert_ptr_eq(taker, &taken);
	ck_assert(upload->initiated_ms == TIME_MS);
	buffer_format(&taken, "%s %s\n", upload->name, upload->id);
	return ++takes == refuse_at ? error_set(out_err, ERROR_NO_SPACE, "That is enough.") : 0;
}

static int list(const char *begin)
{
	return s3_listing_objects(client, begin, take_object, &taken, &err);
}

START_TEST(pages_follow_each_other)
{
	static const struct s3_service_answer pages[] = {
		{.status = 200,
			.body = LIST("<IsTruncated>true</IsTruncated>" OBJECT("in/x/1", "1") OBJECT(
				"in/x/2",
				"22") "<NextContinuationToken>t+/=</NextContinuationToken>")},
		{.status = 503},
		{.status = 200,
			.body = LIST(
				"<IsTruncated>true</IsTruncated><NextContinuationToken>u</NextContinuationToken>")},
		{.status = 200,
			.body = LIST("<IsTruncated>false</IsTruncated>" OBJECT(
				"in/x/3", "18446744073709551615"))},
		{0}};
	s3_service_answer_with(service, pages);
	ck_assert_msg(list("x/") == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&taken), "x/1 1\nx/2 22\nx/3 18446744073709551615\n");
	ck_assert_str_eq(s3_service_trace(service),
		"GET /box?encoding-type=url&list-type=2&max-keys=1000&prefix=in%2Fx%2F\n"
		"GET /box?continuation-token=t%2B%2F%3D&encoding-type=url&list-type=2&max-keys=1000&prefix=in%2Fx%2F\n"
		"GET /box?continuation-token=t%2B%2F%3D&encoding-type=url&list-type=2&max-keys=1000&prefix=in%2Fx%2F\n"
		"GET /box?continuation-token=u&encoding-type=url&list-type=2&max-keys=1000&prefix=in%2Fx%2F\n");
}
END_TEST

START_TEST(keys_are_decoded_where_they_are_encoded)
{
	static const struct s3_service_answer encoded[] = {
		{.status = 200,
			.body = LIST(OBJECT("in%2Fa+b%2Bc%25%01%C3%A9", "5") OBJECT("in%2Fnul%00",
				"6") OBJECT("out%2Fx", "7") "<EncodingType>url</EncodingType>")},
		{0}};
	static const struct s3_service_answer plain[] = {
		{.status = 200, .body = LIST(OBJECT("in/a+b%2B&amp;", "5"))}, {0}};
	s3_service_answer_with(service, encoded);
	ck_assert_msg(list("") == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&taken), "a b+c%\x01\xc3\xa9 5\n");
	buffer_reset(&taken);
	s3_service_answer_with(service, plain);
	ck_assert_int_eq(list(""), 0);
	ck_assert_str_eq(buffer_text(&taken), "a+b%2B& 5\n");
	buffer_reset(&taken);
	ck_assert_int_eq(list("b"), 0); /* the service lists what was not asked for */
	ck_assert_str_eq(buffer_text(&taken), "");
}
END_TEST

START_TEST(a_taker_ends_a_listing)
{
	static const struct s3_service_answer page[] = {
		{.status = 200, .body = LIST(OBJECT("in/1", "1") OBJECT("in/2", "2"))}, {0}};
	s3_service_answer_with(service, page);
	refuse_at = 1;
	ck_assert_int_eq(list(""), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_uint_eq(takes, 1);
}
END_TEST

#define GOOD_FIRST OBJECT("in/1", "1")

static char long_marker[6000];
static const struct s3_service_answer wrong_pages[][2] = {
	{{.status = 200}},
	{{.status = 200, .body = "this is not XML"}},
	{{.status = 200, .body = "<html><body>Welcome to the hotel</body></html>"}},
	{{.status = 200, .body = "<ListBucketResult>" GOOD_FIRST}},
	{{.status = 200, .body = "<!DOCTYPE x [<!ENTITY a \"b\">]>" LIST(GOOD_FIRST)}},
	{{.status = 200, .body = LIST(GOOD_FIRST "<Contents>" TIME "<Size>1</Size></Contents>")}},
	{{.status = 200, .body = LIST(GOOD_FIRST "<Contents><Key>in/2</Key>" TIME "</Contents>")}},
	{{.status = 200,
		.body = LIST(GOOD_FIRST "<Contents><Key>in/2</Key><Size>1</Size></Contents>")}},
	{{.status = 200, .body = LIST(GOOD_FIRST OBJECT("in/2", "-1"))}},
	{{.status = 200, .body = LIST(GOOD_FIRST OBJECT("in/2", "18446744073709551616"))}},
	{{.status = 200,
		.body = LIST(
			"<a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p><q/></p></o></n></m></l></k></j></i></h></g></f></e></d></c></b></a>")}},
	{{.status = 200, .body = long_marker}},
	/* over 16 MiB */
	{{.status = 200, .filler = 17 << 20, .body = LIST(GOOD_FIRST)}},
};

START_TEST(a_page_that_makes_no_sense_is_refused_whole)
{
	snprintf(long_marker, sizeof(long_marker),
		"<ListBucketResult>" GOOD_FIRST
		"<NextContinuationToken>%05000d</NextContinuationToken></ListBucketResult>",
		0);
	s3_service_answer_with(service, wrong_pages[_i]);
	ck_assert_int_eq(list(""), -1);
	ck_assert_msg(err.kind == ERROR_UPSTREAM, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_uint_eq(takes, 0);
	ck_assert_uint_eq(s3_service_count(service), 1);
}
END_TEST

START_TEST(a_listing_in_circles_is_left)
{
	static const struct s3_service_answer circle[] = {
		{.status = 200,
			.body = LIST(
				"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>")},
		{0}};
	static const struct s3_service_answer nowhere[] = {
		{.status = 200,
			.body = LIST(
				"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>")},
		{.status = 200, .body = LIST("<IsTruncated>true</IsTruncated>")}, {0}};
	static const struct s3_service_answer escape[] = {
		{.status = 200,
			.body = LIST(OBJECT("in%2", "1") "<EncodingType>url</EncodingType>")},
		{0}};
	s3_service_answer_with(service, circle);
	ck_assert_int_eq(list(""), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_uint_eq(s3_service_count(service), 2);
	s3_service_answer_with(service, nowhere);
	ck_assert_int_eq(list(""), -1);
	ck_assert_uint_eq(s3_service_count(service), 2);
	s3_service_answer_with(service, escape);
	ck_assert_int_eq(list(""), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
}
END_TEST

/* More than was asked for: within the caps it is taken. */
START_TEST(a_large_page_is_read)
{
	enum { COUNT = 20 * 1000 };
	struct buffer body;
	buffer_init(&body, 8 * 1024 * 1024);
	buffer_add_text(&body, "<ListBucketResult>");
	for (int i = 0; i < COUNT; i++)
		buffer_format(&body, "<Contents><Key>in/%d</Key>" TIME "<Size>%d</Size></Contents>",
			i, i);
	buffer_add_text(&body, "</ListBucketResult>");
	const struct s3_service_answer page[] = {{.status = 200, .body = buffer_text(&body)}, {0}};
	s3_service_answer_with(service, page);
	ck_assert_msg(list("") == 0, "%s", err.text);
	ck_assert_uint_eq(takes, COUNT);
	ck_assert_ptr_nonnull(strstr(buffer_text(&taken), "\n19999 19999\n"));
	buffer_release(&body);
}
END_TEST

START_TEST(uploads_are_listed)
{
	static const struct s3_service_answer pages[] = {
		{.status = 200,
			.body = UPLOADS("<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>" UPLOAD(
				"in%2Fa+b",
				"2~1") "<NextKeyMarker>in%2Fa+b</NextKeyMarker><NextUploadIdMarker>2~1</NextUploadIdMarker>")},
		{.status = 200,
			.body = UPLOADS("<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>" UPLOAD(
				"in%2Fa+b",
				"2~2") "<NextKeyMarker>in%2Fa+b</NextKeyMarker><NextUploadIdMarker>2~2</NextUploadIdMarker>")},
		{.status = 200, .body = UPLOADS(UPLOAD("in/b", "2~3"))}, {0}};
	s3_service_answer_with(service, pages);
	ck_assert_msg(
		s3_listing_uploads(client, "", take_upload, &taken, &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&taken), "a b 2~1\na b 2~2\nb 2~3\n");
	ck_assert_str_eq(s3_service_trace(service),
		"GET /box?max-uploads=1000&prefix=in%2F&uploads=\n"
		"GET /box?key-marker=in%2Fa%20b&max-uploads=1000&prefix=in%2F&upload-id-marker=2~1&uploads=\n"
		"GET /box?key-marker=in%2Fa%20b&max-uploads=1000&prefix=in%2F&upload-id-marker=2~2&uploads=\n");
}
END_TEST

START_TEST(uploads_in_circles_are_left)
{
	static const struct s3_service_answer circle[] = {
		{.status = 200,
			.body = UPLOADS(
				"<IsTruncated>true</IsTruncated><NextKeyMarker>in/a</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>")},
		{0}};
	static const struct s3_service_answer without_id[] = {
		{.status = 200,
			.body = UPLOADS(
				"<Upload><Key>in/a</Key><Initiated>2026-11-28T00:00:00.000Z</Initiated></Upload>")},
		{0}};
	s3_service_answer_with(service, circle);
	ck_assert_int_eq(s3_listing_uploads(client, "", take_upload, &taken, &err), -1);
	ck_assert_uint_eq(s3_service_count(service), 2);
	s3_service_answer_with(service, without_id);
	ck_assert_int_eq(s3_listing_uploads(client, "", take_upload, &taken, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_uint_eq(takes, 0);
}
END_TEST

Suite *test_s3_listing_suite(void);

Suite *test_s3_listing_suite(void)
{
	Suite *suite = suite_create("s3_listing");
	TCase *cases = tcase_create("one listing");
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, pages_follow_each_other);
	tcase_add_test(cases, keys_are_decoded_where_they_are_encoded);
	tcase_add_test(cases, a_taker_ends_a_listing);
	tcase_add_loop_test(cases, a_page_that_makes_no_sense_is_refused_whole, 0,
		(int)(sizeof(wrong_pages) / sizeof(wrong_pages[0])));
	tcase_add_test(cases, a_listing_in_circles_is_left);
	tcase_add_test(cases, a_large_page_is_read);
	tcase_add_test(cases, uploads_are_listed);
	tcase_add_test(cases, uploads_in_circles_are_left);
	suite_add_tcase(suite, cases);
	return suite;
}
