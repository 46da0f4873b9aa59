#include "weights/delta/fold.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/delta_survey.h"

Suite *test_fold_suite(void);

enum { STEPS = 3 };
static struct pair_fixture pair;
static char *names[STEPS + 1]; /* the delta from step i - 1 to i is names[i] */

static void make(bool bf16_alone)
{
	pair_fixture_setup(&pair, STEPS + 1, bf16_alone);
	for (unsigned i = 1; i <= STEPS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "d%u", i);
		names[i] = pair_fixture_path(&pair, name);
	}
}

static void setup(void)
{
	make(false);
}

static void setup_bf16(void)
{
	make(true);
}

static void teardown(void)
{
	for (unsigned i = 1; i <= STEPS; i++)
		free(names[i]);
	pair_fixture_teardown(&pair);
}

static void diff_all(enum delta_format format)
{
	for (unsigned i = 1; i <= STEPS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "d%u", i);
		pair_fixture_diff(&pair, i - 1, i, format, name);
	}
}

/* Folds over step `base`, or without a base if that is below 0. */
static int try_fold(int base, const char *const *deltas, size_t count, enum delta_format format,
	struct delta_stats *stats, struct error *err)
{
	struct checkpoint *const checkpoint =
		base >= 0 ? pair_fixture_open(&pair, (unsigned)base) : NULL;
	struct tensor_source *const source =
		checkpoint != NULL ? checkpoint_source_new(checkpoint) : NULL;
	struct model_files files = {0};
	char *const out = pair_fixture_path(&pair, "folded");
	if (checkpoint != NULL)
		ck_assert_int_eq(model_files_of(&files, checkpoint, err), 0);
	const struct fold_params params = {
		.base = source,
		.base_files = checkpoint != NULL ? &files : NULL,
		.deltas = deltas,
		.count = count,
		.format = format,
		.threads = 3,
		.out = out,
	};
	const int result = fold(&params, stats, err);
	model_files_release(&files);
	tensor_source_free(source);
	checkpoint_close(checkpoint);
	free(out);
	return result;
}

static struct delta_stats fold_good(int base, size_t count, enum delta_format format)
{
	struct error err = {0};
	struct delta_stats stats = {0};
	ck_assert_msg(
		try_fold(base, (const char *const *)(names + 1), count, format, &stats, &err) == 0,
		"%s", err.text);
	return stats;
}

