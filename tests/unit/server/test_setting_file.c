#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "server/data_folder.h"
#include "server/setting_file.h"

static char *folder;
static char *path;
static struct buffer taken; /* "heading|name|value;" of each line */

static void set_up(void)
{
	folder = unit_scratch_make();
	path = data_folder_path(folder, "d.ini");
	buffer_init(&taken, 100000);
}

static void tear_down(void)
{
	buffer_release(&taken);
	free(path);
	unit_scratch_remove(folder);
}

static int take(void *owner, const struct setting_line *line, struct error *err)
{
	buffer_format(owner, "%s|%s|%s;", line->heading, line->name, line->value);
	if (strcmp(line->value, "refuse me") == 0)
		return error_set(err, ERROR_INVALID, "%s: refused", line->from);
	return 0;
}

static const struct setting_taker taker = {.take = take, .owner = &taken};

static int read_text(struct span text, struct error *err)
{
	ck_assert_int_eq(file_publish(file_system(), path, text, 0600, err), 0);
	return setting_file_read(path, &taker, err);
}

static const struct {
	const char *text;
	const char *gives;
} rows[] = {
	{"", ""},
	{"a = b", "|a|b;"},
	{"\n# c = d\n; e = f\n\t a\t=\tb \r\n", "|a|b;"},
	{"\xef\xbb\xbf"
	 "a = b\n",
		"|a|b;"},
	{"a: b\n[ h ]  # words\nc=d=e\n  f = g\n[]\ni = j", "|a|b;h|c|d=e;h|f|g;|i|j;"},
	{"a = b # words\nc = d ; words\ne = f\t#words", "|a|b;|c|d;|e|f;"},
	{"a = b#c;d\ne = # nothing\nf =;\ng =", "|a|b#c;d;|e|;|f|;|g|;"},
	{"a = \"b # c ; d\"\ne = 'f \" g' # words\nh = \"\"\ni = ' j ';k",
		"|a|b # c ; d;|e|f \" g;|h|;|i| j ;"},
	{"a = bob's", "|a|bob's;"},
	{"a = \"b \"\"c\"\" 'd'\"\ne = '''f''' # words\ng = \"\"\"\"\nh = \" i \"",
		"|a|b \"c\" 'd';|e|'f';|g|\";|h| i ;"},
};

START_TEST(lines_give_headings_names_and_values)
{
	struct error err = {0};
	ck_assert_msg(read_text(span_text(rows[_i].text), &err) == 0, "%s", err.text);
	ck_assert_str_eq(buffer_text(&taken), rows[_i].gives);
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} refused[] = {
	{"a = b\nc = \"d\n",
		"d.ini:2: the value begins with a quotation mark (\") and does not end with "
		"one"},
	{"a = \"b\"\"", "d.ini:1: the value begins with a quotation mark (\")"},
	{"a = 'b\"", "d.ini:1: the value begins with a quotation mark (')"},
	{"a = b\"",
		"d.ini:1: the value ends with a quotation mark (\") and does not begin with one"},
	{"a = \"b\", \"c\"",
		"d.ini:1: the value continues after its closing quotation mark (\"); one pair must "
		"enclose all of it"},
	{"a\n", "d.ini:1: this is neither a setting (name = value) nor a heading ([name])"},
	{"= b\n", "d.ini:1: this is neither a setting"},
	{"[a\n", "d.ini:1: a heading must be [name], alone in its line"},
	{"\n[a] b = c\n", "d.ini:2: a heading must be [name], alone in its line"},
	{"a = b\n\nc = refuse me\nd = e\n[", "d.ini:3: refused"},
};

START_TEST(the_first_mistake_is_named_with_its_line)
{
	struct error err = {0};
	ck_assert_int_eq(read_text(span_text(refused[_i].text), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, refused[_i].says) != NULL, "%s", err.text);
}
END_TEST

START_TEST(long_lines_are_whole_and_zero_bytes_refused)
{
	struct error err = {0};
	char text[3000] = "a = ";
	memset(text + 4, 'x', sizeof text - 5);
	ck_assert_int_eq(read_text(span_text(text), &err), 0);
	ck_assert_uint_eq(taken.len, strlen("|a|;") + sizeof text - 5);
	ck_assert_int_eq(read_text(span_of("a = b\nc\0 = d\n", 13), &err), -1);
	ck_assert_msg(
		strstr(err.text, "d.ini:2: the line contains a zero byte") != NULL, "%s", err.text);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	struct error err = {0};
	char wanted[5000];
	ck_assert_int_eq(setting_file_read(folder, &taker, &err), -1);
	snprintf(wanted, sizeof wanted,
		"the configuration file %s is a folder; --config needs the path of a file", folder);
	ck_assert_str_eq(err.text, wanted);
	ck_assert_int_eq(setting_file_read(path, &taker, &err), -1);
	ck_assert_msg(
		strstr(err.text, "cannot read the configuration file ") != NULL, "%s", err.text);
}
END_TEST

Suite *test_setting_file_suite(void);
Suite *test_setting_file_suite(void)
{
	Suite *const suite = suite_create("setting_file");
	TCase *const tcase = tcase_create("setting_file");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(
		tcase, lines_give_headings_names_and_values, 0, sizeof rows / sizeof rows[0]);
	tcase_add_loop_test(tcase, the_first_mistake_is_named_with_its_line, 0,
		sizeof refused / sizeof refused[0]);
	tcase_add_test(tcase, long_lines_are_whole_and_zero_bytes_refused);
	tcase_add_test(tcase, what_is_no_file_is_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
