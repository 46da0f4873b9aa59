#include "tests/unit/unit.h"

#include "storage/run_tables/adopt_layout.h"

static const struct match_case {
	enum adopt_convention convention;
	const char *prefix;
	const char *key;
	const char *identity; /* NULL: no match */
	const char *objects;
	uint64_t version;
} match_cases[] = {
	{ADOPT_TRL, "", "deltas/step_000007.safetensors", "step_000007",
		"deltas/step_000007.safetensors", 7},
	{ADOPT_TRL, "run/", "run/anchors/step_000001.safetensors", "step_000001",
		"run/anchors/step_000001.safetensors", 1},
	{ADOPT_TRL, "run/", "run/anchors/step_1234567.safetensors", "step_1234567",
		"run/anchors/step_1234567.safetensors", 1234567},
	{ADOPT_TRL, "run/", "other/anchors/step_000001.safetensors", NULL, NULL, 0},
	{ADOPT_TRL, "run/", "run/anchors/step_00001.safetensors", NULL, NULL, 0},
	{ADOPT_TRL, "run/", "run/anchors/step_0000001.safetensors", NULL, NULL, 0},
	{ADOPT_TRL, "run/", "run/anchors/step_00000x.safetensors", NULL, NULL, 0},
	{ADOPT_TRL, "run/", "run/anchors/step_000001.safetensors.tmp", NULL, NULL, 0},
	{ADOPT_TRL, "run/", "run/", NULL, NULL, 0},
	{ADOPT_SLIME, "u/", "u/weight_v000012/model.safetensors.index.json", "weight_v000012",
		"u/weight_v000012/", 12},
	{ADOPT_SLIME, "", "weight_v000012/model.safetensors", "weight_v000012", "weight_v000012/",
		12},
	{ADOPT_SLIME, "u/", "u/weight_v000012/model-00000-of-00002.safetensors", NULL, NULL, 0},
	{ADOPT_SLIME, "u/", "u/weight_v12/model.safetensors.index.json", NULL, NULL, 0},
	{ADOPT_SLIME, "u/", "u/x/weight_v000012/model.safetensors.index.json", NULL, NULL, 0},
	{ADOPT_MODELEXPRESS, "p/", "p/u-1/model.safetensors.index.json", "u-1", "p/u-1/", 0},
	{ADOPT_MODELEXPRESS, "", "a/b/c/model.safetensors.index.json", "a/b/c", "a/b/c/", 0},
	{ADOPT_MODELEXPRESS, "p/", "p/model.safetensors.index.json", NULL, NULL, 0},
	{ADOPT_MODELEXPRESS, "p/", "p/u-1/model-00000-of-00001.safetensors", NULL, NULL, 0},
	{ADOPT_MODELEXPRESS, "p/", "p/u-1/xmodel.safetensors.index.json", NULL, NULL, 0},
	{ADOPT_MODELEXPRESS, "", "r/anchors/step_000001/model.safetensors.index.json", NULL, NULL,
		0},
	{ADOPT_MODELEXPRESS, "r/", "r/anchors/step_000001/model.safetensors.index.json", NULL, NULL,
		0},
	{ADOPT_MODELEXPRESS, "r/", "r/steps/000001/anchor/model.safetensors.index.json", NULL, NULL,
		0},
	{ADOPT_SKYRL, "s/", "s/delta-00000007/manifest.json", "delta-00000007", "s/delta-00000007/",
		7},
	{ADOPT_SKYRL, "", "delta-123456789/manifest.json", "delta-123456789", "delta-123456789/",
		123456789},
	{ADOPT_SKYRL, "", "delta-0000007/manifest.json", NULL, NULL, 0},
	{ADOPT_SKYRL, "", "delta-000000007/manifest.json", NULL, NULL, 0},
	{ADOPT_SKYRL, "", "x/delta-00000007/manifest.json", NULL, NULL, 0},
	{ADOPT_SKYRL, "", "delta-00000007/x/manifest.json", NULL, NULL, 0},
	{ADOPT_SKYRL, "", "delta-00000007/delta-rank00000-file000000.safetensors", NULL, NULL, 0},
	{ADOPT_SKYRL, "", "manifest.json", NULL, NULL, 0},
	{ADOPT_PULSE, "grail/checkpoints/", "grail/checkpoints/checkpoint-6120/READY-6150",
		"checkpoint-6120", "grail/checkpoints/checkpoint-6120/", 6120},
	{ADOPT_PULSE, "", "checkpoint-0/READY-0", "checkpoint-0", "checkpoint-0/", 0},
	{ADOPT_PULSE, "", "checkpoint-30/DELTA/READY-60", NULL, NULL, 0},
	{ADOPT_PULSE, "", "checkpoint-30/DELTA/metadata.json", NULL, NULL, 0},
	{ADOPT_PULSE, "", "checkpoint-30/READY-", NULL, NULL, 0},
	{ADOPT_PULSE, "", "checkpoint-30/READY-60x", NULL, NULL, 0},
	{ADOPT_PULSE, "", "checkpoint-030/READY-60", NULL, NULL, 0},
	{ADOPT_PULSE, "", "checkpoint-/READY-60", NULL, NULL, 0},
	{ADOPT_PULSE, "", "x/checkpoint-30/READY-60", NULL, NULL, 0},
	{ADOPT_PULSE, "", "READY-60", NULL, NULL, 0},
	{ADOPT_NONE, "", "deltas/step_000007.safetensors", NULL, NULL, 0},
	{ADOPT_HOT_LOAD, "", "deltas/step_000007.safetensors", NULL, NULL, 0},
};

