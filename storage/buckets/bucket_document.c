#include "storage/buckets/bucket_document.h"

#include "storage/buckets/bucket_row.h"

static const char SQL_DOCUMENT_READ[] =
	"SELECT document FROM bucket_documents WHERE bucket = ?1 AND kind = ?2";
static const char SQL_DOCUMENT_PUT[] =
	"INSERT INTO bucket_documents (bucket, kind, document) VALUES (?1, ?2, ?3)"
	" ON CONFLICT (bucket, kind) DO UPDATE SET document = excluded.document";
static const char SQL_DOCUMENT_DROP[] =
	"DELETE FROM bucket_documents WHERE bucket = ?1 AND kind = ?2";
static const char SQL_DOCUMENT_DROP_ALL[] = "DELETE FROM bucket_documents WHERE bucket = ?1";

int bucket_document_row_read(struct db *db, int64_t bucket, enum bucket_document_kind kind,
	struct arena *arena, struct span *out, struct error *err)
{
	*out = (struct span){NULL, 0};
	const int got =
		db_find_blob(db, SQL_DOCUMENT_READ, arena, out, err, db_i64(bucket), db_i64(kind));
	if (got == 1 && out->data == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a bucket's settings.");
	return got < 0 ? -1 : 0;
}

int bucket_document_row_put(
	struct db *db, int64_t bucket, const struct bucket_document *document, struct error *err)
{
	const struct db_value kind = db_i64(document->kind);
	ASSERT(document->kind >= BUCKET_TAGS && document->kind <= BUCKET_LOCATION);
	ASSERT(document->bytes.len <= BUCKET_DOCUMENT_MAX_BYTES);
	if (document->bytes.len == 0)
		return db_run(db, SQL_DOCUMENT_DROP, err, db_i64(bucket), kind);
	return db_run(db, SQL_DOCUMENT_PUT, err, db_i64(bucket), kind, db_blob(document->bytes));
}

int bucket_document_row_drop_all(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_DOCUMENT_DROP_ALL, err, db_i64(bucket));
}

int bucket_document_find(struct store *store, struct bucket_ref ref, enum bucket_document_kind kind,
	struct arena *arena, struct span *out, struct error *err)
{
	int64_t id = 0;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = bucket_row_find(db, ref, &id, err);
	if (result == 0)
		result = bucket_document_row_read(db, id, kind, arena, out, err);
	store_reader_give(store, db);
	return result;
}
