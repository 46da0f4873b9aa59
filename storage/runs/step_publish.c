/* A publish has two stages: a helper reads ahead (step_check.h), and a change judges everything and
 * writes the step. Only the change knows the state that counts, so what the helper found is judged
 * there too. */
#include "storage/runs/step_publish.h"

#include "base/encode.h"
#include "base/thread/step_watch.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/fold_row.h"
#include "storage/runs/step_collect.h"
#include "storage/runs/step_due.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/step_read.h"
#include "storage/runs/view_switch.h"
#include "storage/runs/webhook.h"

enum { PUBLISH_ARENA_BYTES = 64 * 1024 * 1024 };

struct run_publish {
	struct call call;
	struct step_publish publish;
};

struct adopted_change {
	struct change change; /* first */
	struct step_publish publish;
};

static int check_head(
	const struct run_row *run, const struct step_message *step, struct error *err);
static int check_base(
	const struct run_row *run, const struct step_message *step, struct error *err);
static int check_published(const struct step_publish *publish, struct db *db,
	const struct run_row *run, const struct step_row *existing, struct error *err);
static int check_repeat(
	const struct step_row *row, const struct step_message *step, struct error *err);
static int add_step(
	struct step_publish *publish, struct db *db, struct run_row *run, struct error *err);
static int check_forms(const struct step_message *step, struct error *err);
static int write_step(
	struct step_publish *publish, struct db *db, struct run_row *run, struct error *err);
static int add_row(struct step_publish *publish, struct db *db, struct run_row *run,
	struct step_row *row, struct error *err);
static int add_objects(struct db *db, const struct run_row *run, int64_t step,
	const struct step_form *form, struct arena *arena, struct error *err);
static int check_tensors(const struct step_check *check, const struct run_row *run, uint64_t step,
	struct error *err);
static int set_schema(
	struct db *db, struct run_row *run, const struct step_check *check, struct error *err);
static int write_manifest(
	struct db *db, int64_t id, const struct step_message *step, struct error *err);
static enum call_next step_publish_read_ahead(struct call *call, struct error *err);
static int step_publish_call_apply(struct call *call, struct db *db, struct error *err);
static void step_publish_call_settle(struct call *call);
static void step_publish_call_release(struct call *call);
static int step_publish_adopted_apply(struct change *base, struct db *db, struct error *err);

static const struct call_kind publish_kind = {
	.stages = {{.help = step_publish_read_ahead}, {.apply = step_publish_call_apply}},
	.settle = step_publish_call_settle,
	.release = step_publish_call_release,
};

int step_check_epoch(const struct run_row *run, const struct step_message *step, struct error *err)
{
	if (step->epoch < run->epoch)
		return error_set(err, ERROR_STALE_EPOCH,
			"The run has been opened again: its epoch is %llu, the step's %llu.",
			(unsigned long long)run->epoch, (unsigned long long)step->epoch);
	if (step->epoch > run->epoch)
		return error_set(err, ERROR_INVALID,
			"The step's epoch %llu was never given out; the run's is %llu.",
			(unsigned long long)step->epoch, (unsigned long long)run->epoch);
	return 0;
}

int step_check_place(const struct run_row *run, const struct step_message *step, struct error *err)
{
	return check_head(run, step, err) != 0 ? -1 : check_base(run, step, err);
}

int step_find_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out, struct error *err)
{
	const struct object_place place = {.bucket = bucket, .key = object->key};
	uint8_t id[VERSION_ID_BYTES];
	int found;
	if (object->version.len == 0)
		found = version_find_current(db, bucket, object->key, NULL, out, err);
	else if (decode_hex(object->version, id, sizeof(id)))
		found = version_find_id(db, place, id, NULL, out, err);
	else
		found = error_set(err, ERROR_INVALID, "The version of '%.*s' is not 32 hex digits.",
			(int)object->name.len, (const char *)object->name.data);
	return found == 1 && out->is_marker ? 0 : found;
}

/* Messages do not tell the stored size or digest, because a publisher may lack the right to
 * read. */
int step_resolve_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err)
{
	char declared[DIGEST128_TEXT_BYTES];
	const int shown = (int)span_slice(object->key, 0, 120).len;
	const int found = step_find_object(db, bucket, object, out_version, err);
	if (found == 0)
		return object_no_key(object->key, err);
	if (found < 0)
		return -1;
	if (out_version->size != object->size)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"The object '%.*s' does not have the %llu bytes that the manifest says.",
			shown, (const char *)object->key.data, (unsigned long long)object->size);
	/* overwritten by a multipart upload since the helper looked */
	if (!out_version->has_digest)
		return error_set(err, ERROR_BUSY,
			"The object '%.*s' was replaced while the step was being published: publish the step again.",
			shown, (const char *)object->key.data);
	if (digest128_equal(&out_version->digest, &object->digest))
		return 0;
	digest128_format(&object->digest, declared);
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"The object '%.*s' does not have the digest %s that the manifest says.", shown,
		(const char *)object->key.data, declared);
}

