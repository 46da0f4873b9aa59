/* A power cut at any point leaves the output of diff, apply, fold and transcode whole or absent.
 * Once they have succeeded, the output stays. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/power_disk.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/fold.h"
#include "weights/model/checkpoint_source.h"

Suite *test_power_weights_suite(void);

enum { STEPS = 3, ELEMENTS = 3000 };

static char *scratch;
static char *steps[STEPS];  /* checkpoints in two shards, one of them in a folder of its own */
static char *deltas[STEPS]; /* [i]: from step i - 1 to i, as one file each */
static char *target;        /* a folder of its own, so that a cut copies no more than it has to */
static char *out;           /* in it */

static void write_in(const char *folder, const char *name, const char *text)
{
	char *const path = fixture_path(folder, name);
	fixture_write_text(path, text);
	free(path);
}

static void write_shard(const char *folder, const char *file, const char *tensor, unsigned step)
{
	char *const path = fixture_path(folder, file);
	uint16_t values[ELEMENTS];
	for (unsigned i = 0; i < ELEMENTS; i++)
		values[i] = (uint16_t)(0x3a00 + i % 512 + (i % 7 == 0 ? step : 0));
	const struct fixture_tensor made = {
		.name = tensor, .dtype = DTYPE_BF16, .shape = {ELEMENTS}, .data = values};
	fixture_write_tensors(path, &made, 1, true);
	free(path);
}

static void write_step(const char *folder, unsigned step)
{
	write_shard(folder, "model-1.safetensors", "a", step);
	write_shard(folder, "part/model-2.safetensors", "b", step);
	write_in(folder, "config.json", "{}");
	write_in(folder, "model.safetensors.index.json",
		"{\"weight_map\":{\"a\":\"model-1.safetensors\","
		"\"b\":\"part/model-2.safetensors\"}}");
}

static struct checkpoint *open_step(unsigned step)
{
	struct error err = {0};
	struct checkpoint *const checkpoint = checkpoint_open(steps[step], &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	return checkpoint;
}

static void diff(
	unsigned step, enum delta_format format, const char *to, const struct file_ops *files)
{
	struct error err = {0};
	struct delta_stats stats;
	struct checkpoint *const base = open_step(step - 1);
	struct checkpoint *const next = open_step(step);
	const struct delta_diff_params params = {.base = base,
		.next = next,
		.format = format,
		.model_version = step,
		.threads = 2,
		.out = to,
		.files = files};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(next);
	checkpoint_close(base);
}

static void set_up(void)
{
	static const char *const names[STEPS] = {"step-0", "step-1", "step-2"};
	static const char *const delta_names[STEPS] = {"delta-0", "delta-1", "delta-2"};
	scratch = unit_scratch_make();
	for (unsigned i = 0; i < STEPS; i++) {
		steps[i] = fixture_path(scratch, names[i]);
		deltas[i] = fixture_path(scratch, delta_names[i]);
		write_step(steps[i], i);
		if (i > 0)
			diff(i, DELTA_SLIME_XOR, deltas[i], NULL);
	}
	struct error err = {0};
	target = fixture_path(scratch, "target");
	out = fixture_path(target, "out");
	ck_assert_int_eq(file_make_folder(file_system(), target, 0755, &err), 0);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < STEPS; i++) {
		free(steps[i]);
		free(deltas[i]);
	}
	free(out);
	free(target);
	unit_scratch_remove(scratch);
}

static void make_delta(const struct file_ops *files)
{
	diff(1, DELTA_ULP_CLASS, out, files);
}

