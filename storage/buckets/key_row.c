/* A key is read row by row, in the order of the row numbers, so that keys before and after an
 * unreadable page can still be read. The number of grants is counted first and bounded, because a
 * damaged page could give any number. */
#include "storage/buckets/key_row.h"

#include "storage/db/row_sum.h"

enum { GRANTS_MAX = 65536 }; /* of one key; far more than a request can have */
enum {
	COLUMN_ROW,
	COLUMN_ID,
	COLUMN_NAME,
	COLUMN_NAMESPACE,
	COLUMN_SECRET,
	COLUMN_TOKEN,
	COLUMN_ROOT,
	COLUMN_CREATED,
	COLUMN_SUM,
	COLUMN_IS_BANNED
};

static const char SQL_NEXT[] =
	"SELECT id, key_id, name, (SELECT namespace FROM accounts WHERE id = k.account), sealed_secret, token_hash, is_root,"
	" created_ms, sum, EXISTS (SELECT 1 FROM revoked_keys r WHERE r.key_id = k.key_id)"
	" FROM keys k WHERE id > ?1 ORDER BY id LIMIT 1";
static const char SQL_GRANT_COUNT[] = "SELECT COUNT(*) FROM grants WHERE key = ?1";
static const char SQL_GRANT_LIST[] =
	"SELECT bucket, prefix, permissions FROM grants WHERE key = ?1 ORDER BY ordinal";
static const char SQL_FIND[] = "SELECT id FROM keys WHERE key_id = ?1";
static const char SQL_FIND_ROOT[] = "SELECT id FROM keys WHERE is_root <> 0 LIMIT 1";
static const char SQL_ADD[] =
	"INSERT INTO keys (key_id, account, name, sealed_secret, token_hash, is_root, created_ms, sum)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
static const char SQL_GRANT_ADD[] =
	"INSERT INTO grants (key, ordinal, bucket, prefix, permissions) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char SQL_UNBAN[] = "DELETE FROM revoked_keys WHERE key_id = ?1";
static const char SQL_BAN[] = "INSERT OR IGNORE INTO revoked_keys (key_id) VALUES (?1)";
static const char SQL_GRANT_REMOVE[] = "DELETE FROM grants WHERE key = ?1";
static const char SQL_REMOVE[] = "DELETE FROM keys WHERE id = ?1";
static const char SQL_SET_SUM[] = "UPDATE keys SET sum = ?2 WHERE id = ?1";

struct stored_key {
	struct key_record key; /* without its grants */
	int64_t row;
	int64_t sum; /* as stored */
};

static int next_row(struct db *db, int64_t after, struct arena *arena, struct stored_key *out,
	struct error *err);
static struct key_record read_row(struct db_statement *row, struct arena *arena);
static int read_grants(
	struct db *db, int64_t row, struct arena *arena, struct key_record *out, struct error *err);
static int count_grants(struct db *db, int64_t row, int64_t *out_count, struct error *err);
static int64_t sum_key(const struct key_record *key);
static int add_row(struct db *db, const struct key_record *key, int64_t account, int64_t *out_row,
	struct error *err);
static int add_grant(
	struct db *db, int64_t row, size_t ordinal, const struct grant *grant, struct error *err);
static int sum_next(struct db *db, int64_t *row, struct error *err);

int key_row_next(struct db *db, int64_t after, struct arena *arena, struct key_record *out,
	int64_t *out_row, struct error *err)
{
	struct error grants_err = {0};
	struct stored_key stored;
	int got = next_row(db, after, arena, &stored, err);
	if (got != 1)
		return got;
	*out = stored.key;
	*out_row = stored.row;
	out->is_damaged = read_grants(db, stored.row, arena, out, &grants_err) != 0 ||
		sum_key(out) != stored.sum;
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY, "Memory ran out while reading keys.")
		: 1;
}

int key_row_find(struct db *db, struct span id, int64_t *out_row, struct error *err)
{
	return db_find_i64(db, SQL_FIND, out_row, err, db_blob(id));
}

int key_row_find_root(struct db *db, int64_t *out_row, struct error *err)
{
	return db_find_i64(db, SQL_FIND_ROOT, out_row, err);
}

int key_row_add(struct db *db, const struct key_record *key, int64_t account, struct error *err)
{
	int64_t row;
	ASSERT(key->grant_count <= GRANTS_MAX);
	if (add_row(db, key, account, &row, err) != 0)
		return -1;
	for (size_t i = 0; i < key->grant_count; i++)
		if (add_grant(db, row, i, &key->grants[i], err) != 0)
			return -1;
	return db_run(db, SQL_UNBAN, err, db_blob(key->id));
}

int key_row_remove(struct db *db, int64_t row, struct error *err)
{
	return db_run(db, SQL_GRANT_REMOVE, err, db_i64(row)) != 0
		? -1
		: db_run(db, SQL_REMOVE, err, db_i64(row));
}

int key_row_ban(struct db *db, struct span id, struct error *err)
{
	return db_run(db, SQL_BAN, err, db_blob(id));
}

int key_row_sum_all(struct db *db, struct error *err)
{
	int64_t row = INT64_MIN;
	int got;
	do
		got = sum_next(db, &row, err);
	while (got == 1);
	return got;
}

