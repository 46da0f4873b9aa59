#include "tests/unit/unit.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/thread/step_watch.h"
#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/run_fixture.h"
#include "weights/model/schema.h"

static struct store_fixture fixture;

static void set_up(void)
{
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

START_TEST(a_chain_is_published_and_read_back)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 1, false, 500);
	step.metadata = span_text("{\"lr\":\"1e-6\"}");
	run_fixture_publish_ok(&fixture, &step);
	const struct run_message run = run_fixture_run(&fixture);
	ck_assert(run.has_head && run.has_schema);
	ck_assert_uint_eq(run.head, 1);
	ck_assert_uint_eq(run.steps, 2);
	const struct digest128 head = run_fixture_checkpoint(1);
	ck_assert(digest128_equal(&run.head_digest, &head));

	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 1, .with_tensors = true},
				 fixture.arena, &read, &anchor, &err),
		0);
	ck_assert_uint_eq(read.step, 1);
	ck_assert(digest128_equal(&read.digest, &head));
	ck_assert(digest128_equal(&read.schema_digest, &run.schema_digest));
	ck_assert(span_equal_text(read.label, "label"));
	ck_assert(span_equal_text(read.metadata, "{\"lr\":\"1e-6\"}"));
	ck_assert_int_eq(read.created_ms, 1700000000000);
	ck_assert_uint_eq(read.form_count, 1);
	ck_assert_uint_eq(read.forms[0].objects[0].version.len, 32);
	ck_assert(span_equal_text(
		read.forms[0].objects[0].url, "steps/1/objects/delta/delta.safetensors"));

	ck_assert_int_eq(run_find_latest(fixture.store,
				 &(struct run_latest_params){
					 .run = run_fixture_ref, .has_after = true, .after = 0},
				 fixture.arena, &read, &err),
		0);
	ck_assert_uint_eq(read.step, 1);
	ck_assert_int_eq(run_find_latest(fixture.store,
				 &(struct run_latest_params){
					 .run = run_fixture_ref, .has_after = true, .after = 1},
				 fixture.arena, &read, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	ck_assert_int_eq(run_fixture_find(&fixture, 2, &read, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);
	ck_assert_int_eq(run_fixture_find(&fixture, UINT64_MAX, &read, &anchor, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_STEP);

	struct step_message *steps;
	size_t count;
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(run_list_steps(fixture.store,
				 &(struct run_steps_scan){.run = run_fixture_ref, .limit = 10},
				 fixture.arena, &steps, &count, &err),
		0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(
		run_list_steps(fixture.store,
			&(struct run_steps_scan){.run = run_fixture_ref, .from = 1, .limit = 10},
			fixture.arena, &steps, &count, &err),
		0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(steps[0].step, 1);
}
END_TEST

START_TEST(an_empty_delta_is_a_step)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_step(&fixture, 1);
	step.forms[0] = (struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
	step.form_count = 1;
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 1);
}
END_TEST

START_TEST(a_repeat_is_recognised_and_a_difference_refused)
{
	struct error err = {0};
	struct run_fixture_outcome outcome;
	struct step_message first = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &first);
	fixture_delete(fixture.store, "bucket", "run/steps/000000/model.safetensors", NULL, &err);
	ck_assert_msg(run_fixture_publish(&fixture, &first, &outcome, &err) == 0, "%s", err.text);
	ck_assert(outcome.already);
	struct step_message other = first;
	other.digest = run_fixture_checkpoint(99);
	run_fixture_publish_refused(&fixture, &other, ERROR_STEP_DIFFERS);
	other = first;
	other.label = span_text("another");
	run_fixture_publish_refused(&fixture, &other, ERROR_STEP_DIFFERS);
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 1);
}
END_TEST

START_TEST(a_later_open_fences_the_earlier_writer)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	run_fixture_publish_refused(&fixture, &step, ERROR_STALE_EPOCH);
	step.epoch = 3;
	run_fixture_publish_refused(&fixture, &step, ERROR_INVALID);
	step.epoch = 2;
	run_fixture_publish_ok(&fixture, &step);
	step.epoch = 1;
	run_fixture_publish_refused(&fixture, &step, ERROR_STALE_EPOCH); /* even for a repeat */
}
END_TEST

START_TEST(head_and_base_must_fit)
{
	struct step_message step = run_fixture_prepare(&fixture, 1, true, 100);
	run_fixture_publish_refused(&fixture, &step, ERROR_HEAD_MOVED);
	step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 2, false, 100);
	run_fixture_publish_refused(&fixture, &step, ERROR_HEAD_MOVED);
	step = run_fixture_prepare(&fixture, 1, false, 100);
	step.base_digest = run_fixture_checkpoint(7);
	run_fixture_publish_refused(&fixture, &step, ERROR_BASE_MISSING);
	step.has_base = false;
	run_fixture_publish_refused(&fixture, &step, ERROR_BASE_MISSING);
	step = run_fixture_prepare(&fixture, 1, false, 100);
	step.base_step = 5;
	run_fixture_publish_refused(&fixture, &step, ERROR_BASE_MISSING);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM step_objects"), 1);
}
END_TEST