static void apply(const struct file_ops *files)
{
	struct error err = {0};
	struct delta_stats stats;
	struct checkpoint *const base = open_step(0);
	const struct delta_apply_params params = {
		.base = base, .delta = deltas[1], .out = out, .threads = 2, .files = files};
	ck_assert_msg(delta_apply(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(base);
}

/* Folds as `fold --base` does, and as `transcode` does with one delta. */
static void fold_over_base(const struct file_ops *files)
{
	struct error err = {0};
	struct delta_stats stats;
	struct model_files base_files = {0};
	struct checkpoint *const base = open_step(0);
	struct tensor_source *const source = checkpoint_source_new(base);
	ck_assert_int_eq(model_files_of(&base_files, base, &err), 0);
	const struct fold_params params = {.base = source,
		.base_files = &base_files,
		.deltas = (const char *const *)deltas + 1,
		.count = 2,
		.format = DELTA_TRL_GAP,
		.threads = 2,
		.out = out,
		.files = files};
	ck_assert_msg(fold(&params, &stats, &err) == 0, "%s", err.text);
	model_files_release(&base_files);
	tensor_source_free(source);
	checkpoint_close(base);
}

static void fold_alone(const struct file_ops *files)
{
	struct error err = {0};
	struct delta_stats stats;
	const struct fold_params params = {.deltas = (const char *const *)deltas + 1,
		.count = 2,
		.threads = 2,
		.out = out,
		.files = files};
	ck_assert_msg(fold(&params, &stats, &err) == 0, "%s", err.text);
}

static const struct {
	const char *name;
	void (*run)(const struct file_ops *files);
} works[] = {
	{"diff", make_delta},
	{"apply", apply},
	{"fold --base", fold_over_base},
	{"fold", fold_alone},
};
enum { WORKS = sizeof(works) / sizeof(works[0]) };

START_TEST(a_result_is_whole_or_absent)
{
	const enum power_cut cut = (enum power_cut)(_i % POWER_CUTS);
	const char *const name = works[_i / POWER_CUTS].name;
	struct power_disk *const disk = power_disk_new(target);
	size_t count;
	power_disk_cut_each(disk, cut);
	works[_i / POWER_CUTS].run(power_disk_files(disk));
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	for (size_t i = 0; i < count; i++) {
		char *const left = fixture_path(taken[i].folder, "out");
		ck_assert_msg(!file_exists(left) || fixture_same_tree(left, out),
			"%s, cut %d before \"%s\"", name, cut, taken[i].line);
		free(left);
	}
	char *const survived = power_disk_cut(disk, cut);
	char *const left = fixture_path(survived, "out");
	ck_assert_msg(file_exists(left) && fixture_same_tree(left, out), "%s, cut %d at the end",
		name, cut);
	free(left);
	unit_scratch_remove(survived);
	power_disk_free(disk);
}
END_TEST

/* Content must be on the disk before the name that leads to it, also in a folder that the program
 * has made itself. */
START_TEST(content_comes_before_names)
{
	struct power_disk *const disk = power_disk_new(target);
	apply(power_disk_files(disk));
	const char *const trace = power_disk_trace(disk);
	const char *const renamed = strstr(trace, "rename .part-* out\n");
	ck_assert_ptr_nonnull(renamed);
	static const char *const before[] = {"sync .part-*/model-1.safetensors\n",
		"sync .part-*/part/model-2.safetensors\n", "sync .part-*/config.json\n",
		"sync .part-*/model.safetensors.index.json\n", "sync-folder .part-*/part\n",
		"sync-folder .part-*\n"};
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const char *const found = strstr(trace, before[i]);
		ck_assert_msg(found != NULL && found < renamed,
			"%s is not before the rename in\n%s", before[i], trace);
	}
	ck_assert_str_eq(renamed, "rename .part-* out\nsync-folder .\n");
	power_disk_free(disk);
}
END_TEST

Suite *test_power_weights_suite(void)
{
	Suite *const suite = suite_create("power_weights");
	TCase *const tests = tcase_create("power_weights");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_result_is_whole_or_absent, 0, WORKS * POWER_CUTS);
	tcase_add_test(tests, content_comes_before_names);
	suite_add_tcase(suite, tests);
	return suite;
}
