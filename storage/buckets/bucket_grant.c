/* A question reads all grants of the bucket and computes their sum on the way (bucket_access.h).
 * Only when the sum is right does one matching grant allow the request. Canned ACLs are grants too,
 * so that ACLs and policies are judged in one way. */
#include "storage/buckets/bucket_grant.h"

#include "storage/buckets/bucket_access.h"
#include "storage/buckets/bucket_document.h"

enum { BLOCK_ARENA_BYTES = 4096 };

static const char SQL_GRANTS_OF_BUCKET[] =
	"SELECT source, account, prefix, permissions, (SELECT document FROM bucket_documents WHERE bucket = ?1 AND kind = ?2),"
	" (SELECT access FROM buckets WHERE id = ?1) FROM bucket_grants WHERE bucket = ?1 ORDER BY source, ordinal";
static const char SQL_GRANTS_OF_SOURCE[] =
	"SELECT source, account, prefix, permissions FROM bucket_grants WHERE bucket = ?1 AND source = ?2 ORDER BY ordinal";
static const char SQL_GRANT_ADD[] =
	"INSERT INTO bucket_grants (bucket, source, ordinal, account, prefix, permissions) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
static const char SQL_GRANTS_DROP[] = "DELETE FROM bucket_grants WHERE bucket = ?1 AND source = ?2";
static const char SQL_GRANTS_DROP_ALL[] = "DELETE FROM bucket_grants WHERE bucket = ?1";

static const char all_accounts[] = "*"; /* not a possible namespace */

static int judge(
	struct db *db, const struct bucket_question *question, bool *out_allows, struct error *err);
static struct bucket_grant read_grant(struct db_statement *row);
static bool covers(const struct bucket_question *question, const struct bucket_grant *grant);
static bool is_for(const struct bucket_question *question, enum bucket_grant_source source,
	const struct bucket_grant *grant, struct span block);
static bool is_blocked(enum bucket_grant_source source, struct span document);
static int honours_object_acl(struct db *db, int64_t bucket, bool *out_honours, struct error *err);
static int take_rows(struct db_statement *statement, struct arena *arena, struct bucket_grants *out,
	struct error *err);
static int add_row(struct db *db, int64_t bucket, enum bucket_grant_source source, size_t ordinal,
	const struct bucket_grant *grant, struct error *err);

struct bucket_grant bucket_grant_public_read(void)
{
	return (struct bucket_grant){.permissions = PERMISSION_READ | PERMISSION_LIST};
}

size_t bucket_grant_of_acl(enum canned_acl acl, struct bucket_grant out[BUCKET_GRANTS_OF_ACL_MAX])
{
	ASSERT(acl <= ACL_PUBLIC_READ_WRITE);
	out[0] = bucket_grant_public_read();
	if (acl == ACL_AUTHENTICATED_READ)
		out[0].account = span_text(all_accounts);
	if (acl == ACL_PUBLIC_READ_WRITE)
		out[0].permissions |= (unsigned)PERMISSION_WRITE | (unsigned)PERMISSION_DELETE;
	return acl == ACL_PRIVATE ? 0 : 1;
}

enum canned_acl bucket_grant_find_acl(const struct bucket_grant *grants, size_t count)
{
	if (count == 0)
		return ACL_PRIVATE;
	if (grants[0].account.len > 0)
		return ACL_AUTHENTICATED_READ;
	return (grants[0].permissions & PERMISSION_WRITE) != 0 ? ACL_PUBLIC_READ_WRITE
							       : ACL_PUBLIC_READ;
}

bool bucket_grant_acl_reads(enum canned_acl acl, struct span account)
{
	return acl == ACL_PUBLIC_READ || acl == ACL_PUBLIC_READ_WRITE ||
		(acl == ACL_AUTHENTICATED_READ && account.len > 0);
}

bool bucket_grant_is_public(const struct bucket_grant *grant)
{
	return grant->account.len == 0 || span_equal_text(grant->account, all_accounts);
}

int bucket_grant_allows(struct store *store, const struct bucket_question *question,
	bool *out_allows, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = judge(db, question, out_allows, err);
	store_reader_give(store, db);
	return result;
}

int bucket_grant_honours_object_acl(
	struct store *store, int64_t bucket, bool *out_honours, struct error *err)
{
	/* a snapshot, because the sum and its parts must be of one state */
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = honours_object_acl(db, bucket, out_honours, err);
	store_snapshot_give(store, db);
	return result;
}

