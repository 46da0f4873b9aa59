/* Sums contain sums. That of a segment row covers the row with its pack's id, that of a part the
 * sums of its segments, and the contents of a set all its part rows. The contents of a single PUT's
 * set cover pack, range and bytes of each segment instead, because the number of that set is not
 * known before the version's row has them. A range reads only the segments that it needs: their own
 * sums and the absence of gaps prove them, and a part that is read whole proves its sum. */
#include "storage/versions/part_growth.h"
#include "storage/versions/part_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/core/segment_losses.h"
#include "storage/db/row_sum.h"

static const char SQL_SET_ROWS[] = "SELECT row_count, holders FROM part_sets WHERE id = ?1";
static const char SQL_SET_SHARE[] =
	"UPDATE part_sets SET holders = holders + 1 WHERE id = ?1 AND is_dead = 0";
static const char SQL_SINGLE_SHARE[] =
	"INSERT INTO part_sets (id, row_count, holders) SELECT ?1, COUNT(*), 2 FROM segments WHERE part_set = ?1"
	" ON CONFLICT (id) DO UPDATE SET holders = part_sets.holders + 1";
static const char SQL_SINGLE_MARK[] =
	"INSERT INTO part_sets (id, row_count, holders, is_dead) VALUES (?1, ?2, 0, 1)";
static const char SQL_SET_UNSHARE[] = "UPDATE part_sets SET holders = holders - 1 WHERE id = ?1";
static const char SQL_SET_MARK[] = "UPDATE part_sets SET is_dead = 1 WHERE id = ?1";
static const char SQL_SET_DELETE[] = "DELETE FROM part_sets WHERE id = ?1";
static const char SQL_SET_DEAD[] = "SELECT id FROM part_sets WHERE is_dead = 1 ORDER BY id LIMIT 1";
static const char SQL_PART_LIST[] =
	"SELECT p.number, p.size, p.md5, p.digest, p.file_hash, p.sum, s.map IS NOT NULL FROM part_sets s JOIN parts p ON p.part_set = s.id"
	" WHERE s.id = ?1 ORDER BY p.number";
static const char SQL_PART_DELETE[] =
	"DELETE FROM parts WHERE part_set = ?1 AND number IN (SELECT p.number FROM parts p WHERE p.part_set = ?1 ORDER BY p.number LIMIT ?2)";
static const char SQL_SEGMENT_ADD[] =
	"INSERT INTO segments (part_set, number, start, pack, first, count, bytes, sum)"
	" SELECT ?1, ?2, ?3, packs.number, ?5, ?6, ?7, ?8 FROM packs WHERE packs.id = ?4";
static const char SQL_SEGMENT_RANGE[] =
	"SELECT s.start, p.id, s.first, s.count, s.bytes, s.sum FROM segments s LEFT JOIN packs p ON p.number = s.pack"
	" WHERE s.part_set = ?1 AND s.number = ?2 AND s.start < ?3 AND s.start >="
	" (SELECT MAX(b.start) FROM segments b WHERE b.part_set = ?1 AND b.number = ?2 AND b.start <= ?4)"
	" ORDER BY s.start";
static const char SQL_SEGMENT_FIRST[] =
	"SELECT s.start, p.id, s.first, s.count, s.bytes, s.sum FROM segments s LEFT JOIN packs p ON p.number = s.pack"
	" WHERE s.part_set = ?1 AND s.number = ?2 AND s.start < ?3 ORDER BY s.start";
static const char SQL_SEGMENT_PACKS[] =
	"SELECT pack, first, count FROM segments WHERE part_set = ?1";
static const char SQL_SEGMENTS_OF_SET[] = "DELETE FROM segments WHERE part_set = ?1";
static const char SQL_PARTS_OF_SET[] = "DELETE FROM parts WHERE part_set = ?1";
static const char SQL_SEGMENT_DELETE[] =
	"DELETE FROM segments WHERE part_set = ?1 AND (number, start) IN"
	" (SELECT s.number, s.start FROM segments s WHERE s.part_set = ?1 ORDER BY s.number, s.start LIMIT ?2)"
	" RETURNING pack, first, count";
