/* Reads steps back: the manifest as it was published, with the fields that only answers carry
 * filled in. Each answer is read in one snapshot of the catalog. */
#include "storage/runs/step_read.h"

#include "base/encode.h"
#include "storage/objects/object_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_changes_row.h"
#include "storage/runs/run.h"
#include "storage/runs/step_pin.h"
#include "storage/versions/version.h"

enum { URL_MAX_BYTES = 4 * STEP_NAME_MAX_BYTES };

struct step_list {
	struct step_message *steps;
	size_t limit;
	size_t count;
};

static bool copy_objects(const struct step_form *form, struct arena *arena, struct step_form *out);
static int add_proof(struct db *db, const struct step_row *row, struct arena *arena,
	struct step_message *out, struct error *err);
static int add_changes(struct db *db, int64_t id, struct step_message *out, struct error *err);
static void add_urls(struct step_message *step, struct arena *arena);
static int find_latest(struct db *db, const struct run_latest_params *params, struct arena *arena,
	struct step_message *out, struct error *err);
static int list_steps(struct db *db, const struct run_steps_scan *scan, struct arena *arena,
	struct step_list *list, struct error *err);
static int read_list(struct db *db, struct db_statement *rows, struct arena *arena,
	struct step_list *list, struct error *err);
static int find_object(struct db *db, int64_t step, struct span name, struct arena *arena,
	struct version *out, struct error *err);
static bool split_name(struct span name, enum step_form_kind *out_kind, struct span *out_rest);

bool step_copy(const struct step_message *step, struct arena *arena, struct step_message *out)
{
	*out = *step;
	if (step->form_count > STEP_FORMS_MAX) {
		out->form_count = 0; /* the change refuses it: a step has one form or two */
		return true;
	}
	struct step_file *const files =
		arena_take_array(arena, step->file_count + 1, sizeof(*files));
	if (files == NULL)
		return false;
	for (size_t i = 0; i < step->file_count; i++) {
		files[i] = step->files[i];
		files[i].path = arena_copy(arena, step->files[i].path);
	}
	out->files = files;
	out->label = arena_copy(arena, step->label);
	out->verified = STEP_PROOF_NONE; /* a request does not decide this */
	out->verify_error = span_of(NULL, 0);
	out->has_changed = false;
	out->anchor_due = false;
	out->metadata = arena_copy(arena, step->metadata);
	out->tensor_digests = arena_copy(arena, step->tensor_digests);
	for (size_t i = 0; i < step->form_count; i++)
		if (!copy_objects(&step->forms[i], arena, &out->forms[i]))
			return false;
	return !arena_overflowed(arena);
}

int step_read(struct db *db, const struct step_row *row, bool with_tensors, struct arena *arena,
	struct step_message *out, struct error *err)
{
	struct span manifest;
	struct span tensor_digests = {NULL, 0};
	if (row->state != STEP_KEPT) {
		*out = (struct step_message){.step = row->step,
			.digest = row->digest,
			.created_ms = row->created_ms,
			.collected = true};
		return 0;
	}
	if (step_row_load_manifest(
		    db, row->id, arena, &manifest, with_tensors ? &tensor_digests : NULL, err) != 0)
		return -1;
	if (step_message_parse(manifest, arena, out, err) != 0)
		return error_wrap(err, "reading the stored manifest of step %llu",
			(unsigned long long)row->step);
	out->tensor_digests = tensor_digests;
	out->created_ms = row->created_ms;
	if (add_proof(db, row, arena, out, err) != 0)
		return -1;
	add_urls(out, arena);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading step %llu.",
			(unsigned long long)row->step);
	return 0;
}

int step_error_missing(uint64_t step, struct error *err)
{
	return error_set(err, ERROR_NO_STEP, "Step %llu does not exist.", (unsigned long long)step);
}

int step_error_collected(
	struct db *db, int64_t run, uint64_t step, uint64_t *out_anchor, struct error *err)
{
	const int found = step_row_anchor_above(db, run, step, out_anchor, err);
	if (found < 0)
		return -1;
	if (found == 1)
		return error_set(err, ERROR_COLLECTED,
			"Step %llu has been removed; the nearest anchor above it is step %llu.",
			(unsigned long long)step, (unsigned long long)*out_anchor);
	*out_anchor = UINT64_MAX;
	return error_set(err, ERROR_COLLECTED,
		"Step %llu has been removed; no anchor is kept above it.",
		(unsigned long long)step);
}

