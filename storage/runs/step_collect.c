/* Removes steps, on request or by retention. A step's row becomes a tombstone at once; the sweeper
 * releases the step's objects in slices. */
#include "storage/runs/step_collect.h"

#include "storage/run_tables/adopt_row.h"
#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/run_tables/view_row.h"
#include "storage/runs/run.h"
#include "storage/runs/step_anchor_base.h"
#include "storage/runs/step_keep.h"
#include "storage/runs/step_read.h"

enum { RETAIN_SLACK_MIN = 16, COLLECT_ARENA_BYTES = 1024 * 1024 };

struct step_collect {
	struct call call;
	struct run_ref run;
	uint64_t step;
};

static int want_anchor(
	struct db *db, const struct run_row *run, const struct step_keep *keep, struct error *err);
static int collect_gaps(
	struct db *db, struct run_row *run, const struct step_keep *keep, struct error *err);
static int collect_row(
	struct db *db, struct run_row *run, const struct step_row *row, struct error *err);
static int step_collect_apply(struct call *call, struct db *db, struct error *err);
static int check_unused(struct store *store, struct db *db, const struct run_row *run,
	uint64_t step, struct error *err);

static const struct call_kind collect_kind = {.stages = {{.apply = step_collect_apply}}};

int step_retain(struct store *store, struct db *db, struct run_row *run, struct error *err)
{
	struct step_keep keep;
	struct step_row oldest;
	if (run->settings.keep_steps == 0 || !run->has_head ||
		run->head + 1 <= run->settings.keep_steps || !step_keep_is_known(store, run))
		return 0;
	const int got = step_row_oldest(db, run->id, &oldest, err);
	if (got != 1 || run->head - oldest.step < run->settings.keep_steps)
		return got < 0 ? -1 : 0;
	int result = step_keep_find(store, db, run, &keep, err);
	if (result == 0 && keep.wants_anchor)
		result = want_anchor(db, run, &keep, err);
	if (result == 0)
		result = collect_gaps(db, run, &keep, err);
	step_keep_release(&keep);
	return result;
}

struct call *run_collect_call(struct store *store, const struct run_ref *run, uint64_t step)
{
	struct step_collect *const collect =
		call_new(sizeof(*collect), &collect_kind, store, COLLECT_ARENA_BYTES);
	collect->run = run_ref_copy(run, collect->call.arena);
	collect->step = step;
	return &collect->call;
}

/* A stored anchor takes as many bytes as a checkpoint, so one is wanted only when many steps could
 * be removed. */
static int want_anchor(
	struct db *db, const struct run_row *run, const struct step_keep *keep, struct error *err)
{
	ASSERT(keep->wants_anchor && keep->count > 0);
	const uint64_t root = keep->ranges[keep->count - 1].first;
	const uint64_t half = run->settings.keep_steps / 2;
	if (keep->anchor_at < root ||
		keep->anchor_at - root < (half > RETAIN_SLACK_MIN ? half : RETAIN_SLACK_MIN))
		return 0;
	return step_anchor_want_stored(db, run->id, root, keep->anchor_at, err);
}

/* Removes the steps between the kept ranges, the oldest first. */
static int collect_gaps(
	struct db *db, struct run_row *run, const struct step_keep *keep, struct error *err)
{
	uint64_t from = 0;
	for (int i = 0; i < STEP_RETAIN_AT_ONCE;) {
		struct step_row row;
		const int got = step_row_kept_from(db, run->id, from, &row, err);
		if (got != 1)
			return got;
		const size_t at = step_range_at_or_behind(keep->ranges, keep->count, row.step);
		ASSERT(at < keep->count); /* one ends at the head */
		if (keep->ranges[at].first <= row.step) {
			if (keep->ranges[at].last >= run->head)
				return 0;
			from = keep->ranges[at].last + 1;
			continue;
		}
		if (collect_row(db, run, &row, err) != 0)
			return -1;
		from = row.step + 1;
		i++;
	}
	return 0;
}

/* Counts the step out of the run's row, which is not written. */
static int collect_row(
	struct db *db, struct run_row *run, const struct step_row *row, struct error *err)
{
	ASSERT(row->state == STEP_KEPT && row->step != run->head);
	run->steps--;
	for (int kind = 0; kind < STEP_FORMS_MAX; kind++)
		run->bytes -= row->form_bytes[kind];
	if (step_row_collect(db, row->id, err) != 0 ||
		fold_row_release_of_step(db, run->id, row->step, err) != 0)
		return -1;
	return adopt_row_forget_step(db, run->id, row->step, err) != 0
		? -1
		: view_row_remove(db, row->id, err);
}

static int step_collect_apply(struct call *call, struct db *db, struct error *err)
{
	const struct step_collect *const collect = (const struct step_collect *)call;
	struct run_row run;
	struct step_row row;
	if (run_row_need(db, &collect->run, &run, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, collect->step, &row, err);
	if (found == 0)
		return step_error_missing(collect->step, err);
	if (found < 0 || row.state != STEP_KEPT)
		return found < 0 ? -1 : 0; /* removed already */
	if (check_unused(call->store, db, &run, row.step, err) != 0 ||
		collect_row(db, &run, &row, err) != 0)
		return -1;
	return run_row_update(db, &run, err);
}

/* A kept step without an anchor is built on the one before it. */
static int check_unused(struct store *store, struct db *db, const struct run_row *run,
	uint64_t step, struct error *err)
{
	struct step_row next;
	if (run->has_head && step == run->head)
		return error_set(err, ERROR_CHAIN_IN_USE, "Step %llu is the head of the run.",
			(unsigned long long)step);
	const int found = step_row_find(db, run->id, step + 1, &next, err);
	if (found < 0)
		return -1;
	if (found == 1 && next.state == STEP_KEPT && !next.has_form[STEP_ANCHOR])
		return error_set(err, ERROR_CHAIN_IN_USE, "Step %llu is built on step %llu.",
			(unsigned long long)step + 1, (unsigned long long)step);
	return step_keep_check(store, db, run, step, err);
}
