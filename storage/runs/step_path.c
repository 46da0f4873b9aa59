/* Finds the cheapest path in bytes. It is planned over small rows (step_plan.h): steps with the
 * bytes of their forms, and folds with theirs. Only the links of the path that was found are read
 * whole. Afterwards a direct fold that would save much is requested, and the use of a fold
 * recorded. */
#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/path_hold.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/fold_change.h"
#include "storage/runs/fold_form.h"
#include "storage/runs/fold_gain.h"
#include "storage/runs/run.h"
#include "storage/runs/step_anchor_form.h"
#include "storage/runs/step_plan.h"
#include "storage/runs/step_read.h"

/* The most that is done on a reactor: about a millisecond. */
enum { QUICK_ROWS = 256, QUICK_LINKS = 3 };

struct walk {
	struct store *store;
	struct db *db;
	const struct run_path_params *params;
	struct arena *arena; /* of the answer */
	int64_t now_ms;
	struct run_row run;
	uint64_t want;
	struct step_plan *plan;
	struct db_statement *steps; /* downwards from `want` */
	struct db_statement *folds; /* downwards by the step that they lead to */
	struct fold_row fold;       /* the current row of `folds` */
	bool has_fold;
	size_t rows; /* number of rows read so far */
};

struct planned_link {
	uint64_t from;
	uint64_t to;
	enum step_form_kind kind;
	int64_t fold; /* 0: a form of the step `to` */
};

/* Changes to folds that follow from a path. */
struct fold_changes {
	bool request; /* the direct fold of `run`, `from`, `to` */
	int64_t run;
	uint64_t from;
	uint64_t to;
	int64_t used; /* a fold whose use must be recorded; 0: none */
};

static int find_path(struct walk *walk, struct path_message *out, struct run_path_facts *facts,
	struct fold_changes *changes, struct error *err);
static int find_want(struct walk *walk, struct run_path_facts *facts, struct error *err);
static int plan_path(struct walk *walk, struct error *err);
static int next_fold(struct walk *walk, struct error *err);
static bool is_long(const struct walk *walk);
static int add_step(struct walk *walk, uint64_t step, struct error *err);
static int find_row(struct walk *walk, uint64_t step, struct step_row *out, struct error *err);
static bool is_held(const struct run_path_params *params, const struct step_row *row);
static int add_folds(struct walk *walk, uint64_t step, struct error *err);
static int fill(const struct walk *walk, const struct step_plan_start *start,
	struct path_message *out, struct error *err);
static int add_links(const struct walk *walk, const struct step_plan_start *start,
	struct path_message *out, struct error *err);
static int add_link(const struct walk *walk, const struct planned_link *link, struct path_link *out,
	struct error *err);
static int read_step(const struct walk *walk, uint64_t number, struct step_row *out_row,
	struct step_message *out, struct error *err);
static int judge_fold(const struct walk *walk, uint64_t bytes, struct run_path_facts *facts,
	struct fold_changes *out, struct error *err);
static int may_fold(const struct walk *walk, bool *out_may, struct error *err);
static int judge_use(const struct walk *walk, const struct step_plan_start *start,
	struct fold_changes *out, struct error *err);

int run_find_path(struct store *store, const struct run_path_params *params, struct arena *arena,
	struct path_message *out, struct run_path_facts *out_facts, struct error *err)
{
	struct fold_changes changes = {0};
	*out_facts = (struct run_path_facts){.anchor = UINT64_MAX};
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	struct walk walk = {.store = store,
		.db = db,
		.params = params,
		.arena = arena,
		.now_ms = store_now_ms(store)};
	const int result = find_path(&walk, out, out_facts, &changes, err);
	if (result == 0 && out->link_count > 0)
		path_hold_add(store_parts(store)->path_holds, walk.run.id,
			(struct step_range){out->from_nothing ? out->links[0].step : out->from_step,
				out->to_step});
	store_snapshot_give(store, db);
	step_plan_free(walk.plan);
	if (changes.request)
		fold_change_request(store, changes.run, changes.from, changes.to);
	if (changes.used != 0)
		fold_change_mark_used(store, changes.used);
	return result;
}

static int find_path(struct walk *walk, struct path_message *out, struct run_path_facts *facts,
	struct fold_changes *changes, struct error *err)
{
	struct step_plan_start start;
	const struct run_path_params *const params = walk->params;
	if (run_row_need(walk->db, &params->run, &walk->run, err) != 0 ||
		find_want(walk, facts, err) != 0)
		return -1;
	walk->plan = step_plan_new(walk->want);
	const int planned = plan_path(walk, err);
	if (planned != 0)
		return planned;
	const bool found = step_plan_best(walk->plan, &start);
	const int result = found ? fill(walk, &start, out, err) : 0;
	if (result != 0)
		return result;
	if (judge_fold(walk, found ? start.bytes : UINT64_MAX, facts, changes, err) != 0)
		return -1;
	if (found)
		return judge_use(walk, &start, changes, err);
	return error_set(err, ERROR_NOT_READY, "No kept anchor leads to step %llu.",
		(unsigned long long)walk->want);
}

