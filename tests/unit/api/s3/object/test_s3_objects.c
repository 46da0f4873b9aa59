/* PutObject, GetObject, HeadObject and DeleteObject through the router, over a real store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

#define HEADERS(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define TEXT            "The quick brown fox jumps over the lazy dog"
#define TEXT_MD5        "9e107d9d372bb6826bd81d3542a419d6"
#define TEXT_MD5_BASE64 "nhB9nTcrtoJr2B01QqQZ1g=="

static void put_text(const char *target)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, NULL, TEXT);
}

START_TEST(test_put_get_head)
{
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/dir/k", NULL, TEXT);
	face_fixture_assert_header(fake, "ETag", "\"" TEXT_MD5 "\"");
	face_fixture_assert_body(fake, "");
	fake_exchange_free(fake);

	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/dir/k", NULL, NULL);
	face_fixture_assert_body(fake, TEXT);
	face_fixture_assert_header(fake, "ETag", "\"" TEXT_MD5 "\"");
	face_fixture_assert_header(fake, "Accept-Ranges", "bytes");
	face_fixture_assert_header(fake, "Content-Range", NULL);
	ck_assert_ptr_nonnull(fake_exchange_reply_header(fake, "Last-Modified"));
	ck_assert_str_eq(fake->exchange.reply.content_type, "binary/octet-stream");
	fake_exchange_free(fake);

	fake = face_fixture_ask(&fixture, 200, METHOD_HEAD, "/bkt/dir/k", NULL, NULL);
	face_fixture_assert_body(fake, "");
	ck_assert(fake->exchange.reply.length_known);
	ck_assert_uint_eq(fake->exchange.reply.length, strlen(TEXT));
	face_fixture_assert_header(fake, "ETag", "\"" TEXT_MD5 "\"");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_large_body_in_pieces)
{
	enum { SIZE = 5 * 1024 * 1024 + 77 };
	char *const bytes = memory_new(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char)((i * 2654435761u) >> 13);
	struct fake_exchange *const put =
		fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/large");
	fake_exchange_add(put, "Authorization", "Bearer root-token-of-the-tests");
	put->piece_bytes = 100000;
	ck_assert_int_eq(fake_exchange_run(put, span_of(bytes, SIZE)), 200);
	fake_exchange_free(put);

	struct fake_exchange *get =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/large", NULL, NULL);
	ck_assert_uint_eq(get->exchange.reply.length, SIZE);
	ck_assert(span_equal(buffer_span(&get->body), span_of(bytes, SIZE)));
	fake_exchange_free(get);
	get = face_fixture_ask(&fixture, 206, METHOD_GET, "/bkt/large",
		HEADERS("Range", "bytes=1000000-2999999"), NULL);
	ck_assert(span_equal(buffer_span(&get->body), span_of(bytes + 1000000, 2000000)));
	fake_exchange_free(get);
	free(bytes);
}
END_TEST

START_TEST(test_stored_headers_come_back)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("Content-Type", "text/plain", "Cache-Control", "no-cache",
			"Content-Disposition", "attachment; filename=\"x\"", "Content-Encoding",
			"aws-chunked, gzip,aws-chunked", "x-amz-decoded-content-length", "43",
			"Content-Language", "en", "Expires", "never", "X-Amz-Meta-Mtime", "123.5",
			"x-amz-meta-list", "a", "X-Amz-Meta-List", "b", "x-amz-meta-empty", "",
			"x-amz-storage-class", "STANDARD_IA", "x-amz-acl", "private",
			"x-amz-website-redirect-location", "/other"),
		TEXT);
	for (int pass = 0; pass < 2; pass++) {
		struct fake_exchange *const fake = face_fixture_ask(
			&fixture, 200, pass == 0 ? METHOD_GET : METHOD_HEAD, "/bkt/k", NULL, NULL);
		ck_assert_str_eq(fake->exchange.reply.content_type, "text/plain");
		face_fixture_assert_header(fake, "Content-Type", NULL);
		face_fixture_assert_header(fake, "Cache-Control", "no-cache");
		face_fixture_assert_header(
			fake, "Content-Disposition", "attachment; filename=\"x\"");
		face_fixture_assert_header(fake, "Content-Encoding", "gzip");
		face_fixture_assert_header(fake, "Content-Language", "en");
		face_fixture_assert_header(fake, "Expires", "never");
		face_fixture_assert_header(fake, "x-amz-meta-mtime", "123.5");
		face_fixture_assert_header(fake, "x-amz-meta-list", "a, b");
		face_fixture_assert_header(fake, "x-amz-meta-empty", "");
		face_fixture_assert_header(fake, "x-amz-storage-class", "STANDARD_IA");
		face_fixture_assert_header(fake, "x-amz-acl", NULL);
		face_fixture_assert_header(fake, "x-amz-website-redirect-location", "/other");
		face_fixture_assert_header(fake, "x-amz-version-id", NULL);
		face_fixture_assert_header(fake, "x-amz-tagging-count", NULL);
		fake_exchange_free(fake);
	}
}
END_TEST

START_TEST(test_overwrite_replaces_headers)
{
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k", HEADERS("x-amz-meta-a", "1"), "one");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k", HEADERS("x-amz-meta-b", "2"), "two");
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_assert_body(fake, "two");
	face_fixture_assert_header(fake, "x-amz-meta-a", NULL);
	face_fixture_assert_header(fake, "x-amz-meta-b", "2");
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *target;
	const char *same;
} keys[] = {
	{"/bkt/a/", "/bkt/a%2F"},
	{"/bkt//double//slash", "/bkt/%2fdouble%2f%2fslash"},
	{"/bkt/../dots/./x", "/bkt/%2E%2E/dots/%2E/x"},
	{"/bkt/plus+and%20space", "/bkt/plus%2Band%20space"},
	{"/bkt/%C3%BC%3F%23%25", "/bkt/%c3%bc%3f%23%25"},
};

START_TEST(test_key_forms)
{
	put_text(keys[_i].target);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, keys[_i].same, NULL, NULL);
	face_fixture_assert_body(fake, TEXT);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_prefix_of_a_key_is_no_key)
{
	put_text("/bkt/dir/k");
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bkt/dir", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_HEAD, "/bkt/dir/", NULL, NULL);
}
END_TEST

static const struct {
	const char *range;
	int status;
	const char *content_range;
	const char *body;
} ranges[] = {
	{"bytes=0-2", 206, "bytes 0-2/43", "The"},
	{"bytes=40-", 206, "bytes 40-42/43", "dog"},
	{"bytes=-3", 206, "bytes 40-42/43", "dog"},
	{"bytes=0-42", 206, "bytes 0-42/43", TEXT},
	{"bytes=0-999", 206, "bytes 0-42/43", TEXT},
	{"bytes=5-4", 200, NULL, TEXT},
	{"bytes=0-0,1-1", 200, NULL, TEXT},
};

START_TEST(test_range)
{
	put_text("/bkt/k");
	struct fake_exchange *fake = face_fixture_ask(&fixture, ranges[_i].status, METHOD_GET,
		"/bkt/k", HEADERS("Range", ranges[_i].range), NULL);
	face_fixture_assert_body(fake, ranges[_i].body);
	face_fixture_assert_header(fake, "Content-Range", ranges[_i].content_range);
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, ranges[_i].status, METHOD_HEAD, "/bkt/k",
		HEADERS("Range", ranges[_i].range), NULL);
	ck_assert_uint_eq(fake->exchange.reply.length, strlen(ranges[_i].body));
	face_fixture_assert_header(fake, "Content-Range", ranges[_i].content_range);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_unsatisfiable_range)
{
	put_text("/bkt/k");
	struct fake_exchange *fake = face_fixture_ask(
		&fixture, 416, METHOD_GET, "/bkt/k", HEADERS("Range", "bytes=43-"), NULL);
	face_fixture_assert_header(fake, "Content-Range", "bytes */43");
	face_fixture_assert_header(fake, "ETag", NULL);
	face_fixture_assert_holds(fake, "<Code>InvalidRange</Code>");
	face_fixture_assert_holds(fake,
		"<RangeRequested>bytes=43-</RangeRequested><ActualObjectSize>43</ActualObjectSize>");
	fake_exchange_free(fake);

	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/empty", NULL, NULL);
	face_fixture_expect(
		&fixture, 416, METHOD_GET, "/bkt/empty", HEADERS("Range", "bytes=0-9"), NULL);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/empty", NULL, NULL);
	face_fixture_assert_body(fake, "");
	face_fixture_assert_header(fake, "ETag", "\"d41d8cd98f00b204e9800998ecf8427e\"");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_if_range)
{
	put_text("/bkt/k");
	face_fixture_expect(&fixture, 206, METHOD_GET, "/bkt/k",
		HEADERS("Range", "bytes=0-1", "If-Range", "\"" TEXT_MD5 "\""), NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/k",
		HEADERS("Range", "bytes=0-1", "If-Range", "\"other\""), NULL);
}
END_TEST