static const char SQL_INLINE_ADD[] = "INSERT INTO inline_bytes (version, bytes) VALUES (?1, ?2)";
static const char SQL_INLINE_GET[] = "SELECT bytes FROM inline_bytes WHERE version = ?1";
static const char SQL_INLINE_DELETE[] = "DELETE FROM inline_bytes WHERE version = ?1";

struct segment_row {
	int64_t set;
	int64_t number;
	uint64_t start;
	struct segment segment;
};

struct part_slice { /* bytes [from, to) of a part */
	int64_t set;
	const struct part_row *part;
	uint64_t from;
	uint64_t to;
};

/* PARTS_MAPPED: the set has a map, and nothing was loaded. */
enum { PARTS_MAPPED = 1 };

static uint64_t segment_sum(const struct segment_row *row);
static int add_segment(
	struct db *db, const struct segment_row *row, uint64_t sum, struct error *err);
static uint64_t add_content(uint64_t sum, const struct segment *segment);
static int drop_single(struct db *db, int64_t set, struct error *err);
static int remove_segments(struct db *db, int64_t set, bool *out_few, struct error *err);
static size_t drop_limit(const struct db *db);
static int drop_last(struct db *db, int64_t set, int64_t rows, struct error *err);
static int find_dead(struct db *db, int64_t *out_set, bool *out_found, struct error *err);
static int remove_rows(struct db *db, int64_t set, int64_t *left, struct error *err);
static int remove_some(
	struct db *db, const char *sql, int64_t set, int64_t *left, struct error *err);
static uint64_t least(uint64_t a, uint64_t b);
static int load_segments(
	struct db *db, const struct part_slice *slice, struct part_range *range, struct error *err);
static struct db_statement *query_segments(
	struct db *db, const struct part_slice *slice, struct error *err);
static int read_segment(struct db_statement *statement, struct segment_row *row, uint64_t *out_sum);
static void keep_segment(struct part_range *range, const struct segment *segment);
static int load_listed(
	struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err);
static int load_parts(struct db *db, struct db_statement *statement, int64_t set, uint64_t contents,
	struct part_range *range, struct error *err);

int part_grow(struct db *db, int64_t set, const struct segment *segments, size_t count,
	struct part_row *part, struct error *err)
{
	struct segment_row row = {.set = set, .number = part->number, .start = part->size};
	int64_t names = 0;
	for (size_t i = 0; i < count; i++) {
		row.segment = segments[i];
		const uint64_t sum = segment_sum(&row);
		const bool is_last = i + 1 == count ||
			memcmp(&segments[i].pack, &segments[i + 1].pack, sizeof(struct pack_id)) !=
				0;
		if (add_segment(db, &row, sum, err) != 0)
			return -1;
		names += pack_row_names_of(row.segment.first, row.segment.count);
		if (is_last && pack_row_name(db, &row.segment.pack, names, err) != 0)
			return -1;
		names = is_last ? 0 : names;
		part->sum = row_sum_number(part->sum, (int64_t)sum);
		row.start += row.segment.bytes;
	}
	part->size = row.start;
	return 0;
}

int part_add_segments(struct db *db, int64_t set, const struct stored_part *part,
	struct part_row *out, struct error *err)
{
	*out = (struct part_row){.number = out->number};
	if (part_grow(db, set, part->segments, part->segment_count, out, err) != 0)
		return -1;
	ASSERT(out->size == part->size);
	return 0;
}

