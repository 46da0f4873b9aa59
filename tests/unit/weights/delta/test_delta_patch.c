#include "weights/delta/delta_patch.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/memory_fixture.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_delta_patch_suite(void);

enum { STEPS = 4, DELTAS_MOST = 8, PATH_BYTES = 512 };

static struct pair_fixture pair;
static struct memory_fixture memory;

static bool is_trl(int format)
{
	return format >= DELTA_TRL_GAP && format <= DELTA_TRL_V1;
}

/* Steps 0 to 3, and step 0 in memory. */
static void make_steps(bool bf16_alone)
{
	pair_fixture_setup(&pair, STEPS, bf16_alone);
	char *const path = pair_fixture_step(&pair, 0);
	memory_fixture_load(&memory, path);
	free(path);
}

static void teardown(void)
{
	memory_fixture_release(&memory);
	pair_fixture_teardown(&pair);
}

static void setup_bf16(void)
{
	make_steps(true);
}

static void setup_mixed(void)
{
	make_steps(false);
}

/* A patch with deltas of these names below the pair's folder, whatever else `params` has. */
static int patch(const struct delta_patch_params *params, const char *const *names, size_t count,
	bool *spoiled, struct error *err)
{
	struct delta_stats stats;
	const char *paths[DELTAS_MOST];
	ck_assert_uint_le(count, DELTAS_MOST);
	struct delta_patch_params whole = *params;
	whole.schema = memory.schema;
	whole.tensors = memory.tensors;
	whole.deltas = paths;
	whole.delta_count = count;
	for (size_t i = 0; i < count; i++)
		paths[i] = pair_fixture_path(&pair, names[i]);
	const int result = delta_patch(&whole, &stats, spoiled, err);
	for (size_t i = 0; i < count; i++)
		free((char *)paths[i]);
	return result;
}

static void expect_step(unsigned number)
{
	struct checkpoint *const wanted = pair_fixture_open(&pair, number);
	ck_assert(memory_fixture_equals(&memory, wanted));
	checkpoint_close(wanted);
}

static void expect_patched(const struct delta_patch_params *params, const char *const *names,
	size_t count, unsigned step)
{
	struct error err = {0};
	bool spoiled = true;
	ck_assert_msg(patch(params, names, count, &spoiled, &err) == 0, "%s", err.text);
	ck_assert(!spoiled);
	expect_step(step);
}

