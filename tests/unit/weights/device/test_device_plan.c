/* Whole deltas through the plan and the kernels. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/device/device_machine.h"
#include "tests/unit/weights/memory_fixture.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/device/device_plan.h"

unit_suite_fn test_device_plan_suite;

enum { STEPS = 3, TENSORS_MOST = 8 };

static struct pair_fixture pair;
static struct memory_fixture memory; /* step 0 */
static struct device_layout *layout;
static uint64_t addresses[TENSORS_MOST];

static void set_up(void)
{
	pair_fixture_setup(&pair, STEPS, false);
	char *const path = pair_fixture_step(&pair, 0);
	memory_fixture_load(&memory, path);
	free(path);
	ck_assert_uint_le(schema_count(memory.schema), TENSORS_MOST);
	for (size_t i = 0; i < schema_count(memory.schema); i++) {
		const size_t bytes = schema_tensor(memory.schema, i)->bytes;
		uint8_t *const copy = memory_new(bytes);
		if (bytes > 0)
			memcpy(copy, memory.tensors[i], bytes);
		addresses[i] = (uint64_t)(uintptr_t)copy;
	}
	layout = device_layout_new(memory.schema, addresses);
}

static void tear_down(void)
{
	for (size_t i = 0; i < schema_count(memory.schema); i++)
		free((uint8_t *)(uintptr_t)addresses[i]);
	device_layout_free(layout);
	memory_fixture_release(&memory);
	pair_fixture_teardown(&pair);
}

static void expect_step(unsigned number)
{
	for (size_t i = 0; i < schema_count(memory.schema); i++) {
		const size_t bytes = schema_tensor(memory.schema, i)->bytes;
		if (bytes > 0)
			memcpy(memory.tensors[i], (uint8_t *)(uintptr_t)addresses[i], bytes);
	}
	struct checkpoint *const wanted = pair_fixture_open(&pair, number);
	ck_assert(memory_fixture_equals(&memory, wanted));
	checkpoint_close(wanted);
}

static struct device_plan *open_plan(const char *name, struct error *err)
{
	char *const path = pair_fixture_path(&pair, name);
	struct device_plan *const plan = device_plan_open(path, layout, err);
	free(path);
	return plan;
}

/* The memory of a device for a plan. */
static struct device_work work_new(const struct device_plan *plan)
{
	const struct device_plan_facts facts = device_plan_facts(plan);
	return (struct device_work){
		.blocks = memory_new_array(facts.blocks, sizeof(struct device_block)),
		.count = (uint32_t)facts.blocks,
		.upload = memory_new(facts.upload_bytes),
		.places = memory_new_array(facts.changes + 1, sizeof(uint32_t)),
		.steps = memory_new_array(facts.changes + 1, sizeof(uint16_t)),
		.failures = memory_new_array(facts.blocks, sizeof(uint32_t)),
		.hashes = memory_new_array(facts.blocks, sizeof(uint64_t)),
	};
}

static void work_free(struct device_work *work)
{
	free(work->blocks);
	free(work->upload);
	free(work->places);
	free(work->steps);
	free(work->failures);
	free(work->hashes);
}

static struct device_work filled(const struct device_plan *plan)
{
	struct error err = {0};
	const struct device_work work = work_new(plan);
	ck_assert_msg(
		device_plan_fill(plan, work.upload, work.blocks, 2, &err) == 0, "%s", err.text);
	return work;
}

static size_t failed_blocks(const struct device_work *work)
{
	size_t failed = 0;
	for (uint32_t i = 0; i < work->count; i++)
		failed += work->failures[i] != DEVICE_FINE;
	return failed;
}

static void expect_refused(const char *name, enum error_kind kind, const char *message)
{
	struct error err = {0};
	ck_assert_ptr_null(open_plan(name, &err));
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s",
		error_kind_name(err.kind), err.text);
}

/* Writes `name` as the delta `from` with one byte changed, `at` bytes before its end. */
static void damage(const char *from, const char *name, size_t at)
{
	char *const source = pair_fixture_path(&pair, from);
	char *const target = pair_fixture_path(&pair, name);
	struct buffer bytes = fixture_read(source);
	bytes.data[bytes.len - at] ^= 0x40;
	fixture_write(target, buffer_span(&bytes));
	buffer_release(&bytes);
	free(source);
	free(target);
}

START_TEST(test_steps_and_back)
{
	struct error err = {0};
	const struct delta_stats stats = pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	pair_fixture_diff(&pair, 1, 2, DELTA_ULP_CLASS, "two");
	struct device_plan *const one = open_plan("one", &err);
	struct device_plan *const two = open_plan("two", &err);
	ck_assert_msg(one != NULL && two != NULL, "%s", err.text);
	ck_assert_uint_eq(device_plan_facts(one).tensors, stats.changed_tensors);
	struct device_work first = filled(one);
	device_machine_change(&first, 1);
	ck_assert_uint_eq(failed_blocks(&first), 0);
	expect_step(1);
	struct device_work second = filled(two);
	device_machine_change(&second, 1);
	ck_assert_uint_eq(failed_blocks(&second), 0);
	expect_step(2);
	device_machine_undo(&second, 1);
	device_machine_undo(&first, 1);
	expect_step(0);
	work_free(&first);
	work_free(&second);
	device_plan_free(one);
	device_plan_free(two);
}
END_TEST

