#include "tests/unit/unit.h"

#include "storage/run_tables/view_key.h"

static const struct key_case {
	const char *key;
	bool is_view;
	enum view_kind kind;
	uint64_t step;
} key_cases[] = {
	{"run/deltas/step_000007.safetensors", true, VIEW_TRL, 7},
	{"run/deltas/step_1234567.safetensors", true, VIEW_TRL, 1234567},
	{"run/anchors/step_000000.safetensors", true, VIEW_TRL, 0},
	{"run/updates/weight_v000012/model.safetensors.index.json", true, VIEW_SLIME, 12},
	{"run/deltas/step_7.safetensors", false, 0, 0},
	{"run/deltas/step_0000007.safetensors", false, 0, 0},
	{"run/deltas/step_000007.safetensorsx", false, 0, 0},
	{"run/deltas/step_.safetensors", false, 0, 0},
	{"run/deltas/step_99999999999999999999.safetensors", false, 0, 0},
	{"run/anchors/step_000000/model.safetensors", false, 0, 0},
	{"run/updates/weight_v000012", false, 0, 0},
	{"deltas/step_000007.safetensors", false, 0, 0},
	{"/deltas/step_000007.safetensors", false, 0, 0},
	{"", false, 0, 0},
};

START_TEST(keys_are_views_or_not)
{
	const struct key_case *const wanted = &key_cases[_i];
	struct span run;
	enum view_kind kind;
	uint64_t step;
	const bool is_view = view_key_parse(span_text(wanted->key), &run, &kind, &step);
	ck_assert_msg(is_view == wanted->is_view, "%s", wanted->key);
	if (!is_view)
		return;
	ck_assert(span_equal_text(run, "run"));
	ck_assert_int_eq(kind, wanted->kind);
	ck_assert_uint_eq(step, wanted->step);
}
END_TEST

START_TEST(printed_keys_parse)
{
	char key[VIEW_KEY_BYTES];
	struct span run;
	enum view_kind kind;
	uint64_t step;
	const size_t len = view_key_step(VIEW_TRL, span_text("llm"), 41, key);
	ck_assert_str_eq(key, "llm/deltas/step_000041.safetensors");
	ck_assert(view_key_parse(span_of(key, len), &run, &kind, &step) && step == 41);
	ck_assert(view_key_place(span_of(key, len), &run, &kind) && kind == VIEW_TRL);
	view_key_prefix(VIEW_SLIME, span_text("llm"), key);
	ck_assert_str_eq(key, "llm/updates/");
	ck_assert(view_key_place(span_text("llm/updates/anything"), &run, &kind) &&
		kind == VIEW_SLIME);
	ck_assert(!view_key_place(span_text("llm/anchors/step_000001.safetensors"), &run, &kind));
}
END_TEST

Suite *test_view_key_suite(void);
Suite *test_view_key_suite(void)
{
	Suite *const suite = suite_create("view_key");
	TCase *const tests = tcase_create("all");
	tcase_add_loop_test(
		tests, keys_are_views_or_not, 0, sizeof(key_cases) / sizeof(key_cases[0]));
	tcase_add_test(tests, printed_keys_parse);
	suite_add_tcase(suite, tests);
	return suite;
}
