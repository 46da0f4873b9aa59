/* Every state of an upload has a query of its own for the sweeper: trimming ones first by their
 * end, completed ones by their age. Orphans are found through `gone_buckets`, which names deleted
 * buckets until no upload and no version of theirs is left. */
#include "storage/uploads/upload_row.h"

#include <string.h>

static const char SQL_UPLOAD_ADD[] =
	"INSERT INTO uploads (upload_id, bucket, key, state, created_ms, initiator, headers, tags, acl, storage_class, checksum_kind,"
	" etag_policy, part_set, revision) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0)";
#define UPLOAD_COLUMNS                                                                  \
	"id, upload_id, bucket, key, state, created_ms, initiator, headers, tags, acl," \
	" storage_class, checksum_kind, etag_policy, part_set, revision, result"
static const char SQL_UPLOAD_FIND[] =
	"SELECT " UPLOAD_COLUMNS " FROM uploads WHERE upload_id = ?1 AND bucket = ?2 AND key = ?3";
static const char SQL_UPLOAD_SCAN[] =
	"SELECT " UPLOAD_COLUMNS
	" FROM uploads WHERE state = 0 AND bucket = ?1 AND (key, upload_id) > (?2, ?3) ORDER BY key, upload_id";
static const char SQL_UPLOAD_COUNT[] = "SELECT count(*) FROM uploads WHERE state = 0";
static const char SQL_UPLOAD_REVISE[] = "UPDATE uploads SET revision = revision + 1 WHERE id = ?1";
static const char SQL_UPLOAD_COMPLETE[] =
	"UPDATE uploads SET state = ?2, ended_ms = ?3, result = ?4 WHERE id = ?1";
static const char SQL_UPLOAD_REMOVE[] = "DELETE FROM uploads WHERE id = ?1";
static const char SQL_UPLOAD_FIND_TRIMMING[] =
	"SELECT id, part_set FROM uploads WHERE state = 2 ORDER BY ended_ms LIMIT 1";
static const char SQL_UPLOAD_SET_TRIMMED[] = "UPDATE uploads SET state = 1 WHERE id = ?1";
static const char SQL_UPLOAD_FIND_EXPIRED[] =
	"SELECT id FROM uploads WHERE state = 1 AND ended_ms < ?1 ORDER BY ended_ms LIMIT 1";
static const char SQL_UPLOAD_FIND_ORPHAN[] =
	"SELECT g.bucket, u.id, u.part_set FROM gone_buckets g LEFT JOIN uploads u ON u.bucket = g.bucket AND u.state = 0 ORDER BY g.bucket LIMIT 1";
static const char SQL_UPLOAD_FORGET_BUCKET[] = "DELETE FROM gone_buckets WHERE bucket = ?1";
static const char SQL_UPLOAD_ORPHAN[] =
	"INSERT INTO gone_buckets (bucket) SELECT ?1 WHERE EXISTS (SELECT 1 FROM uploads u WHERE u.bucket = ?1 AND u.state = 0)";

enum { CHECKSUM_TYPE_BITS = 4 };

static int64_t checksum_to_number(const struct upload_checksum *checksum);
static struct span copy_text(struct arena *arena, struct db_statement *statement, int column);
static struct upload_checksum checksum_of_number(int64_t number);

int upload_row_add(struct db *db, struct upload_row *row, struct error *err)
{
	ASSERT(row->part_set > 0 && row->state == UPLOAD_OPEN);
	return db_insert(db, SQL_UPLOAD_ADD, &row->number, err,
		db_blob(span_of(row->id.bytes, UPLOAD_ID_BYTES)), db_i64(row->bucket),
		db_blob(row->key), db_i64(row->created_ms), db_blob(row->initiator),
		db_blob(row->headers), db_blob_or_null(row->tags.len > 0, row->tags),
		db_i64(row->acl), db_i64(row->storage_class),
		db_i64(checksum_to_number(&row->checksum)),
		db_i64(row->fast_etags ? ETAG_FAST : ETAG_MD5), db_i64(row->part_set));
}

void upload_row_read(struct db_statement *scan, struct arena *arena, struct upload_row *out)
{
	const struct span id = db_column_blob(scan, 1);
	*out = (struct upload_row){
		.number = db_column_i64(scan, 0),
		.bucket = db_column_i64(scan, 2),
		.key = copy_text(arena, scan, 3),
		.state = (enum upload_state)db_column_i64(scan, 4),
		.created_ms = db_column_i64(scan, 5),
		.initiator = copy_text(arena, scan, 6),
		.headers = copy_text(arena, scan, 7),
		.tags = copy_text(arena, scan, 8),
		.acl = (enum canned_acl)db_column_i64(scan, 9),
		.storage_class = (enum storage_class)db_column_i64(scan, 10),
		.checksum = checksum_of_number(db_column_i64(scan, 11)),
		.fast_etags = db_column_i64(scan, 12) == ETAG_FAST,
		.part_set = db_column_i64(scan, 13),
		.revision = db_column_i64(scan, 14),
		.result = copy_text(arena, scan, 15),
	};
	if (id.len == UPLOAD_ID_BYTES)
		memcpy(out->id.bytes, id.data, UPLOAD_ID_BYTES);
}

