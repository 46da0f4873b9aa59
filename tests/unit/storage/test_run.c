#include "tests/unit/unit.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/xxh3.h"
#include "storage/committer.h"
#include "storage/helpers.h"
#include "storage/step_watch.h"
#include "storage/store_internal.h"
#include "tests/unit/storage/run_fixture.h"
#include "weights/schema.h"

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct span make_shard(const char *const names, const uint8_t value)
{
	return run_fixture_shard(&fixture, names, value);
}

static struct digest128 checkpoint(const unsigned step)
{
	return run_fixture_checkpoint(step);
}

static void put(const char *const key, const struct span bytes)
{
	run_fixture_put(&fixture, key, bytes);
}

static void add_form(struct step_message *const step, const enum step_form_kind kind, const char *const name, const char *const key,
	const struct span bytes)
{
	run_fixture_add_form(&fixture, step, kind, name, key, bytes);
}

static struct step_message make_step(const unsigned number)
{
	return run_fixture_step(&fixture, number);
}

static struct step_message prepare(const unsigned number, const bool with_anchor, const size_t delta_bytes)
{
	return run_fixture_prepare(&fixture, number, with_anchor, delta_bytes);
}

static int publish(const struct step_message *const step, struct run_outcome *const out, struct error *const err)
{
	return run_fixture_publish(&fixture, step, out, err);
}

static void publish_ok(const struct step_message *const step)
{
	run_fixture_publish_ok(&fixture, step);
}

