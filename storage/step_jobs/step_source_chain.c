/* Walks the rows of the run's steps downwards from the wanted one. Each adds its delta, until one
 * has an anchor to start from; then the deltas are put in rising order. The walk ends with an error
 * at a step that is removed or failed. */
#include "storage/step_jobs/step_source_chain.h"

#include "base/search.h"
#include "storage/runs/step_pin.h"
#include "storage/runs/step_read.h"
#include "storage/versions/version.h"

enum { CHAIN_ARENA_BYTES = 512 * 1024 * 1024, CHAIN_LINKS_MAX = 4096 };

static bool comes_before(const void *element, const void *key);
static int find(struct db *db, int64_t run, uint64_t step, enum step_source_via via,
	struct step_chain *chain, struct error *err);
static int load_schema(struct db *db, struct step_chain *chain, struct error *err);
static int walk(struct db *db, struct db_statement *scan, struct step_chain *chain,
	enum step_source_via via, struct error *err);
static int judge(const struct step_row *row, const struct step_row *wanted,
	enum step_source_via via, enum step_pin_form *out_start, struct error *err);
static int load_objects(struct db *db, const struct step_row *row, enum step_pin_form form,
	struct arena *arena, struct step_source_form *out, struct error *err);
static void reverse_deltas(struct step_chain *chain);

const struct step_source_object *step_source_form_find(
	const struct step_source_form *form, struct span name)
{
	const size_t at = search_lower_bound(
		form->objects, form->count, sizeof(*form->objects), comes_before, &name);
	return at < form->count && span_equal(form->objects[at].name, name) ? &form->objects[at]
									    : NULL;
}

int step_chain_find(struct store *store, int64_t run, uint64_t step, enum step_source_via via,
	struct step_chain *chain, struct error *err)
{
	*chain = (struct step_chain){.arena = arena_new(CHAIN_ARENA_BYTES)};
	chain->deltas = arena_take_array(chain->arena, CHAIN_LINKS_MAX, sizeof(*chain->deltas));
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find(db, run, step, via, chain, err);
	store_snapshot_give(store, db);
	return result;
}

void step_chain_release(struct step_chain *chain)
{
	schema_free(chain->schema);
	arena_free(chain->arena);
	*chain = (struct step_chain){.arena = NULL};
}

static bool comes_before(const void *element, const void *key)
{
	const struct step_source_object *const object = element;
	return span_compare(object->name, *(const struct span *)key) < 0;
}

static int find(struct db *db, int64_t run, uint64_t step, enum step_source_via via,
	struct step_chain *chain, struct error *err)
{
	uint64_t anchor;
	const int has_run =
		run_row_find_id(db, run, chain->arena, &chain->run, &chain->run_name, err);
	if (has_run == 0)
		error_set(err, ERROR_NO_RUN, "The run has been ended.");
	const int has_step = has_run == 1 ? step_row_find(db, run, step, &chain->row, err) : -1;
	if (has_step == 0)
		return step_error_missing(step, err);
	if (has_step < 0)
		return -1;
	if (chain->row.state != STEP_KEPT)
		return step_error_collected(db, run, step, &anchor, err);
	if (load_schema(db, chain, err) != 0 ||
		step_read(db, &chain->row, true, chain->arena, &chain->manifest, err) != 0)
		return -1;
	struct db_statement *const scan = step_row_scan(db, run, step, true, err);
	if (scan == NULL)
		return -1;
	const int result = walk(db, scan, chain, via, err);
	db_reset(scan);
	reverse_deltas(chain);
	return result;
}

static int load_schema(struct db *db, struct step_chain *chain, struct error *err)
{
	struct buffer text;
	buffer_init(&text, 2 * SAFETENSORS_HEADER_MAX_BYTES);
	if (run_row_load_schema(db, &chain->run, &text, err) == 0)
		chain->schema = schema_parse(buffer_span(&text), err);
	buffer_release(&text);
	return chain->schema == NULL ? -1 : 0;
}

