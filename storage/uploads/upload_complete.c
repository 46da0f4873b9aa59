/* start --helper: judge--> change: apply (revision still the same? conditions, version row) --COMMIT--> end
 *              ^                    |
 *              +-- a part was added since
 *
 * Judging reads up to 10,000 rows, which would delay other changes, so a helper does it before the
 * change. A part whose bytes are known to be damaged is refused there, too. An upload that is
 * completed already keeps its result, with which a completion with the same list is answered. */
#include <string.h>

#include "base/random.h"
#include "storage/run_tables/server_key.h"
#include "storage/uploads/upload_internal.h"
#include "storage/uploads/upload_judge.h"
#include "storage/versions/derive_waiting.h"
#include "storage/versions/header_blob.h"
#include "storage/versions/part_damage.h"

enum { JUDGED_MAX = 16, RESULT_MAX_BYTES = 1024 };

struct upload_complete {
	struct call call;
	struct upload_complete_params params; /* its texts are copied */
	struct upload_row upload;             /* as judged */
	struct upload_verdict verdict;
	unsigned judged; /* the number of judgements */
	bool is_stale;   /* the change found other parts than were judged */
	bool completes_publish;
	struct upload_result result;
};

static enum call_next upload_complete_judge(struct call *call, struct error *err);
static enum call_next judge_upload(
	struct upload_complete *complete, struct db *db, struct error *err);
static int answer_again(
	struct upload_complete *complete, const struct upload_row *upload, struct error *err);
static int check_damage(const struct upload_complete *complete, struct db *db, struct error *err);
static bool is_listed(const struct upload_complete_params *params, uint32_t number);
static int upload_complete_apply(struct call *call, struct db *db, struct error *err);
static int push_version(struct upload_complete *complete, struct db *db,
	const struct bucket *bucket, struct version *version, struct error *err);
static int keep_result(struct upload_complete *complete, struct db *db,
	enum bucket_versioning versioning, const struct version *version, struct error *err);
static enum call_next upload_complete_judge_again_if_stale(struct call *call);
static void upload_complete_wake_workers(struct call *call);
static void upload_complete_release(struct call *call);

static const struct call_kind complete_kind = {
	.stages = {{.help = upload_complete_judge},
		{.apply = upload_complete_apply, .applied = upload_complete_judge_again_if_stale}},
	.settle = upload_complete_wake_workers,
	.release = upload_complete_release,
};

struct call *upload_complete_call(
	struct store *store, const struct upload_complete_params *params, struct error *err)
{
	if (params->part_count == 0 || params->part_count > UPLOAD_PARTS_MAX) {
		error_set(err, ERROR_INVALID, "A list of parts must name 1 to %d parts.",
			UPLOAD_PARTS_MAX);
		return NULL;
	}
	struct upload_complete *const complete =
		call_new(sizeof(*complete), &complete_kind, store, UPLOAD_CALL_ARENA_BYTES);
	struct arena *const arena = complete->call.arena;
	upload_verdict_init(&complete->verdict);
	complete->params = *params;
	complete->params.ref = upload_ref_copy(&params->ref, arena);
	complete->params.conditions = object_conditions_copy(&params->conditions, arena);
	return &complete->call;
}

struct upload_result upload_complete_result(const struct call *complete)
{
	return ((const struct upload_complete *)complete)->result;
}

struct upload_fault upload_complete_fault(const struct call *complete)
{
	return ((const struct upload_complete *)complete)->verdict.fault;
}

void upload_complete_checksums(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual)
{
	const struct upload_complete *const complete = (const struct upload_complete *)call;
	*out_expected = complete->params.checksum;
	*out_actual = complete->verdict.checksum;
}

static enum call_next upload_complete_judge(struct call *call, struct error *err)
{
	struct upload_complete *const complete = (struct upload_complete *)call;
	complete->judged++;
	complete->is_stale = false;
	struct db *const db = store_snapshot_take(call->store, err);
	if (db == NULL)
		return CALL_FAILS;
	const enum call_next next = judge_upload(complete, db, err);
	store_snapshot_give(call->store, db);
	return next;
}

static enum call_next judge_upload(
	struct upload_complete *complete, struct db *db, struct error *err)
{
	const struct upload_ref *const ref = &complete->params.ref;
	struct upload_row *const upload = &complete->upload;
	struct object_place place = {.key = ref->key};
	if (bucket_row_find(db, ref->bucket, &place.bucket, err) != 0)
		return CALL_FAILS;
	const int found = upload_row_find(db, place, &ref->id, complete->call.arena, upload, err);
	if (found != 1) {
		if (found == 0)
			upload_row_no_upload(err);
		return CALL_FAILS;
	}
	if (upload->state != UPLOAD_OPEN)
		return answer_again(complete, upload, err) == 0 ? CALL_ENDS : CALL_FAILS;
	return upload_judge(db, upload, &complete->params, &complete->verdict, err) == 0 &&
			check_damage(complete, db, err) == 0
		? CALL_NEXT
		: CALL_FAILS;
}