START_TEST(keys_that_complete_a_publish)
{
	const struct match_case *const wanted = &match_cases[_i];
	struct adopt_mark mark;
	const bool matches = adopt_layout_match(
		wanted->convention, span_text(wanted->prefix), span_text(wanted->key), &mark);
	ck_assert_msg(matches == (wanted->identity != NULL), "%s", wanted->key);
	if (!matches)
		return;
	ck_assert(span_equal_text(mark.identity, wanted->identity));
	ck_assert(span_equal_text(mark.objects, wanted->objects));
	ck_assert_uint_eq(mark.version, wanted->version);
	ck_assert(!mark.is_pointer);
}
END_TEST

START_TEST(a_pointer_names_a_version)
{
	struct adopt_mark mark;
	struct span run_id;
	uint64_t version = 0;
	ck_assert(adopt_layout_match(
		ADOPT_STITCH, span_text("root/"), span_text("root/latest"), &mark));
	ck_assert(mark.is_pointer);
	ck_assert(!adopt_layout_match(
		ADOPT_STITCH, span_text("root/"), span_text("root/updates/latest"), &mark));
	ck_assert(adopt_layout_pointer(span_text("run-7/weight_v000031\n"), &run_id, &version));
	ck_assert(span_equal_text(run_id, "run-7"));
	ck_assert_uint_eq(version, 31);
	ck_assert(adopt_layout_pointer(span_text("run-7/weight_v000032 \r\n"), &run_id, &version));
	ck_assert_uint_eq(version, 32);
	static const char *const bad[] = {"", "\n", "/weight_v000001", "weight_v000001",
		"run/weight_v1", "run/weight_v000001/x", "run/"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(
			!adopt_layout_pointer(span_text(bad[i]), &run_id, &version), "%s", bad[i]);
}
END_TEST

Suite *test_adopt_layout_suite(void);
Suite *test_adopt_layout_suite(void)
{
	Suite *const suite = suite_create("adopt_layout");
	TCase *const tests = tcase_create("all");
	tcase_add_loop_test(tests, keys_that_complete_a_publish, 0,
		sizeof(match_cases) / sizeof(match_cases[0]));
	tcase_add_test(tests, a_pointer_names_a_version);
	suite_add_tcase(suite, tests);
	return suite;
}