START_TEST(test_conditional_reads)
{
	put_text("/bkt/k");
	face_fixture_expect(
		&fixture, 200, METHOD_GET, "/bkt/k", HEADERS("If-Match", "\"" TEXT_MD5 "\""), NULL);
	face_fixture_expect_text(&fixture, 412, METHOD_GET, "/bkt/k", HEADERS("If-Match", "\"x\""),
		NULL, "<Condition>If-Match</Condition>");
	/* Conditions are judged before ranges. */
	face_fixture_expect(&fixture, 412, METHOD_GET, "/bkt/k",
		HEADERS("If-Match", "\"x\"", "Range", "bytes=900-"), NULL);
	face_fixture_expect(&fixture, 412, METHOD_HEAD, "/bkt/k",
		HEADERS("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/k",
		HEADERS("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"), NULL);
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 304, METHOD_GET, "/bkt/k",
		HEADERS("If-None-Match", "\"" TEXT_MD5 "\""), NULL);
	face_fixture_assert_body(fake, "");
	face_fixture_assert_header(fake, "ETag", "\"" TEXT_MD5 "\"");
	const char *const modified = fake_exchange_reply_header(fake, "Last-Modified");
	ck_assert_ptr_nonnull(modified);
	face_fixture_expect(
		&fixture, 304, METHOD_GET, "/bkt/k", HEADERS("If-Modified-Since", modified), NULL);
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_conditional_writes)
{
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/bkt/k", HEADERS("If-Match", "\"x\""),
		"0", "<Code>NoSuchKey</Code>");
	face_fixture_expect(&fixture, 404, METHOD_PUT, "/bkt/k", HEADERS("If-Match", "*"), "0");
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k", HEADERS("If-None-Match", "*"), TEXT);
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 412, METHOD_PUT, "/bkt/k", HEADERS("If-None-Match", "*"), "1");
	face_fixture_assert_holds(fake, "<Code>PreconditionFailed</Code>");
	face_fixture_assert_holds(fake, "<Condition>If-None-Match</Condition>");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 412, METHOD_PUT, "/bkt/k", HEADERS("If-Match", "\"x\""), "1");
	face_fixture_expect(&fixture, 412, METHOD_PUT, "/bkt/k",
		HEADERS("If-None-Match", "\"" TEXT_MD5 "\""), "1");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, TEXT);
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k", HEADERS("If-Match", "\"" TEXT_MD5 "\""), "2");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("If-Match", "*", "If-None-Match", "\"x\""), "3");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, "3");
}
END_TEST

