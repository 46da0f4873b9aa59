/* find the run and the objects --> check the order --> full: read the shards
 *                                                      delta: fetch it, decode it upon the head
 *      --> compute the digests --> step_publish_adopted
 *
 * The step goes behind the head that the run had at the beginning. Its change judges that once
 * more: a run that moved meanwhile refuses the step. */
#include "storage/step_jobs/adopt_step.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/objects/scratch.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/step_publish.h"
#include "storage/runs/step_read.h"
#include "storage/step_jobs/adopt_objects.h"
#include "storage/step_jobs/adopt_pulse.h"
#include "storage/step_jobs/step_proof.h"
#include "storage/step_jobs/step_source_form.h"
#include "weights/delta/delta_stack.h"
#include "weights/model/relative_path.h"

enum { ADOPT_ARENA_BYTES = 256 * 1024 * 1024 };

struct adopting {
	struct step_work *work;
	const struct adoption *adoption;
	struct arena *arena;
	struct run_row run;
	struct run_ref ref; /* of the run, with the bucket's id */
	struct adopt_objects uploaded;
	struct step_message step;
	struct step_digests digests;
};

static int prepare(struct adopting *adopting, struct error *err);
static int find_run(struct adopting *adopting, struct db *db, struct error *err);
static int find_objects(struct adopting *adopting, struct error *err);
static int find_pulse(struct adopting *adopting, struct error *err);
static struct adopt_place place_of(const struct adopting *adopting);
static int check_order(const struct adopting *adopting, struct db *db, struct error *err);
static int refuse_first(const struct adopting *adopting, struct error *err);
static int check_id(const struct adopting *adopting, struct db *db, struct error *err);
static int adopt_delta(struct adopting *adopting, struct error *err);
static int fetch(const struct adopting *adopting, const char *folder, struct error *err);
static int decode(
	struct adopting *adopting, struct step_source *base, const char *path, struct error *err);
static void set_form(struct adopting *adopting, enum step_form_kind kind, const char *format);
static int measure(struct adopting *adopting, struct tensor_source *tensors,
	const struct model_files *files, struct error *err);
static int fill_files(
	struct adopting *adopting, const struct model_files *files, struct error *err);
static int publish(struct adopting *adopting, struct error *err);
static struct span label_of(const struct adopting *adopting);
static int adopt_full(struct adopting *adopting, struct error *err);

bool adopt_step_is_verdict(enum error_kind kind)
{
	return kind == ERROR_HEAD_MOVED || kind == ERROR_BASE_MISSING || kind == ERROR_NO_KEY ||
		kind == ERROR_NO_MEMORY || step_proof_is_verdict(kind);
}

int adopt_step(struct step_work *work, const struct adoption *adoption, struct error *err)
{
	struct adopting adopting = {
		.work = work, .adoption = adoption, .arena = arena_new(ADOPT_ARENA_BYTES)};
	int result = prepare(&adopting, err);
	if (result == 0)
		result = adopting.uploaded.is_delta ? adopt_delta(&adopting, err)
						    : adopt_full(&adopting, err);
	step_digests_release(&adopting.digests);
	arena_free(adopting.arena);
	return result;
}

static int prepare(struct adopting *adopting, struct error *err)
{
	struct store *const store = adopting->work->store;
	struct db *db = store_reader_take(store, err);
	int result = db == NULL ? -1 : find_run(adopting, db, err);
	store_reader_give(store, db);
	if (result == 0)
		result = find_objects(adopting, err);
	if (result != 0)
		return -1;
	if (adopting->adoption->convention == ADOPT_HOT_LOAD &&
		adopting->adoption->has_base != adopting->uploaded.is_delta)
		return error_set(err, ERROR_INVALID,
			"The publish was announced as %s snapshot, but its index.json says otherwise.",
			adopting->adoption->has_base ? "an incremental" : "a full");
	db = store_reader_take(store, err);
	result = db == NULL ? -1 : check_order(adopting, db, err);
	store_reader_give(store, db);
	return result;
}

