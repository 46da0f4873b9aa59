/* A key that shows any version has exactly one current version, and that is its newest: functions
 * that take the current version away put the newest older one in its place. At most one version of
 * a key is the null version. Every change of a current version is added to the bucket's totals and
 * noted for clients that follow the bucket (change_feed.h). */
#include "storage/buckets/bucket_totals.h"
#include "storage/core/change_feed.h"
#include "storage/run_tables/adopt_note.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"
#include "storage/versions/version_internal.h"

enum { DIGEST_ARENA_BYTES = 256 * 1024 };

static const char SQL_VERSION_ADD[] =
	"INSERT INTO versions (id, bucket, key, state, is_marker, kind, size, etag, digest, file_hash, modified_ms, headers, part_set,"
	" contents, checksum, has_id, part_count, checksum_kind, checksum_value, storage_class, acl, tags)"
	" VALUES (?1, ?2, ?3, ?22, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
static const char SQL_VERSION_RETIRE[] =
	"UPDATE versions SET state = 2, retired_ms = ?2 WHERE sequence = ?1";
static const char SQL_VERSION_PROMOTE[] =
	"UPDATE versions SET state = 1, retired_ms = NULL WHERE sequence = ?1";
static const char SQL_VERSION_HIDE[] = "UPDATE versions SET state = 0 WHERE sequence = ?1";
static const char SQL_VERSION_REMOVE[] = "DELETE FROM versions WHERE sequence = ?1";
static const char SQL_VERSION_NEXT[] =
	"SELECT sequence FROM versions WHERE bucket = (SELECT bucket FROM versions WHERE sequence = ?1)"
	" AND key = (SELECT key FROM versions WHERE sequence = ?1) AND state = 2 ORDER BY sequence DESC LIMIT 1";
static const char SQL_VERSION_OLDER_NULL[] =
	"SELECT sequence FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND has_id = 0";
static const char SQL_VERSION_UPDATE[] =
	"UPDATE versions SET tags = ?2, acl = ?3, checksum = ?4 WHERE sequence = ?1";
static const char SQL_VERSION_DIGEST[] =
	"UPDATE versions SET digest = ?2, checksum = ?3 WHERE sequence = ?1";
static const char SQL_VERSION_FILE_HASH[] =
	"UPDATE versions SET file_hash = ?2, checksum = ?3 WHERE sequence = ?1";
static const char SQL_VERSION_SHOW[] =
	"UPDATE versions SET state = 1, retired_ms = NULL WHERE sequence = ?1 AND state = 0 AND NOT EXISTS"
	" (SELECT 1 FROM versions o WHERE o.bucket = versions.bucket AND o.key = versions.key AND o.state = 1)";
static const char SQL_VERSION_CONTENTS[] =
	"UPDATE versions SET kind = ?2, part_set = ?3, contents = ?4, digest = ?5, checksum = ?6 WHERE sequence = ?1";
static const char SQL_VERSION_PINNED[] =
	"SELECT 1 FROM step_objects WHERE version = ?1 UNION ALL SELECT 1 FROM derivation_sources WHERE source = ?1"
	" UNION ALL SELECT 1 FROM fold_objects WHERE version = ?1 UNION ALL SELECT 1 FROM scratch_versions WHERE version = ?1 LIMIT 1";
static const char SQL_VERSION_COUNTED[] =
	"SELECT bucket, size, is_marker, modified_ms, key FROM versions WHERE sequence = ?1";
static const char SQL_VERSION_KEY[] = "SELECT key FROM versions WHERE sequence = ?1";
static const char SQL_VERSION_ANY[] =
	"SELECT 1 FROM versions WHERE bucket = ?1 AND state = 1 LIMIT 1";

static int add_row(
	struct db *db, enum version_state state, struct version *version, struct error *err);
static int insert(
	struct db *db, enum version_state state, struct version *version, struct error *err);
static struct db_value digest_of(const struct version *version);
static struct db_value set_of(const struct version *version);
static struct db_value sum_of(const struct version *version);
static struct db_value tags_of(const struct version *version);
static int make_way(struct db *db, const struct version *current, const struct version *version,
	struct error *err);
static int leave(struct db *db, const struct version *version, struct error *err);
static int drop(struct db *db, const struct version *version, struct error *err);
static int leave_older_null(struct db *db, int64_t bucket, struct span key, struct error *err);
static int note_push(struct db *db, const struct version *current, const struct version *version,
	struct error *err);
static int note_change(struct db *db, const struct change_note *change, int64_t files,
	int64_t bytes, struct error *err);