int step_publish_apply(struct step_publish *publish, struct db *db, struct error *err)
{
	struct run_row run;
	struct step_row existing;
	ASSERT(publish->store != NULL && publish->arena != NULL);
	if (run_row_need(db, &publish->run, &run, err) != 0 ||
		step_check_epoch(&run, &publish->step, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, publish->step.step, &existing, err);
	publish->already = found == 1;
	if (found < 0 ||
		(found == 1 ? check_published(publish, db, &run, &existing, err)
			    : add_step(publish, db, &run, err)) != 0)
		return -1;
	run_row_message(&run, &publish->run, &publish->message);
	return step_anchor_due(db, &run, &publish->message.anchor_due, err);
}

void step_publish_tell(const struct step_publish *publish)
{
	struct store *const store = publish->store;
	if (publish->already)
		return;
	metrics_add(store_metrics(store), METRIC_STEPS_PUBLISHED, 1);
	/* invariant 2 */
	step_watch_published(store_step_watch(store), publish->run.bucket.name, publish->run.name);
	store_wake(store, STORE_STEP_WORK);
}

void step_publish_release(struct step_publish *publish)
{
	step_check_release(&publish->check);
}

struct call *run_publish_call(
	struct store *store, const struct run_ref *run, const struct step_message *step)
{
	struct run_publish *const publishing =
		call_new(sizeof(*publishing), &publish_kind, store, PUBLISH_ARENA_BYTES);
	struct arena *const arena = publishing->call.arena;
	publishing->publish = (struct step_publish){
		.store = store, .arena = arena, .run = run_ref_copy(run, arena)};
	(void)step_copy(step, arena, &publishing->publish.step); /* the call reports an overflow */
	publishing->call.lane = store_publish_lane(store, xxh3_64(publishing->publish.run.name));
	return &publishing->call;
}

const struct run_message *run_publish_result(const struct call *call, bool *out_already)
{
	ASSERT(call->kind == &publish_kind);
	const struct step_publish *const publish = &((const struct run_publish *)call)->publish;
	*out_already = publish->already;
	return &publish->message;
}

int step_publish_adopted(struct store *store, const struct run_ref *run,
	const struct step_message *step, int64_t adoption, struct error *err)
{
	ASSERT(adoption > 0);
	struct arena *const arena = arena_new(PUBLISH_ARENA_BYTES);
	struct adopted_change change = {.change = {.apply = step_publish_adopted_apply},
		.publish = {.store = store, .arena = arena, .run = *run, .adoption = adoption}};
	struct step_publish *const publish = &change.publish;
	int result = step_copy(step, arena, &publish->step)
		? 0
		: error_set(err, ERROR_TOO_LARGE, "The step is too large.");
	if (result == 0) {
		step_check_run(store, run, &publish->step, NULL, &publish->check);
		result = committer_run(store_committer(store), &change.change, err);
	}
	if (result == 0)
		step_publish_tell(publish);
	step_publish_release(publish);
	arena_free(arena);
	return result;
}

static int check_head(const struct run_row *run, const struct step_message *step, struct error *err)
{
	const uint64_t next = run->has_head ? run->head + 1 : 0;
	if (step->step == next)
		return 0;
	if (!run->has_head)
		return error_set(err, ERROR_HEAD_MOVED,
			"The run has no step yet: the next is step 0, not %llu.",
			(unsigned long long)step->step);
	return error_set(err, ERROR_HEAD_MOVED,
		"The run's head is step %llu: the next is step %llu, not %llu.",
		(unsigned long long)run->head, (unsigned long long)next,
		(unsigned long long)step->step);
}

static int check_base(const struct run_row *run, const struct step_message *step, struct error *err)
{
	char ours[DIGEST128_TEXT_BYTES];
	char theirs[DIGEST128_TEXT_BYTES];
	const bool has_delta = step_message_form(step, STEP_DELTA) != NULL;
	if (!run->has_head) {
		if (step->has_base || has_delta || step_message_form(step, STEP_ANCHOR) == NULL)
			return error_set(err, ERROR_INVALID,
				"Step 0 has no base: it needs an anchor and cannot have a delta.");
		return 0;
	}
	if (!step->has_base)
		return has_delta ? error_set(err, ERROR_BASE_MISSING,
					   "The step has a delta and names no base.")
				 : 0;
	if (step->base_step != run->head)
		return error_set(err, ERROR_BASE_MISSING,
			"The base is step %llu; the head is step %llu.",
			(unsigned long long)step->base_step, (unsigned long long)run->head);
	if (digest128_equal(&step->base_digest, &run->head_digest))
		return 0;
	digest128_format(&run->head_digest, ours);
	digest128_format(&step->base_digest, theirs);
	return error_set(err, ERROR_BASE_MISSING,
		"The head, step %llu, is %s; the base is given as %s.",
		(unsigned long long)run->head, ours, theirs);
}

/* The step exists. When the last part is put twice at the same time, both calls merge the whole
 * step and one publishes it; the other one is a repeat. */
static int check_published(const struct step_publish *publish, struct db *db,
	const struct run_row *run, const struct step_row *existing, struct error *err)
{
	struct step_part_row part;
	const struct step_message *const step = &publish->step;
	const struct step_part_key key = {
		.run = run->id, .step = step->step, .part = publish->part, .epoch = run->epoch};
	if (!publish->is_of_parts)
		return check_repeat(existing, step, err);
	const int found = step_part_row_find(db, &key, &part, err);
	if (found < 0)
		return -1;
	return found == 1 && part.state != STEP_PART_WAITING ? 0
							     : check_repeat(existing, step, err);
}

static int check_repeat(
	const struct step_row *row, const struct step_message *step, struct error *err)
{
	char published[DIGEST128_TEXT_BYTES];
	char given[DIGEST128_TEXT_BYTES];
	const struct digest128 content = step_message_content_digest(step);
	if (digest128_equal(&content, &row->content))
		return 0;
	digest128_format(&row->digest, published);
	digest128_format(&step->digest, given);
	if (!digest128_equal(&row->digest, &step->digest))
		return error_set(err, ERROR_STEP_DIFFERS,
			"Step %llu is published with the checkpoint %s; this one is %s.",
			(unsigned long long)step->step, published, given);
	digest128_format(&row->content, published);
	digest128_format(&content, given);
	return error_set(err, ERROR_STEP_DIFFERS,
		"Step %llu is published with other objects, files or facts (content %s, this one %s).",
		(unsigned long long)step->step, published, given);
}

/* Checks the new step, writes it, and does what follows from it. */
static int add_step(
	struct step_publish *publish, struct db *db, struct run_row *run, struct error *err)
{
	const struct step_message *const step = &publish->step;
	if (step_check_place(run, step, err) != 0 || check_forms(step, err) != 0 ||
		write_step(publish, db, run, err) != 0)
		return -1;
	if (fold_row_want_skips(db, run->id, step->step, store_now_ms(publish->store), err) != 0 ||
		step_retain(publish->store, db, run, err) != 0)
		return -1;
	if (step_part_row_settle(db, run->id, INT64_MAX,
		    publish->is_of_parts ? STEP_PART_PUBLISHED : STEP_PART_DEAD, err) != 0 ||
		run_row_update(db, run, err) != 0)
		return -1;
	if (publish->adoption != 0 &&
		adopt_row_set_published(db, publish->adoption, step->step, err) != 0)
		return -1;
	const struct webhook_facts facts = {.kind = WEBHOOK_PUBLISHED,
		.step = step->step,
		.digest = step->digest,
		.label = step->label};
	return webhook_note(publish->store, db, run, publish->run.name, &facts, err);
}

static int check_forms(const struct step_message *step, struct error *err)
{
	if (step->form_count == 0 || step->form_count > STEP_FORMS_MAX)
		return error_set(err, ERROR_INVALID, "A step has one form or two.");
	if (step->form_count == 2 && step->forms[0].kind == step->forms[1].kind)
		return error_set(err, ERROR_INVALID, "The step has two forms of one kind.");
	return 0;
}

static int write_step(
	struct step_publish *publish, struct db *db, struct run_row *run, struct error *err)
{
	struct step_message *const step = &publish->step;
	struct step_row row;
	if (add_row(publish, db, run, &row, err) != 0)
		return -1;
	for (size_t i = 0; i < step->form_count; i++) {
		if (add_objects(db, run, row.id, &step->forms[i], publish->arena, err) == 0)
			continue;
		/* its bytes could not be read for a digest */
		if (err->kind == ERROR_BUSY && publish->check.failed)
			*err = publish->check.error;
		return -1;
	}
	if (check_tensors(&publish->check, run, step->step, err) != 0 ||
		set_schema(db, run, &publish->check, err) != 0)
		return -1;
	if (arena_overflowed(publish->arena))
		return error_set(err, ERROR_TOO_LARGE, "The step is too large.");
	step->schema_digest = run->schema_digest;
	return write_manifest(db, row.id, step, err) != 0
		? -1
		: view_want(db, &run->settings, row.id, err);
}

static int add_row(struct step_publish *publish, struct db *db, struct run_row *run,
	struct step_row *row, struct error *err)
{
	const struct step_message *const step = &publish->step;
	*row = (struct step_row){
		.step = step->step,
		.digest = step->digest,
		.content = step_message_content_digest(step),
		.created_ms = store_now_ms(publish->store),
		.verified = run->settings.verify ? STEP_UNPROVEN : STEP_UNCHECKED,
	};
	for (size_t i = 0; i < step->form_count; i++) {
		ASSERT((size_t)step->forms[i].kind < STEP_FORMS_MAX);
		row->has_form[step->forms[i].kind] = true;
		row->form_bytes[step->forms[i].kind] = step_form_bytes(&step->forms[i]);
		run->bytes += row->form_bytes[step->forms[i].kind];
	}
	run->steps++;
	run->has_head = true;
	run->head = step->step;
	run->head_digest = step->digest;
	return step_row_add(db, run->id, row, err);
}

/* Adds the objects of a form to the step's row and writes the ids of their versions into the
 * form. */
static int add_objects(struct db *db, const struct run_row *run, int64_t step,
	const struct step_form *form, struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < form->object_count; i++) {
		struct step_object *const object = &form->objects[i];
		struct version version;
		char id[2 * VERSION_ID_BYTES + 1];
		if (step_resolve_object(db, run->bucket, object, &version, err) != 0)
			return -1;
		if (step_pin_add(db, step, (enum step_pin_form)form->kind, object->name,
			    version.sequence, err) != 0)
			return -1;
		encode_hex(span_of(version.id, sizeof(version.id)), id);
		object->version = arena_copy(arena, span_text(id));
	}
	return 0;
}

