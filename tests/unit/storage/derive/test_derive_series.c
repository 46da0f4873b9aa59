#include "tests/unit/unit.h"

#include <math.h>

#include "storage/derive/derive_series.h"

static bool same_series(const char *a, const char *b)
{
	const struct digest128 schema = {{1}};
	const struct digest128 first = derive_series_key(3, span_text(a), &schema);
	const struct digest128 second = derive_series_key(3, span_text(b), &schema);
	return digest128_equal(&first, &second);
}

START_TEST(test_keys_that_differ_in_digits_are_of_one_series)
{
	ck_assert(same_series(
		"ckpt/step_000009/model.safetensors", "ckpt/step_000010/model.safetensors"));
	ck_assert(same_series("ckpt/step_9/model.safetensors", "ckpt/step_10/model.safetensors"));
	ck_assert(same_series("a.safetensors", "a.safetensors"));
	ck_assert(!same_series("ckpt/step_9/model.safetensors", "ckpt/step_9/other.safetensors"));
	ck_assert(!same_series("ckpt/step_9/model.safetensors", "ckpt/step_/model.safetensors"));
	ck_assert(!same_series("other/step_9/model.safetensors", "ckpt/step_9/model.safetensors"));
}
END_TEST

START_TEST(test_buckets_and_schemas_are_kept_apart)
{
	const struct digest128 schema = {{1}};
	const struct digest128 other = {{2}};
	const struct digest128 key = derive_series_key(3, span_text("a1"), &schema);
	const struct digest128 bucket = derive_series_key(4, span_text("a1"), &schema);
	const struct digest128 tensors = derive_series_key(3, span_text("a1"), &other);
	ck_assert(!digest128_equal(&key, &bucket));
	ck_assert(!digest128_equal(&key, &tensors));
}
END_TEST

/* The bytes that `count` checkpoints take if a delta over n steps has `first` n^0.7 bytes.
 * *out_roots: how many of them are plain. */
static double simulate(unsigned count, double size, double first, unsigned *out_roots)
{
	struct derive_series series = derive_series_begin(1, (uint64_t)size);
	double total = size;
	*out_roots = 1;
	for (int64_t i = 2; i <= (int64_t)count; i++) {
		const double of_head =
			series.head == 0 ? 0 : first * pow((double)(i - series.head), 0.7);
		const double of_root = first * pow((double)(i - series.root), 0.7);
		if (series.head != 0 && derive_series_keeps_head(&series, (uint64_t)of_head)) {
			derive_series_add(&series, (uint64_t)of_head);
			total += of_head;
		} else if (derive_series_keeps_root(&series, (uint64_t)of_root)) {
			derive_series_add_head(&series, i, (uint64_t)of_root);
			total += of_root;
		} else {
			series = derive_series_begin(i, (uint64_t)size);
			total += size;
			(*out_roots)++;
		}
	}
	return total;
}

START_TEST(test_a_drifting_series)
{
	unsigned roots;
	ck_assert_double_lt(simulate(32, 1e9, 6e6, &roots), 1.65e9);
	ck_assert_uint_eq(roots, 1);
	const double each = simulate(1000, 1e9, 6e6, &roots) / 1000;
	ck_assert_uint_gt(roots, 2);
	ck_assert_uint_lt(roots, 40);
	ck_assert_double_lt(each, 0.06e9);
}
END_TEST

START_TEST(test_a_series_that_does_not_drift)
{
	struct derive_series series = derive_series_begin(1, 1000000);
	ck_assert(!derive_series_keeps_head(&series, 10));
	ck_assert(derive_series_keeps_root(&series, 10));
	derive_series_add_head(&series, 2, 10);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert(derive_series_keeps_head(&series, 10));
		derive_series_add(&series, 10);
	}
	ck_assert(!derive_series_keeps_head(&series, 20));
	ck_assert(derive_series_keeps_root(&series, 20));
}
END_TEST

Suite *test_derive_series_suite(void);
Suite *test_derive_series_suite(void)
{
	Suite *const suite = suite_create("derive_series");
	TCase *const tests = tcase_create("derive_series");
	tcase_add_test(tests, test_keys_that_differ_in_digits_are_of_one_series);
	tcase_add_test(tests, test_buckets_and_schemas_are_kept_apart);
	tcase_add_test(tests, test_a_drifting_series);
	tcase_add_test(tests, test_a_series_that_does_not_drift);
	suite_add_tcase(suite, tests);
	return suite;
}
