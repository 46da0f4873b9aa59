/* A made anchor is dropped unless its step wants it, its time has not ended, the run's next anchor
 * would be made upon it, or nothing else leads to its step. The search judges this through a
 * reader; the change judges it again. */
#include "storage/step_jobs/step_anchor.h"

#include "base/clock.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_anchor_row.h"
#include "storage/runs/step_anchor_base.h"
#include "storage/runs/step_anchor_keys.h"

struct drop {
	struct change change; /* first */
	const struct step_job *job;
};

/* Whether the run's next anchor would be made upon this one. */
static int is_next_base(
	struct db *db, int64_t run, const struct step_row *row, bool *out_is, struct error *err)
{
	struct step_anchor_base base;
	struct step_row newest;
	*out_is = false;
	int found = step_row_good_at_or_below(db, run, UINT64_MAX, &newest, err);
	if (found == 1)
		found = step_anchor_base_find(db, run, newest.step + 1, &base, err);
	*out_is = found == 1 && base.row.id == row->id;
	return found < 0 ? -1 : 0;
}

/* Whether the step can be reached without its made anchor. Retention may have removed what the
 * anchor was made upon, because the anchor is there. */
static int is_reached(
	struct db_statement *scan, const struct step_row *made, bool *out_is, struct error *err)
{
	uint64_t expected = made->step;
	int got;
	*out_is = false;
	while ((got = db_step(scan, err)) == 1) {
		struct step_row row;
		step_row_read(scan, &row);
		if (row.step != expected || row.state != STEP_KEPT || row.verified == STEP_FAILED)
			return 0;
		*out_is = row.step != made->step && (row.has_form[STEP_ANCHOR] || row.has_made);
		if (*out_is || !row.has_form[STEP_DELTA] || row.step == 0)
			return 0;
		expected--;
	}
	return got;
}

static int is_root(
	struct db *db, int64_t run, const struct step_row *row, bool *out_is, struct error *err)
{
	bool reached = false;
	struct db_statement *const scan = step_row_scan(db, run, row->step, true, err);
	const int result = scan == NULL ? -1 : is_reached(scan, row, &reached, err);
	db_reset(scan);
	*out_is = !reached;
	return result;
}

static int is_needed(struct db *db, int64_t run, const struct step_row *row, int64_t now_ms,
	bool *out_needed, struct error *err)
{
	*out_needed = row->wants_made != STEP_WANTS_NONE || row->made_until_ms > now_ms;
	if (!*out_needed && is_next_base(db, run, row, out_needed, err) != 0)
		return -1;
	return *out_needed ? 0 : is_root(db, run, row, out_needed, err);
}

static int anchor_drop_apply(struct change *base, struct db *db, struct error *err)
{
	const struct step_job *const job = ((const struct drop *)base)->job;
	struct step_row row;
	bool needed = true;
	const int found = step_row_find(db, job->run, job->step, &row, err);
	if (found != 1 || row.id != job->id || row.state != STEP_KEPT || !row.has_made)
		return found < 0 ? -1 : 0;
	if (is_needed(db, job->run, &row, clock_wall_ms(), &needed, err) != 0 || needed)
		return needed ? 0 : -1;
	if (step_anchor_keys_let_go(db, row.id, err) != 0)
		return -1;
	row.has_made = false;
	return step_anchor_row_set_made(db, &row, err);
}

static int anchor_drop_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct drop drop = {.change = {.apply = anchor_drop_apply}, .job = job};
	return committer_run(store_committer(work->store), &drop.change, err);
}

/* Few steps have a made anchor at any time. */
static int anchor_drop_find_next(
	struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct step_row row;
	bool needed = true;
	int found;
	out->id = after;
	while ((found = step_anchor_row_find_made(db, out->id, &out->run, &row, err)) == 1) {
		out->id = row.id;
		out->step = row.step;
		if (is_needed(db, out->run, &row, clock_wall_ms(), &needed, err) != 0)
			return -1;
		if (!needed)
			return 1;
	}
	return found;
}

const struct step_job_kind step_anchor_drop_job = {
	"anchor_drop", METRIC_WORK_STEP_ANCHOR_DROP, anchor_drop_find_next, anchor_drop_run};
