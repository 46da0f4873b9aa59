/* Folds in the catalog: wanted, stored, taken by paths, and gone with their steps. */
#include "tests/unit/unit.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "base/thread/step_watch.h"
#include "storage/core/committer.h"
#include "storage/run_tables/fold_row.h"
#include "storage/runs/fold_change.h"
#include "storage/runs/fold_gain.h"
#include "storage/runs/replica.h"
#include "storage/step_jobs/fold_store.h"
#include "storage/step_jobs/step_worker.h"
#include "tests/unit/storage/run_fixture.h"

enum { DELTA_BYTES = 100, HOUR_MS = 60 * 60 * 1000 };

static struct store_fixture fixture;

static void set_up(void)
{
	run_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct digest128 checkpoint(uint64_t step)
{
	return xxh3_128(span_of(&step, sizeof(step)));
}

/* A safetensors file with one tensor of `len` bytes. */
static struct span make_shard(size_t len)
{
	char *const json = arena_format(fixture.arena,
		"{\"w\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", len, len);
	const size_t json_len = strlen(json);
	uint8_t *const bytes = arena_take(fixture.arena, 8 + json_len + len);
	const uint64_t le = htole64(json_len);
	memcpy(bytes, &le, 8);
	memcpy(bytes + 8, json, json_len);
	return span_of(bytes, 8 + json_len + len);
}

/* Step 0 has an anchor of some 5,000 bytes, all others a delta of DELTA_BYTES. */
static void publish(uint64_t number)
{
	struct error err = {0};
	char *const key = arena_format(fixture.arena, "run/steps/%llu", (unsigned long long)number);
	uint8_t *const noise = fixture_noise(DELTA_BYTES, number);
	const struct span bytes = number == 0
		? make_shard(5000)
		: arena_copy(fixture.arena, span_of(noise, DELTA_BYTES));
	free(noise);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", key, bytes, &err), 0);
	struct step_file file = {span_text("model.safetensors"), 1000, xxh3_128(span_text("file"))};
	struct step_object object = {.name = span_text("model.safetensors"),
		.key = span_text(key),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
	struct step_message step = {.step = number,
		.epoch = 1,
		.digest = checkpoint(number),
		.files = &file,
		.file_count = 1,
		.form_count = 1,
		.has_base = number > 0,
		.base_step = number - 1,
		.base_digest = checkpoint(number - 1)};
	step.forms[0] = (struct step_form){
		number == 0 ? STEP_ANCHOR : STEP_DELTA, span_text("any"), &object, 1};
	ck_assert_msg(
		fixture_call(run_publish_call(fixture.store, &run_fixture_ref, &step), &err) == 0,
		"step %u: %s", (unsigned)number, err.text);
}

static void publish_from(uint64_t first, uint64_t last)
{
	for (uint64_t step = first; step <= last; step++)
		publish(step);
}

static void publish_up_to(uint64_t last)
{
	publish_from(0, last);
}

static int64_t the_run(void)
{
	return fixture_count(fixture.store, "SELECT MAX(id) FROM runs");
}

static int64_t fold_id(uint64_t from, uint64_t to)
{
	struct error err = {0};
	struct fold_row row;
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = fold_row_find(db, the_run(), from, to, &row, &err);
	store_reader_give(fixture.store, db);
	return found == 1 ? row.id : 0;
}

/* A fold of one file of `bytes` bytes, and one of 3 bytes below files/. */
static int store_fold(int64_t id, size_t bytes, struct error *err)
{
	struct error ignored = {0};
	char *const folder = store_fixture_path(&fixture, "made");
	char *const below = store_fixture_path(&fixture, "made/files");
	char *const delta = store_fixture_path(&fixture, "made/delta.safetensors");
	char *const config = store_fixture_path(&fixture, "made/files/config.json");
	uint8_t *const noise = fixture_noise(bytes, (uint64_t)id + 100);
	ck_assert_int_eq(file_make_folder(file_system(), below, 0755, &ignored), 0);
	ck_assert_int_eq(
		file_place(file_system(), delta, span_of(noise, bytes), 0644, &ignored), 0);
	ck_assert_int_eq(file_place(file_system(), config, span_text("{ }"), 0644, &ignored), 0);
	const struct fold_store_params params = {.fold = id,
		.bucket = 1,
		.run = span_text("run"),
		.folder = folder,
		.format = span_text("ulp-class")};
	const int result = fold_store(fixture.store, &params, err);
	ck_assert_int_eq(file_remove_tree(file_system(), folder, &ignored), 0);
	free(noise);
	free(config);
	free(delta);
	free(below);
	free(folder);
	return result;
}

static void make_fold(uint64_t from, uint64_t to, size_t bytes)
{
	struct error err = {0};
	ck_assert_msg(store_fold(fold_id(from, to), bytes, &err) == 0, "%s", err.text);
}

static struct path_message path(struct run_path_params params, struct run_path_facts *out_facts)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	params.run = run_fixture_ref;
	params.may_take_long = true;
	ck_assert_msg(run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err) == 0,
		"%s", err.text);
	if (out_facts != NULL)
		*out_facts = facts;
	return out;
}