/* For an upload that is completed: answers again, if it was completed with this list. */
static int answer_again(
	struct upload_complete *complete, const struct upload_row *upload, struct error *err)
{
	struct digest128 list;
	ASSERT(upload->state != UPLOAD_OPEN);
	const struct digest128 asked =
		upload_judge_list(complete->params.parts, complete->params.part_count);
	if (!upload_result_read(upload->result, &list, &complete->result) ||
		!digest128_equal(&list, &asked))
		return upload_row_no_upload(err);
	return 0;
}

/* A part that is not listed may be damaged: nothing will lead to it. */
static int check_damage(const struct upload_complete *complete, struct db *db, struct error *err)
{
	uint32_t number = 0;
	int got = 1;
	while (got == 1) {
		got = part_damage_find(complete->call.store, db, complete->upload.part_set,
			number + 1, &number, err);
		if (got == 1 && is_listed(&complete->params, number))
			return error_set(err, ERROR_CONTENT_DAMAGED,
				"The stored bytes of part %lu are damaged. Upload that part again,"
				" then complete the upload.",
				(unsigned long)number);
	}
	return got;
}

static bool is_listed(const struct upload_complete_params *params, uint32_t number)
{
	for (size_t i = 0; i < params->part_count; i++)
		if (params->parts[i].number == number)
			return true;
	return false;
}

static int upload_complete_apply(struct call *call, struct db *db, struct error *err)
{
	struct upload_complete *const complete = (struct upload_complete *)call;
	const struct upload_ref *const ref = &complete->params.ref;
	struct bucket bucket;
	struct upload_row now;
	struct version version;
	if (bucket_row_settings(db, ref->bucket, &bucket, err) != 0)
		return -1;
	const struct object_place place = {.bucket = bucket.id, .key = ref->key};
	int found = upload_row_find(db, place, &ref->id, NULL, &now, err);
	/* it was completed after it was judged */
	if (found == 1 && now.state != UPLOAD_OPEN) {
		found = upload_row_find(db, place, &ref->id, call->arena, &now, err);
		return found < 0 ? -1 : answer_again(complete, &now, err);
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
	return keep_result(complete, db, bucket.versioning, &version, err);
}

static int push_version(struct upload_complete *complete, struct db *db,
	const struct bucket *bucket, struct version *version, struct error *err)
{
	const struct upload_row *const upload = &complete->upload;
	const struct upload_verdict *const verdict = &complete->verdict;
	struct version current;
	ASSERT(upload->state == UPLOAD_OPEN && verdict->part_count > 0);
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
		.modified_ms = store_now_ms(complete->call.store),
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

static int keep_result(struct upload_complete *complete, struct db *db,
	enum bucket_versioning versioning, const struct version *version, struct error *err)
{
	struct digest128 ignored;
	struct buffer result;
	buffer_init(&result, RESULT_MAX_BYTES);
	upload_result_write(&complete->verdict, versioning, version->id, &result);
	const bool is_read = upload_result_read(buffer_span(&result), &ignored, &complete->result);
	ASSERT(is_read);
	const int done = upload_row_complete(db, complete->upload.number,
		complete->verdict.has_unlisted ? UPLOAD_TRIMMING : UPLOAD_COMPLETED,
		version->modified_ms, buffer_span(&result), err);
	buffer_release(&result);
	return done;
}

static enum call_next upload_complete_judge_again_if_stale(struct call *call)
{
	const struct upload_complete *const complete = (const struct upload_complete *)call;
	if (!call->failed)
		return CALL_NEXT;
	return complete->is_stale && complete->judged < JUDGED_MAX ? CALL_FIRST : CALL_FAILS;
}

/* An upload that was found completed, whose answer is repeated, leaves no work. */
static void upload_complete_wake_workers(struct call *call)
{
	const struct upload_complete *const complete = (const struct upload_complete *)call;
	if (call->failed || complete->upload.state != UPLOAD_OPEN)
		return;
	if (complete->completes_publish)
		store_wake(call->store, STORE_STEP_WORK);
	store_wake(call->store, STORE_FILE_HASH_WORK);
}

static void upload_complete_release(struct call *call)
{
	upload_verdict_release(&((struct upload_complete *)call)->verdict);
}
