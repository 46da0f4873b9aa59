/* Parts of steps in the catalog: when they are kept, published and dropped.
 * tests/daemon/test_step_parts.py puts parts over the wire. */
#include "tests/unit/unit.h"

#include <string.h>

#include "base/digest/xxh3.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/runs/step_part.h"
#include "storage/runs/step_part_row.h"
#include "tests/unit/storage/run_fixture.h"

static struct store_fixture fixture;

/* The answer to a part. */
struct outcome {
	struct part_answer answer;
	bool already;
};

static void set_up(void)
{
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* Part `number` of step 0 has a shard with the tensor 'a' + number. It can give tensor and shard
 * other names. The key is removed when the part keeps the version. */
struct put {
	unsigned number;
	uint64_t parts, epoch;
	const char *tensor, *shard; /* NULL: the name of its own tensor */
};

static int put(const struct put *put, struct outcome *out, struct error *err)
{
	const char name[2] = {(char)('a' + put->number), '\0'};
	const char *const tensor_name = put->tensor != NULL ? put->tensor : name;
	char *const key = arena_format(fixture.arena, "run/0/%s", name);
	const struct span bytes = run_fixture_shard(&fixture, name, (uint8_t)(put->number + 1));
	struct part_tensor tensor = {
		.name = span_text(arena_format(fixture.arena, "%s", tensor_name)),
		.digest = xxh3_128(
			span_of(memset(arena_take(fixture.arena, 4), (int)put->number + 1, 4), 4))};
	struct part_message message = {
		.step = {.epoch = put->epoch}, .tensors = &tensor, .tensor_count = 1};
	run_fixture_put(&fixture, key, bytes);
	run_fixture_add_form(&fixture, &message.step, STEP_ANCHOR,
		arena_format(
			fixture.arena, "%s.safetensors", put->shard != NULL ? put->shard : name),
		key, bytes);
	const struct step_part_params params = {.run = run_fixture_ref,
		.part = put->number,
		.parts = put->parts,
		.message = &message};
	struct call *const call = step_part_call(fixture.store, &params);
	const int result = call_run(call, err);
	out->answer = *step_part_result(call, &out->already);
	call_free(call);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &(struct error){0}), 0);
	return result;
}

static int put_part(
	unsigned number, uint64_t parts, uint64_t epoch, struct outcome *out, struct error *err)
{
	return put(&(struct put){.number = number, .parts = parts, .epoch = epoch}, out, err);
}

static void put_ok(unsigned number, uint64_t parts, uint64_t received)
{
	struct error err = {0};
	struct outcome outcome;
	ck_assert_msg(put_part(number, parts, 1, &outcome, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(outcome.answer.received, received);
	ck_assert(outcome.answer.published == (received == parts) && !outcome.already);
}

static int64_t count(const char *what)
{
	return fixture_count(
		fixture.store, arena_format(fixture.arena, "SELECT COUNT(*) FROM %s", what));
}

START_TEST(the_last_part_publishes)
{
	struct error err = {0};
	struct step_message step;
	uint64_t anchor;
	put_ok(1, 3, 1);
	put_ok(0, 3, 2);
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 0, .with_tensors = true},
				 fixture.arena, &step, &anchor, &err),
		-1);
	put_ok(2, 3, 3);
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 0, .with_tensors = true},
				 fixture.arena, &step, &anchor, &err),
		0);
	ck_assert_uint_eq(step.forms[0].object_count, 3);
	ck_assert_uint_eq(step.tensor_digests.len, 3 * sizeof(struct digest128));
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("step_objects"), 3); /* only those of the step */
	ck_assert_int_eq(count("versions"), 3);
	ck_assert_int_eq(count("step_parts"), 3); /* the rows stay for a while */
	fixture.clock.now_ms += 60 * 60 * 1000;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("step_parts"), 0);
	ck_assert_int_eq(count("versions"), 3);
}
END_TEST

