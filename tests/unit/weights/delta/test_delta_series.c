/* The real RL series in tests/data/small: deltas as TRL writes them, and the SHA-256 of every full
 * checkpoint. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/codec/block_code.h"
#include "weights/delta/delta.h"

Suite *test_delta_series_suite(void);

enum { STEPS = 24 };

static char *step_path(const char *folder, unsigned step)
{
	char name[64];
	snprintf(name, sizeof(name), "step_%06u.safetensors", step);
	return fixture_path(folder, name);
}

/* The published SHA-256 of a step's full checkpoint. */
static void expected_sum(unsigned step, char out[2 * SHA256_BYTES + 1])
{
	char *const path = fixture_data("small/SHA256SUMS");
	struct buffer sums = fixture_read(path);
	char name[64];
	snprintf(name, sizeof(name), "step_%06u.safetensors", step);
	const char *const at = strstr(buffer_text(&sums), name);
	ck_assert_ptr_nonnull(at);
	ck_assert_int_ge(at - buffer_text(&sums), 2 * SHA256_BYTES + 2);
	snprintf(out, 2 * SHA256_BYTES + 1, "%s", at - 2 * SHA256_BYTES - 2);
	buffer_release(&sums);
	free(path);
}

static void expect_sum(const char *path, unsigned step)
{
	char expected[2 * SHA256_BYTES + 1];
	char actual[2 * SHA256_BYTES + 1];
	uint8_t digest[SHA256_BYTES];
	struct buffer bytes = fixture_read(path);
	expected_sum(step, expected);
	sha256(buffer_span(&bytes), digest);
	encode_hex(span_of(digest, sizeof(digest)), actual);
	ck_assert_msg(strcmp(actual, expected) == 0, "step %u", step);
	buffer_release(&bytes);
}

static struct checkpoint *open_good(const char *path)
{
	struct error err = {0};
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	ck_assert_msg(checkpoint != NULL, "%s", err.text);
	return checkpoint;
}

static struct delta_stats apply_good(const char *base_path, const char *delta, const char *out)
{
	struct error err = {0};
	struct delta_stats stats = {0};
	struct checkpoint *const base = open_good(base_path);
	const struct delta_apply_params params = {
		.base = base, .delta = delta, .out = out, .threads = 2};
	ck_assert_msg(delta_apply(&params, &stats, &err) == 0, "%s", err.text);
	checkpoint_close(base);
	return stats;
}

/* Makes every step below `folder` from the anchor and TRL's deltas. */
static void expand(const char *folder)
{
	char *const anchors = fixture_data("small/anchors");
	char *const deltas = fixture_data("small/deltas");
	char *const anchor = step_path(anchors, 0);
	char *previous = step_path(folder, 0);
	struct buffer bytes = fixture_read(anchor);
	fixture_write(previous, buffer_span(&bytes));
	buffer_release(&bytes);
	expect_sum(previous, 0);
	for (unsigned step = 1; step <= STEPS; step++) {
		char *const delta = step_path(deltas, step);
		char *const next = step_path(folder, step);
		const struct delta_stats stats = apply_good(previous, delta, next);
		const struct digest128 none = {0};
		ck_assert(digest128_equal(&stats.base_digest, &none));
		ck_assert(!digest128_equal(&stats.result_digest, &none));
		ck_assert_uint_eq(stats.elements, 625536);
		expect_sum(next, step);
		free(previous);
		free(delta);
		previous = next;
	}
	free(previous);
	free(anchor);
	free(anchors);
	free(deltas);
}

START_TEST(trl_deltas_give_every_checkpoint)
{
	char *const folder = unit_scratch_make();
	expand(folder);
	unit_scratch_remove(folder);
}
END_TEST