static int note_removal(
	struct db *db, const struct version *version, int64_t now_ms, struct error *err);
static int note_shown(struct db *db, int64_t sequence, struct error *err);
static int note_hash(struct db *db, const struct version *version, struct error *err);

int version_add_hidden(struct db *db, struct version *version, struct error *err)
{
	return add_row(db, VERSION_HIDDEN, version, err);
}

int version_is_named(struct db *db, int64_t sequence, bool *out_is_named, struct error *err)
{
	int64_t found = 0;
	const int got = db_find_i64(db, SQL_VERSION_PINNED, &found, err, db_i64(sequence));
	*out_is_named = got == 1;
	return got < 0 ? -1 : 0;
}

int version_push(struct db *db, enum bucket_versioning versioning, const struct version *current,
	struct version *version, struct error *err)
{
	version->has_id = versioning == BUCKET_VERSIONED;
	version->in_versioned_bucket = versioning != BUCKET_UNVERSIONED;
	if (current != NULL && make_way(db, current, version, err) != 0)
		return -1;
	version->completes_publish = false;
	if (add_row(db, VERSION_CURRENT, version, err) != 0 ||
		note_push(db, current, version, err) != 0)
		return -1;
	const struct adopt_object object = {.bucket = version->bucket,
		.key = version->key,
		.version_id = span_of(version->id, VERSION_ID_BYTES),
		.modified_ms = version->modified_ms};
	return version->is_marker ? 0 : adopt_note(db, &object, &version->completes_publish, err);
}

int version_remove(struct db *db, const struct version *version, int64_t now_ms, struct error *err)
{
	const bool is_current = version->state == VERSION_CURRENT;
	int64_t next = 0; /* the newest older one of the same key */
	if (is_current &&
		db_find_i64(db, SQL_VERSION_NEXT, &next, err, db_i64(version->sequence)) < 0)
		return -1;
	if (is_current && !version->is_marker && note_removal(db, version, now_ms, err) != 0)
		return -1;
	if (leave(db, version, err) != 0)
		return -1;
	if (next == 0)
		return 0;
	if (db_run(db, SQL_VERSION_PROMOTE, err, db_i64(next)) != 0)
		return -1;
	return note_shown(db, next, err);
}

int version_abandon(struct db *db, int64_t sequence, struct error *err)
{
	struct version version;
	const int found = version_find_sequence(db, sequence, NULL, &version, err);
	if (found < 0 && err->kind == ERROR_CORRUPT)
		return db_run(db, SQL_VERSION_HIDE, err, db_i64(sequence));
	return found == 1 ? leave(db, &version, err) : found;
}

int version_drop_unless_named(struct db *db, int64_t sequence, struct error *err)
{
	struct version version;
	bool pinned = false;
	if (version_is_named(db, sequence, &pinned, err) != 0)
		return -1;
	if (pinned)
		return 0;
	const int got = version_find_sequence(db, sequence, NULL, &version, err);
	/* a damaged row costs its space and keeps nothing else from being swept */
	if (got < 0 && err->kind == ERROR_CORRUPT)
		return 0;
	if (got <= 0 || version.state != VERSION_HIDDEN)
		return got < 0 ? -1 : 0;
	return drop(db, &version, err);
}

int version_update(struct db *db, const struct version *version, struct error *err)
{
	ASSERT(version->sequence > 0);
	return db_run(db, SQL_VERSION_UPDATE, err, db_i64(version->sequence), tags_of(version),
		db_i64(version->acl), sum_of(version));
}

int version_show(struct db *db, int64_t sequence, struct error *err)
{
	if (db_run(db, SQL_VERSION_SHOW, err, db_i64(sequence)) != 0)
		return -1;
	if (db_changes(db) != 1)
		return error_set(err, ERROR_PRECONDITION,
			"Version %lld cannot be shown: it is not hidden, or its key shows another.",
			(long long)sequence);
	return note_shown(db, sequence, err);
}

int version_replace_contents(struct db *db, const struct version *version, struct error *err)
{
	ASSERT(version->kind != VERSION_DERIVED || version->part_set == 0);
	return db_run(db, SQL_VERSION_CONTENTS, err, db_i64(version->sequence),
		db_i64(version->kind), set_of(version), db_i64((int64_t)version->contents),
		digest_of(version), sum_of(version));
}