static void publish_refused(const struct step_message *const step, const enum error_kind kind)
{
	struct error err = {0};
	ck_assert_int_eq(publish(step, NULL, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
}

static int collect(const uint64_t step, struct error *const err)
{
	struct settled *const settled = settled_new();
	return fixture_settle_run(run_collect_start(fixture.store, span_text("bucket"), span_text("run"), step, settled_done, settled), settled,
		NULL, err);
}

static struct run_message the_run(void)
{
	struct error err = {0};
	struct run_message run;
	ck_assert_int_eq(run_find(fixture.store, span_text("bucket"), span_text("run"), fixture.arena, &run, &err), 0);
	return run;
}

static const struct {
	const char *name;
	bool good;
} names[] = {
	{"run", true}, {"Run-7_b.v2", true}, {"7", true}, {"_x", true}, {"", false}, {".hidden", false}, {"-flag", false}, {"a/b", false},
	{"a b", false},
	{"ä", false},
	{"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567x",
	true},
	{"1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567xx",
	false},
};

START_TEST(names_are_checked)
{
	struct error err = {0};
	ck_assert_int_eq(run_check_name(span_text(names[_i].name), &err), names[_i].good ? 0 : -1);
	ck_assert_int_eq(err.kind, names[_i].good ? ERROR_NONE : ERROR_INVALID);
}
END_TEST

START_TEST(each_open_raises_the_epoch)
{
	struct error err = {0};
	struct run_message run;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head && !run.has_schema);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "other", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 2);
	ck_assert_int_eq(fixture_open_run(fixture.store, "absent", "other", &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "no/good", &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(an_expected_epoch_guards_against_opening_twice)
{
	struct error err = {0};
	struct run_open_params params = {.bucket = span_text("bucket"), .run = span_text("run"), .has_expected_epoch = true,
		.expected_epoch = 1};
	struct settled *settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_open_start(fixture.store, &params, settled_done, settled), settled, NULL, &err), 0);
	settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_open_start(fixture.store, &params, settled_done, settled), settled, NULL, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_uint_eq(the_run().epoch, 2);
}
END_TEST

START_TEST(a_chain_is_published_and_read_back)
{
	struct error err = {0};
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	step = prepare(1, false, 500);
	step.metadata = span_text("{\"lr\":\"1e-6\"}");
	publish_ok(&step);
	const struct run_message run = the_run();
	ck_assert(run.has_head && run.has_schema);
	ck_assert_uint_eq(run.head, 1);
	ck_assert_uint_eq(run.steps, 2);
	const struct digest128 head = checkpoint(1);
	ck_assert(digest128_equal(&run.head_digest, &head));

	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 1, true, fixture.arena, &read, &anchor, &err), 0);
	ck_assert_uint_eq(read.step, 1);
	ck_assert(digest128_equal(&read.digest, &head));
	ck_assert(digest128_equal(&read.schema_digest, &run.schema_digest));
	ck_assert(span_equal_text(read.label, "label"));
	ck_assert(span_equal_text(read.metadata, "{\"lr\":\"1e-6\"}"));
	ck_assert_int_eq(read.created_ms, 1700000000000);
	ck_assert_uint_eq(read.form_count, 1);
	ck_assert_uint_eq(read.forms[0].objects[0].version.len, 32);
	ck_assert(span_equal_text(read.forms[0].objects[0].url, "steps/1/objects/delta/delta.safetensors"));

	ck_assert_int_eq(run_find_latest(fixture.store, span_text("bucket"), span_text("run"), true, 0, fixture.arena, &read, &err), 0);
	ck_assert_uint_eq(read.step, 1);
	ck_assert_int_eq(run_find_latest(fixture.store, span_text("bucket"), span_text("run"), true, 1, fixture.arena, &read, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 2, false, fixture.arena, &read, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), UINT64_MAX, false, fixture.arena, &read, &anchor,
		&err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);

	struct step_message *steps;
	size_t count;
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(run_list_steps(fixture.store, span_text("bucket"), span_text("run"), 0, 10, fixture.arena, &steps, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(run_list_steps(fixture.store, span_text("bucket"), span_text("run"), 1, 10, fixture.arena, &steps, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(steps[0].step, 1);
}
END_TEST

START_TEST(an_empty_delta_is_a_step)
{
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	step = make_step(1);
	step.forms[0] = (struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
	step.form_count = 1;
	publish_ok(&step);
	ck_assert_uint_eq(the_run().head, 1);
}
END_TEST

START_TEST(a_repeat_is_recognised_and_a_difference_refused)
{
	struct error err = {0};
	struct run_outcome outcome;
	struct step_message first = prepare(0, true, 0);
	publish_ok(&first);
	fixture_delete(fixture.store, "bucket", "run/steps/000000/model.safetensors", NULL, &err);
	ck_assert_msg(publish(&first, &outcome, &err) == 0, "%s", err.text);
	ck_assert(outcome.already);
	struct step_message other = first;
	other.digest = checkpoint(99);
	publish_refused(&other, ERROR_STEP_DIFFERS);
	other = first;
	other.label = span_text("another");
	publish_refused(&other, ERROR_STEP_DIFFERS);
	ck_assert_uint_eq(the_run().steps, 1);
}
END_TEST

START_TEST(a_later_open_fences_the_earlier_writer)
{
	struct error err = {0};
	struct step_message step = prepare(0, true, 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	publish_refused(&step, ERROR_STALE_EPOCH);
	step.epoch = 3;
	publish_refused(&step, ERROR_INVALID);
	step.epoch = 2;
	publish_ok(&step);
	step.epoch = 1;
	publish_refused(&step, ERROR_STALE_EPOCH); /* even a repeat */
}
END_TEST

START_TEST(head_and_base_must_fit)
{
	struct step_message step = prepare(1, true, 100);
	publish_refused(&step, ERROR_HEAD_MOVED);
	step = prepare(0, true, 0);
	publish_ok(&step);
	step = prepare(2, false, 100);
	publish_refused(&step, ERROR_HEAD_MOVED);
	step = prepare(1, false, 100);
	step.base_digest = checkpoint(7);
	publish_refused(&step, ERROR_BASE_MISSING);
	step.has_base = false;
	publish_refused(&step, ERROR_BASE_MISSING);
	step = prepare(1, false, 100);
	step.base_step = 5;
	publish_refused(&step, ERROR_BASE_MISSING);
	ck_assert_uint_eq(the_run().head, 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 1);
}
END_TEST

START_TEST(step_0_needs_an_anchor)
{
	struct step_message step = prepare(0, false, 100);
	publish_refused(&step, ERROR_INVALID);
	step = make_step(0);
	publish_refused(&step, ERROR_INVALID);
}
END_TEST

START_TEST(objects_must_be_there_as_declared)
{
	struct step_message step = prepare(0, true, 0);
	struct step_object *const object = &step.forms[0].objects[0];
	const struct step_object good = *object;
	object->key = span_text("absent");
	publish_refused(&step, ERROR_NO_KEY);
	*object = good;
	object->size++;
	publish_refused(&step, ERROR_DIGEST_MISMATCH);
	*object = good;
	object->digest = checkpoint(5);
	publish_refused(&step, ERROR_DIGEST_MISMATCH);
	*object = good;
	object->version = span_text("00000000000000000000000000000000");
	publish_refused(&step, ERROR_NO_KEY);
	object->version = span_text("short");
	publish_refused(&step, ERROR_INVALID);
	ck_assert(!the_run().has_head);
	*object = good;
	publish_ok(&step);
}
END_TEST

START_TEST(a_named_version_is_taken_even_when_overwritten)
{
	struct error err = {0};
	struct object object;
	char id[33];
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step); /* pins the version */
	ck_assert_int_eq(object_find(fixture.store, span_text("bucket"), step.forms[0].objects[0].key, fixture.arena, &object, &err), 0);
	encode_hex(span_of(object.version, sizeof(object.version)), id);
	put("run/steps/000000/model.safetensors", span_text("something else"));
	step = make_step(1);
	add_form(&step, STEP_ANCHOR, "model.safetensors", "run/steps/000000/model.safetensors", make_shard("ab", 0));
	publish_refused(&step, ERROR_DIGEST_MISMATCH);
	step.forms[0].objects[0].version = span_text(id);
	publish_ok(&step);
}
END_TEST

START_TEST(anchors_must_have_the_runs_tensors)
{
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	static const struct {
		const char *tensors;
		enum error_kind kind;
	} anchors[] = {{"a", ERROR_INCOMPLETE_ANCHOR}, {"abc", ERROR_SCHEMA_MISMATCH}};
	for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
		const struct span bytes = make_shard(anchors[i].tensors, 1);
		put("anchor", bytes);
		step = make_step(1);
		add_form(&step, STEP_ANCHOR, "model.safetensors", "anchor", bytes);
		publish_refused(&step, anchors[i].kind);
	}
	put("anchor", span_text("not a safetensors file"));
	step = make_step(1);
	add_form(&step, STEP_ANCHOR, "model.safetensors", "anchor", span_text("not a safetensors file"));
	publish_refused(&step, ERROR_INVALID);
	step.forms[0].objects[0].name = span_text("model.bin"); /* no tensors at all */
	publish_refused(&step, ERROR_INCOMPLETE_ANCHOR);
	const struct span good = make_shard("ab", 1);
	put("anchor", good);
	step = make_step(1);
	add_form(&step, STEP_ANCHOR, "model.safetensors", "anchor", good);
	publish_ok(&step);
}
END_TEST

START_TEST(tensor_digests_must_give_the_checkpoint_digest)
{
	struct step_message step = prepare(0, true, 0);
	uint8_t digests[32] = {1, 2, 3};
	step.tensor_digests = span_of(digests, 16);
	publish_refused(&step, ERROR_DIGEST_MISMATCH);
	step.tensor_digests = span_of(digests, 32);
	publish_refused(&step, ERROR_DIGEST_MISMATCH);

	struct error err = {0};
	const struct span shard = make_shard("ab", 0);
	struct safetensors *const header = safetensors_parse(span_slice(shard, 8, shard.len - 16), 8, "shard", &err);
	ck_assert_msg(header != NULL, "%s", err.text);
	struct schema *const schema = schema_new();
	ck_assert_int_eq(schema_add(schema, header, &err), 0);
	schema_finish(schema);
	step.digest = schema_checkpoint_digest(schema, (const struct digest128 *)digests);
	step.schema_digest = checkpoint(3);
	publish_refused(&step, ERROR_SCHEMA_MISMATCH);
	step.schema_digest = schema_digest(schema);
	publish_ok(&step);
	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 0, true, fixture.arena, &read, &anchor, &err), 0);
	ck_assert(span_equal(read.tensor_digests, span_of(digests, 32)));
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 0, false, fixture.arena, &read, &anchor, &err), 0);
	ck_assert_uint_eq(read.tensor_digests.len, 0);
	schema_free(schema);
	safetensors_free(header);
}
END_TEST