START_TEST(step_0_needs_an_anchor)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, false, 100);
	run_fixture_publish_refused(&fixture, &step, ERROR_INVALID);
	step = run_fixture_step(&fixture, 0);
	run_fixture_publish_refused(&fixture, &step, ERROR_INVALID);
	run_fixture_put(&fixture, "run/config.json", span_text("{ }"));
	run_fixture_add_form(
		&fixture, &step, STEP_ANCHOR, "config.json", "run/config.json", span_text("{ }"));
	run_fixture_publish_refused(&fixture, &step, ERROR_INCOMPLETE_ANCHOR);
}
END_TEST

START_TEST(objects_must_be_there_as_declared)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	struct step_object *const object = &step.forms[0].objects[0];
	const struct step_object good = *object;
	object->key = span_text("absent");
	run_fixture_publish_refused(&fixture, &step, ERROR_NO_KEY);
	*object = good;
	object->size++;
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	*object = good;
	object->digest = run_fixture_checkpoint(5);
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	*object = good;
	object->version = span_text("00000000000000000000000000000000");
	run_fixture_publish_refused(&fixture, &step, ERROR_NO_KEY);
	object->version = span_text("short");
	run_fixture_publish_refused(&fixture, &step, ERROR_INVALID);
	ck_assert(!run_fixture_run(&fixture).has_head);
	*object = good;
	run_fixture_publish_ok(&fixture, &step);
}
END_TEST

/* A publisher may have the right to write and lack the right to read. */
START_TEST(what_an_object_has_instead_is_not_told)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	struct step_object *const object = &step.forms[0].objects[0];
	const struct step_object good = *object;
	struct error err = {0};
	char digest[DIGEST128_TEXT_BYTES];
	char size[32];
	digest128_format(&good.digest, digest);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)good.size);
	object->digest = run_fixture_checkpoint(5);
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, NULL, &err), -1);
	ck_assert_ptr_null(strstr(err.text, digest));
	*object = good;
	object->size = 1;
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, NULL, &err), -1);
	ck_assert_ptr_null(strstr(err.text, size));
}
END_TEST

START_TEST(a_named_version_is_taken_even_when_overwritten)
{
	struct error err = {0};
	struct object object;
	char id[33];
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step); /* keeps the version */
	ck_assert_int_eq(object_find(fixture.store,
				 &(struct object_ref){.bucket = fixture_bucket("bucket"),
					 .key = step.forms[0].objects[0].key},
				 fixture.arena, &object, &err),
		0);
	encode_hex(span_of(object.version, sizeof(object.version)), id);
	run_fixture_put(
		&fixture, "run/steps/000000/model.safetensors", span_text("something else"));
	step = run_fixture_step(&fixture, 1);
	run_fixture_add_form(&fixture, &step, STEP_ANCHOR, "model.safetensors",
		"run/steps/000000/model.safetensors", run_fixture_shard(&fixture, "ab", 0));
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	step.forms[0].objects[0].version = span_text(id);
	run_fixture_publish_ok(&fixture, &step);
}
END_TEST