int version_set_digest(
	struct db *db, int64_t sequence, const struct digest128 *digest, struct error *err)
{
	struct arena *const arena = arena_new(DIGEST_ARENA_BYTES);
	struct version version;
	int result = version_find_sequence(db, sequence, arena, &version, err);
	if (result == 1 && !version.has_digest) {
		version.has_digest = true;
		version.digest = *digest;
		result = db_run(db, SQL_VERSION_DIGEST, err, db_i64(version.sequence),
			digest_of(&version), sum_of(&version));
	}
	arena_free(arena);
	return result < 0 ? -1 : 0;
}

int version_set_file_hash(struct db *db, int64_t sequence, uint64_t contents,
	const struct chunk_id *hash, struct error *err)
{
	struct arena *const arena = arena_new(DIGEST_ARENA_BYTES);
	struct version version;
	int result = version_find_sequence(db, sequence, arena, &version, err);
	if (result == 1 && !version.has_file_hash && version.contents == contents) {
		version.has_file_hash = true;
		version.file_hash = *hash;
		result = db_run(db, SQL_VERSION_FILE_HASH, err, db_i64(version.sequence),
			db_blob(span_of(version.file_hash.bytes, CHUNK_ID_BYTES)),
			sum_of(&version));
		if (result == 0)
			result = note_hash(db, &version, err);
	}
	arena_free(arena);
	return result < 0 && err->kind != ERROR_CORRUPT ? -1 : 0;
}

/* Looks at current versions only: every key that shows a version has one. */
int version_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err)
{
	int64_t found = 0;
	const int got = db_find_i64(db, SQL_VERSION_ANY, &found, err, db_i64(bucket));
	*out_any = got == 1;
	return got < 0 ? -1 : 0;
}

static int add_row(
	struct db *db, enum version_state state, struct version *version, struct error *err)
{
	ASSERT(state == VERSION_HIDDEN || state == VERSION_CURRENT);
	ASSERT(!version->is_marker || (version->kind == VERSION_INLINE && version->size == 0));
	version->sequence = 0; /* a copy may still have its source's */
	if (insert(db, state, version, err) != 0)
		return -1;
	if (version->kind == VERSION_SINGLE && version->part_set == 0)
		version->part_set = part_single_set(version->sequence);
	version->state = state;
	version->retired_ms = 0;
	return 0;
}

static int insert(
	struct db *db, enum version_state state, struct version *version, struct error *err)
{
	const struct checksum *const checksum = &version->checksum;
	const struct span id = span_of(version->id, VERSION_ID_BYTES);
	const struct span file_hash =
		span_of(version->file_hash.bytes, version->has_file_hash ? CHUNK_ID_BYTES : 0);
	return db_insert(db, SQL_VERSION_ADD, &version->sequence, err, db_blob(id),
		db_i64(version->bucket), db_blob(version->key), db_i64(version->is_marker),
		db_i64(version->kind), db_i64((int64_t)version->size),
		db_blob(span_text(version->etag)), digest_of(version), db_blob(file_hash),
		db_i64(version->modified_ms), db_blob(version->headers), set_of(version),
		db_i64((int64_t)version->contents), sum_of(version), db_i64(version->has_id),
		db_i64(version->part_count), db_i64(version_checksum_kind(checksum)),
		db_blob_or_null(checksum->len > 0, span_of(checksum->bytes, checksum->len)),
		db_i64(version->storage_class), db_i64(version->acl), tags_of(version),
		db_i64(state));
}

/* Values of columns that several statements write. They point into the version. */
static struct db_value digest_of(const struct version *version)
{
	return db_blob_or_null(
		version->has_digest, span_of(version->digest.bytes, sizeof(version->digest.bytes)));
}

static struct db_value set_of(const struct version *version)
{
	const int64_t set = version_stored_set(version);
	return db_i64_or_null(set != 0, set);
}

static struct db_value sum_of(const struct version *version)
{
	return db_i64((int64_t)version_sum(version, version->key, version->headers, version->tags));
}

static struct db_value tags_of(const struct version *version)
{
	return db_blob_or_null(version->tags.len > 0, version->tags);
}

static int make_way(struct db *db, const struct version *current, const struct version *version,
	struct error *err)
{
	if (!version->has_id && !current->has_id)
		return leave(db, current, err);
	if (!version->has_id && leave_older_null(db, version->bucket, version->key, err) != 0)
		return -1;
	return db_run(db, SQL_VERSION_RETIRE, err, db_i64(current->sequence),
		db_i64(version->modified_ms));
}

