#include "weights/delta/delta.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_delta_suite(void);

/* The scratch folder holds only `base`, `next`, `delta` and `back`. */
static char *scratch;
static char *base_path;
static char *next_path;
static char *delta_path;
static char *back_path;

static void setup(void)
{
	scratch = unit_scratch_make();
	base_path = fixture_path(scratch, "base");
	next_path = fixture_path(scratch, "next");
	delta_path = fixture_path(scratch, "delta");
	back_path = fixture_path(scratch, "back");
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
	free(base_path);
	free(next_path);
	free(delta_path);
	free(back_path);
}

static struct checkpoint *open_good(const char *path)
{
	struct error err = {0};
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	return checkpoint;
}

static int try_diff(enum delta_format format, const struct file_ops *files,
	struct delta_stats *stats, struct error *err)
{
	struct checkpoint *const base = open_good(base_path);
	struct checkpoint *const next = open_good(next_path);
	const struct delta_diff_params params = {
		.base = base,
		.next = next,
		.format = format,
		.model_version = 7,
		.threads = 2,
		.out = delta_path,
		.files = files,
	};
	const int result = delta_diff(&params, stats, err);
	checkpoint_close(base);
	checkpoint_close(next);
	return result;
}

static struct delta_stats diff_good(enum delta_format format)
{
	struct error err = {0};
	struct delta_stats stats = {0};
	ck_assert_msg(try_diff(format, NULL, &stats, &err) == 0, "%s", err.text);
	return stats;
}

static int try_apply(const struct file_ops *files, struct error *err)
{
	struct delta_stats stats;
	struct checkpoint *const base = open_good(base_path);
	const struct delta_apply_params params = {
		.base = base, .delta = delta_path, .out = back_path, .threads = 2, .files = files};
	const int result = delta_apply(&params, &stats, err);
	checkpoint_close(base);
	return result;
}

static void apply_good(void)
{
	struct error err = {0};
	ck_assert_msg(try_apply(NULL, &err) == 0, "%s", err.text);
	ck_assert(fixture_same_tree(back_path, next_path));
}

static void expect_refusal(enum error_kind kind, const char *message)
{
	struct error err = {0};
	const size_t entries = fixture_entries(scratch);
	ck_assert_int_eq(try_apply(NULL, &err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s",
		error_kind_name(err.kind), err.text);
	ck_assert_uint_eq(fixture_entries(scratch), entries);
	ck_assert(!file_exists(back_path));
}

static void discard(const char *path)
{
	struct error err = {0};
	ck_assert_msg(file_remove_tree(file_system(), path, &err) == 0, "%s", err.text);
}

static void write_in(const char *folder, const char *name, const char *text)
{
	char *const path = fixture_path(folder, name);
	fixture_write_text(path, text);
	free(path);
}

static void tensors_in(const char *folder, const char *name, const struct fixture_tensor *tensors,
	size_t count, bool format_pt)
{
	char *const path = fixture_path(folder, name);
	fixture_write_tensors(path, tensors, count, format_pt);
	free(path);
}

/* Writes a tensor of every dtype; the values of an odd `seed` differ between seeds. */
static void write_all_dtypes(const char *path, unsigned seed)
{
	struct fixture_tensor tensors[DTYPE_COUNT + 3] = {{0}};
	char names[DTYPE_COUNT][16];
	for (unsigned i = 0; i < DTYPE_COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "t%02u", i);
		tensors[i] = (struct fixture_tensor){
			.name = names[i], .dtype = (enum dtype)i, .shape = {4, 6}, .seed = seed};
	}
	tensors[DTYPE_COUNT] =
		(struct fixture_tensor){.name = "same.f32", .dtype = DTYPE_F32, .shape = {9}};
	tensors[DTYPE_COUNT + 1] =
		(struct fixture_tensor){.name = "same.bf16", .dtype = DTYPE_BF16, .shape = {9}};
	tensors[DTYPE_COUNT + 2] =
		(struct fixture_tensor){.name = "none", .dtype = DTYPE_BF16, .empty = true};
	fixture_write_tensors(path, tensors, DTYPE_COUNT + 3, true);
}

