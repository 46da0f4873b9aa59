/* Copies, lists of deletions, tags, attributes, parts and checksums of objects through the router,
 * over a real store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <string.h>

static struct face_fixture fixture;

static void setup(void)
{
	face_fixture_open(&fixture);
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NAMESPACE    " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
#define TEXT         "123456789"
#define TEXT_ETAG    "25f9e794323b453885f5181f1b624d0b"
#define TEXT_CRC32   "y/Q5Jg=="
#define TEXT_CRC64   "rosUhgp5mIg="

static void put(const char *target, const char *const *headers)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, target, headers, TEXT);
}

START_TEST(test_checksum_of_a_put)
{
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/k", NULL, TEXT);
	face_fixture_assert_header(fake, "x-amz-checksum-crc64nvme", TEXT_CRC64);
	face_fixture_assert_header(fake, "x-amz-checksum-type", "FULL_OBJECT");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-checksum-crc32", TEXT_CRC32), TEXT);
	face_fixture_assert_header(fake, "x-amz-checksum-crc32", TEXT_CRC32);
	face_fixture_assert_header(fake, "x-amz-checksum-crc64nvme", NULL);
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 400, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-checksum-crc32", "AAAAAA=="), TEXT);
	face_fixture_assert_holds(
		fake, "<Code>BadDigest</Code><Message>The CRC32 you specified did not match");
	face_fixture_assert_holds(fake,
		"<ExpectedDigest>AAAAAA==</ExpectedDigest><CalculatedDigest>" TEXT_CRC32
		"</CalculatedDigest>");
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *range;
	const char *mode;
	const char *query;
	int status;
	const char *crc32;
} reads[] = {
	{NULL, NULL, "", 200, NULL},
	{NULL, "ENABLED", "", 200, TEXT_CRC32},
	{"bytes=0-3", "ENABLED", "", 206, NULL},
	{"bytes=0-", "ENABLED", "", 206, NULL},
	{NULL, "ENABLED", "?partNumber=1", 206, TEXT_CRC32},
	{NULL, NULL, "?partNumber=1", 206, NULL},
};

/* Clients check every checksum that they get, so some of the bytes never come with the checksum of
 * all. */
START_TEST(test_checksum_of_a_get)
{
	static const enum method methods[] = {METHOD_GET, METHOD_HEAD};
	char target[64];
	put("/bkt/k", HEADERS("x-amz-checksum-crc32", TEXT_CRC32));
	snprintf(target, sizeof(target), "/bkt/k%s", reads[_i].query);
	for (size_t i = 0; i < 2; i++) {
		const char *headers[5] = {NULL};
		size_t at = 0;
		if (reads[_i].range != NULL) {
			headers[at++] = "Range";
			headers[at++] = reads[_i].range;
		}
		if (reads[_i].mode != NULL) {
			headers[at++] = "x-amz-checksum-mode";
			headers[at++] = reads[_i].mode;
		}
		struct fake_exchange *const fake = face_fixture_ask(
			&fixture, reads[_i].status, methods[i], target, headers, NULL);
		face_fixture_assert_header(fake, "x-amz-checksum-crc32", reads[_i].crc32);
		face_fixture_assert_header(fake, "x-amz-mp-parts-count", NULL);
		fake_exchange_free(fake);
	}
}
END_TEST

START_TEST(test_part_numbers)
{
	put("/bkt/k", NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/empty", NULL, NULL);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 206, METHOD_GET, "/bkt/k?partNumber=1", NULL, NULL);
	face_fixture_assert_body(fake, TEXT);
	face_fixture_assert_header(fake, "Content-Range", "bytes 0-8/9");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/empty?partNumber=1", NULL, NULL);
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?partNumber=2", NULL, NULL,
		"<Code>InvalidPart</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?partNumber=0", NULL, NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?partNumber=10001", NULL, NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?partNumber=1",
		HEADERS("Range", "bytes=0-1"), NULL, "<Code>InvalidRequest</Code>");
	/* Conditions are judged first. */
	face_fixture_expect(&fixture, 412, METHOD_GET, "/bkt/k?partNumber=2",
		HEADERS("If-Match", "\"x\""), NULL);
}
END_TEST

