#include "base/format/xml_reader.h"

#include "base/buffer.h"
#include "tests/unit/unit.h"

/* Writes each event as text: "(name" and "name=text)". */
static int trace_open(void *owner, size_t depth, struct span name, struct error *err)
{
	(void)err;
	buffer_format(owner, "(%zu%.*s", depth, (int)name.len, (const char *)name.data);
	return 0;
}

static int trace_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	(void)depth;
	buffer_format(owner, "%.*s=%.*s)", (int)name.len, (const char *)name.data, (int)text.len,
		(const char *)text.data);
	return span_equal_text(name, "Stop") ? error_set(err, ERROR_INVALID, "stopped by the test")
					     : 0;
}

static const struct xml_reader_events events = {.open = trace_open, .close = trace_close};

static const struct {
	const char *xml;
	const char *trace;
} good[] = {
	{"<A/>", "(1AA=)"},
	{"<?xml version=\"1.0\"?>\n<A x=\"1\"><B>text</B><B>&lt;&#65;&amp;</B></A>",
		"(1A(2BB=text)(2BB=<A&)A=)"},
	{"<s3:A xmlns:s3=\"urn:x\"><s3:B>1</s3:B></s3:A>", "(1A(2BB=1)A=)"},
	{"<A><![CDATA[<b>]]></A>", "(1AA=<b>)"},
	{"<A> x<!-- no --> y</A>", "(1AA= x y)"},
};

START_TEST(test_good)
{
	struct buffer trace;
	struct error err = {0};
	buffer_init(&trace, 4096);
	ck_assert_msg(xml_reader_parse(span_text(good[_i].xml), &events, &trace, &err) == 0, "%s",
		err.text);
	ck_assert_str_eq(buffer_text(&trace), good[_i].trace);
	ck_assert_int_eq(err.kind, ERROR_NONE);
	buffer_release(&trace);
}
END_TEST

static const char *const bad[] = {
	"",
	"x",
	"<A>",
	"<A></B>",
	"<A/><B/>",
	"<A>&unknown;</A>",
	"<A>\x01</A>",
	"<A>\xff</A>",
	"<!DOCTYPE A><A/>",
	"<!DOCTYPE A [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><A>&c;</A>",
	"<!DOCTYPE A [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><A>&f;</A>",
	"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a></a></a></a></a></a></a></a></a>",
};

START_TEST(test_bad)
{
	struct buffer trace;
	struct error err = {0};
	buffer_init(&trace, 4096);
	ck_assert_int_eq(xml_reader_parse(span_text(bad[_i]), &events, &trace, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
	buffer_release(&trace);
}
END_TEST

START_TEST(test_text_cap)
{
	struct buffer xml;
	struct error err = {0};
	for (size_t over = 0; over < 2; over++) {
		buffer_init(&xml, 64 * 1024);
		buffer_add_text(&xml, "<A>");
		for (size_t i = 0; i < XML_READER_TEXT_MAX_BYTES + over; i++)
			buffer_add_byte(&xml, 'x');
		buffer_add_text(&xml, "</A>");
		const struct xml_reader_events none = {NULL, NULL};
		ck_assert_int_eq(
			xml_reader_parse(buffer_span(&xml), &none, NULL, &err), over == 0 ? 0 : -1);
		buffer_release(&xml);
	}
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
}
END_TEST

START_TEST(test_event_stops)
{
	struct buffer trace;
	struct error err = {0};
	buffer_init(&trace, 4096);
	ck_assert_int_eq(
		xml_reader_parse(span_text("<A><Stop/><Never/></A>"), &events, &trace, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_str_eq(buffer_text(&trace), "(1A(2StopStop=)");
	buffer_release(&trace);
}
END_TEST

Suite *test_xml_reader_suite(void);
Suite *test_xml_reader_suite(void)
{
	Suite *const suite = suite_create("xml_reader");
	TCase *const rules = tcase_create("rules");
	tcase_add_loop_test(rules, test_good, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(rules, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(rules, test_text_cap);
	tcase_add_test(rules, test_event_stops);
	suite_add_tcase(suite, rules);
	return suite;
}
