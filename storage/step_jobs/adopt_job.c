/* Foreign publishes become steps in the order in which they were noted. A pointer stands for all
 * versions up to the one that it names: following it notes those that lie there and are not steps
 * yet, and removes the pointer's own note. A verdict (adopt_step_is_verdict) settles a publish as
 * failed; after any other failure it keeps waiting. */
#include "storage/step_jobs/adopt_job.h"

#include <string.h>

#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/core/run_feed.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "storage/run_tables/run_label.h"
#include "storage/run_tables/run_settings.h"
#include "storage/step_jobs/adopt_objects.h"
#include "storage/step_jobs/adopt_step.h"
#include "storage/versions/version.h"

enum { JOB_ARENA_BYTES = 4 * 1024 * 1024, POINTER_MAX_BYTES = 4096, POINTER_VERSIONS_MAX = 256 };

struct pointer {
	const struct adoption *adoption;
	struct adopt_place place;
	struct span root;   /* the key before "latest" */
	struct span run_id; /* the run id that it contains */
};

struct adopt_change {
	struct change change; /* first */
	struct store *store;
	const struct adoption *adoption;
	const struct error *failure; /* NULL: it is a pointer, which was followed */
	struct adoption *versions;   /* that the pointer stands for */
	size_t version_count;
};

static int adopt_apply(struct change *base, struct db *db, struct error *err)
{
	const struct adopt_change *const settle = (const struct adopt_change *)base;
	ASSERT(settle->failure != NULL || settle->versions != NULL);
	if (settle->failure != NULL) {
		run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), settle->adoption->run);
		return adopt_row_set_failed(
			db, settle->adoption->id, span_text(settle->failure->text), err);
	}
	for (size_t i = settle->version_count; i-- > 0;)
		if (adopt_row_note(db, &settle->versions[i], store_now_ms(settle->store), err) != 0)
			return -1;
	return adopt_row_remove(db, settle->adoption->id, err);
}

static int fail(struct store *store, const struct adoption *adoption, const struct error *failure,
	struct error *err)
{
	struct adopt_change settle = {.change = {.apply = adopt_apply},
		.store = store,
		.adoption = adoption,
		.failure = failure};
	struct log *const log = store_log(store);
	ASSERT(failure->kind != ERROR_NONE);
	if (committer_run(store_committer(store), &settle.change, err) != 0)
		return -1;
	if (log != NULL) {
		char run[RUN_LABEL_BYTES];
		run_label_format(store, adoption->run, run);
		const struct log_field fields[] = {log_text("run", run),
			log_span("identity", adoption->identity),
			log_span("reason", span_text(failure->text))};
		log_event(log, LOG_WARNING, NULL, "adoption_failed", fields,
			sizeof(fields) / sizeof(fields[0]));
	}
	return 0;
}

/* 1: a full checkpoint lies in the folder; 0; -1. */
static int has_checkpoint(
	struct db *db, int64_t bucket, struct span folder, struct arena *arena, struct error *err)
{
	static const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
	int found = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && found == 0; i++) {
		struct version version;
		const char *const key = arena_format(
			arena, "%.*s%s", (int)folder.len, (const char *)folder.data, names[i]);
		found = key == NULL
			? 0
			: version_find_current(db, bucket, span_text(key), NULL, &version, err);
		found = found == 1 && version.is_marker ? 0 : found;
	}
	return found;
}

/* One version that the pointer has passed. 1: it lies there, and is new or has failed before; 0;
 * -1. */
