/* A bucket is found by its name and, if the caller knows it, its id (bucket_ref.h). Listings go
 * down an index from the first name that can match, and stop at the first name without the
 * prefix. */
#include "storage/buckets/bucket_row.h"

#include <string.h>

/* ?2 is the id that the bucket must have; 0: any. */
static const char SQL_BUCKET_COUNT[] = "SELECT COUNT(*) FROM buckets";
static const char SQL_BUCKET_COUNT_OF[] =
	"SELECT COUNT(*) FROM buckets WHERE account = (SELECT id FROM accounts WHERE namespace = ?1)";
static const char SQL_BUCKET_ID[] =
	"SELECT id FROM buckets WHERE name = ?1 AND (?2 = 0 OR id = ?2)";
static const char SQL_BUCKET_NAME[] = "SELECT name FROM buckets WHERE id = ?1";
static const char SQL_BUCKET_SETTINGS[] =
	"SELECT id, versioning, etag_policy FROM buckets WHERE name = ?1 AND (?2 = 0 OR id = ?2)";
static const char SQL_BUCKET_READ[] =
	"SELECT b.id, b.name, a.namespace, b.created_ms, b.versioning, b.etag_policy FROM buckets b JOIN accounts a ON a.id = b.account"
	" WHERE b.name = ?1 AND (?2 = 0 OR b.id = ?2)";
static const char SQL_BUCKET_LIST[] =
	"SELECT b.id, b.name, a.namespace, b.created_ms, b.versioning, b.etag_policy FROM buckets b JOIN accounts a ON a.id = b.account"
	" WHERE b.name >= ?1 ORDER BY b.name LIMIT ?2";
/* Uses the index buckets_owner, so that buckets of other accounts cost nothing. */
static const char SQL_BUCKET_LIST_OWN[] =
	"SELECT id, name, ?3, created_ms, versioning, etag_policy FROM buckets"
	" WHERE account = (SELECT id FROM accounts WHERE namespace = ?3) AND name >= ?1 ORDER BY name LIMIT ?2";
static const char SQL_BUCKET_ADD[] =
	"INSERT INTO buckets (name, account, created_ms) VALUES (?1, ?2, ?3)";
static const char SQL_BUCKET_VERSIONING[] = "SELECT versioning FROM buckets WHERE id = ?1";
static const char SQL_BUCKET_SET_VERSIONING[] = "UPDATE buckets SET versioning = ?2 WHERE id = ?1";
static const char SQL_BUCKET_SET_ETAG_POLICY[] =
	"UPDATE buckets SET etag_policy = ?2 WHERE id = ?1";
static const char SQL_BUCKET_RENAME[] = "UPDATE buckets SET name = ?2, account = ?3 WHERE id = ?1";
static const char SQL_BUCKET_REMOVE[] = "DELETE FROM buckets WHERE id = ?1";

static int check_found(int got, struct bucket_ref ref, struct error *err);
static void read_row(struct db_statement *statement, struct arena *arena, struct bucket *out);
static struct db_statement *query_list(struct db *db, const struct bucket_list_params *params,
	struct arena *arena, struct error *err);
static struct span first_name(const struct bucket_list_params *params, struct arena *arena);

int bucket_row_name(
	struct db *db, int64_t id, struct arena *arena, struct span *out_name, struct error *err)
{
	return db_find_blob(db, SQL_BUCKET_NAME, arena, out_name, err, db_i64(id));
}

int bucket_row_find(struct db *db, struct bucket_ref ref, int64_t *out_id, struct error *err)
{
	const int got =
		db_find_i64(db, SQL_BUCKET_ID, out_id, err, db_blob(ref.name), db_i64(ref.id));
	return check_found(got, ref, err);
}

int bucket_row_settings(struct db *db, struct bucket_ref ref, struct bucket *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_BUCKET_SETTINGS, err, db_blob(ref.name), db_i64(ref.id));
	const int got = db_step(row, err);
	if (got == 1)
		*out = (struct bucket){
			.id = db_column_i64(row, 0),
			.versioning = (enum bucket_versioning)db_column_i64(row, 1),
			.etag_policy = (enum etag_policy)db_column_i64(row, 2),
		};
	db_reset(row);
	return check_found(got, ref, err);
}

int bucket_row_read(struct db *db, struct bucket_ref ref, struct arena *arena, struct bucket *out,
	struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_BUCKET_READ, err, db_blob(ref.name), db_i64(ref.id));
	const int got = db_step(row, err);
	if (got == 1)
		read_row(row, arena, out);
	db_reset(row);
	if (got == 1 && arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a bucket.");
	return check_found(got, ref, err);
}