/* The condition holds when the body is asked for and no longer holds at the commit. */
START_TEST(test_condition_is_judged_at_the_commit)
{
	struct fake_exchange *const slow =
		fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/k");
	fake_exchange_add(slow, "Authorization", "Bearer root-token-of-the-tests");
	fake_exchange_add(slow, "If-None-Match", "*");
	slow->exchange.has_length = true;
	slow->exchange.length = 4;
	ck_assert_int_eq(router_begin(&slow->exchange), NEXT_BODY);
	put_text("/bkt/k");
	struct error err = {0};
	struct body_sink *const sink = slow->exchange.sink;
	ck_assert_int_eq(sink->write(sink, span_text("late"), &err), SINK_TAKEN);
	ck_assert_int_eq(sink->finish(sink, &err), 0);
	slow->exchange.sink = NULL;
	const struct route resume_only = {.begin = slow->exchange.route->finish,
		.resume = slow->exchange.route->resume,
		.face = &face_s3};
	ck_assert_int_eq(fake_exchange_run_route(slow, &resume_only, span_text("")), 412);
	fake_exchange_free(slow);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, TEXT);
}
END_TEST

START_TEST(test_content_md5)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/good",
		HEADERS("Content-MD5", TEXT_MD5_BASE64), TEXT);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("Content-MD5", TEXT_MD5_BASE64), "other", "<Code>BadDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k", HEADERS("Content-MD5", ""),
		TEXT, "<Code>InvalidDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("Content-MD5", "rubbish"), TEXT, "<Code>InvalidDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("Content-MD5", "AAAA"), TEXT, "<Code>InvalidDigest</Code>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
}
END_TEST

