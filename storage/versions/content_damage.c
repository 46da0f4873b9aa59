#include "storage/versions/content_damage.h"

static int find_damage(struct db *db, const struct version *source, struct error *err);

/* Few chunks are damaged, and a set may have very many segments. So the search goes from the
 * damaged chunks to the segments in their packs. */
static const char SQL_FIND[] =
	"SELECT 1 FROM damaged_chunks d"
	" CROSS JOIN segments s ON s.pack = d.pack AND s.part_set = ?1"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";
/* A version of kind 2 with part set 0 has the set whose number is minus its own. */
static const char SQL_FIND_MADE[] =
	"WITH RECURSIVE made (version) AS (SELECT ?1 UNION SELECT r.source FROM derivation_sources r"
	"  JOIN made m ON r.version = m.version)"
	" SELECT 1 FROM damaged_chunks d"
	" CROSS JOIN made m JOIN versions v ON v.sequence = m.version"
	" JOIN segments s ON s.pack = d.pack AND s.part_set ="
	"  CASE WHEN v.kind = 2 AND coalesce(v.part_set, 0) = 0 THEN -v.sequence ELSE v.part_set END"
	" WHERE d.chunk >= s.first AND d.chunk < s.first + s.count LIMIT 1";

int content_damage_check(
	struct db *db, const struct version *source, struct span name, struct error *err)
{
	const int got = find_damage(db, source, err);
	return got == 1 ? content_damage_error(name, err) : got;
}

int content_damage_error(struct span name, struct error *err)
{
	return error_set(err, ERROR_CONTENT_DAMAGED,
		"The stored bytes of '%.*s' are damaged. Upload the same bytes again, under any"
		" key: this repairs every object that uses them.",
		(int)span_slice(name, 0, 200).len, (const char *)name.data);
}

/* 1 when the version leads to a damaged chunk. */
static int find_damage(struct db *db, const struct version *source, struct error *err)
{
	const bool is_made = source->kind == VERSION_DERIVED;
	if (source->kind == VERSION_INLINE)
		return 0;
	struct db_statement *rows = db_query(db, is_made ? SQL_FIND_MADE : SQL_FIND, err,
		db_i64(is_made ? source->sequence : source->part_set));
	const int got = db_step(rows, err);
	db_reset(rows);
	return got;
}