START_TEST(test_version_ids_of_a_plain_bucket)
{
	put("/bkt/k", NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/bkt/k?versionId=null", NULL, NULL, TEXT);
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 404, METHOD_GET,
		"/bkt/k?versionId=00112233445566778899aabbccddeeff", NULL, NULL);
	face_fixture_assert_holds(fake, "<Code>NoSuchVersion</Code>");
	face_fixture_assert_holds(
		fake, "<Key>k</Key><VersionId>00112233445566778899aabbccddeeff</VersionId>");
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?versionId=rubbish", NULL, NULL,
		"<ArgumentName>versionId</ArgumentName>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?versionId=", NULL, NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt?versions", NULL, NULL,
		"<Version><Key>k</Key><VersionId>null</VersionId><IsLatest>true</IsLatest><Owner>");
	face_fixture_expect(&fixture, 204, METHOD_DELETE,
		"/bkt/k?versionId=00112233445566778899aabbccddeeff", NULL, NULL);
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/k?versionId=null", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/k", NULL, NULL);
}
END_TEST

START_TEST(test_list_versions_parameters)
{
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt?versions&version-id-marker=null",
		NULL, NULL, "<ArgumentName>version-id-marker</ArgumentName>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET,
		"/bkt?versions&key-marker=a&version-id-marker=x", NULL, NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt?versions&max-keys=-1", NULL, NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/nope?versions", NULL, NULL,
		"<Code>NoSuchBucket</Code>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET,
		"/bkt?versions&key-marker=%20&prefix=a%26&delimiter=/&encoding-type=url", NULL,
		NULL,
		"<Name>bkt</Name><Prefix>a%26</Prefix><KeyMarker>%20</KeyMarker><VersionIdMarker></VersionIdMarker><MaxKeys>1000</MaxKeys>"
		"<Delimiter>/</Delimiter><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>");
}
END_TEST

START_TEST(test_copy)
{
	put("/bkt/dir/source%25",
		HEADERS("Content-Type", "text/x", "x-amz-meta-a", "1", "x-amz-tagging", "t=1",
			"x-amz-checksum-crc32", TEXT_CRC32));
	struct fake_exchange *fake = face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "/bkt/dir/source%25"), NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "application/xml");
	face_fixture_assert_holds(fake, "<CopyObjectResult" NAMESPACE "><LastModified>");
	face_fixture_assert_holds(fake,
		"<ETag>&quot;" TEXT_ETAG "&quot;</ETag><ChecksumCRC32>" TEXT_CRC32
		"</ChecksumCRC32>"
		"<ChecksumType>FULL_OBJECT</ChecksumType>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/copy", NULL, NULL);
	face_fixture_assert_body(fake, TEXT);
	ck_assert_str_eq(fake->exchange.reply.content_type, "text/x");
	face_fixture_assert_header(fake, "x-amz-meta-a", "1");
	face_fixture_assert_header(fake, "x-amz-tagging-count", "1");
	fake_exchange_free(fake);

	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "bkt/dir/source%25", "x-amz-metadata-directive",
			"REPLACE", "x-amz-tagging-directive", "REPLACE", "x-amz-tagging", "x=1&y=2",
			"x-amz-meta-b", "2", "x-amz-storage-class", "GLACIER_IR"),
		NULL);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/copy", NULL, NULL);
	ck_assert_str_eq(fake->exchange.reply.content_type, "binary/octet-stream");
	face_fixture_assert_header(fake, "x-amz-meta-a", NULL);
	face_fixture_assert_header(fake, "x-amz-meta-b", "2");
	face_fixture_assert_header(fake, "x-amz-tagging-count", "2");
	face_fixture_assert_header(fake, "x-amz-storage-class", "GLACIER_IR");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_copy_computes_a_checksum)
{
	put("/bkt/k", HEADERS("x-amz-checksum-crc32", TEXT_CRC32));
	face_fixture_expect_text(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-copy-source", "bkt/k", "x-amz-checksum-algorithm", "CRC64NVME"),
		NULL, "<ChecksumCRC64NVME>" TEXT_CRC64 "</ChecksumCRC64NVME>");
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k",
		HEADERS("x-amz-checksum-mode", "enabled"), NULL);
	face_fixture_assert_header(fake, "x-amz-checksum-crc64nvme", TEXT_CRC64);
	face_fixture_assert_header(fake, "x-amz-checksum-crc32", NULL);
	fake_exchange_free(fake);
}
END_TEST