START_TEST(test_cut_upload_leaves_nothing)
{
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/k");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	fake_exchange_cut(fake, span_text("half"), 100000);
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt", NULL, NULL);
}
END_TEST

START_TEST(test_lengths)
{
	struct fake_exchange *fake = fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/k");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	ck_assert_int_eq(router_begin(&fake->exchange), NEXT_REPLY);
	ck_assert_int_eq(fake->exchange.reply.status, 411);
	fake_exchange_free(fake);

	fake = fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/k");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	fake->exchange.has_length = true;
	fake->exchange.length = fixture.context.put_max_bytes + 1;
	ck_assert_int_eq(fake_exchange_run(fake, span_text("")), 400);
	face_fixture_assert_holds(fake, "<Code>EntityTooLarge</Code>");
	face_fixture_assert_holds(fake,
		"<ProposedSize>5368709121</ProposedSize><MaxSizeAllowed>5368709120</MaxSizeAllowed>");
	fake_exchange_free(fake);

	fake = fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/chunked");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	fake->exchange.chunked = true;
	ck_assert_int_eq(fake_exchange_run(fake, span_text(TEXT)), 200);
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/chunked", NULL, NULL, TEXT);

	fake = fake_exchange_new(&fixture.context, METHOD_PUT, "/bkt/short");
	fake_exchange_add(fake, "Authorization", "Bearer root-token-of-the-tests");
	fake->exchange.has_length = true;
	fake->exchange.length = 10;
	ck_assert_int_eq(fake_exchange_run(fake, span_text("123")), 400);
	face_fixture_assert_holds(fake, "<Code>IncompleteBody</Code>");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/short", NULL, NULL);
}
END_TEST

START_TEST(test_key_length)
{
	char target[5 + 1025 + 1] = "/bkt/";
	memset(target + 5, 'k', 1024);
	target[5 + 1024] = '\0';
	put_text(target);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, target, NULL, NULL, TEXT);
	target[5 + 1024] = 'k';
	target[5 + 1025] = '\0';
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, target, NULL, TEXT, "<Code>KeyTooLongError</Code>");
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, "/bkt/%ff", NULL, TEXT, "<Code>InvalidURI</Code>");
	face_fixture_expect_text(
		&fixture, 400, METHOD_PUT, "/bkt/a%00b", NULL, TEXT, "<Code>InvalidURI</Code>");
}
END_TEST