static void expect_object(const uint64_t step, const char *const name, const struct span bytes)
{
	struct error err = {0};
	struct object object;
	struct buffer read;
	uint64_t anchor;
	ck_assert_msg(run_find_object(fixture.store, span_text("bucket"), span_text("run"), step, span_text(name), fixture.arena, &object,
		&anchor, &err) == 0, "%s", err.text);
	buffer_init(&read, 1000000);
	ck_assert_msg(fixture_read(fixture.store, &object, 0, object.size, &read, &err) == 0, "%s", err.text);
	ck_assert(span_equal(buffer_span(&read), bytes));
	buffer_release(&read);
}

/* Invariant 6. */
START_TEST(a_published_step_keeps_its_objects_whatever_becomes_of_the_keys)
{
	struct error err = {0};
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	step = prepare(1, false, 5000);
	publish_ok(&step);
	uint8_t *const delta = fixture_noise(5000, 1);
	put("run/steps/000000/model.safetensors", span_text("overwritten"));
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "run/steps/000001/delta.safetensors", NULL, &err), 0);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture);
	expect_object(0, "anchor/model.safetensors", make_shard("ab", 0));
	expect_object(1, "delta/delta.safetensors", span_of(delta, 5000));
	struct object object;
	uint64_t anchor;
	static const char *const absent[] = {"anchor/model.safetensors", "delta/other", "delta", "", "other/delta.safetensors", "delta/"};
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		ck_assert_int_eq(run_find_object(fixture.store, span_text("bucket"), span_text("run"), 1, span_text(absent[i]), fixture.arena,
			&object, &anchor, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	}
	free(delta);
}
END_TEST

