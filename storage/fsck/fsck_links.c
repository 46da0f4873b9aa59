/* Rows that name other rows, as a table of queries. Each gives the rows that name nothing, or whose
 * count is not what it counts: a number for the message, and where the search for keys and steps
 * begins. Every query has a snapshot of its own. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { FINDINGS_MAX = 100 }; /* of one kind; the others are counted */

enum link_origin { FROM_NOTHING, FROM_VERSION, FROM_SET, FROM_STEP };
struct link {
	enum finding_kind kind;
	const char *subject; /* what the first column is the number of */
	const char *detail;
	enum link_origin origin; /* of the second column */
	const char *sql;
};

static const struct link links[] = {
	{FINDING_LINK, "version", "Its bucket is not in the catalog.", FROM_VERSION,
		"SELECT sequence, sequence FROM versions WHERE state IN (1, 2) AND bucket NOT IN"
		" (SELECT id FROM buckets UNION SELECT bucket FROM gone_buckets)"},
	{FINDING_LINK, "part set", "One of its segments names a pack that is not in the catalog.",
		FROM_SET,
		"SELECT DISTINCT part_set, part_set FROM segments WHERE pack NOT IN (SELECT number FROM"
		" packs)"},
	{FINDING_LINK, "part set", "One of its segments names a pack that is being removed.",
		FROM_SET,
		"SELECT DISTINCT part_set, part_set FROM segments WHERE pack IN (SELECT number FROM packs"
		" WHERE state = 2)"},
	{FINDING_LINK, "part set", "One of its segments names chunks behind the end of its pack.",
		FROM_SET,
		"SELECT DISTINCT s.part_set, s.part_set FROM segments s JOIN packs p ON p.number = s.pack"
		" WHERE s.first + s.count > p.chunks"},
	{FINDING_LINK, "version", "It is a derived version without a recipe.", FROM_VERSION,
		"SELECT sequence, sequence FROM versions WHERE kind = 3 AND sequence NOT IN (SELECT"
		" version FROM derivations)"},
	{FINDING_LINK, "version", "A version that it is made of is not in the catalog.",
		FROM_VERSION,
		"SELECT DISTINCT version, version FROM derivation_sources WHERE source NOT IN (SELECT"
		" sequence FROM versions)"},
	{FINDING_LINK, "step row", "An object that it names is not in the catalog.", FROM_STEP,
		"SELECT DISTINCT step, step FROM step_objects WHERE version NOT IN (SELECT sequence FROM"
		" versions)"},
	{FINDING_LINK, "step row", "It is kept and has no manifest.", FROM_STEP,
		"SELECT id, id FROM steps WHERE state = 0 AND id NOT IN (SELECT step FROM"
		" step_manifests)"},
	{FINDING_LINK, "step row", "What it changed was counted, and it is not kept.", FROM_STEP,
		"SELECT step, step FROM step_changes WHERE step NOT IN (SELECT id FROM steps WHERE"
		" state = 0)"},
	{FINDING_LINK, "step row", "Its run is not in the catalog.", FROM_STEP,
		"SELECT id, id FROM steps WHERE run NOT IN (SELECT id FROM runs)"},
	{FINDING_LINK, "fold", "An object that it names is not in the catalog.", FROM_NOTHING,
		"SELECT DISTINCT fold, 0 FROM fold_objects WHERE version NOT IN (SELECT sequence FROM"
		" versions)"},
	{FINDING_LINK, "run", "Its newest step is not in the catalog.", FROM_NOTHING,
		"SELECT r.id, 0 FROM runs r WHERE r.name IS NOT NULL AND r.head IS NOT NULL AND NOT EXISTS"
		" (SELECT 1 FROM steps s WHERE s.run = r.id AND s.step = r.head)"},
	{FINDING_LINK, "run", "Its newest step has another digest than it says.", FROM_NOTHING,
		"SELECT r.id, 0 FROM runs r JOIN steps s ON s.run = r.id AND s.step = r.head"
		" WHERE r.name IS NOT NULL AND r.head_digest <> s.digest"},
	{FINDING_LINK, "run", "Its bucket is not in the catalog.", FROM_NOTHING,
		"SELECT id, 0 FROM runs WHERE name IS NOT NULL AND bucket NOT IN (SELECT id FROM buckets)"},
	{FINDING_LINK, "upload", "Its part set is not in the catalog.", FROM_NOTHING,
		"SELECT id, 0 FROM uploads WHERE state = 0 AND part_set NOT IN (SELECT id FROM part_sets)"},
	{FINDING_XORB, "xorbs of pack",
		"A xorb lies in a pack that is not in the catalog, or behind"
		" its end.",
		FROM_NOTHING,
		"SELECT DISTINCT x.pack, 0 FROM xorbs x LEFT JOIN packs p ON p.number = x.pack"
		" WHERE p.number IS NULL OR x.first + x.count > p.chunks"},
	{FINDING_COUNT, "part set", "It is marked as dead, and something leads to it.", FROM_SET,
		"SELECT p.id, p.id FROM part_sets p WHERE p.is_dead = 1 AND p.id IN (SELECT id FROM"
		" " FSCK_ALL_HOLDERS ")"},
	{FINDING_COUNT, "part set", "It has another number of holders than it says.", FROM_SET,
		"SELECT p.id, p.id FROM part_sets p JOIN (SELECT id, count(*) AS holders FROM"
		" " FSCK_ALL_HOLDERS
		" GROUP BY id) h ON h.id = p.id WHERE p.is_dead = 0 AND p.holders <>"
		" h.holders"},
	{FINDING_COUNT, "part set", "Versions share it, and nothing says how many.", FROM_SET,
		"SELECT h.id, h.id FROM " FSCK_ALL_HOLDERS
		" h WHERE h.id NOT IN (SELECT id FROM part_sets)"
		" GROUP BY h.id HAVING count(*) > 1"},
	/* The plus and the column `bytes` keep this from being read off the index segments_pack. */
	{FINDING_COUNT, "pack", "Other rows lead to it than it says.", FROM_NOTHING,
		"SELECT p.number, 0 FROM packs p LEFT JOIN (SELECT pack, sum(3 * first + count) AS named"
		" FROM segments WHERE bytes >= 0 GROUP BY +pack) s ON s.pack = p.number"
		" WHERE p.named <> coalesce(s.named, 0)"},
	{FINDING_COUNT, "bucket", "It shows another number of files or bytes than its totals say.",
		FROM_NOTHING,
		"SELECT b.id, 0 FROM buckets b LEFT JOIN bucket_totals t ON t.bucket = b.id LEFT JOIN"
		" (SELECT bucket, count(*) AS files, sum(size) AS bytes FROM versions WHERE state = 1 AND"
		" is_marker = 0 GROUP BY bucket) v ON v.bucket = b.id WHERE t.bucket IS NULL"
		" OR t.files <> coalesce(v.files, 0) OR t.bytes <> coalesce(v.bytes, 0)"},
	{FINDING_REMOVAL, "pack", "Its file stands in the list of files to remove.", FROM_NOTHING,
		"SELECT number, 0 FROM packs WHERE coalesce(file, id) IN (SELECT file FROM removals)"},
	{FINDING_LEFTOVER, "part set", "Nothing leads to its segments.", FROM_NOTHING,
		"SELECT DISTINCT s.part_set, 0 FROM segments s WHERE s.part_set NOT IN (SELECT id FROM"
		" " FSCK_ALL_HOLDERS
		") AND s.part_set NOT IN (SELECT id FROM part_sets WHERE is_dead = 1)"
		" AND s.part_set NOT IN (SELECT part_set FROM uploads)"},
	{FINDING_LEFTOVER, "version", "Nothing leads to its inline bytes.", FROM_NOTHING,
		"SELECT version, 0 FROM inline_bytes WHERE version NOT IN (SELECT sequence FROM versions"
		" WHERE kind = 0)"},
};