static void expect_round_trip(const char *folder, unsigned step, enum delta_format format)
{
	struct error err = {0};
	struct delta_stats made = {0};
	char *const base_path = step_path(folder, step - 1);
	char *const next_path = step_path(folder, step);
	char *const delta = fixture_path(folder, "delta");
	char *const back = fixture_path(folder, "back");
	struct checkpoint *const base = open_good(base_path);
	struct checkpoint *const next = open_good(next_path);
	const struct delta_diff_params params = {
		.base = base,
		.next = next,
		.format = format,
		.model_version = step,
		.threads = 2,
		.out = delta,
	};
	ck_assert_msg(delta_diff(&params, &made, &err) == 0, "%s", err.text);
	struct delta_summary summary;
	ck_assert_msg(delta_inspect(delta, &summary, &err) == 0, "%s", err.text);
	ck_assert(summary.is_delta && summary.has_digests);
	ck_assert_uint_eq(summary.format, format);
	ck_assert_uint_eq(summary.changed_elements, made.changed_elements);
	const struct delta_stats applied = apply_good(base_path, delta, back);
	ck_assert(digest128_equal(&applied.base_digest, &made.base_digest));
	ck_assert(digest128_equal(&applied.result_digest, &made.result_digest));
	ck_assert_uint_eq(applied.changed_elements, made.changed_elements);
	ck_assert_uint_eq(applied.full_bytes, made.full_bytes);
	ck_assert_uint_eq(applied.delta_bytes, made.delta_bytes);
	ck_assert(fixture_same_file(back, next_path));
	ck_assert_int_eq(file_remove_tree(file_system(), delta, &err), 0);
	ck_assert_int_eq(unlink(back), 0);
	checkpoint_close(base);
	checkpoint_close(next);
	free(base_path);
	free(next_path);
	free(delta);
	free(back);
}

START_TEST(our_deltas_give_every_checkpoint_too)
{
	char *const folder = unit_scratch_make();
	expand(folder);
	for (unsigned step = 1; step <= STEPS; step++)
		expect_round_trip(folder, step, (enum delta_format)_i);
	unit_scratch_remove(folder);
}
END_TEST

/* Encodes one tensor on one path, which must give the same block as the portable path, and decodes
 * it again. No tensor here is larger than a block. */
static size_t expect_block(struct block_code_context *context, enum dtype dtype, struct span base,
	struct span next, const struct buffer *portable, struct block_code_stats *stats)
{
	struct error err;
	struct block_code_facts facts;
	struct buffer block;
	buffer_init(&block, 1 << 20);
	block_code_encode(context, dtype, base, next, &block, stats);
	ck_assert(span_equal(buffer_span(&block), buffer_span(portable)));
	uint8_t *const back = memory_new(next.len);
	ck_assert_int_eq(block_code_parse(buffer_span(&block), dtype, next.len, &facts, &err), 0);
	ck_assert_int_eq(
		block_code_decode(context, dtype, buffer_span(&block), base, back, &err), 0);
	ck_assert_mem_eq(back, next.data, next.len);
	const size_t bytes = block.len;
	free(back);
	buffer_release(&block);
	return bytes;
}

START_TEST(real_steps_take_seven_bits_a_change_on_every_path)
{
	static const enum block_code_path paths[] = {
		BLOCK_CODE_PORTABLE, BLOCK_CODE_AVX2, BLOCK_CODE_AVX512};
	char *const folder = unit_scratch_make();
	expand(folder);
	for (unsigned step = 1; step <= STEPS; step++) {
		char *const base_path = step_path(folder, step - 1);
		char *const next_path = step_path(folder, step);
		struct checkpoint *const base = open_good(base_path);
		struct checkpoint *const next = open_good(next_path);
		for (size_t path = 0; path < sizeof(paths) / sizeof(paths[0]); path++) {
			struct block_code_context *const context = block_code_context_new();
			struct block_code_context *const portable = block_code_context_new();
			struct block_code_stats stats = {0};
			size_t bytes = 0;
			ck_assert(block_code_context_use(portable, BLOCK_CODE_PORTABLE));
			const bool works = block_code_context_use(context, paths[path]);
			for (size_t i = 0; works && i < schema_count(checkpoint_schema(next));
				i++) {
				const struct span old = checkpoint_tensor(base, i);
				const struct span new = checkpoint_tensor(next, i);
				struct buffer expected;
				buffer_init(&expected, 1 << 20);
				block_code_encode(portable, DTYPE_BF16, old, new, &expected, NULL);
				bytes += expect_block(
					context, DTYPE_BF16, old, new, &expected, &stats);
				buffer_release(&expected);
			}
			ck_assert_uint_le(8 * bytes, 71 * stats.changed / 10);
			block_code_context_free(context);
			block_code_context_free(portable);
		}
		checkpoint_close(base);
		checkpoint_close(next);
		free(base_path);
		free(next_path);
	}
	unit_scratch_remove(folder);
}
END_TEST