/* No byte is left as it was: what the device gets depends on the delta alone. */
START_TEST(test_the_upload_is_filled)
{
	struct error err = {0};
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	struct device_plan *const plan = open_plan("one", &err);
	struct device_work first = filled(plan);
	struct device_work second = work_new(plan);
	const size_t upload_bytes = device_plan_facts(plan).upload_bytes;
	memset(second.upload, 0xff, upload_bytes);
	memset(second.blocks, 0xff, second.count * sizeof(*second.blocks));
	ck_assert_int_eq(device_plan_fill(plan, second.upload, second.blocks, 1, &err), 0);
	ck_assert_mem_eq(second.upload, first.upload, upload_bytes);
	ck_assert_mem_eq(second.blocks, first.blocks, second.count * sizeof(*second.blocks));
	work_free(&first);
	work_free(&second);
	device_plan_free(plan);
}
END_TEST

/* A table of hashes follows the deltas, and proves all tensors at any time. */
static bool holds(const uint64_t *hashes)
{
	const size_t blocks = device_layout_blocks(layout);
	struct device_work work = {.count = (uint32_t)blocks};
	work.upload = memory_new(1); /* nothing reads there */
	work.blocks = memory_new_array(blocks, sizeof(*work.blocks));
	work.failures = memory_new_array(blocks, sizeof(*work.failures));
	work.hashes = memory_new_array(blocks, sizeof(*work.hashes));
	ck_assert_uint_eq(device_layout_keep(layout, hashes, work.blocks), blocks);
	device_machine_change(&work, 1);
	const bool same = memcmp(work.hashes, hashes, blocks * sizeof(*hashes)) == 0;
	ck_assert(same == (failed_blocks(&work) == 0));
	work_free(&work);
	return same;
}

START_TEST(test_hashes)
{
	struct error err = {0};
	const size_t blocks = device_layout_blocks(layout);
	uint64_t *const hashes = memory_new_array(blocks, sizeof(*hashes));
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	device_layout_hash(layout, (const uint8_t *const *)memory.tensors, 2, hashes);
	ck_assert(holds(hashes));
	struct device_plan *const plan = open_plan("one", &err);
	struct device_work work = filled(plan);
	device_machine_change(&work, 1);
	ck_assert(!holds(hashes));
	for (uint32_t i = 0; i < work.count; i++)
		hashes[work.blocks[i].number] = work.hashes[i];
	ck_assert(holds(hashes));
	work_free(&work);
	device_plan_free(plan);
	free(hashes);
}
END_TEST

START_TEST(test_refused)
{
	pair_fixture_diff(&pair, 0, 1, DELTA_SLIME_XOR, "xor");
	expect_refused("xor", ERROR_UNSUPPORTED, "format ulp-class");
	expect_refused("absent", ERROR_NOT_FOUND, "absent");
}
END_TEST

/* Whichever byte of the last blocks it is: the host or the device sees it, and the base is back. */
START_TEST(test_damage)
{
	size_t refused = 0;
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	for (size_t at = 1; at < 400; at += 7) {
		struct error err = {0};
		damage("one/delta.safetensors", "damaged/delta.safetensors", at);
		struct device_plan *const plan = open_plan("damaged", &err);
		if (plan == NULL) {
			refused++;
			continue;
		}
		struct device_work work = work_new(plan);
		if (device_plan_fill(plan, work.upload, work.blocks, 1, &err) != 0) {
			ck_assert_ptr_nonnull(strstr(err.text, "tensor '"));
			refused++;
		} else {
			device_machine_change(&work, 1);
			ck_assert_uint_le(failed_blocks(&work), 1);
			if (failed_blocks(&work) == 0)
				expect_step(1); /* bits that fill a byte mean nothing */
			device_machine_undo(&work, 1);
		}
		expect_step(0);
		work_free(&work);
		device_plan_free(plan);
	}
	ck_assert_uint_lt(refused, 40);
}
END_TEST

START_TEST(test_odd_addresses)
{
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	const ptrdiff_t large = schema_find(memory.schema, span_text("large"));
	addresses[large]++;
	device_layout_free(layout);
	layout = device_layout_new(memory.schema, addresses);
	addresses[large]--;
	expect_refused("one", ERROR_INVALID, "tensor 'large': its address");
}
END_TEST

/* The others are changed as if it were there. */
START_TEST(test_a_tensor_that_is_elsewhere)
{
	struct error err = {0};
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "one");
	const size_t large = (size_t)schema_find(memory.schema, span_text("large"));
	uint64_t others[TENSORS_MOST];
	memcpy(others, addresses, sizeof(others));
	others[large] = 0;
	device_layout_free(layout);
	layout = device_layout_new(memory.schema, others);
	struct device_plan *const plan = open_plan("one", &err);
	struct device_work work = filled(plan);
	device_machine_change(&work, 1);
	ck_assert_uint_eq(failed_blocks(&work), 0);
	struct checkpoint *const wanted = pair_fixture_open(&pair, 1);
	for (size_t i = 0; i < schema_count(memory.schema); i++) {
		const size_t bytes = schema_tensor(memory.schema, i)->bytes;
		const uint8_t *const now = (const uint8_t *)(uintptr_t)addresses[i];
		const uint8_t *const then =
			i == large ? memory.tensors[i] : checkpoint_tensor(wanted, i).data;
		ck_assert(bytes == 0 || memcmp(now, then, bytes) == 0);
	}
	checkpoint_close(wanted);
	work_free(&work);
	device_plan_free(plan);
}
END_TEST

Suite *test_device_plan_suite(void)
{
	Suite *suite = suite_create("device_plan");
	TCase *tests = tcase_create("device_plan");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, test_steps_and_back);
	tcase_add_test(tests, test_the_upload_is_filled);
	tcase_add_test(tests, test_hashes);
	tcase_add_test(tests, test_refused);
	tcase_add_test(tests, test_damage);
	tcase_add_test(tests, test_odd_addresses);
	tcase_add_test(tests, test_a_tensor_that_is_elsewhere);
	suite_add_tcase(suite, tests);
	return suite;
}