static int find_run(struct adopting *adopting, struct db *db, struct error *err)
{
	if (adopt_row_find_bucket(
		    db, adopting->adoption->run, adopting->arena, &adopting->ref.bucket, err) != 0)
		return -1;
	const int found = run_row_find_id(db, adopting->adoption->run, adopting->arena,
		&adopting->run, &adopting->ref.name, err);
	return found == 0    ? error_set(err, ERROR_NO_RUN, "The run has ended.")
		: found == 1 ? 0
			     : -1;
}

static int find_objects(struct adopting *adopting, struct error *err)
{
	if (adopting->adoption->convention == ADOPT_PULSE)
		return find_pulse(adopting, err);
	const struct adopt_place place = place_of(adopting);
	return adopt_objects_find(&place, adopting->adoption, &adopting->uploaded, err);
}

/* A window has two folders; the newest step decides which one counts. */
static int find_pulse(struct adopting *adopting, struct error *err)
{
	struct adopt_pulse pulse = {
		.work = adopting->work,
		.adoption = adopting->adoption,
		.place = place_of(adopting),
		.run_name = adopting->ref.name,
		.has_head = adopting->run.has_head,
	};
	struct adoption head;
	struct db *const db = store_reader_take(adopting->work->store, err);
	if (db == NULL)
		return -1;
	const int found = !pulse.has_head
		? 0
		: adopt_row_find_step(
			  db, adopting->run.id, adopting->run.head, adopting->arena, &head, err);
	store_reader_give(adopting->work->store, db);
	if (found == 1)
		pulse.head = head.identity;
	return found < 0 ? -1 : adopt_pulse_find(&pulse, &adopting->uploaded, err);
}

static struct adopt_place place_of(const struct adopting *adopting)
{
	return (struct adopt_place){adopting->work->store, adopting->ref.bucket, adopting->arena};
}

/* A base that is named must be the head. TRL's and slime's deltas go from one version to the
 * next. */
static int check_order(const struct adopting *adopting, struct db *db, struct error *err)
{
	const struct adoption *const adoption = adopting->adoption;
	struct adoption head;
	if (!adopting->uploaded.is_delta || adoption->convention == ADOPT_PULSE)
		return 0;
	if (!adopting->run.has_head)
		return refuse_first(adopting, err);
	if (adoption->convention == ADOPT_MODELEXPRESS)
		return check_id(adopting, db, err);
	const int found = adopt_row_find_step(
		db, adopting->run.id, adopting->run.head, adopting->arena, &head, err);
	if (found < 0)
		return -1;
	if (adoption->has_base && (found == 0 || !span_equal(head.identity, adoption->base)))
		return error_set(err, ERROR_HEAD_MOVED,
			"The publish builds on '%.*s', which is not the run's newest step.",
			(int)adoption->base.len, (const char *)adoption->base.data);
	uint64_t before;
	uint64_t number;
	if (found == 1 && adopt_layout_number(head.identity, &before) &&
		adopt_layout_number(adoption->identity, &number) && number != before + 1)
		return error_set(err, ERROR_BASE_MISSING,
			"The publish is version %llu, and the run's newest step is version %llu.",
			(unsigned long long)number, (unsigned long long)before);
	return 0;
}

/* slime and SkyRL do not upload their first weights: somebody who has them must publish them. */
static int refuse_first(const struct adopting *adopting, struct error *err)
{
	const struct adoption *const adoption = adopting->adoption;
	const struct span bucket = adopting->ref.bucket.name;
	const struct span run = adopting->ref.name;
	const bool is_slime = adoption->convention == ADOPT_SLIME;
	const size_t before = is_slime ? adoption->objects.len - adoption->identity.len - 1 : 0;
	return error_set(err, ERROR_BASE_MISSING,
		"The publish is a delta, and the run has no step yet. Publish the weights that it was made from"
		" (deltabucket publish --run %.*s/%.*s CHECKPOINT)%s%.*s%s,"
		" then put this publish's last object again.",
		(int)bucket.len, (const char *)bucket.data, (int)run.len, (const char *)run.data,
		is_slime ? " or put them below '" : "", (int)before,
		(const char *)adoption->objects.data, is_slime ? "weight_v000000/'" : "");
}

