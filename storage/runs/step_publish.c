/* start --helper: step_check--> queued --apply: judge, resolve, write, retain--> COMMIT --> waiters woken, done
 *
 * Everything is judged in the change, in this order: epoch, a repeat, head, base, objects, tensors.
 * The helper only reads ahead. */
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/thread/step_watch.h"
#include "storage/core/store.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/fold_row.h"
#include "storage/runs/run_change.h"
#include "storage/runs/step_part_row.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/view_switch.h"
#include "storage/runs/webhook.h"

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

int step_check_place(const struct run_row *run, const struct step_message *step, struct error *err)
{
	return check_head(run, step, err) != 0 ? -1 : check_base(run, step, err);
}

static int check_forms(const struct step_message *step, struct error *err)
{
	if (step->form_count == 0 || step->form_count > STEP_FORMS_MAX)
		return error_set(err, ERROR_INVALID, "A step has one form or two.");
	if (step->form_count == 2 && step->forms[0].kind == step->forms[1].kind)
		return error_set(err, ERROR_INVALID, "The step has two forms of one kind.");
	return 0;
}

int step_find_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out, struct error *err)
{
	uint8_t id[VERSION_ID_BYTES];
	int found;
	if (object->version.len == 0)
		found = version_find_current(db, bucket, object->key, NULL, out, err);
	else if (decode_hex(object->version, id, sizeof(id)))
		found = version_find_id(db, bucket, object->key, id, NULL, out, err);
	else
		found = error_set(err, ERROR_INVALID, "The version of '%.*s' is not 32 hex digits.",
			(int)object->name.len, (const char *)object->name.data);
	return found == 1 && out->is_marker ? 0 : found;
}

/* What is stored is not told: whoever publishes need not be one that may read it. */
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
			"The object '%.*s' was replaced while the step was on its way: publish it again.",
			shown, (const char *)object->key.data);
	if (digest128_equal(&out_version->digest, &object->digest))
		return 0;
	digest128_format(&object->digest, declared);
	return error_set(err, ERROR_DIGEST_MISMATCH,
		"The object '%.*s' does not have the digest %s that the manifest says.", shown,
		(const char *)object->key.data, declared);
}

/* Pins what the forms name and writes into them which versions those are. */
static int pin_objects(struct db *db, const struct run_row *run, int64_t step,
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
			"The run was ended and opened anew while the step was on its way.");
	if (check->schema ==
		NULL) /* it was read ahead before the commit of step 0 gave the run its schema */
		return error_set(err, ERROR_BUSY,
			"Step 0 was on its way together with step %llu: publish this one again.",
			(unsigned long long)step);
	if (run->has_schema && !digest128_equal(&run->schema_digest, &check->schema_digest))
		return error_set(err, ERROR_SCHEMA_MISMATCH,
			"The run got another schema while the step was on its way.");
	return 0;
}

