/* Tables keys, grants and settings; accounts has a file of its own, because buckets add to it too. */
#include "storage/account.h"

#include "base/memory.h"
#include "storage/account_row.h"
#include "storage/committer.h"

static const char SQL_KEY_LIST[] =
	"SELECT k.id, k.key_id, k.name, a.namespace, k.sealed_secret, k.token_hash, k.is_root, k.created_ms"
	" FROM keys k JOIN accounts a ON a.id = k.account ORDER BY k.id";
static const char SQL_KEY_COUNT[] = "SELECT COUNT(*) FROM keys";
static const char SQL_KEY_FIND[] = "SELECT id, is_root FROM keys WHERE key_id = ?1";
static const char SQL_KEY_FIND_ROOT[] = "SELECT id, is_root FROM keys WHERE is_root = 1";
static const char SQL_KEY_ADD[] =
	"INSERT INTO keys (key_id, account, name, sealed_secret, token_hash, is_root, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
static const char SQL_KEY_REMOVE[] = "DELETE FROM keys WHERE id = ?1";
static const char SQL_GRANT_COUNT[] = "SELECT COUNT(*) FROM grants WHERE key = ?1";
static const char SQL_GRANT_LIST[] = "SELECT bucket, prefix, permissions FROM grants WHERE key = ?1 ORDER BY ordinal";
static const char SQL_GRANT_ADD[] = "INSERT INTO grants (key, ordinal, bucket, prefix, permissions) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char SQL_GRANT_REMOVE[] = "DELETE FROM grants WHERE key = ?1";

struct key_change {
	struct change change; /* first */
	struct store *store;
	const struct key_record *key;
	struct span id;
};

static int count_rows(struct db *const db, const char *const sql, const int64_t key, size_t *const out_count, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	if (sql == SQL_GRANT_COUNT)
		db_bind_i64(statement, 1, key);
	const int got = db_step(statement, err);
	if (got == 1)
		*out_count = (size_t)db_column_i64(statement, 0);
	db_reset(statement);
	return got == 1 ? 0 : -1;
}

static int list_grants(struct db *const db, const int64_t key, struct arena *const arena, struct key_record *const out,
	struct error *const err)
{
	size_t count = 0;
	if (count_rows(db, SQL_GRANT_COUNT, key, &count, err) != 0)
		return -1;
	struct grant *const grants = arena_take_array(arena, count + 1, sizeof(*grants));
	struct db_statement *const statement = db_prepare(db, SQL_GRANT_LIST, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, key);
	int got = 0;
	while (grants != NULL && out->grant_count < count && (got = db_step(statement, err)) == 1) {
		struct grant *const grant = &grants[out->grant_count++];
		grant->bucket = arena_copy(arena, db_column_blob(statement, 0));
		grant->prefix = arena_copy(arena, db_column_blob(statement, 1));
		grant->permissions = (unsigned)db_column_i64(statement, 2);
	}
	db_reset(statement);
	out->grants = grants;
	return got < 0 ? -1 : 0;
}

static void read_key(struct db_statement *const statement, struct arena *const arena, struct key_record *const out)
{
	out->id = arena_copy(arena, db_column_blob(statement, 1));
	out->name = arena_copy(arena, db_column_blob(statement, 2));
	out->namespace = arena_copy(arena, db_column_blob(statement, 3));
	out->sealed_secret = arena_copy(arena, db_column_blob(statement, 4));
	out->token_hash = arena_copy(arena, db_column_blob(statement, 5));
	out->is_root = db_column_i64(statement, 6) != 0;
	out->created_ms = db_column_i64(statement, 7);
}

static int list_keys(struct db *const db, struct arena *const arena, struct key_record **const out_keys, size_t *const out_count,
	struct error *const err)
{
	size_t total = 0;
	size_t count = 0;
	if (count_rows(db, SQL_KEY_COUNT, 0, &total, err) != 0)
		return -1;
	struct key_record *const keys = arena_take_array(arena, total + 1, sizeof(*keys));
	struct db_statement *const statement = db_prepare(db, SQL_KEY_LIST, err);
	if (statement == NULL)
		return -1;
	int got = 0;
	while (keys != NULL && count < total && (got = db_step(statement, err)) == 1) {
		struct key_record *const key = &keys[count++];
		read_key(statement, arena, key);
		if (list_grants(db, db_column_i64(statement, 0), arena, key, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(statement);
	if (got < 0)
		return -1;
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY, "Memory ran out while reading keys.");
	*out_keys = keys;
	*out_count = count;
	return 0;
}

int account_list_keys(struct store *const store, struct arena *const arena, struct key_record **const out_keys, size_t *const out_count,
	struct error *const err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = list_keys(db, arena, out_keys, out_count, err);
	store_snapshot_give(store, db);
	return result;
}

static int run_on_key(struct db *const db, const char *const sql, const int64_t key, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, key);
	return db_execute(statement, err);
}

static int remove_key(struct db *const db, const int64_t key, struct error *const err)
{
	return run_on_key(db, SQL_GRANT_REMOVE, key, err) != 0 ? -1 : run_on_key(db, SQL_KEY_REMOVE, key, err);
}

/* 1 found, 0 absent, -1. */
static int find_key(struct db *const db, const struct span id, int64_t *const out_key, bool *const out_is_root, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, id.data == NULL ? SQL_KEY_FIND_ROOT : SQL_KEY_FIND, err);
	if (statement == NULL)
		return -1;
	if (id.data != NULL)
		db_bind_blob(statement, 1, id);
	const int got = db_step(statement, err);
	if (got == 1) {
		*out_key = db_column_i64(statement, 0);
		*out_is_root = db_column_i64(statement, 1) != 0;
	}
	db_reset(statement);
	return got;
}