/* Goes downwards from the step, so the last delta comes first. */
static int walk(struct db *db, struct db_statement *scan, struct step_chain *chain,
	enum step_source_via via, struct error *err)
{
	int got;
	ASSERT(chain->deltas != NULL && chain->delta_count == 0);
	for (unsigned links = 0; links < CHAIN_LINKS_MAX && (got = db_step(scan, err)) != 0;
		links++) {
		struct step_row row;
		enum step_pin_form start = STEP_PIN_ANCHOR;
		if (got < 0)
			return -1;
		step_row_read(scan, &row);
		const int is_start = judge(&row, &chain->row, via, &start, err);
		if (is_start < 0)
			return -1;
		if (is_start == 1)
			return load_objects(db, &row, start, chain->arena, &chain->start, err);
		ASSERT(chain->delta_count < CHAIN_LINKS_MAX);
		if (load_objects(db, &row, STEP_PIN_DELTA, chain->arena,
			    &chain->deltas[chain->delta_count], err) != 0)
			return -1;
		chain->delta_count += chain->deltas[chain->delta_count].count > 0;
	}
	return error_set(err, ERROR_NOT_READY, "No kept anchor leads to step %llu.",
		(unsigned long long)chain->row.step);
}

/* 1: the chain starts at this row; 0: the row's delta is a link of it; -1. */
static int judge(const struct step_row *row, const struct step_row *wanted,
	enum step_source_via via, enum step_pin_form *out_start, struct error *err)
{
	const bool is_wanted = row->step == wanted->step;
	if (row->state != STEP_KEPT)
		return error_set(err, ERROR_NOT_READY,
			"Step %llu is built on step %llu, which has been removed.",
			(unsigned long long)wanted->step, (unsigned long long)row->step);
	if (row->verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			is_wanted ? "The proof of step %llu failed."
				  : "The step is built on step %llu, whose proof failed.",
			(unsigned long long)row->step);
	*out_start = row->has_form[STEP_ANCHOR] ? STEP_PIN_ANCHOR : STEP_PIN_MADE;
	const bool has_anchor = row->has_form[STEP_ANCHOR] ||
		(row->has_made && !(is_wanted && via == STEP_VIA_ANCHOR));
	if (has_anchor && !(is_wanted && via == STEP_VIA_DELTA))
		return 1;
	if (row->has_form[STEP_DELTA] && !(is_wanted && via == STEP_VIA_ANCHOR))
		return 0;
	return error_set(err, ERROR_NOT_READY, "No kept anchor leads to step %llu.",
		(unsigned long long)wanted->step);
}

static int load_objects(struct db *db, const struct step_row *row, enum step_pin_form form,
	struct arena *arena, struct step_source_form *out, struct error *err)
{
	struct step_pins pins;
	if (step_pin_list(db, row->id, form, arena, &pins, err) != 0)
		return -1;
	out->count = pins.count;
	out->step = row->step;
	out->objects = arena_take_array(arena, out->count + 1, sizeof(*out->objects));
	if (out->objects == NULL)
		return error_set(err, ERROR_NO_MEMORY, "Step %llu has too many objects.",
			(unsigned long long)row->step);
	for (size_t i = 0; i < out->count; i++) {
		const struct step_pin *const pin = &pins.items[i];
		struct version version;
		const int found = version_find_sequence(db, pin->version, NULL, &version, err);
		if (found == 0) /* invariant 6 */
			error_set(err, ERROR_CORRUPT,
				"%s: a step's object has lost its version %lld.", db_path(db),
				(long long)pin->version);
		if (found != 1)
			return -1;
		out->objects[i] = (struct step_source_object){
			pin->name, pin->version, version.size, version.digest};
	}
	return 0;
}

static void reverse_deltas(struct step_chain *chain)
{
	for (size_t i = 0; i < chain->delta_count / 2; i++) {
		const struct step_source_form last = chain->deltas[chain->delta_count - 1 - i];
		chain->deltas[chain->delta_count - 1 - i] = chain->deltas[i];
		chain->deltas[i] = last;
	}
}