START_TEST(test_metadata_limits)
{
	char value[2048];
	memset(value, 'v', sizeof(value));
	value[2047] = '\0';
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k", HEADERS("x-amz-meta-a", value), TEXT);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-meta-ab", value), TEXT, "<Code>MetadataTooLarge</Code>");

	/* The most headers that fit into 2 KiB of metadata and 8 KiB of headers. */
	enum { MANY = 300 };
	char names[MANY][32];
	const char *headers[2 * MANY + 1] = {NULL};
	for (size_t i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "x-amz-meta-n%zu", i);
		headers[2 * i] = names[i];
		headers[2 * i + 1] = "v";
	}
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/many", headers, TEXT);
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 206, METHOD_GET, "/bkt/many", HEADERS("Range", "bytes=0-0"), NULL);
	for (size_t i = 0; i < MANY; i++)
		face_fixture_assert_header(fake, names[i], "v");
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *name;
	const char *value;
	const char *named;
} refused_headers[] = {
	{"x-amz-write-offset-bytes", "0", "x-amz-write-offset-bytes"},
	{"x-amz-acl", "aws-exec-read", "x-amz-acl"},
	{"x-amz-acl", "log-delivery-write", "x-amz-acl"},
	{"x-amz-grant-read", "id=x", "x-amz-grant-read"},
	{"X-Amz-Grant-Read-ACP", "id=x", "x-amz-grant-read-acp"},
	{"x-amz-server-side-encryption", "AES256", "x-amz-server-side-encryption"},
	{"x-amz-server-side-encryption-customer-algorithm", "AES256",
		"x-amz-server-side-encryption-customer-algorithm"},
	{"x-amz-object-lock-mode", "GOVERNANCE", "x-amz-object-lock-mode"},
	{"x-amz-meta-snowball-auto-extract", "true", "x-amz-meta-snowball-auto-extract"},
};

static const struct {
	const char *name;
	const char *value;
	const char *code;
} bad_headers[] = {
	{"x-amz-storage-class", "COLD", "InvalidStorageClass"},
	{"x-amz-acl", "everybody", "InvalidArgument"},
	{"x-amz-website-redirect-location", "elsewhere", "InvalidRedirectLocation"},
	{"x-amz-tagging", "a=b&a=c", "InvalidArgument"},
	{"x-amz-tagging", "a=%zz", "InvalidArgument"},
	{"x-amz-tagging", "aws:a=b", "InvalidTag"},
	{"x-amz-tagging", "1&2&3&4&5&6&7&8&9&10&11", "BadRequest"},
	{"x-amz-checksum-crc32", "rubbish", "BadDigest"},
	{"x-amz-checksum-nonsense", "AAAA", "InvalidRequest"},
	{"x-amz-sdk-checksum-algorithm", "CRC32", "InvalidRequest"},
	{"x-amz-copy-source", "/bkt/other", "InvalidArgument"},
};

START_TEST(test_bad_header)
{
	char code[64];
	snprintf(code, sizeof(code), "<Code>%s</Code>", bad_headers[_i].code);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS(bad_headers[_i].name, bad_headers[_i].value), TEXT, code);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
}
END_TEST

START_TEST(test_refused_header)
{
	char named[128];
	snprintf(named, sizeof(named), "<Header>%s</Header>", refused_headers[_i].named);
	face_fixture_expect_text(&fixture, 501, METHOD_PUT, "/bkt/k",
		HEADERS(refused_headers[_i].name, refused_headers[_i].value), TEXT, named);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
}
END_TEST

static const char *const markers[] = {"restore", "select", "torrent", "renameObject", "restore="};

