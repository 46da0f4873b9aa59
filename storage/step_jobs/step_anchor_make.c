/* find what is wanted, upon which base --> build (step_anchor_build.h)
 *      --> one change: derived versions, their names in the step
 *
 * A step that nobody has proven yet is proven first. Without a base, or where retention wants the
 * step to stand alone, its anchor is stored plainly. */
#include "storage/step_jobs/step_anchor.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/step_anchor_row.h"
#include "storage/runs/step_anchor_keys.h"
#include "storage/runs/step_pin.h"
#include "storage/step_jobs/step_anchor_build.h"
#include "storage/step_jobs/step_proof.h"
#include "storage/versions/scratch_row.h"
#include "storage/versions/version.h"

/* How long a made anchor stays at least, in ms: one that its step wanted, one that was
 * requested. */
enum { GRACE_MS = 60 * 1000, ASKED_MS = 15 * 60 * 1000 };

struct naming {
	struct change change; /* first */
	const struct step_job *job;
	const struct step_anchor_build *build;
	unsigned depth;
	int64_t now_ms;
	int64_t until_ms;
};

/* 1: the step is still there, has not failed, and lacks the anchor that is wanted; 0; -1. */
static int find_lacking(
	struct db *db, const struct step_job *job, struct step_row *out, struct error *err)
{
	const int found = step_row_find(db, job->run, job->step, out, err);
	if (found != 1 || out->id != job->id || out->state != STEP_KEPT ||
		out->has_form[STEP_ANCHOR])
		return found < 0 ? -1 : 0;
	if (out->has_made && (out->wants_made != STEP_WANTS_STORED || out->made_depth == 0))
		return 0;
	if (out->verified == STEP_FAILED)
		return error_set(err, ERROR_STEP_FAILED,
			"The proof of step %llu failed: no anchor is made of it.",
			(unsigned long long)job->step);
	return 1;
}

/* Adds one file. Its key shows it while the step wants the anchor. */
static int add_file(const struct naming *naming, struct db *db, const struct step_row *row,
	const struct step_anchor_file *file, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(naming->build->next);
	char key[STEP_ANCHOR_KEY_BYTES];
	struct derived_add add = {.bucket = chain->run.bucket,
		.recipe = file->recipe,
		.digest = file->digest,
		.modified_ms = naming->now_ms};
	int64_t made = file->version;
	bool shows = false;
	ASSERT((made == 0) == (file->recipe != NULL));
	add.key = span_of(key, step_anchor_key(chain->run_name, row->step, file->path, key));
	if (row->wants_made != STEP_WANTS_NONE &&
		step_anchor_keys_free(db, add.bucket, add.key, &shows, err) != 0)
		return -1;
	add.is_hidden = !shows;
	if (made == 0)
		return derived_add(db, &add, &made, err) != 0
			? -1
			: step_pin_add(db, row->id, STEP_PIN_MADE, file->path, made, err);
	if (step_pin_add(db, row->id, STEP_PIN_MADE, file->path, made, err) != 0 ||
		scratch_row_release(db, made, err) != 0)
		return -1;
	return shows ? version_show(db, made, err) : 0;
}