static int set_schema(
	struct db *db, struct run_row *run, const struct step_check *check, struct error *err)
{
	if (run->has_schema)
		return 0;
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

static int add_row(struct run_change *change, struct db *db, struct run_row *run,
	struct step_row *row, struct error *err)
{
	const struct step_message *const step = &change->step;
	const struct clock_source *const clock = store_clock(change->store);
	*row = (struct step_row){
		.step = step->step,
		.digest = step->digest,
		.content = step_message_content_digest(step),
		.created_ms = clock->wall_ms(clock),
		.verified = run->settings.verify ? STEP_UNPROVEN : STEP_UNCHECKED,
	};
	for (size_t i = 0; i < step->form_count; i++) {
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

static int write_step(
	struct run_change *change, struct db *db, struct run_row *run, struct error *err)
{
	struct step_message *const step = &change->step;
	struct step_row row;
	if (add_row(change, db, run, &row, err) != 0)
		return -1;
	for (size_t i = 0; i < step->form_count; i++) {
		if (pin_objects(db, run, row.id, &step->forms[i], change->arena, err) == 0)
			continue;
		if (err->kind == ERROR_BUSY &&
			change->check.failed) /* its bytes could not be read for a digest */
			*err = change->check.error;
		return -1;
	}
	if (check_tensors(&change->check, run, step->step, err) != 0 ||
		set_schema(db, run, &change->check, err) != 0)
		return -1;
	if (arena_overflowed(change->arena))
		return error_set(err, ERROR_TOO_LARGE, "The step is too large.");
	step->schema_digest = run->schema_digest;
	return write_manifest(db, row.id, step, err) != 0
		? -1
		: view_want(db, &run->settings, row.id, err);
}

/* The last part of a step may be put twice at once: both find the whole, one publishes it. */
static int check_published(const struct run_change *change, struct db *db,
	const struct run_row *run, const struct step_row *existing, struct error *err)
{
	struct step_part_row part;
	const struct step_message *const step = &change->step;
	if (change->part == NULL)
		return check_repeat(existing, step, err);
	const int found = step_part_row_find(
		db, run->id, step->step, change->part->answer.part, run->epoch, &part, err);
	if (found < 0)
		return -1;
	return found == 1 && part.state != STEP_PART_WAITING ? 0
							     : check_repeat(existing, step, err);
}

int step_publish_apply(struct change *base, struct db *db, struct error *err)
{
	struct run_change *const change = (struct run_change *)base;
	const struct step_message *const step = &change->step;
	struct run_row run;
	struct step_row existing;
	if (run_row_need(db, change->bucket, change->run, &run, err) != 0 ||
		step_check_epoch(&run, step, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, step->step, &existing, err);
	change->already = found == 1;
	if (found == 1) {
		run_row_message(&run, change->bucket, change->run, &change->message);
		return check_published(change, db, &run, &existing, err) != 0
			? -1
			: step_anchor_due(db, &run, &change->message.anchor_due, err);
	}
	if (found < 0)
		return -1;
	if (step_check_place(&run, step, err) != 0 || check_forms(step, err) != 0)
		return -1;
	const struct clock_source *const clock = store_clock(change->store);
	if (write_step(change, db, &run, err) != 0 ||
		fold_row_want_skips(db, run.id, step->step, clock->wall_ms(clock), err) != 0 ||
		step_retain(change->store, db, &run, err) != 0)
		return -1;
	if (step_part_row_settle(db, run.id, INT64_MAX,
		    change->part != NULL ? STEP_PART_PUBLISHED : STEP_PART_DEAD, err) != 0)
		return -1;
	run_row_message(&run, change->bucket, change->run, &change->message);
	if (run_row_update(db, &run, err) != 0)
		return -1;
	if (change->adoption != 0 &&
		adopt_row_set_published(db, change->adoption, step->step, err) != 0)
		return -1;
	const struct webhook_facts facts = {.kind = WEBHOOK_PUBLISHED,
		.step = step->step,
		.digest = step->digest,
		.label = step->label};
	if (webhook_note(change->store, db, &run, change->run, &facts, err) != 0)
		return -1;
	return step_anchor_due(db, &run, &change->message.anchor_due, err);
}

void step_published(struct run_change *change)
{
	if (!change->change.failed && !change->already) {
		metrics_add(store_metrics(change->store), METRIC_STEPS_PUBLISHED, 1);
		/* invariant 2 */
		step_watch_published(store_step_watch(change->store), change->bucket, change->run);
		store_wake(change->store, STORE_STEP_WORK);
	}
}

static void published(struct change *base)
{
	struct run_change *const change = (struct run_change *)base;
	step_published(change);
	change->done(change->owner);
}

static void read_ahead(struct helper_job *job)
{
	struct run_change *const change =
		(struct run_change *)((char *)job - offsetof(struct run_change, job));
	step_check_run(
		change->store, change->bucket, change->run, &change->step, NULL, &change->check);
	run_change_submit(change, step_publish_apply);
}

struct run_change *run_publish_start(struct store *store, struct span bucket, struct span run,
	const struct step_message *step, void (*done)(void *owner), void *owner)
{
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->change.done = published;
	if (!step_copy(step, change->arena, &change->step)) {
		run_change_submit(change, step_publish_apply);
		return change;
	}
	change->job.run = read_ahead;
	helpers_submit(store_helpers(store), store_publish_lane(store, xxh3_64(change->run)),
		&change->job);
	return change;
}

int run_publish_adopted(struct store *store, struct span bucket, struct span run,
	const struct step_message *step, int64_t adoption, struct error *err)
{
	struct run_change *const change = run_change_new(store, bucket, run, NULL, NULL);
	int result = step_copy(step, change->arena, &change->step)
		? 0
		: error_set(err, ERROR_TOO_LARGE, "The step is too large.");
	change->adoption = adoption;
	if (result == 0) {
		step_check_run(
			store, change->bucket, change->run, &change->step, NULL, &change->check);
		change->change.apply = step_publish_apply;
		result = committer_run(store_committer(store), &change->change, err);
	}
	if (result == 0)
		step_published(change);
	run_change_free(change);
	return result;
}