struct link_row {
	int64_t number;
	int64_t origin;
};

static int check_link(struct fsck *fsck, const struct link *link, struct error *err);
static int list_rows(struct fsck *fsck, const struct link *link, struct link_row *rows,
	size_t *out_count, struct error *err);
static int tell_row(
	struct fsck *fsck, const struct link *link, const struct link_row *row, struct error *err);

int fsck_links(struct fsck *fsck, struct error *err)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (check_link(fsck, &links[i], err) != 0)
			return -1;
	return 0;
}

static int check_link(struct fsck *fsck, const struct link *link, struct error *err)
{
	struct link_row rows[FINDINGS_MAX];
	size_t count = 0;
	if (db_snapshot_begin(fsck->db, err) != 0)
		return -1;
	int result = list_rows(fsck, link, rows, &count, err);
	/* whoever is told may be slow, and a snapshot keeps the log from beginning again */
	db_snapshot_end(fsck->db);
	if (result != 0) /* a table that cannot be read was told before */
		result = fsck_tell_failure(fsck, FINDING_TABLE, "catalog.db", err);
	for (size_t i = 0; i < count && i < FINDINGS_MAX && result == 0; i++)
		result = tell_row(fsck, link, &rows[i], err);
	if (result == 0 && count > FINDINGS_MAX)
		fsck->report->findings[finding_severity_of(link->kind)] += count - FINDINGS_MAX;
	return result;
}

static int list_rows(struct fsck *fsck, const struct link *link, struct link_row *rows,
	size_t *out_count, struct error *err)
{
	struct db_statement *found = db_query(fsck->db, link->sql, err);
	int got;
	while ((got = db_step(found, err)) == 1) {
		if (*out_count < FINDINGS_MAX)
			rows[*out_count] = (struct link_row){.number = db_column_i64(found, 0),
				.origin = db_column_i64(found, 1)};
		++*out_count;
	}
	db_reset(found);
	return got;
}

static int tell_row(
	struct fsck *fsck, const struct link *link, const struct link_row *row, struct error *err)
{
	struct finding finding = {
		.kind = link->kind, .detail = link->detail, .number = row->number};
	snprintf(finding.subject, sizeof(finding.subject), "%s %" PRId64, link->subject,
		row->number);
	if (link->origin == FROM_VERSION)
		reach_add_version(fsck->reach, row->origin);
	else if (link->origin == FROM_SET)
		reach_add_set(fsck->reach, row->origin);
	else if (link->origin == FROM_STEP)
		reach_add_step(fsck->reach, row->origin);
	return fsck_tell_finding(fsck, &finding, err);
}