/* ModelExpress' versions have ids and no order. A full version does not say its id, and neither
 * does a checkpoint that was published by hand: a delta on one of those is proven by its checksums
 * alone. */
static int check_id(const struct adopting *adopting, struct db *db, struct error *err)
{
	const struct span base = adopting->uploaded.base_version;
	struct step_row row;
	struct step_message head;
	ASSERT(adopting->run.has_head);
	const int found = step_row_find(db, adopting->run.id, adopting->run.head, &row, err);
	if (found != 1)
		return found < 0 ? -1 : step_error_missing(adopting->run.head, err);
	if (!row.has_form[STEP_DELTA])
		return 0;
	if (step_read(db, &row, false, adopting->arena, &head, err) != 0)
		return -1;
	if (span_equal(head.label, base))
		return 0;
	const struct span shown = span_slice(base, 0, 80);
	const struct span label = span_slice(head.label, 0, 80);
	return error_set(err, ERROR_HEAD_MOVED,
		"The publish builds on version '%.*s', and the run's newest step is version '%.*s'.",
		(int)shown.len, (const char *)shown.data, (int)label.len, (const char *)label.data);
}

static int adopt_delta(struct adopting *adopting, struct error *err)
{
	struct store *const store = adopting->work->store;
	ASSERT(adopting->uploaded.is_delta && adopting->run.has_head);
	struct step_source *const base = step_source_open(
		store, adopting->work, adopting->run.id, adopting->run.head, STEP_VIA_ANY, err);
	struct scratch *const scratch = base == NULL ? NULL : scratch_open(store, err);
	const bool is_file = adopting->uploaded.count == 1 &&
		span_equal_text(adopting->uploaded.objects[0].name, "delta.safetensors");
	int result = scratch == NULL ? -1 : fetch(adopting, scratch_path(scratch), err);
	if (result == 0) {
		char *const file =
			relative_path_join(scratch_path(scratch), span_text("delta.safetensors"));
		result = decode(adopting, base, is_file ? file : scratch_path(scratch), err);
		free(file);
	}
	scratch_close(scratch);
	step_source_close(base);
	return result;
}

/* Fetches the delta into a local folder, as its reader wants it. */
static int fetch(const struct adopting *adopting, const char *folder, struct error *err)
{
	for (size_t i = 0; i < adopting->uploaded.count; i++) {
		const struct span name = adopting->uploaded.objects[i].name;
		if (!relative_path_is_valid(name))
			return error_set(err, ERROR_INVALID,
				"The name of the object '%.*s' is not a file name.", (int)name.len,
				(const char *)name.data);
		char *const path = relative_path_join(folder, name);
		const int result = scratch_fetch(
			adopting->work->store, adopting->uploaded.versions[i], path, err);
		free(path);
		if (result != 0)
			return -1;
	}
	return 0;
}

static int decode(
	struct adopting *adopting, struct step_source *base, const char *path, struct error *err)
{
	struct delta_stack *const stack =
		delta_stack_open(step_source_tensors(base), step_source_files(base), &path, 1, err);
	if (stack == NULL)
		return -1;
	set_form(adopting, STEP_DELTA,
		delta_format_name(delta_reader_format(delta_stack_reader(stack, 1))));
	int result = delta_stack_prove(stack, err);
	if (result == 0)
		result = measure(
			adopting, delta_stack_source(stack, 1), delta_stack_files(stack, 1), err);
	if (result == 0)
		result = publish(adopting, err);
	delta_stack_close(stack);
	return result;
}

