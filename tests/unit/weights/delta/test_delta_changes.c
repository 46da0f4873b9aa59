#include "weights/delta/delta_changes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/memory_fixture.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_patch.h"

Suite *test_delta_changes_suite(void);

static struct pair_fixture pair;

static void setup(void)
{
	pair_fixture_setup(&pair, 2, false);
}

static void teardown(void)
{
	pair_fixture_teardown(&pair);
}

static bool is_trl(int format)
{
	return format >= DELTA_TRL_GAP && format <= DELTA_TRL_V1;
}

/* Writes the positions of the elements that differ to the caller's array; returns their count. */
static uint64_t find_changes(
	struct span base, struct span next, enum dtype dtype, uint64_t *positions)
{
	const size_t width = dtype_bits(dtype) < 8 ? 1 : dtype_bits(dtype) / 8;
	uint64_t count = 0;
	for (size_t i = 0; i < base.len / width; i++)
		if (memcmp(base.data + i * width, next.data + i * width, width) != 0)
			positions[count++] = i;
	return count;
}

static void expect_changes(const struct delta_changes *changes, const struct checkpoint *base,
	const struct checkpoint *next, size_t tensor)
{
	const struct schema_tensor *const facts = schema_tensor(checkpoint_schema(base), tensor);
	uint64_t *const wanted = memory_new_array((size_t)facts->bytes, sizeof(wanted[0]));
	uint64_t *const actual = memory_new_array((size_t)facts->bytes, sizeof(actual[0]));
	const uint64_t count = find_changes(checkpoint_tensor(base, tensor),
		checkpoint_tensor(next, tensor), facts->dtype, wanted);
	ck_assert_uint_eq(delta_changes_count(changes, tensor), count);
	delta_changes_positions(changes, tensor, actual);
	if (count > 0)
		ck_assert_mem_eq(actual, wanted, count * sizeof(wanted[0]));
	free(wanted);
	free(actual);
}

/* The delta "delta" between two checkpoints. */
struct measured {
	struct checkpoint *base;
	struct checkpoint *next;
	char *delta;
};

static struct measured measured_pair(enum delta_format format, const char *base, const char *next)
{
	struct error err = {0};
	struct delta_stats stats;
	struct measured measured = {.base = checkpoint_open(base, &err),
		.next = checkpoint_open(next, &err),
		.delta = pair_fixture_path(&pair, "delta")};
	ck_assert(measured.base != NULL && measured.next != NULL);
	const struct delta_diff_params params = {.base = measured.base,
		.next = measured.next,
		.format = format,
		.out = measured.delta};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	return measured;
}

/* TRL's formats hold only BF16, so they get pairs of these alone. */
static struct measured measured_steps(enum delta_format format)
{
	if (is_trl(format)) {
		pair_fixture_teardown(&pair);
		pair_fixture_setup(&pair, 2, true);
	}
	char *const base = pair_fixture_step(&pair, 0);
	char *const next = pair_fixture_step(&pair, 1);
	const struct measured measured = measured_pair(format, base, next);
	free(base);
	free(next);
	return measured;
}

static void measured_release(struct measured *measured)
{
	checkpoint_close(measured->base);
	checkpoint_close(measured->next);
	free(measured->delta);
}

static void expect_patch_gathers(const struct measured *measured, bool proves_first)
{
	struct error err = {0};
	struct delta_stats stats;
	bool spoiled = true;
	struct memory_fixture memory;
	memory_fixture_load(&memory, checkpoint_file(measured->base, 0)->full_path);
	struct delta_changes *const changes = delta_changes_new(memory.schema);
	const char *const delta = measured->delta;
	const struct delta_patch_params params = {
		.schema = memory.schema,
		.tensors = memory.tensors,
		.deltas = &delta,
		.delta_count = 1,
		.changes = changes,
		.proves_first = proves_first,
		.threads = 3,
	};
	for (unsigned i = 0; i < 2; i++) {
		memory_fixture_refill(&memory);
		delta_changes_reset(changes);
		ck_assert_msg(delta_patch(&params, &stats, &spoiled, &err) == 0, "%s", err.text);
		for (size_t k = 0; k < schema_count(memory.schema); k++)
			expect_changes(changes, measured->base, measured->next, k);
	}
	delta_changes_free(changes);
	memory_fixture_release(&memory);
}

