/* What a command of --exec tells through its file. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/follow/hook_report.h"
#include "client/local/folder_files.h"

static char *folder;
static char *path;

static void set_up(void)
{
	folder = unit_scratch_make();
	path = hook_report_begin(file_system(), folder);
}

static void tear_down(void)
{
	free(path);
	unit_scratch_remove(folder);
}

static void tell(const char *text, size_t len)
{
	FILE *const file = fopen(path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text, 1, len, file), len);
	ck_assert_int_eq(fclose(file), 0);
}

static const struct {
	const char *text;
	bool found;
	uint64_t ms;
} rows[] = {
	{"pause_ms=41\n", true, 41},
	{"pause_ms=41", true, 41},
	{"pause_ms=0\n", true, 0},
	{"pause_ms=5\npause_ms=900\npause_ms=70\n", true, 900},
	{"other=7\n\npause_ms=3\nx", true, 3},
	{"", false, 0},
	{"pause_ms=\n", false, 0},
	{"pause_ms=-1\n", false, 0},
	{"pause_ms=1.5\n", false, 0},
	{"pause_ms=9223372036854775808\n", false, 0},
	{" pause_ms=4\n", false, 0},
	{"pause_ms 4\n", false, 0},
	{"pause_s=4\n", false, 0},
};

START_TEST(the_longest_pause_counts)
{
	uint64_t ms = 77;
	ck_assert(path[0] == '/');
	tell(rows[_i].text, strlen(rows[_i].text));
	ck_assert_int_eq(hook_report_end(file_system(), path, &ms), rows[_i].found);
	if (rows[_i].found)
		ck_assert_uint_eq(ms, rows[_i].ms);
	ck_assert(!file_exists(path));
}
END_TEST

START_TEST(what_tells_nothing_is_ignored)
{
	enum { LONG = 100 * 1024 };
	uint64_t ms;
	ck_assert(!hook_report_end(file_system(), path, &ms)); /* there is none */
	char *const text = memory_new(LONG);
	memset(text, '\n', LONG);
	memcpy(text, "pause_ms=4", 10);
	tell(text, LONG);
	ck_assert(!hook_report_end(file_system(), path, &ms));
	free(text);
	tell("pause_ms=4\n", 11);
	free(hook_report_begin(file_system(), folder)); /* of a command that was killed */
	ck_assert(!hook_report_end(file_system(), path, &ms));
}
END_TEST

Suite *test_hook_report_suite(void);
Suite *test_hook_report_suite(void)
{
	Suite *const suite = suite_create("hook_report");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, the_longest_pause_counts, 0, sizeof rows / sizeof *rows);
	tcase_add_test(tests, what_tells_nothing_is_ignored);
	suite_add_tcase(suite, tests);
	return suite;
}
