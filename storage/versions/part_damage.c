#include "storage/versions/part_damage.h"

#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"

static int find_damaged(
	struct store *store, struct db *db, struct db_statement *rows, struct error *err);
static int is_damaged(
	struct store *store, struct db *db, int64_t pack, uint32_t chunk, struct error *err);

/* Few chunks are damaged, so the search begins with them. */
static const char SQL_FIND[] =
	"SELECT s.number, d.pack, d.chunk FROM damaged_chunks d"
	" CROSS JOIN segments s ON s.pack = d.pack AND s.part_set = ?1"
	" WHERE s.number >= ?2 AND d.chunk >= s.first AND d.chunk < s.first + s.count"
	" ORDER BY s.number";

int part_damage_find(struct store *store, struct db *db, int64_t set, uint32_t from,
	uint32_t *out_number, struct error *err)
{
	if (!pack_damage_is_known(store_packs(store)->damage))
		return 0;
	struct db_statement *rows = db_query(db, SQL_FIND, err, db_i64(set), db_i64(from));
	const int got = find_damaged(store, db, rows, err);
	if (got == 1)
		*out_number = (uint32_t)db_column_i64(rows, 0);
	db_reset(rows);
	return got;
}

/* Steps to a row whose chunk still is damaged. 1 found, 0 none, -1. */
static int find_damaged(
	struct store *store, struct db *db, struct db_statement *rows, struct error *err)
{
	int got = 1;
	int found = 0;
	while (found == 0 && (got = db_step(rows, err)) == 1)
		found = is_damaged(store, db, db_column_i64(rows, 1),
			(uint32_t)db_column_i64(rows, 2), err);
	return found != 0 ? found : got;
}

static int is_damaged(
	struct store *store, struct db *db, int64_t pack, uint32_t chunk, struct error *err)
{
	struct pack_record record;
	const int got = pack_row_find(db, pack, &record, err);
	if (got != 1)
		return got;
	const struct pack_run run = {.pack = record.id, .first = chunk, .chunks = 1};
	if (pack_store_check_records(store_packs(store), &run, err) == 0)
		return 0;
	return pack_damage_is(err) ? 1 : -1;
}
