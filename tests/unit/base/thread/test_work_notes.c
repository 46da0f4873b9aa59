#include "tests/unit/unit.h"

#include <string.h>

#include "base/thread/work_notes.h"

START_TEST(the_last_note_of_each_kind_stands)
{
	struct work_notes *const notes = work_notes_new();
	struct work_note seen[WORK_KINDS];
	work_notes_set(notes, WORK_GC, WORK_WORKING, "looked at %d packs", 3);
	work_notes_set(notes, WORK_GC, WORK_RESTING, "%s", "");
	work_notes_set(notes, WORK_SCRUB, WORK_WORKING, "verified %d bytes", 12);
	work_notes_look(notes, seen);
	ck_assert(seen[WORK_GC].state == WORK_RESTING && seen[WORK_GC].detail[0] == '\0');
	ck_assert_int_eq(seen[WORK_SCRUB].state, WORK_WORKING);
	ck_assert_str_eq(seen[WORK_SCRUB].detail, "verified 12 bytes");
	ck_assert_int_eq(seen[WORK_JOURNAL].state, WORK_OFF);
	work_notes_free(notes);
}
END_TEST

START_TEST(a_long_detail_is_cut_and_nobody_may_listen)
{
	struct work_notes *const notes = work_notes_new();
	struct work_note seen[WORK_KINDS];
	char text[2 * WORK_DETAIL_BYTES];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	work_notes_set(notes, WORK_DERIVE, WORK_WORKING, "%s", text);
	work_notes_set(NULL, WORK_DERIVE, WORK_RESTING, "%s", text);
	work_notes_look(notes, seen);
	ck_assert_uint_eq(strlen(seen[WORK_DERIVE].detail), WORK_DETAIL_BYTES - 1);
	work_notes_free(notes);
}
END_TEST

Suite *test_work_notes_suite(void);
Suite *test_work_notes_suite(void)
{
	Suite *const suite = suite_create("work_notes");
	TCase *const tests = tcase_create("work_notes");
	tcase_add_test(tests, the_last_note_of_each_kind_stands);
	tcase_add_test(tests, a_long_detail_is_cut_and_nobody_may_listen);
	suite_add_tcase(suite, tests);
	return suite;
}