static struct path_message path(const struct run_path_params *const given)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	struct run_path_params params = *given;
	params.bucket = span_text("bucket");
	params.run = span_text("run");
	params.may_take_long = true;
	ck_assert_msg(run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err) == 0, "%s", err.text);
	return out;
}

/* What the step worker does to a step whose proof fails. */
static void fail_step(const unsigned step)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_run(fixture.store, arena_format(fixture.arena,
		"UPDATE steps SET verified = 2, verify_error = 'not so' WHERE step = %u", step), &err), 0);
}

static uint64_t latest(void)
{
	struct error err = {0};
	struct step_message read;
	ck_assert_msg(run_find_latest(fixture.store, span_text("bucket"), span_text("run"), false, 0, fixture.arena, &read, &err) == 0, "%s",
		err.text);
	return read.step;
}

START_TEST(failed_steps_leave_every_path)
{
	struct error err = {0};
	struct step_message read;
	struct path_message out;
	struct run_path_facts facts;
	uint64_t anchor;
	for (unsigned i = 0; i <= 4; i++) {
		struct step_message step = prepare(i, i == 0, i == 0 ? 0 : 5);
		publish_ok(&step);
	}
	ck_assert(latest() == 4 && !the_run().anchor_due);
	fail_step(3);
	fail_step(4);
	ck_assert_uint_eq(latest(), 2);
	ck_assert(the_run().anchor_due);
	ck_assert_int_eq(run_find_latest(fixture.store, span_text("bucket"), span_text("run"), true, 2, fixture.arena, &read, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_uint_eq(path(&(struct run_path_params){.want_latest = true}).to_step, 2);
	const struct run_path_params wants_failed = {.bucket = span_text("bucket"), .run = span_text("run"), .want = 3};
	ck_assert_int_eq(run_find_path(fixture.store, &wants_failed, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_STEP_FAILED);
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 3, false, fixture.arena, &read, &anchor, &err), 0);
	ck_assert(read.verified == STEP_PROOF_FAILED && span_equal_text(read.verify_error, "not so"));

	struct step_message cure = prepare(5, true, 20);
	struct run_outcome outcome;
	ck_assert_int_eq(publish(&cure, &outcome, &err), 0);
	ck_assert(!outcome.run.anchor_due && latest() == 5);
	/* its delta is built on a failed step, so not even who claims to hold that is led over it */
	const struct path_message way = path(&(struct run_path_params){.want_latest = true, .has_have = true, .have = 4});
	ck_assert_uint_eq(way.link_count, 1);
	ck_assert_int_eq(way.links[0].form.kind, STEP_ANCHOR);
	struct step_message after = prepare(6, false, 20);
	publish_ok(&after);
	ck_assert_uint_eq(path(&(struct run_path_params){.want_latest = true, .has_have = true, .have = 5}).link_count, 1);
}
END_TEST

START_TEST(anchors_are_due_when_deltas_pile_up)
{
	const size_t anchor_bytes = make_shard("ab", 0).len;
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	step = prepare(1, false, anchor_bytes / 4);
	publish_ok(&step);
	ck_assert(!the_run().anchor_due);
	step = prepare(2, false, anchor_bytes / 4);
	struct error err = {0};
	struct run_outcome outcome;
	ck_assert_int_eq(publish(&step, &outcome, &err), 0);
	ck_assert(outcome.run.anchor_due && the_run().anchor_due);
	ck_assert_int_eq(publish(&step, &outcome, &err), 0);
	ck_assert(outcome.already && outcome.run.anchor_due);
	step = prepare(3, true, 0);
	publish_ok(&step);
	ck_assert(!the_run().anchor_due);
	for (unsigned i = 4; i < 68; i++) { /* 64 deltas that change nothing */
		step = make_step(i);
		step.forms[0] = (struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
		step.form_count = 1;
		publish_ok(&step);
	}
	ck_assert(!the_run().anchor_due);
	step = make_step(68);
	step.forms[0] = (struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
	step.form_count = 1;
	publish_ok(&step);
	ck_assert(the_run().anchor_due);
}
END_TEST

START_TEST(paths_are_the_cheapest)
{
	const size_t anchor_bytes = make_shard("ab", 0).len;
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	for (unsigned i = 1; i <= 6; i++) {
		step = prepare(i, i == 3, i == 5 ? 2000 : 20); /* the anchor of 3 comes with a delta; delta 5 is dearer than an anchor */
		publish_ok(&step);
	}
	struct path_message way = path(&(struct run_path_params){.want_latest = true});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.to_step, 6);
	ck_assert_uint_eq(way.link_count, 4); /* anchor 3, deltas 4, 5, 6 */
	ck_assert_uint_eq(way.links[0].step, 3);
	ck_assert_int_eq(way.links[0].form.kind, STEP_ANCHOR);
	ck_assert_uint_eq(way.bytes, anchor_bytes + 20 + 2000 + 20);
	ck_assert_int_eq(way.links[3].form.kind, STEP_DELTA);
	ck_assert_uint_eq(way.links[3].file_count, 1);
	ck_assert(span_equal_text(way.links[3].form.objects[0].url, "steps/6/objects/delta/delta.safetensors"));

	way = path(&(struct run_path_params){.has_have = true, .have = 2, .has_digest = true, .digest = checkpoint(2), .want = 4});
	ck_assert(!way.from_nothing);
	ck_assert_uint_eq(way.from_step, 2);
	ck_assert_uint_eq(way.link_count, 2);
	ck_assert_uint_eq(way.bytes, 40);

	way = path(&(struct run_path_params){.has_have = true, .have = 2, .has_digest = true, .digest = checkpoint(9), .want = 4});
	ck_assert(way.from_nothing); /* not that step's digest */
	ck_assert_uint_eq(way.links[0].step, 3);

	way = path(&(struct run_path_params){.has_have = true, .have = 6, .has_digest = true, .digest = checkpoint(6), .want_latest = true});
	ck_assert_uint_eq(way.link_count, 0);
	ck_assert_uint_eq(way.bytes, 0);
	ck_assert(!way.from_nothing);

	way = path(&(struct run_path_params){.has_have = true, .have = 6, .want = 1}); /* deltas lead only forwards */
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.link_count, 2);
}
END_TEST

START_TEST(an_anchor_is_taken_where_it_is_cheaper_than_the_deltas)
{
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	for (unsigned i = 1; i <= 2; i++) {
		step = prepare(i, i == 2, 5000);
		publish_ok(&step);
	}
	const struct path_message way = path(&(struct run_path_params){.has_have = true, .have = 0, .want_latest = true});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.link_count, 1);
	ck_assert_uint_eq(way.links[0].step, 2);
}
END_TEST

