/* Each part row of an upload has a sum, which the map repeats. So the map proves the rows, and the
 * version's contents prove the map. Completing writes only the map. Parts that it does not list
 * stay until upload_set_trim removes them, because a change touches about 1,000 rows at most; reads
 * skip them. */
#include "storage/versions/upload_set.h"

#include <string.h>

#include "base/encode.h"
#include "storage/core/segment_losses.h"
#include "storage/db/row_sum.h"
#include "storage/versions/part_internal.h"

static const char SQL_SET_ADD[] = "INSERT INTO part_sets (row_count) VALUES (0)";
static const char SQL_SET_COUNT[] = "UPDATE part_sets SET row_count = row_count + ?2 WHERE id = ?1";
static const char SQL_SET_CLOSE[] = "UPDATE part_sets SET map = ?2 WHERE id = ?1";
static const char SQL_SET_MAP[] = "SELECT map FROM part_sets WHERE id = ?1";
static const char SQL_PART_PUT[] =
	"INSERT INTO parts (part_set, number, size, md5, digest, file_hash, sum, checksum_value, modified_ms)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char SQL_PART_SCAN[] =
	"SELECT number, size, md5, digest, file_hash, sum, checksum_value, modified_ms FROM parts"
	" WHERE part_set = ?1 AND number >= ?2 ORDER BY number";
static const char SQL_PART_FIND[] =
	"SELECT number, size, md5, digest, file_hash, sum, checksum_value, modified_ms FROM parts WHERE part_set = ?1 AND number = ?2";
static const char SQL_PART_NUMBERS[] =
	"SELECT number FROM parts WHERE part_set = ?1 ORDER BY number";
static const char SQL_PART_REMOVE[] = "DELETE FROM parts WHERE part_set = ?1 AND number = ?2";
static const char SQL_SEGMENTS_REMOVE[] =
	"DELETE FROM segments WHERE part_set = ?1 AND number = ?2 RETURNING pack, first, count";

enum { TRIM_PARTS = 256 };
struct unlisted { /* parts that a map does not list */
	uint32_t numbers[TRIM_PARTS];
	size_t count;
};

static int remove_part(
	struct db *db, int64_t set, uint32_t number, int64_t *removed, struct error *err);
static int remove_rows(struct db *db, const char *sql, int64_t set, uint32_t number,
	int64_t *removed, struct error *err);
static int add_row(struct db *db, int64_t set, const struct stored_part *stored,
	const struct upload_set_part *part, uint64_t segments_sum, struct error *err);
static void copy_column(struct db_statement *statement, int column, uint8_t *into, size_t capacity);
static int load_range(
	struct db *db, int64_t set, struct span map, struct part_range *range, struct error *err);
static int load_mapped(struct db *db, struct db_statement *scan, int64_t set, struct span map,
	struct part_range *range, struct error *err);
static int gather_unlisted(
	struct db *db, int64_t set, struct span map, struct unlisted *out, struct error *err);
static int find_unlisted(
	struct db_statement *numbers, struct span map, uint32_t *out, struct error *err);

void upload_set_describe(const struct stored_part *stored, uint32_t number, int64_t modified_ms,
	struct upload_set_part *out)
{
	*out = (struct upload_set_part){
		.number = number,
		.size = stored->size,
		.has_md5 = stored->has_md5,
		.digest = stored->digest,
		.checksum_len = stored->checksum.len,
		.modified_ms = modified_ms,
	};
	memcpy(out->md5, stored->md5, sizeof(out->md5));
	memcpy(out->checksum, stored->checksum.bytes, CHECKSUM_MAX_BYTES);
}

struct checksum upload_set_checksum(
	const struct upload_set_part *part, enum checksum_algorithm algorithm)
{
	struct checksum checksum = {.algorithm = CHECKSUM_NONE};
	ASSERT(part->checksum_len <= CHECKSUM_MAX_BYTES);
	if (part->checksum_len == 0 || algorithm == CHECKSUM_NONE)
		return checksum;
	checksum.algorithm = algorithm;
	checksum.len = part->checksum_len;
	memcpy(checksum.bytes, part->checksum, part->checksum_len);
	return checksum;
}

void upload_set_etag(const struct upload_set_part *part, char out[OBJECT_ETAG_BYTES])
{
	const struct span bytes = part->has_md5
		? span_of(part->md5, sizeof(part->md5))
		: span_of(part->digest.bytes, sizeof(part->digest.bytes));
	encode_hex(bytes, out);
	if (!part->has_md5)
		memcpy(out + 2 * bytes.len, "-1", sizeof("-1"));
}

int upload_set_add(struct db *db, int64_t *out_set, struct error *err)
{
	return db_insert(db, SQL_SET_ADD, out_set, err);
}