static void set_form(struct adopting *adopting, enum step_form_kind kind, const char *format)
{
	adopting->step.form_count = 1;
	adopting->step.forms[0] = (struct step_form){.kind = kind,
		.format = span_text(format),
		.objects = adopting->uploaded.objects,
		.object_count = adopting->uploaded.count};
}

static int measure(struct adopting *adopting, struct tensor_source *tensors,
	const struct model_files *files, struct error *err)
{
	ASSERT(adopting->digests.tensors == NULL);
	if (step_digests_find(tensors, files, adopting->work->threads, &adopting->digests, err) !=
		0)
		return -1;
	const size_t count = schema_count(tensors->schema);
	adopting->step.digest = adopting->digests.checkpoint;
	adopting->step.schema_digest = schema_digest(tensors->schema);
	adopting->step.tensor_digests =
		span_of(adopting->digests.tensors, count * sizeof(struct digest128));
	return fill_files(adopting, files, err);
}

static int fill_files(struct adopting *adopting, const struct model_files *files, struct error *err)
{
	struct step_file *const out =
		arena_take_array(adopting->arena, files->count + 1, sizeof(*out));
	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	for (size_t i = 0; i < files->count; i++)
		out[i] = (struct step_file){arena_copy(adopting->arena, files->files[i].path),
			files->files[i].size, adopting->digests.files[i]};
	adopting->step.files = out;
	adopting->step.file_count = files->count;
	return 0;
}

static int publish(struct adopting *adopting, struct error *err)
{
	struct step_message *const step = &adopting->step;
	ASSERT(step->form_count == 1);
	step->step = adopting->run.has_head ? adopting->run.head + 1 : 0;
	step->epoch = adopting->run.epoch;
	step->label = label_of(adopting);
	/* full steps too: every step but the first says what it follows */
	step->has_base = adopting->run.has_head;
	step->base_step = adopting->run.head;
	step->base_digest = adopting->run.head_digest;
	return step_publish_adopted(
		adopting->work->store, &adopting->ref, step, adopting->adoption->id, err);
}

/* The trainer's name for it. ModelExpress says an id in the index of a delta, and mostly in the
 * name of the folder. */
static struct span label_of(const struct adopting *adopting)
{
	const struct adopt_objects *const uploaded = &adopting->uploaded;
	struct span label = adopting->adoption->identity;
	if (adopting->adoption->convention != ADOPT_MODELEXPRESS)
		return label;
	for (struct span rest = label; span_split(&rest, '/', &label);)
		continue;
	return uploaded->is_delta && uploaded->version.len > 0 ? uploaded->version : label;
}

static int adopt_full(struct adopting *adopting, struct error *err)
{
	struct store *const store = adopting->work->store;
	struct step_check check = {.run = 0};
	struct step_source_form form = {.count = adopting->uploaded.count};
	struct step_form_source *source = NULL;
	int result = -1;
	set_form(adopting, STEP_ANCHOR, "full");
	adopting->step.step = adopting->run.has_head ? adopting->run.head + 1 : 0;
	form.objects = arena_take_array(adopting->arena, form.count + 1, sizeof(*form.objects));
	for (size_t i = 0; form.objects != NULL && i < form.count; i++) {
		const struct step_object *const object = &adopting->uploaded.objects[i];
		form.objects[i] = (struct step_source_object){
			object->name, adopting->uploaded.versions[i], object->size, object->digest};
	}
	step_check_run(store, &adopting->ref, &adopting->step, NULL, &check);
	if (check.failed || check.schema == NULL || form.objects == NULL) {
		*err = check.error;
		if (!check.failed)
			error_set(err, ERROR_BUSY,
				"The run changed while the server examined a foreign publish.");
		goto out;
	}
	source = step_form_source_open(store, adopting->work, &form, check.schema, err);
	if (source != NULL &&
		measure(adopting, step_form_source_tensors(source), step_form_source_files(source),
			err) == 0)
		result = publish(adopting, err);
out:
	step_form_source_close(source);
	step_check_release(&check);
	return result;
}