static int find_want(struct walk *walk, struct run_path_facts *facts, struct error *err)
{
	const struct run_row *const run = &walk->run;
	struct step_row row;
	if (walk->params->want_latest && !run->has_head)
		return error_set(err, ERROR_NOT_READY, "The run has no step yet.");
	const int found = walk->params->want_latest
		? step_row_good_at_or_below(walk->db, run->id, run_row_target(run), &row, err)
		: step_row_find(walk->db, run->id, walk->params->want, &row, err);
	if (found == 0 && walk->params->want_latest)
		return error_set(err, ERROR_NOT_READY,
			"No step of the run is good: the proof of every kept step failed.");
	walk->want = found == 1 ? row.step : walk->params->want;
	if (found == 1 && row.state == STEP_KEPT && row.verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			"Step %llu is not what it was published as: its proof failed. Take another one.",
			(unsigned long long)row.step);
	if (found == 0)
		return step_error_missing(walk->want, err);
	if (found == 1 && row.state != STEP_KEPT)
		return step_error_collected(walk->db, run->id, walk->want, &facts->anchor, err);
	return found == 1 ? 0 : -1;
}

/* 0; 1: it takes too long for a reactor; -1. */
static int plan_path(struct walk *walk, struct error *err)
{
	uint64_t step;
	walk->steps = step_row_scan(walk->db, walk->run.id, walk->want, true, err);
	walk->folds =
		walk->steps == NULL ? NULL : fold_row_scan(walk->db, walk->run.id, walk->want, err);
	int result = walk->folds == NULL ? -1 : next_fold(walk, err);
	while (result == 0 && step_plan_next(walk->plan, &step))
		result = is_long(walk) ? 1 : add_step(walk, step, err);
	db_reset(walk->steps);
	db_reset(walk->folds);
	return result;
}

static int next_fold(struct walk *walk, struct error *err)
{
	const int got = db_step(walk->folds, err);
	walk->has_fold = got == 1;
	walk->rows++;
	if (got == 1)
		fold_row_read(walk->folds, &walk->fold);
	return got < 0 ? -1 : 0;
}

static bool is_long(const struct walk *walk)
{
	return !walk->params->may_take_long && walk->rows > QUICK_ROWS;
}

static int add_step(struct walk *walk, uint64_t step, struct error *err)
{
	struct step_row row;
	if (find_row(walk, step, &row, err) != 1)
		return -1;
	/* no reader has the checkpoint that the step claims to be, so nothing can be built on it */
	if (row.verified == STEP_FAILED)
		return 0;
	if (is_held(walk->params, &row))
		step_plan_start(walk->plan, true, 0);
	if (row.state != STEP_KEPT)
		return 0;
	if (row.has_form[STEP_ANCHOR] || row.has_made)
		step_plan_start(walk->plan, false,
			row.has_form[STEP_ANCHOR] ? row.form_bytes[STEP_ANCHOR] : row.made_bytes);
	if (row.has_form[STEP_DELTA] && step > 0)
		step_plan_edge(walk->plan, step - 1, row.form_bytes[STEP_DELTA], 0);
	return add_folds(walk, step, err);
}

/* Reads the step's row from the scan. 1; -1, also when the catalog lacks the step. */
static int find_row(struct walk *walk, uint64_t step, struct step_row *out, struct error *err)
{
	int got;
	while ((got = db_step(walk->steps, err)) == 1) {
		walk->rows++;
		step_row_read(walk->steps, out);
		if (out->step <= step)
			break;
	}
	if (got == 1 && out->step != step)
		got = 0;
	if (got == 0)
		return error_set(err, ERROR_CORRUPT, "The catalog lacks step %llu of a run.",
			(unsigned long long)step);
	return got;
}

/* Whether the reader holds this step: its number and digest are right. Then deltas can start from
 * it, whether it is kept or not. */
static bool is_held(const struct run_path_params *params, const struct step_row *row)
{
	return params->has_have && params->have == row->step &&
		(!params->has_digest || digest128_equal(&params->digest, &row->digest));
}

static int add_folds(struct walk *walk, uint64_t step, struct error *err)
{
	while (walk->has_fold && walk->fold.to >= step) {
		if (walk->fold.to == step && walk->fold.from < step)
			step_plan_edge(
				walk->plan, walk->fold.from, walk->fold.bytes, walk->fold.id);
		if (next_fold(walk, err) != 0)
			return -1;
	}
	return 0;
}