/* Hides the keys of older made anchors. Those can still be read until they are dropped. */
static int unlist_older(struct db *db, const struct step_job *job, struct error *err)
{
	struct db_statement *const scan = step_anchor_row_scan_made(db, job->run, job->step, err);
	struct step_row row;
	int got = -1;
	while (scan != NULL && (got = db_step(scan, err)) == 1) {
		step_row_read(scan, &row);
		if (row.wants_made == STEP_WANTS_NONE &&
			step_anchor_keys_hide(db, row.id, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(scan);
	return got < 0 ? -1 : 0;
}

static int anchor_apply(struct change *base, struct db *db, struct error *err)
{
	const struct naming *const naming = (const struct naming *)base;
	struct step_row row;
	const int found = find_lacking(db, naming->job, &row, err);
	if (found != 1 || (row.has_made && step_anchor_keys_let_go(db, row.id, err) != 0))
		return found == 1 ? -1 : found;
	for (size_t i = 0; i < naming->build->count; i++)
		if (add_file(naming, db, &row, &naming->build->files[i], err) != 0)
			return -1;
	if (row.wants_made != STEP_WANTS_NONE && unlist_older(db, naming->job, err) != 0)
		return -1;
	row.has_made = true;
	row.made_depth = naming->depth;
	row.made_bytes = naming->build->bytes;
	row.made_until_ms = naming->until_ms;
	return step_anchor_row_set_made(db, &row, err);
}

/* Without a base the anchor can only be stored plainly. */
static int make(struct step_work *work, const struct step_job *job, const struct step_row *row,
	bool has_base, const struct step_anchor_base *base, struct error *err)
{
	const bool is_plain = !has_base || row->wants_made == STEP_WANTS_STORED;
	struct step_anchor_build build;
	ASSERT(is_plain || base->row.step < job->step);
	int result = is_plain ? step_anchor_build_plain(work, job->run, job->step, &build, err)
			      : step_anchor_build(work, job->run, job->step, base, &build, err);
	if (result == 0) {
		struct naming naming = {.change = {.apply = anchor_apply},
			.job = job,
			.build = &build,
			.depth = is_plain ? 0 : base->depth + 1,
			.now_ms = store_now_ms(work->store),
			.until_ms = clock_wall_ms() +
				(row->wants_made != STEP_WANTS_NONE ? GRACE_MS : ASKED_MS)};
		result = committer_run(store_committer(work->store), &naming.change, err);
	}
	step_anchor_build_close(&build);
	metrics_add(store_metrics(work->store), METRIC_STEP_ANCHORS_MADE, result == 0 ? 1 : 0);
	return result;
}

static int find_work(struct step_work *work, const struct step_job *job, struct step_row *out_row,
	bool *out_has_base, struct step_anchor_base *out_base, struct error *err)
{
	struct db *const db = store_reader_take(work->store, err);
	if (db == NULL)
		return -1;
	int found = find_lacking(db, job, out_row, err);
	const int based =
		found == 1 ? step_anchor_base_find(db, job->run, job->step, out_base, err) : 0;
	*out_has_base = based == 1;
	if (based < 0)
		found = -1;
	store_reader_give(work->store, db);
	return found;
}

static int anchor_give_up_apply(struct change *base, struct db *db, struct error *err)
{
	const struct naming *const naming = (const struct naming *)base;
	struct step_row row;
	const int found = find_lacking(db, naming->job, &row, err);
	return found == 1 ? step_anchor_row_want(db, row.id, STEP_WANTS_NONE, err) : found;
}

/* Stops wanting the anchor of a step that nobody proves. It may be that no anchor can ever be made
 * of such a step, so it is tried only once. */
static void give_up(struct step_work *work, const struct step_job *job)
{
	struct naming naming = {.change = {.apply = anchor_give_up_apply}, .job = job};
	struct error ignored = {0};
	(void)committer_run(store_committer(work->store), &naming.change, &ignored);
}

/* A step that is requested before its turn is proven first. */
static int anchor_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct step_row row;
	struct step_anchor_base base;
	bool has_base;
	int found = find_work(work, job, &row, &has_base, &base, err);
	if (found == 1 && row.verified == STEP_UNPROVEN) {
		if (step_proof_job.run(work, job, err) != 0)
			return -1;
		found = find_work(work, job, &row, &has_base, &base, err);
	}
	if (found != 1 || make(work, job, &row, has_base, &base, err) == 0)
		return found < 0 ? -1 : 0;
	if (row.verified == STEP_UNCHECKED && step_proof_is_verdict(err->kind))
		give_up(work, job);
	return -1;
}

static int anchor_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct step_row row;
	const int found = step_anchor_row_find_wanted(db, after, &out->run, &row, err);
	out->id = row.id;
	out->step = row.step;
	return found;
}

const struct step_job_kind step_anchor_job = {
	"anchor", METRIC_WORK_STEP_ANCHOR, anchor_find_next, anchor_run};
