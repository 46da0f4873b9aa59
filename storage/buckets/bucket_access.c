/* The sum is a chain over the bucket's number, the grants in the order of source and ordinal, and
 * the public access block. So a row that is lost, changed or moved to another bucket makes it
 * wrong, and damage can only take rights away. */
#include "storage/buckets/bucket_access.h"

#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_row.h"
#include "storage/db/row_sum.h"

static const char SQL_GRANTS[] =
	"SELECT source, account, prefix, permissions FROM bucket_grants WHERE bucket = ?1 ORDER BY source, ordinal";
static const char SQL_BLOCK[] =
	"SELECT document FROM bucket_documents WHERE bucket = ?1 AND kind = ?2";
static const char SQL_READ[] = "SELECT access FROM buckets WHERE id = ?1";
static const char SQL_WRITE[] = "UPDATE buckets SET access = ?2 WHERE id = ?1";
static const char SQL_NEXT[] = "SELECT id FROM buckets WHERE id > ?1 ORDER BY id LIMIT 1";

static int compute_sum(struct db *db, int64_t bucket, int64_t *out_sum, struct error *err);
static int add_grants(struct db *db, int64_t bucket, uint64_t *sum, struct error *err);
static int next_bucket(struct db *db, int64_t *bucket, struct error *err);
static int stamp_next(struct db *db, int64_t *bucket, struct error *err);

uint64_t bucket_access_begin(int64_t bucket)
{
	return row_sum_number(0, bucket);
}

uint64_t bucket_access_add(
	uint64_t sum, enum bucket_grant_source source, const struct bucket_grant *grant)
{
	sum = row_sum_number(sum, source);
	sum = row_sum_bytes(sum, grant->account);
	sum = row_sum_bytes(sum, grant->prefix);
	return row_sum_number(sum, grant->permissions);
}

int64_t bucket_access_end(uint64_t sum, struct span block)
{
	return (int64_t)row_sum_bytes(sum, block);
}

int bucket_access_is_right(struct db *db, int64_t bucket, bool *out_is_right, struct error *err)
{
	int64_t stored = 0; /* stays 0 for a bucket that is gone, which no sum matches */
	int64_t computed = 0;
	if (db_find_i64(db, SQL_READ, &stored, err, db_i64(bucket)) < 0 ||
		compute_sum(db, bucket, &computed, err) != 0)
		return -1;
	*out_is_right = stored == computed;
	return 0;
}

int bucket_access_stamp(struct db *db, int64_t bucket, struct error *err)
{
	int64_t sum = 0;
	if (compute_sum(db, bucket, &sum, err) != 0)
		return -1;
	return db_run(db, SQL_WRITE, err, db_i64(bucket), db_i64(sum));
}

int bucket_access_settle(struct db *db, int64_t bucket, struct error *err)
{
	static const uint8_t all = BLOCK_PUBLIC_ACLS | IGNORE_PUBLIC_ACLS | BLOCK_PUBLIC_POLICY |
		RESTRICT_PUBLIC_BUCKETS;
	const struct bucket_document block = {BUCKET_PUBLIC_ACCESS, span_of(&all, sizeof(all))};
	const struct bucket_document no_policy = {.kind = BUCKET_POLICY};
	bool is_right = false;
	if (bucket_access_is_right(db, bucket, &is_right, err) != 0)
		return -1;
	if (is_right)
		return 0;
	if (bucket_grant_row_drop_all(db, bucket, err) != 0 ||
		bucket_document_row_put(db, bucket, &no_policy, err) != 0)
		return -1;
	return bucket_document_row_put(db, bucket, &block, err);
}

int bucket_access_next_wrong(struct db *db, int64_t after, struct arena *arena, int64_t *out_bucket,
	struct span *out_name, struct error *err)
{
	bool is_right = true;
	int got;
	*out_bucket = after;
	while (is_right && (got = next_bucket(db, out_bucket, err)) == 1)
		if (bucket_access_is_right(db, *out_bucket, &is_right, err) != 0)
			return -1;
	return is_right ? got : bucket_row_name(db, *out_bucket, arena, out_name, err);
}

int bucket_access_stamp_all(struct db *db, struct error *err)
{
	int64_t bucket = INT64_MIN;
	int got;
	do
		got = stamp_next(db, &bucket, err);
	while (got == 1);
	return got;
}

static int compute_sum(struct db *db, int64_t bucket, int64_t *out_sum, struct error *err)
{
	uint64_t sum = bucket_access_begin(bucket);
	if (add_grants(db, bucket, &sum, err) != 0)
		return -1;
	struct db_statement *block =
		db_query(db, SQL_BLOCK, err, db_i64(bucket), db_i64(BUCKET_PUBLIC_ACCESS));
	int got = db_step(block, err);
	if (got >= 0)
		*out_sum = bucket_access_end(
			sum, got == 1 ? db_column_blob(block, 0) : (struct span){NULL, 0});
	db_reset(block);
	return got < 0 ? -1 : 0;
}

static int add_grants(struct db *db, int64_t bucket, uint64_t *sum, struct error *err)
{
	struct db_statement *rows = db_query(db, SQL_GRANTS, err, db_i64(bucket));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const struct bucket_grant grant = {.account = db_column_blob(rows, 1),
			.prefix = db_column_blob(rows, 2),
			.permissions = (unsigned)db_column_i64(rows, 3)};
		*sum = bucket_access_add(
			*sum, (enum bucket_grant_source)db_column_i64(rows, 0), &grant);
	}
	db_reset(rows);
	return got;
}

/* Moves *bucket to the next bucket. Returns 1, 0 when there is none, -1 on error. */
static int next_bucket(struct db *db, int64_t *bucket, struct error *err)
{
	return db_find_i64(db, SQL_NEXT, bucket, err, db_i64(*bucket));
}

static int stamp_next(struct db *db, int64_t *bucket, struct error *err)
{
	int got = next_bucket(db, bucket, err);
	return got == 1 && bucket_access_stamp(db, *bucket, err) != 0 ? -1 : got;
}
