/* find a wanted view, and whether there is a base --> view_make
 *      --> one change: versions shown under their keys and named in the step, the row settled
 *
 * A failure that would come again settles the view as failed. After any other one it stays wanted,
 * and the worker tries it again. */
#include "storage/step_jobs/view_job.h"

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/run_label.h"
#include "storage/runs/step_pin.h"
#include "storage/step_jobs/step_proof.h"
#include "storage/step_jobs/view_make.h"
#include "storage/versions/scratch_row.h"
#include "storage/versions/version_share.h"

enum { NAMING_ARENA_BYTES = 16 * 1024 * 1024 };

static const enum step_pin_form pin_forms[VIEW_KINDS] = {
	[VIEW_TRL] = STEP_PIN_VIEW_TRL, [VIEW_SLIME] = STEP_PIN_VIEW_SLIME};

struct settling {
	struct change change; /* first */
	struct store *store;
	const struct view_wanted *wanted;
	const struct view_made *made; /* NULL: the view failed */
	const struct error *failure;  /* when `made` is NULL: why */
};

static int view_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err);
static int view_run(struct step_work *work, const struct step_job *job, struct error *err);
static int find_base(struct store *store, const struct view_wanted *wanted, bool *out_base_kept,
	struct error *err);
static int find_wanted(
	struct db *db, const struct view_wanted *wanted, struct step_row *out, struct error *err);
static int make(struct step_work *work, const struct view_wanted *wanted, bool base_kept,
	struct error *err);
static int view_apply(struct change *base, struct db *db, struct error *err);
static int name_stored(
	const struct settling *settling, struct db *db, struct arena *arena, struct error *err);
static int name_version(const struct settling *settling, struct db *db,
	const struct version *version, struct error *err);
static int name_copies(
	const struct settling *settling, struct db *db, struct arena *arena, struct error *err);
static int fail(struct store *store, const struct view_wanted *wanted, const struct error *failure,
	struct error *err);

const struct step_job_kind view_job = {"view", METRIC_WORK_VIEW, view_find_next, view_run};

struct step_job view_job_of(const struct view_wanted *wanted)
{
	ASSERT(wanted->kind < VIEW_KINDS);
	return (struct step_job){.kind = &view_job,
		.run = wanted->run,
		.id = wanted->step * VIEW_KINDS + wanted->kind,
		.step = wanted->number};
}

static int view_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	struct view_wanted wanted;
	const int found = view_row_find_wanted(
		db, after / VIEW_KINDS, (int)(after % VIEW_KINDS), &wanted, err);
	if (found == 1)
		*out = view_job_of(&wanted);
	return found;
}

static int view_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	const struct view_wanted wanted = {.step = job->id / VIEW_KINDS,
		.kind = (enum view_kind)(job->id % VIEW_KINDS),
		.run = job->run,
		.number = job->step};
	struct error failure = {0};
	bool base_kept;
	const int found = find_base(work->store, &wanted, &base_kept, err);
	if (found != 1 || make(work, &wanted, base_kept, &failure) == 0 ||
		failure.kind == ERROR_PRECONDITION)
		return found < 0 ? -1 : 0;
	if (failure.kind == ERROR_NO_KEY || step_proof_is_verdict(failure.kind))
		return fail(work->store, &wanted, &failure, err);
	*err = failure;
	return -1;
}

static int find_base(struct store *store, const struct view_wanted *wanted, bool *out_base_kept,
	struct error *err)
{
	struct step_row row;
	struct step_row base;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = find_wanted(db, wanted, &row, err);
	*out_base_kept = false;
	if (found == 1 && wanted->number > 0) {
		const int has_base = step_row_find(db, wanted->run, wanted->number - 1, &base, err);
		*out_base_kept =
			has_base == 1 && base.state == STEP_KEPT && base.verified != STEP_FAILED;
		found = has_base < 0 ? -1 : 1;
	}
	store_reader_give(store, db);
	return found;
}

/* 1: the view is still wanted, of a step that is still there; 0; -1. */
static int find_wanted(
	struct db *db, const struct view_wanted *wanted, struct step_row *out, struct error *err)
{
	enum view_state state = VIEW_MADE;
	const int known = view_row_find(db, wanted->step, wanted->kind, &state, err);
	if (known != 1 || state != VIEW_WANTED)
		return known < 0 ? -1 : 0;
	const int found = step_row_find(db, wanted->run, wanted->number, out, err);
	return found == 1 &&
			(out->id != wanted->step || out->state != STEP_KEPT ||
				out->verified == STEP_FAILED)
		? 0
		: found;
}