static struct path_message path_from(uint64_t have)
{
	return path((struct run_path_params){.has_have = true, .have = have, .want_latest = true},
		NULL);
}

/* Waits for the committer, so that the notes of a path are written. */
static void settle(void)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE runs SET steps = steps", &err), 0);
}

START_TEST(each_publish_wants_its_skip_folds)
{
	publish_up_to(21);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM folds WHERE kind = 0 AND state = 0"),
		6);
	ck_assert(fold_id(0, 4) != 0 && fold_id(4, 8) != 0 && fold_id(8, 12) != 0 &&
		fold_id(12, 16) != 0 && fold_id(0, 16) != 0);
	ck_assert(fold_id(16, 20) != 0 && fold_id(4, 20) == 0);
	ck_assert_uint_eq(path_from(0).link_count, 21); /* a wanted fold leads nowhere yet */
}
END_TEST

START_TEST(paths_take_folds_where_they_are_cheaper)
{
	struct error err = {0};
	publish_up_to(17);
	make_fold(0, 4, 250);
	make_fold(4, 8, 5000); /* costs more than its deltas */
	make_fold(0, 16, 700);
	const struct path_message way = path_from(0);
	ck_assert_uint_eq(way.link_count, 2);
	ck_assert_uint_eq(way.bytes, 703 + DELTA_BYTES);
	ck_assert(way.links[0].from == 0 && way.links[0].step == 16 && way.links[1].from == 16 &&
		way.links[1].step == 17);
	const struct digest128 digest = checkpoint(16);
	ck_assert(digest128_equal(&way.links[0].digest, &digest) && way.links[0].file_count == 1);
	const struct step_form *const form = &way.links[0].form;
	ck_assert(form->kind == STEP_DELTA && form->object_count == 2 &&
		span_equal_text(form->format, "ulp-class"));
	ck_assert(span_equal_text(form->objects[0].name, "delta.safetensors") &&
		form->objects[0].size == 700);
	ck_assert(span_equal_text(form->objects[1].url, "folds/0-16/objects/files/config.json"));
	ck_assert(
		span_equal_text(form->objects[0].key, "run/folds/000000-000016/delta.safetensors"));
	ck_assert_uint_eq(form->objects[0].version.len, 32);
	ck_assert_uint_eq(path_from(1).bytes, 16 * DELTA_BYTES);

	struct object object;
	struct buffer read;
	uint8_t *const noise = fixture_noise(700, (uint64_t)fold_id(0, 16) + 100);
	buffer_init(&read, 1000000);
	ck_assert_int_eq(run_find_fold_object(fixture.store,
				 &(struct run_fold_ref){
					 run_fixture_ref, 0, 16, span_text("delta.safetensors")},
				 fixture.arena, &object, &err),
		0);
	ck_assert_msg(fixture_read(fixture.store, &object, 0, object.size, &read, &err) == 0, "%s",
		err.text);
	ck_assert(span_equal(buffer_span(&read), span_of(noise, 700)));
	buffer_release(&read);
	free(noise);
	ck_assert_int_eq(run_find_fold_object(fixture.store,
				 &(struct run_fold_ref){run_fixture_ref, 0, 16, span_text("other")},
				 fixture.arena, &object, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(run_find_fold_object(fixture.store,
				 &(struct run_fold_ref){
					 run_fixture_ref, 8, 12, span_text("delta.safetensors")},
				 fixture.arena, &object, &err),
		-1); /* wanted, not made */
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(folds_lead_over_steps_whose_proof_failed)
{
	struct error err = {0};
	publish_up_to(9);
	make_fold(4, 8, 250);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE steps SET verified = 2 WHERE step = 6", &err),
		0);
	const struct path_message way = path_from(2);
	ck_assert_uint_eq(way.link_count, 4); /* 3, 4, 8, 9 */
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE steps SET verified = 2 WHERE step = 4", &err),
		0);
	struct path_message out;
	struct run_path_facts facts;
	const struct run_path_params params = {
		.run = run_fixture_ref, .has_have = true, .have = 2, .want = 9};
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
}
END_TEST

START_TEST(long_ways_are_not_for_a_reactor)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	publish_up_to(17);
	struct run_path_params params = {
		.run = run_fixture_ref, .has_have = true, .have = 2, .want = 17};
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), 1);
	params.have = 15;
	ck_assert_int_eq(
		run_find_path(fixture.store, &params, fixture.arena, &out, &facts, &err), 0);
	ck_assert_uint_eq(out.link_count, 2);
}
END_TEST