uint64_t part_row_add_to(uint64_t contents, const struct part_row *row, struct span md5,
	struct span digest, struct span file_hash)
{
	uint64_t sum = row_sum_number(contents, row->number);
	sum = row_sum_number(sum, (int64_t)row->size);
	sum = row_sum_bytes(sum, md5);
	sum = row_sum_bytes(sum, digest);
	sum = row_sum_bytes(sum, file_hash);
	return row_sum_number(sum, (int64_t)row->sum);
}

int64_t part_single_set(int64_t version)
{
	return -version;
}

uint64_t part_single_contents(const struct segment *segments, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum = add_content(sum, &segments[i]);
	return sum;
}

int part_single_add(struct db *db, int64_t set, const struct stored_part *part, struct error *err)
{
	struct part_row row = {.number = 1};
	ASSERT(set < 0);
	return part_add_segments(db, set, part, &row, err);
}

int part_set_add_single(struct db *db, const struct segment *segments, size_t count,
	int64_t *out_set, uint64_t *out_contents, struct error *err)
{
	struct part_growth growth;
	ASSERT(count > 0);
	if (part_growth_begin(db, count, &growth, err) != 0 ||
		part_growth_add(db, &growth, segments, count, err) != 0)
		return -1;
	*out_set = growth.set;
	return part_growth_end(db, &growth, out_contents, err);
}

int part_set_share(struct db *db, int64_t set, struct error *err)
{
	if (db_run(db, set < 0 ? SQL_SINGLE_SHARE : SQL_SET_SHARE, err, db_i64(set)) != 0)
		return -1;
	if (db_changes(db) != 1)
		return error_set(err, ERROR_CORRUPT,
			"%s: the part set %lld of a version is missing.", db_path(db),
			(long long)set);
	return 0;
}

int part_set_drop(struct db *db, int64_t set, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_SET_ROWS, err, db_i64(set));
	const int got = db_step(row, err);
	const int64_t rows = got == 1 ? db_column_i64(row, 0) : 0;
	const int64_t holders = got == 1 ? db_column_i64(row, 1) : 0;
	db_reset(row);
	if (got != 1)
		return got == 0 && set < 0 ? drop_single(db, set, err) : got;
	return holders > 1 ? db_run(db, SQL_SET_UNSHARE, err, db_i64(set))
			   : drop_last(db, set, rows, err);
}

int part_set_sweep(struct db *db, bool *out_more, struct error *err)
{
	int64_t left = PART_SWEEP_ROWS;
	int64_t set = 0;
	bool found = true;
	*out_more = false;
	while (left > 0 && found) {
		if (find_dead(db, &set, &found, err) != 0)
			return -1;
		*out_more |= found;
		if (found && remove_rows(db, set, &left, err) != 0)
			return -1;
	}
	return 0;
}

int part_set_has_dead(struct db *db, bool *out_has, struct error *err)
{
	int64_t set = 0;
	return find_dead(db, &set, out_has, err);
}

int part_set_damaged(struct db *db, int64_t set, const char *what, struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "%s: part set %lld is damaged: %s.", db_path(db),
		(long long)set, what);
}

int part_load(struct db *db, int64_t set, const struct part_row *part, uint64_t base,
	struct part_range *range, struct error *err)
{
	const uint64_t end = range->offset + range->length;
	if (range->length == 0 || base >= end || base + part->size <= range->offset)
		return 0;
	const struct part_slice slice = {.set = set,
		.part = part,
		.from = range->offset > base ? range->offset - base : 0,
		.to = least(part->size, end - base)};
	return load_segments(db, &slice, range, err);
}

int part_set_load(struct db *db, int64_t set, uint64_t size, uint64_t contents,
	struct part_range *range, struct error *err)
{
	const struct part_row single = {.number = 1, .size = size, .sum = contents};
	ASSERT(range->segments == NULL && range->segment_count == 0);
	const int result = set < 0 ? part_load(db, set, &single, 0, range, err)
				   : load_listed(db, set, contents, range, err);
	if (result != 0) {
		free(range->segments);
		range->segments = NULL;
		range->segment_count = 0;
		range->capacity = 0;
	}
	return result;
}