static bool is_trl(int format)
{
	return format >= DELTA_TRL_GAP && format <= DELTA_TRL_V1;
}

START_TEST(every_dtype_comes_back_exactly)
{
	struct error err = {0};
	struct delta_stats stats = {0};
	write_all_dtypes(base_path, 1);
	write_all_dtypes(next_path, 2);
	const int result = try_diff((enum delta_format)_i, NULL, &stats, &err);
	if (is_trl(_i)) {
		/* These formats hold only BF16; the message names the first other tensor. */
		ck_assert_int_eq(result, -1);
		ck_assert_msg(
			err.kind == ERROR_UNSUPPORTED && strstr(err.text, "'t00' is U64") != NULL,
			"%s", err.text);
		ck_assert(!file_exists(delta_path));
		return;
	}
	ck_assert_msg(result == 0, "%s", err.text);
	ck_assert_uint_eq(stats.tensors, DTYPE_COUNT + 3);
	ck_assert_uint_eq(stats.changed_tensors, DTYPE_COUNT);
	ck_assert_uint_eq(stats.elements, DTYPE_COUNT * 24 + 18);
	apply_good();
}
END_TEST

/* Bit patterns that arithmetic could change: zeros of both signs, subnormals, infinities, NaNs with
 * payloads. */
START_TEST(every_bit_pattern_comes_back_exactly)
{
	enum { COUNT = 65536 };
	uint16_t *const base = memory_new_array(COUNT, 2);
	uint16_t *const next = memory_new_array(COUNT, 2);
	uint64_t state = 5;
	for (unsigned i = 0; i < COUNT; i++) {
		base[i] = (uint16_t)i;
		next[i] = fixture_random(&state);
	}
	const struct fixture_tensor left = {
		.name = "w", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = base};
	const struct fixture_tensor right = {
		.name = "w", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = next};
	fixture_write_tensors(base_path, &left, 1, true);
	fixture_write_tensors(next_path, &right, 1, true);
	diff_good((enum delta_format)_i);
	apply_good();
	free(base);
	free(next);
}
END_TEST

/* Element counts around the strides of the loops, with no, one and all elements changed. */
START_TEST(every_tail_comes_back_exactly)
{
	static const uint64_t counts[] = {
		1, 2, 31, 32, 33, 63, 65535, 65536, 65537, 131072, 200001};
	const uint64_t count = counts[_i / 4];
	const unsigned kind = (unsigned)_i % 4;
	uint16_t *const base = memory_new_array(count, 2);
	uint16_t *const next = memory_new_array(count, 2);
	if (kind == 1)
		next[0] = 1;
	if (kind == 2)
		next[count - 1] = 1;
	for (uint64_t i = 0; kind == 3 && i < count; i++)
		next[i] = 0x8000;
	const struct fixture_tensor left[] = {{.name = "odd", .dtype = DTYPE_U8, .shape = {1}},
		{.name = "w", .dtype = DTYPE_BF16, .shape = {count}, .data = base}};
	const struct fixture_tensor right[] = {
		left[0], {.name = "w", .dtype = DTYPE_BF16, .shape = {count}, .data = next}};
	fixture_write_tensors(base_path, left, 2, true);
	fixture_write_tensors(next_path, right, 2, true);
	const struct delta_stats stats = diff_good(DELTA_TRL_GAP);
	ck_assert_uint_eq(stats.changed_elements, kind == 0 ? 0 : kind == 3 ? count : 1);
	apply_good();
	free(base);
	free(next);
}
END_TEST

static enum dtype index_dtype(const char *name)
{
	struct checkpoint *const delta = open_good(delta_path);
	const struct safetensors_tensor *const tensor =
		safetensors_find(checkpoint_file(delta, 0)->shard, span_text(name));
	ck_assert_ptr_nonnull(tensor);
	const enum dtype dtype = tensor->dtype;
	checkpoint_close(delta);
	return dtype;
}

