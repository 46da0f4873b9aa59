/* start --helper: judge--> change queued: apply (judged state still true? conditions, version row) --COMMIT--> done
 *              ^                    |
 *              +-- a part came meanwhile
 * A list whose upload is completed already is answered from what the upload remembers, if it is the
 * same list. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread/helpers.h"
#include "storage/core/store.h"
#include "storage/run_tables/server_key.h"
#include "storage/uploads/upload_internal.h"
#include "storage/uploads/upload_judge.h"
#include "storage/versions/derive_waiting.h"
#include "storage/versions/header_blob.h"

enum { JUDGED_MOST = 16, RESULT_MAX_BYTES = 1024 };

struct upload_complete {
	struct upload_call call; /* first */
	struct helper_job job;
	struct helper_lane lane;
	struct upload_complete_params params; /* with copied texts */
	struct upload_row upload;             /* as judged */
	struct upload_verdict verdict;
	unsigned judged; /* how often */
	bool completes_publish;
	bool is_stale; /* the change found other parts than were judged */
	struct upload_result result;
};

static void judge_run(struct helper_job *job);

static void submit_job(struct upload_complete *complete)
{
	complete->job.run = judge_run;
	helpers_submit(store_helpers(complete->call.store), &complete->lane, &complete->job);
}

/* The upload is completed: 0 when it was with this very list. */
static int take_result(
	struct upload_complete *complete, const struct upload_row *upload, struct error *err)
{
	struct digest128 list;
	const struct digest128 asked =
		upload_judge_list(complete->params.parts, complete->params.part_count);
	if (!upload_result_read(upload->result, &list, &complete->result) ||
		!digest128_equal(&list, &asked))
		return upload_row_no_upload(err);
	return 0;
}