START_TEST(a_direct_fold_is_asked_for_once_where_it_saves_much)
{
	struct run_path_facts facts;
	struct run_path_params params = {
		.has_have = true, .have = 1, .want_latest = true, .asks_fold = true};
	publish_up_to(12);
	(void)path(
		(struct run_path_params){.has_have = true, .have = 1, .want_latest = true}, &facts);
	ck_assert(!facts.fold_is_due); /* not requested */
	params.have = 9;
	(void)path(params, &facts);
	ck_assert(!facts.fold_is_due); /* a reader that is three steps behind */
	params.have = 1;
	params.has_digest = true;
	params.digest = checkpoint(2);
	(void)path(params, &facts);
	ck_assert(!facts.fold_is_due); /* the reader does not hold the step */
	params.digest = checkpoint(1);
	params.want_latest = false;
	params.want = 11;
	(void)path(params, &facts);
	ck_assert(!facts.fold_is_due); /* not to the head */
	settle();
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE kind = 1"), 0);
	params.want_latest = true;
	for (int i = 0; i < 3; i++) {
		(void)path(params, &facts);
		ck_assert(facts.fold_is_due);
		settle();
	}
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE kind = 1"), 1);
	make_fold(1, 12, 500);
	const struct path_message way = path(params, &facts);
	ck_assert(!facts.fold_is_due && way.link_count == 1 && way.bytes == 503);
}
END_TEST

START_TEST(a_lease_asks_for_the_fold_too)
{
	struct error err = {0};
	struct run_path_facts facts;
	struct replica_message replica;
	const struct replica_ref ref = {run_fixture_ref, span_text("worker")};
	const struct run_path_params params = {.has_have = true, .have = 1, .want_latest = true};
	publish_up_to(9);
	const struct replica_message said = {.state = REPLICA_IDLE,
		.has_step = true,
		.step = 1,
		.digest = checkpoint(1),
		.lease_s = 60};
	ck_assert_msg(replica_put(fixture.store, &ref, &said, fixture.arena, &replica, &err) >= 0,
		"%s", err.text);
	(void)path(
		(struct run_path_params){.has_have = true, .have = 2, .want_latest = true}, &facts);
	ck_assert(!facts.fold_is_due); /* no reader holds that one */
	(void)path(params, &facts);
	ck_assert(facts.fold_is_due);
	settle();
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE kind = 1"), 1);
}
END_TEST

