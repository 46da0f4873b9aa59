/* xorb_row_put first raises the promise of the hash's row, and inserts a row only if there is none:
 * so a hash keeps its first place. Rows have no checksum, so `first` and `count`, which index the
 * bits of a pack's chunks, are checked whenever a row is read. */
#include "storage/xet/xorb_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_table.h"

static const char SQL_XORB_FIND[] =
	"SELECT p.id, x.pack, x.first, x.count, x.promised_ms FROM xorbs x JOIN packs p ON p.number = x.pack WHERE x.hash = ?1";
static const char SQL_XORB_RAISE[] =
	"UPDATE xorbs SET promised_ms = CASE WHEN promised_ms < ?2 THEN ?2 ELSE promised_ms END WHERE hash = ?1";
static const char SQL_XORB_ADD[] =
	"INSERT INTO xorbs (hash, pack, first, count, promised_ms)"
	" SELECT ?1, packs.number, ?3, ?4, ?5 FROM packs WHERE packs.id = ?2 AND packs.state < 2";
static const char SQL_XORB_PROMISED[] =
	"SELECT 1 FROM xorbs WHERE pack = ?1 AND promised_ms > ?2 LIMIT 1";
static const char SQL_XORB_PROMISE[] =
	"SELECT coalesce(max(promised_ms), 0) FROM xorbs WHERE pack = ?1";
static const char SQL_XORB_PROMISED_RUNS[] =
	"SELECT first, count FROM xorbs WHERE pack = ?1 AND promised_ms > ?2";
/* Looks at each pack once, and only at its last promise, because there may be very many of both. */
static const char SQL_XORB_OF_SET[] =
	"SELECT max((SELECT max(x.promised_ms) FROM xorbs x WHERE x.pack = p.pack)) FROM (SELECT DISTINCT pack FROM segments WHERE part_set = ?1) AS p";
static const char SQL_XORB_OF_PACK[] = "SELECT hash, first, count FROM xorbs WHERE pack = ?1";
static const char SQL_XORB_DROP[] = "DELETE FROM xorbs WHERE hash = ?1";
static const char SQL_XORB_DROP_PACK[] = "DELETE FROM xorbs WHERE pack = ?1";

struct hash_list {
	struct chunk_id *hashes;
	size_t count;
	size_t capacity;
};

static struct span span_of_id(const struct chunk_id *id);
static int read_xorb(struct db *db, struct db_statement *statement, const struct chunk_id *hash,
	struct xorb *out, struct error *err);
static bool run_is_sound(int64_t first, int64_t count);
static int damaged(struct db *db, struct error *err);
static int raise_promise(
	struct db *db, const struct xorb *xorb, bool *out_raised, struct error *err);
static int list_broken(struct db *db, int64_t pack_number, uint32_t chunks, const uint8_t *live,
	struct hash_list *list, struct error *err);
static bool run_is_whole(const uint8_t *live, uint32_t chunks, int64_t first, int64_t count);
static void hash_list_add(struct hash_list *list, const uint8_t *hash);

int xorb_row_find(struct db *db, const struct chunk_id *hash, struct xorb *out, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_XORB_FIND, err, db_blob(span_of_id(hash)));
	int got = db_step(statement, err);
	if (got == 1 && read_xorb(db, statement, hash, out, err) != 0)
		got = -1;
	db_reset(statement);
	return got;
}

int xorb_row_put(struct db *db, const struct xorb *xorb, struct error *err)
{
	bool is_there;
	ASSERT(run_is_sound(xorb->first, xorb->count));
	if (raise_promise(db, xorb, &is_there, err) != 0)
		return -1;
	if (is_there)
		return 0;
	if (db_run(db, SQL_XORB_ADD, err, db_blob(span_of_id(&xorb->hash)),
		    db_blob(span_of(xorb->pack.bytes, PACK_ID_BYTES)), db_i64(xorb->first),
		    db_i64(xorb->count), db_i64(xorb->promised_ms)) != 0)
		return -1;
	return db_changes(db) == 1
		? 0
		: error_set(err, ERROR_NOT_FOUND, "The pack of the xorb is being deleted.");
}

int xorb_row_is_promised(
	struct db *db, int64_t pack_number, int64_t now_ms, bool *out, struct error *err)
{
	const int got = db_exists(db, SQL_XORB_PROMISED, err, db_i64(pack_number), db_i64(now_ms));
	*out = got == 1;
	return got < 0 ? -1 : 0;
}

int xorb_row_promise_of_pack(struct db *db, int64_t pack_number, int64_t *out_ms, struct error *err)
{
	*out_ms = 0;
	return db_find_i64(db, SQL_XORB_PROMISE, out_ms, err, db_i64(pack_number)) < 0 ? -1 : 0;
}