uint64_t part_inline_contents(struct span bytes)
{
	return row_sum_bytes(0, bytes);
}

int part_inline_add(struct db *db, int64_t version, struct span bytes, struct error *err)
{
	return db_run(db, SQL_INLINE_ADD, err, db_i64(version), db_blob(bytes));
}

int part_inline_drop(struct db *db, int64_t version, struct error *err)
{
	return db_run(db, SQL_INLINE_DELETE, err, db_i64(version));
}

int part_inline_load(struct db *db, int64_t version, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_INLINE_GET, err, db_i64(version));
	const int got = db_step(statement, err);
	if (got == 1 && part_inline_contents(db_column_blob(statement, 0)) == contents) {
		*out = db_column_blob(statement, 0);
		*out_statement = statement;
		return 0;
	}
	db_reset(statement);
	if (got < 0)
		return -1;
	return error_set(err, ERROR_CORRUPT, "%s: the inline bytes of version %lld are %s.",
		db_path(db), (long long)version, got == 1 ? "damaged" : "missing");
}

static uint64_t segment_sum(const struct segment_row *row)
{
	uint64_t sum = row_sum_number(0, row->set);
	sum = row_sum_number(sum, row->number);
	sum = row_sum_number(sum, (int64_t)row->start);
	sum = row_sum_bytes(sum, span_of(row->segment.pack.bytes, PACK_ID_BYTES));
	sum = row_sum_number(sum, row->segment.first);
	sum = row_sum_number(sum, row->segment.count);
	return row_sum_number(sum, (int64_t)row->segment.bytes);
}

static int add_segment(
	struct db *db, const struct segment_row *row, uint64_t sum, struct error *err)
{
	const struct segment *const segment = &row->segment;
	if (db_run(db, SQL_SEGMENT_ADD, err, db_i64(row->set), db_i64(row->number),
		    db_i64((int64_t)row->start),
		    db_blob(span_of(segment->pack.bytes, PACK_ID_BYTES)), db_i64(segment->first),
		    db_i64(segment->count), db_i64((int64_t)segment->bytes),
		    db_i64((int64_t)sum)) != 0)
		return -1;
	if (db_changes(db) != 1) /* invariant 1 */
		return error_set(err, ERROR_CORRUPT,
			"%s: a segment names a pack that the catalog does not know.", db_path(db));
	return 0;
}

static uint64_t add_content(uint64_t sum, const struct segment *segment)
{
	uint64_t next = row_sum_bytes(sum, span_of(segment->pack.bytes, PACK_ID_BYTES));
	next = row_sum_number(next, segment->first);
	next = row_sum_number(next, segment->count);
	return row_sum_number(next, (int64_t)segment->bytes);
}

/* Drops the set of a single PUT that no copy ever shared. */
static int drop_single(struct db *db, int64_t set, struct error *err)
{
	bool few = false;
	if (remove_segments(db, set, &few, err) != 0)
		return -1;
	if (few)
		return 0;
	return db_run(db, SQL_SINGLE_MARK, err, db_i64(set), db_i64(PART_DROP_ROWS + 1));
}

/* Removes the segments of a set of few rows, without the temporary table that SQLite makes for a
 * LIMIT. *out_few is false when the set has more than may be removed here; nothing was removed
 * then. */
