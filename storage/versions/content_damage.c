#include "storage/versions/content_damage.h"

#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"

struct damaged_place {
	int64_t pack; /* its number */
	uint32_t chunk;
};

static int find_place(struct db *db, const struct version *source, struct damaged_place *out,
	struct error *err);

/* Few chunks are damaged, and a set may have very many segments. So the search goes from the
 * damaged chunks to the segments in their packs. */
static const char SQL_FIND[] =
	"SELECT d.pack, d.chunk FROM damaged_chunks d"
	" CROSS JOIN segments s ON s.pack = d.pack AND s.part_set = ?1"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";
/* A version of kind 2 with part set 0 has the set whose number is minus its own. */
static const char SQL_FIND_MADE[] =
	"WITH RECURSIVE made (version) AS (SELECT ?1 UNION SELECT r.source FROM derivation_sources r"
	"  JOIN made m ON r.version = m.version)"
	" SELECT d.pack, d.chunk FROM damaged_chunks d"
	" CROSS JOIN made m JOIN versions v ON v.sequence = m.version"
	" JOIN segments s ON s.pack = d.pack AND s.part_set ="
	"  CASE WHEN v.kind = 2 AND coalesce(v.part_set, 0) = 0 THEN -v.sequence ELSE v.part_set END"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";

int content_damage_check(
	struct db *db, const struct version *source, struct span name, struct error *err)
{
	struct damaged_place place;
	const int got = find_place(db, source, &place, err);
	return got == 1 ? content_damage_error(name, err) : got;
}

int content_damage_check_again(struct store *store, struct db *db, const struct version *source,
	struct span name, struct error *err)
{
	struct pack_store *packs = store_packs(store);
	struct damaged_place place;
	struct pack_record record;
	if (!pack_damage_is_known(packs->damage))
		return 0;
	int got = find_place(db, source, &place, err);
	if (got == 1)
		got = pack_row_find(db, place.pack, &record, err);
	if (got != 1)
		return got;
	const struct pack_run run = {.pack = record.id, .first = place.chunk, .chunks = 1};
	if (pack_store_check_records(packs, &run, err) == 0)
		return 0;
	return pack_damage_is(err) ? content_damage_error(name, err) : -1;
}

int content_damage_error(struct span name, struct error *err)
{
	return error_set(err, ERROR_CONTENT_DAMAGED,
		"The stored bytes of '%.*s' are damaged. Upload the same bytes again, under any"
		" key: this repairs every object that uses them.",
		(int)span_slice(name, 0, 200).len, (const char *)name.data);
}

/* 1 and the place of a damaged chunk to which the version leads. */
static int find_place(struct db *db, const struct version *source, struct damaged_place *out,
	struct error *err)
{
	const bool is_made = source->kind == VERSION_DERIVED;
	if (source->kind == VERSION_INLINE)
		return 0;
	struct db_statement *rows = db_query(db, is_made ? SQL_FIND_MADE : SQL_FIND, err,
		db_i64(is_made ? source->sequence : source->part_set));
	const int got = db_step(rows, err);
	if (got == 1)
		*out = (struct damaged_place){.pack = db_column_i64(rows, 0),
			.chunk = (uint32_t)db_column_i64(rows, 1)};
	db_reset(rows);
	return got;
}
