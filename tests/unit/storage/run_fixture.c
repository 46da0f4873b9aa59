#include "tests/unit/storage/run_fixture.h"

#include "tests/unit/unit.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"

const struct run_ref run_fixture_ref = {
	.bucket.name = {(const uint8_t *)"bucket", 6}, .name = {(const uint8_t *)"run", 3}};

struct span run_fixture_shard(struct store_fixture *fixture, const char *names, uint8_t value)
{
	char *json = arena_format(fixture->arena, "{");
	for (size_t i = 0; names[i] != '\0'; i++)
		json = arena_format(fixture->arena,
			"%s%s\"%c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[%zu,%zu]}",
			json, i == 0 ? "" : ",", names[i], 4 * i, 4 * i + 4);
	json = arena_format(fixture->arena, "%s}", json);
	const size_t json_len = strlen(json);
	const size_t data_len = 4 * strlen(names);
	uint8_t *const bytes = arena_take(fixture->arena, 8 + json_len + data_len);
	const uint64_t le = htole64(json_len);
	memcpy(bytes, &le, 8);
	memcpy(bytes + 8, json, json_len);
	memset(bytes + 8 + json_len, value, data_len);
	return span_of(bytes, 8 + json_len + data_len);
}

struct digest128 run_fixture_checkpoint(unsigned step)
{
	return xxh3_128(span_of(&step, sizeof(step)));
}

void run_fixture_put(struct store_fixture *fixture, const char *key, struct span bytes)
{
	struct error err = {0};
	ck_assert_msg(fixture_put(fixture->store, "bucket", key, bytes, &err) == 0, "%s", err.text);
}

void run_fixture_add_form(struct store_fixture *fixture, struct step_message *step,
	enum step_form_kind kind, const char *name, const char *key, struct span bytes)
{
	struct step_object *const object = arena_take(fixture->arena, sizeof(*object));
	*object = (struct step_object){.name = span_text(name),
		.key = span_text(key),
		.size = bytes.len,
		.digest = xxh3_128(bytes)};
	step->forms[step->form_count++] = (struct step_form){.kind = kind,
		.format = span_text(kind == STEP_ANCHOR ? "full" : "trl-gap"),
		.objects = object,
		.object_count = 1};
}

struct step_message run_fixture_step(struct store_fixture *fixture, unsigned number)
{
	struct step_message step = {.step = number,
		.epoch = 1,
		.digest = run_fixture_checkpoint(number),
		.label = span_text("label")};
	step.has_base = number > 0;
	if (step.has_base) {
		step.base_step = number - 1;
		step.base_digest = run_fixture_checkpoint(number - 1);
	}
	step.files = arena_take(fixture->arena, sizeof(*step.files));
	step.files[0] = (struct step_file){
		span_text("model.safetensors"), 1000, xxh3_128(span_text("file"))};
	step.file_count = 1;
	return step;
}

struct step_message run_fixture_prepare(
	struct store_fixture *fixture, unsigned number, bool with_anchor, size_t delta_bytes)
{
	struct step_message step = run_fixture_step(fixture, number);
	if (with_anchor) {
		char *const key =
			arena_format(fixture->arena, "run/steps/%06u/model.safetensors", number);
		const struct span bytes = run_fixture_shard(fixture, "ab", (uint8_t)number);
		run_fixture_put(fixture, key, bytes);
		run_fixture_add_form(fixture, &step, STEP_ANCHOR, "model.safetensors", key, bytes);
	}
	if (delta_bytes > 0) {
		char *const key =
			arena_format(fixture->arena, "run/steps/%06u/delta.safetensors", number);
		uint8_t *const noise = fixture_noise(delta_bytes, number);
		const struct span bytes = arena_copy(fixture->arena, span_of(noise, delta_bytes));
		free(noise);
		run_fixture_put(fixture, key, bytes);
		run_fixture_add_form(fixture, &step, STEP_DELTA, "delta.safetensors", key, bytes);
	}
	return step;
}

int run_fixture_publish(struct store_fixture *fixture, const struct step_message *step,
	struct run_fixture_outcome *out, struct error *err)
{
	struct call *const call = run_publish_call(fixture->store, &run_fixture_ref, step);
	const int result = call_run(call, err);
	bool already;
	const struct run_message *const run = run_publish_result(call, &already);
	if (out != NULL)
		*out = (struct run_fixture_outcome){already, run->anchor_due};
	call_free(call);
	return result;
}

void run_fixture_publish_ok(struct store_fixture *fixture, const struct step_message *step)
{
	struct error err = {0};
	struct run_fixture_outcome outcome;
	ck_assert_msg(run_fixture_publish(fixture, step, &outcome, &err) == 0, "step %u: %s",
		(unsigned)step->step, err.text);
	ck_assert(!outcome.already);
}

void run_fixture_open(struct store_fixture *fixture)
{
	struct error err = {0};
	memset(fixture, 0, sizeof(*fixture));
	store_fixture_open(fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture->store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture->store, "bucket", "run", NULL, &err), 0);
}

void run_fixture_publish_refused(
	struct store_fixture *fixture, const struct step_message *step, enum error_kind kind)
{
	struct error err = {0};
	ck_assert_int_eq(run_fixture_publish(fixture, step, NULL, &err), -1);
	ck_assert_msg(err.kind == kind, "%s: %s", error_kind_name(err.kind), err.text);
}

struct run_message run_fixture_run(struct store_fixture *fixture)
{
	struct error err = {0};
	struct run_message run;
	ck_assert_int_eq(run_find(fixture->store, &run_fixture_ref, fixture->arena, &run, &err), 0);
	return run;
}

int run_fixture_find(struct store_fixture *fixture, uint64_t step, struct step_message *out,
	uint64_t *out_anchor, struct error *err)
{
	const struct run_step_params params = {.run = run_fixture_ref, .step = step};
	return run_find_step(fixture->store, &params, fixture->arena, out, out_anchor, err);
}

struct path_message run_fixture_path(
	struct store_fixture *fixture, const struct run_path_params *given)
{
	struct error err = {0};
	struct path_message out;
	struct run_path_facts facts;
	struct run_path_params params = *given;
	params.run = run_fixture_ref;
	params.may_take_long = true;
	ck_assert_msg(
		run_find_path(fixture->store, &params, fixture->arena, &out, &facts, &err) == 0,
		"%s", err.text);
	return out;
}
