/* The bar is drawn on a terminal that shows stderr, and nowhere else. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/terminal/progress_line.h"

static int kept[3]; /* the streams of the test program */

static void set_up(void)
{
	kept[STDOUT_FILENO] = dup(STDOUT_FILENO);
	kept[STDERR_FILENO] = dup(STDERR_FILENO);
}

static void tear_down(void)
{
	dup2(kept[STDOUT_FILENO], STDOUT_FILENO);
	dup2(kept[STDERR_FILENO], STDERR_FILENO);
}

/* Redirects the stream; the returned descriptor reads what is written to it. */
static int turn(int stream, bool to_terminal)
{
	int ends[2];
	if (to_terminal) {
		ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
		ck_assert(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
		ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
	} else {
		ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
	}
	ck_assert_int_eq(dup2(ends[1], stream), stream);
	close(ends[1]);
	return ends[0];
}

static void draw_quarter(bool wanted)
{
	struct progress *const progress =
		progress_new("uploading", 4000, wanted ? progress_line() : NULL);
	progress_add(progress, 500);
	progress_take_back(progress, 500); /* lost on the way, and sent again */
	usleep(300 * 1000);                /* it is not drawn at once */
	progress_add(progress, 1000);
	progress_free(progress);
}

static const struct {
	bool out_is_terminal, err_is_terminal, wanted, drawn;
} cases[] = {
	{true, true, true, true}, {false, true, true, true}, /* deltabucket get --json ... | jq */
	{true, false, true, false},                          /* deltabucket get ... 2>log */
	{true, true, false, false},                          /* --quiet */
};

START_TEST(the_bar_is_drawn_where_stderr_is_a_terminal)
{
	char said[1000] = "";
	const int out = turn(STDOUT_FILENO, cases[_i].out_is_terminal);
	const int err = turn(STDERR_FILENO, cases[_i].err_is_terminal);
	draw_quarter(cases[_i].wanted);
	const ssize_t got = read(err, said, sizeof said - 1);
	ck_assert_int_eq(got > 0, cases[_i].drawn);
	ck_assert_int_eq(strstr(said, "uploading: 25 %") != NULL, cases[_i].drawn);
	ck_assert_int_le(read(out, said, sizeof said), 0);
	close(out);
	close(err);
}
END_TEST

Suite *test_progress_line_suite(void);

Suite *test_progress_line_suite(void)
{
	Suite *const suite = suite_create("progress_line");
	TCase *const tests = tcase_create("progress_line");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, the_bar_is_drawn_where_stderr_is_a_terminal, 0,
		sizeof cases / sizeof cases[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