START_TEST(parts_are_as_many_as_the_first_one_said)
{
	struct error err = {0};
	struct outcome outcome;
	ck_assert_int_eq(put_part(2, 2, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(put_part(0, 0, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	put_ok(0, 2, 1);
	ck_assert_int_eq(put_part(1, 3, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_STEP_DIFFERS);
	put_ok(1, 2, 2);
}
END_TEST

START_TEST(parts_wait_an_hour_with_their_objects)
{
	put_ok(0, 3, 1);
	put_ok(1, 3, 2);
	fixture.clock.now_ms += 60 * 60 * 1000 - 1;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("versions"), 2);
	fixture.clock.now_ms += 1;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("versions"), 0);
	ck_assert_int_eq(count("step_objects"), 0);
	ck_assert_int_eq(count("step_parts"), 0);
	put_ok(0, 1, 1);
}
END_TEST

START_TEST(parts_die_with_their_epoch)
{
	struct error err = {0};
	struct outcome outcome;
	put_ok(0, 3, 1);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(put_part(1, 3, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_STALE_EPOCH);
	ck_assert_int_eq(put_part(1, 2, 2, &outcome, &err), 0);
	ck_assert_uint_eq(outcome.answer.received, 1);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("step_parts"), 1);
	ck_assert_int_eq(count("versions"), 1);
}
END_TEST

/* Another publisher published the step, which contains nothing of the parts. */
START_TEST(parts_die_when_their_step_is_published_whole)
{
	struct error err = {0};
	struct outcome outcome;
	put_ok(0, 2, 1);
	const struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_int_eq(put_part(0, 2, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_HEAD_MOVED);
	ck_assert_int_eq(put_part(1, 2, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_HEAD_MOVED);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("step_parts"), 0);
	ck_assert_int_eq(count("versions"), 1); /* the step's */
}
END_TEST

/* The fault is found when the parts are merged, or when the whole step is published. */
START_TEST(parts_that_never_make_a_whole_are_dropped)
{
	static const struct {
		struct put put;
		enum error_kind kind;
	} faults[] = {
		{{.number = 1, .parts = 2, .epoch = 1, .shard = "a"}, ERROR_PARTS_MISMATCH},
		{{.number = 1, .parts = 2, .epoch = 1, .tensor = "z"}, ERROR_SCHEMA_MISMATCH},
	};
	struct error err = {0};
	struct outcome outcome;
	put_ok(0, 2, 1);
	ck_assert_int_eq(put(&faults[_i].put, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, faults[_i].kind);
	ck_assert_msg(strstr(err.text, "were dropped") != NULL, "%s", err.text);
	ck_assert_int_eq(count("step_parts WHERE state <> 2"), 0);
	ck_assert_int_eq(count("steps"), 0);
	put_ok(0, 2, 1);
	put_ok(1, 2, 2);
}
END_TEST

/* Drops the first part. Parts that were put later wait for the others. */
static int drop_first(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	return step_part_row_settle(db, 1, 1, STEP_PART_DEAD, err);
}

START_TEST(parts_that_were_put_anew_outlive_those_that_did_not_fit)
{
	struct error err = {0};
	struct outcome outcome;
	struct change change = {.apply = drop_first};
	put_ok(1, 3, 1);
	put_ok(0, 3, 2);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT MIN(id) FROM step_parts WHERE run = 1"), 1);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
	ck_assert_int_eq(put_part(0, 3, 1, &outcome, &err), 0);
	ck_assert(outcome.already);
	ck_assert_uint_eq(outcome.answer.received, 1);
	put_ok(1, 3, 2);
	put_ok(2, 3, 3);
}
END_TEST

START_TEST(a_part_that_is_put_again_says_how_things_stand)
{
	struct error err = {0};
	struct outcome outcome;
	put_ok(0, 2, 1);
	ck_assert_int_eq(put_part(0, 2, 1, &outcome, &err), 0);
	ck_assert(outcome.already && !outcome.answer.published);
	ck_assert_uint_eq(outcome.answer.received, 1);
	put_ok(1, 2, 2);
	for (unsigned part = 0; part < 2; part++) {
		ck_assert_int_eq(put_part(part, 2, 1, &outcome, &err), 0);
		ck_assert(outcome.already && outcome.answer.published);
		ck_assert_uint_eq(outcome.answer.received, 2);
	}
	ck_assert_int_eq(count("steps"), 1);
}
END_TEST

START_TEST(parts_go_with_their_run)
{
	struct error err = {0};
	put_ok(0, 3, 1);
	put_ok(2, 3, 2);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(count("step_parts"), 0);
	ck_assert_int_eq(count("step_objects"), 0);
	ck_assert_int_eq(count("versions"), 0);
	ck_assert_int_eq(count("runs"), 0);
}
END_TEST

START_TEST(parts_survive_a_restart)
{
	put_ok(0, 2, 1);
	store_fixture_reopen(&fixture);
	put_ok(1, 2, 2);
}
END_TEST

START_TEST(a_damaged_part_is_not_published)
{
	struct error err = {0};
	struct outcome outcome;
	put_ok(0, 2, 1);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE step_parts SET content = x'00112233445566778899aabbccddeeff'",
			&err),
		0);
	ck_assert_int_eq(put_part(1, 2, 1, &outcome, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

Suite *test_step_part_suite(void);
Suite *test_step_part_suite(void)
{
	Suite *const suite = suite_create("step_part");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, the_last_part_publishes);
	tcase_add_test(tc, parts_are_as_many_as_the_first_one_said);
	tcase_add_test(tc, parts_wait_an_hour_with_their_objects);
	tcase_add_test(tc, parts_die_with_their_epoch);
	tcase_add_test(tc, parts_die_when_their_step_is_published_whole);
	tcase_add_loop_test(tc, parts_that_never_make_a_whole_are_dropped, 0, 2);
	tcase_add_test(tc, parts_that_were_put_anew_outlive_those_that_did_not_fit);
	tcase_add_test(tc, a_part_that_is_put_again_says_how_things_stand);
	tcase_add_test(tc, parts_go_with_their_run);
	tcase_add_test(tc, parts_survive_a_restart);
	tcase_add_test(tc, a_damaged_part_is_not_published);
	suite_add_tcase(suite, tc);
	return suite;
}