START_TEST(a_patch_gathers_what_it_changes)
{
	struct measured measured = measured_steps((enum delta_format)_i);
	expect_patch_gathers(&measured, false);
	expect_patch_gathers(&measured, true);
	measured_release(&measured);
}
END_TEST

/* Reads all tensors of the delta, with a base or without. */
static void expect_read(const struct measured *measured, bool has_base)
{
	struct error err = {0};
	const struct schema *const schema = checkpoint_schema(measured->base);
	struct delta_changes *const changes = delta_changes_new(schema);
	struct tensor_source *const base = checkpoint_source_new(measured->base);
	struct delta_reader *const reader = delta_reader_open(measured->delta, &err);
	ck_assert_msg(reader != NULL, "%s", err.text);
	for (size_t i = 0; i < schema_count(schema); i++) {
		ck_assert_msg(
			delta_changes_read(changes, reader, has_base ? base : NULL, i, &err) == 0,
			"%s", err.text);
		expect_changes(changes, measured->base, measured->next, i);
	}
	delta_reader_close(reader);
	tensor_source_free(base);
	delta_changes_free(changes);
}

static void expect_compared(const struct measured *measured)
{
	struct error err = {0};
	const struct schema *const schema = checkpoint_schema(measured->base);
	struct delta_changes *const changes = delta_changes_new(schema);
	struct tensor_source *const base = checkpoint_source_new(measured->base);
	struct tensor_source *const next = checkpoint_source_new(measured->next);
	for (size_t i = 0; i < schema_count(schema); i++) {
		ck_assert_int_eq(delta_changes_compare(changes, base, next, i, &err), 0);
		expect_changes(changes, measured->base, measured->next, i);
	}
	tensor_source_free(base);
	tensor_source_free(next);
	delta_changes_free(changes);
}

