/* All of it is one change: it finds the old step and its anchor, adds the new run, builds the
 * message of step 0, and publishes that as any step is published. When the step has no anchor, the
 * call fails, and its settle asks for one. */
#include "storage/step_jobs/run_fork.h"

#include "base/encode.h"
#include "storage/buckets/bucket_row.h"
#include "storage/runs/run_open.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/step_publish.h"
#include "storage/runs/step_read.h"

struct run_fork {
	struct run_open open; /* of the new run */
	struct span from;
	uint64_t step;
	struct step_publish publish; /* of its step 0 */
	struct run_anchor anchor;    /* of the old run's step */
};

struct fork_origin { /* what was found of the old run */
	struct run_row run;
	struct step_row step;
	enum step_pin_form form;
};

static int fork_apply(struct call *call, struct db *db, struct error *err);
static int begin_run(struct run_fork *forking, struct db *db, struct run_row *out_run,
	struct fork_origin *out, struct error *err);
static int find_step(struct db *db, const struct run_fork *forking, int64_t bucket,
	struct fork_origin *out, struct error *err);
static int choose_form(struct run_fork *forking, struct fork_origin *origin, struct error *err);
static int make_step(struct step_publish *publish, struct db *db, const struct fork_origin *origin,
	struct error *err);
static int read_form(struct db *db, const struct fork_origin *origin, struct arena *arena,
	struct step_form *out, struct error *err);
static int read_object(struct db *db, const struct step_pin *pin, struct arena *arena,
	struct step_object *out, struct error *err);
static int add_run(const struct run_fork *forking, struct db *db, const struct fork_origin *origin,
	struct run_row *out, struct error *err);
static int load_schema(struct step_check *check, struct db *db, const struct run_row *from,
	int64_t run, struct error *err);
static int take_over_proof(
	struct db *db, int64_t run, const struct fork_origin *origin, struct error *err);
static void fork_settle(struct call *call);
static void fork_release(struct call *call);

static const struct call_kind fork_kind = {
	.stages = {{.apply = fork_apply}},
	.settle = fork_settle,
	.release = fork_release,
};

struct call *run_fork_call(struct store *store, const struct run_fork_params *params)
{
	struct run_fork *const forking =
		run_open_new(sizeof(*forking), &fork_kind, store, &params->open);
	struct call *const call = &forking->open.call;
	forking->from = arena_copy(call->arena, params->from);
	forking->step = params->step;
	forking->publish = (struct step_publish){
		.store = store, .arena = call->arena, .run = forking->open.params.run};
	return call;
}

static int fork_apply(struct call *call, struct db *db, struct error *err)
{
	struct run_fork *const forking = (struct run_fork *)call;
	struct step_publish *const publish = &forking->publish;
	struct fork_origin origin;
	struct run_row row = {.id = 0};
	if (begin_run(forking, db, &row, &origin, err) != 0 ||
		step_publish_apply(publish, db, err) != 0)
		return -1;
	if (take_over_proof(db, row.id, &origin, err) != 0 ||
		run_row_need(db, &publish->run, &row, err) != 0)
		return -1;
	run_row_message(&row, &publish->run, &forking->open.message);
	return 0;
}

/* Does all that comes before the publish of step 0. *out_run: the new run; *out: the old one. */
static int begin_run(struct run_fork *forking, struct db *db, struct run_row *out_run,
	struct fork_origin *out, struct error *err)
{
	struct step_publish *const publish = &forking->publish;
	if (bucket_row_find(db, publish->run.bucket, &out_run->bucket, err) != 0)
		return -1;
	const int there = run_row_find(db, out_run->bucket, publish->run.name, &out->run, err);
	if (there == 1)
		return error_set(err, ERROR_EXISTS,
			"A run of this name exists already; a fork needs a new name.");
	if (there < 0 || find_step(db, forking, out_run->bucket, out, err) != 0 ||
		choose_form(forking, out, err) != 0)
		return -1;
	if (make_step(publish, db, out, err) != 0 || add_run(forking, db, out, out_run, err) != 0)
		return -1;
	return load_schema(&publish->check, db, &out->run, out_run->id, err);
}

static int find_step(struct db *db, const struct run_fork *forking, int64_t bucket,
	struct fork_origin *out, struct error *err)
{
	uint64_t anchor;
	const uint64_t step = forking->step;
	const int has_run = run_row_find(db, bucket, forking->from, &out->run, err);
	if (has_run == 0)
		return error_set(err, ERROR_NO_RUN,
			"The run '%.*s', which is to be forked, does not exist.",
			(int)span_slice(forking->from, 0, RUN_NAME_MAX_BYTES).len,
			(const char *)forking->from.data);
	if (has_run < 0 || step_need_kept(db, out->run.id, step, &out->step, &anchor, err) != 0)
		return -1;
	if (out->step.verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			"The proof of step %llu failed: no run can begin there.",
			(unsigned long long)step);
	return 0;
}

