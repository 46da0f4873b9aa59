#include "tests/unit/unit.h"

#include "client/remote/remote_hub.h"
#include "client/sync/sync_plan.h"

START_TEST(two_lists_side_by_side)
{
	struct sync_entry left[] = {{.name = (char *)"a", .size = 1},
		{.name = (char *)"b", .size = 2}, {.name = (char *)"c", .size = 3}};
	struct sync_entry right[] = {
		{.name = (char *)"b", .size = 2, .has_hash = true, .hash = {{7}}},
		{.name = (char *)"c", .size = 4}, {.name = (char *)"d", .size = 5}};
	const struct sync_list source = {left, 3};
	const struct sync_list target = {right, 3};
	struct sync_plan plan;
	sync_plan_make(&source, &target, &plan);
	ck_assert_uint_eq(plan.count, 4);
	ck_assert_int_eq(plan.items[0].state, SYNC_NEW);
	ck_assert_int_eq(plan.items[1].state, SYNC_MAYBE);
	/* on either side */
	ck_assert_ptr_eq(plan.items[1].hash, &right[0].hash);
	ck_assert_ptr_null(plan.items[2].hash);
	ck_assert_int_eq(plan.items[2].state, SYNC_DIFFERS);
	ck_assert_uint_eq(plan.items[2].size, 3);
	ck_assert_int_eq(plan.items[3].state, SYNC_GONE);
	ck_assert_str_eq(plan.items[3].name, "d");
	sync_plan_release(&plan);
}
END_TEST

#define X15  "123456789abcdef"
#define X255 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15 X15

static const struct {
	const char *name;
	bool is_path;
} NAMES[] = {
	{"a", true},
	{"a/b c/.hidden", true},
	{"...", true},
	{"", false},
	{"/a", false},
	{"a/", false},
	{"a//b", false},
	{"..", false},
	{"a/../b", false},
	{"./a", false},
	{"a/.", false},
	{"a.deltabucket-part", false},
	{"a.deltabucket-part.chunks", false},
	{"a.deltabucket-part.journal", false},
	{"a.deltabucket-part/b", true},
	{X255, true},
	{"a/" X255 "/b", true},
	{"a/x" X255, false},
};

START_TEST(a_name_stays_below_its_folder)
{
	ck_assert_int_eq(sync_plan_is_path(NAMES[_i].name), NAMES[_i].is_path);
}
END_TEST

START_TEST(the_hub_takes_paths_and_not_every_key)
{
	static const char *const TAKEN[] = {"a", "a/b c", "\xc3\xa9", "a..b", ".hidden"};
	static const char *const REFUSED[] = {
		"", "/a", "a/", "a//b", "./a", "a/../b", "a/..", "x..", "a\\b", "\xff", "c:/x"};
	for (size_t i = 0; i < sizeof TAKEN / sizeof TAKEN[0]; i++)
		ck_assert_msg(remote_hub_takes(span_text(TAKEN[i])), "%s", TAKEN[i]);
	for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++)
		ck_assert_msg(!remote_hub_takes(span_text(REFUSED[i])), "%s", REFUSED[i]);
	ck_assert(!remote_hub_takes(span_of("a\0b", 3)));
}
END_TEST

Suite *test_sync_plan_suite(void);
Suite *test_sync_plan_suite(void)
{
	Suite *const suite = suite_create("sync_plan");
	TCase *const tests = tcase_create("sync_plan");
	tcase_add_test(tests, two_lists_side_by_side);
	tcase_add_loop_test(
		tests, a_name_stays_below_its_folder, 0, sizeof NAMES / sizeof NAMES[0]);
	tcase_add_test(tests, the_hub_takes_paths_and_not_every_key);
	suite_add_tcase(suite, tests);
	return suite;
}