/* The redirect comes from the request, never from the source. */
START_TEST(test_copy_and_redirect)
{
	put("/bkt/k", HEADERS("x-amz-website-redirect-location", "/old", "x-amz-meta-a", "1"));
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "bkt/k"), NULL);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/copy", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-website-redirect-location", NULL);
	face_fixture_assert_header(fake, "x-amz-meta-a", "1");
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "bkt/copy", "x-amz-website-redirect-location", "/new"),
		NULL);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/copy", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-website-redirect-location", "/new");
	face_fixture_assert_header(fake, "x-amz-meta-a", "1");
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	int status;
	const char *text;
	const char *headers[8];
} bad_copies[] = {
	{400, "<Code>InvalidArgument</Code>", {"x-amz-copy-source", "bkt", NULL}},
	{400, "<ArgumentName>x-amz-copy-source</ArgumentName>",
		{"x-amz-copy-source", "bkt/%zz", NULL}},
	{404, "<Key>none</Key>", {"x-amz-copy-source", "bkt/none", NULL}},
	{404, "<BucketName>nope</BucketName>", {"x-amz-copy-source", "nope/k", NULL}},
	{404, "<Key>k</Key><VersionId>00112233445566778899aabbccddeeff</VersionId>",
		{"x-amz-copy-source", "bkt/k?versionId=00112233445566778899aabbccddeeff", NULL}},
	{400, "<Code>InvalidArgument</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-metadata-directive", "MOVE", NULL}},
	{400, "<Code>InvalidArgument</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-tagging-directive", "replace", NULL}},
	{412, "<Condition>x-amz-copy-source-If-Match</Condition>",
		{"x-amz-copy-source", "bkt/k", "x-amz-copy-source-if-match", "\"x\"", NULL}},
	{412, "<Code>PreconditionFailed</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-copy-source-if-none-match", TEXT_ETAG, NULL}},
	{412, "<Code>PreconditionFailed</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-copy-source-if-unmodified-since",
			"Sun, 06 Nov 1994 08:49:37 GMT", NULL}},
	{412, "<Code>PreconditionFailed</Code>",
		{"x-amz-copy-source", "bkt/k", "If-None-Match", "*", NULL}},
	{403, "<Code>AccessDenied</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-source-expected-bucket-owner", "other",
			NULL}},
	{400, "<Code>InvalidRequest</Code>", {"x-amz-copy-source", "bkt/taken", NULL}},
	{400, "<Code>InvalidRequest</Code>",
		{"x-amz-copy-source", "bkt/taken", "x-amz-storage-class", "STANDARD", NULL}},
	{400, "<Code>InvalidRequest</Code>",
		{"x-amz-copy-source", "bkt/k", "x-amz-checksum-algorithm", "CRC16", NULL}},
};

START_TEST(test_bad_copy)
{
	put("/bkt/k", NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/taken", NULL, "kept");
	face_fixture_expect_text(&fixture, bad_copies[_i].status, METHOD_PUT, "/bkt/taken",
		bad_copies[_i].headers, NULL, bad_copies[_i].text);
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/taken", NULL, NULL, "kept");
}
END_TEST

START_TEST(test_copy_of_what_did_not_change_since)
{
	static const char name[] = "x-amz-copy-source-if-modified-since";
	put("/bkt/k", NULL);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_HEAD, "/bkt/k", NULL, NULL);
	const char *const modified = fake_exchange_reply_header(fake, "Last-Modified");
	face_fixture_expect_text(&fixture, 412, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "bkt/k", name, modified), NULL,
		"<Code>PreconditionFailed</Code>");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/copy",
		HEADERS("x-amz-copy-source", "bkt/k", name, "Sun, 06 Nov 1994 08:49:37 GMT"), NULL);
	fake_exchange_free(fake);
}
END_TEST

/* A copy of a delete marker is refused. In a versioned bucket the reply names the source's version,
 * also a null version. */
START_TEST(test_copy_of_versions)
{
	static const char versions[] =
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
	const char *const *const from = HEADERS("x-amz-copy-source", "bkt/k");
	char source[128];
	put("/bkt/k", NULL);
	struct fake_exchange *fake =
		face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/before", from, NULL);
	face_fixture_assert_header(fake, "x-amz-copy-source-version-id", NULL);
	fake_exchange_free(fake);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt?versioning", NULL, versions);
	fake = face_fixture_ask(&fixture, 200, METHOD_PUT, "/bkt/copy", from, NULL);
	face_fixture_assert_header(fake, "x-amz-copy-source-version-id", "null");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 204, METHOD_DELETE, "/bkt/k", NULL, NULL);
	snprintf(source, sizeof(source), "bkt/k?versionId=%s",
		fake_exchange_reply_header(fake, "x-amz-version-id"));
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/other",
		HEADERS("x-amz-copy-source", source), NULL, "delete marker");
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/other",
		HEADERS("x-amz-copy-source", "bkt/k?versionId=null"), NULL);
}
END_TEST