static int leave(struct db *db, const struct version *version, struct error *err)
{
	bool pinned = false;
	if (version_is_named(db, version->sequence, &pinned, err) != 0)
		return -1;
	/* invariant 6 */
	return pinned ? db_run(db, SQL_VERSION_HIDE, err, db_i64(version->sequence))
		      : drop(db, version, err);
}

static int drop(struct db *db, const struct version *version, struct error *err)
{
	int dropped = 0;
	if (version->kind == VERSION_DERIVED)
		dropped = derived_row_remove(db, version->sequence, err);
	else if (version->kind != VERSION_INLINE)
		dropped = part_set_drop(db, version->part_set, err);
	else if (!version->is_marker)
		dropped = part_inline_drop(db, version->sequence, err);
	return dropped != 0 ? -1 : db_run(db, SQL_VERSION_REMOVE, err, db_i64(version->sequence));
}

/* Takes away the null version under a current version with an id. */
static int leave_older_null(struct db *db, int64_t bucket, struct span key, struct error *err)
{
	int64_t sequence = 0;
	struct version version;
	const int got = db_find_i64(
		db, SQL_VERSION_OLDER_NULL, &sequence, err, db_i64(bucket), db_blob(key));
	if (got != 1)
		return got;
	return version_need_sequence(db, sequence, NULL, &version, err) != 0
		? -1
		: leave(db, &version, err);
}

static int note_push(struct db *db, const struct version *current, const struct version *version,
	struct error *err)
{
	const bool replaces = current != NULL && !current->is_marker;
	const int64_t files = (version->is_marker ? 0 : 1) - (replaces ? 1 : 0);
	const int64_t bytes = (version->is_marker ? 0 : (int64_t)version->size) -
		(replaces ? (int64_t)current->size : 0);
	const struct change_note change = {.bucket = version->bucket,
		.key = version->key,
		.existed = replaces,
		.now_ms = version->modified_ms};
	return version->is_marker && !replaces ? 0 : note_change(db, &change, files, bytes, err);
}

/* Notes that the current version of a key changed, and updates the totals of its bucket. */
static int note_change(struct db *db, const struct change_note *change, int64_t files,
	int64_t bytes, struct error *err)
{
	struct change_feed *const feed = db_context(db, DB_CONTEXT_CHANGE_FEED);
	struct bucket_totals totals;
	if (feed == NULL)
		return bucket_totals_add(db, change->bucket, files, bytes, change->now_ms, err);
	if (bucket_totals_read(db, change->bucket, &totals, err) != 0)
		return -1;
	struct change_note note = *change;
	note.updated_ms = totals.updated_ms;
	return bucket_totals_add(
		db, change->bucket, files, bytes, change_feed_note(feed, &note), err);
}

/* Notes that a file leaves its key. Reads the key, because the caller may have the row without
 * it. */
static int note_removal(
	struct db *db, const struct version *version, int64_t now_ms, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_VERSION_KEY, err, db_i64(version->sequence));
	int result = db_step(row, err);
	if (result == 1) {
		const struct change_note change = {.bucket = version->bucket,
			.key = db_column_blob(row, 0),
			.existed = true,
			.now_ms = now_ms};
		result = note_change(db, &change, -1, -(int64_t)version->size, err);
	}
	db_reset(row);
	return result < 0 ? -1 : 0;
}

/* Notes that an existing version became the current one of its key. */
static int note_shown(struct db *db, int64_t sequence, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_VERSION_COUNTED, err, db_i64(sequence));
	int result = db_step(row, err);
	if (result == 1 && db_column_i64(row, 2) == 0) {
		const struct change_note change = {.bucket = db_column_i64(row, 0),
			.key = db_column_blob(row, 4),
			.now_ms = db_column_i64(row, 3)};
		result = note_change(db, &change, 1, db_column_i64(row, 1), err);
	}
	db_reset(row);
	return result < 0 ? -1 : 0;
}

/* Notes the file once more: clients that follow the bucket do not know its hash yet. */
static int note_hash(struct db *db, const struct version *version, struct error *err)
{
	struct change_feed *const feed = db_context(db, DB_CONTEXT_CHANGE_FEED);
	struct bucket_totals totals;
	if (feed == NULL || version->state != VERSION_CURRENT)
		return 0;
	if (bucket_totals_read(db, version->bucket, &totals, err) != 0)
		return -1;
	change_feed_note_detail(feed,
		&(struct change_note){.bucket = version->bucket,
			.key = version->key,
			.existed = true,
			.updated_ms = totals.updated_ms,
			.now_ms = version->modified_ms});
	return 0;
}
