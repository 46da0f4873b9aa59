#include "api/s3/xml/xml_controls.h"

#include <stdio.h>

#include "base/format/xml_reader.h"
#include "tests/unit/unit.h"

enum { ARENA_BYTES = 64 * 1024, TEXT_BYTES = 256 };

static struct arena *arena;

static void setup(void)
{
	arena = arena_new(ARENA_BYTES);
}

static void teardown(void)
{
	arena_free(arena);
}

struct reading {
	struct xml_controls controls;
	struct span text;
};

static int take(void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct reading *const reading = owner;
	(void)depth;
	(void)name;
	(void)err;
	if (reading->text.data == NULL)
		reading->text = xml_controls_show(&reading->controls, text, arena);
	return 0;
}

/* Reads the text of the innermost element, as DeleteObjects reads a key. */
static int read_text(struct span xml, struct reading *out)
{
	static const struct xml_reader_events events = {.close = take};
	struct error err = {0};
	*out = (struct reading){.text = {NULL, 0}};
	ck_assert_int_eq(xml_controls_hide(xml, arena, &out->controls, &err), 0);
	return xml_reader_parse(out->controls.xml, &events, out, &err);
}

static const struct {
	const char *xml;
	const char *text;
} good[] = {
	{"<A>plain `a</A>", "plain `a"},
	{"<A>&#x1;</A>", "\x01"},
	{"<A>a&#x0001f;&#31;b</A>", "a\x1f\x1f" "b"},
	{"<A>\x01\x08\x0b\x0c\x0e\x1f</A>", "\x01\x08\x0b\x0c\x0e\x1f"},
	{"<A>&#1;`a``&#96;&#x60;</A>", "\x01`a````"},
	{"<A>&#1;&#x9;&#10;&#13;&#x7F;&#xe9;\xc3\xa9&amp;#x1;</A>",
		"\x01\t\n\r\x7f\xc3\xa9\xc3\xa9&#x1;"},
	{"<!-- `a > <A> --><?pi `a > b ?><A b=\"`a\"><![CDATA[`a&#1;>]]>&#2;</A>", "`a&#1;>\x02"},
	{"<A>&#x1d;]</A>", "\x1d]"},
};

START_TEST(what_was_meant_comes_out)
{
	struct reading reading;
	ck_assert_int_eq(read_text(span_text(good[_i].xml), &reading), 0);
	ck_assert_msg(span_equal_text(reading.text, good[_i].text), "%.*s",
		(int)reading.text.len, (const char *)reading.text.data);
}
END_TEST

/* Every one of them, as a reference in both bases and as it is. */
START_TEST(all_controls_come_through)
{
	for (unsigned code = 1; code < 32; code++) {
		char xml[TEXT_BYTES];
		char text[TEXT_BYTES];
		struct reading reading;
		snprintf(xml, sizeof(xml), "<A>&#%u;&#x%x;&#X1;</A>", code, code);
		ck_assert_int_eq(read_text(span_text(xml), &reading), -1); /* "&#X" is none */
		snprintf(xml, sizeof(xml), "<A>&#1;&#%u;&#x%X;</A>", code, code);
		snprintf(text, sizeof(text), "\x01%c%c", (int)code, (int)code);
		ck_assert_int_eq(read_text(span_text(xml), &reading), 0);
		ck_assert(span_equal_text(reading.text, text));
	}
}
END_TEST

static const char *const bad[] = {"<A>&#0;&#1;</A>", "<A>&#x;&#1;</A>", "<A>&#1</A>",
	"<A>&#x1g;&#1;</A>", "<A>&#-1;&#1;</A>", "<A>&#99999999999999999999;&#1;</A>",
	"<A>&#xFFFF;&#1;</A>", "<A>&b;&#1;</A>", "<A b=\"&#1;\">&#1;</A>", "<A>&#1;<!-- \x01 --></A>",
	"<A><![CDATA[\x01]]></A>", "<A>&#1;<![CDATA[", "<A>&#1;<", "<\x01/>"};

START_TEST(what_is_wrong_stays_wrong)
{
	struct reading reading;
	ck_assert_int_eq(read_text(span_text(bad[_i]), &reading), -1);
}
END_TEST

/* In UTF-16 the bytes of a character may look like a reference. */
START_TEST(other_encodings_are_left_alone)
{
	static const char latin[] =
		"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><A>\xe9&#1;`\xe9</A>";
	static const char wide[] = "\xff\xfe<\0A\0>\0\x01\x60<\0/\0A\0>\0";
	struct reading reading;
	ck_assert_int_eq(read_text(span_text(latin), &reading), 0);
	ck_assert(span_equal_text(reading.text, "\xc3\xa9\x01`\xc3\xa9"));
	ck_assert_int_eq(read_text(span_of(wide, sizeof(wide) - 1), &reading), 0);
	ck_assert(!reading.controls.are_hidden);
	ck_assert(span_equal_text(reading.text, "\xe6\x80\x81"));
}
END_TEST

START_TEST(memory_may_run_out)
{
	struct arena *const small = arena_new(16);
	struct xml_controls controls;
	struct error err = {0};
	ck_assert_int_eq(
		xml_controls_hide(span_text("<A>&#1; and more than fits</A>"), small, &controls, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_MEMORY);
	arena_free(small);
}
END_TEST

Suite *test_s3_xml_controls_suite(void);
Suite *test_s3_xml_controls_suite(void)
{
	Suite *const suite = suite_create("s3_xml_controls");
	TCase *const tcase = tcase_create("controls");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, what_was_meant_comes_out, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_test(tcase, all_controls_come_through);
	tcase_add_loop_test(tcase, what_is_wrong_stays_wrong, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, other_encodings_are_left_alone);
	tcase_add_test(tcase, memory_may_run_out);
	suite_add_tcase(suite, tcase);
	return suite;
}