static int look_at_version(struct db *db, const struct pointer *pointer, uint64_t number,
	struct adoption *out, struct error *err)
{
	struct adoption known;
	const char *const identity =
		arena_format(pointer->place.arena, "%.*s/weight_v%06llu", (int)pointer->run_id.len,
			(const char *)pointer->run_id.data, (unsigned long long)number);
	const char *const folder = arena_format(pointer->place.arena, "%.*supdates/weight_v%06llu/",
		(int)pointer->root.len, (const char *)pointer->root.data,
		(unsigned long long)number);
	if (identity == NULL || folder == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	*out = (struct adoption){.run = pointer->adoption->run,
		.convention = ADOPT_STITCH,
		.identity = span_text(identity),
		.objects = span_text(folder)};
	const int found = adopt_row_find_identity(
		db, out->run, out->identity, pointer->place.arena, &known, err);
	if (found != 0 && (found < 0 || known.state != ADOPTION_FAILED))
		return found < 0 ? -1 : 0;
	return has_checkpoint(
		db, pointer->place.bucket.id, out->objects, pointer->place.arena, err);
}

/* Goes backwards from the version that the pointer names; adopt_apply notes them in rising
 * order. */
static int list_versions(const struct pointer *pointer, uint64_t last, struct adopt_change *settle,
	struct error *err)
{
	struct store *const store = pointer->place.store;
	struct db *const db = store_reader_take(store, err);
	int found = db == NULL ? -1 : 1;
	settle->versions = arena_take_array(
		pointer->place.arena, POINTER_VERSIONS_MAX, sizeof(*settle->versions));
	if (settle->versions == NULL)
		found = error_set(
			err, ERROR_NO_MEMORY, "The memory for a foreign publish ran out.");
	for (uint64_t back = 0; found == 1 && back < POINTER_VERSIONS_MAX && back <= last; back++) {
		found = look_at_version(
			db, pointer, last - back, &settle->versions[settle->version_count], err);
		settle->version_count += found == 1;
	}
	store_reader_give(store, db);
	return found < 0 ? -1 : 0;
}

/* Follows what the pointer says now. One that is malformed is a verdict (invalid). */
static int follow_pointer(struct store *store, const struct adoption *adoption, struct arena *arena,
	struct error *err)
{
	struct adopt_change settle = {
		.change = {.apply = adopt_apply}, .store = store, .adoption = adoption};
	struct pointer pointer = {.adoption = adoption,
		.place = {.store = store, .arena = arena},
		.root = span_slice(adoption->objects, 0, adoption->objects.len - strlen("latest"))};
	struct span content;
	uint64_t last;
	struct db *const db = store_reader_take(store, err);
	int result = db == NULL
		? -1
		: adopt_row_find_bucket(db, adoption->run, arena, &pointer.place.bucket, err);
	store_reader_give(store, db);
	if (result != 0 ||
		adopt_objects_read(
			&pointer.place, adoption->objects, POINTER_MAX_BYTES, &content, err) != 0)
		return -1;
	if (!adopt_layout_pointer(content, &pointer.run_id, &last))
		return error_set(err, ERROR_INVALID,
			"The pointer '%.*s' does not hold '{run id}/weight_v%%06d'.",
			(int)adoption->objects.len, (const char *)adoption->objects.data);
	if (list_versions(&pointer, last, &settle, err) != 0)
		return -1;
	return committer_run(store_committer(store), &settle.change, err);
}

static int find(struct store *store, int64_t id, struct arena *arena, struct adoption *out,
	struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = adopt_row_find(db, id, arena, out, err);
	store_reader_give(store, db);
	return found;
}

static int adopt_run(struct step_work *work, const struct step_job *job, struct error *err)
{
	struct arena *const arena = arena_new(JOB_ARENA_BYTES);
	struct adoption adoption;
	struct error failure = {0};
	int result = find(work->store, job->id, arena, &adoption, err);
	if (result == 1 && adoption.state == ADOPTION_WAITS) {
		const bool is_pointer = adoption.convention == ADOPT_STITCH &&
			!span_ends_text(adoption.objects, "/");
		result = is_pointer ? follow_pointer(work->store, &adoption, arena, &failure)
				    : adopt_step(work, &adoption, &failure);
		scratch_hide_paths(work->store, &failure);
		if (result != 0 && adopt_step_is_verdict(failure.kind))
			result = fail(work->store, &adoption, &failure, err);
		else if (result != 0)
			*err = failure;
	}
	arena_free(arena);
	return result < 0 ? -1 : 0;
}

static int adopt_find_next(struct db *db, int64_t after, struct step_job *out, struct error *err)
{
	return adopt_row_find_waiting(db, after, &out->id, &out->run, err);
}

const struct step_job_kind adopt_job = {
	"adopt", METRIC_WORK_STEP_ADOPT, adopt_find_next, adopt_run};
