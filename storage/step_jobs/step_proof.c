/* find an unproven step --> decode its forms and compare their digests (step_proof_digests.c)
 *      --> one change: the verdict, its reason, an event for the webhook, the next wanted anchor
 *
 * A failure that says nothing about the step leaves it unproven, and the worker tries it again. */
#include "storage/step_jobs/step_proof.h"

#include <stddef.h>

#include "storage/core/committer.h"
#include "storage/core/run_feed.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "storage/run_tables/run_label.h"
#include "storage/runs/step_anchor_base.h"
#include "storage/runs/webhook.h"

enum { NAME_ARENA_BYTES = 4096 };

struct verdict {
	struct change change; /* first */
	struct store *store;
	const struct step_job *job;
	enum step_verified verified;
	struct span reason;
};

static int proof_run(struct step_work *work, const struct step_job *job, struct error *err);
static int proof_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err);

const struct step_job_kind step_proof_job = {
	"proof", METRIC_WORK_STEP_PROOF, proof_find_next, proof_run};

bool step_proof_is_verdict(enum error_kind kind)
{
	static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_CORRUPT, ERROR_UNSUPPORTED,
		ERROR_TOO_LARGE, ERROR_RANGE, ERROR_NOT_FOUND, ERROR_SCHEMA_MISMATCH,
		ERROR_INCOMPLETE_ANCHOR, ERROR_DIGEST_MISMATCH, ERROR_WRONG_BASE, ERROR_NOT_READY,
		ERROR_STEP_FAILED};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kind == kinds[i])
			return true;
	return false;
}

static int prove_form(struct step_work *work, const struct step_job *job, enum step_source_via via,
	struct error *err)
{
	struct step_digests digests = {.tensors = NULL};
	struct step_source *const source =
		step_source_open(work->store, work, job->run, job->step, via, err);
	int result = source == NULL
		? -1
		: step_digests_find(step_source_tensors(source), step_source_files(source),
			  work->threads, &digests, err);
	if (result == 0) {
		metrics_add(store_metrics(work->store), METRIC_STEP_BYTES_PROVEN,
			(int64_t)schema_bytes(step_source_chain(source)->schema));
		result = step_digests_check(source, &digests, err);
	}
	step_digests_release(&digests);
	step_source_close(source);
	return result != 0 ? error_wrap(err, via == STEP_VIA_ANCHOR ? "its anchor" : "its delta")
			   : 0;
}

/* Whether the delta is to be proven. Nobody has what a failed step claims to be, so a delta upon it
 * cannot be tried; neither can one upon a step that is gone. A step with an anchor of its own is
 * good without it. */
static int delta_counts(struct step_work *work, const struct step_job *job,
	const struct step_row *row, bool *out_counts, struct error *err)
{
	struct step_row base;
	*out_counts = row->has_form[STEP_DELTA];
	if (!row->has_form[STEP_ANCHOR] || !row->has_form[STEP_DELTA] || row->step == 0)
		return 0;
	struct db *const db = store_reader_take(work->store, err);
	if (db == NULL)
		return -1;
	const int found = step_row_find(db, job->run, row->step - 1, &base, err);
	store_reader_give(work->store, db);
	*out_counts = found == 1 && base.state == STEP_KEPT && base.verified != STEP_FAILED;
	return found < 0 ? -1 : 0;
}

static int prove(struct step_work *work, const struct step_job *job, const struct step_row *row,
	struct error *err)
{
	bool counts;
	ASSERT(row->verified == STEP_UNPROVEN && row->state == STEP_KEPT);
	if (delta_counts(work, job, row, &counts, err) != 0)
		return -1;
	if (row->has_form[STEP_ANCHOR] && prove_form(work, job, STEP_VIA_ANCHOR, err) != 0)
		return -1;
	if (!counts || prove_form(work, job, STEP_VIA_DELTA, err) == 0)
		return 0;
	/* the step before may have gone while its delta was read */
	struct error ignored = {0};
	return delta_counts(work, job, row, &counts, &ignored) == 0 && !counts ? 0 : -1;
}