int upload_set_put(struct db *db, int64_t set, const struct stored_part *stored,
	const struct upload_set_part *part, struct error *err)
{
	int64_t removed = 0;
	struct part_row row = {.number = part->number};
	ASSERT(!stored->is_inline && part->number > 0 && part->size == stored->size);
	if (remove_part(db, set, part->number, &removed, err) != 0 ||
		part_add_segments(db, set, stored, &row, err) != 0 ||
		add_row(db, set, stored, part, row.sum, err) != 0)
		return -1;
	return db_run(db, SQL_SET_COUNT, err, db_i64(set),
		db_i64((int64_t)stored->segment_count + 1 - removed));
}

int upload_set_close(struct db *db, int64_t set, struct span map, struct error *err)
{
	ASSERT(map.len > 0);
	return db_run(db, SQL_SET_CLOSE, err, db_i64(set), db_blob(map));
}

struct db_statement *upload_set_scan(struct db *db, int64_t set, uint32_t from, struct error *err)
{
	return db_query(db, SQL_PART_SCAN, err, db_i64(set), db_i64(from));
}

void upload_set_read(struct db_statement *scan, struct upload_set_part *out)
{
	const struct span md5 = db_column_blob(scan, 2);
	*out = (struct upload_set_part){
		.number = (uint32_t)db_column_i64(scan, 0),
		.size = (uint64_t)db_column_i64(scan, 1),
		.has_md5 = md5.len == sizeof(out->md5),
		.modified_ms = db_column_i64(scan, 7),
	};
	copy_column(scan, 2, out->md5, sizeof(out->md5));
	copy_column(scan, 3, out->digest.bytes, sizeof(out->digest.bytes));
	copy_column(scan, 6, out->checksum, sizeof(out->checksum));
	const size_t checksum_len = db_column_blob(scan, 6).len;
	out->checksum_len =
		(uint8_t)(checksum_len > CHECKSUM_MAX_BYTES ? CHECKSUM_MAX_BYTES : checksum_len);
	const struct part_row row = {out->number, out->size, (uint64_t)db_column_i64(scan, 5)};
	out->sum = part_row_add_to(
		0, &row, db_column_blob(scan, 2), db_column_blob(scan, 3), db_column_blob(scan, 4));
	out->sum = row_sum_bytes(out->sum, db_column_blob(scan, 6));
	out->sum = row_sum_number(out->sum, out->modified_ms);
}

int upload_set_map(struct db *db, int64_t set, uint64_t contents, struct span *out,
	struct db_statement **out_statement, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_SET_MAP, err, db_i64(set));
	const int got = db_step(statement, err);
	const bool has_map = got == 1 && !db_column_is_null(statement, 0);
	if (has_map) {
		*out = db_column_blob(statement, 0);
		*out_statement = statement;
		if (part_map_contents(*out) == contents && part_map_is_sound(*out))
			return 0;
	}
	db_reset(statement);
	if (got < 0)
		return -1;
	if (got == 1 && !has_map)
		return 1;
	return part_set_damaged(db, set,
		got == 1 ? "the checksum of its map does not match" : "it is missing", err);
}

int upload_set_find(struct db *db, int64_t set, const struct part_map_entry *entry,
	struct upload_set_part *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_PART_FIND, err, db_i64(set), db_i64(entry->number));
	const int got = db_step(row, err);
	if (got == 1)
		upload_set_read(row, out);
	db_reset(row);
	if (got < 0)
		return -1;
	if (got == 0 || out->sum != entry->sum || out->size != entry->end - entry->start)
		return part_set_damaged(db, set,
			got == 1 ? "a part is not what the map says"
				 : "a part of the map is missing",
			err);
	return 0;
}

int part_set_load_by_map(
	struct db *db, int64_t set, uint64_t contents, struct part_range *range, struct error *err)
{
	struct span map;
	struct db_statement *statement = NULL;
	const int got = upload_set_map(db, set, contents, &map, &statement, err);
	if (got == 1)
		return part_set_damaged(db, set, "its map is missing", err);
	if (got != 0)
		return -1;
	const int result = load_range(db, set, map, range, err);
	db_reset(statement);
	return result;
}

int upload_set_trim(struct db *db, int64_t set, size_t limit, bool *out_more, struct error *err)
{
	struct unlisted unlisted = {.count = 0};
	struct span map = {NULL, 0};
	ASSERT(limit > 0);
	struct db_statement *const statement = db_query(db, SQL_SET_MAP, err, db_i64(set));
	int result = db_step(statement, err);
	if (result == 1 && !db_column_is_null(statement, 0))
		map = db_column_blob(statement, 0);
	/* without a sound map the object is gone with its set, or the map is damaged */
	if (map.len > 0 && part_map_is_sound(map))
		result = gather_unlisted(db, set, map, &unlisted, err);
	db_reset(statement);
	int64_t removed = 0;
	size_t done = 0;
	for (; result >= 0 && done < unlisted.count && removed < (int64_t)limit; done++)
		result = remove_part(db, set, unlisted.numbers[done], &removed, err);
	*out_more = done > 0;
	if (result < 0 || done == 0)
		return result < 0 ? -1 : 0;
	return db_run(db, SQL_SET_COUNT, err, db_i64(set), db_i64(-removed));
}

