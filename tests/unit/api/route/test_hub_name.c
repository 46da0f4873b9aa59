#include "api/route/hub_name.h"

#include "tests/unit/unit.h"

static const struct {
	const char *namespace;
	const char *name;
	const char *bucket;
} pairs[] = {
	{"main", "models", "models"},
	{"team", "models", "team--models"},
	{"te-am", "m_1.X", "te-am--m_1.X"},
};

START_TEST(names_go_both_ways)
{
	struct arena *const arena = arena_new(4096);
	const struct span bucket = hub_name_bucket(
		arena, "main", span_text(pairs[_i].namespace), span_text(pairs[_i].name));
	ck_assert(span_equal_text(bucket, pairs[_i].bucket));
	const struct hub_name back = hub_name_of("main", bucket);
	ck_assert(span_equal_text(back.namespace, pairs[_i].namespace) &&
		span_equal_text(back.name, pairs[_i].name));
	ck_assert(span_equal_text(
		hub_name_bucket(arena, "main", span_text("-"), bucket), pairs[_i].bucket));
	arena_free(arena);
}
END_TEST

static const char *const good[] = {"a", "Data_1.0-x",
	"123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"};
static const char *const bad[] = {"", "-a", "a-", ".a", "a.", "a--b", "a..b", "a.git", "a/b", "a b",
	"\xc3\xa9", "api", "xet",
	"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"};

START_TEST(new_names_follow_the_rules)
{
	struct error err = {0};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(hub_name_check("main",
				      (struct hub_name){span_text("main"), span_text(good[i])},
				      &err) == 0,
			"%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(hub_name_check("main",
				      (struct hub_name){span_text("main"), span_text(bad[i])},
				      &err) != 0 &&
				err.kind == ERROR_BAD_NAME,
			"%s", bad[i]);
	ck_assert_int_eq(hub_name_check("main",
				 (struct hub_name){span_text("team"), span_text("api")}, &err),
		0);
}
END_TEST

Suite *test_hub_name_suite(void);
Suite *test_hub_name_suite(void)
{
	Suite *const suite = suite_create("hub_name");
	TCase *const cases = tcase_create("all");
	tcase_add_loop_test(cases, names_go_both_ways, 0, (int)(sizeof(pairs) / sizeof(pairs[0])));
	tcase_add_test(cases, new_names_follow_the_rules);
	suite_add_tcase(suite, cases);
	return suite;
}