static int next_row(struct db *db, int64_t after, struct arena *arena, struct stored_key *out,
	struct error *err)
{
	struct db_statement *next = db_query(db, SQL_NEXT, err, db_i64(after));
	int got = db_step(next, err);
	if (got == 1)
		*out = (struct stored_key){.key = read_row(next, arena),
			.row = db_column_i64(next, COLUMN_ROW),
			.sum = db_column_i64(next, COLUMN_SUM)};
	db_reset(next);
	return got;
}

static struct key_record read_row(struct db_statement *row, struct arena *arena)
{
	return (struct key_record){
		.id = arena_copy(arena, db_column_blob(row, COLUMN_ID)),
		.name = arena_copy(arena, db_column_blob(row, COLUMN_NAME)),
		.namespace = arena_copy(arena, db_column_blob(row, COLUMN_NAMESPACE)),
		.sealed_secret = arena_copy(arena, db_column_blob(row, COLUMN_SECRET)),
		.token_hash = arena_copy(arena, db_column_blob(row, COLUMN_TOKEN)),
		.is_root = db_column_i64(row, COLUMN_ROOT) != 0,
		.is_revoked = db_column_i64(row, COLUMN_IS_BANNED) != 0,
		.created_ms = db_column_i64(row, COLUMN_CREATED),
	};
}

static int read_grants(
	struct db *db, int64_t row, struct arena *arena, struct key_record *out, struct error *err)
{
	int64_t count = 0;
	if (count_grants(db, row, &count, err) != 0)
		return -1;
	struct grant *grants = arena_take_array(arena, (size_t)count + 1, sizeof(*grants));
	if (grants == NULL)
		return error_set(err, ERROR_NO_MEMORY, "Memory ran out while reading keys.");
	struct db_statement *const list = db_query(db, SQL_GRANT_LIST, err, db_i64(row));
	if (list == NULL)
		return -1;
	int got = 0;
	while (out->grant_count < (size_t)count && (got = db_step(list, err)) == 1)
		grants[out->grant_count++] = (struct grant){
			.bucket = arena_copy(arena, db_column_blob(list, 0)),
			.prefix = arena_copy(arena, db_column_blob(list, 1)),
			.permissions = (unsigned)db_column_i64(list, 2),
		};
	db_reset(list);
	out->grants = grants;
	return got < 0 ? -1 : 0;
}

static int count_grants(struct db *db, int64_t row, int64_t *out_count, struct error *err)
{
	int got = db_find_i64(db, SQL_GRANT_COUNT, out_count, err, db_i64(row));
	if (got == 1 && *out_count > GRANTS_MAX)
		return error_set(err, ERROR_DAMAGED,
			"A key has %lld grants; at most %d are possible.", (long long)*out_count,
			GRANTS_MAX);
	return got == 1 ? 0 : -1;
}

static int64_t sum_key(const struct key_record *key)
{
	uint64_t sum = row_sum_bytes(0, key->id);
	sum = row_sum_bytes(sum, key->namespace);
	sum = row_sum_bytes(sum, key->name);
	sum = row_sum_bytes(sum, key->sealed_secret);
	sum = row_sum_bytes(sum, key->token_hash);
	sum = row_sum_number(sum, key->is_root);
	sum = row_sum_number(sum, key->created_ms);
	sum = row_sum_number(sum, (int64_t)key->grant_count);
	for (size_t i = 0; i < key->grant_count; i++) {
		sum = row_sum_bytes(sum, key->grants[i].bucket);
		sum = row_sum_bytes(sum, key->grants[i].prefix);
		sum = row_sum_number(sum, key->grants[i].permissions);
	}
	return (int64_t)sum;
}

static int add_row(struct db *db, const struct key_record *key, int64_t account, int64_t *out_row,
	struct error *err)
{
	if (db_insert(db, SQL_ADD, out_row, err, db_blob(key->id), db_i64(account),
		    db_blob(key->name), db_blob(key->sealed_secret), db_blob(key->token_hash),
		    db_i64(key->is_root), db_i64(key->created_ms), db_i64(sum_key(key))) == 0)
		return 0;
	if (err->kind == ERROR_EXISTS)
		error_set(err, ERROR_EXISTS, "The key '%.*s' exists already.", (int)key->id.len,
			(const char *)key->id.data);
	return -1;
}

static int add_grant(
	struct db *db, int64_t row, size_t ordinal, const struct grant *grant, struct error *err)
{
	return db_run(db, SQL_GRANT_ADD, err, db_i64(row), db_i64((int64_t)ordinal),
		db_blob(grant->bucket), db_blob(grant->prefix), db_i64(grant->permissions));
}

static int sum_next(struct db *db, int64_t *row, struct error *err)
{
	enum { ARENA_BYTES = 64 * 1024 * 1024 };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct stored_key stored;
	int got = next_row(db, *row, arena, &stored, err);
	if (got == 1)
		*row = stored.row;
	if (got == 1 &&
		(read_grants(db, *row, arena, &stored.key, err) != 0 ||
			db_run(db, SQL_SET_SUM, err, db_i64(*row), db_i64(sum_key(&stored.key))) !=
				0))
		got = -1;
	arena_free(arena);
	return got;
}