static int add_grants(struct db *const db, const int64_t key, const struct key_record *const record, struct error *const err)
{
	for (size_t i = 0; i < record->grant_count; i++) {
		struct db_statement *const statement = db_prepare(db, SQL_GRANT_ADD, err);
		if (statement == NULL)
			return -1;
		db_bind_i64(statement, 1, key);
		db_bind_i64(statement, 2, (int64_t)i);
		db_bind_blob(statement, 3, record->grants[i].bucket);
		db_bind_blob(statement, 4, record->grants[i].prefix);
		db_bind_i64(statement, 5, record->grants[i].permissions);
		if (db_execute(statement, err) != 0)
			return -1;
	}
	return 0;
}

static int insert_key(struct db *const db, const struct key_record *const key, const int64_t account, const int64_t now_ms,
	struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_KEY_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, key->id);
	db_bind_i64(statement, 2, account);
	db_bind_blob(statement, 3, key->name);
	db_bind_blob(statement, 4, key->sealed_secret);
	db_bind_blob(statement, 5, key->token_hash);
	db_bind_i64(statement, 6, key->is_root);
	db_bind_i64(statement, 7, key->created_ms != 0 ? key->created_ms : now_ms);
	if (db_execute(statement, err) == 0)
		return add_grants(db, db_last_id(db), key, err);
	if (err->kind == ERROR_EXISTS)
		error_set(err, ERROR_EXISTS, "The key '%.*s' exists already.", (int)key->id.len, (const char *)key->id.data);
	return -1;
}

static int apply_add(struct change *const base, struct db *const db, struct error *const err)
{
	struct key_change *const change = (struct key_change *)base;
	const struct clock_source *const clock = store_clock(change->store);
	const int64_t now_ms = clock->wall_ms(clock);
	int64_t account;
	int64_t root;
	bool is_root;
	if (change->key->is_root) {
		const int found = find_key(db, (struct span){NULL, 0}, &root, &is_root, err);
		if (found < 0 || (found == 1 && remove_key(db, root, err) != 0))
			return -1;
	}
	if (account_row_ensure(db, change->key->namespace, now_ms, &account, err) != 0)
		return -1;
	return insert_key(db, change->key, account, now_ms, err);
}

int account_add_key(struct store *const store, const struct key_record *const key, struct error *const err)
{
	struct key_change change = {.change.apply = apply_add, .store = store, .key = key};
	return committer_run(store_committer(store), &change.change, err);
}

static int apply_revoke(struct change *const base, struct db *const db, struct error *const err)
{
	struct key_change *const change = (struct key_change *)base;
	int64_t key = 0;
	bool is_root = false;
	const int found = find_key(db, change->id, &key, &is_root, err);
	if (found == 0)
		return error_set(err, ERROR_NOT_FOUND, "The key '%.*s' does not exist.", (int)change->id.len, (const char *)change->id.data);
	if (found == 1 && is_root)
		return error_set(err, ERROR_DENIED, "The root key cannot be revoked; set another one instead.");
	return found == 1 ? remove_key(db, key, err) : -1;
}

int account_revoke_key(struct store *const store, const struct span id, struct error *const err)
{
	const struct span given = span_of(id.len == 0 ? (const void *)"" : id.data, id.len); /* NULL would mean the root key */
	struct key_change change = {.change.apply = apply_revoke, .store = store, .id = given};
	return committer_run(store_committer(store), &change.change, err);
}

int account_exists(struct store *const store, const struct span namespace, bool *const out_exists, struct error *const err)
{
	int64_t id;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = account_row_find(db, namespace, &id, err);
	store_reader_give(store, db);
	*out_exists = found == 1;
	return found < 0 ? -1 : 0;
}