int step_need_kept(struct db *db, int64_t run, uint64_t step, struct step_row *out,
	uint64_t *out_anchor, struct error *err)
{
	*out_anchor = UINT64_MAX;
	const int found = step_row_find(db, run, step, out, err);
	if (found == 0)
		return step_error_missing(step, err);
	if (found == 1 && out->state != STEP_KEPT)
		return step_error_collected(db, run, step, out_anchor, err);
	return found == 1 ? 0 : -1;
}

int run_find_step(struct store *store, const struct run_step_params *params, struct arena *arena,
	struct step_message *out, uint64_t *out_anchor, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	struct run_row run;
	struct step_row row;
	int result = run_row_need(db, &params->run, &run, err);
	if (result == 0)
		result = step_need_kept(db, run.id, params->step, &row, out_anchor, err);
	if (result == 0)
		result = step_read(db, &row, params->with_tensors, arena, out, err);
	store_snapshot_give(store, db);
	return result;
}

int run_find_latest(struct store *store, const struct run_latest_params *params,
	struct arena *arena, struct step_message *out, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find_latest(db, params, arena, out, err);
	store_snapshot_give(store, db);
	return result;
}

int run_list_steps(struct store *store, const struct run_steps_scan *scan, struct arena *arena,
	struct step_message **out, size_t *out_count, struct error *err)
{
	struct step_list list = {.limit = scan->limit};
	list.steps = arena_take_array(arena, scan->limit + 1, sizeof(*list.steps));
	*out = list.steps;
	*out_count = 0;
	if (list.steps == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing steps.");
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = list_steps(db, scan, arena, &list, err);
	store_snapshot_give(store, db);
	*out_count = list.count;
	return result;
}

int run_find_object(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, uint64_t *out_anchor, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	struct run_row run;
	struct step_row row;
	struct version version;
	int result = run_row_need(db, &ref->run, &run, err);
	if (result == 0)
		result = step_need_kept(db, run.id, ref->step, &row, out_anchor, err);
	if (result == 0)
		result = find_object(db, row.id, ref->name, arena, &version, err);
	store_snapshot_give(store, db);
	return result == 0 ? object_of_version(&version, arena, out, err) : -1;
}

static bool copy_objects(const struct step_form *form, struct arena *arena, struct step_form *out)
{
	struct step_object *const objects =
		arena_take_array(arena, form->object_count + 1, sizeof(*objects));
	if (objects == NULL)
		return false;
	for (size_t i = 0; i < form->object_count; i++) {
		objects[i] = form->objects[i];
		objects[i].name = arena_copy(arena, form->objects[i].name);
		objects[i].key = arena_copy(arena, form->objects[i].key);
		objects[i].version = arena_copy(arena, form->objects[i].version);
		objects[i].url = span_of(NULL, 0);
	}
	*out = (struct step_form){
		form->kind, arena_copy(arena, form->format), objects, form->object_count};
	return true;
}

static int add_proof(struct db *db, const struct step_row *row, struct arena *arena,
	struct step_message *out, struct error *err)
{
	static const enum step_proof proofs[] = {[STEP_UNPROVEN] = STEP_PROOF_PENDING,
		[STEP_PROVEN] = STEP_PROOF_OK,
		[STEP_FAILED] = STEP_PROOF_FAILED,
		[STEP_UNCHECKED] = STEP_PROOF_NONE};
	out->verified = proofs[row->verified];
	if (row->verified == STEP_FAILED)
		return step_row_load_reason(db, row->id, arena, &out->verify_error, err);
	return row->verified == STEP_PROVEN ? add_changes(db, row->id, out, err) : 0;
}

static int add_changes(struct db *db, int64_t id, struct step_message *out, struct error *err)
{
	struct step_changes changes = {0};
	const int found = step_changes_row_find(db, id, &changes, err);
	out->has_changed = found == 1;
	out->changed_elements = changes.changed;
	out->changed_of = changes.elements;
	return found < 0 ? -1 : 0;
}

/* Adds URLs relative to the run: "steps/5/objects/delta/delta.safetensors". */
static void add_urls(struct step_message *step, struct arena *arena)
{
	struct buffer path;
	buffer_init(&path, URL_MAX_BYTES);
	for (size_t f = 0; f < step->form_count; f++) {
		for (size_t i = 0; i < step->forms[f].object_count; i++) {
			struct step_object *const object = &step->forms[f].objects[i];
			buffer_reset(&path);
			buffer_format(&path, "steps/%llu/objects/%s/",
				(unsigned long long)step->step,
				step_form_kind_name(step->forms[f].kind));
			encode_percent(object->name, true, &path);
			object->url = arena_copy(arena, buffer_span(&path));
		}
	}
	buffer_release(&path);
}

static int find_latest(struct db *db, const struct run_latest_params *params, struct arena *arena,
	struct step_message *out, struct error *err)
{
	struct run_row run;
	struct step_row row;
	if (run_row_need(db, &params->run, &run, err) != 0)
		return -1;
	if (!run.has_head)
		return error_set(err, ERROR_NOT_READY,
			params->least > 0 ? "The run has no step %llu or later yet."
					  : "The run has no step yet.",
			(unsigned long long)params->least);
	const bool is_rollback = run.rollback.is_on && !params->of_head;
	const int found = step_row_good_at_or_below(
		db, run.id, is_rollback ? run.rollback.step : run.head, &row, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return error_set(err, ERROR_NOT_READY,
			"No step of the run is good: the proof of every kept step failed.");
	if (row.step < params->least)
		return error_set(err, ERROR_NOT_READY,
			is_rollback
				? "The run has no step %llu or later for its fleet yet: a rollback holds it at step %llu."
				: "The run has no step %llu or later yet; its newest is step %llu.",
			(unsigned long long)params->least, (unsigned long long)row.step);
	if (params->has_after &&
		(row.step == params->after || (row.step < params->after && !is_rollback)))
		return error_set(err, ERROR_NOT_READY,
			"The run's newest step is step %llu, which is not above %llu.",
			(unsigned long long)row.step, (unsigned long long)params->after);
	return step_read(db, &row, false, arena, out, err);
}

static int list_steps(struct db *db, const struct run_steps_scan *scan, struct arena *arena,
	struct step_list *list, struct error *err)
{
	struct run_row run;
	if (run_row_need(db, &scan->run, &run, err) != 0)
		return -1;
	struct db_statement *const rows = step_row_scan(db, run.id, scan->from, false, err);
	if (rows == NULL)
		return -1;
	const int result = read_list(db, rows, arena, list, err);
	db_reset(rows);
	return result;
}

static int read_list(struct db *db, struct db_statement *rows, struct arena *arena,
	struct step_list *list, struct error *err)
{
	int got = 0;
	while (list->count < list->limit && (got = db_step(rows, err)) == 1) {
		struct step_row row;
		step_row_read(rows, &row);
		if (step_read(db, &row, false, arena, &list->steps[list->count], err) != 0)
			return -1;
		list->count++;
	}
	return got < 0 ? -1 : 0;
}

static int find_object(struct db *db, int64_t step, struct span name, struct arena *arena,
	struct version *out, struct error *err)
{
	enum step_form_kind kind;
	struct span rest;
	int64_t sequence = 0;
	int found = 0;
	if (split_name(name, &kind, &rest))
		found = step_pin_find(db, step, (enum step_pin_form)kind, rest, &sequence, err);
	if (found == 1) {
		found = version_find_sequence(db, sequence, arena, out, err);
		if (found == 0) /* invariant 6 */
			return error_set(err, ERROR_CORRUPT,
				"%s: a step's object has lost its version %lld.", db_path(db),
				(long long)sequence);
	}
	if (found == 0)
		return object_no_key(name, err);
	return found == 1 ? 0 : -1;
}

/* Splits "anchor/model.safetensors" into form kind and name. */
static bool split_name(struct span name, enum step_form_kind *out_kind, struct span *out_rest)
{
	struct span rest = name;
	struct span first;
	if (span_find(name, '/') < 0 || !span_split(&rest, '/', &first))
		return false;
	*out_rest = rest;
	*out_kind = span_equal_text(first, "anchor") ? STEP_ANCHOR : STEP_DELTA;
	return span_equal_text(first, step_form_kind_name(*out_kind));
}
