#include "storage/core/damage_row.h"

#include <string.h>

static const char SQL_ADD[] =
	"INSERT INTO damaged_chunks (pack, chunk) SELECT number, ?2 FROM packs WHERE id = ?1"
	" ON CONFLICT (pack, chunk) DO NOTHING";
static const char SQL_DROP[] =
	"DELETE FROM damaged_chunks WHERE pack = (SELECT number FROM packs WHERE id = ?1) AND chunk >= ?2 AND chunk < ?3";
static const char SQL_DROP_PACK[] = "DELETE FROM damaged_chunks WHERE pack = ?1";
static const char SQL_LIST[] =
	"SELECT p.id, d.chunk FROM damaged_chunks d JOIN packs p ON p.number = d.pack ORDER BY d.pack, d.chunk LIMIT ?1";

static int read_place(struct db_statement *rows, struct chunk_place *out, struct error *err);

int damage_row_add(struct db *db, const struct chunk_place *place, struct error *err)
{
	return db_run(db, SQL_ADD, err, db_blob(span_of(place->pack.bytes, PACK_ID_BYTES)),
		db_i64(place->chunk));
}

int damage_row_drop(struct db *db, const struct pack_id *pack, uint32_t first, uint32_t count,
	struct error *err)
{
	return db_run(db, SQL_DROP, err, db_blob(span_of(pack->bytes, PACK_ID_BYTES)),
		db_i64(first), db_i64((int64_t)first + count));
}

int damage_row_drop_pack(struct db *db, int64_t number, struct error *err)
{
	return db_run(db, SQL_DROP_PACK, err, db_i64(number));
}

int damage_row_each(struct db *db, size_t limit,
	void (*take)(void *taker, const struct chunk_place *place), void *taker, struct error *err)
{
	struct db_statement *rows = db_query(db, SQL_LIST, err, db_i64((int64_t)limit));
	struct chunk_place place;
	int got;
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

static int read_place(struct db_statement *rows, struct chunk_place *out, struct error *err)
{
	struct span id = db_column_blob(rows, 0);
	int64_t chunk = db_column_i64(rows, 1);
	if (id.len != PACK_ID_BYTES || chunk < 0 || chunk > UINT32_MAX)
		return error_set(err, ERROR_DAMAGED,
			"A row of the catalog's table damaged_chunks is damaged.");
	memcpy(out->pack.bytes, id.data, PACK_ID_BYTES);
	out->chunk = (uint32_t)chunk;
	return 0;
}