/* The size is the same; only the bytes differ. */
START_TEST(a_named_version_must_be_what_the_step_says)
{
	struct error err = {0};
	struct object object;
	char id[33];
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 1, false, 50);
	struct step_object *const delta = &step.forms[0].objects[0];
	uint8_t *const others = fixture_noise(50, 7);
	run_fixture_put(&fixture, "run/steps/000001/delta.safetensors", span_of(others, 50));
	ck_assert_int_eq(
		object_find(fixture.store,
			&(struct object_ref){.bucket = fixture_bucket("bucket"), .key = delta->key},
			fixture.arena, &object, &err),
		0);
	ck_assert_uint_eq(object.size, delta->size);
	encode_hex(span_of(object.version, sizeof(object.version)), id);
	delta->version = span_text(id);
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 0);
	delta->digest = xxh3_128(span_of(others, 50));
	run_fixture_publish_ok(&fixture, &step);
	free(others);
}
END_TEST

START_TEST(anchors_must_have_the_runs_tensors)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	static const struct {
		const char *tensors;
		enum error_kind kind;
	} anchors[] = {{"a", ERROR_INCOMPLETE_ANCHOR}, {"abc", ERROR_SCHEMA_MISMATCH}};
	for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
		const struct span bytes = run_fixture_shard(&fixture, anchors[i].tensors, 1);
		run_fixture_put(&fixture, "anchor", bytes);
		step = run_fixture_step(&fixture, 1);
		run_fixture_add_form(
			&fixture, &step, STEP_ANCHOR, "model.safetensors", "anchor", bytes);
		run_fixture_publish_refused(&fixture, &step, anchors[i].kind);
	}
	run_fixture_put(&fixture, "anchor", span_text("not a safetensors file"));
	step = run_fixture_step(&fixture, 1);
	run_fixture_add_form(&fixture, &step, STEP_ANCHOR, "model.safetensors", "anchor",
		span_text("not a safetensors file"));
	run_fixture_publish_refused(&fixture, &step, ERROR_INVALID);
	step.forms[0].objects[0].name = span_text("model.bin"); /* no tensors at all */
	run_fixture_publish_refused(&fixture, &step, ERROR_INCOMPLETE_ANCHOR);
	const struct span good = run_fixture_shard(&fixture, "ab", 1);
	run_fixture_put(&fixture, "anchor", good);
	step = run_fixture_step(&fixture, 1);
	run_fixture_add_form(&fixture, &step, STEP_ANCHOR, "model.safetensors", "anchor", good);
	run_fixture_publish_ok(&fixture, &step);
}
END_TEST

START_TEST(tensor_digests_must_give_the_checkpoint_digest)
{
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	uint8_t digests[48] = {1, 2, 3};
	step.tensor_digests = span_of(digests, 16);
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	step.tensor_digests = span_of(digests, 32);
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);

	struct error err = {0};
	const struct span shard = run_fixture_shard(&fixture, "ab", 0);
	struct safetensors *const header =
		safetensors_parse(span_slice(shard, 8, shard.len - 16), 8, "shard", &err);
	ck_assert_msg(header != NULL, "%s", err.text);
	struct schema *const schema = schema_new();
	ck_assert_int_eq(schema_add(schema, header, &err), 0);
	schema_finish(schema);
	step.digest = schema_checkpoint_digest(schema, (const struct digest128 *)digests);
	step.schema_digest = run_fixture_checkpoint(3);
	run_fixture_publish_refused(&fixture, &step, ERROR_SCHEMA_MISMATCH);
	step.schema_digest = schema_digest(schema);
	step.tensor_digests = span_of(digests, 48);
	run_fixture_publish_refused(&fixture, &step, ERROR_DIGEST_MISMATCH);
	step.tensor_digests = span_of(digests, 32);
	run_fixture_publish_ok(&fixture, &step);
	struct step_message read;
	uint64_t anchor;
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 0, .with_tensors = true},
				 fixture.arena, &read, &anchor, &err),
		0);
	ck_assert(span_equal(read.tensor_digests, span_of(digests, 32)));
	ck_assert_int_eq(run_fixture_find(&fixture, 0, &read, &anchor, &err), 0);
	ck_assert_uint_eq(read.tensor_digests.len, 0);
	schema_free(schema);
	safetensors_free(header);
}
END_TEST

