/* ListObjects in both versions through the router, over a real store. */
#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct face_fixture fixture;

static void setup(void)
{
	static const char *const targets[] = {"/bkt/a", "/bkt/dir/one", "/bkt/dir/two",
		"/bkt/dir/sub/three", "/bkt/dir2/x", "/bkt/z"};
	face_fixture_open(&fixture);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		face_fixture_expect(&fixture, 200, METHOD_PUT, targets[i], NULL, "hello");
}

static void teardown(void)
{
	face_fixture_close(&fixture);
}

/* Writes "a dir/one [dir/]": keys and then common prefixes, in the order of the reply. */
static void summarise(const char *xml, struct buffer *out)
{
	const char *at = xml;
	while ((at = strstr(at, "<Contents><Key>")) != NULL) {
		at += strlen("<Contents><Key>");
		buffer_format(out, "%s%.*s", out->len > 0 ? " " : "",
			(int)(strstr(at, "</Key>") - at), at);
	}
	at = xml;
	while ((at = strstr(at, "<CommonPrefixes><Prefix>")) != NULL) {
		at += strlen("<CommonPrefixes><Prefix>");
		buffer_format(out, "%s[%.*s]", out->len > 0 ? " " : "",
			(int)(strstr(at, "</Prefix>") - at), at);
	}
}

static const struct {
	const char *query;
	const char *found;
	const char *holds;
} rows[] = {
	{"", "a dir/one dir/sub/three dir/two dir2/x z",
		"<KeyCount>6</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"},
	{"&prefix=dir/", "dir/one dir/sub/three dir/two",
		"<Name>bkt</Name><Prefix>dir/</Prefix><KeyCount>3</KeyCount>"},
	{"&prefix=dir", "dir/one dir/sub/three dir/two dir2/x", "<KeyCount>4</KeyCount>"},
	{"&prefix=none", "", "<KeyCount>0</KeyCount>"},
	{"&delimiter=/", "a z [dir/] [dir2/]",
		"<KeyCount>4</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter>"},
	{"&delimiter=%2F&prefix=dir/", "dir/one dir/two [dir/sub/]", "<KeyCount>3</KeyCount>"},
	{"&delimiter=", "a dir/one dir/sub/three dir/two dir2/x z",
		"<MaxKeys>1000</MaxKeys><IsTruncated>"},
	{"&delimiter=ir", "a z [dir]", "<Delimiter>ir</Delimiter>"},
	{"&delimiter=%0a", "a dir/one dir/sub/three dir/two dir2/x z",
		"<Delimiter>&#xA;</Delimiter>"},
	{"&start-after=dir/sub/three", "dir/two dir2/x z",
		"<StartAfter>dir/sub/three</StartAfter>"},
	{"&start-after=zz", "", "<KeyCount>0</KeyCount>"},
	{"&delimiter=/&start-after=dir/", "z [dir2/]", "<KeyCount>2</KeyCount>"},
	{"&max-keys=0", "",
		"<KeyCount>0</KeyCount><MaxKeys>0</MaxKeys><IsTruncated>false</IsTruncated>"},
	{"&max-keys=5000", "a dir/one dir/sub/three dir/two dir2/x z", "<MaxKeys>1000</MaxKeys>"},
	{"&max-keys=", "a dir/one dir/sub/three dir/two dir2/x z", "<MaxKeys>1000</MaxKeys>"},
	{"&max-keys=6", "a dir/one dir/sub/three dir/two dir2/x z",
		"<IsTruncated>false</IsTruncated>"},
	{"&max-keys=2", "a dir/one",
		"<NextContinuationToken>6469722f6f6e65</NextContinuationToken><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>"},
	{"&continuation-token=6469722f6f6e65", "dir/sub/three dir/two dir2/x z",
		"<ContinuationToken>6469722f6f6e65</ContinuationToken>"},
	{"&continuation-token=6469722f6f6e65&start-after=z", "dir/sub/three dir/two dir2/x z",
		"<StartAfter>z</StartAfter>"},
	{"&continuation-token=", "a dir/one dir/sub/three dir/two dir2/x z",
		"<ContinuationToken></ContinuationToken>"},
	{"&fetch-owner=true&max-keys=1", "a",
		"<Owner><ID>main</ID><DisplayName>main</DisplayName></Owner><LastModified>"},
	{"&encoding-type=url&prefix=a", "a", "<EncodingType>url</EncodingType>"},
	{"&prefix=a", "a",
		"<ETag>&quot;5d41402abc4b2a76b9719d911017c592&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
		"<ChecksumType>FULL_OBJECT</ChecksumType><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>"},
};