START_TEST(a_direct_fold_that_would_save_little_is_not_asked_for)
{
	struct run_path_facts facts;
	publish_up_to(16);
	make_fold(
		0, 16, 16 * DELTA_BYTES * 4 / 10); /* what a fold of 16 steps is expected to take */
	publish(17);
	const struct path_message way = path(
		(struct run_path_params){
			.has_have = true, .have = 0, .want_latest = true, .asks_fold = true},
		&facts);
	ck_assert_uint_eq(way.link_count, 2);
	ck_assert(!facts.fold_is_due);
}
END_TEST

START_TEST(what_is_refused_is_neither_waited_for_nor_asked_for_again)
{
	struct error err = {0};
	struct run_path_facts facts;
	const struct run_path_params params = {
		.has_have = true, .have = 1, .want_latest = true, .asks_fold = true};
	publish_up_to(9);
	(void)path(params, &facts);
	settle();
	ck_assert_int_eq(fold_refuse(fixture.store, fold_id(1, 9), &err), 0);
	(void)path(params, &facts);
	ck_assert(!facts.fold_is_due);
	settle();
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM folds WHERE kind = 1 AND state = 2"),
		1);
	ck_assert_int_eq(store_fold(fold_id(1, 9), 10, &err), -1); /* too late */
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state = 0"), 0);
}
END_TEST

/* The deltas of these tests are not real: the proof of each step fails, and so does every fold. */
START_TEST(folds_of_steps_that_fail_are_refused_and_told)
{
	struct run_path_facts facts;
	const struct run_path_params params = {
		.has_have = true, .have = 0, .want_latest = true, .asks_fold = true};
	struct step_watch *const watch = store_step_watch(fixture.store);
	const struct span topic = run_folds_topic(span_text("run"), fixture.arena);
	struct error err = {0};
	size_t failed;
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE runs SET settings = CAST('{\"verify\":false}' AS BLOB)", &err),
		0);
	publish_up_to(9);
	(void)path(params, &facts);
	ck_assert(facts.fold_is_due);
	settle();
	const uint64_t seen = step_watch_generation(watch, span_text("bucket"), topic);
	step_worker_settle(store_parts(fixture.store)->step_worker, &failed);
	ck_assert_uint_ne(step_watch_generation(watch, span_text("bucket"), topic), seen);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE state = 2"), 3);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 3);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM scratch_versions"), 0);
}
END_TEST

START_TEST(folds_keep_their_objects_and_go_with_their_steps)
{
	struct error err = {0};
	publish_up_to(9);
	make_fold(0, 4, 250);
	make_fold(4, 8, 250);
	fixture_sweep(fixture.store);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 4);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state = 0"), 4);
	ck_assert_uint_eq(path_from(0).link_count, 3);
	fixture.clock.now_ms +=
		16 * 60 * 1000; /* the steps that the answer named are kept for a while */

	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE steps SET has_anchor = 1, anchor_bytes = 5 WHERE step = 5", &err),
		0);
	ck_assert_int_eq(
		fixture_call(run_collect_call(fixture.store, &run_fixture_ref, 4), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state = 0"), 0);
}
END_TEST

START_TEST(an_ended_run_leaves_no_folds)
{
	struct error err = {0};
	publish_up_to(8);
	make_fold(0, 4, 250);
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run_fixture_ref), &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state = 0"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM runs"), 0);
}
END_TEST

