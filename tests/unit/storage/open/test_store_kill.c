/* A child works on the store and is killed at its n-th write, sync, rename or unlink of packs, also
 * during its start. The parent opens the folder and compares it with what was acknowledged: only
 * the one operation under way may or may not have happened. Then n grows, on the same folder, until
 * a child is not killed. */
#include "tests/unit/unit.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum { KEYS = 6, OPERATIONS = 12, ROUNDS_MAX = 400, STEP_BYTES = 20000, NONE = -1 };

enum kind { KIND_PUT, KIND_DELETE, KIND_PUBLISH };

static const struct {
	enum kind kind;
	unsigned key;
	size_t size;
} operations[OPERATIONS] = {
	{KIND_PUT, 0, 30000},
	{KIND_PUT, 1, 2300000},
	{KIND_PUBLISH, 0, 0},
	{KIND_PUT, 2, 500},
	{KIND_PUT, 1, 90000},
	{KIND_DELETE, 0, 0},
	{KIND_PUT, 3, 200000},
	{KIND_PUBLISH, 0, 0},
	{KIND_PUT, 4, 400000},
	{KIND_DELETE, 1, 0},
	{KIND_PUT, 2, 1200000},
	{KIND_PUT, 5, 60000},
};

struct held { /* the content of a key: noise from this seed; size NONE: absent */
	int64_t size;
	uint64_t seed;
};

/* What was acknowledged. */
struct model {
	struct held keys[KEYS];
	unsigned steps;
};

static struct store_fixture fixture;

static uint64_t seed_of(int round, int operation)
{
	return (uint64_t)round * OPERATIONS + (uint64_t)operation + 1000;
}

static void run_model(struct model *model, int round, int operation)
{
	struct held *const key = &model->keys[operations[operation].key];
	switch (operations[operation].kind) {
	case KIND_PUT:
		*key = (struct held){
			(int64_t)operations[operation].size, seed_of(round, operation)};
		break;
	case KIND_DELETE:
		key->size = NONE;
		break;
	case KIND_PUBLISH:
		model->steps++;
		break;
	}
}

static int put_noise(struct store *store, const char *key, size_t size, uint64_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(size, seed);
	const int result = fixture_put(store, "bucket", key, span_of(bytes, size), &err);
	free(bytes);
	return result;
}

static struct digest128 checkpoint(unsigned step)
{
	return xxh3_128(span_of(&step, sizeof(step)));
}

/* Puts the object of every step under the same key, so that only its step keeps the object
 * before. */
static int publish(
	struct store *store, unsigned number, enum step_form_kind kind, struct span bytes)
{
	struct error err = {0};
	struct step_object object = {.name = span_text("x.safetensors"),
		.key = span_text("step"),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
	struct step_file file = {span_text("x.safetensors"), 1000, xxh3_128(span_text("file"))};
	struct step_message step = {.step = number,
		.epoch = 1,
		.digest = checkpoint(number),
		.files = &file,
		.file_count = 1,
		.form_count = 1};
	step.forms[0] = (struct step_form){.kind = kind,
		.format = span_text(kind == STEP_ANCHOR ? "full" : "trl-gap"),
		.objects = &object,
		.object_count = 1};
	step.has_base = number > 0;
	if (step.has_base) {
		step.base_step = number - 1;
		step.base_digest = checkpoint(number - 1);
	}
	if (fixture_put(store, "bucket", "step", bytes, &err) != 0)
		return -1;
	const struct run_ref run = run_named(span_text("bucket"), span_text("run"));
	const int result = fixture_call(run_publish_call(store, &run, &step), &err);
	if (result != 0)
		fprintf(stderr, "step %u: %s\n", number, err.text);
	return result;
}

static int publish_delta(struct store *store, unsigned number)
{
	uint8_t *const bytes = fixture_noise(STEP_BYTES, number);
	const int result = publish(store, number, STEP_DELTA, span_of(bytes, STEP_BYTES));
	free(bytes);
	return result;
}

static int publish_first(struct store *store)
{
	static const char json[] =
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
	uint8_t bytes[8 + sizeof(json) - 1 + 4] = {0};
	const uint64_t length = htole64(sizeof(json) - 1);
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, json, sizeof(json) - 1);
	return publish(store, 0, STEP_ANCHOR, span_of(bytes, sizeof(bytes)));
}

static int run_operation(struct store *store, const struct model *model, int round, int operation)
{
	struct error err = {0};
	char key[8];
	snprintf(key, sizeof(key), "k%u", operations[operation].key);
	switch (operations[operation].kind) {
	case KIND_PUT:
		return put_noise(store, key, operations[operation].size, seed_of(round, operation));
	case KIND_DELETE:
		return fixture_delete(store, "bucket", key, NULL, &err);
	case KIND_PUBLISH:
		return publish_delta(store, model->steps);
	}
	return -1;
}