START_TEST(test_row)
{
	char target[256];
	struct buffer found;
	snprintf(target, sizeof(target), "/bkt?list-type=2%s", rows[_i].query);
	buffer_init(&found, 4096);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
	summarise(buffer_text(&fake->body), &found);
	ck_assert_str_eq(buffer_text(&found), rows[_i].found);
	face_fixture_assert_holds(fake, rows[_i].holds);
	buffer_release(&found);
	fake_exchange_free(fake);
}
END_TEST

static const struct {
	const char *query;
	const char *found;
	const char *holds;
} first_rows[] = {
	{"", "a dir/one dir/sub/three dir/two dir2/x z",
		"<Name>bkt</Name><Prefix></Prefix><Marker></Marker><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents>"},
	{"?max-keys=2", "a dir/one",
		"<Marker></Marker><MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated><Contents>"},
	{"?marker=dir/one&max-keys=2", "dir/sub/three dir/two", "<Marker>dir/one</Marker>"},
	{"?delimiter=/&max-keys=2", "a [dir/]",
		"<NextMarker>dir/</NextMarker><MaxKeys>2</MaxKeys><Delimiter>/</Delimiter>"},
	{"?delimiter=/&marker=dir/", "z [dir2/]", "<Marker>dir/</Marker>"},
	{"?marker=zz", "", "<IsTruncated>false</IsTruncated>"},
	{"?encoding-type=url&marker=%20&prefix=a", "a", "<Prefix>a</Prefix><Marker>%20</Marker>"},
	{"?list-type=1&prefix=a", "a",
		"<Owner><ID>main</ID><DisplayName>main</DisplayName></Owner>"},
	{"?x-id=ListObjects&unknown=1&prefix=a", "a", "<Prefix>a</Prefix>"},
};

START_TEST(test_first_version)
{
	char target[256];
	struct buffer found;
	snprintf(target, sizeof(target), "/bkt%s", first_rows[_i].query);
	buffer_init(&found, 4096);
	struct fake_exchange *const fake =
		face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
	summarise(buffer_text(&fake->body), &found);
	ck_assert_str_eq(buffer_text(&found), first_rows[_i].found);
	face_fixture_assert_holds(fake, first_rows[_i].holds);
	face_fixture_assert_lacks(fake, "KeyCount");
	buffer_release(&found);
	fake_exchange_free(fake);
}
END_TEST

static const char *const bad[] = {"max-keys=-1", "max-keys=x", "max-keys=1.5",
	"max-keys=2147483648", "continuation-token=xyz", "continuation-token=616",
	"encoding-type=base64"};

START_TEST(test_bad)
{
	char target[128];
	snprintf(target, sizeof(target), "/bkt?list-type=2&%s", bad[_i]);
	face_fixture_expect_text(
		&fixture, 400, METHOD_GET, target, NULL, NULL, "<Code>InvalidArgument</Code>");
}
END_TEST

static char *next_token(const char *xml)
{
	const char *const open = strstr(xml, "<NextContinuationToken>");
	if (open == NULL)
		return NULL;
	const char *const from = open + strlen("<NextContinuationToken>");
	char *const token = memory_copy_text(from);
	token[strstr(from, "<") - from] = '\0';
	return token;
}

