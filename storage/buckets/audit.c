/* Counting the rows at each addition would read all of them, so the bounds are held at every
 * PRUNE_EVERYth id: for a while there are a few rows more. */
#include "storage/buckets/audit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"

enum { PRUNE_EVERY = 64, ENTRY_ARENA_BYTES = 64 * 1024 };

static const char SQL_ADD[] =
	"INSERT INTO audit (time_ms, key_id, address, action, subject, detail, request_id)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
/* The action is spelt out: only then does SQLite use the partial index. */
static const char SQL_PRUNE_REFUSED[] =
	"DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE action = x'7369676e5f696e5f72656675736564'"
	" ORDER BY id DESC LIMIT -1 OFFSET ?1)";
static const char SQL_PRUNE_KEY[] =
	"DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE key_id = ?1 ORDER BY id DESC LIMIT -1 OFFSET ?2)";
static const char SQL_PRUNE[] =
	"DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id DESC LIMIT -1 OFFSET ?1)";
static const char SQL_LIST[] =
	"SELECT id, time_ms, key_id, address, action, subject, detail, request_id FROM audit"
	" WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

struct audit_work {
	struct call call; /* first */
	struct audit_entry entry;
};

static int prune(struct db *db, struct span key_id, struct error *err);
static int audit_apply(struct call *call, struct db *db, struct error *err);
static struct span cut(struct span text, struct arena *arena);
static void audit_end(void *owner);
static void take_row(struct db_statement *row, struct arena *arena, struct audit_entry *out);

static const struct call_kind kind = {.stages = {{.apply = audit_apply}}};

struct audit_entry audit_copy(const struct audit_entry *entry, struct arena *arena)
{
	return (struct audit_entry){.time_ms = entry->time_ms,
		.key_id = cut(entry->key_id, arena),
		.address = cut(entry->address, arena),
		.action = cut(entry->action, arena),
		.subject = cut(entry->subject, arena),
		.detail = cut(entry->detail, arena),
		.request_id = cut(entry->request_id, arena)};
}

int audit_add(struct db *db, const struct audit_entry *entry, struct error *err)
{
	int64_t id = 0;
	if (db_insert(db, SQL_ADD, &id, err, db_i64(entry->time_ms), db_blob(entry->key_id),
		    db_blob(entry->address), db_blob(entry->action), db_blob(entry->subject),
		    db_blob(entry->detail), db_blob(entry->request_id)) != 0)
		return -1;
	return id % PRUNE_EVERY != 0 ? 0 : prune(db, entry->key_id, err);
}

void audit_note(struct store *store, const struct audit_entry *entry)
{
	struct call *const call = audit_call(store, entry);
	call_start(call, audit_end, call);
}

struct call *audit_call(struct store *store, const struct audit_entry *entry)
{
	struct audit_work *const work = call_new(sizeof(*work), &kind, store, ENTRY_ARENA_BYTES);
	work->entry = audit_copy(entry, work->call.arena);
	return &work->call;
}

int audit_list(struct store *store, int64_t before, size_t limit, struct arena *arena,
	struct audit_page *out, struct error *err)
{
	ASSERT(limit > 0 && limit <= AUDIT_PAGE_MAX);
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	struct db_statement *const rows = db_query(db, SQL_LIST, err,
		db_i64(before > 0 ? before : INT64_MAX), db_i64((int64_t)limit + 1));
	int got;
	out->count = 0;
	out->has_more = false;
	while ((got = db_step(rows, err)) == 1 && out->count < limit)
		take_row(rows, arena, &out->entries[out->count++]);
	out->has_more = got == 1;
	db_reset(rows);
	store_reader_give(store, db);
	if (got < 0)
		return -1;
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.")
		: 0;
}

static int prune(struct db *db, struct span key_id, struct error *err)
{
	if (db_run(db, SQL_PRUNE_REFUSED, err, db_i64(AUDIT_REFUSED_MAX)) != 0 ||
		db_run(db, SQL_PRUNE_KEY, err, db_blob(key_id), db_i64(AUDIT_OF_KEY_MAX)) != 0)
		return -1;
	return db_run(db, SQL_PRUNE, err, db_i64(AUDIT_MAX));
}

static int audit_apply(struct call *call, struct db *db, struct error *err)
{
	return audit_add(db, &((const struct audit_work *)call)->entry, err);
}

/* Never inside a character of UTF-8. */
static struct span cut(struct span text, struct arena *arena)
{
	size_t len = text.len < AUDIT_TEXT_MAX_BYTES ? text.len : AUDIT_TEXT_MAX_BYTES;
	while (len > 0 && len < text.len && (text.data[len] & 0xC0) == 0x80)
		len--;
	return arena_copy(arena, span_slice(text, 0, len));
}

static void audit_end(void *owner)
{
	struct call *const call = owner;
	struct error err = {0};
	if (call_outcome(call, &err) != 0)
		log_failure(store_log(call->store), LOG_WARNING, NULL, "audit_not_written", &err);
	call_free(call);
}

static void take_row(struct db_statement *row, struct arena *arena, struct audit_entry *out)
{
	*out = (struct audit_entry){.id = db_column_i64(row, 0),
		.time_ms = db_column_i64(row, 1),
		.key_id = arena_copy(arena, db_column_blob(row, 2)),
		.address = arena_copy(arena, db_column_blob(row, 3)),
		.action = arena_copy(arena, db_column_blob(row, 4)),
		.subject = arena_copy(arena, db_column_blob(row, 5)),
		.detail = arena_copy(arena, db_column_blob(row, 6)),
		.request_id = arena_copy(arena, db_column_blob(row, 7))};
}