/* 0; 1: it takes too long for a reactor; -1. */
static int fill(const struct walk *walk, const struct step_plan_start *start,
	struct path_message *out, struct error *err)
{
	const size_t links = (size_t)start->links + !start->from_have;
	if (!walk->params->may_take_long && links > QUICK_LINKS)
		return 1;
	*out = (struct path_message){.from_step = start->step,
		.from_nothing = !start->from_have,
		.to_step = walk->want,
		.bytes = start->bytes};
	out->links = arena_take_array(walk->arena, links + 1, sizeof(*out->links));
	if (out->links == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The path has %zu links, too many for one answer.", links);
	const int result = add_links(walk, start, out, err);
	ASSERT(result != 0 || out->link_count == links);
	return result;
}

static int add_links(const struct walk *walk, const struct step_plan_start *start,
	struct path_message *out, struct error *err)
{
	if (!start->from_have) {
		const struct planned_link anchor = {.to = start->step, .kind = STEP_ANCHOR};
		if (add_link(walk, &anchor, &out->links[0], err) != 0)
			return -1;
		out->link_count = 1;
	}
	for (uint64_t at = start->step; at != walk->want; out->link_count++) {
		struct planned_link link = {.from = at, .kind = STEP_DELTA};
		link.to = step_plan_link(walk->plan, at, &link.fold);
		ASSERT(link.to > at);
		if (add_link(walk, &link, &out->links[out->link_count], err) != 0)
			return -1;
		at = link.to;
	}
	return 0;
}

static int add_link(const struct walk *walk, const struct planned_link *link, struct path_link *out,
	struct error *err)
{
	struct step_row row;
	struct step_message step;
	if (read_step(walk, link->to, &row, &step, err) != 0)
		return -1;
	*out = (struct path_link){.step = link->to,
		.from = link->from,
		.digest = step.digest,
		.files = step.files,
		.file_count = step.file_count};
	if (link->fold != 0)
		return fold_form_read(walk->db, link->fold, walk->arena, &out->form, err);
	const struct step_form *const form = step_message_form(&step, link->kind);
	if (form == NULL && link->kind == STEP_ANCHOR && row.has_made)
		return step_anchor_form(walk->db, &row, walk->arena, &out->form, err);
	if (form == NULL)
		return error_set(err, ERROR_CORRUPT, "The manifest of step %llu lacks the form %s.",
			(unsigned long long)link->to, step_form_kind_name(link->kind));
	out->form = *form;
	return 0;
}

static int read_step(const struct walk *walk, uint64_t number, struct step_row *out_row,
	struct step_message *out, struct error *err)
{
	const int got = step_row_find(walk->db, walk->run.id, number, out_row, err);
	if (got == 0)
		return step_error_missing(number, err);
	return got < 0 ? -1 : step_read(walk->db, out_row, false, walk->arena, out, err);
}

/* Requests a direct fold from the held step to the head if it would save much of `bytes`, those of
 * the best path, and has no row yet. */
static int judge_fold(const struct walk *walk, uint64_t bytes, struct run_path_facts *facts,
	struct fold_changes *out, struct error *err)
{
	const uint64_t have = walk->params->have;
	const struct fold_candidate direct = {.run = walk->run.id, .from = have, .to = walk->want};
	struct fold_row fold;
	bool may = false;
	bool worth = false;
	bool has_room = true;
	if (may_fold(walk, &may, err) != 0)
		return -1;
	if (may && fold_gain_is_worth(walk->db, &direct, bytes, &worth, err) != 0)
		return -1;
	if (!worth)
		return 0;
	const int found = fold_row_find(walk->db, walk->run.id, have, walk->want, &fold, err);
	if (found < 0 ||
		(found == 0 &&
			fold_row_has_room(walk->db, walk->run.id, walk->now_ms, &has_room, err) !=
				0))
		return -1;
	out->request = found == 0 && has_room;
	facts->fold_is_due = found == 0 ? has_room : fold.state == FOLD_WANTED;
	out->run = walk->run.id;
	out->from = have;
	out->to = walk->want;
	return 0;
}

/* Whether a fold could be made from the step that the reader holds, and either the reader asks for
 * it or a replica with a lease holds that step. */
static int may_fold(const struct walk *walk, bool *out_may, struct error *err)
{
	const struct run_path_params *const params = walk->params;
	const bool is_newest =
		(params->want_latest && !walk->run.rollback.is_on) || walk->want == walk->run.head;
	struct step_row from;
	*out_may = false;
	if (!is_newest || !params->has_have || params->have >= walk->want ||
		walk->want - params->have < FOLD_SPAN_MIN)
		return 0;
	const int found = step_row_find(walk->db, walk->run.id, params->have, &from, err);
	if (found == 1 && from.state == STEP_KEPT && from.verified != STEP_FAILED &&
		is_held(params, &from))
		*out_may = params->asks_fold ||
			replica_table_holds(
				store_parts(walk->store)->replicas, walk->run.id, params->have);
	return found < 0 ? -1 : 0;
}

/* Finds the first direct fold of the path whose recorded use is old enough to be recorded again. */
static int judge_use(const struct walk *walk, const struct step_plan_start *start,
	struct fold_changes *out, struct error *err)
{
	for (uint64_t at = start->step; at != walk->want && out->used == 0;) {
		struct fold_row row;
		int64_t fold;
		at = step_plan_link(walk->plan, at, &fold);
		if (fold == 0)
			continue;
		if (fold_row_find_id(walk->db, fold, &row, err) < 0)
			return -1;
		if (row.kind == FOLD_DIRECT &&
			row.used_ms + FOLD_MARK_USED_AFTER_MS <= walk->now_ms)
			out->used = fold;
	}
	return 0;
}