/* Tensors with one name in both files must be the same. TRL's file has empty tensors for parameters
 * that did not change. */
START_TEST(our_gaps_are_those_of_the_original_files)
{
	char *const folder = unit_scratch_make();
	char *const deltas = fixture_data("small/deltas");
	char *const theirs_path = step_path(deltas, 1);
	char *const base_path = fixture_data("small/anchors/step_000000.safetensors");
	char *const next_path = step_path(folder, 1);
	char *const ours_path = fixture_path(folder, "ours");
	struct error err = {0};
	struct delta_stats stats = apply_good(base_path, theirs_path, next_path);
	struct checkpoint *const base = open_good(base_path);
	struct checkpoint *const next = open_good(next_path);
	const struct delta_diff_params params = {.base = base,
		.next = next,
		.format = DELTA_TRL_GAP,
		.model_version = 1,
		.out = ours_path};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	/* A delta is a safetensors file, so the checkpoint reader shows its tensors. */
	struct checkpoint *const theirs = open_good(theirs_path);
	struct checkpoint *const ours = open_good(ours_path);
	const struct safetensors *const header = checkpoint_file(ours, 0)->shard;
	const struct safetensors *const original = checkpoint_file(theirs, 0)->shard;
	static const char *const keys[] = {"format", "version", "sparse", "model_version",
		"encoding", "num_changed_params", "total_changed_elements", "total_elements",
		"sparsity"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct span value = safetensors_metadata_find(header, keys[i]);
		ck_assert_ptr_nonnull(value.data);
		ck_assert_msg(span_equal(value, safetensors_metadata_find(original, keys[i])),
			"%s is %.*s", keys[i], (int)value.len, value.data);
	}
	for (size_t i = 0; i < schema_count(checkpoint_schema(theirs)); i++) {
		const struct schema_tensor *const tensor =
			schema_tensor(checkpoint_schema(theirs), i);
		const ptrdiff_t at = schema_find(checkpoint_schema(ours), tensor->name);
		ck_assert(at >= 0 || tensor->bytes == 0);
		if (at >= 0) {
			ck_assert_uint_eq(schema_tensor(checkpoint_schema(ours), (size_t)at)->dtype,
				tensor->dtype);
			ck_assert(span_equal(
				checkpoint_tensor(ours, (size_t)at), checkpoint_tensor(theirs, i)));
		}
	}
	checkpoint_close(base);
	checkpoint_close(next);
	checkpoint_close(theirs);
	checkpoint_close(ours);
	free(deltas);
	free(theirs_path);
	free(base_path);
	free(next_path);
	free(ours_path);
	unit_scratch_remove(folder);
}
END_TEST

Suite *test_delta_series_suite(void)
{
	Suite *const suite = suite_create("delta_series");
	TCase *const tcase = tcase_create("delta_series");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, real_steps_take_seven_bits_a_change_on_every_path);
	tcase_add_test(tcase, trl_deltas_give_every_checkpoint);
	tcase_add_loop_test(tcase, our_deltas_give_every_checkpoint_too, 0, DELTA_FULL);
	tcase_add_test(tcase, our_gaps_are_those_of_the_original_files);
	suite_add_tcase(suite, tcase);
	return suite;
}