static int remove_segments(struct db *db, int64_t set, bool *out_few, struct error *err)
{
	struct {
		int64_t pack, first, chunks;
	} lost[PART_DROP_ROWS];
	struct segment_losses losses = {.db = db};
	const size_t limit = drop_limit(db);
	struct db_statement *const statement = db_query(db, SQL_SEGMENT_PACKS, err, db_i64(set));
	size_t count = 0;
	int got;
	while ((got = db_step(statement, err)) == 1 && count < limit) {
		lost[count].pack = db_column_i64(statement, 0);
		lost[count].first = db_column_i64(statement, 1);
		lost[count++].chunks = db_column_i64(statement, 2);
	}
	db_reset(statement);
	*out_few = got == 0;
	if (got != 0)
		return got < 0 ? -1 : 0;
	for (size_t i = 0; i < count; i++)
		if (segment_losses_add(&losses, lost[i].pack, lost[i].first, lost[i].chunks, err) !=
			0)
			return -1;
	if (segment_losses_end(&losses, err) != 0)
		return -1;
	return db_run(db, SQL_SEGMENTS_OF_SET, err, db_i64(set));
}

/* The rows that may still be removed at once. A change that removes many versions would make others
 * wait until it has removed all their rows. */
static size_t drop_limit(const struct db *db)
{
	const int64_t left = PART_CHANGE_ROWS - db_rows_touched(db);
	return left >= PART_DROP_ROWS   ? PART_DROP_ROWS
		: left > PART_TINY_ROWS ? (size_t)left
					: PART_TINY_ROWS;
}

static int drop_last(struct db *db, int64_t set, int64_t rows, struct error *err)
{
	bool few = rows <= (int64_t)drop_limit(db);
	if (few && remove_segments(db, set, &few, err) != 0)
		return -1;
	if (!few)
		return db_run(db, SQL_SET_MARK, err, db_i64(set));
	if (set > 0 && db_run(db, SQL_PARTS_OF_SET, err, db_i64(set)) != 0)
		return -1;
	return db_run(db, SQL_SET_DELETE, err, db_i64(set));
}

static int find_dead(struct db *db, int64_t *out_set, bool *out_found, struct error *err)
{
	const int got = db_find_i64(db, SQL_SET_DEAD, out_set, err);
	*out_found = got == 1;
	return got < 0 ? -1 : 0;
}

/* Removes up to *left rows: segments, then parts, then the set itself. */
static int remove_rows(struct db *db, int64_t set, int64_t *left, struct error *err)
{
	static const char *const kinds[] = {SQL_SEGMENT_DELETE, SQL_PART_DELETE};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (remove_some(db, kinds[i], set, left, err) != 0)
			return -1;
		if (*left <= 0)
			return 0;
	}
	--*left;
	return db_run(db, SQL_SET_DELETE, err, db_i64(set));
}

/* Removes up to *left rows and takes them off *left. */
static int remove_some(
	struct db *db, const char *sql, int64_t set, int64_t *left, struct error *err)
{
	ASSERT(*left > 0);
	struct db_statement *const statement = db_query(db, sql, err, db_i64(set), db_i64(*left));
	struct segment_losses losses = {.db = db};
	int64_t rows = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) { /* only segments return rows */
		if (segment_losses_add(&losses, db_column_i64(statement, 0),
			    db_column_i64(statement, 1), db_column_i64(statement, 2), err) != 0)
			break;
		rows++;
	}
	*left -= rows > 0 ? rows : db_changes(db);
	db_reset(statement);
	return got != 0 ? -1 : segment_losses_end(&losses, err);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Appends the segments that hold the slice. */
