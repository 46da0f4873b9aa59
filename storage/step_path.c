/* The cheapest way in bytes. Every way to a step is a start and then deltas without a gap, so the best start is found by walking down from
 * the wanted step with the deltas' bytes summed: an anchor there costs its bytes on top, the held step nothing. The walk ends when the sum
 * alone is dearer than the best start, or when a step has no delta. */
#include "storage/run_internal.h"

struct start {
	bool found;
	bool from_have; /* else from an anchor */
	uint64_t step;  /* the held step, or the anchor's */
	uint64_t bytes; /* of the whole way */
};

static void offer(struct start *const best, const bool from_have, const uint64_t step, const uint64_t bytes)
{
	if (best->found && best->bytes <= bytes)
		return;
	*best = (struct start){.found = true, .from_have = from_have, .step = step, .bytes = bytes};
}

/* Whether the caller's claim about the step it holds is true: then deltas can start from it, kept or not. */
static bool is_held(const struct run_path_params *const params, const struct step_row *const row)
{
	return params->has_have && params->have == row->step && (!params->has_digest || digest128_equal(&params->digest, &row->digest));
}

static int find_start(struct db_statement *const scan, const struct run_path_params *const params, const uint64_t want,
	struct start *const best, struct error *const err)
{
	uint64_t deltas = 0;
	uint64_t expected = want;
	int got;
	while ((got = db_step(scan, err)) == 1) {
		struct step_row row;
		step_row_read(scan, &row);
		if (row.step != expected)
			return error_set(err, ERROR_CORRUPT, "The catalog lacks step %llu of a run.", (unsigned long long)expected);
		if (row.verified == STEP_FAILED) /* nobody has what it claims to be, so nothing that is built on it helps */
			return 0;
		if (is_held(params, &row))
			offer(best, true, row.step, deltas);
		if (row.state != STEP_KEPT)
			return 0;
		if (row.has_form[STEP_ANCHOR])
			offer(best, false, row.step, deltas + row.form_bytes[STEP_ANCHOR]);
		deltas += row.form_bytes[STEP_DELTA];
		if (!row.has_form[STEP_DELTA] || (best->found && deltas >= best->bytes))
			return 0;
		expected--;
	}
	return got < 0 ? -1 : 0;
}

static int add_link(struct db *const db, const struct step_row *const row, const enum step_form_kind kind, struct arena *const arena,
	struct path_link *const out, struct error *const err)
{
	struct step_message step;
	if (step_read(db, row, false, arena, &step, err) != 0)
		return -1;
	const struct step_form *const form = step_message_form(&step, kind);
	if (form == NULL)
		return error_set(err, ERROR_CORRUPT, "The manifest of step %llu lacks the form %s.", (unsigned long long)row->step,
			step_form_kind_name(kind));
	*out = (struct path_link){.step = row->step, .digest = step.digest, .form = *form, .files = step.files, .file_count = step.file_count};
	return 0;
}

static int add_links(struct db *const db, struct db_statement *const scan, const struct start *const start, const uint64_t want,
	struct arena *const arena, struct path_message *const out, struct error *const err)
{
	const uint64_t first = start->from_have ? start->step + 1 : start->step;
	for (uint64_t step = first; step <= want; step++) {
		struct step_row row;
		const int got = db_step(scan, err);
		if (got != 1)
			return got < 0 ? -1 : step_no_step(step, err);
		step_row_read(scan, &row);
		const enum step_form_kind kind = !start->from_have && step == first ? STEP_ANCHOR : STEP_DELTA;
		if (add_link(db, &row, kind, arena, &out->links[out->link_count], err) != 0)
			return -1;
		out->link_count++;
	}
	return 0;
}

static int fill(struct db *const db, const struct run_row *const run, const struct start *const start, const uint64_t want,
	struct arena *const arena, struct path_message *const out, struct error *const err)
{
	const uint64_t first = start->from_have ? start->step + 1 : start->step;
	*out = (struct path_message){.from_step = start->step, .from_nothing = !start->from_have, .to_step = want, .bytes = start->bytes};
	out->links = arena_take_array(arena, (size_t)(want - first) + 2, sizeof(*out->links));
	struct db_statement *const scan = out->links == NULL ? NULL : step_row_scan(db, run->id, first, false, err);
	if (out->links == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The way has %llu links, too many for one answer.", (unsigned long long)(want - first + 1));
	if (scan == NULL)
		return -1;
	const int result = add_links(db, scan, start, want, arena, out, err);
	db_reset(scan);
	return result;
}

static int find_want(struct db *const db, const struct run_row *const run, const struct run_path_params *const params,
	uint64_t *const out_want, uint64_t *const out_anchor, struct error *const err)
{
	struct step_row row;
	if (params->want_latest && !run->has_head)
		return error_set(err, ERROR_NOT_READY, "The run has no step yet.");
	const int found = params->want_latest ? step_row_good_at_or_below(db, run->id, run->head, &row, err)
		: step_row_find(db, run->id, params->want, &row, err);
	if (found == 0 && params->want_latest)
		return error_set(err, ERROR_NOT_READY, "No step of the run is good: the proof of each kept one failed.");
	*out_want = found == 1 ? row.step : params->want;
	if (found == 1 && row.state == STEP_KEPT && row.verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED, "Step %llu is not what it was published as: its proof failed. Take another one.",
			(unsigned long long)row.step);
	if (found == 0)
		return step_no_step(*out_want, err);
	if (found == 1 && row.state != STEP_KEPT)
		return step_is_collected(db, run->id, *out_want, out_anchor, err);
	return found == 1 ? 0 : -1;
}

static int find_path(struct db *const db, const struct run_path_params *const params, struct arena *const arena,
	struct path_message *const out, uint64_t *const out_anchor, struct error *const err)
{
	struct run_row run;
	struct start best = {.found = false};
	uint64_t want = 0;
	if (run_row_need(db, params->bucket, params->run, &run, err) != 0 || find_want(db, &run, params, &want, out_anchor, err) != 0)
		return -1;
	struct db_statement *const scan = step_row_scan(db, run.id, want, true, err);
	if (scan == NULL)
		return -1;
	const int walked = find_start(scan, params, want, &best, err);
	db_reset(scan);
	if (walked != 0)
		return -1;
	if (!best.found)
		return error_set(err, ERROR_NOT_READY, "No kept anchor leads to step %llu.", (unsigned long long)want);
	return fill(db, &run, &best, want, arena, out, err);
}

int run_find_path(struct store *const store, const struct run_path_params *const params, struct arena *const arena,
	struct path_message *const out, uint64_t *const out_anchor, struct error *const err)
{
	*out_anchor = UINT64_MAX;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = db_snapshot_begin(db, err);
	if (result == 0) {
		result = find_path(db, params, arena, out, out_anchor, err);
		db_snapshot_end(db);
	}
	store_reader_give(store, db);
	return result;
}