START_TEST(paths_that_cannot_be)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	struct run_path_params params = {.bucket = span_text("bucket"), .run = span_text("run"), .want_latest = true};
	ck_assert_int_eq(run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	params.run = span_text("absent");
	ck_assert_int_eq(run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	params = (struct run_path_params){.bucket = span_text("bucket"), .run = span_text("run"), .want = 1};
	ck_assert_int_eq(run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
}
END_TEST

START_TEST(collecting_never_breaks_a_chain)
{
	struct error err = {0};
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	for (unsigned i = 1; i <= 4; i++) {
		step = prepare(i, i == 3, 100);
		publish_ok(&step);
	}
	ck_assert_int_eq(collect(0, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_int_eq(collect(4, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CHAIN_IN_USE);
	ck_assert_int_eq(collect(9, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_int_eq(collect(2, &err), 0);
	ck_assert_uint_eq(the_run().steps, 4);

	struct step_message read;
	uint64_t anchor = 0;
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 2, false, fixture.arena, &read, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_uint_eq(anchor, 3);
	struct object object;
	ck_assert_int_eq(run_find_object(fixture.store, span_text("bucket"), span_text("run"), 2, span_text("delta/delta.safetensors"),
		fixture.arena, &object, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);

	struct path_message way = path(&(struct run_path_params){.has_have = true, .have = 2, .has_digest = true, .digest = checkpoint(2),
		.want = 3});
	ck_assert_uint_eq(way.link_count, 1);
	way = path(&(struct run_path_params){.has_have = true, .have = 1, .has_digest = true, .digest = checkpoint(1), .want = 4});
	ck_assert(way.from_nothing);
	ck_assert_uint_eq(way.links[0].step, 3);

	struct step_message *steps;
	size_t count;
	ck_assert_int_eq(run_list_steps(fixture.store, span_text("bucket"), span_text("run"), 0, 10, fixture.arena, &steps, &count, &err), 0);
	ck_assert_uint_eq(count, 5);
	ck_assert(steps[2].collected && !steps[1].collected);
}
END_TEST

START_TEST(collected_objects_are_released_unless_current_or_pinned_elsewhere)
{
	struct error err = {0};
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	step = prepare(1, true, 0);
	publish_ok(&step);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "run/steps/000000/model.safetensors", NULL, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2);
	ck_assert_int_eq(collect(0, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM steps WHERE state = 2"), 1);
	struct run_outcome outcome;
	step = prepare(0, true, 0);
	ck_assert_int_eq(publish(&step, &outcome, &err), 0); /* the tombstone still knows it */
	ck_assert(outcome.already);
}
END_TEST

START_TEST(retention_keeps_what_the_kept_steps_need)
{
	struct error err = {0};
	struct settled *settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_settings_start(fixture.store, span_text("bucket"), span_text("run"), span_text("{\"keep_steps\":3}"), settled_done, settled),
		settled, NULL, &err), 0);
	for (unsigned i = 0; i <= 9; i++) {
		struct step_message step = prepare(i, i % 4 == 0, i == 0 ? 0 : 50);
		publish_ok(&step);
	}
	/* head 9, keep 3: steps 7, 8, 9 and what leads to 7: from anchor 4 on */
	ck_assert_uint_eq(the_run().steps, 6);
	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 3, false, fixture.arena, &read, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_COLLECTED);
	ck_assert_uint_eq(anchor, 4);
	ck_assert_int_eq(run_find_step(fixture.store, span_text("bucket"), span_text("run"), 4, false, fixture.arena, &read, &anchor, &err), 0);
	const struct path_message way = path(&(struct run_path_params){.want = 7});
	ck_assert_uint_eq(way.link_count, 4);
	fixture.clock.now_ms += 16 * 60 * 1000; /* what that answer named is held for a while */
	settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_settings_start(fixture.store, span_text("bucket"), span_text("run"), span_text("{\"keep_steps\":1}"), settled_done, settled),
		settled, NULL, &err), 0);
	ck_assert_uint_eq(the_run().steps, 2); /* 8 and 9 */
	ck_assert_uint_eq(the_run().settings.keep_steps, 1);
}
END_TEST

START_TEST(ending_a_run_frees_its_name_and_then_its_objects)
{
	struct error err = {0};
	for (unsigned i = 0; i < 3; i++) {
		struct step_message step = prepare(i, i == 0, i == 0 ? 0 : 3000);
		publish_ok(&step);
	}
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "run/steps/000001/delta.safetensors", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	ck_assert_int_eq(fixture_run(fixture.store, "INSERT INTO step_views (step, kind, state) SELECT id, 0, 1 FROM steps", &err), 0);
	struct settled *const settled = settled_new();
	ck_assert_int_eq(fixture_settle_run(run_delete_start(fixture.store, span_text("bucket"), span_text("run"), settled_done, settled),
		settled, NULL, &err), 0);
	struct run_message run;
	ck_assert_int_eq(run_find(fixture.store, span_text("bucket"), span_text("run"), fixture.arena, &run, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_RUN);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", &run, &err), 0);
	ck_assert_uint_eq(run.epoch, 1);
	ck_assert(!run.has_head);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM steps"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_views"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM run_schemas"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2); /* the current ones stay */
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
}
END_TEST

START_TEST(runs_are_listed_in_order)
{
	struct error err = {0};
	struct run_message *runs;
	size_t count;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "a", NULL, &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "z", NULL, &err), 0);
	ck_assert_int_eq(run_list(fixture.store, span_text("bucket"), span_text(""), 2, fixture.arena, &runs, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(runs[0].run, "a") && span_equal_text(runs[1].run, "run"));
	ck_assert_int_eq(run_list(fixture.store, span_text("bucket"), span_text("run"), 2, fixture.arena, &runs, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(runs[0].run, "z"));
	ck_assert_int_eq(run_list(fixture.store, span_text("absent"), span_text(""), 2, fixture.arena, &runs, &count, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

struct held {
	struct change change; /* first */
	pthread_mutex_t gate; /* locked by the test while the committer shall stand still */
	struct settled *settled;
};

static int apply_held(struct change *const change, struct db *const db, struct error *const err)
{
	(void)db;
	(void)err;
	struct held *const held = (struct held *)change;
	pthread_mutex_lock(&held->gate);
	pthread_mutex_unlock(&held->gate);
	return 0;
}

static void held_done(struct change *const change)
{
	settled_done(((struct held *)change)->settled);
}

static void pass_lane(struct helper_job *const job)
{
	settled_done(*(struct settled **)(job + 1));
}

/* Step 1 is read ahead before the commit of step 0 gave the run a schema, and applied after it. */
START_TEST(steps_0_and_1_on_their_way_together)
{
	struct error err = {0};
	struct settled *const ends[2] = {settled_new(), settled_new()};
	const struct step_message first = prepare(0, true, 0);
	const struct step_message second = prepare(1, false, 3000);
	struct held held = {.change = {.apply = apply_held, .done = held_done}, .gate = PTHREAD_MUTEX_INITIALIZER, .settled = settled_new()};
	struct {
		struct helper_job job;
		struct settled *settled;
	} marker = {.job.run = pass_lane, .settled = settled_new()};
	pthread_mutex_lock(&held.gate);
	committer_submit(store_committer(fixture.store), &held.change);
	struct run_change *const zero = run_publish_start(fixture.store, span_text("bucket"), span_text("run"), &first, settled_done, ends[0]);
	struct run_change *const one = run_publish_start(fixture.store, span_text("bucket"), span_text("run"), &second, settled_done, ends[1]);
	/* behind both in the run's lane: when it has run, both were read ahead */
	helpers_submit(store_helpers(fixture.store), store_publish_lane(fixture.store, xxh3_64(span_text("run"))), &marker.job);
	settled_wait(marker.settled);
	pthread_mutex_unlock(&held.gate);
	settled_wait(held.settled);
	ck_assert_msg(fixture_settle_run(zero, ends[0], NULL, &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_settle_run(one, ends[1], NULL, &err), -1);
	ck_assert_msg(err.kind == ERROR_BUSY, "%s: %s", error_kind_name(err.kind), err.text);
	publish_ok(&second);
	ck_assert_uint_eq(the_run().head, 1);
}
END_TEST

static void woken(struct step_waiter *const waiter)
{
	settled_done(*(struct settled **)(waiter + 1));
}

START_TEST(publishing_wakes_who_waits)
{
	struct {
		struct step_waiter waiter;
		struct settled *settled;
	} waiting = {.waiter.wake = woken, .settled = settled_new()};
	struct step_watch *const watch = store_step_watch(fixture.store);
	const uint64_t seen = step_watch_generation(watch, span_text("bucket"), span_text("run"));
	step_watch_wait(watch, span_text("bucket"), span_text("run"), seen, 60000, &waiting.waiter);
	struct step_message step = prepare(0, true, 0);
	publish_ok(&step);
	settled_wait(waiting.settled);
	ck_assert_uint_ne(step_watch_generation(watch, span_text("bucket"), span_text("run")), seen);
}
END_TEST

Suite *test_run_suite(void);
Suite *test_run_suite(void)
{
	Suite *const suite = suite_create("run");
	TCase *const plain = tcase_create("names");
	tcase_add_loop_test(plain, names_are_checked, 0, sizeof(names) / sizeof(names[0]));
	suite_add_tcase(suite, plain);
	TCase *const tests = tcase_create("run");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_open_raises_the_epoch);
	tcase_add_test(tests, an_expected_epoch_guards_against_opening_twice);
	tcase_add_test(tests, a_chain_is_published_and_read_back);
	tcase_add_test(tests, an_empty_delta_is_a_step);
	tcase_add_test(tests, a_repeat_is_recognised_and_a_difference_refused);
	tcase_add_test(tests, a_later_open_fences_the_earlier_writer);
	tcase_add_test(tests, head_and_base_must_fit);
	tcase_add_test(tests, step_0_needs_an_anchor);
	tcase_add_test(tests, objects_must_be_there_as_declared);
	tcase_add_test(tests, a_named_version_is_taken_even_when_overwritten);
	tcase_add_test(tests, anchors_must_have_the_runs_tensors);
	tcase_add_test(tests, tensor_digests_must_give_the_checkpoint_digest);
	tcase_add_test(tests, a_published_step_keeps_its_objects_whatever_becomes_of_the_keys);
	tcase_add_test(tests, paths_are_the_cheapest);
	tcase_add_test(tests, an_anchor_is_taken_where_it_is_cheaper_than_the_deltas);
	tcase_add_test(tests, paths_that_cannot_be);
	tcase_add_test(tests, collecting_never_breaks_a_chain);
	tcase_add_test(tests, collected_objects_are_released_unless_current_or_pinned_elsewhere);
	tcase_add_test(tests, retention_keeps_what_the_kept_steps_need);
	tcase_add_test(tests, ending_a_run_frees_its_name_and_then_its_objects);
	tcase_add_test(tests, runs_are_listed_in_order);
	tcase_add_test(tests, steps_0_and_1_on_their_way_together);
	tcase_add_test(tests, publishing_wakes_who_waits);
	tcase_add_test(tests, failed_steps_leave_every_path);
	tcase_add_test(tests, anchors_are_due_when_deltas_pile_up);
	suite_add_tcase(suite, tests);
	return suite;
}