/* Some megabytes that change everywhere, so the delta is large too. */
START_TEST(large_changes_come_back_exactly)
{
	const struct fixture_tensor old = {.name = "w", .dtype = DTYPE_BF16, .shape = {1536, 1024}};
	struct fixture_tensor new = old;
	new.seed = 1;
	fixture_write_tensors(base_path, &old, 1, true);
	fixture_write_tensors(next_path, &new, 1, true);
	diff_good((enum delta_format)_i);
	apply_good();
}
END_TEST

START_TEST(wide_gaps_take_32_bits)
{
	enum { COUNT = 70000 };
	uint16_t *const base = memory_new_array(COUNT, 2);
	uint16_t *const near = memory_new_array(COUNT, 2);
	uint16_t *const far = memory_new_array(COUNT, 2);
	near[65535] = 1;
	far[65536] = 1;
	const struct fixture_tensor left[] = {
		{.name = "far", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = base},
		{.name = "near", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = base}};
	const struct fixture_tensor right[] = {
		{.name = "far", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = far},
		{.name = "near", .dtype = DTYPE_BF16, .shape = {COUNT}, .data = near}};
	fixture_write_tensors(base_path, left, 2, true);
	fixture_write_tensors(next_path, right, 2, true);
	diff_good(DELTA_TRL_GAP);
	ck_assert_uint_eq(index_dtype("near.idx"), DTYPE_U16);
	ck_assert_uint_eq(index_dtype("far.idx"), DTYPE_U32);
	apply_good();
	free(base);
	free(near);
	free(far);
}
END_TEST

static const struct fixture_tensor w1 = {
	.name = "w", .dtype = DTYPE_BF16, .shape = {40}, .seed = 1};
static const struct fixture_tensor w2 = {
	.name = "w", .dtype = DTYPE_BF16, .shape = {40}, .seed = 2};
static const struct fixture_tensor v1 = {.name = "v", .dtype = DTYPE_BF16, .shape = {8}, .seed = 1};
static const struct fixture_tensor v2 = {.name = "v", .dtype = DTYPE_BF16, .shape = {8}, .seed = 2};

static void write_pair(void)
{
	fixture_write_tensors(base_path, &w1, 1, true);
	fixture_write_tensors(next_path, &w2, 1, true);
}

START_TEST(the_result_has_the_publishers_header)
{
	fixture_write_tensors(base_path, &w1, 1, true);
	fixture_write_tensors(next_path, &w2, 1, false);
	diff_good(DELTA_TRL_GAP);
	apply_good();
	discard(back_path);
	discard(delta_path);
	/* Only white space in the header changes. */
	fixture_write_raw(next_path,
		"{\n\"w\":{\"dtype\":\"BF16\",\"shape\":[ 40 ],\"data_offsets\":[0,80]}} \t", 80);
	fixture_write_raw(base_path,
		"{\"w\":{\"dtype\":\"BF16\",\"shape\":[40],\"data_offsets\":[0,80]}}", 80);
	const struct delta_stats stats = diff_good(DELTA_TRL_RAW);
	ck_assert_uint_eq(stats.changed_tensors, 0);
	ck_assert(digest128_equal(&stats.base_digest, &stats.result_digest));
	apply_good();
}
END_TEST

START_TEST(folders_come_back_with_all_their_files)
{
	const struct fixture_tensor base_tensors[] = {w1, v1};
	const struct fixture_tensor next_tensors[] = {w2, v1};
	tensors_in(base_path, "model.safetensors", base_tensors, 2, true);
	tensors_in(next_path, "model.safetensors", next_tensors, 2, true);
	write_in(base_path, "config.json", "{}");
	write_in(next_path, "config.json", "{}");
	write_in(base_path, "tokenizer/vocab.txt", "old");
	write_in(next_path, "tokenizer/vocab.txt", "new");
	write_in(base_path, "gone.txt", "x");
	write_in(next_path, "deep/er/added.bin", "");
	diff_good((enum delta_format)_i);
	char *const unchanged = fixture_path(delta_path, "files/config.json");
	char *const changed = fixture_path(delta_path, "files/tokenizer/vocab.txt");
	ck_assert(!file_exists(unchanged));
	ck_assert(file_exists(changed));
	apply_good();
	discard(back_path);
	fixture_write_text(changed, "bad");
	expect_refusal(ERROR_DIGEST_MISMATCH, "vocab.txt");
	discard(changed);
	expect_refusal(ERROR_INVALID, "vocab.txt");
	free(unchanged);
	free(changed);
}
END_TEST