static void expect_object(uint64_t step, const char *name, struct span bytes)
{
	struct error err = {0};
	struct object object;
	struct buffer read;
	uint64_t anchor;
	ck_assert_msg(run_find_object(fixture.store,
			      &(struct run_file_ref){run_fixture_ref, step, span_text(name)},
			      fixture.arena, &object, &anchor, &err) == 0,
		"%s", err.text);
	buffer_init(&read, 1000000);
	ck_assert_msg(fixture_read(fixture.store, &object, 0, object.size, &read, &err) == 0, "%s",
		err.text);
	ck_assert(span_equal(buffer_span(&read), bytes));
	buffer_release(&read);
}

/* When the stored manifest or its digests have changed, neither is given. */
START_TEST(a_damaged_manifest_is_found)
{
	static const char *const faults[] = {"manifest = replace(manifest, 'label', 'babel')",
		"tensor_digests = x'00112233445566778899aabbccddeeff'", "step = step + 1"};
	struct error err = {0};
	struct step_message read;
	uint64_t anchor;
	const struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	const char *sql = arena_format(fixture.arena, "UPDATE step_manifests SET %s", faults[_i]);
	ck_assert_int_eq(fixture_run(fixture.store, sql, &err), 0);
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 0, .with_tensors = true},
				 fixture.arena, &read, &anchor, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

/* A request cannot claim that its step is proven. A step that is read without tensors has none. */
START_TEST(a_step_is_proven_by_the_server_alone)
{
	struct error err = {0};
	struct step_message read;
	uint64_t anchor;
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	step.verified = STEP_PROOF_OK;
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_int_eq(run_find_step(fixture.store,
				 &(struct run_step_params){
					 .run = run_fixture_ref, .step = 0, .with_tensors = true},
				 fixture.arena, &read, &anchor, &err),
		0);
	ck_assert_int_eq(read.verified, STEP_PROOF_PENDING);
	step.verified = STEP_PROOF_NONE;
	struct run_fixture_outcome outcome;
	/* the same step */
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), 0);
	ck_assert(outcome.already);
}
END_TEST

/* Names of objects may contain characters that a URL may not. */
START_TEST(urls_of_objects_are_encoded)
{
	struct error err = {0};
	struct step_message read;
	uint64_t anchor;
	struct step_message step = run_fixture_step(&fixture, 0);
	const struct span bytes = run_fixture_shard(&fixture, "ab", 1);
	run_fixture_put(&fixture, "k", bytes);
	run_fixture_add_form(&fixture, &step, STEP_ANCHOR, "sub/a b%.safetensors", "k", bytes);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert_int_eq(run_fixture_find(&fixture, 0, &read, &anchor, &err), 0);
	ck_assert(span_equal_text(
		read.forms[0].objects[0].url, "steps/0/objects/anchor/sub/a%20b%25.safetensors"));
}
END_TEST

/* Invariant 6. */
START_TEST(a_published_step_keeps_its_objects_whatever_becomes_of_the_keys)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 1, false, 5000);
	run_fixture_publish_ok(&fixture, &step);
	uint8_t *const delta = fixture_noise(5000, 1);
	run_fixture_put(&fixture, "run/steps/000000/model.safetensors", span_text("overwritten"));
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket",
				 "run/steps/000001/delta.safetensors", NULL, &err),
		0);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture);
	expect_object(0, "anchor/model.safetensors", run_fixture_shard(&fixture, "ab", 0));
	expect_object(1, "delta/delta.safetensors", span_of(delta, 5000));
	struct object object;
	uint64_t anchor;
	static const char *const absent[] = {"anchor/model.safetensors", "delta/other", "delta", "",
		"other/delta.safetensors", "delta/"};
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		ck_assert_int_eq(
			run_find_object(fixture.store,
				&(struct run_file_ref){run_fixture_ref, 1, span_text(absent[i])},
				fixture.arena, &object, &anchor, &err),
			-1);
		ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	}
	free(delta);
}
END_TEST