/* The tensors must be untouched unless the patch says that it spoiled them. */
static void expect_refused(const struct delta_patch_params *params, const char *name,
	enum error_kind kind, const char *message)
{
	struct error err = {0};
	bool spoiled = !params->proves_first;
	ck_assert_int_eq(patch(params, &name, 1, &spoiled, &err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert(!(spoiled && params->proves_first));
	ck_assert(memory_fixture_equals(&memory, memory.origin) == !spoiled);
}

static struct delta_stats apply_stats(const char *name)
{
	struct error err = {0};
	struct delta_stats stats;
	struct checkpoint *const base = pair_fixture_open(&pair, 0);
	char *const delta = pair_fixture_path(&pair, name);
	char *const out = pair_fixture_path(&pair, "back");
	const struct delta_apply_params params = {.base = base, .delta = delta, .out = out};
	ck_assert_msg(delta_apply(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(base);
	free(delta);
	free(out);
	return stats;
}

static void expect_same_stats(const struct delta_stats *ours, const struct delta_stats *apply)
{
	ck_assert(digest128_equal(&ours->base_digest, &apply->base_digest));
	ck_assert(digest128_equal(&ours->result_digest, &apply->result_digest));
	ck_assert_uint_eq(ours->elements, apply->elements);
	ck_assert_uint_eq(ours->changed_elements, apply->changed_elements);
	ck_assert_uint_eq(ours->changed_tensors, apply->changed_tensors);
	ck_assert_uint_eq(ours->tensors, apply->tensors);
	ck_assert_uint_eq(ours->delta_bytes, apply->delta_bytes);
	ck_assert_uint_eq(ours->full_bytes, schema_bytes(memory.schema));
}

START_TEST(each_format_gives_what_apply_gives)
{
	static const unsigned threads[] = {1, 4, 0};
	struct error err = {0};
	struct delta_stats stats;
	bool spoiled = true;
	pair_fixture_diff(&pair, 0, 1, (enum delta_format)_i, "delta");
	const struct delta_stats applied = apply_stats("delta");
	char *const path = pair_fixture_path(&pair, "delta");
	const char *const delta = path;
	for (unsigned i = 0; i < 2 * sizeof(threads) / sizeof(threads[0]); i++) {
		const struct delta_patch_params params = {
			.schema = memory.schema,
			.tensors = memory.tensors,
			.deltas = &delta,
			.delta_count = 1,
			.proves_first = i % 2 == 1,
			.threads = threads[i / 2],
		};
		memory_fixture_refill(&memory);
		ck_assert_msg(delta_patch(&params, &stats, &spoiled, &err) == 0, "%s", err.text);
		ck_assert(!spoiled);
		expect_step(1);
		expect_same_stats(&stats, &applied);
	}
	free(path);
}
END_TEST

START_TEST(several_deltas_are_applied_at_once)
{
	static const char *const names[] = {"one", "two", "three"};
	static const enum delta_format rows[][3] = {
		{DELTA_ULP_CLASS, DELTA_SLIME_XOR, DELTA_SLIME_OVERWRITE},
		{DELTA_SLIME_OVERWRITE, DELTA_ULP_CLASS, DELTA_ULP_CLASS},
		{DELTA_ULP_CLASS, DELTA_FULL, DELTA_SLIME_XOR},
		{DELTA_FULL, DELTA_ULP_CLASS, DELTA_FULL},
	};
	for (unsigned i = 0; i < 3; i++)
		pair_fixture_diff(&pair, i, i + 1, rows[_i][i], names[i]);
	for (unsigned i = 0; i < 4; i++) {
		const struct delta_patch_params params = {
			.proves_first = i % 2 == 1, .threads = 1 + 2 * (i / 2)};
		memory_fixture_refill(&memory);
		expect_patched(&params, names, 3, 3);
	}
	memory_fixture_refill(&memory);
	struct error err = {0};
	bool spoiled = true;
	const char *const gap[] = {"one", "three"};
	const struct delta_patch_params params = {.threads = 2};
	if (rows[_i][1] == DELTA_FULL || rows[_i][2] == DELTA_FULL)
		return;
	ck_assert_int_eq(patch(&params, gap, 2, &spoiled, &err), -1);
	ck_assert_msg(err.kind == ERROR_WRONG_BASE, "%s", err.text);
	ck_assert(!spoiled);
	expect_step(0);
}
END_TEST

START_TEST(a_chain_of_patches_needs_each_base_hashed_once)
{
	struct error err = {0};
	bool spoiled = true;
	struct digest128 digests[2][4];
	const char *const names[] = {"one", "two"};
	ck_assert_uint_eq(schema_count(memory.schema), 4);
	for (unsigned i = 0; i < 2; i++) {
		struct delta_patch_params params = {
			.base_tensor_digests = i == 1 ? digests[0] : NULL,
			.result_tensor_digests = digests[i],
			.proves_first = _i == 1,
		};
		pair_fixture_diff(&pair, i, i + 1, DELTA_ULP_CLASS, names[i]);
		expect_patched(&params, &names[i], 1, i + 1);
	}
	for (size_t i = 0; i < 4; i++) {
		struct checkpoint *const wanted = pair_fixture_open(&pair, 2);
		const struct digest128 digest = xxh3_128(checkpoint_tensor(wanted, i));
		ck_assert(digest128_equal(&digest, &digests[1][i]));
		checkpoint_close(wanted);
	}
	/* digests that are not those of the delta's base */
	const struct delta_patch_params params = {.base_tensor_digests = digests[0]};
	memory_fixture_refill(&memory);
	ck_assert_int_eq(patch(&params, names, 1, &spoiled, &err), -1);
	ck_assert_msg(err.kind == ERROR_WRONG_BASE && !spoiled, "%s", err.text);
	expect_step(0);
}
END_TEST

/* A real run's deltas as TRL writes them, without digests. */
START_TEST(a_real_series_is_patched)
{
	enum { REAL = 6 };
	struct error err = {0};
	struct delta_stats stats;
	bool spoiled = true;
	char *deltas[REAL];
	struct memory_fixture real;
	char *const base = fixture_data("small/anchors/step_000000.safetensors");
	char *const out = pair_fixture_path(&pair, "real.safetensors");
	memory_fixture_load(&real, base);
	for (unsigned i = 0; i < REAL; i++) {
		char name[64];
		snprintf(name, sizeof(name), "small/deltas/step_%06u.safetensors", i + 1);
		deltas[i] = fixture_data(name);
	}
	const struct delta_apply_params apply = {.base = real.origin,
		.deltas = (const char *const *)deltas,
		.delta_count = REAL,
		.out = out};
	ck_assert_msg(delta_apply(&apply, &stats, &err) == 0, "%s", err.text);
	struct digest128 result = stats.result_digest;
	const struct delta_patch_params params = {
		.schema = real.schema,
		.tensors = real.tensors,
		.deltas = apply.deltas,
		.delta_count = REAL,
		.expected_result = &result,
		.proves_first = _i == 1,
		.threads = 2,
	};
	ck_assert_msg(delta_patch(&params, &stats, &spoiled, &err) == 0, "%s", err.text);
	struct checkpoint *const wanted = checkpoint_open(out, &err);
	ck_assert(memory_fixture_equals(&real, wanted));
	ck_assert(!memory_fixture_equals(&real, real.origin));
	/* The same with our own format, back from the last step to the first. */
	char *const back = pair_fixture_path(&pair, "back.delta");
	const struct delta_diff_params diff = {
		.base = wanted, .next = real.origin, .format = DELTA_ULP_CLASS, .out = back};
	struct delta_patch_params again = params;
	const char *const path = back;
	again.deltas = &path;
	again.delta_count = 1;
	again.expected_result = NULL;
	ck_assert_msg(delta_diff(&diff, &stats, &err) == 0, "%s", err.text);
	ck_assert_msg(delta_patch(&again, &stats, &spoiled, &err) == 0, "%s", err.text);
	ck_assert(memory_fixture_equals(&real, real.origin));
	checkpoint_close(wanted);
	for (unsigned i = 0; i < REAL; i++)
		free(deltas[i]);
	memory_fixture_release(&real);
	free(base);
	free(out);
	free(back);
}
END_TEST

/* Changes an element of the tensor in memory and in what the tests take for untouched. */
static void damage(const char *tensor, uint64_t at)
{
	char *const path = pair_fixture_step(&pair, 0);
	const ptrdiff_t index = schema_find(memory.schema, span_text(tensor));
	const struct span bytes = checkpoint_tensor(memory.origin, (size_t)index);
	const struct span header = checkpoint_file(memory.origin, 0)->header;
	const uint64_t place = (uint64_t)(bytes.data - header.data) + at;
	memory_fixture_release(&memory);
	struct buffer file = fixture_read(path);
	file.data[place] ^= 1;
	char *const other = pair_fixture_path(&pair, "damaged.safetensors");
	fixture_write(other, buffer_span(&file));
	buffer_release(&file);
	memory_fixture_load(&memory, other);
	free(path);
	free(other);
}

/* The wrong byte lies in the last block, so that a single pass has written others before. */
START_TEST(a_wrong_base_is_told)
{
	const enum delta_format format = (enum delta_format)(_i / 2);
	if (format == DELTA_FULL)
		return;
	pair_fixture_diff(&pair, 0, 1, format, "delta");
	const struct digest128 nothing = {{0}};
	const ptrdiff_t large = schema_find(memory.schema, span_text("large"));
	damage("large", schema_tensor(memory.schema, (size_t)large)->bytes - 2);
	struct delta_patch_params params = {.proves_first = true, .threads = 1 + (_i % 2) * 3};
	expect_refused(&params, "delta", ERROR_WRONG_BASE, "delta");
	params.expected_base = &nothing;
	expect_refused(&params, "delta", ERROR_WRONG_BASE, "the caller expects");
	params.expected_base = NULL;
	params.proves_first = false;
	/* The formats that prove blocks or tensors end there. The others come to the end of the
	 * pass and then see that the base is another one. */
	const bool proves = format == DELTA_ULP_CLASS || format == DELTA_SLIME_XOR ||
		format == DELTA_SLIME_OVERWRITE;
	struct error err = {0};
	bool spoiled = false;
	const char *const name = "delta";
	ck_assert_int_eq(patch(&params, &name, 1, &spoiled, &err), -1);
	ck_assert_msg(err.kind == (proves ? ERROR_DIGEST_MISMATCH : ERROR_WRONG_BASE) &&
			strstr(err.text, "delta") != NULL,
		"%s", err.text);
	ck_assert(spoiled);
	ck_assert(!memory_fixture_equals(&memory, memory.origin));
}
END_TEST

START_TEST(a_base_that_is_wrong_from_the_start_is_not_spoiled)
{
	const struct delta_patch_params params = {.threads = 1};
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	damage("float", 0);
	expect_refused(&params, "delta", ERROR_WRONG_BASE, "this base is");
}
END_TEST

START_TEST(an_unwanted_result_is_refused)
{
	const struct digest128 nothing = {{0}};
	struct error err = {0};
	bool spoiled = false;
	const char *const name = "delta";
	struct delta_patch_params params = {
		.expected_result = &nothing, .proves_first = true, .threads = 2};
	pair_fixture_diff(&pair, 0, 1, (enum delta_format)_i, name);
	expect_refused(&params, name, ERROR_DIGEST_MISMATCH, "the caller says");
	params.proves_first = false;
	ck_assert_int_eq(patch(&params, &name, 1, &spoiled, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	ck_assert(spoiled);
}
END_TEST

/* The delta's safetensors file with one byte changed, or its end cut off. */
static void spoil_file(const char *path, struct span good, size_t at, bool cut)
{
	struct buffer bytes;
	buffer_init(&bytes, (size_t)1 << 30);
	buffer_add(&bytes, good.data, cut ? at : good.len);
	if (!cut)
		bytes.data[at] ^= 0x10;
	fixture_write(path, buffer_span(&bytes));
	buffer_release(&bytes);
}

START_TEST(a_damaged_delta_is_refused)
{
	enum { PLACES = 24 };
	static const char *const files[] = {
		[DELTA_ULP_CLASS] = "delta/delta.safetensors",
		[DELTA_SLIME_XOR] = "delta/model-00000-of-00001.safetensors",
		[DELTA_SLIME_OVERWRITE] = "delta/model-00000-of-00001.safetensors",
	};
	const enum delta_format format = (enum delta_format)(_i / 2);
	const char *const name = "delta";
	const struct delta_patch_params params = {.proves_first = _i % 2 == 1, .threads = 2};
	pair_fixture_diff(&pair, 0, 1, format, name);
	char *const path = pair_fixture_path(&pair, files[format]);
	struct buffer good = fixture_read(path);
	unsigned refused = 0;
	for (size_t i = 0; i < 2 * PLACES; i++) {
		struct error err = {0};
		bool spoiled = false;
		spoil_file(path, buffer_span(&good), good.len * (i / 2) / PLACES + i, i % 2 == 1);
		const int result = patch(&params, &name, 1, &spoiled, &err);
		if (result == 0)
			expect_step(1);
		else
			ck_assert(memory_fixture_equals(&memory, memory.origin) == !spoiled);
		ck_assert(!(spoiled && params.proves_first));
		refused += result != 0;
		memory_fixture_refill(&memory);
	}
	ck_assert_uint_ge(refused, 2 * PLACES - 2);
	fixture_write(path, buffer_span(&good));
	expect_patched(&params, &name, 1, 1);
	buffer_release(&good);
	free(path);
}
END_TEST

/* Ends the work when `most` bytes are done. */
struct watcher {
	struct work_watch watch;
	_Atomic uint64_t done;
	uint64_t most;
};

static int watch_step(struct work_watch *watch, uint64_t bytes, struct error *err)
{
	struct watcher *const watcher = (struct watcher *)watch;
	watcher->done += bytes;
	return watcher->done <= watcher->most ? 0 : error_set(err, ERROR_BUSY, "stopped");
}

START_TEST(a_watch_hears_and_ends_the_work)
{
	const char *const name = "delta";
	struct watcher watcher = {.watch = {watch_step}, .most = UINT64_MAX};
	struct delta_patch_params params = {
		.proves_first = _i % 2 == 1, .threads = 1 + (unsigned)_i, .watch = &watcher.watch};
	pair_fixture_diff(&pair, 0, 1, DELTA_SLIME_XOR, name);
	expect_patched(&params, &name, 1, 1);
	ck_assert_uint_eq(watcher.done, schema_bytes(memory.schema));
	for (uint64_t most = 0; most < schema_bytes(memory.schema); most += 1500000) {
		watcher.most = most;
		watcher.done = 0;
		memory_fixture_refill(&memory);
		expect_refused(&params, name, ERROR_BUSY, "stopped");
	}
}
END_TEST

/* Every dtype, also those below a byte; a scalar; empty tensors. */
static void write_all_dtypes(const char *path, unsigned seed)
{
	struct fixture_tensor tensors[DTYPE_COUNT + 4] = {{0}};
	char names[DTYPE_COUNT][16];
	for (unsigned i = 0; i < DTYPE_COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "t%02u", i);
		tensors[i] = (struct fixture_tensor){
			.name = names[i], .dtype = (enum dtype)i, .shape = {4, 6}, .seed = seed};
	}
	const struct fixture_tensor more[] = {
		{.name = "same.f32", .dtype = DTYPE_F32, .shape = {9}},
		{.name = "scalar", .dtype = DTYPE_BF16, .scalar = true, .seed = seed},
		{.name = "none", .dtype = DTYPE_BF16, .empty = true},
		{.name = "fp8.large", .dtype = DTYPE_F8_E4M3, .shape = {1200, 1000}, .seed = seed},
	};
	memcpy(tensors + DTYPE_COUNT, more, sizeof(more));
	fixture_write_tensors(path, tensors, DTYPE_COUNT + 4, true);
}

START_TEST(every_dtype_is_patched)
{
	struct error err = {0};
	struct delta_stats stats;
	bool spoiled = true;
	struct memory_fixture all;
	char *const base = pair_fixture_path(&pair, "all.0");
	char *const next = pair_fixture_path(&pair, "all.1");
	char *const out = pair_fixture_path(&pair, "all.delta");
	const char *const delta = out;
	write_all_dtypes(base, 1);
	write_all_dtypes(next, 2);
	memory_fixture_load(&all, base);
	struct checkpoint *const wanted = checkpoint_open(next, &err);
	ck_assert_msg(wanted != NULL, "%s", err.text);
	const struct delta_diff_params diff = {
		.base = all.origin, .next = wanted, .format = (enum delta_format)_i, .out = out};
	ck_assert_msg(delta_diff(&diff, &stats, &err) == 0, "%s", err.text);
	for (unsigned i = 0; i < 2; i++) {
		const struct delta_patch_params params = {
			.schema = all.schema,
			.tensors = all.tensors,
			.deltas = &delta,
			.delta_count = 1,
			.proves_first = i == 1,
			.threads = 3,
		};
		memory_fixture_refill(&all);
		ck_assert_msg(delta_patch(&params, &stats, &spoiled, &err) == 0, "%s", err.text);
		ck_assert(memory_fixture_equals(&all, wanted));
	}
	checkpoint_close(wanted);
	memory_fixture_release(&all);
	free(base);
	free(next);
	free(out);
}
END_TEST

START_TEST(tensors_that_share_memory_are_refused)
{
	struct delta_patch_params params = {.proves_first = _i == 1};
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	const size_t large = (size_t)schema_find(memory.schema, span_text("large"));
	const size_t small = (size_t)schema_find(memory.schema, span_text("small"));
	uint8_t *const own = memory.tensors[small];
	struct error err = {0};
	bool spoiled = true;
	const char *const name = "delta";
	memory.tensors[small] =
		memory.tensors[large] + schema_tensor(memory.schema, large)->bytes - 1;
	ck_assert_int_eq(patch(&params, &name, 1, &spoiled, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_msg(strstr(err.text, "'large' and 'small' share memory") != NULL, "%s", err.text);
	ck_assert(!spoiled);
	memory.tensors[small] = own;
	expect_step(0);
	expect_patched(&params, &name, 1, 1);
}
END_TEST

START_TEST(a_delta_of_other_tensors_is_refused)
{
	static const struct fixture_tensor fewer[] = {
		{.name = "small", .dtype = DTYPE_BF16, .shape = {10, 100}},
	};
	const struct delta_patch_params params = {0};
	struct error err = {0};
	bool spoiled = true;
	const char *const names[] = {"fewer", "missing"};
	char *const path = pair_fixture_path(&pair, names[0]);
	fixture_write_tensors(path, fewer, 1, true);
	expect_refused(&params, names[0], ERROR_SCHEMA_MISMATCH, "fewer");
	ck_assert_int_eq(patch(&params, &names[1], 1, &spoiled, &err), -1);
	ck_assert(err.kind == ERROR_NOT_FOUND && !spoiled);
	free(path);
}
END_TEST

Suite *test_delta_patch_suite(void)
{
	Suite *const suite = suite_create("delta_patch");
	TCase *const bf16 = tcase_create("bf16");
	tcase_add_checked_fixture(bf16, setup_bf16, teardown);
	tcase_set_timeout(bf16, 120);
	tcase_add_loop_test(bf16, each_format_gives_what_apply_gives, 0, DELTA_FORMATS);
	tcase_add_loop_test(bf16, a_wrong_base_is_told, 0, 2 * DELTA_FORMATS);
	suite_add_tcase(suite, bf16);
	TCase *const mixed = tcase_create("mixed");
	tcase_add_checked_fixture(mixed, setup_mixed, teardown);
	tcase_set_timeout(mixed, 120);
	tcase_add_loop_test(mixed, several_deltas_are_applied_at_once, 0, 4);
	tcase_add_loop_test(mixed, a_chain_of_patches_needs_each_base_hashed_once, 0, 2);
	tcase_add_loop_test(mixed, a_real_series_is_patched, 0, 2);
	tcase_add_test(mixed, a_base_that_is_wrong_from_the_start_is_not_spoiled);
	tcase_add_loop_test(mixed, an_unwanted_result_is_refused, 0, DELTA_SLIME_OVERWRITE + 1);
	tcase_add_loop_test(mixed, a_damaged_delta_is_refused, 0, 6);
	tcase_add_loop_test(mixed, a_watch_hears_and_ends_the_work, 0, 4);
	for (int i = 0; i < DELTA_FORMATS; i++)
		if (!is_trl(i))
			tcase_add_loop_test(mixed, every_dtype_is_patched, i, i + 1);
	tcase_add_loop_test(mixed, tensors_that_share_memory_are_refused, 0, 2);
	tcase_add_test(mixed, a_delta_of_other_tensors_is_refused);
	suite_add_tcase(suite, mixed);
	return suite;
}