START_TEST(test_marker_is_no_plain_request)
{
	static const enum method methods[] = {METHOD_GET, METHOD_PUT, METHOD_POST, METHOD_DELETE};
	char target[128];
	put_text("/bkt/k");
	snprintf(target, sizeof(target), "/bkt/k?%s", markers[_i]);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		face_fixture_expect_text(&fixture, 501, methods[i], target, NULL, "other",
			"<Code>NotImplemented</Code>");
	face_fixture_expect(&fixture, 501, METHOD_HEAD, target, NULL, NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/bkt/k?x-id=GetObject&unknown=1", NULL, NULL, TEXT);
}
END_TEST

START_TEST(test_response_overrides)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("Content-Type", "text/plain", "Cache-Control", "no-cache"), TEXT);
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 200, METHOD_GET,
		"/bkt/k?response-content-type=image%2Fpng"
		"&response-cache-control=private&response-content-disposition=attachment%3B%20filename%3Dx&response-expires=1"
		"&response-content-encoding=br"
		"&response-content-language=de",
		NULL, NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "image/png");
	face_fixture_assert_header(fake, "Cache-Control", "private");
	face_fixture_assert_header(fake, "Content-Disposition", "attachment; filename=x");
	face_fixture_assert_header(fake, "Expires", "1");
	face_fixture_assert_header(fake, "Content-Encoding", "br");
	face_fixture_assert_header(fake, "Content-Language", "de");
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_GET,
		"/bkt/k?response-content-type=a%0d%0aSet-Cookie:x", NULL, NULL,
		"<ArgumentName>response-content-type</ArgumentName>");
}
END_TEST

START_TEST(test_delete)
{
	put_text("/bkt/k");
	face_fixture_expect(
		&fixture, 412, METHOD_DELETE, "/bkt/k", HEADERS("If-Match", "\"x\""), NULL);
	face_fixture_expect(
		&fixture, 412, METHOD_DELETE, "/bkt/k", HEADERS("x-amz-if-match-size", "42"), NULL);
	face_fixture_expect(&fixture, 400, METHOD_DELETE, "/bkt/k",
		HEADERS("x-amz-if-match-size", "many"), NULL);
	face_fixture_expect(&fixture, 412, METHOD_DELETE, "/bkt/k",
		HEADERS("x-amz-if-match-last-modified-time", "Sun, 06 Nov 1994 08:49:37 GMT"),
		NULL);
	face_fixture_expect(&fixture, 400, METHOD_DELETE, "/bkt/k?versionId=rubbish", NULL, NULL);
	face_fixture_expect(
		&fixture, 501, METHOD_DELETE, "/bkt/k", HEADERS("x-amz-mfa", "1 2"), NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 204, METHOD_DELETE, "/bkt/k",
		HEADERS("If-Match", "\"" TEXT_MD5 "\"", "x-amz-if-match-size", "43",
			"x-amz-bypass-governance-retention", "true"),
		NULL);
	face_fixture_assert_body(fake, "");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/k", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/k", HEADERS("If-Match", "*"), NULL);
	face_fixture_expect_text(&fixture, 404, METHOD_DELETE, "/nope/k", NULL, NULL,
		"<BucketName>nope</BucketName>");
}
END_TEST