static int check_tensors(
	const struct step_check *check, const struct run_row *run, uint64_t step, struct error *err)
{
	if (check->failed) {
		*err = check->error;
		return -1;
	}
	if (check->run != run->id)
		return error_set(err, ERROR_STALE_EPOCH,
			"The run was ended and opened again while the step was being published.");
	/* the helper read ahead before the commit of step 0 gave the run its schema */
	if (check->schema == NULL)
		return error_set(err, ERROR_BUSY,
			"Step 0 was being published at the same time as step %llu: publish this one again.",
			(unsigned long long)step);
	if (run->has_schema && !digest128_equal(&run->schema_digest, &check->schema_digest))
		return error_set(err, ERROR_SCHEMA_MISMATCH,
			"The run got another schema while the step was being published.");
	return 0;
}

static int set_schema(
	struct db *db, struct run_row *run, const struct step_check *check, struct error *err)
{
	if (run->has_schema)
		return 0;
	ASSERT(check->schema != NULL);
	struct buffer text;
	buffer_init(&text, 2 * SAFETENSORS_HEADER_MAX_BYTES);
	schema_print(check->schema, &text);
	int result = buffer_check(&text, "the schema", err);
	if (result == 0)
		result = run_row_set_schema(db, run->id, buffer_span(&text), err);
	buffer_release(&text);
	run->has_schema = true;
	run->schema_digest = check->schema_digest;
	return result;
}