static const char index_of_two[] =
	"{\"metadata\":{\"total_size\":96},\"weight_map\":{\"v\":\"m-1.safetensors\",\"w\":\"m-2.safetensors\"}}";
static const char index_swapped[] =
	"{\"metadata\":{\"total_size\":96},\"weight_map\":{\"v\":\"m-2.safetensors\",\"w\":\"m-1.safetensors\"}}";

static void write_sharded(const char *folder, const struct fixture_tensor *v,
	const struct fixture_tensor *w, bool swapped)
{
	tensors_in(folder, "m-1.safetensors", swapped ? w : v, 1, true);
	tensors_in(folder, "m-2.safetensors", swapped ? v : w, 1, true);
	write_in(folder, "model.safetensors.index.json", swapped ? index_swapped : index_of_two);
	write_in(folder, "config.json", "{}");
}

START_TEST(sharded_checkpoints_give_sharded_deltas)
{
	write_sharded(base_path, &v1, &w1, false);
	write_sharded(next_path, &v2, &w2, false);
	const struct delta_stats stats = diff_good((enum delta_format)_i);
	static const char *const names[DELTA_FORMATS][2] = {
		[DELTA_ULP_CLASS] = {"model-00001-of-00002.safetensors",
			"model-00002-of-00002.safetensors"},
		[DELTA_SLIME_XOR] = {"model-00000-of-00002.safetensors",
			"model-00001-of-00002.safetensors"},
		[DELTA_SLIME_OVERWRITE] = {"model-00000-of-00002.safetensors",
			"model-00001-of-00002.safetensors"},
		[DELTA_TRL_GAP] = {"delta-00001-of-00002.safetensors",
			"delta-00002-of-00002.safetensors"},
		[DELTA_TRL_RAW] = {"delta-00001-of-00002.safetensors",
			"delta-00002-of-00002.safetensors"},
		[DELTA_TRL_V1] = {"delta-00001-of-00002.safetensors",
			"delta-00002-of-00002.safetensors"},
	};
	char *const one = fixture_path(delta_path, names[_i][0]);
	char *const two = fixture_path(delta_path, names[_i][1]);
	struct delta_summary summary;
	struct error err = {0};
	ck_assert(file_exists(one) && file_exists(two));
	ck_assert_msg(delta_inspect(delta_path, &summary, &err) == 0, "%s", err.text);
	ck_assert(summary.is_delta && summary.has_digests);
	ck_assert_uint_eq(summary.changed_tensors, 2);
	ck_assert_uint_eq(summary.format, _i);
	ck_assert(digest128_equal(&summary.result_digest, &stats.result_digest));
	apply_good();
	discard(back_path);
	discard(two);
	expect_refusal(ERROR_INVALID, names[_i][1]);
	/* A shard of another delta takes its place. */
	struct buffer bytes = fixture_read(one);
	fixture_write(two, buffer_span(&bytes));
	expect_refusal(ERROR_INVALID, "the delta");
	buffer_release(&bytes);
	free(one);
	free(two);
}
END_TEST

START_TEST(resharding_is_by_name)
{
	write_sharded(base_path, &v1, &w1, false);
	write_sharded(next_path, &v1, &w2, true);
	const struct delta_stats stats = diff_good(DELTA_TRL_GAP);
	char *const only = fixture_path(delta_path, "delta-00001-of-00001.safetensors");
	ck_assert_uint_eq(stats.changed_tensors, 1);
	ck_assert(file_exists(only));
	apply_good();
	free(only);
}
END_TEST