static int load_segments(
	struct db *db, const struct part_slice *slice, struct part_range *range, struct error *err)
{
	const struct part_row *const part = slice->part;
	const uint64_t from = slice->from;
	ASSERT(from <= slice->to);
	struct db_statement *const statement = query_segments(db, slice, err);
	struct segment_row row = {.set = slice->set, .number = part->number};
	uint64_t at = 0;
	uint64_t sums = 0;
	const char *fault = NULL;
	bool first = true;
	int got;
	while (fault == NULL && (got = db_step(statement, err)) == 1) {
		uint64_t sum = 0;
		if (range->max_segments > 0 && range->segment_count == range->max_segments) {
			got = error_set(err, ERROR_NOT_READY,
				"The range lies in more than %zu segments.", range->max_segments);
			break;
		}
		if (read_segment(statement, &row, &sum) != 0)
			fault = "the checksum of a segment does not match";
		else if (first ? row.start > from : row.start != at)
			fault = "segments leave a gap";
		if (range->segment_count == 0)
			range->skip = from - row.start;
		first = false;
		at = row.start + row.segment.bytes;
		sums = slice->set < 0 ? add_content(sums, &row.segment)
				      : row_sum_number(sums, (int64_t)sum);
		keep_segment(range, &row.segment);
	}
	db_reset(statement);
	if (fault == NULL && got < 0)
		return -1;
	if (fault == NULL && at < slice->to)
		fault = "segments are missing";
	if (fault == NULL && from == 0 && slice->to == part->size &&
		(sums != part->sum || at != part->size))
		fault = "the checksum of a part does not match";
	return fault == NULL ? 0 : part_set_damaged(db, slice->set, fault, err);
}

static struct db_statement *query_segments(
	struct db *db, const struct part_slice *slice, struct error *err)
{
	const struct db_value set = db_i64(slice->set);
	const struct db_value number = db_i64(slice->part->number);
	const struct db_value to = db_i64((int64_t)slice->to);
	return slice->from == 0 ? db_query(db, SQL_SEGMENT_FIRST, err, set, number, to)
				: db_query(db, SQL_SEGMENT_RANGE, err, set, number, to,
					  db_i64((int64_t)slice->from));
}

/* Reads one row; -1 when a column is out of range or the sum does not match. */
static int read_segment(struct db_statement *statement, struct segment_row *row, uint64_t *out_sum)
{
	const struct span pack = db_column_blob(statement, 1);
	const int64_t numbers[] = {db_column_i64(statement, 0), db_column_i64(statement, 2),
		db_column_i64(statement, 3), db_column_i64(statement, 4)};
	if (pack.len != PACK_ID_BYTES || numbers[0] < 0 || numbers[1] < 0 ||
		numbers[1] > UINT32_MAX || numbers[2] <= 0 || numbers[2] > UINT32_MAX ||
		numbers[3] <= 0)
		return -1;
	row->start = (uint64_t)numbers[0];
	memcpy(row->segment.pack.bytes, pack.data, PACK_ID_BYTES);
	row->segment.first = (uint32_t)numbers[1];
	row->segment.count = (uint32_t)numbers[2];
	row->segment.bytes = (uint64_t)numbers[3];
	*out_sum = (uint64_t)db_column_i64(statement, 5);
	return *out_sum == segment_sum(row) ? 0 : -1;
}

static void keep_segment(struct part_range *range, const struct segment *segment)
{
	range->segments = memory_make_room(
		range->segments, range->segment_count, &range->capacity, sizeof(*range->segments));
	range->segments[range->segment_count++] = *segment;
}

static int load_listed(
	struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PART_LIST, err, db_i64(set));
	const int result = load_parts(db, statement, set, contents, range, err);
	db_reset(statement);
	return result == PARTS_MAPPED ? part_set_load_by_map(db, set, contents, range, err)
				      : result;
}

static int load_parts(struct db *db, struct db_statement *statement, int64_t set, uint64_t contents,
	struct part_range *range, struct error *err)
{
	uint64_t sum = 0;
	uint64_t base = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) {
		if (db_column_i64(statement, 6) != 0)
			return PARTS_MAPPED;
		const struct part_row row = {db_column_i64(statement, 0),
			(uint64_t)db_column_i64(statement, 1),
			(uint64_t)db_column_i64(statement, 5)};
		sum = part_row_add_to(sum, &row, db_column_blob(statement, 2),
			db_column_blob(statement, 3), db_column_blob(statement, 4));
		if (part_load(db, set, &row, base, range, err) != 0)
			return -1;
		base += row.size;
	}
	if (got != 0)
		return -1;
	return sum == contents
		? 0
		: part_set_damaged(db, set, "the checksum of its parts does not match", err);
}