START_TEST(test_errors_name_their_object)
{
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 404, METHOD_GET, "/bkt/a%26b", NULL, NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/xml");
	face_fixture_assert_holds(fake,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>");
	face_fixture_assert_holds(fake,
		"<Key>a&amp;b</Key><Resource>/bkt/a%26b</Resource><RequestId>0123456789abcdef0123456789abcdef</RequestId>");
	fake_exchange_free(fake);
	face_fixture_expect_text(
		&fixture, 404, METHOD_GET, "/nope/k", NULL, NULL, "<Code>NoSuchBucket</Code>");
	face_fixture_expect_text(
		&fixture, 404, METHOD_PUT, "/nope/k", NULL, TEXT, "<BucketName>nope</BucketName>");
	fake = face_fixture_ask(&fixture, 405, METHOD_OPTIONS, "/", NULL, NULL);
	face_fixture_assert_holds(fake, "<Code>MethodNotAllowed</Code>");
	face_fixture_assert_holds(fake, "<Method>OPTIONS</Method>");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_who_may)
{
	const struct grant read_only = {span_text("bkt"), span_text("pub/"), PERMISSION_READ};
	const char *const reader = face_fixture_key(&fixture, "other", &read_only);
	const char *const stranger = face_fixture_key(&fixture, "stranger", NULL);
	put_text("/bkt/pub/k");
	put_text("/bkt/secret");
	fixture.token = NULL;
	face_fixture_expect_text(
		&fixture, 403, METHOD_GET, "/bkt/pub/k", NULL, NULL, "<Code>AccessDenied</Code>");
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/pub/k", NULL, TEXT);
	fixture.token = "nonsense";
	face_fixture_expect_text(&fixture, 403, METHOD_GET, "/bkt/pub/k", NULL, NULL,
		"<Code>InvalidAccessKeyId</Code>");
	fixture.token = stranger;
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt/pub/k", NULL, NULL);
	fixture.token = reader;
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/pub/k", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt/secret", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/pub/k", NULL, TEXT);
	face_fixture_expect(&fixture, 403, METHOD_DELETE, "/bkt/pub/k", NULL, NULL);
}
END_TEST

START_TEST(test_expected_owner)
{
	put_text("/bkt/k");
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/k",
		HEADERS("x-amz-expected-bucket-owner", "main"), NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt/k",
		HEADERS("x-amz-expected-bucket-owner", "other"), NULL);
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-expected-bucket-owner", "other"), "x");
	face_fixture_expect(&fixture, 403, METHOD_DELETE, "/bkt/k",
		HEADERS("x-amz-expected-bucket-owner", "other"), NULL);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-storage-class", "COLD"), "x", "<Code>InvalidStorageClass</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, TEXT);
}
END_TEST

Suite *test_s3_objects_suite(void);
Suite *test_s3_objects_suite(void)
{
	Suite *const suite = suite_create("s3_objects");
	TCase *const objects = tcase_create("objects");
	tcase_add_checked_fixture(objects, setup, teardown);
	tcase_set_timeout(objects, 60);
	tcase_add_test(objects, test_put_get_head);
	tcase_add_test(objects, test_large_body_in_pieces);
	tcase_add_test(objects, test_stored_headers_come_back);
	tcase_add_test(objects, test_overwrite_replaces_headers);
	tcase_add_loop_test(objects, test_key_forms, 0, sizeof(keys) / sizeof(keys[0]));
	tcase_add_test(objects, test_prefix_of_a_key_is_no_key);
	tcase_add_loop_test(objects, test_range, 0, sizeof(ranges) / sizeof(ranges[0]));
	tcase_add_test(objects, test_unsatisfiable_range);
	tcase_add_test(objects, test_if_range);
	tcase_add_test(objects, test_conditional_reads);
	tcase_add_test(objects, test_conditional_writes);
	tcase_add_test(objects, test_condition_is_judged_at_the_commit);
	tcase_add_test(objects, test_content_md5);
	tcase_add_test(objects, test_cut_upload_leaves_nothing);
	tcase_add_test(objects, test_lengths);
	tcase_add_test(objects, test_key_length);
	tcase_add_test(objects, test_metadata_limits);
	tcase_add_loop_test(
		objects, test_bad_header, 0, sizeof(bad_headers) / sizeof(bad_headers[0]));
	tcase_add_loop_test(objects, test_refused_header, 0,
		sizeof(refused_headers) / sizeof(refused_headers[0]));
	tcase_add_loop_test(
		objects, test_marker_is_no_plain_request, 0, sizeof(markers) / sizeof(markers[0]));
	tcase_add_test(objects, test_response_overrides);
	tcase_add_test(objects, test_delete);
	tcase_add_test(objects, test_errors_name_their_object);
	tcase_add_test(objects, test_who_may);
	tcase_add_test(objects, test_expected_owner);
	suite_add_tcase(suite, objects);
	return suite;
}