static void expect_unsupported(const struct measured *measured)
{
	struct error err = {0};
	const struct schema *const schema = checkpoint_schema(measured->base);
	const ptrdiff_t large = schema_find(schema, span_text("large"));
	struct delta_changes *const changes = delta_changes_new(schema);
	struct delta_reader *const reader = delta_reader_open(measured->delta, &err);
	ck_assert_int_eq(delta_changes_read(changes, reader, NULL, (size_t)large, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_msg(strstr(err.text, "tensor 'large'") != NULL &&
			strstr(err.text, "without its base") != NULL,
		"%s", err.text);
	ck_assert_uint_eq(delta_changes_count(changes, (size_t)large), 0);
	delta_reader_close(reader);
	delta_changes_free(changes);
}

START_TEST(a_delta_tells_what_it_changes)
{
	struct measured measured = measured_steps((enum delta_format)_i);
	expect_read(&measured, true);
	expect_compared(&measured);
	if (_i == DELTA_ULP_CLASS || _i == DELTA_FULL)
		expect_unsupported(&measured);
	else
		expect_read(&measured, false);
	measured_release(&measured);
}
END_TEST

/* Every dtype, also those below a byte, with all elements changed or some. */
static void write_all_dtypes(const char *path, unsigned step)
{
	enum { ELEMENTS = 2 * DELTA_CHANGES_RUN + 64, BYTES = 8 * ELEMENTS };
	struct fixture_tensor tensors[DTYPE_COUNT] = {{0}};
	char names[DTYPE_COUNT][16];
	uint8_t *const some = memory_new(BYTES);
	for (size_t i = 0; i < BYTES; i += 1 + i / 97)
		some[i] = (uint8_t)(step * (1 + i % 3));
	for (unsigned i = 0; i < DTYPE_COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "t%02u", i);
		tensors[i] = (struct fixture_tensor){.name = names[i],
			.dtype = (enum dtype)i,
			.shape = {ELEMENTS},
			.data = i % 3 > 0 ? some : NULL,
			.seed = step};
	}
	fixture_write_tensors(path, tensors, DTYPE_COUNT, true);
	free(some);
}

START_TEST(every_dtype_has_positions)
{
	char *const base = pair_fixture_path(&pair, "all.0");
	char *const next = pair_fixture_path(&pair, "all.1");
	write_all_dtypes(base, 0);
	write_all_dtypes(next, 1);
	struct measured measured = measured_pair((enum delta_format)_i, base, next);
	expect_patch_gathers(&measured, false);
	expect_read(&measured, true);
	expect_compared(&measured);
	if (_i != DELTA_ULP_CLASS && _i != DELTA_FULL)
		expect_read(&measured, false);
	measured_release(&measured);
	free(base);
	free(next);
}
END_TEST

/* One run with `step` elements between two changes: a list, a bit for each element, all of them,
 * and both sides of the threshold. */
START_TEST(runs_come_back)
{
	static const unsigned steps[] = {1, 2, 15, 16, 17, 1000, 65535, 65536};
	static const uint64_t shape[] = {3 * DELTA_CHANGES_RUN};
	const struct schema_tensor list[] = {{span_text("t"), DTYPE_U8, 1, shape, shape[0]}};
	struct error err = {0};
	struct schema *const schema = schema_of_tensors(list, 1, &err);
	struct delta_changes *const changes = delta_changes_new(schema);
	uint16_t *const run = memory_new_array(DELTA_CHANGES_RUN, sizeof(run[0]));
	uint64_t *const all = memory_new_array(DELTA_CHANGES_RUN, sizeof(all[0]));
	size_t count = 0;
	for (size_t i = steps[_i] - 1; i < DELTA_CHANGES_RUN; i += steps[_i])
		run[count++] = (uint16_t)i;
	delta_changes_put(changes, 0, 2, run, count);
	ck_assert_uint_eq(delta_changes_count(changes, 0), count);
	delta_changes_positions(changes, 0, all);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(all[i], 2 * DELTA_CHANGES_RUN + (uint64_t)run[i]);
	delta_changes_reset(changes);
	ck_assert_uint_eq(delta_changes_count(changes, 0), 0);
	delta_changes_free(changes);
	schema_free(schema);
	free(run);
	free(all);
}
END_TEST

/* Reads all tensors and frees everything; the delta's bytes may be anything. */
static void read_whatever(const struct measured *measured, struct tensor_source *base)
{
	struct error err = {0};
	const struct schema *const schema = checkpoint_schema(measured->base);
	struct delta_reader *const reader = delta_reader_open(measured->delta, &err);
	struct delta_changes *const changes = delta_changes_new(schema);
	for (size_t i = 0; reader != NULL && i < schema_count(schema); i++) {
		const int result = delta_changes_read(changes, reader, base, i, &err);
		ck_assert_msg(result == 0 || err.kind == ERROR_INVALID ||
				err.kind == ERROR_DIGEST_MISMATCH || err.kind == ERROR_UNSUPPORTED,
			"%s: %s", error_kind_name(err.kind), err.text);
		ck_assert_uint_le(delta_changes_count(changes, i), schema_tensor(schema, i)->bytes);
	}
	delta_changes_free(changes);
	delta_reader_close(reader);
}

START_TEST(a_damaged_delta_does_no_harm)
{
	enum { PLACES = 60 };
	struct measured measured = measured_steps((enum delta_format)_i);
	struct tensor_source *const base = checkpoint_source_new(measured.base);
	char *const path = is_trl(_i)
		? memory_copy_text(measured.delta)
		: fixture_path(measured.delta,
			  _i == DELTA_ULP_CLASS ? "delta.safetensors"
						: "model-00000-of-00001.safetensors");
	struct buffer bytes = fixture_read(path);
	for (size_t i = 0; i < PLACES; i++) {
		const size_t at = bytes.len * i / PLACES + i % 7;
		bytes.data[at] ^= 0x21;
		fixture_write(path, buffer_span(&bytes));
		read_whatever(&measured, NULL);
		read_whatever(&measured, base);
		bytes.data[at] ^= 0x21;
	}
	buffer_release(&bytes);
	free(path);
	tensor_source_free(base);
	measured_release(&measured);
}
END_TEST

Suite *test_delta_changes_suite(void)
{
	Suite *const suite = suite_create("delta_changes");
	TCase *const tcase = tcase_create("delta_changes");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_patch_gathers_what_it_changes, 0, DELTA_FORMATS);
	tcase_add_loop_test(tcase, a_delta_tells_what_it_changes, 0, DELTA_FORMATS);
	for (int i = 0; i < DELTA_FORMATS; i++)
		if (!is_trl(i))
			tcase_add_loop_test(tcase, every_dtype_has_positions, i, i + 1);
	tcase_add_loop_test(tcase, runs_come_back, 0, 8);
	tcase_add_loop_test(tcase, a_damaged_delta_does_no_harm, 0, DELTA_FULL);
	suite_add_tcase(suite, tcase);
	return suite;
}