START_TEST(anchors_are_due_when_deltas_pile_up)
{
	const size_t anchor_bytes = run_fixture_shard(&fixture, "ab", 0).len;
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_prepare(&fixture, 1, false, anchor_bytes / 4);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert(!run_fixture_run(&fixture).anchor_due);
	step = run_fixture_prepare(&fixture, 2, false, anchor_bytes / 4);
	struct error err = {0};
	struct run_fixture_outcome outcome;
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), 0);
	ck_assert(outcome.anchor_due && run_fixture_run(&fixture).anchor_due);
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), 0);
	ck_assert(outcome.already && outcome.anchor_due);
	step = run_fixture_prepare(&fixture, 3, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	ck_assert(!run_fixture_run(&fixture).anchor_due);
	for (unsigned i = 4; i < 68; i++) { /* 64 deltas that change nothing */
		step = run_fixture_step(&fixture, i);
		step.forms[0] =
			(struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
		step.form_count = 1;
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert(!run_fixture_run(&fixture).anchor_due);
	step = run_fixture_step(&fixture, 68);
	step.forms[0] = (struct step_form){.kind = STEP_DELTA, .format = span_text("trl-gap")};
	step.form_count = 1;
	run_fixture_publish_ok(&fixture, &step);
	ck_assert(run_fixture_run(&fixture).anchor_due);
}
END_TEST

/* The outcomes of two publishes that were read ahead before either was applied. */
START_TEST(an_anchor_is_due_behind_a_failed_proof_and_counted_where_one_was_made)
{
	struct error err = {0};
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	for (unsigned i = 1; i <= 3; i++) {
		step = run_fixture_prepare(&fixture, i, false, 10000);
		run_fixture_publish_ok(&fixture, &step);
	}
	ck_assert(run_fixture_run(&fixture).anchor_due);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE steps SET made = 1, made_bytes = 1000000 WHERE step = 1", &err),
		0);
	ck_assert(!run_fixture_run(&fixture).anchor_due);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE steps SET verified = 2 WHERE step = 2", &err),
		0);
	ck_assert(run_fixture_run(&fixture).anchor_due);
}
END_TEST

static void publish_together(const struct step_message *first, const struct step_message *second,
	int results[2], struct error errors[2])
{
	const struct step_message *const steps[2] = {first, second};
	struct settled *const ends[2] = {settled_new(), settled_new()};
	struct call *calls[2];
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	for (size_t i = 0; i < 2; i++) {
		calls[i] = run_publish_call(fixture.store, &run_fixture_ref, steps[i]);
		call_start(calls[i], settled_done, ends[i]);
	}
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	for (size_t i = 0; i < 2; i++)
		results[i] = fixture_settle(calls[i], ends[i], &errors[i]);
}

/* Step 1 is read ahead before the commit of step 0 gave the run a schema, and applied after it. */
START_TEST(steps_0_and_1_on_their_way_together)
{
	struct error errors[2] = {{0}, {0}};
	int results[2];
	const struct step_message first = run_fixture_prepare(&fixture, 0, true, 0);
	const struct step_message second = run_fixture_prepare(&fixture, 1, false, 3000);
	publish_together(&first, &second, results, errors);
	ck_assert_msg(results[0] == 0, "%s", errors[0].text);
	ck_assert_int_eq(results[1], -1);
	ck_assert_msg(errors[1].kind == ERROR_BUSY, "%s: %s", error_kind_name(errors[1].kind),
		errors[1].text);
	run_fixture_publish_ok(&fixture, &second);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 1);
}
END_TEST

/* Its anchor was compared with no schema, because the run had none yet. */
START_TEST(an_anchor_on_its_way_is_held_against_the_schema_that_came_meanwhile)
{
	struct error errors[2] = {{0}, {0}};
	int results[2];
	const struct step_message first = run_fixture_prepare(&fixture, 0, true, 0);
	const struct span other = run_fixture_shard(&fixture, "abc", 1);
	struct step_message second = run_fixture_step(&fixture, 1);
	run_fixture_put(&fixture, "other", other);
	run_fixture_add_form(&fixture, &second, STEP_ANCHOR, "model.safetensors", "other", other);
	publish_together(&first, &second, results, errors);
	ck_assert_msg(results[0] == 0, "%s", errors[0].text);
	ck_assert_int_eq(results[1], -1);
	ck_assert_msg(errors[1].kind == ERROR_SCHEMA_MISMATCH, "%s: %s",
		error_kind_name(errors[1].kind), errors[1].text);
	ck_assert_uint_eq(run_fixture_run(&fixture).head, 0);
}
END_TEST