START_TEST(direct_folds_that_no_path_names_go_after_an_hour)
{
	struct run_path_params params = {
		.has_have = true, .have = 1, .want_latest = true, .asks_fold = true};
	publish_up_to(9);
	(void)path(params, NULL);
	params.have = 2;
	(void)path(params, NULL);
	settle();
	make_fold(1, 9, 300);
	make_fold(2, 9, 300);
	make_fold(0, 4, 300);
	fixture.clock.now_ms += HOUR_MS / 2;
	ck_assert_uint_eq(path_from(2).link_count, 1);
	settle();
	fixture.clock.now_ms += HOUR_MS / 2 + 1000;
	fixture_sweep(fixture.store);
	ck_assert(fold_id(1, 9) == 0 && fold_id(2, 9) != 0 && fold_id(0, 4) != 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM fold_objects"), 4);
	fixture.clock.now_ms += HOUR_MS;
	fixture_sweep(fixture.store);
	ck_assert(fold_id(2, 9) == 0 && fold_id(0, 4) != 0);
}
END_TEST

START_TEST(a_run_has_so_many_direct_folds)
{
	struct run_path_facts facts;
	struct run_path_params params = {.has_have = true, .want_latest = true, .asks_fold = true};
	publish_up_to(FOLD_DIRECT_MAX + 10);
	for (params.have = 0; params.have < FOLD_DIRECT_MAX + 4; params.have++) {
		(void)path(params, &facts);
		settle();
		/* none of them goes while readers may be fetching it */
		ck_assert(facts.fold_is_due == (params.have < FOLD_DIRECT_MAX));
		fixture.clock.now_ms += 1000;
	}
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE kind = 1"),
		FOLD_DIRECT_MAX);
	fixture.clock.now_ms += FOLD_HELD_MS - FOLD_DIRECT_MAX * 1000;
	params.have = FOLD_DIRECT_MAX;
	(void)path(params, &facts);
	ck_assert(facts.fold_is_due);
	settle();
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM folds WHERE kind = 1"),
		FOLD_DIRECT_MAX);
	ck_assert(fold_id(0, FOLD_DIRECT_MAX + 10) == 0 && fold_id(1, FOLD_DIRECT_MAX + 10) != 0);
}
END_TEST

START_TEST(what_folds_of_the_run_take_says_what_the_next_would)
{
	struct run_path_facts facts;
	const struct run_path_params params = {
		.has_have = true, .have = 1, .want_latest = true, .asks_fold = true};
	publish_up_to(9);
	make_fold(4, 8, 390); /* the steps have little in common */
	(void)path(params, &facts);
	ck_assert(!facts.fold_is_due);
	make_fold(0, 4, 390);
	publish_from(10, 12);
	make_fold(8, 12, 20); /* now they have */
	(void)path(params, &facts);
	ck_assert(facts.fold_is_due);
}
END_TEST

static bool is_worth(uint64_t from, uint64_t to, uint64_t bytes)
{
	struct error err = {0};
	bool worth = false;
	const struct fold_candidate fold = {.run = the_run(), .from = from, .to = to};
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(fold_gain_is_worth(db, &fold, bytes, &worth, &err), 0);
	store_reader_give(fixture.store, db);
	return worth;
}

static void set_delta(uint64_t step, const char *bytes)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_run(fixture.store,
				 arena_format(fixture.arena,
					 "UPDATE steps SET delta_bytes = %s WHERE step = %u", bytes,
					 (unsigned)step),
				 &err),
		0);
}

/* Four steps are expected to take 0.65 of their 400 bytes, and a fold must save 0.15 of the best
 * way. */
START_TEST(the_deltas_between_the_steps_say_what_a_fold_would_take)
{
	publish_up_to(12);
	set_delta(4, "5000"); /* leads to where the fold begins */
	ck_assert(is_worth(4, 8, 306) && !is_worth(4, 8, 305));
	set_delta(8, "500");
	ck_assert(is_worth(4, 8, 612) && !is_worth(4, 8, 611));
	set_delta(11, "NULL"); /* counted as one like the others */
	ck_assert(is_worth(8, 12, 306) && !is_worth(8, 12, 305));
}
END_TEST

/* The newest fold takes 20 of 400 bytes, a thirteenth of what is expected of four steps. The same
 * is then expected of a fold of sixteen. */
START_TEST(an_example_corrects_what_is_expected_of_longer_folds)
{
	publish_up_to(16);
	make_fold(12, 16, 17);
	ck_assert(is_worth(0, 16, 58) && !is_worth(0, 16, 57));
}
END_TEST