static int make(
	struct step_work *work, const struct view_wanted *wanted, bool base_kept, struct error *err)
{
	struct view_made made;
	int result = view_make(work, wanted, base_kept, &made, err);
	if (result == 0) {
		struct settling settling = {.change = {.apply = view_apply},
			.store = work->store,
			.wanted = wanted,
			.made = &made};
		result = committer_run(store_committer(work->store), &settling.change, err);
	}
	view_made_release(&made, work->store, result == 0);
	return result;
}

static int view_apply(struct change *base, struct db *db, struct error *err)
{
	const struct settling *const settling = (const struct settling *)base;
	const struct view_wanted *const wanted = settling->wanted;
	ASSERT(settling->made != NULL || settling->failure != NULL);
	struct step_row row;
	const int found = find_wanted(db, wanted, &row, err);
	if (found != 1)
		return found < 0
			? -1
			: error_set(err, ERROR_PRECONDITION, "The view is not wanted any more.");
	if (settling->made == NULL)
		return view_row_settle(db, wanted->step, wanted->kind, VIEW_FAILED,
			span_text(settling->failure->text), err);
	struct arena *const arena = arena_new(NAMING_ARENA_BYTES);
	int result = name_stored(settling, db, arena, err);
	if (result == 0)
		result = name_copies(settling, db, arena, err);
	arena_free(arena);
	return result != 0
		? -1
		: view_row_settle(db, wanted->step, wanted->kind, VIEW_MADE, (struct span){0}, err);
}

static int name_stored(
	const struct settling *settling, struct db *db, struct arena *arena, struct error *err)
{
	const struct stored_folder *const stored = &settling->made->stored;
	for (size_t i = 0; i < stored->count; i++) {
		struct version version;
		if (version_need_sequence(db, stored->files[i].version, arena, &version, err) !=
				0 ||
			name_version(settling, db, &version, err) != 0)
			return -1;
		if (scratch_row_release(db, version.sequence, err) != 0)
			return -1;
	}
	return 0;
}

/* Shows the version under its key, unless an object is there. The step names it in any case. */
static int name_version(const struct settling *settling, struct db *db,
	const struct version *version, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(settling->made->step);
	const struct span name =
		span_slice(version->key, chain->run_name.len + 1, version->key.len);
	struct version current;
	const int found =
		version_find_current(db, version->bucket, version->key, NULL, &current, err);
	if (found < 0 ||
		step_pin_add(db, settling->wanted->step, pin_forms[settling->wanted->kind], name,
			version->sequence, err) != 0)
		return -1;
	return found == 1 ? 0 : version_show(db, version->sequence, err);
}

static int name_copies(
	const struct settling *settling, struct db *db, struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < settling->made->copy_count; i++) {
		const struct view_copy *const copy = &settling->made->copies[i];
		struct version source;
		struct version version;
		const int found = version_find_sequence(db, copy->version, arena, &source, err);
		if (found == 0)
			return error_set(
				err, ERROR_NO_KEY, "The step was removed while its view was made.");
		const struct version_share share = {.source = &source,
			.bucket = source.bucket,
			.key = copy->key,
			.modified_ms = store_now_ms(settling->store)};
		if (found < 0 || version_share(db, &share, arena, &version, err) != 0 ||
			name_version(settling, db, &version, err) != 0)
			return -1;
	}
	return 0;
}

static int fail(struct store *store, const struct view_wanted *wanted, const struct error *failure,
	struct error *err)
{
	struct settling settling = {.change = {.apply = view_apply},
		.store = store,
		.wanted = wanted,
		.failure = failure};
	struct log *const log = store_log(store);
	ASSERT(failure->kind != ERROR_NONE);
	if (committer_run(store_committer(store), &settling.change, err) != 0)
		return err->kind == ERROR_PRECONDITION ? 0 : -1;
	if (log != NULL) {
		char run[RUN_LABEL_BYTES];
		run_label_format(store, wanted->run, run);
		const struct log_field fields[] = {log_text("run", run),
			log_number("step", (int64_t)wanted->number),
			log_span("reason", span_text(failure->text))};
		log_event(log, LOG_WARNING, NULL, "view_failed", fields,
			sizeof(fields) / sizeof(fields[0]));
	}
	return 0;
}
