/* Removing steps, asked for or by retention. A step's row becomes a tombstone at once; its objects are let go by the sweeper, in slices. */
#include "storage/fold_row.h"
#include "storage/run_internal.h"

int step_collect_row(struct db *const db, struct run_row *const run, const struct step_row *const row, struct error *const err)
{
	ASSERT(row->state == STEP_KEPT && row->step != run->head);
	run->steps--;
	for (int kind = 0; kind < STEP_FORMS_MAX; kind++)
		run->bytes -= row->form_bytes[kind];
	return step_row_collect(db, row->id, err) != 0 ? -1 : fold_row_release_of_step(db, run->id, row->step, err);
}

/* What lies below the newest anchor at or below head - keep + 1 goes: every kept step is then reached from that anchor on. */
int step_retain(struct db *const db, struct run_row *const run, struct error *const err)
{
	uint64_t anchor;
	if (run->settings.keep_steps == 0 || !run->has_head || run->head + 1 <= run->settings.keep_steps)
		return 0;
	const int found = step_row_anchor_at_or_below(db, run->id, run->head + 1 - run->settings.keep_steps, &anchor, err);
	if (found != 1)
		return found;
	for (int i = 0; i < STEP_RETAIN_AT_ONCE; i++) {
		struct step_row row;
		const int got = step_row_oldest(db, run->id, &row, err);
		if (got != 1 || row.step >= anchor)
			return got < 0 ? -1 : 0;
		if (step_collect_row(db, run, &row, err) != 0)
			return -1;
	}
	return 0;
}

/* A kept step without an anchor is built on the one before it. */
static int check_unused(struct db *const db, const struct run_row *const run, const uint64_t step, struct error *const err)
{
	struct step_row next;
	if (run->has_head && step == run->head)
		return error_set(err, ERROR_CHAIN_IN_USE, "Step %llu is the head of the run.", (unsigned long long)step);
	const int found = step_row_find(db, run->id, step + 1, &next, err);
	if (found < 0)
		return -1;
	if (found == 1 && next.state == STEP_KEPT && !next.has_form[STEP_ANCHOR])
		return error_set(err, ERROR_CHAIN_IN_USE, "Step %llu is built on step %llu.", (unsigned long long)step + 1,
			(unsigned long long)step);
	return 0;
}

static int apply_collect(struct change *const base, struct db *const db, struct error *const err)
{
	struct run_change *const change = (struct run_change *)base;
	struct run_row run;
	struct step_row row;
	if (run_row_need(db, change->bucket, change->run, &run, err) != 0)
		return -1;
	const int found = step_row_find(db, run.id, change->collect_step, &row, err);
	if (found == 0)
		return step_no_step(change->collect_step, err);
	if (found < 0 || row.state != STEP_KEPT)
		return found < 0 ? -1 : 0; /* removed already */
	if (check_unused(db, &run, row.step, err) != 0 || step_collect_row(db, &run, &row, err) != 0)
		return -1;
	return run_row_update(db, &run, err);
}

struct run_change *run_collect_start(struct store *const store, const struct span bucket, const struct span run, const uint64_t step,
	void (*const done)(void *owner), void *const owner)
{
	struct run_change *const change = run_change_new(store, bucket, run, done, owner);
	change->collect_step = step;
	run_change_submit(change, apply_collect);
	return change;
}