/* The step's own anchor, or the one that the server made. */
static int choose_form(struct run_fork *forking, struct fork_origin *origin, struct error *err)
{
	forking->anchor = (struct run_anchor){
		.run = origin->run.id, .id = origin->step.id, .step = origin->step.step};
	origin->form = origin->step.has_form[STEP_ANCHOR] ? STEP_PIN_ANCHOR : STEP_PIN_MADE;
	if (origin->step.has_form[STEP_ANCHOR] || origin->step.has_made)
		return 0;
	return error_set(err, ERROR_NOT_READY,
		"Step %llu has no anchor yet; one is being made: ask again.",
		(unsigned long long)origin->step.step);
}

/* Makes step 0 of the first epoch out of what the old step says. */
static int make_step(struct step_publish *publish, struct db *db, const struct fork_origin *origin,
	struct error *err)
{
	struct step_message old;
	struct step_message *const step = &publish->step;
	ASSERT(publish->arena != NULL);
	if (step_read(db, &origin->step, true, publish->arena, &old, err) != 0)
		return -1;
	*step = (struct step_message){.epoch = 1,
		.digest = old.digest,
		.schema_digest = old.schema_digest,
		.label = old.label,
		.metadata = old.metadata,
		.tensor_digests = old.tensor_digests,
		.files = old.files,
		.file_count = old.file_count,
		.form_count = 1};
	const struct step_form *const anchor = step_message_form(&old, STEP_ANCHOR);
	if (read_form(db, origin, publish->arena, &step->forms[0], err) != 0)
		return -1;
	if (anchor != NULL)
		step->forms[0].format = anchor->format;
	return 0;
}

static int read_form(struct db *db, const struct fork_origin *origin, struct arena *arena,
	struct step_form *out, struct error *err)
{
	struct step_pins pins;
	ASSERT(origin->form == STEP_PIN_ANCHOR || origin->form == STEP_PIN_MADE);
	*out = (struct step_form){.kind = STEP_ANCHOR, .format = span_text("full")};
	if (step_pin_list(db, origin->step.id, origin->form, arena, &pins, err) != 0)
		return -1;
	out->object_count = pins.count;
	out->objects = arena_take_array(arena, out->object_count + 1, sizeof(*out->objects));
	if (out->objects == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading an anchor.");
	for (size_t i = 0; i < out->object_count; i++)
		if (read_object(db, &pins.items[i], arena, &out->objects[i], err) != 0)
			return -1;
	return 0;
}

static int read_object(struct db *db, const struct step_pin *pin, struct arena *arena,
	struct step_object *out, struct error *err)
{
	struct version version;
	char id[2 * VERSION_ID_BYTES + 1];
	const int found = version_find_sequence(db, pin->version, arena, &version, err);
	if (found == 0) /* invariant 6 */
		return error_set(err, ERROR_CORRUPT,
			"%s: a step's object has lost its version %lld.", db_path(db),
			(long long)pin->version);
	if (found < 0)
		return -1;
	encode_hex(span_of(version.id, sizeof(version.id)), id);
	*out = (struct step_object){.name = pin->name,
		.key = version.key,
		.version = arena_copy(arena, span_text(id)),
		.size = version.size,
		.digest = version.digest};
	return 0;
}

static int add_run(const struct run_fork *forking, struct db *db, const struct fork_origin *origin,
	struct run_row *out, struct error *err)
{
	if (run_open_add(&forking->open, db, out, err) != 0)
		return -1;
	const struct run_parent parent =
		run_parent_of(forking->from, origin->step.step, &origin->step.digest);
	return run_row_set_parent(db, out->id, &parent, err);
}

static int load_schema(struct step_check *check, struct db *db, const struct run_row *from,
	int64_t run, struct error *err)
{
	struct buffer text;
	buffer_init(&text, 2 * SAFETENSORS_HEADER_MAX_BYTES);
	int result = run_row_load_schema(db, from, &text, err);
	if (result == 0) {
		*check = (struct step_check){.run = run,
			.schema = schema_parse(buffer_span(&text), err),
			.schema_digest = from->schema_digest};
		result = check->schema == NULL ? -1 : 0;
	}
	buffer_release(&text);
	return result;
}

/* Step 0 has the bytes that were proven. */
static int take_over_proof(
	struct db *db, int64_t run, const struct fork_origin *origin, struct error *err)
{
	struct step_row row;
	const int found =
		origin->step.verified == STEP_PROVEN ? step_row_find(db, run, 0, &row, err) : 0;
	return found == 1 ? step_row_set_verified(db, row.id, STEP_PROVEN, span_of(NULL, 0), err)
			  : found;
}

static void fork_settle(struct call *call)
{
	const struct run_fork *const forking = (const struct run_fork *)call;
	struct error ignored; /* a client that asks again asks for the anchor again */
	if (call->failed && call->error.kind == ERROR_NOT_READY)
		(void)run_ask_anchor(call->store, &forking->anchor, &ignored);
	if (!call->failed)
		step_publish_tell(&forking->publish);
}

static void fork_release(struct call *call)
{
	step_publish_release(&((struct run_fork *)call)->publish);
}
