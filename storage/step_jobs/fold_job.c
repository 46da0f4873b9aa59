/* look for both ends --> encode into a scratch folder --> fold_store --> wake the readers that wait
 *
 * A failure that would come again refuses the fold for good. After any other one the fold stays
 * wanted, and the worker tries it again. */
#include "storage/step_jobs/fold_job.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/run.h"
#include "storage/step_jobs/fold_store.h"
#include "storage/step_jobs/step_delta.h"
#include "storage/step_jobs/step_proof.h"

enum { TOPIC_ARENA_BYTES = 4096 };

static void set_job(const struct fold_row *row, struct step_job *out)
{
	*out = (struct step_job){
		.run = row->run, .id = row->id, .step = row->to, .from = row->from};
}

static int fold_find_direct(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct fold_row row;
	const int found = fold_row_find_wanted(db, FOLD_DIRECT, after, &row, err);
	if (found == 1)
		set_job(&row, out);
	return found;
}

/* Jobs come in rising order of their ids, and the newest fold is to come first: ids count down. */
static int fold_find_skip(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct fold_row row;
	ASSERT(after >= 0);
	const int found = fold_row_find_wanted(db, FOLD_SKIP, INT64_MAX - after, &row, err);
	if (found != 1)
		return found;
	set_job(&row, out);
	out->id = INT64_MAX - row.id;
	return 1;
}

/* 1: both ends are there and may be read; 0: one is gone, or its proof failed; -1. */
static int check_ends(struct store *store, const struct fold_row *fold, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct step_row ends[2];
	const int from = step_row_find(db, fold->run, fold->from, &ends[0], err);
	const int to = from == 1 ? step_row_find(db, fold->run, fold->to, &ends[1], err) : from;
	store_reader_give(store, db);
	if (to != 1)
		return to;
	for (size_t i = 0; i < 2; i++)
		if (ends[i].state != STEP_KEPT || ends[i].verified == STEP_FAILED)
			return 0;
	return 1;
}

/* A fold that is being made. */
struct making {
	struct step_work *work;
	const struct fold_row *fold;
	struct step_source *base;
	struct step_source *next;
	struct scratch *scratch;
	char *folder; /* in `scratch`: the delta */
};

static int make_in_scratch(struct making *making, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(making->next);
	const size_t len = strlen(scratch_path(making->scratch)) + sizeof("/fold");
	ASSERT(making->folder == NULL);
	making->folder = memory_new(len);
	snprintf(making->folder, len, "%s/fold", scratch_path(making->scratch));
	const struct fold_store_params store = {.fold = making->fold->id,
		.bucket = chain->run.bucket,
		.run = chain->run_name,
		.folder = making->folder,
		.format = span_text(delta_format_name(DELTA_ULP_CLASS))};
	const struct step_delta_plan plan = {.base = making->base,
		.next = making->next,
		.scratch = making->scratch,
		.format = DELTA_ULP_CLASS,
		.out = making->folder};
	int result = step_delta_encode(making->work, &plan, err);
	if (result == 0)
		result = fold_store(making->work->store, &store, err);
	free(making->folder);
	return result;
}

static int make(struct step_work *work, const struct fold_row *fold, struct error *err)
{
	struct making making = {.work = work, .fold = fold};
	int result = -1;
	making.base = step_source_open(work->store, work, fold->run, fold->from, STEP_VIA_ANY, err);
	if (making.base != NULL)
		making.next =
			step_source_open(work->store, work, fold->run, fold->to, STEP_VIA_ANY, err);
	if (making.next != NULL)
		making.scratch = scratch_open(work->store, err);
	if (making.scratch != NULL)
		result = make_in_scratch(&making, err);
	scratch_close(making.scratch);
	step_source_close(making.next);
	step_source_close(making.base);
	return result;
}

/* Wakes the callers that wait for a fold of this run, so that they look again. */
static void wake_waiters_in(struct store *store, int64_t run, struct arena *arena)
{
	struct error ignored = {0};
	struct run_row row;
	struct span bucket;
	struct span name;
	struct db *const db = store_reader_take(store, &ignored);
	if (db == NULL)
		return; /* then they wait until their time ends */
	const bool found = run_row_find_id(db, run, arena, &row, &name, &ignored) == 1 &&
		bucket_row_name(db, row.bucket, arena, &bucket, &ignored) == 1;
	store_reader_give(store, db);
	if (found)
		step_watch_published(store_step_watch(store), bucket, run_folds_topic(name, arena));
}

static void wake_waiters(struct store *store, int64_t run)
{
	struct arena *const arena = arena_new(TOPIC_ARENA_BYTES);
	wake_waiters_in(store, run, arena);
	arena_free(arena);
}

/* Whether the job would fail again the next time. Other failures may pass: a full disk, a server
 * that stops. */
static bool is_final(const struct error *err)
{
	return err->kind == ERROR_NO_KEY || err->kind == ERROR_COLLECTED ||
		step_proof_is_verdict(err->kind);
}

static int find_fold(
	struct store *store, const struct step_job *job, struct fold_row *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = fold_row_find(db, job->run, job->from, job->step, out, err);
	store_reader_give(store, db);
	return found;
}

static void refuse(struct store *store, const struct fold_row *fold)
{
	struct error ignored = {0};
	(void)fold_refuse(store, fold->id, &ignored); /* if this fails, the job is found again */
	metrics_add(store_metrics(store), METRIC_FOLDS_REFUSED, 1);
}

static int fold_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct fold_row fold;
	const int found = find_fold(work->store, job, &fold, err);
	if (found != 1 || fold.state != FOLD_WANTED)
		return found < 0 ? -1 : 0;
	const int ends = check_ends(work->store, &fold, err);
	int result = ends == 1 ? make(work, &fold, err) : ends;
	if (ends == 0 || (result != 0 && is_final(err)))
		refuse(work->store, &fold);
	else if (result == 0)
		metrics_add(store_metrics(work->store), METRIC_FOLDS_MADE, 1);
	if (result != 0 && err->kind == ERROR_PRECONDITION) /* its steps went meanwhile */
		result = 0;
	wake_waiters(work->store, fold.run);
	return result;
}

/* A caller waits for a direct fold: the worker's rate does not count, its stop does. */
struct unpaced_work {
	struct step_work work; /* first */
	struct step_work *paced;
};

static bool fold_spend_unpaced(struct step_work *work, uint64_t bytes)
{
	(void)bytes;
	struct step_work *const paced = ((struct unpaced_work *)work)->paced;
	return paced->spend(paced, 0);
}

static int fold_run_direct(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct unpaced_work unpaced = {.work = *work, .paced = work};
	unpaced.work.spend = fold_spend_unpaced;
	return fold_run(&unpaced.work, job, err);
}

const struct step_job_kind fold_direct_job = {
	"fold", METRIC_WORK_FOLD, fold_find_direct, fold_run_direct};
const struct step_job_kind fold_skip_job = {
	"skip fold", METRIC_WORK_FOLD, fold_find_skip, fold_run};