static int remove_part(
	struct db *db, int64_t set, uint32_t number, int64_t *removed, struct error *err)
{
	if (remove_rows(db, SQL_SEGMENTS_REMOVE, set, number, removed, err) != 0)
		return -1;
	return remove_rows(db, SQL_PART_REMOVE, set, number, removed, err);
}

static int remove_rows(struct db *db, const char *sql, int64_t set, uint32_t number,
	int64_t *removed, struct error *err)
{
	struct db_statement *const statement = db_query(db, sql, err, db_i64(set), db_i64(number));
	struct segment_losses losses = {.db = db};
	int64_t rows = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) { /* only segments return rows */
		if (segment_losses_add(&losses, db_column_i64(statement, 0),
			    db_column_i64(statement, 1), db_column_i64(statement, 2), err) != 0)
			break;
		rows++;
	}
	*removed += rows > 0 ? rows : db_changes(db);
	db_reset(statement);
	return got != 0 ? -1 : segment_losses_end(&losses, err);
}

static int add_row(struct db *db, int64_t set, const struct stored_part *stored,
	const struct upload_set_part *part, uint64_t segments_sum, struct error *err)
{
	return db_run(db, SQL_PART_PUT, err, db_i64(set), db_i64(part->number),
		db_i64((int64_t)part->size),
		db_blob(span_of(part->md5, part->has_md5 ? sizeof(part->md5) : 0)),
		db_blob(span_of(part->digest.bytes, sizeof(part->digest.bytes))),
		db_blob(span_of(stored->file_hash.bytes, CHUNK_ID_BYTES)),
		db_i64((int64_t)segments_sum), db_blob(span_of(part->checksum, part->checksum_len)),
		db_i64(part->modified_ms));
}

static void copy_column(struct db_statement *statement, int column, uint8_t *into, size_t capacity)
{
	const struct span bytes = db_column_blob(statement, column);
	if (bytes.len > 0)
		memcpy(into, bytes.data, bytes.len < capacity ? bytes.len : capacity);
}

static int load_range(
	struct db *db, int64_t set, struct span map, struct part_range *range, struct error *err)
{
	const size_t index = part_map_find(map, range->offset);
	if (range->length == 0 || index == part_map_count(map))
		return 0;
	struct db_statement *const scan =
		upload_set_scan(db, set, part_map_entry(map, index).number, err);
	const int result = load_mapped(db, scan, set, map, range, err);
	db_reset(scan);
	return result;
}

/* Loads the range from rows of the scan that the map lists; the scan begins at its first part. */
static int load_mapped(struct db *db, struct db_statement *scan, int64_t set, struct span map,
	struct part_range *range, struct error *err)
{
	const uint64_t end = range->offset + range->length;
	size_t index = part_map_find(map, range->offset);
	struct upload_set_part part;
	int got = 0;
	while (index < part_map_count(map) && (got = db_step(scan, err)) == 1) {
		const struct part_map_entry entry = part_map_entry(map, index);
		if (entry.start >= end)
			return 0;
		upload_set_read(scan, &part);
		if (part.number < entry.number) /* not listed, and not yet removed */
			continue;
		if (part.number != entry.number || part.sum != entry.sum ||
			part.size != entry.end - entry.start)
			return part_set_damaged(db, set, "a part is not what the map says", err);
		const struct part_row row = {
			part.number, part.size, (uint64_t)db_column_i64(scan, 5)};
		if (part_load(db, set, &row, entry.start, range, err) != 0)
			return -1;
		index++;
	}
	if (got < 0)
		return -1;
	return index == part_map_count(map)
		? 0
		: part_set_damaged(db, set, "a part of the map is missing", err);
}

/* Gathers numbers first: rows are not removed under a statement that walks over them. */
static int gather_unlisted(
	struct db *db, int64_t set, struct span map, struct unlisted *out, struct error *err)
{
	struct db_statement *const numbers = db_query(db, SQL_PART_NUMBERS, err, db_i64(set));
	int got = 1;
	out->count = 0;
	while (out->count < TRIM_PARTS &&
		(got = find_unlisted(numbers, map, &out->numbers[out->count], err)) == 1)
		out->count++;
	db_reset(numbers);
	return got < 0 ? -1 : 0;
}

/* Steps to the next part that the map does not list. 1 found, 0 none, -1. */
static int find_unlisted(
	struct db_statement *numbers, struct span map, uint32_t *out, struct error *err)
{
	int got;
	while ((got = db_step(numbers, err)) == 1) {
		const uint32_t number = (uint32_t)db_column_i64(numbers, 0);
		const size_t index = part_map_find_number(map, number);
		if (index == part_map_count(map) || part_map_entry(map, index).number != number) {
			*out = number;
			break;
		}
	}
	return got;
}