static void expect_refused(int base, const char *const *deltas, size_t count, enum error_kind kind,
	const char *message)
{
	struct error err = {0};
	struct delta_stats stats;
	const size_t entries = fixture_entries(pair.scratch);
	ck_assert_int_eq(try_fold(base, deltas, count, DELTA_ULP_CLASS, &stats, &err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert_uint_eq(fixture_entries(pair.scratch), entries);
}

static struct delta_summary inspect(const char *name)
{
	struct error err = {0};
	struct delta_summary summary = {0};
	char *const path = pair_fixture_path(&pair, name);
	ck_assert_msg(delta_inspect(path, &summary, &err) == 0, "%s", err.text);
	free(path);
	return summary;
}

START_TEST(deltas_of_every_format_fold_over_a_base)
{
	diff_all((enum delta_format)_i);
	const struct delta_stats stats = fold_good(0, STEPS, DELTA_ULP_CLASS);
	struct delta_stats direct = pair_fixture_diff(&pair, 0, STEPS, DELTA_ULP_CLASS, "direct");
	const struct delta_summary summary = inspect("folded");
	ck_assert_uint_eq(stats.changed_elements, direct.changed_elements);
	ck_assert_uint_eq(stats.payload_bytes, direct.payload_bytes);
	ck_assert(digest128_equal(&stats.result_digest, &direct.result_digest));
	ck_assert_int_eq(summary.format, DELTA_ULP_CLASS);
	if (_i != DELTA_FULL) {
		ck_assert(summary.has_step && summary.step == STEPS);
		ck_assert(summary.has_base_step && summary.base_step == 0);
	}
	pair_fixture_expect(&pair, 0, "folded", STEPS);
}
END_TEST

START_TEST(one_delta_becomes_another_format)
{
	static const enum delta_format froms[] = {DELTA_ULP_CLASS, DELTA_SLIME_XOR, DELTA_TRL_RAW};
	diff_all(froms[_i / DELTA_FORMATS]);
	const enum delta_format to = (enum delta_format)(_i % DELTA_FORMATS);
	fold_good(0, 1, to);
	ck_assert(to == DELTA_FULL ? !inspect("folded").is_delta : inspect("folded").format == to);
	pair_fixture_expect(&pair, 0, "folded", 1);
}
END_TEST

START_TEST(without_a_base_xor_and_trl_fold)
{
	static const enum delta_format formats[] = {
		DELTA_SLIME_XOR, DELTA_TRL_GAP, DELTA_TRL_RAW, DELTA_TRL_V1};
	diff_all(formats[_i]);
	fold_good(-1, STEPS, DELTA_ULP_CLASS);
	const struct delta_summary summary = inspect("folded");
	ck_assert_int_eq(summary.format, formats[_i]);
	ck_assert(summary.has_digests);
	ck_assert(summary.step == STEPS && summary.has_base_step && summary.base_step == 0);
	pair_fixture_expect(&pair, 0, "folded", STEPS);
}
END_TEST

START_TEST(without_a_base_others_do_not)
{
	static const enum delta_format formats[] = {
		DELTA_ULP_CLASS, DELTA_SLIME_OVERWRITE, DELTA_FULL};
	diff_all(formats[_i]);
	expect_refused(
		-1, (const char *const *)(names + 1), STEPS, ERROR_UNSUPPORTED, "give --base");
}
END_TEST

START_TEST(kinds_do_not_mix_without_a_base)
{
	pair_fixture_diff(&pair, 0, 1, DELTA_SLIME_XOR, "d1");
	pair_fixture_diff(&pair, 1, 2, DELTA_TRL_GAP, "d2");
	expect_refused(-1, (const char *const *)(names + 1), 2, ERROR_UNSUPPORTED, "two kinds");
	/* with a base they fold */
	fold_good(0, 2, DELTA_ULP_CLASS);
	pair_fixture_expect(&pair, 0, "folded", 2);
}
END_TEST

/* The deltas must be given in the order of their steps. */
START_TEST(missing_and_misplaced_links_are_named)
{
	static const enum delta_format formats[] = {
		DELTA_ULP_CLASS, DELTA_SLIME_XOR, DELTA_TRL_GAP};
	const int base = _i < 3 ? 0 : -1;
	const enum delta_format format = formats[_i < 3 ? _i : _i - 2];
	diff_all(format);
	const char *const missing[] = {names[1], names[3]};
	const char *const swapped[] = {names[2], names[1]};
	const char *const twice[] = {names[1], names[1]};
	expect_refused(
		base, missing, 2, ERROR_WRONG_BASE, "a delta is missing, or the order is wrong");
	expect_refused(base, missing, 2, ERROR_WRONG_BASE, names[3]);
	expect_refused(base, swapped, 2, ERROR_WRONG_BASE,
		base < 0 ? names[1] : "the delta was made from the base");
	expect_refused(base, twice, 2, ERROR_WRONG_BASE, names[1]);
}
END_TEST

START_TEST(the_wrong_base_is_refused)
{
	diff_all(DELTA_ULP_CLASS);
	expect_refused(1, (const char *const *)(names + 1), 2, ERROR_WRONG_BASE,
		"the delta was made from the base");
	const char *const absent[] = {names[1], "/nowhere/at/all"};
	expect_refused(0, absent, 2, ERROR_NOT_FOUND, "/nowhere/at/all");
}
END_TEST

START_TEST(what_is_undone_is_no_change)
{
	char *const zero = pair_fixture_step(&pair, 0);
	char *const back = pair_fixture_step(&pair, 2);
	struct buffer bytes = fixture_read(zero);
	fixture_write(back, buffer_span(&bytes));
	pair_fixture_diff(&pair, 0, 1, DELTA_SLIME_XOR, "d1");
	pair_fixture_diff(&pair, 1, 2, DELTA_SLIME_XOR, "d2");
	const struct delta_stats stats = fold_good(-1, 2, DELTA_ULP_CLASS);
	ck_assert_uint_eq(stats.changed_tensors, 0);
	pair_fixture_expect(&pair, 0, "folded", 0);
	buffer_release(&bytes);
	free(zero);
	free(back);
}
END_TEST

/* One pass applies several deltas and writes only the last result. */
START_TEST(deltas_are_applied_one_upon_another)
{
	static const enum delta_format formats[] = {
		DELTA_ULP_CLASS, DELTA_SLIME_OVERWRITE, DELTA_TRL_GAP};
	struct error err = {0};
	struct delta_stats stats;
	char *const out = pair_fixture_path(&pair, "back");
	char *const wanted = pair_fixture_step(&pair, STEPS);
	struct checkpoint *const base = pair_fixture_open(&pair, 0);
	for (unsigned i = 1; i <= STEPS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "d%u", i);
		pair_fixture_diff(&pair, i - 1, i, formats[i - 1], name);
	}
	struct delta_apply_params params = {
		.base = base,
		.deltas = (const char *const *)(names + 1),
		.delta_count = STEPS,
		.out = out,
		.threads = 3,
	};
	ck_assert_msg(delta_apply(&params, &stats, &err) == 0, "%s", err.text);
	ck_assert(fixture_same_tree(out, wanted));
	ck_assert_int_eq(file_remove_tree(file_system(), out, &err), 0);
	params.deltas = (const char *const *)(names + 2);
	params.delta_count = 2;
	ck_assert_int_eq(delta_apply(&params, &stats, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_WRONG_BASE);
	ck_assert(!file_exists(out));
	checkpoint_close(base);
	free(out);
	free(wanted);
}
END_TEST

START_TEST(a_survey_counts_what_changed)
{
	struct error err = {0};
	struct delta_survey survey;
	const struct delta_stats stats =
		pair_fixture_diff(&pair, 0, 1, (enum delta_format)_i, "d1");
	struct delta_reader *const reader = delta_reader_open(names[1], &err);
	struct checkpoint *const base = pair_fixture_open(&pair, 0);
	struct tensor_source *const source = checkpoint_source_new(base);
	ck_assert_msg(delta_survey_make(&survey, reader, source, 2, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(survey.elements, stats.elements);
	ck_assert_uint_eq(survey.total.payload_bytes, stats.payload_bytes);
	if (_i != DELTA_FULL) {
		uint64_t steps = 0;
		ck_assert_uint_eq(survey.count, stats.changed_tensors);
		ck_assert_uint_eq(survey.total.stats.changed, stats.changed_elements);
		for (unsigned i = 0; i < 5; i++)
			steps += survey.total.stats.ulp_steps[i];
		ck_assert_uint_gt(steps, 0);
		ck_assert_uint_le(steps, stats.changed_elements);
		ck_assert_uint_gt(survey.total.stats.ulp_steps[0], survey.total.stats.ulp_steps[4]);
	}
	delta_survey_release(&survey);
	tensor_source_free(source);
	checkpoint_close(base);
	delta_reader_close(reader);
}
END_TEST

Suite *test_fold_suite(void)
{
	Suite *const suite = suite_create("fold");
	TCase *const mixed = tcase_create("every dtype");
	TCase *const bf16 = tcase_create("bf16");
	tcase_set_timeout(mixed, 120);
	tcase_set_timeout(bf16, 120);
	tcase_add_checked_fixture(mixed, setup, teardown);
	tcase_add_checked_fixture(bf16, setup_bf16, teardown);
	tcase_add_loop_test(bf16, deltas_of_every_format_fold_over_a_base, 0, DELTA_FORMATS);
	tcase_add_loop_test(bf16, one_delta_becomes_another_format, 0, 3 * DELTA_FORMATS);
	tcase_add_loop_test(bf16, without_a_base_xor_and_trl_fold, 0, 4);
	tcase_add_loop_test(bf16, missing_and_misplaced_links_are_named, 0, 5);
	tcase_add_test(bf16, kinds_do_not_mix_without_a_base);
	tcase_add_test(bf16, deltas_are_applied_one_upon_another);
	tcase_add_loop_test(bf16, a_survey_counts_what_changed, 0, DELTA_FORMATS);
	tcase_add_loop_test(mixed, without_a_base_others_do_not, 0, 3);
	tcase_add_test(mixed, the_wrong_base_is_refused);
	tcase_add_test(mixed, what_is_undone_is_no_change);
	suite_add_tcase(suite, bf16);
	suite_add_tcase(suite, mixed);
	return suite;
}
