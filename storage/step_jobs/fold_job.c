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

static int find_direct(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct fold_row row;
	const int found = fold_row_find_wanted(db, FOLD_DIRECT, after, &row, err);
	if (found == 1)
		set_job(&row, out);
	return found;
}

/* Jobs come in rising order of their ids: so these count from the other end. */
static int find_skip(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct fold_row row;
	const int found = fold_row_find_wanted(db, FOLD_SKIP, INT64_MAX - after, &row, err);
	if (found != 1)
		return found;
	set_job(&row, out);
	out->id = INT64_MAX - row.id;
	return 1;
}

/* 1: both ends are there and may be read; 0: one is gone, or its proof failed. */
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

/* A fold on its way. */
struct making {
	struct step_work *work;
	const struct fold_row *fold;
	struct step_source *base;
	struct step_source *next;
	struct scratch *scratch;
	char *folder; /* in it: what is made */
};

static int make_in_scratch(struct making *making, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(making->next);
	const size_t len = strlen(scratch_path(making->scratch)) + sizeof("/fold");
	making->folder = memory_new(len);
	snprintf(making->folder, len, "%s/fold", scratch_path(making->scratch));
	const struct fold_store_params store = {.fold = making->fold->id,
		.bucket = chain->run.bucket,
		.run = chain->run_name,
		.folder = making->folder,
		.format = span_text(delta_format_name(DELTA_ULP_CLASS))};
	int result = step_delta_encode(making->work, making->base, making->next, making->scratch,
		DELTA_ULP_CLASS, making->folder, err);
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

/* Who waits for a fold of this run looks again. */
static void tell(struct store *store, int64_t run, struct arena *arena)
{
	struct error ignored = {0};
	struct run_row row;
	struct span bucket;
	struct span name;
	struct db *const db = store_reader_take(store, &ignored);
	if (db == NULL)
		return; /* then they wait their time */
	const bool found = run_row_find_id(db, run, arena, &row, &name, &ignored) == 1 &&
		bucket_row_name(db, row.bucket, arena, &bucket, &ignored) == 1;
	store_reader_give(store, db);
	if (found)
		step_watch_published(store_step_watch(store), bucket, run_folds_topic(name, arena));
}

static void tell_waiters(struct store *store, int64_t run)
{
	struct arena *const arena = arena_new(TOPIC_ARENA_BYTES);
	tell(store, run, arena);
	arena_free(arena);
}

/* What would fail again the next time; the rest may pass: a disk that is full, a server that
 * stops. */
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
	(void)fold_refuse(store, fold->id, &ignored); /* found again when that failed */
	metrics_add(store_metrics(store), METRIC_FOLDS_REFUSED, 1);
}

static int run(struct step_work *work, const struct step_job *job, struct error *err)
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
	tell_waiters(work->store, fold.run);
	return result;
}

/* Somebody waits: the worker's rate does not count, its stop does. */
struct hurry {
	struct step_work work; /* first */
	struct step_work *whole;
};

static bool spend_freely(struct step_work *work, uint64_t bytes)
{
	(void)bytes;
	struct step_work *const whole = ((struct hurry *)work)->whole;
	return whole->spend(whole, 0);
}

static int run_direct(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct hurry hurry = {.work = *work, .whole = work};
	hurry.work.spend = spend_freely;
	return run(&hurry.work, job, err);
}

const struct step_job_kind fold_direct_job = {"fold", find_direct, run_direct};
const struct step_job_kind fold_skip_job = {"skip fold", find_skip, run};