static int write_manifest(
	struct db *db, int64_t id, const struct step_message *step, struct error *err)
{
	struct buffer manifest;
	buffer_init(&manifest, STEP_MESSAGE_MAX_BYTES);
	step_message_print(step, NULL, false, &manifest);
	int result = buffer_check(&manifest, "the step's manifest", err);
	if (result == 0)
		result = step_row_add_manifest(
			db, id, buffer_span(&manifest), step->tensor_digests, err);
	buffer_release(&manifest);
	return result;
}

static enum call_next step_publish_read_ahead(struct call *call, struct error *err)
{
	struct step_publish *const publish = &((struct run_publish *)call)->publish;
	(void)err; /* the change reports what the check found */
	step_check_run(call->store, &publish->run, &publish->step, NULL, &publish->check);
	return CALL_NEXT;
}

static int step_publish_call_apply(struct call *call, struct db *db, struct error *err)
{
	return step_publish_apply(&((struct run_publish *)call)->publish, db, err);
}

static void step_publish_call_settle(struct call *call)
{
	if (!call->failed)
		step_publish_tell(&((struct run_publish *)call)->publish);
}

static void step_publish_call_release(struct call *call)
{
	step_publish_release(&((struct run_publish *)call)->publish);
}

static int step_publish_adopted_apply(struct change *base, struct db *db, struct error *err)
{
	return step_publish_apply(&((struct adopted_change *)base)->publish, db, err);
}