static int push_version(struct upload_complete *complete, struct db *db,
	const struct bucket *bucket, struct version *version, struct error *err)
{
	const struct upload_row *const upload = &complete->upload;
	const struct upload_verdict *const verdict = &complete->verdict;
	struct version current;
	if (server_key_guard(db, bucket->id, upload->key, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket->id, upload->key, NULL, &current, err);
	const struct version *const under = found == 1 ? &current : NULL;
	if (found < 0 ||
		object_conditions_check_current(&complete->params.conditions, under, err) != 0)
		return -1;
	*version = (struct version){
		.bucket = bucket->id,
		.key = upload->key,
		.kind = VERSION_SEGMENTS,
		.size = verdict->size,
		.checksum = verdict->checksum,
		.part_count = verdict->part_count,
		.storage_class = upload->storage_class,
		.acl = upload->acl,
		.modified_ms = store_clock(complete->call.store)
				       ->wall_ms(store_clock(complete->call.store)),
		.headers = upload->headers,
		.tags = upload->tags,
		.part_set = upload->part_set,
		.contents = part_map_contents(buffer_span(&verdict->map)),
	};
	memcpy(version->etag, verdict->etag, sizeof(version->etag));
	random_bytes(version->id, VERSION_ID_BYTES);
	if (version_push(db, bucket->versioning, under, version, err) != 0)
		return -1;
	return derive_waiting_note(
		complete->call.store, db, version->sequence, version->key, version->size, err);
}

static int remember(struct upload_complete *complete, struct db *db,
	enum bucket_versioning versioning, const struct version *version, struct error *err)
{
	struct digest128 ignored;
	struct buffer result;
	buffer_init(&result, RESULT_MAX_BYTES);
	upload_result_write(&complete->verdict, versioning, version->id, &result);
	ASSERT(upload_result_read(buffer_span(&result), &ignored, &complete->result));
	const int done = upload_row_complete(db, complete->upload.number,
		complete->verdict.has_unlisted ? UPLOAD_TRIMMING : UPLOAD_COMPLETED,
		version->modified_ms, buffer_span(&result), err);
	buffer_release(&result);
	return done;
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct upload_complete *const complete = (struct upload_complete *)change;
	struct bucket bucket;
	struct upload_row now;
	struct version version;
	if (bucket_row_settings(db, complete->call.ref.bucket, &bucket, err) != 0)
		return -1;
	const struct upload_ref *const ref = &complete->call.ref;
	int found = upload_row_find(db, bucket.id, ref->key, &ref->id, NULL, &now, err);
	/* somebody completed it since it was judged */
	if (found == 1 && now.state != UPLOAD_OPEN) {
		found = upload_row_find(
			db, bucket.id, ref->key, &ref->id, complete->call.arena, &now, err);
		return found < 0 ? -1 : take_result(complete, &now, err);
	}
	if (found != 1)
		return found < 0 ? -1 : upload_row_no_upload(err);
	complete->is_stale = now.revision != complete->upload.revision;
	if (complete->is_stale)
		return error_set(
			err, ERROR_BUSY, "Parts of the upload keep coming while it is completed.");
	if (push_version(complete, db, &bucket, &version, err) != 0 ||
		upload_set_close(db, now.part_set, buffer_span(&complete->verdict.map), err) != 0)
		return -1;
	complete->completes_publish = version.completes_publish;
	return remember(complete, db, bucket.versioning, &version, err);
}

static void change_is_done(struct change *change)
{
	struct upload_complete *const complete = (struct upload_complete *)change;
	if (change->failed && complete->is_stale && complete->judged < JUDGED_MOST) {
		submit_job(complete);
		return;
	}
	if (!change->failed && complete->completes_publish)
		store_wake(complete->call.store, STORE_STEP_WORK);
	if (!change->failed)
		store_wake(complete->call.store, STORE_FILE_HASH_WORK);
	upload_call_take_change(&complete->call);
	upload_call_settle(&complete->call);
}

/* *out_is_open: judged, the change may follow. */
static int judge(
	struct upload_complete *complete, struct db *db, bool *out_is_open, struct error *err)
{
	const struct upload_ref *const ref = &complete->call.ref;
	struct bucket bucket;
	if (bucket_row_settings(db, ref->bucket, &bucket, err) != 0)
		return -1;
	const int found = upload_row_find(
		db, bucket.id, ref->key, &ref->id, complete->call.arena, &complete->upload, err);
	if (found != 1)
		return found < 0 ? -1 : upload_row_no_upload(err);
	*out_is_open = complete->upload.state == UPLOAD_OPEN;
	if (!*out_is_open)
		return take_result(complete, &complete->upload, err);
	return upload_judge(db, &complete->upload, &complete->params, &complete->verdict, err);
}

static int judge_snapshot(struct upload_complete *complete, bool *out_is_open, struct error *err)
{
	struct db *const db = store_snapshot_take(complete->call.store, err);
	if (db == NULL)
		return -1;
	const int result = judge(complete, db, out_is_open, err);
	store_snapshot_give(complete->call.store, db);
	return result;
}

static void judge_run(struct helper_job *job)
{
	struct upload_complete *const complete =
		(struct upload_complete *)((uint8_t *)job - offsetof(struct upload_complete, job));
	bool is_open = false;
	complete->judged++;
	complete->is_stale = false;
	complete->call.failed = judge_snapshot(complete, &is_open, &complete->call.error) != 0;
	if (complete->call.failed || !is_open) {
		upload_call_settle(&complete->call);
		return;
	}
	complete->call.change = (struct change){.apply = apply, .done = change_is_done};
	upload_call_submit(&complete->call);
}

struct upload_complete *upload_complete_start(
	struct store *store, const struct upload_complete_params *params, struct error *err)
{
	if (params->part_count == 0 || params->part_count > UPLOAD_PARTS_MAX) {
		error_set(err, ERROR_INVALID, "A list of parts names 1 to %d of them.",
			UPLOAD_PARTS_MAX);
		return NULL;
	}
	struct upload_complete *const complete = memory_new(sizeof(*complete));
	upload_call_init(&complete->call, store, &params->ref, params->done, params->owner);
	upload_verdict_init(&complete->verdict);
	complete->params = *params;
	complete->params.conditions =
		object_conditions_copy(&params->conditions, complete->call.arena);
	submit_job(complete);
	return complete;
}

int upload_complete_outcome(struct upload_complete *complete, struct upload_result *out,
	struct upload_fault *out_fault, struct error *err)
{
	*out_fault = complete->verdict.fault;
	*out = complete->result;
	return upload_call_outcome(&complete->call, err);
}

void upload_complete_checksums(const struct upload_complete *complete,
	struct checksum *out_expected, struct checksum *out_actual)
{
	*out_expected = complete->params.checksum;
	*out_actual = complete->verdict.checksum;
}

void upload_complete_free(struct upload_complete *complete)
{
	if (complete == NULL)
		return;
	upload_verdict_release(&complete->verdict);
	upload_call_release(&complete->call);
	free(complete);
}