START_TEST(objects_of_a_fold_that_goes_are_not_served)
{
	struct error err = {0};
	struct object object;
	publish_up_to(4);
	make_fold(0, 4, 250);
	ck_assert_uint_eq(path_from(0).link_count, 1);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE folds SET state = 3", &err), 0);
	ck_assert_uint_eq(path_from(0).link_count, 4);
	ck_assert_int_eq(run_find_fold_object(fixture.store,
				 &(struct run_fold_ref){
					 run_fixture_ref, 0, 4, span_text("delta.safetensors")},
				 fixture.arena, &object, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

/* Other readers may have requested folds between the look and the change: folds that readers use
 * are not taken from them. */
START_TEST(a_fold_beyond_the_room_is_not_wanted)
{
	publish_up_to(9);
	for (unsigned i = 0; i < FOLD_DIRECT_MAX; i++)
		fold_change_request(fixture.store, the_run(), i, 100);
	settle();
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM folds WHERE kind = 1 AND state = 0"),
		FOLD_DIRECT_MAX);
	fold_change_request(fixture.store, the_run(), FOLD_DIRECT_MAX, 100);
	settle();
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM folds WHERE kind = 1 AND state = 0"),
		FOLD_DIRECT_MAX);
	ck_assert(fold_id(0, 100) != 0 && fold_id(FOLD_DIRECT_MAX, 100) == 0);
}
END_TEST

/* A fold that was made while another thread found that it could not be stays made. */
START_TEST(a_made_fold_is_not_refused)
{
	struct error err = {0};
	publish_up_to(4);
	make_fold(0, 4, 250);
	ck_assert_int_eq(fold_refuse(fixture.store, fold_id(0, 4), &err), 0);
	ck_assert_uint_eq(path_from(0).link_count, 1);
}
END_TEST

START_TEST(the_gain_grows_with_the_steps)
{
	ck_assert_double_eq(fold_gain_ratio(3), 1);
	for (uint64_t steps = 4; steps < 200; steps++)
		ck_assert(fold_gain_ratio(steps) <= fold_gain_ratio(steps - 1) &&
			fold_gain_ratio(steps) > 0.1);
}
END_TEST

Suite *test_fold_suite(void);
Suite *test_fold_suite(void)
{
	Suite *const suite = suite_create("fold");
	TCase *const tests = tcase_create("fold");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_publish_wants_its_skip_folds);
	tcase_add_test(tests, paths_take_folds_where_they_are_cheaper);
	tcase_add_test(tests, folds_lead_over_steps_whose_proof_failed);
	tcase_add_test(tests, long_ways_are_not_for_a_reactor);
	tcase_add_test(tests, a_direct_fold_is_asked_for_once_where_it_saves_much);
	tcase_add_test(tests, a_lease_asks_for_the_fold_too);
	tcase_add_test(tests, a_direct_fold_that_would_save_little_is_not_asked_for);
	tcase_add_test(tests, what_is_refused_is_neither_waited_for_nor_asked_for_again);
	tcase_add_test(tests, folds_of_steps_that_fail_are_refused_and_told);
	tcase_add_test(tests, folds_keep_their_objects_and_go_with_their_steps);
	tcase_add_test(tests, an_ended_run_leaves_no_folds);
	tcase_add_test(tests, direct_folds_that_no_path_names_go_after_an_hour);
	tcase_add_test(tests, a_run_has_so_many_direct_folds);
	tcase_add_test(tests, what_folds_of_the_run_take_says_what_the_next_would);
	tcase_add_test(tests, the_deltas_between_the_steps_say_what_a_fold_would_take);
	tcase_add_test(tests, an_example_corrects_what_is_expected_of_longer_folds);
	tcase_add_test(tests, objects_of_a_fold_that_goes_are_not_served);
	tcase_add_test(tests, a_fold_beyond_the_room_is_not_wanted);
	tcase_add_test(tests, a_made_fold_is_not_refused);
	tcase_add_test(tests, the_gain_grows_with_the_steps);
	suite_add_tcase(suite, tests);
	return suite;
}