START_TEST(test_copy_onto_itself)
{
	put("/bkt/k", NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-copy-source", "bkt/k", "x-amz-metadata-directive", "REPLACE",
			"x-amz-meta-new", "1"),
		NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/k",
		HEADERS("x-amz-copy-source", "bkt/k", "x-amz-storage-class", "GLACIER"), NULL);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-meta-new", "1");
	face_fixture_assert_header(fake, "x-amz-storage-class", "GLACIER");
	face_fixture_assert_body(fake, TEXT);
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k",
		HEADERS("x-amz-copy-source", "bkt/k"), NULL, "<Code>InvalidArgument</Code>");
}
END_TEST

START_TEST(test_copy_needs_to_read_the_source)
{
	const struct grant write_only = {span_text("bkt"), span_text("in/"), PERMISSION_WRITE};
	const char *const writer = face_fixture_key(&fixture, "other", &write_only);
	put("/bkt/secret", NULL);
	fixture.token = writer;
	face_fixture_expect(&fixture, 403, METHOD_PUT, "/bkt/in/k",
		HEADERS("x-amz-copy-source", "bkt/secret"), NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/in/k", NULL, TEXT);
}
END_TEST

#define OBJECT(key) "<Object><Key>" key "</Key></Object>"

START_TEST(test_delete_objects)
{
	put("/bkt/a", NULL);
	put("/bkt/b%2520c", NULL);
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/bkt?delete", NULL,
		"<Delete>" OBJECT("a") OBJECT("none") OBJECT("b%20c") "</Delete>",
		"<DeleteResult" NAMESPACE
		"><Deleted><Key>a</Key></Deleted><Deleted><Key>none</Key></Deleted><Deleted><Key>b%20c</Key></Deleted>"
		"</DeleteResult>");
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt", NULL, NULL,
		"<IsTruncated>false</IsTruncated></ListBucketResult>");
}
END_TEST

START_TEST(test_delete_objects_errors_stand_alone)
{
	put("/bkt/a", NULL);
	put("/bkt/b", NULL);
	put("/bkt/c", NULL);
	face_fixture_expect_text(&fixture, 200, METHOD_POST, "/bkt?delete", NULL,
		"<Delete><Quiet>true</Quiet>" OBJECT(
			"a") "<Object><Key>b</Key><ETag>x</ETag></Object><Object><Key>c</Key><VersionId>rubbish</VersionId></Object></Delete>",
		"<DeleteResult" NAMESPACE "><Error><Key>b</Key><Code>PreconditionFailed</Code>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/a", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/b", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/c", NULL, NULL);
}
END_TEST

START_TEST(test_delete_objects_of_others)
{
	const struct grant grant = {span_text("bkt"), span_text("mine/"), PERMISSION_WRITE};
	const char *const writer = face_fixture_key(&fixture, "other", &grant);
	put("/bkt/mine/k", NULL);
	put("/bkt/k", NULL);
	fixture.token = writer;
	struct fake_exchange *const fake = face_fixture_ask(&fixture, 200, METHOD_POST,
		"/bkt?delete", NULL, "<Delete>" OBJECT("k") OBJECT("mine/k") "</Delete>");
	face_fixture_assert_holds(fake, "<Error><Key>k</Key><Code>AccessDenied</Code>");
	face_fixture_assert_holds(fake, "<Deleted><Key>mine/k</Key></Deleted>");
	fake_exchange_free(fake);
	fixture.token = face_fixture_root_token;
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL);
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/mine/k", NULL, NULL);
}
END_TEST

START_TEST(test_delete_objects_refusals)
{
	const char *const body = "<Delete>" OBJECT("a") "</Delete>";
	put("/bkt/a", NULL);
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/bkt?delete", NULL,
		"<Delete></Delete>", "<Code>MalformedXML</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/bkt?delete",
		HEADERS("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="), body, "<Code>BadDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/bkt?delete",
		HEADERS("Content-MD5", "rubbish"), body, "<Code>InvalidDigest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_POST, "/bkt?delete",
		HEADERS("x-amz-checksum-crc32", "AAAAAA=="), body, "<Code>BadDigest</Code>");
	face_fixture_expect_text(&fixture, 404, METHOD_POST, "/nope?delete", NULL, body,
		"<Code>NoSuchBucket</Code>");
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt/a", NULL, NULL);
}
END_TEST

#define TAGGING(tags)   "<Tagging" NAMESPACE "><TagSet>" tags "</TagSet></Tagging>"
#define TAG(key, value) "<Tag><Key>" key "</Key><Value>" value "</Value></Tag>"

