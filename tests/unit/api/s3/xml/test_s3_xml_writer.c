#include "api/s3/xml/xml_writer.h"

#include "tests/unit/unit.h"

#define PROLOG "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

START_TEST(test_document)
{
	struct buffer out;
	struct xml_writer xml;
	buffer_init(&out, 4096);
	xml_writer_begin(&xml, &out, "Root", true);
	xml_writer_open(&xml, "Item");
	xml_writer_text(&xml, "Name", span_text("a"));
	xml_writer_u64(&xml, "Size", UINT64_MAX);
	xml_writer_close(&xml);
	xml_writer_bool(&xml, "Yes", true);
	xml_writer_bool(&xml, "No", false);
	xml_writer_time(&xml, "When", 784111777123);
	xml_writer_etag(&xml, "ETag", "ab-2");
	xml_writer_open(&xml, "Open");
	xml_writer_end(&xml);
	ck_assert_str_eq(buffer_text(&out),
		PROLOG
		"<Root xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Item><Name>a</Name>"
		"<Size>18446744073709551615</Size></Item><Yes>true</Yes><No>false</No><When>1994-11-06T08:49:37.123Z</When>"
		"<ETag>&quot;ab-2&quot;</ETag><Open></Open></Root>");
	buffer_release(&out);
}
END_TEST

static const struct {
	const char *text;
	size_t len;
	const char *escaped;
} escapes[] = {
	{"", 0, ""},
	{"plain/key.txt", 13, "plain/key.txt"},
	{"&<>\"'", 5, "&amp;&lt;&gt;&quot;&apos;"},
	{"a&&b", 4, "a&amp;&amp;b"},
	{"\n\r\t", 3, "&#xA;&#xD;&#x9;"},
	{"a\0b", 3, "a&#x0;b"},
	{"\x01\x1f\x7f", 3, "&#x1;&#x1F;&#x7F;"},
	{"gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f"},
	{"]]>", 3, "]]&gt;"},
};

START_TEST(test_escape)
{
	struct buffer out;
	struct buffer expected;
	struct xml_writer xml;
	buffer_init(&out, 4096);
	buffer_init(&expected, 4096);
	xml_writer_begin(&xml, &out, "R", false);
	xml_writer_text(&xml, "K", span_of(escapes[_i].text, escapes[_i].len));
	xml_writer_content(&xml, span_of(escapes[_i].text, escapes[_i].len));
	xml_writer_end(&xml);
	buffer_format(
		&expected, PROLOG "<R><K>%s</K>%s</R>", escapes[_i].escaped, escapes[_i].escaped);
	ck_assert_str_eq(buffer_text(&out), buffer_text(&expected));
	buffer_release(&out);
	buffer_release(&expected);
}
END_TEST

START_TEST(test_too_small_buffer_says_so)
{
	struct buffer out;
	struct xml_writer xml;
	buffer_init(&out, 64);
	xml_writer_begin(&xml, &out, "Root", true);
	xml_writer_end(&xml);
	ck_assert(buffer_failed(&out));
	buffer_release(&out);
}
END_TEST

Suite *test_s3_xml_writer_suite(void);
Suite *test_s3_xml_writer_suite(void)
{
	Suite *const suite = suite_create("s3_xml_writer");
	TCase *const rules = tcase_create("rules");
	tcase_add_test(rules, test_document);
	tcase_add_loop_test(rules, test_escape, 0, sizeof(escapes) / sizeof(escapes[0]));
	tcase_add_test(rules, test_too_small_buffer_says_so);
	suite_add_tcase(suite, rules);
	return suite;
}
