/* The change reads the bucket's rules as they are now, and judges each item by them as a walk does.
 * An item that changed or went meanwhile, a key of the server's own and a damaged row are passed
 * over. Only what the rules still say is due goes, or gets a marker above it. */
#include "storage/upkeep/lifecycle_change.h"

#include "base/random.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_row.h"
#include "storage/buckets/lifecycle_document.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/run_tables/server_key.h"
#include "storage/upkeep/lifecycle_scan.h"
#include "storage/uploads/upload_row.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"

enum { CHANGE_ARENA_BYTES = 64 * 1024 * 1024 };

struct lifecycle_change {
	struct change change; /* first */
	const struct lifecycle_batch *batch;
	enum bucket_versioning versioning;
	struct lifecycle_clock clock;
	struct lifecycle lifecycle; /* as they are when the change runs */
	struct arena *arena;
	uint64_t removed;
};

static int lifecycle_apply(struct change *base, struct db *db, struct error *err);
static int judge_upload(struct lifecycle_change *change, struct db *db,
	const struct lifecycle_item *item, struct error *err);
static int judge_version(struct lifecycle_change *change, struct db *db,
	const struct lifecycle_item *item, struct error *err);
static int judge_current(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err);
static int judge_marker(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err);
static int read_subject(const struct version *version, int64_t since_ms, struct arena *arena,
	struct lifecycle_subject *out, struct error *err);
static int push_marker(const struct lifecycle_change *change, struct db *db,
	const struct version *current, struct error *err);
static int judge_older(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err);

int lifecycle_change_run(struct store *store, const struct lifecycle_batch *batch,
	uint64_t *removed, struct error *err)
{
	struct lifecycle_change change = {.change.apply = lifecycle_apply,
		.batch = batch,
		.clock = {store_now_ms(store), batch->day_ms},
		.arena = arena_new(CHANGE_ARENA_BYTES)};
	ASSERT(batch->count <= LIFECYCLE_CHANGE_ITEMS && batch->day_ms > 0);
	ASSERT(batch->items != NULL || batch->count == 0);
	const int result =
		batch->count == 0 ? 0 : committer_run(store_committer(store), &change.change, err);
	if (result == 0) {
		*removed += change.removed;
		metrics_add(
			store_metrics(store), METRIC_LIFECYCLE_REMOVED, (int64_t)change.removed);
	}
	arena_free(change.arena);
	return result;
}

static int lifecycle_apply(struct change *base, struct db *db, struct error *err)
{
	struct lifecycle_change *const change = (struct lifecycle_change *)base;
	struct span document;
	change->removed = 0;
	if (bucket_document_row_read(db, change->batch->bucket, BUCKET_LIFECYCLE, change->arena,
		    &document, err) != 0 ||
		lifecycle_document_parse(document, change->arena, &change->lifecycle, err) != 0)
		return -1;
	if (change->lifecycle.count == 0)
		return 0;
	if (bucket_row_versioning(db, change->batch->bucket, &change->versioning, err) != 0)
		return -1;
	for (size_t i = 0; i < change->batch->count; i++) {
		const struct lifecycle_item *const item = &change->batch->items[i];
		if ((item->kind == LIFECYCLE_UPLOAD ? judge_upload(change, db, item, err)
						    : judge_version(change, db, item, err)) != 0)
			return -1;
	}
	return 0;
}

static int judge_upload(struct lifecycle_change *change, struct db *db,
	const struct lifecycle_item *item, struct error *err)
{
	const struct object_place place = {.bucket = change->batch->bucket, .key = item->key};
	struct upload_row row;
	const int found = upload_row_find(db, place, &item->upload, change->arena, &row, err);
	if (found <= 0 || row.state != UPLOAD_OPEN)
		return found < 0 ? -1 : 0;
	if (!lifecycle_aborts(&change->lifecycle, item->key, row.created_ms, &change->clock))
		return 0;
	change->removed++;
	return part_set_drop(db, row.part_set, err) != 0 ? -1
							 : upload_row_remove(db, row.number, err);
}

