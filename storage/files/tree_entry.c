#include "storage/files/tree_entry.h"

#include <string.h>

#include "storage/files/file_time.h"
#include "storage/versions/header_blob.h"

#define ENTRY_ROWS \
	"SELECT sequence, key, size, file_hash, modified_ms, headers FROM versions WHERE bucket = ?1 AND state = 1 AND is_marker = 0"

static const char SQL_TREE_SCAN[] = ENTRY_ROWS " AND key >= ?2 ORDER BY key";
static const char SQL_TREE_NEXT[] =
	"SELECT key FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 1 AND is_marker = 0 ORDER BY key LIMIT 1";
static const char SQL_TREE_SEEK[] = ENTRY_ROWS " AND key = ?2";
/* The index versions_listed alone answers it; tests/unit/storage/files/test_tree.c checks that. */
static const char SQL_TREE_BELOW[] =
	"SELECT COUNT(*), MAX(modified_ms) FROM (SELECT modified_ms FROM versions WHERE bucket = ?1 AND key >= ?2 AND key < ?3 AND state = 1"
	" AND is_marker = 0 LIMIT ?4) AS below";

enum { DIRECTORY_MAX_BYTES = OBJECT_KEY_MAX_BYTES + 1 };

struct db_statement *tree_entry_scan(
	struct db *db, int64_t bucket, struct span from, struct error *err)
{
	return db_query(db, SQL_TREE_SCAN, err, db_i64(bucket), db_blob(from));
}

struct db_statement *tree_entry_seek(
	struct db *db, int64_t bucket, struct span key, struct error *err)
{
	return db_query(db, SQL_TREE_SEEK, err, db_i64(bucket), db_blob(key));
}

int tree_entry_next(struct db *db, int64_t bucket, struct span from,
	uint8_t out[OBJECT_KEY_MAX_BYTES], size_t *out_len, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_TREE_NEXT, err, db_i64(bucket), db_blob(from));
	const int got = db_step(row, err);
	const struct span key = got == 1 ? db_column_blob(row, 0) : (struct span){NULL, 0};
	*out_len = key.len < OBJECT_KEY_MAX_BYTES ? key.len : OBJECT_KEY_MAX_BYTES;
	if (*out_len > 0)
		memcpy(out, key.data, *out_len);
	db_reset(row);
	return got;
}

struct span tree_entry_key(struct db_statement *scan)
{
	return db_column_blob(scan, 1);
}

void tree_entry_add(
	struct db_statement *scan, struct span path, struct arena *arena, struct tree *out)
{
	ASSERT(out->entries != NULL && out->unhashed != NULL);
	struct tree_entry *const entry = &out->entries[out->count++];
	const struct span hash = db_column_blob(scan, 3);
	const struct span headers = db_column_blob(scan, 5);
	*entry = (struct tree_entry){
		.path = path,
		.size = (uint64_t)db_column_i64(scan, 2),
		.uploaded_ms = db_column_i64(scan, 4),
		.content_type = arena_copy(arena, header_blob_find(headers, "content-type")),
	};
	entry->has_file_hash = hash.len == CHUNK_ID_BYTES;
	if (entry->has_file_hash)
		memcpy(entry->file_hash.bytes, hash.data, CHUNK_ID_BYTES);
	else
		out->unhashed[out->unhashed_count++] = db_column_i64(scan, 0);
	if (!file_time_parse(header_blob_find(headers, FILE_TIME_HEADER), &entry->mtime_ms))
		entry->mtime_ms = entry->uploaded_ms;
}

int tree_entry_below(struct db *db, int64_t bucket, struct span directory, size_t limit,
	struct tree_below *out, struct error *err)
{
	struct buffer from;
	struct buffer to;
	ASSERT(directory.len < DIRECTORY_MAX_BYTES);
	buffer_init(&from, DIRECTORY_MAX_BYTES);
	buffer_init(&to, DIRECTORY_MAX_BYTES);
	buffer_add_span(&from, directory);
	buffer_add_byte(&from, '/');
	buffer_add_span(&to, directory);
	buffer_add_byte(&to, '/' + 1);
	struct db_statement *const row = db_query(db, SQL_TREE_BELOW, err, db_i64(bucket),
		db_blob(buffer_span(&from)), db_blob(buffer_span(&to)), db_i64((int64_t)limit));
	const int got = db_step(row, err);
	*out = (struct tree_below){0};
	if (got == 1) {
		out->files = (size_t)db_column_i64(row, 0);
		out->newest_ms = db_column_i64(row, 1);
	}
	db_reset(row);
	buffer_release(&from);
	buffer_release(&to);
	return got < 0 ? -1 : 0;
}