int upload_row_find(struct db *db, struct object_place place, const struct upload_id *id,
	struct arena *arena, struct upload_row *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_UPLOAD_FIND, err, db_blob(span_of(id->bytes, UPLOAD_ID_BYTES)),
			db_i64(place.bucket), db_blob(place.key));
	const int got = db_step(row, err);
	if (got == 1)
		upload_row_read(row, arena, out);
	db_reset(row);
	if (got == 1 && arena != NULL && arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading an upload.");
	return got;
}

int upload_row_no_upload(struct error *err)
{
	return error_set(err, ERROR_NO_UPLOAD,
		"The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or"
		" completed.");
}

int upload_row_revise(struct db *db, int64_t number, struct error *err)
{
	return db_run(db, SQL_UPLOAD_REVISE, err, db_i64(number));
}

int upload_row_complete(struct db *db, int64_t number, enum upload_state state, int64_t now_ms,
	struct span result, struct error *err)
{
	ASSERT(state == UPLOAD_COMPLETED || state == UPLOAD_TRIMMING);
	return db_run(db, SQL_UPLOAD_COMPLETE, err, db_i64(number), db_i64(state), db_i64(now_ms),
		db_blob(result));
}

int upload_row_remove(struct db *db, int64_t number, struct error *err)
{
	return db_run(db, SQL_UPLOAD_REMOVE, err, db_i64(number));
}

int upload_row_count(struct db *db, uint64_t *out, struct error *err)
{
	int64_t count = 0;
	const int found = db_find_i64(db, SQL_UPLOAD_COUNT, &count, err);
	*out = (uint64_t)count;
	return found < 0 ? -1 : 0;
}

struct db_statement *upload_row_scan(struct db *db, int64_t bucket, struct span key,
	const struct upload_id *id, struct error *err)
{
	return db_query(db, SQL_UPLOAD_SCAN, err, db_i64(bucket), db_blob(key),
		db_blob(span_of(id->bytes, UPLOAD_ID_BYTES)));
}

struct span upload_row_scan_key(struct db_statement *scan)
{
	return db_column_blob(scan, 3);
}

int upload_row_find_trimming(
	struct db *db, int64_t *out_number, int64_t *out_part_set, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_UPLOAD_FIND_TRIMMING, err);
	const int got = db_step(row, err);
	if (got == 1) {
		*out_number = db_column_i64(row, 0);
		*out_part_set = db_column_i64(row, 1);
	}
	db_reset(row);
	return got;
}

int upload_row_set_trimmed(struct db *db, int64_t number, struct error *err)
{
	return db_run(db, SQL_UPLOAD_SET_TRIMMED, err, db_i64(number));
}

int upload_row_find_expired(
	struct db *db, int64_t before_ms, int64_t *out_number, struct error *err)
{
	return db_find_i64(db, SQL_UPLOAD_FIND_EXPIRED, out_number, err, db_i64(before_ms));
}

int upload_row_find_orphan(struct db *db, int64_t *out_bucket, int64_t *out_number,
	int64_t *out_part_set, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_UPLOAD_FIND_ORPHAN, err);
	const int got = db_step(row, err);
	if (got == 1) {
		*out_bucket = db_column_i64(row, 0);
		*out_number = db_column_i64(row, 1);
		*out_part_set = db_column_i64(row, 2);
	}
	db_reset(row);
	return got;
}

int upload_row_forget_bucket(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_UPLOAD_FORGET_BUCKET, err, db_i64(bucket));
}

int upload_row_orphan(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_UPLOAD_ORPHAN, err, db_i64(bucket));
}

/* 0: the client named no checksum. Else as in `versions`. */
static int64_t checksum_to_number(const struct upload_checksum *checksum)
{
	ASSERT((unsigned)checksum->algorithm < 1u << CHECKSUM_TYPE_BITS);
	return checksum->is_named
		? (int64_t)checksum->algorithm | (int64_t)checksum->type << CHECKSUM_TYPE_BITS
		: 0;
}

static struct span copy_text(struct arena *arena, struct db_statement *statement, int column)
{
	return arena == NULL ? (struct span){NULL, 0}
			     : arena_copy(arena, db_column_blob(statement, column));
}

static struct upload_checksum checksum_of_number(int64_t number)
{
	if (number == 0)
		return (struct upload_checksum){false, CHECKSUM_CRC64NVME, CHECKSUM_FULL_OBJECT};
	return (struct upload_checksum){true,
		(enum checksum_algorithm)(number & ((1 << CHECKSUM_TYPE_BITS) - 1)),
		(enum checksum_type)(number >> CHECKSUM_TYPE_BITS)};
}
