#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/format/xml_reader.h"
#include "client/remote/listing.h"

static struct arena *arena;

static void set_up(void)
{
	arena = arena_new(8 * 1024 * 1024);
}

static void tear_down(void)
{
	arena_free(arena);
}

static void check_text(struct span text, const char *expected)
{
	ck_assert_msg(span_equal_text(text, expected), "%.*s is not %s", (int)text.len,
		(const char *)text.data, expected);
}

START_TEST(objects_and_prefixes_come_in_order)
{
	static const char XML[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
		"<Name>b</Name><Prefix>p/</Prefix><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>"
		"<Contents><Key>p/a</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;abc&quot;</ETag><Size>42</Size>"
		"<Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner></Contents>"
		"<Contents><Key>p/b</Key><Size>0</Size></Contents>"
		"<CommonPrefixes><Prefix>p/c/</Prefix></CommonPrefixes></ListBucketResult>";
	struct listing listing;
	struct error err = {0};
	ck_assert_msg(listing_parse(span_text(XML), arena, &listing, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(listing.count, 3);
	check_text(listing.entries[0].name, "p/a");
	ck_assert_uint_eq(listing.entries[0].size, 42);
	check_text(listing.entries[0].etag, "abc");
	check_text(listing.entries[0].modified, "2026-01-02T03:04:05.000Z");
	ck_assert(!listing.entries[0].is_prefix);
	check_text(listing.entries[1].name, "p/b");
	ck_assert_uint_eq(listing.entries[1].etag.len, 0); /* not the value of the entry before */
	check_text(listing.entries[2].name, "p/c/");
	ck_assert(listing.entries[2].is_prefix);
	ck_assert(listing.truncated);
	check_text(listing.next, "t&1");
}
END_TEST

START_TEST(encoded_names_are_decoded)
{
	static const char XML[] =
		"<ListBucketResult><Contents><Key>a%20b%2Bc+%C3%BC%01</Key></Contents><EncodingType>url</EncodingType></ListBucketResult>";
	struct listing listing;
	struct error err = {0};
	ck_assert_int_eq(listing_parse(span_text(XML), arena, &listing, &err), 0);
	check_text(listing.entries[0].name, "a b+c ü\x01");
}
END_TEST

START_TEST(names_are_left_alone_without_an_encoding)
{
	static const char XML[] =
		"<ListBucketResult><Contents><Key>100%25</Key></Contents></ListBucketResult>";
	struct listing listing;
	struct error err = {0};
	ck_assert_int_eq(listing_parse(span_text(XML), arena, &listing, &err), 0);
	check_text(listing.entries[0].name, "100%25");
}
END_TEST

START_TEST(buckets_are_listed)
{
	static const char XML[] =
		"<ListAllMyBucketsResult><Owner><ID>i</ID></Owner><Buckets><Bucket><Name>one</Name>"
		"<CreationDate>d</CreationDate></Bucket>"
		"<Bucket><Name>two</Name></Bucket></Buckets></ListAllMyBucketsResult>";
	struct listing listing;
	struct error err = {0};
	ck_assert_int_eq(listing_parse(span_text(XML), arena, &listing, &err), 0);
	ck_assert_uint_eq(listing.count, 2);
	check_text(listing.entries[0].name, "one");
	check_text(listing.entries[1].name, "two");
	ck_assert_uint_eq(listing.entries[1].modified.len, 0);
}
END_TEST

static const char *const REFUSED[] = {
	"",
	"no xml",
	"<ListBucketResult>",
	"<ListBucketResult></Other>",
	"<A/><B/>",
	"<ListBucketResult><Contents><Key>k</Key><Size>12x</Size></Contents></ListBucketResult>",
	"<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>",
	"<ListBucketResult><Contents><Key>%zz</Key></Contents><EncodingType>url</EncodingType></ListBucketResult>",
	"<!DOCTYPE x><ListBucketResult/>",
	"<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><ListBucketResult><Name>&b;</Name></ListBucketResult>",
	"<ListBucketResult><Name>&undefined;</Name></ListBucketResult>",
};

START_TEST(nonsense_is_refused)
{
	struct listing listing;
	struct error err = {0};
	ck_assert_int_eq(listing_parse(span_text(REFUSED[_i]), arena, &listing, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
}
END_TEST

START_TEST(depth_text_and_entries_are_bounded)
{
	struct listing listing;
	struct error err = {0};
	struct buffer xml;
	buffer_init(&xml, 4 * 1024 * 1024);
	for (int i = 0; i < 200; i++)
		buffer_add_text(&xml, "<deep>");
	ck_assert_int_eq(listing_parse(buffer_span(&xml), arena, &listing, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "deep"));
	buffer_reset(&xml);
	buffer_add_text(&xml, "<ListBucketResult><Name>");
	for (int i = 0; i < 2 * XML_READER_TEXT_MAX_BYTES; i++)
		buffer_add_byte(&xml, 'x');
	buffer_add_text(&xml, "</Name></ListBucketResult>");
	ck_assert_int_eq(listing_parse(buffer_span(&xml), arena, &listing, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "The text of the XML element Name is over"));
	buffer_reset(&xml);
	buffer_add_text(&xml, "<ListBucketResult>");
	for (int i = 0; i <= LISTING_ENTRIES_MAX; i++)
		buffer_add_text(&xml, "<Contents><Key>k</Key></Contents>");
	buffer_add_text(&xml, "</ListBucketResult>");
	ck_assert_int_eq(listing_parse(buffer_span(&xml), arena, &listing, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "it lists over 10000 entries"));
	buffer_release(&xml);
}
END_TEST

START_TEST(a_small_arena_fails_cleanly)
{
	struct arena *const small = arena_new(256);
	struct listing listing;
	struct error err = {0};
	static const char XML[] =
		"<ListBucketResult><Contents><Key>a</Key></Contents><Contents><Key>b</Key></Contents></ListBucketResult>";
	ck_assert_int_eq(listing_parse(span_text(XML), small, &listing, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	arena_free(small);
}
END_TEST

START_TEST(errors_are_told_from_other_answers)
{
	struct listing_error error;
	ck_assert(listing_parse_error(
		span_text("<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>"), arena,
		&error));
	check_text(error.code, "NoSuchKey");
	check_text(error.message, "gone");
	ck_assert(!listing_parse_error(span_text("<ListBucketResult/>"), arena, &error));
	ck_assert(!listing_parse_error(span_text("<html>"), arena, &error));
	ck_assert(!listing_parse_error((struct span){0}, arena, &error));
}
END_TEST

Suite *test_listing_suite(void);
Suite *test_listing_suite(void)
{
	Suite *const suite = suite_create("listing");
	TCase *const tests = tcase_create("listing");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, objects_and_prefixes_come_in_order);
	tcase_add_test(tests, encoded_names_are_decoded);
	tcase_add_test(tests, names_are_left_alone_without_an_encoding);
	tcase_add_test(tests, buckets_are_listed);
	tcase_add_loop_test(tests, nonsense_is_refused, 0, sizeof REFUSED / sizeof REFUSED[0]);
	tcase_add_test(tests, depth_text_and_entries_are_bounded);
	tcase_add_test(tests, a_small_arena_fails_cleanly);
	tcase_add_test(tests, errors_are_told_from_other_answers);
	suite_add_tcase(suite, tests);
	return suite;
}
