/* Each delta of the golden files, through the plan and the kernels: those of the format ulp-class
 * give what the decoder of the processor gives, with any number of threads, all others are refused.
 * docs/FORMAT.md has the formats, tests/golden/deltas.py what the files are. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/gunzip.h"
#include "base/memory.h"
#include "tests/unit/weights/device/device_machine.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta.h"
#include "weights/delta/delta_reader.h"
#include "weights/device/device_plan.h"
#include "weights/model/checkpoint_source.h"

unit_suite_fn test_device_golden_suite;

static const unsigned threads[] = {1, 3, 16, DEVICE_THREADS};
enum { THREADS = sizeof(threads) / sizeof(*threads), BASE_MAX = 1 << 24 };

static char *scratch;

/* What became of the deltas of all folders. */
struct tally {
	unsigned applied;  /* by device and decoder alike */
	unsigned failed;   /* ulp-class, and seen to be bad by both */
	unsigned unproven; /* ulp-class, and bad in what only the decoder checks */
	unsigned refused;  /* of another format */
	unsigned broken;   /* no delta at all, or of no format that is known */
};

static void set_up(void)
{
	scratch = unit_scratch_make();
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

/* The tensors of a checkpoint in memory that stands for a device's. */
struct model {
	struct checkpoint *base;
	uint8_t **tensors;
	uint64_t *addresses;
	struct device_layout *layout;
};

static void model_refill(struct model *model)
{
	for (size_t i = 0; i < schema_count(checkpoint_schema(model->base)); i++) {
		const struct span from = checkpoint_tensor(model->base, i);
		if (from.len > 0)
			memcpy(model->tensors[i], from.data, from.len);
	}
}

static struct model model_open(const char *path)
{
	struct error err = {0};
	struct model model = {.base = checkpoint_open(path, &err)};
	ck_assert_msg(model.base != NULL, "%s", err.text);
	const size_t count = schema_count(checkpoint_schema(model.base));
	model.tensors = memory_new_array(count, sizeof(*model.tensors));
	model.addresses = memory_new_array(count, sizeof(*model.addresses));
	for (size_t i = 0; i < count; i++) {
		model.tensors[i] = memory_new(checkpoint_tensor(model.base, i).len + 1);
		model.addresses[i] = (uint64_t)(uintptr_t)model.tensors[i];
	}
	model_refill(&model);
	model.layout = device_layout_new(checkpoint_schema(model.base), model.addresses);
	return model;
}

static void model_close(struct model *model)
{
	for (size_t i = 0; i < schema_count(checkpoint_schema(model->base)); i++)
		free(model->tensors[i]);
	free(model->tensors);
	free(model->addresses);
	device_layout_free(model->layout);
	checkpoint_close(model->base);
}

static void expect_model(const struct model *model, const struct checkpoint *wanted)
{
	for (size_t i = 0; i < schema_count(checkpoint_schema(wanted)); i++) {
		const struct span bytes = checkpoint_tensor(wanted, i);
		if (bytes.len > 0)
			ck_assert_mem_eq(model->tensors[i], bytes.data, bytes.len);
	}
}

/* The files of version 0.2.0 and later lie in folders of these names, those before in files. */
static char *base_of(const char *folder, const char *name)
{
	if (strncmp(name, "sharded", strlen("sharded")) == 0)
		return fixture_path(folder, "sharded-0");
	if (strncmp(name, "wide", strlen("wide")) != 0)
		return fixture_path(folder, "base.safetensors");
	struct error err = {0};
	struct buffer plain;
	char *const packed = fixture_path(folder, "wide-base.safetensors.gz");
	char *const path = fixture_path(scratch, "wide-base.safetensors");
	struct buffer bytes = fixture_read(packed);
	buffer_init(&plain, BASE_MAX);
	ck_assert_msg(gunzip(buffer_span(&bytes), &plain, &err) == 0, "%s", err.text);
	fixture_write(path, buffer_span(&plain));
	buffer_release(&plain);
	buffer_release(&bytes);
	free(packed);
	return path;
}

/* The number of blocks that failed; afterwards the device holds the result, or the base again. */
static size_t run_plan(const struct device_plan *plan, unsigned count)
{
	const struct device_plan_facts facts = device_plan_facts(plan);
	struct error err = {0};
	struct device_work work = {
		.blocks = memory_new_array(facts.blocks + 1, sizeof(*work.blocks)),
		.count = (uint32_t)facts.blocks,
		.upload = memory_new(facts.upload_bytes + 1),
		.places = memory_new_array(facts.changes + 1, sizeof(*work.places)),
		.steps = memory_new_array(facts.changes + 1, sizeof(*work.steps)),
		.failures = memory_new_array(facts.blocks + 1, sizeof(*work.failures)),
		.hashes = memory_new_array(facts.blocks + 1, sizeof(*work.hashes))};
	size_t failed = 0;
	if (device_plan_fill(plan, work.upload, work.blocks, 1, &err) == 0)
		device_machine_change(&work, count);
	else
		failed++;
	for (size_t i = 0; i < facts.blocks; i++)
		failed += work.failures[i] != DEVICE_FINE;
	if (failed > 0)
		device_machine_undo(&work, count);
	free(work.blocks);
	free(work.upload);
	free(work.places);
	free(work.steps);
	free(work.failures);
	free(work.hashes);
	return failed;
}

/* NULL when the decoder refuses it. */
static struct checkpoint *decode(const struct model *model, const char *delta)
{
	struct error err = {0};
	struct delta_stats stats;
	char *const out = fixture_path(scratch, "out");
	const struct delta_apply_params params = {
		.base = model->base, .delta = delta, .out = out, .threads = 1};
	ck_assert(file_remove_tree(file_system(), out, &err) == 0);
	struct checkpoint *const result =
		delta_apply(&params, &stats, &err) == 0 ? checkpoint_open(out, &err) : NULL;
	free(out);
	return result;
}

/* A delta in which all is right but what it says of the whole has right blocks; any other one must
 * fail here too, and leave the base. */
static void judge_bad(struct model *model, const struct device_plan *plan, struct tally *tally)
{
	for (size_t i = 0; i < THREADS; i++) {
		const size_t failed = run_plan(plan, threads[i]);
		if (failed > 0)
			expect_model(model, model->base);
		if (i == 0)
			*(failed > 0 ? &tally->failed : &tally->unproven) += 1;
		model_refill(model);
	}
}

static void judge_ulp(struct model *model, const char *delta, struct tally *tally)
{
	struct error err = {0};
	struct checkpoint *const wanted = decode(model, delta);
	struct device_plan *const plan = device_plan_open(delta, model->layout, &err);
	if (plan == NULL) {
		ck_assert_msg(wanted == NULL, "%s: %s", delta, err.text);
		tally->failed++;
		return;
	}
	if (wanted == NULL) {
		judge_bad(model, plan, tally);
	} else {
		ck_assert_uint_gt(device_plan_facts(plan).blocks, 0);
		for (size_t i = 0; i < THREADS; i++) {
			ck_assert_uint_eq(run_plan(plan, threads[i]), 0);
			expect_model(model, wanted);
			model_refill(model);
		}
		checkpoint_close(wanted);
		tally->applied++;
	}
	device_plan_free(plan);
}

static void judge(const char *folder, const char *name, const char *delta, struct tally *tally)
{
	struct error err = {0};
	struct delta_reader *const reader = delta_reader_open(delta, &err);
	const bool is_ulp = reader != NULL && delta_reader_format(reader) == DELTA_ULP_CLASS;
	char *const base = base_of(folder, name);
	struct model model = model_open(base);
	if (is_ulp) {
		judge_ulp(&model, delta, tally);
	} else {
		struct error refusal = {0};
		ck_assert_ptr_null(device_plan_open(delta, model.layout, &refusal));
		ck_assert_msg(refusal.kind == (reader != NULL ? ERROR_UNSUPPORTED : err.kind), "%s",
			delta);
		*(reader != NULL ? &tally->refused : &tally->broken) += 1;
	}
	model_close(&model);
	free(base);
	delta_reader_close(reader);
}

/* All that lies in `within`, whose bases lie in `folder`. */
static void judge_all(const char *folder, const char *within, struct tally *tally)
{
	DIR *const listing = opendir(within);
	if (listing == NULL)
		return;
	for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "bad") == 0)
			continue;
		char *const path = fixture_path(within, entry->d_name);
		judge(folder, entry->d_name, path, tally);
		free(path);
	}
	closedir(listing);
}

START_TEST(test_golden_deltas)
{
	struct tally tally = {0};
	char *const golden = fixture_data("../golden");
	DIR *const listing = opendir(golden);
	ck_assert_msg(listing != NULL, "there is no folder %s", golden);
	for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
		char *const version = fixture_path(golden, entry->d_name);
		char *const folder = fixture_path(version, "deltas");
		char *const bad = fixture_path(folder, "bad");
		if (entry->d_name[0] == 'v') {
			judge_all(folder, folder, &tally);
			judge_all(folder, bad, &tally);
		}
		free(bad);
		free(folder);
		free(version);
	}
	closedir(listing);
	free(golden);
	/* Golden files are never changed; there may be more. The unproven one is bad/wrong-result. */
	ck_assert_uint_ge(tally.applied, 4);
	ck_assert_uint_ge(tally.failed, 7);
	ck_assert_uint_eq(tally.unproven, 1);
	ck_assert_uint_ge(tally.refused, 55);
	ck_assert_uint_ge(tally.broken, 16);
}
END_TEST

Suite *test_device_golden_suite(void)
{
	Suite *suite = suite_create("device_golden");
	TCase *tests = tcase_create("device_golden");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, test_golden_deltas);
	suite_add_tcase(suite, tests);
	return suite;
}