static int judge_version(struct lifecycle_change *change, struct db *db,
	const struct lifecycle_item *item, struct error *err)
{
	struct version version;
	const int found = version_find_sequence(db, item->sequence, change->arena, &version, err);
	const enum version_state wanted =
		item->kind == LIFECYCLE_CURRENT ? VERSION_CURRENT : VERSION_OLDER;
	/* a damaged row is not removed here, and keeps no other from going */
	if (found < 0 && err->kind == ERROR_CORRUPT)
		return 0;
	if (found <= 0 || version.state != wanted)
		return found < 0 ? -1 : 0;
	if (server_key_guard(db, change->batch->bucket, version.key, err) != 0)
		return err->kind == ERROR_DENIED ? 0 : -1;
	return item->kind == LIFECYCLE_CURRENT ? judge_current(change, db, &version, err)
					       : judge_older(change, db, &version, err);
}

static int judge_current(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err)
{
	const struct lifecycle_rule *rule;
	struct lifecycle_subject subject;
	int64_t due_ms = 0;
	if (version->is_marker)
		return judge_marker(change, db, version, err);
	if (read_subject(version, version->modified_ms, change->arena, &subject, err) != 0)
		return -1;
	if (!lifecycle_expires(
		    &change->lifecycle, &subject, change->clock.day_ms, &due_ms, &rule) ||
		due_ms > change->clock.now_ms)
		return 0;
	change->removed++;
	return change->versioning == BUCKET_UNVERSIONED
		? version_remove(db, version, change->clock.now_ms, err)
		: push_marker(change, db, version, err);
}

/* A marker goes only when nothing is left below it. */
static int judge_marker(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err)
{
	uint32_t below = 0;
	if (!lifecycle_removes_marker(
		    &change->lifecycle, version->key, version->modified_ms, &change->clock))
		return 0;
	const struct lifecycle_newer any = {
		.bucket = change->batch->bucket, .key = version->key, .sequence = -1, .most = 1};
	if (lifecycle_scan_newer(db, &any, &below, err) != 0)
		return -1;
	if (below > 0)
		return 0;
	change->removed++;
	return version_remove(db, version, change->clock.now_ms, err);
}

static int read_subject(const struct version *version, int64_t since_ms, struct arena *arena,
	struct lifecycle_subject *out, struct error *err)
{
	struct tag *tags;
	*out = (struct lifecycle_subject){
		.key = version->key, .size = version->size, .since_ms = since_ms};
	const int result = tag_set_read(version->tags, arena, &tags, &out->tag_count, err);
	out->tags = tags;
	return result;
}

static int push_marker(const struct lifecycle_change *change, struct db *db,
	const struct version *current, struct error *err)
{
	ASSERT(!current->is_marker);
	struct version marker = {.bucket = change->batch->bucket,
		.key = current->key,
		.is_marker = true,
		.kind = VERSION_INLINE,
		.modified_ms = change->clock.now_ms};
	random_bytes(marker.id, VERSION_ID_BYTES);
	return version_push(db, change->versioning, current, &marker, err);
}

static int judge_older(struct lifecycle_change *change, struct db *db,
	const struct version *version, struct error *err)
{
	const int64_t since_ms =
		version->retired_ms != 0 ? version->retired_ms : version->modified_ms;
	const struct lifecycle_newer above = {.bucket = change->batch->bucket,
		.key = version->key,
		.sequence = version->sequence,
		.most = INT32_MAX};
	struct lifecycle_subject subject;
	uint32_t newer = 0;
	if (read_subject(version, since_ms, change->arena, &subject, err) != 0 ||
		lifecycle_scan_newer(db, &above, &newer, err) != 0)
		return -1;
	if (!lifecycle_removes_noncurrent(&change->lifecycle, &subject, newer, &change->clock))
		return 0;
	change->removed++;
	return version_remove(db, version, change->clock.now_ms, err);
}