START_TEST(test_object_tagging)
{
	put("/bkt/k", HEADERS("x-amz-tagging", "a=1&b"));
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k?tagging", NULL, NULL,
		TAGGING(TAG("a", "1") TAG("b", "")));
	face_fixture_expect(
		&fixture, 200, METHOD_PUT, "/bkt/k?tagging=", NULL, TAGGING(TAG("c", "/")));
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k?tagging&versionId=null", NULL,
		NULL, TAGGING(TAG("c", "/")));
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_HEAD, "/bkt/k", NULL, NULL);
	face_fixture_assert_header(fake, "x-amz-tagging-count", "1");
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k?tagging", NULL,
		TAGGING(TAG("c", "1") TAG("c", "2")), "<Code>InvalidTag</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_PUT, "/bkt/k?tagging", NULL, "<Tagging>",
		"<Code>MalformedXML</Code>");
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/bkt/k?tagging", NULL, NULL, TAG("c", "/"));
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/k?tagging", NULL, NULL);
	face_fixture_expect_text(
		&fixture, 200, METHOD_GET, "/bkt/k?tagging", NULL, NULL, TAGGING(""));
	face_fixture_expect_text(&fixture, 200, METHOD_GET, "/bkt/k", NULL, NULL, TEXT);
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/bkt/none?tagging", NULL, NULL,
		"<Code>NoSuchKey</Code>");
	face_fixture_expect_text(&fixture, 404, METHOD_PUT, "/bkt/none?tagging", NULL, TAGGING(""),
		"<Code>NoSuchKey</Code>");
}
END_TEST

START_TEST(test_attributes)
{
	put("/bkt/k", HEADERS("x-amz-checksum-crc32", TEXT_CRC32));
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, "/bkt/k?attributes",
			HEADERS("x-amz-object-attributes", "ETag,Checksum, ObjectParts",
				"x-amz-object-attributes", "StorageClass,ObjectSize"),
			NULL);
	face_fixture_assert_holds(fake,
		"<GetObjectAttributesResponse" NAMESPACE "><ETag>" TEXT_ETAG
		"</ETag><Checksum><ChecksumCRC32>" TEXT_CRC32
		"</ChecksumCRC32><ChecksumType>FULL_OBJECT</ChecksumType></Checksum><StorageClass>STANDARD</StorageClass><ObjectSize>9</ObjectSize>"
		"</GetObjectAttributesResponse>");
	ck_assert_ptr_nonnull(fake_exchange_reply_header(fake, "Last-Modified"));
	fake_exchange_free(fake);
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?attributes", NULL, NULL,
		"<Code>InvalidRequest</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?attributes",
		HEADERS("x-amz-object-attributes", "ETag,Colour"), NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect_text(&fixture, 400, METHOD_GET, "/bkt/k?attributes",
		HEADERS("x-amz-object-attributes", "ETag", "x-amz-max-parts", "-1"), NULL,
		"<Code>InvalidArgument</Code>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/bkt/none?attributes",
		HEADERS("x-amz-object-attributes", "ETag"), NULL);
}
END_TEST

Suite *test_s3_object_requests_suite(void);
Suite *test_s3_object_requests_suite(void)
{
	Suite *const suite = suite_create("s3_object_requests");
	TCase *const objects = tcase_create("requests");
	tcase_add_checked_fixture(objects, setup, teardown);
	tcase_set_timeout(objects, 60);
	tcase_add_test(objects, test_checksum_of_a_put);
	tcase_add_loop_test(objects, test_checksum_of_a_get, 0, sizeof(reads) / sizeof(reads[0]));
	tcase_add_test(objects, test_part_numbers);
	tcase_add_test(objects, test_version_ids_of_a_plain_bucket);
	tcase_add_test(objects, test_list_versions_parameters);
	tcase_add_test(objects, test_copy);
	tcase_add_test(objects, test_copy_computes_a_checksum);
	tcase_add_test(objects, test_copy_and_redirect);
	tcase_add_loop_test(objects, test_bad_copy, 0, sizeof(bad_copies) / sizeof(bad_copies[0]));
	tcase_add_test(objects, test_copy_onto_itself);
	tcase_add_test(objects, test_copy_of_what_did_not_change_since);
	tcase_add_test(objects, test_copy_of_versions);
	tcase_add_test(objects, test_copy_needs_to_read_the_source);
	tcase_add_test(objects, test_delete_objects);
	tcase_add_test(objects, test_delete_objects_errors_stand_alone);
	tcase_add_test(objects, test_delete_objects_of_others);
	tcase_add_test(objects, test_delete_objects_refusals);
	tcase_add_test(objects, test_object_tagging);
	tcase_add_test(objects, test_attributes);
	suite_add_tcase(suite, objects);
	return suite;
}
