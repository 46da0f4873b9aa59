#include "storage/buckets/session_row.h"

#include <string.h>

static const char SQL_ADD[] =
	"INSERT INTO sessions (id, key_id, made_ms, seen_ms, ends_ms, address) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
static const char SQL_READ[] =
	"SELECT id, key_id, made_ms, seen_ms, ends_ms, address FROM sessions WHERE id = ?1";
static const char SQL_TOUCH[] =
	"UPDATE sessions SET seen_ms = ?2, ends_ms = ?3 WHERE id = ?1 AND seen_ms < ?2";
static const char SQL_REMOVE[] = "DELETE FROM sessions WHERE id = ?1";
static const char SQL_REMOVE_OF_KEY[] = "DELETE FROM sessions WHERE key_id = ?1";
static const char SQL_REMOVE_LINKS_OF_KEY[] = "DELETE FROM session_links WHERE key_id = ?1";
static const char SQL_BOUND_OF_KEY[] =
	"DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE key_id = ?1"
	" ORDER BY seen_ms DESC, id LIMIT -1 OFFSET ?2)";
static const char SQL_BOUND[] =
	"DELETE FROM sessions WHERE id IN (SELECT id FROM sessions ORDER BY seen_ms DESC, id LIMIT -1 OFFSET ?1)";
static const char SQL_LIST[] =
	"SELECT id, key_id, made_ms, seen_ms, ends_ms, address FROM sessions WHERE ends_ms > ?1"
	" ORDER BY seen_ms DESC, id LIMIT ?2";
static const char SQL_LIST_OF_KEY[] =
	"SELECT id, key_id, made_ms, seen_ms, ends_ms, address FROM sessions WHERE key_id = ?3 AND ends_ms > ?1"
	" ORDER BY seen_ms DESC, id LIMIT ?2";
static const char SQL_ADD_LINK[] =
	"INSERT INTO session_links (id, key_id, ends_ms) VALUES (?1, ?2, ?3)";
static const char SQL_FIND_LINK[] =
	"SELECT key_id FROM session_links WHERE id = ?1 AND ends_ms > ?2";
static const char SQL_REMOVE_LINK[] = "DELETE FROM session_links WHERE id = ?1";
static const char SQL_BOUND_LINKS[] =
	"DELETE FROM session_links WHERE id IN (SELECT id FROM session_links ORDER BY ends_ms DESC, id"
	" LIMIT -1 OFFSET ?1)";
static const char SQL_SWEEP[] =
	"DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE ends_ms <= ?1 ORDER BY ends_ms LIMIT 200)";
static const char SQL_SWEEP_LINKS[] =
	"DELETE FROM session_links WHERE id IN (SELECT id FROM session_links WHERE ends_ms <= ?1"
	" ORDER BY ends_ms LIMIT 200)";
static const char SQL_HAS_ENDED[] =
	"SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE ends_ms <= ?1)"
	" OR EXISTS (SELECT 1 FROM session_links WHERE ends_ms <= ?1)";

static int take(struct db_statement *row, struct arena *arena, struct session_record *out,
	struct error *err);

int session_row_add(struct db *db, const struct session_record *session, struct error *err)
{
	return db_run(db, SQL_ADD, err, db_blob(span_of(session->id, sizeof(session->id))),
		db_blob(session->key_id), db_i64(session->made_ms), db_i64(session->seen_ms),
		db_i64(session->ends_ms), db_blob(session->address));
}

int session_row_read(struct db *db, struct span id, struct arena *arena, struct session_record *out,
	struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_READ, err, db_blob(id));
	int got = db_step(row, err);
	if (got == 1 && take(row, arena, out, err) != 0)
		got = -1;
	db_reset(row);
	return got;
}

int session_row_touch(
	struct db *db, struct span id, int64_t seen_ms, int64_t ends_ms, struct error *err)
{
	return db_run(db, SQL_TOUCH, err, db_blob(id), db_i64(seen_ms), db_i64(ends_ms));
}

int session_row_remove(struct db *db, struct span id, struct error *err)
{
	return db_run(db, SQL_REMOVE, err, db_blob(id));
}

int session_row_remove_of_key(struct db *db, struct span key_id, struct error *err)
{
	return db_run(db, SQL_REMOVE_OF_KEY, err, db_blob(key_id)) != 0
		? -1
		: db_run(db, SQL_REMOVE_LINKS_OF_KEY, err, db_blob(key_id));
}

int session_row_bound(
	struct db *db, struct span key_id, int64_t of_key, int64_t in_all, struct error *err)
{
	return db_run(db, SQL_BOUND_OF_KEY, err, db_blob(key_id), db_i64(of_key)) != 0
		? -1
		: db_run(db, SQL_BOUND, err, db_i64(in_all));
}

int session_row_list(struct db *db, struct span key_id, int64_t now_ms, struct arena *arena,
	struct session_list *out, struct error *err)
{
	struct db_statement *const rows = key_id.len > 0
		? db_query(db, SQL_LIST_OF_KEY, err, db_i64(now_ms), db_i64(SESSIONS_MAX),
			  db_blob(key_id))
		: db_query(db, SQL_LIST, err, db_i64(now_ms), db_i64(SESSIONS_MAX));
	int got;
	out->count = 0;
	while ((got = db_step(rows, err)) == 1 && out->count < SESSIONS_MAX) {
		got = take(rows, arena, &out->sessions[out->count++], err);
		if (got != 0)
			break;
	}
	db_reset(rows);
	return got < 0 ? -1 : 0;
}

int session_row_add_link(
	struct db *db, struct span id, struct span key_id, int64_t ends_ms, struct error *err)
{
	return db_run(db, SQL_ADD_LINK, err, db_blob(id), db_blob(key_id), db_i64(ends_ms));
}

int session_row_find_link(struct db *db, struct span id, int64_t now_ms, struct arena *arena,
	struct span *out_key_id, struct error *err)
{
	return db_find_blob(db, SQL_FIND_LINK, arena, out_key_id, err, db_blob(id), db_i64(now_ms));
}

int session_row_remove_link(struct db *db, struct span id, struct error *err)
{
	return db_run(db, SQL_REMOVE_LINK, err, db_blob(id));
}

int session_row_bound_links(struct db *db, int64_t in_all, struct error *err)
{
	return db_run(db, SQL_BOUND_LINKS, err, db_i64(in_all));
}

int session_row_has_ended(struct db *db, int64_t now_ms, bool *out_has, struct error *err)
{
	const int found = db_exists(db, SQL_HAS_ENDED, err, db_i64(now_ms));
	*out_has = found == 1;
	return found < 0 ? -1 : 0;
}

int session_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err)
{
	if (session_row_has_ended(db, now_ms, out_more, err) != 0)
		return -1;
	if (!*out_more)
		return 0;
	return db_run(db, SQL_SWEEP, err, db_i64(now_ms)) != 0
		? -1
		: db_run(db, SQL_SWEEP_LINKS, err, db_i64(now_ms));
}

static int take(struct db_statement *row, struct arena *arena, struct session_record *out,
	struct error *err)
{
	const struct span id = db_column_blob(row, 0);
	if (id.len != sizeof(out->id))
		return error_set(
			err, ERROR_DAMAGED, "A row of the catalog's table sessions is damaged.");
	memcpy(out->id, id.data, sizeof(out->id));
	out->key_id = arena_copy(arena, db_column_blob(row, 1));
	out->made_ms = db_column_i64(row, 2);
	out->seen_ms = db_column_i64(row, 3);
	out->ends_ms = db_column_i64(row, 4);
	out->address = arena_copy(arena, db_column_blob(row, 5));
	return 0;
}