/* 1: the step is still there and unproven; 0; -1. */
static int find_unproven(
	struct db *db, const struct step_job *job, struct step_row *out, struct error *err)
{
	const int found = step_row_find(db, job->run, job->step, out, err);
	return found == 1 &&
			(out->id != job->id || out->state != STEP_KEPT ||
				out->verified != STEP_UNPROVEN)
		? 0
		: found;
}

static int note_failure(
	const struct verdict *verdict, struct db *db, const struct step_row *row, struct error *err)
{
	struct arena *const arena = arena_new(NAME_ARENA_BYTES);
	struct run_row run;
	struct span name;
	const struct webhook_facts facts = {.kind = WEBHOOK_STEP_FAILED,
		.step = row->step,
		.digest = row->digest,
		.reason = verdict->reason};
	int found = run_row_find_id(db, verdict->job->run, arena, &run, &name, err);
	if (found == 1)
		found = webhook_note(verdict->store, db, &run, name, &facts, err);
	arena_free(arena);
	return found;
}

static int proof_apply(struct change *base, struct db *db, struct error *err)
{
	const struct verdict *const verdict = (const struct verdict *)base;
	struct step_row row;
	ASSERT(verdict->verified == STEP_PROVEN || verdict->reason.len > 0);
	const int found = find_unproven(db, verdict->job, &row, err);
	if (found != 1)
		return found;
	if (step_row_set_verified(db, row.id, verdict->verified, verdict->reason, err) != 0)
		return -1;
	run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), verdict->job->run);
	if (verdict->verified == STEP_FAILED && note_failure(verdict, db, &row, err) != 0)
		return -1;
	return step_anchor_want_after(db, verdict->job->run, row.step, err);
}

static void log_verdict(struct store *store, const struct verdict *verdict)
{
	struct log *const log = store_log(store);
	const bool failed = verdict->verified == STEP_FAILED;
	metrics_add(store_metrics(store), failed ? METRIC_STEPS_FAILED : METRIC_STEPS_PROVEN, 1);
	if (!failed || log == NULL)
		return;
	char run[RUN_LABEL_BYTES];
	run_label_format(store, verdict->job->run, run);
	const struct log_field fields[] = {log_text("run", run),
		log_number("step", (int64_t)verdict->job->step),
		log_span("reason", verdict->reason)};
	log_event(
		log, LOG_WARNING, NULL, "step_failed", fields, sizeof(fields) / sizeof(fields[0]));
}

static int settle(struct step_work *work, const struct step_job *job, const struct error *failure,
	struct error *err)
{
	struct verdict verdict = {.change = {.apply = proof_apply},
		.store = work->store,
		.job = job,
		.verified = STEP_PROVEN};
	if (failure != NULL) {
		verdict.verified = STEP_FAILED;
		verdict.reason = span_text(failure->text);
	}
	if (committer_run(store_committer(work->store), &verdict.change, err) != 0)
		return -1;
	log_verdict(work->store, &verdict);
	return 0;
}

static int read_unproven(
	struct step_work *work, const struct step_job *job, struct step_row *out, struct error *err)
{
	struct db *const db = store_reader_take(work->store, err);
	if (db == NULL)
		return -1;
	const int found = find_unproven(db, job, out, err);
	store_reader_give(work->store, db);
	return found;
}

static int proof_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct step_row row;
	struct error failure = {0};
	const int found = read_unproven(work, job, &row, err);
	if (found != 1)
		return found;
	if (prove(work, job, &row, &failure) == 0)
		return settle(work, job, NULL, err);
	scratch_hide_paths(work->store, &failure); /* clients see the reason */
	if (step_proof_is_verdict(failure.kind))
		return settle(work, job, &failure, err);
	*err = failure;
	return read_unproven(work, job, &row, &failure) == 0 ? 0
							     : -1; /* removed while it was read */
}

static int proof_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct step_row row;
	const int found = step_row_find_unproven(db, after, &out->run, &row, err);
	out->id = row.id;
	out->step = row.step;
	return found;
}