int bucket_grant_list(struct store *store, int64_t bucket, enum bucket_grant_source source,
	struct arena *arena, struct bucket_grants *out, struct error *err)
{
	out->grants = arena_take_array(arena, BUCKET_GRANTS_MAX, sizeof(*out->grants));
	struct db *const db = out->grants == NULL ? NULL : store_reader_take(store, err);
	if (out->grants == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading a bucket's grants.");
	if (db == NULL)
		return -1;
	struct db_statement *const rows =
		db_query(db, SQL_GRANTS_OF_SOURCE, err, db_i64(bucket), db_i64(source));
	const int result = take_rows(rows, arena, out, err);
	store_reader_give(store, db);
	return result;
}

int bucket_grant_row_replace(struct db *db, int64_t bucket, enum bucket_grant_source source,
	const struct bucket_grant *grants, size_t count, struct error *err)
{
	ASSERT(source != BUCKET_GRANTS_NONE && count <= BUCKET_GRANTS_MAX);
	if (db_run(db, SQL_GRANTS_DROP, err, db_i64(bucket), db_i64(source)) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (add_row(db, bucket, source, i, &grants[i], err) != 0)
			return -1;
	return 0;
}

int bucket_grant_row_drop_all(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_GRANTS_DROP_ALL, err, db_i64(bucket));
}

/* Reads all rows even when the first one allows: the sum needs all of them. */
static int judge(
	struct db *db, const struct bucket_question *question, bool *out_allows, struct error *err)
{
	struct db_statement *rows = db_query(db, SQL_GRANTS_OF_BUCKET, err,
		db_i64(question->bucket), db_i64(BUCKET_PUBLIC_ACCESS));
	uint64_t sum = bucket_access_begin(question->bucket);
	bool allows = false;
	bool is_right = false;
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const enum bucket_grant_source source =
			(enum bucket_grant_source)db_column_i64(rows, 0);
		const struct bucket_grant grant = read_grant(rows);
		const struct span block = db_column_blob(rows, 4);
		sum = bucket_access_add(sum, source, &grant);
		is_right = bucket_access_end(sum, block) == db_column_i64(rows, 5);
		allows = allows ||
			(covers(question, &grant) && is_for(question, source, &grant, block));
	}
	db_reset(rows);
	*out_allows = got == 0 && allows && is_right;
	return got;
}

static struct bucket_grant read_grant(struct db_statement *row)
{
	return (struct bucket_grant){.account = db_column_blob(row, 1),
		.prefix = db_column_blob(row, 2),
		.permissions = (unsigned)db_column_i64(row, 3)};
}

static bool covers(const struct bucket_question *question, const struct bucket_grant *grant)
{
	if (question->anywhere)
		return (grant->permissions &
			       (question->permissions != 0 ? question->permissions : ~0U)) != 0;
	return (grant->permissions & question->permissions) == question->permissions &&
		span_starts(question->key, grant->prefix);
}

/* Whether the grant is for the caller: for its account, or for everyone or all accounts and not
 * blocked. */
static bool is_for(const struct bucket_question *question, enum bucket_grant_source source,
	const struct bucket_grant *grant, struct span block)
{
	if (!bucket_grant_is_public(grant))
		return span_equal(grant->account, question->account);
	return (grant->account.len == 0 || question->account.len > 0) && !is_blocked(source, block);
}

static bool is_blocked(enum bucket_grant_source source, struct span document)
{
	const unsigned bits = document.len == 1 ? document.data[0] : 0;
	return (bits &
		       (source == BUCKET_GRANTS_OF_ACL ? IGNORE_PUBLIC_ACLS
						       : RESTRICT_PUBLIC_BUCKETS)) != 0;
}

static int honours_object_acl(struct db *db, int64_t bucket, bool *out_honours, struct error *err)
{
	struct arena *arena = arena_new(BLOCK_ARENA_BYTES);
	struct span document = {NULL, 0};
	bool is_right = false;
	int result = bucket_access_is_right(db, bucket, &is_right, err);
	if (result == 0)
		result = bucket_document_row_read(
			db, bucket, BUCKET_PUBLIC_ACCESS, arena, &document, err);
	*out_honours = result == 0 && is_right && !is_blocked(BUCKET_GRANTS_OF_ACL, document);
	arena_free(arena);
	return result;
}

/* Takes all rows of the statement, which may be NULL (db_step). */
static int take_rows(struct db_statement *statement, struct arena *arena, struct bucket_grants *out,
	struct error *err)
{
	size_t count = 0;
	int got = 0;
	while (count < BUCKET_GRANTS_MAX && (got = db_step(statement, err)) == 1) {
		out->grants[count].account = arena_copy(arena, db_column_blob(statement, 1));
		out->grants[count].prefix = arena_copy(arena, db_column_blob(statement, 2));
		out->grants[count++].permissions = (unsigned)db_column_i64(statement, 3);
	}
	db_reset(statement);
	out->count = count;
	return got < 0 ? -1 : 0;
}

static int add_row(struct db *db, int64_t bucket, enum bucket_grant_source source, size_t ordinal,
	const struct bucket_grant *grant, struct error *err)
{
	return db_run(db, SQL_GRANT_ADD, err, db_i64(bucket), db_i64(source),
		db_i64((int64_t)ordinal), db_blob(grant->account), db_blob(grant->prefix),
		db_i64(grant->permissions));
}