int xorb_row_mark_promised(struct db *db, int64_t pack_number, int64_t now_ms,
	struct xorb_marks *marks, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_XORB_PROMISED_RUNS, err, db_i64(pack_number), db_i64(now_ms));
	int got;
	ASSERT(marks->live != NULL && marks->chunks <= PACK_MAX_CHUNKS);
	while ((got = db_step(statement, err)) == 1) {
		const int64_t first = db_column_i64(statement, 0);
		const int64_t count = db_column_i64(statement, 1);
		if (!run_is_sound(first, count) || first + count > marks->chunks) {
			got = damaged(db, err);
			break;
		}
		for (int64_t chunk = first; chunk < first + count; chunk++)
			marks->live[chunk / 8] |= (uint8_t)(1u << (chunk % 8));
		marks->rows++;
	}
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int xorb_row_promise_of_set(struct db *db, int64_t part_set, int64_t *out_ms, struct error *err)
{
	*out_ms = 0; /* max() of no rows is NULL, which reads as 0 too */
	return db_find_i64(db, SQL_XORB_OF_SET, out_ms, err, db_i64(part_set)) < 0 ? -1 : 0;
}

int xorb_row_drop_of_pack(struct db *db, int64_t pack_number, struct error *err)
{
	return db_run(db, SQL_XORB_DROP_PACK, err, db_i64(pack_number));
}

int xorb_row_drop_broken(
	struct db *db, int64_t pack_number, uint32_t chunks, const uint8_t *live, struct error *err)
{
	struct hash_list list = {0};
	int result = list_broken(db, pack_number, chunks, live, &list, err);
	for (size_t i = 0; i < list.count && result == 0; i++)
		result = db_run(db, SQL_XORB_DROP, err, db_blob(span_of_id(&list.hashes[i])));
	free(list.hashes);
	return result;
}

static struct span span_of_id(const struct chunk_id *id)
{
	return span_of(id->bytes, CHUNK_ID_BYTES);
}

static int read_xorb(struct db *db, struct db_statement *statement, const struct chunk_id *hash,
	struct xorb *out, struct error *err)
{
	const struct span pack = db_column_blob(statement, 0);
	const int64_t first = db_column_i64(statement, 2);
	const int64_t count = db_column_i64(statement, 3);
	if (pack.len != PACK_ID_BYTES || !run_is_sound(first, count))
		return damaged(db, err);
	*out = (struct xorb){
		.hash = *hash,
		.pack_number = db_column_i64(statement, 1),
		.first = (uint32_t)first,
		.count = (uint32_t)count,
		.promised_ms = db_column_i64(statement, 4),
	};
	memcpy(out->pack.bytes, pack.data, PACK_ID_BYTES);
	return 0;
}

static bool run_is_sound(int64_t first, int64_t count)
{
	return first >= 0 && count >= 1 && count <= XORB_MAX_CHUNKS &&
		first <= PACK_MAX_CHUNKS - count;
}

static int damaged(struct db *db, struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "%s: a row of xorbs is damaged.", db_path(db));
}

static int raise_promise(
	struct db *db, const struct xorb *xorb, bool *out_raised, struct error *err)
{
	const int result = db_run(db, SQL_XORB_RAISE, err, db_blob(span_of_id(&xorb->hash)),
		db_i64(xorb->promised_ms));
	*out_raised = result == 0 && db_changes(db) == 1;
	return result;
}

static int list_broken(struct db *db, int64_t pack_number, uint32_t chunks, const uint8_t *live,
	struct hash_list *list, struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_XORB_OF_PACK, err, db_i64(pack_number));
	int got;
	while ((got = db_step(statement, err)) == 1) {
		const struct span hash = db_column_blob(statement, 0);
		const int64_t first = db_column_i64(statement, 1);
		const int64_t count = db_column_i64(statement, 2);
		if (hash.len != CHUNK_ID_BYTES || !run_is_sound(first, count)) {
			got = damaged(db, err);
			break;
		}
		if (!run_is_whole(live, chunks, first, count))
			hash_list_add(list, hash.data);
	}
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static bool run_is_whole(const uint8_t *live, uint32_t chunks, int64_t first, int64_t count)
{
	if (first + count > chunks)
		return false;
	for (int64_t chunk = first; chunk < first + count; chunk++)
		if (!pack_table_lives(live, (uint32_t)chunk))
			return false;
	return true;
}

static void hash_list_add(struct hash_list *list, const uint8_t *hash)
{
	list->hashes =
		memory_make_room(list->hashes, list->count, &list->capacity, sizeof(*list->hashes));
	memcpy(list->hashes[list->count++].bytes, hash, CHUNK_ID_BYTES);
}