/* The input of the child. */
struct round {
	struct model model;
	int number;
};

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	struct round *const round = child->owner;
	const struct store_options options = {
		.folder = fixture.folder, .files = files, .pack_max_bytes = 1024 * 1024};
	struct store *const store = store_open(&options, &err);
	if (store == NULL)
		return 1;
	for (int i = 0; i < OPERATIONS; i++) {
		if (run_operation(store, &round->model, round->number, i) != 0)
			return 2;
		run_model(&round->model, round->number, i);
		kill_child_tell(child);
	}
	store_close(store);
	return 0;
}

static bool is_held(unsigned key, const struct held *held)
{
	struct error err = {0};
	struct object object;
	char name[8];
	snprintf(name, sizeof(name), "k%u", key);
	if (held->size == NONE)
		return fixture_find(&fixture, "bucket", name, &object, &err) != 0 &&
			err.kind == ERROR_NO_KEY;
	uint8_t *const bytes = fixture_noise((size_t)held->size, held->seed);
	const bool result =
		fixture_holds(&fixture, "bucket", name, span_of(bytes, (size_t)held->size));
	free(bytes);
	return result;
}

static unsigned steps_published(void)
{
	struct error err = {0};
	struct run_message run;
	const struct run_ref ref = run_named(span_text("bucket"), span_text("run"));
	ck_assert_int_eq(run_find(fixture.store, &ref, fixture.arena, &run, &err), 0);
	return (unsigned)run.head + 1;
}

static void expect_step(unsigned number)
{
	struct error err = {0};
	struct object object;
	uint64_t anchor;
	struct buffer read;
	buffer_init(&read, 200000);
	uint8_t *const bytes = fixture_noise(STEP_BYTES, number);
	const struct run_file_ref ref = {.run = run_named(span_text("bucket"), span_text("run")),
		.step = number,
		.name = span_text("delta/x.safetensors")};
	ck_assert_msg(
		run_find_object(fixture.store, &ref, fixture.arena, &object, &anchor, &err) == 0,
		"step %u: %s", number, err.text);
	ck_assert_msg(fixture_read(fixture.store, &object, 0, object.size, &read, &err) == 0,
		"step %u: %s", number, err.text);
	ck_assert(span_equal(buffer_span(&read), span_of(bytes, STEP_BYTES))); /* invariant 6 */
	buffer_release(&read);
	free(bytes);
}

/* Finds out from the store whether `under_way` happened, and if so adds it to the model. */
static void settle_model(struct model *model, int round, int under_way)
{
	if (under_way == OPERATIONS)
		return;
	struct model after = *model;
	run_model(&after, round, under_way);
	const unsigned key = operations[under_way].key;
	const bool happened = operations[under_way].kind == KIND_PUBLISH
		? steps_published() == after.steps
		: !is_held(key, &model->keys[key]);
	if (happened)
		*model = after;
}

static void verify(struct model *model, int round, int acknowledged)
{
	struct error err = {0};
	const struct store_options options = {
		.folder = fixture.folder, .pack_max_bytes = 1024 * 1024};
	fixture.arena = arena_new(16 * 1024 * 1024);
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "round %d: %s", round, err.text);
	/* invariants 1 and 4 */
	ck_assert_int_eq(fixture_pack_files(&fixture, "! -name '*.index'"),
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"));
	settle_model(model, round, acknowledged);
	for (unsigned key = 0; key < KEYS; key++)
		ck_assert_msg(is_held(key, &model->keys[key]), "round %d, %d acknowledged, key %u",
			round, acknowledged, key);
	ck_assert_uint_eq(steps_published(), model->steps);
	for (unsigned step = 1; step < model->steps; step += 1 +
			(model->steps - step) /
				8) /* all of the latest steps, some of the earlier ones */
		expect_step(step);
	store_close(fixture.store);
	arena_free(fixture.arena);
}

START_TEST(a_kill_at_any_write_loses_nothing_acknowledged)
{
	struct error err = {0};
	struct model model = {.steps = 1};
	bool alive = false;
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(publish_first(fixture.store), 0);
	store_close(fixture.store);
	arena_free(fixture.arena);
	for (unsigned key = 0; key < KEYS; key++)
		model.keys[key].size = NONE;
	int round = 0;
	for (; round < ROUNDS_MAX && !alive; round += unit_stride(5)) {
		struct round owner = {model, round};
		struct kill_child child = {.kinds = KILL_ANYWHERE & ~FILE_FAULT_OPEN,
			.countdown = round,
			.work = work,
			.owner = &owner};
		int acknowledged;
		alive = kill_child_run(&child, &acknowledged);
		for (int i = 0; i < acknowledged; i++)
			run_model(&model, round, i);
		verify(&model, round, acknowledged);
	}
	ck_assert(alive);
	ck_assert_int_gt(round, 2 * OPERATIONS); /* kills came in the middle of operations */
	unit_scratch_remove(fixture.folder);
}
END_TEST

Suite *test_store_kill_suite(void);
Suite *test_store_kill_suite(void)
{
	Suite *const suite = suite_create("store_kill");
	TCase *const tests = tcase_create("store_kill");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_at_any_write_loses_nothing_acknowledged);
	suite_add_tcase(suite, tests);
	return suite;
}
