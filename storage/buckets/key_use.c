#include "storage/buckets/key_use.h"

#include "storage/core/committer.h"

enum { IN_ONE_CHANGE = 500, USES_MAX = 1000 * 1000 };

static const char SQL_COUNT[] = "SELECT COUNT(*) FROM key_uses";
static const char SQL_LIST[] = "SELECT key_id, used_ms FROM key_uses LIMIT ?1";
/* A key that was revoked meanwhile gets no row. */
static const char SQL_WRITE[] =
	"INSERT INTO key_uses (key_id, used_ms) SELECT ?1, ?2"
	" WHERE EXISTS (SELECT 1 FROM keys WHERE key_id = ?1)"
	" ON CONFLICT (key_id) DO UPDATE SET used_ms = max(used_ms, excluded.used_ms)";
static const char SQL_REMOVE[] = "DELETE FROM key_uses WHERE key_id = ?1";

struct use_change {
	struct change change; /* first */
	const struct key_use *uses;
	size_t count;
};

static int list(struct db *db, struct arena *arena, struct key_use **out, size_t *out_count,
	struct error *err);
static int key_use_apply(struct change *base, struct db *db, struct error *err);

int key_use_list(struct store *store, struct arena *arena, struct key_use **out, size_t *out_count,
	struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = list(db, arena, out, out_count, err);
	store_snapshot_give(store, db);
	return result;
}

int key_use_write(struct store *store, const struct key_use *uses, size_t count, struct error *err)
{
	for (size_t at = 0; at < count; at += IN_ONE_CHANGE) {
		const size_t left = count - at;
		struct use_change change = {.change.apply = key_use_apply,
			.uses = uses + at,
			.count = left < IN_ONE_CHANGE ? left : IN_ONE_CHANGE};
		if (committer_run(store_committer(store), &change.change, err) != 0)
			return -1;
	}
	return 0;
}

int key_use_remove(struct db *db, struct span key_id, struct error *err)
{
	return db_run(db, SQL_REMOVE, err, db_blob(key_id));
}

static int list(struct db *db, struct arena *arena, struct key_use **out, size_t *out_count,
	struct error *err)
{
	int64_t count = 0;
	int got = 0;
	*out_count = 0;
	if (db_find_i64(db, SQL_COUNT, &count, err) < 0)
		return -1;
	count = count < USES_MAX ? count : USES_MAX;
	*out = arena_take_array(arena, (size_t)count + 1, sizeof(**out));
	if (*out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "Memory ran out while reading keys.");
	struct db_statement *const rows = db_query(db, SQL_LIST, err, db_i64(count));
	if (rows == NULL)
		return -1;
	while (*out_count < (size_t)count && (got = db_step(rows, err)) == 1)
		(*out)[(*out_count)++] = (struct key_use){
			arena_copy(arena, db_column_blob(rows, 0)), db_column_i64(rows, 1)};
	db_reset(rows);
	return got < 0 ? -1 : 0;
}

static int key_use_apply(struct change *base, struct db *db, struct error *err)
{
	const struct use_change *const change = (struct use_change *)base;
	for (size_t i = 0; i < change->count; i++)
		if (db_run(db, SQL_WRITE, err, db_blob(change->uses[i].key_id),
			    db_i64(change->uses[i].used_ms)) != 0)
			return -1;
	return 0;
}
