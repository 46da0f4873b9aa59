#include "storage/damage_row.h"

#include <string.h>

#include "storage/content_proof.h"

static const char SQL_ADD[] =
	"INSERT INTO damaged_chunks (pack, chunk) SELECT number, ?2 FROM packs WHERE id = ?1"
	" ON CONFLICT (pack, chunk) DO NOTHING";
static const char SQL_DROP[] =
	"DELETE FROM damaged_chunks WHERE pack = (SELECT number FROM packs WHERE id = ?1) AND chunk >= ?2 AND chunk < ?3";
static const char SQL_DROP_PACK[] = "DELETE FROM damaged_chunks WHERE pack = ?1";
static const char SQL_LIST[] =
	"SELECT p.id, d.chunk FROM damaged_chunks d JOIN packs p ON p.number = d.pack ORDER BY d.pack, d.chunk LIMIT ?1";
/* Few chunks are damaged, and a set may have very many segments: so these are found by their pack. */
static const char SQL_FIND[] =
	"SELECT 1 FROM damaged_chunks d CROSS JOIN segments s ON s.pack = d.pack AND s.part_set = ?1"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";
/* Kind 2 with part set 0: the set takes its number from the version. */
static const char SQL_FIND_MADE[] =
	"WITH RECURSIVE made (version) AS (SELECT ?1 UNION SELECT r.source FROM derivation_sources r"
	"  JOIN made m ON r.version = m.version)"
	" SELECT 1 FROM damaged_chunks d CROSS JOIN made m JOIN versions v ON v.sequence = m.version"
	" JOIN segments s ON s.pack = d.pack AND s.part_set ="
	"  CASE WHEN v.kind = 2 AND coalesce(v.part_set, 0) = 0 THEN -v.sequence ELSE v.part_set END"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";

int damage_row_add(struct db *db, const struct chunk_place *place, struct error *err)
{
	struct db_statement *statement = db_prepare(db, SQL_ADD, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, span_of(place->pack.bytes, PACK_ID_BYTES));
	db_bind_i64(statement, 2, place->chunk);
	return db_execute(statement, err);
}

int damage_row_drop(struct db *db, const struct pack_id *pack, uint32_t first, uint32_t count, struct error *err)
{
	struct db_statement *statement = db_prepare(db, SQL_DROP, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, span_of(pack->bytes, PACK_ID_BYTES));
	db_bind_i64(statement, 2, first);
	db_bind_i64(statement, 3, (int64_t)first + count);
	return db_execute(statement, err);
}

int damage_row_drop_pack(struct db *db, int64_t number, struct error *err)
{
	struct db_statement *statement = db_prepare(db, SQL_DROP_PACK, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, number);
	return db_execute(statement, err);
}

static int read_place(struct db_statement *rows, struct chunk_place *out, struct error *err)
{
	struct span id = db_column_blob(rows, 0);
	int64_t chunk = db_column_i64(rows, 1);
	if (id.len != PACK_ID_BYTES || chunk < 0 || chunk > UINT32_MAX)
		return error_set(err, ERROR_DAMAGED, "A row of the catalog's table damaged_chunks is damaged.");
	memcpy(out->pack.bytes, id.data, PACK_ID_BYTES);
	out->chunk = (uint32_t)chunk;
	return 0;
}

int damage_row_each(struct db *db, size_t limit, void (*take)(void *taker, const struct chunk_place *place), void *taker,
	struct error *err)
{
	struct db_statement *rows = db_prepare(db, SQL_LIST, err);
	struct chunk_place place;
	int got;
	if (rows == NULL)
		return -1;
	db_bind_i64(rows, 1, (int64_t)limit);
	while ((got = db_step(rows, err)) == 1) {
		if (read_place(rows, &place, err) != 0) {
			got = -1;
			break;
		}
		take(taker, &place);
	}
	db_reset(rows);
	return got;
}

int damage_row_check(struct db *db, const struct version *source, struct span name, struct error *err)
{
	bool is_made = source->kind == VERSION_DERIVED;
	if (source->kind == VERSION_INLINE)
		return 0;
	struct db_statement *statement = db_prepare(db, is_made ? SQL_FIND_MADE : SQL_FIND, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, is_made ? source->sequence : source->part_set);
	int got = db_step(statement, err);
	db_reset(statement);
	if (got != 1)
		return got;
	return content_is_damaged(name, err);
}