int bucket_row_list(struct db *db, const struct bucket_list_params *params, struct arena *arena,
	struct bucket **out, size_t *out_count, struct error *err)
{
	ASSERT(params->limit > 0);
	struct bucket *const rows = arena_take_array(arena, params->limit + 1, sizeof(*rows));
	struct db_statement *const statement = query_list(db, params, arena, err);
	if (statement == NULL)
		return -1;
	size_t count = 0;
	int got = 0;
	while (!arena_overflowed(arena) && (got = db_step(statement, err)) == 1) {
		if (!span_starts(db_column_blob(statement, 1), params->prefix)) {
			got = 0;
			break;
		}
		ASSERT(count < params->limit);
		read_row(statement, arena, &rows[count++]);
	}
	db_reset(statement);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while listing buckets.");
	*out = rows;
	*out_count = count;
	return got < 0 ? -1 : 0;
}

int bucket_row_count(struct db *db, struct span owner, uint64_t *out, struct error *err)
{
	int64_t count = 0;
	const int found = owner.len > 0
		? db_find_i64(db, SQL_BUCKET_COUNT_OF, &count, err, db_blob(owner))
		: db_find_i64(db, SQL_BUCKET_COUNT, &count, err);
	*out = (uint64_t)count;
	return found < 0 ? -1 : 0;
}

int bucket_row_add(struct db *db, struct span name, int64_t account, int64_t now_ms,
	int64_t *out_id, struct error *err)
{
	return db_insert(
		db, SQL_BUCKET_ADD, out_id, err, db_blob(name), db_i64(account), db_i64(now_ms));
}

int bucket_row_versioning(struct db *db, int64_t id, enum bucket_versioning *out, struct error *err)
{
	int64_t versioning = 0;
	const int got = db_find_i64(db, SQL_BUCKET_VERSIONING, &versioning, err, db_i64(id));
	if (got == 0)
		return error_set(err, ERROR_NO_BUCKET, "The bucket does not exist any more.");
	if (got == 1)
		*out = (enum bucket_versioning)versioning;
	return got == 1 ? 0 : -1;
}

int bucket_row_set_versioning(
	struct db *db, int64_t id, enum bucket_versioning versioning, struct error *err)
{
	ASSERT(versioning <= BUCKET_SUSPENDED);
	return db_run(db, SQL_BUCKET_SET_VERSIONING, err, db_i64(id), db_i64(versioning));
}

int bucket_row_set_etag_policy(
	struct db *db, int64_t id, enum etag_policy policy, struct error *err)
{
	ASSERT(policy <= ETAG_FAST);
	return db_run(db, SQL_BUCKET_SET_ETAG_POLICY, err, db_i64(id), db_i64(policy));
}

int bucket_row_rename(
	struct db *db, int64_t id, struct span name, int64_t account, struct error *err)
{
	return db_run(db, SQL_BUCKET_RENAME, err, db_i64(id), db_blob(name), db_i64(account));
}

int bucket_row_remove(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_BUCKET_REMOVE, err, db_i64(id));
}

static int check_found(int got, struct bucket_ref ref, struct error *err)
{
	const struct span name = span_slice(ref.name, 0, 128);
	if (got != 0)
		return got == 1 ? 0 : -1;
	return error_set(err, ERROR_NO_BUCKET, "The bucket '%.*s' does not exist.", (int)name.len,
		(const char *)name.data);
}

static void read_row(struct db_statement *statement, struct arena *arena, struct bucket *out)
{
	out->id = db_column_i64(statement, 0);
	out->name = arena_copy(arena, db_column_blob(statement, 1));
	out->owner = arena_copy(arena, db_column_blob(statement, 2));
	out->created_ms = db_column_i64(statement, 3);
	out->versioning = (enum bucket_versioning)db_column_i64(statement, 4);
	out->etag_policy = (enum etag_policy)db_column_i64(statement, 5);
}

static struct db_statement *query_list(struct db *db, const struct bucket_list_params *params,
	struct arena *arena, struct error *err)
{
	const struct db_value first = db_blob(first_name(params, arena));
	const struct db_value limit = db_i64((int64_t)params->limit);
	if (params->owner.len == 0)
		return db_query(db, SQL_BUCKET_LIST, err, first, limit);
	return db_query(db, SQL_BUCKET_LIST_OWN, err, first, limit, db_blob(params->owner));
}

/* The name at which a scan begins: its prefix, or the first name after the last one. */
static struct span first_name(const struct bucket_list_params *params, struct arena *arena)
{
	if (span_compare(params->after, params->prefix) < 0 || params->after.len == 0)
		return params->prefix;
	uint8_t *const name = arena_take(arena, params->after.len + 1); /* zeros */
	if (name == NULL)
		return params->after; /* arena_overflowed tells */
	memcpy(name, params->after.data, params->after.len);
	return span_of(name, params->after.len + 1);
}