/* With every page size, all pages together are the whole listing, with each entry once. */
START_TEST(test_pages_add_up)
{
	char *token = NULL;
	struct buffer found;
	buffer_init(&found, 4096);
	for (int page = 0; page < 10; page++) {
		char target[256];
		snprintf(target, sizeof(target), "/bkt?list-type=2&delimiter=/&max-keys=%d%s%s", _i,
			token != NULL ? "&continuation-token=" : "", token != NULL ? token : "");
		struct fake_exchange *const fake =
			face_fixture_ask(&fixture, 200, METHOD_GET, target, NULL, NULL);
		summarise(buffer_text(&fake->body), &found);
		free(token);
		token = next_token(buffer_text(&fake->body));
		fake_exchange_free(fake);
		if (token == NULL)
			break;
	}
	ck_assert_ptr_null(token);
	const char *const expected[] = {"", "a [dir/] [dir2/] z", "a [dir/] z [dir2/]",
		"a [dir/] [dir2/] z", "a z [dir/] [dir2/]"};
	ck_assert_str_eq(buffer_text(&found), expected[_i]);
	buffer_release(&found);
}
END_TEST

START_TEST(test_encoding)
{
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/e/%3C%26%01%20%2B%C3%BC", NULL, "x");
	struct fake_exchange *fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/bkt?list-type=2&prefix=e/%3C", NULL, NULL);
	face_fixture_assert_holds(fake, "<Prefix>e/&lt;</Prefix>");
	face_fixture_assert_holds(fake, "<Key>e/&lt;&amp;&#x1; +\xc3\xbc</Key>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET,
		"/bkt?list-type=2&prefix=e/%3C&encoding-type=url&start-after=%20", NULL, NULL);
	face_fixture_assert_holds(fake, "<Prefix>e/%3C</Prefix><StartAfter>%20</StartAfter>");
	face_fixture_assert_holds(fake, "<Key>e/%3C%26%01%20%2B%C3%BC</Key>");
	fake_exchange_free(fake);
	fake = face_fixture_ask(&fixture, 200, METHOD_GET,
		"/bkt?list-type=2&prefix=e&encoding-type=url&delimiter=%20", NULL, NULL);
	face_fixture_assert_holds(fake, "<Delimiter>%20</Delimiter>");
	face_fixture_assert_holds(
		fake, "<CommonPrefixes><Prefix>e/%3C%26%01%20</Prefix></CommonPrefixes>");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_what_is_gone_is_not_listed)
{
	face_fixture_expect(&fixture, 204, METHOD_DELETE, "/bkt/a", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_PUT, "/bkt/z", NULL, "longer than before");
	struct fake_exchange *const fake = face_fixture_ask(
		&fixture, 200, METHOD_GET, "/bkt/?list-type=2&delimiter=/", NULL, NULL);
	face_fixture_assert_lacks(fake, "<Key>a</Key>");
	face_fixture_assert_holds(fake, "<Size>18</Size>");
	fake_exchange_free(fake);
}
END_TEST

START_TEST(test_refusals)
{
	const struct grant grant = {span_text("bkt"), span_text("dir/"), PERMISSION_LIST};
	const char *const lister = face_fixture_key(&fixture, "other", &grant);
	face_fixture_expect_text(&fixture, 404, METHOD_GET, "/nope?list-type=2", NULL, NULL,
		"<Code>NoSuchBucket</Code>");
	face_fixture_expect(&fixture, 404, METHOD_GET, "/nope?list-type=2&max-keys=0", NULL, NULL);
	fixture.token = lister;
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt?list-type=2", NULL, NULL);
	face_fixture_expect(&fixture, 403, METHOD_GET, "/bkt?list-type=2&prefix=d", NULL, NULL);
	face_fixture_expect(&fixture, 200, METHOD_GET, "/bkt?list-type=2&prefix=dir/", NULL, NULL);
}
END_TEST

Suite *test_s3_list_suite(void);
Suite *test_s3_list_suite(void)
{
	Suite *const suite = suite_create("s3_list");
	TCase *const list = tcase_create("list");
	tcase_add_checked_fixture(list, setup, teardown);
	tcase_set_timeout(list, 60);
	tcase_add_loop_test(list, test_row, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_loop_test(
		list, test_first_version, 0, sizeof(first_rows) / sizeof(first_rows[0]));
	tcase_add_loop_test(list, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_loop_test(list, test_pages_add_up, 1, 5);
	tcase_add_test(list, test_encoding);
	tcase_add_test(list, test_what_is_gone_is_not_listed);
	tcase_add_test(list, test_refusals);
	suite_add_tcase(suite, list);
	return suite;
}