/* The new run has the name and the epoch of the old one. */
START_TEST(a_step_on_its_way_to_a_run_that_was_ended_is_not_for_the_next_of_its_name)
{
	struct error err = {0};
	const struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	const struct run_open_params open = {.run = run_fixture_ref};
	struct settled *const ends[3] = {settled_new(), settled_new(), settled_new()};
	struct call *const calls[3] = {run_delete_call(fixture.store, &open.run),
		run_open_call(fixture.store, &open),
		run_publish_call(fixture.store, &open.run, &step)};
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	for (size_t i = 0; i < 3; i++)
		call_start(calls[i], settled_done, ends[i]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	for (size_t i = 0; i < 2; i++)
		ck_assert_msg(fixture_settle(calls[i], ends[i], &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_settle(calls[2], ends[2], &err), -1);
	ck_assert_msg(err.kind == ERROR_STALE_EPOCH, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert(!run_fixture_run(&fixture).has_head);
	ck_assert_uint_eq(run_fixture_run(&fixture).epoch, step.epoch);
}
END_TEST

static void woken(struct step_waiter *waiter)
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
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	settled_wait(waiting.settled);
	ck_assert_uint_ne(
		step_watch_generation(watch, span_text("bucket"), span_text("run")), seen);
}
END_TEST

/* Readers that wait for the next step are not woken. */
START_TEST(a_repeat_wakes_nobody_and_counts_for_nothing)
{
	struct error err = {0};
	struct run_fixture_outcome outcome;
	struct step_watch *watch = store_step_watch(fixture.store);
	struct metrics *metrics = store_metrics(fixture.store);
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	const uint64_t seen = step_watch_generation(watch, span_text("bucket"), span_text("run"));
	const int64_t counted = metrics == NULL ? 0 : metrics_get(metrics, METRIC_STEPS_PUBLISHED);
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), 0);
	ck_assert(outcome.already);
	step.epoch = 9;
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, &outcome, &err), -1);
	ck_assert_uint_eq(
		step_watch_generation(watch, span_text("bucket"), span_text("run")), seen);
	ck_assert_int_eq(
		metrics == NULL ? 0 : metrics_get(metrics, METRIC_STEPS_PUBLISHED), counted);
}
END_TEST

Suite *test_step_publish_suite(void);
Suite *test_step_publish_suite(void)
{
	Suite *const suite = suite_create("step_publish");
	TCase *const tests = tcase_create("step_publish");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_chain_is_published_and_read_back);
	tcase_add_test(tests, an_empty_delta_is_a_step);
	tcase_add_test(tests, a_repeat_is_recognised_and_a_difference_refused);
	tcase_add_test(tests, a_later_open_fences_the_earlier_writer);
	tcase_add_test(tests, head_and_base_must_fit);
	tcase_add_test(tests, step_0_needs_an_anchor);
	tcase_add_test(tests, objects_must_be_there_as_declared);
	tcase_add_test(tests, what_an_object_has_instead_is_not_told);
	tcase_add_test(tests, a_named_version_is_taken_even_when_overwritten);
	tcase_add_test(tests, a_named_version_must_be_what_the_step_says);
	tcase_add_test(tests, anchors_must_have_the_runs_tensors);
	tcase_add_test(tests, tensor_digests_must_give_the_checkpoint_digest);
	tcase_add_test(tests, a_published_step_keeps_its_objects_whatever_becomes_of_the_keys);
	tcase_add_loop_test(tests, a_damaged_manifest_is_found, 0, 3);
	tcase_add_test(tests, a_step_is_proven_by_the_server_alone);
	tcase_add_test(tests, urls_of_objects_are_encoded);
	tcase_add_test(
		tests, an_anchor_is_due_behind_a_failed_proof_and_counted_where_one_was_made);
	tcase_add_test(tests, anchors_are_due_when_deltas_pile_up);
	tcase_add_test(tests, steps_0_and_1_on_their_way_together);
	tcase_add_test(tests, an_anchor_on_its_way_is_held_against_the_schema_that_came_meanwhile);
	tcase_add_test(
		tests, a_step_on_its_way_to_a_run_that_was_ended_is_not_for_the_next_of_its_name);
	tcase_add_test(tests, publishing_wakes_who_waits);
	tcase_add_test(tests, a_repeat_wakes_nobody_and_counts_for_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}