START_TEST(a_file_becomes_a_folder_and_back)
{
	const struct fixture_tensor base_tensors[] = {w1, v1};
	fixture_write_tensors(base_path, base_tensors, 2, true);
	write_sharded(next_path, &v2, &w2, false);
	diff_good(DELTA_TRL_GAP);
	apply_good();
	discard(delta_path);
	discard(back_path);
	char *const other = fixture_path(scratch, "other");
	ck_assert_int_eq(rename(base_path, other), 0);
	ck_assert_int_eq(rename(next_path, base_path), 0);
	ck_assert_int_eq(rename(other, next_path), 0);
	diff_good(DELTA_TRL_GAP);
	apply_good();
	free(other);
}
END_TEST

START_TEST(no_change_is_a_delta_too)
{
	write_sharded(base_path, &v1, &w1, false);
	write_sharded(next_path, &v1, &w1, false);
	const struct delta_stats stats = diff_good((enum delta_format)_i);
	ck_assert_uint_eq(stats.changed_tensors, 0);
	ck_assert_uint_eq(fixture_entries(delta_path), 1);
	apply_good();
}
END_TEST

START_TEST(given_digests_are_used)
{
	struct error err = {0};
	struct delta_stats stats;
	struct digest128 base_digest;
	struct digest128 next_digest;
	write_pair();
	const struct delta_stats plain = diff_good(DELTA_TRL_GAP);
	struct checkpoint *const base = open_good(base_path);
	struct checkpoint *const next = open_good(next_path);
	ck_assert_int_eq(checkpoint_tensor_digests(base, 1, NULL, &base_digest, NULL), 0);
	ck_assert_int_eq(checkpoint_tensor_digests(next, 1, NULL, &next_digest, NULL), 0);
	char *const other = fixture_path(scratch, "other");
	const struct delta_diff_params diff = {
		.base = base,
		.next = next,
		.base_tensor_digests = &base_digest,
		.next_tensor_digests = &next_digest,
		.model_version = 7,
		.format = DELTA_TRL_GAP,
		.out = other,
	};
	ck_assert_msg(delta_diff(&diff, &stats, &err) == 0, "%s", err.text);
	ck_assert(fixture_same_file(other, delta_path));
	ck_assert(digest128_equal(&stats.base_digest, &plain.base_digest));
	struct delta_apply_params apply = {
		.base = base,
		.delta = delta_path,
		.out = back_path,
		.base_tensor_digests = &base_digest,
		.expected_result = &plain.result_digest,
	};
	ck_assert_msg(delta_apply(&apply, &stats, &err) == 0, "%s", err.text);
	ck_assert(fixture_same_file(back_path, next_path));
	discard(back_path);
	apply.base_tensor_digests = &next_digest;
	ck_assert_int_eq(delta_apply(&apply, &stats, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_WRONG_BASE);
	apply.base_tensor_digests = NULL;
	apply.expected_result = &plain.base_digest;
	ck_assert_int_eq(delta_apply(&apply, &stats, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	ck_assert(!file_exists(back_path));
	ck_assert_uint_eq(fixture_entries(scratch), 4);
	checkpoint_close(base);
	checkpoint_close(next);
	free(other);
}
END_TEST

START_TEST(another_base_is_refused_before_anything_is_written)
{
	write_pair();
	diff_good(DELTA_TRL_GAP);
	fixture_write_tensors(base_path, &w2, 1, true);
	expect_refusal(ERROR_WRONG_BASE, "the delta was made from the base");
	fixture_write_tensors(base_path, &v1, 1, true);
	expect_refusal(ERROR_WRONG_BASE, "the delta was made from the base");
	/* The right weights under another header: the result's files would differ from the
	 * publisher's. */
	fixture_write_tensors(base_path, &w1, 1, false);
	expect_refusal(ERROR_WRONG_BASE, "another header");
}
END_TEST

START_TEST(another_base_folder_is_refused)
{
	write_sharded(base_path, &v1, &w1, false);
	write_sharded(next_path, &v2, &w2, false);
	diff_good(DELTA_TRL_GAP);
	write_in(base_path, "config.json", "{ }");
	expect_refusal(ERROR_WRONG_BASE, "config.json");
	char *const config = fixture_path(base_path, "config.json");
	discard(config);
	expect_refusal(ERROR_WRONG_BASE, "config.json");
	free(config);
}
END_TEST

START_TEST(schemas_must_agree)
{
	static const struct fixture_tensor others[] = {
		{.name = "x", .dtype = DTYPE_BF16, .shape = {40}},
		{.name = "w", .dtype = DTYPE_F16, .shape = {40}},
		{.name = "w", .dtype = DTYPE_BF16, .shape = {4, 10}},
		{.name = "w", .dtype = DTYPE_BF16, .shape = {41}},
	};
	const struct fixture_tensor two[] = {w1, v1};
	struct delta_stats stats;
	for (size_t i = 0; i < 6; i++) {
		struct error err = {0};
		fixture_write_tensors(base_path, two, i == 4 ? 2 : 1, true);
		fixture_write_tensors(next_path, i < 4 ? &others[i] : two, i == 5 ? 2 : 1, true);
		ck_assert_int_eq(try_diff(DELTA_TRL_GAP, NULL, &stats, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_SCHEMA_MISMATCH);
		ck_assert(!file_exists(delta_path));
	}
}
END_TEST

START_TEST(what_exists_is_not_overwritten)
{
	struct error err = {0};
	struct delta_stats stats;
	write_pair();
	fixture_write_text(delta_path, "mine");
	ck_assert_int_eq(try_diff(DELTA_TRL_GAP, NULL, &stats, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	discard(delta_path);
	diff_good(DELTA_TRL_GAP);
	fixture_write_text(back_path, "mine");
	ck_assert_int_eq(try_apply(NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	struct buffer bytes = fixture_read(back_path);
	ck_assert_str_eq(buffer_text(&bytes), "mine");
	buffer_release(&bytes);
}
END_TEST

START_TEST(full_and_delta_are_told_apart)
{
	struct error err = {0};
	struct delta_summary summary = {.is_delta = true};
	write_pair();
	fixture_write_tensors(delta_path, &w2, 1, true);
	apply_good();
	discard(back_path);
	ck_assert_int_eq(delta_inspect(next_path, &summary, &err), 0);
	ck_assert(!summary.is_delta);
	discard(delta_path);
	write_sharded(delta_path, &v1, &w1, false);
	expect_refusal(ERROR_SCHEMA_MISMATCH, "the full checkpoint does not have");
	ck_assert_int_eq(delta_inspect(delta_path, &summary, &err), 0);
	ck_assert(!summary.is_delta);
	discard(delta_path);
	expect_refusal(ERROR_NOT_FOUND, "delta");
	ck_assert_int_eq(delta_inspect(delta_path, &summary, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	fixture_write_text(delta_path, "hello");
	ck_assert_int_eq(delta_inspect(delta_path, &summary, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

/* Each fault strikes at each place where it can, once or from then on. The call fails, the base is
 * unchanged, and nothing is left. */
static void strike(bool apply, bool stays, int kind, int failure, enum error_kind expected)
{
	struct buffer before = {0};
	char *const base_file = fixture_path(base_path, "m-1.safetensors");
	before = fixture_read(base_file);
	int struck = 0;
	for (;; struck++) {
		struct error err = {0};
		struct delta_stats stats;
		struct file_faults faults;
		const size_t entries = fixture_entries(scratch);
		file_faults_init(&faults, kind, struck, failure);
		faults.sticky = stays;
		if ((apply ? try_apply(&faults.ops, &err)
			   : try_diff(DELTA_TRL_GAP, &faults.ops, &stats, &err)) == 0)
			break;
		ck_assert_msg(err.kind == expected, "%s", err.text);
		ck_assert_uint_eq(fixture_entries(scratch), entries);
		ck_assert(!file_exists(apply ? back_path : delta_path));
	}
	ck_assert_int_gt(struck, 0);
	struct buffer after = fixture_read(base_file);
	ck_assert(span_equal(buffer_span(&before), buffer_span(&after)));
	buffer_release(&before);
	buffer_release(&after);
	free(base_file);
}

static const struct {
	int kind;
	int failure;
	enum error_kind expected;
} fault_rows[] = {
	{FILE_FAULT_WRITE, ENOSPC, ERROR_NO_SPACE},
	{FILE_FAULT_SYNC, EIO, ERROR_IO},
	{FILE_FAULT_RENAME, EIO, ERROR_IO},
	{FILE_FAULT_OPEN, EMFILE, ERROR_IO},
};

START_TEST(faults_leave_nothing_behind)
{
	const bool apply = _i % 2 == 1;
	write_sharded(base_path, &v1, &w1, false);
	write_sharded(next_path, &v2, &w2, false);
	write_in(next_path, "added.txt", "x");
	if (apply)
		diff_good(DELTA_TRL_GAP);
	strike(apply, _i / 2 % 2 == 1, fault_rows[_i / 4].kind, fault_rows[_i / 4].failure,
		fault_rows[_i / 4].expected);
	ck_assert(!apply || fixture_same_tree(back_path, next_path));
}
END_TEST

START_TEST(formats_have_names)
{
	static const char *const names[] = {"ulp-class", "slime-xor", "slime-overwrite", "trl-gap",
		"trl-raw", "trl-v1", "full"};
	enum delta_format format = DELTA_TRL_V1;
	for (unsigned i = 0; i < DELTA_FORMATS; i++) {
		ck_assert_str_eq(delta_format_name((enum delta_format)i), names[i]);
		ck_assert(delta_format_parse(span_text(names[i]), &format));
		ck_assert_uint_eq(format, i);
	}
	ck_assert(!delta_format_parse(span_text("trl"), &format));
	ck_assert(!delta_format_parse(span_text(""), &format));
}
END_TEST

Suite *test_delta_suite(void)
{
	Suite *const suite = suite_create("delta");
	TCase *const tcase = tcase_create("delta");
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_dtype_comes_back_exactly, 0, DELTA_FORMATS);
	tcase_add_loop_test(tcase, every_bit_pattern_comes_back_exactly, 0, DELTA_FORMATS);
	tcase_add_loop_test(tcase, every_tail_comes_back_exactly, 0, 44);
	tcase_add_loop_test(tcase, large_changes_come_back_exactly, 0, DELTA_FORMATS);
	tcase_add_test(tcase, wide_gaps_take_32_bits);
	tcase_add_test(tcase, the_result_has_the_publishers_header);
	tcase_add_loop_test(tcase, folders_come_back_with_all_their_files, 0, DELTA_FULL);
	tcase_add_loop_test(tcase, sharded_checkpoints_give_sharded_deltas, 0, DELTA_FULL);
	tcase_add_test(tcase, resharding_is_by_name);
	tcase_add_test(tcase, a_file_becomes_a_folder_and_back);
	tcase_add_loop_test(tcase, no_change_is_a_delta_too, 0, DELTA_FULL);
	tcase_add_test(tcase, given_digests_are_used);
	tcase_add_test(tcase, another_base_is_refused_before_anything_is_written);
	tcase_add_test(tcase, another_base_folder_is_refused);
	tcase_add_test(tcase, schemas_must_agree);
	tcase_add_test(tcase, what_exists_is_not_overwritten);
	tcase_add_test(tcase, full_and_delta_are_told_apart);
	tcase_add_loop_test(tcase, faults_leave_nothing_behind, 0, 16);
	tcase_add_test(tcase, formats_have_names);
	suite_add_tcase(suite, tcase);
	return suite;
}
