#include <string.h>

#include "storage/versions/version_internal.h"

/* Answered from the index versions_listed alone; the test of object_list checks the query plan. */
static const char SQL_VERSION_SCAN[] =
	"SELECT key, size, etag, modified_ms, checksum_kind, storage_class FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 1"
	" AND is_marker = 0 ORDER BY key";
static const char SQL_VERSION_OLDER[] =
	"SELECT key, sequence, size FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 2 ORDER BY key, sequence DESC";
static const char SQL_VERSION_OLDER_BEHIND[] =
	"SELECT key, sequence, size FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND sequence < ?3"
	" ORDER BY sequence DESC";

struct db_statement *version_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err)
{
	return db_query(db, SQL_VERSION_SCAN, err, db_i64(bucket), db_blob(from));
}

struct span version_scan_key(struct db_statement *scan)
{
	return db_column_blob(scan, 0);
}

void version_scan_entry(struct db_statement *scan, struct object_entry *out)
{
	const struct span etag = span_slice(db_column_blob(scan, 2), 0, OBJECT_ETAG_BYTES - 1);
	out->size = (uint64_t)db_column_i64(scan, 1);
	memcpy(out->etag, etag.data, etag.len);
	out->etag[etag.len] = '\0';
	out->modified_ms = db_column_i64(scan, 3);
	version_read_checksum_kind(
		db_column_i64(scan, 4), &out->checksum_algorithm, &out->checksum_type);
	out->storage_class = (enum storage_class)db_column_i64(scan, 5);
}

struct db_statement *version_older_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err)
{
	return db_query(db, SQL_VERSION_OLDER, err, db_i64(bucket), db_blob(from));
}

struct db_statement *version_older_scan_behind(
	struct db *db, struct object_place place, int64_t sequence, struct error *err)
{
	return db_query(db, SQL_VERSION_OLDER_BEHIND, err, db_i64(place.bucket), db_blob(place.key),
		db_i64(sequence));
}

void version_older_read(struct db_statement *scan, struct version_older *out)
{
	const int64_t size = db_column_i64(scan, 2);
	*out = (struct version_older){.key = db_column_blob(scan, 0),
		.sequence = db_column_i64(scan, 1),
		.size = size > 0 ? (uint64_t)size : 0};
}
