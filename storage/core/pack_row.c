/* Damage must not lead to a deletion. So all columns of a row are checked when it is read. The rows
 * of `segments` that lead to a pack are found by the index segments_pack and proven by packs.named
 * (pack_row.h). Each statement that changes the state of a pack names the state it expects, and
 * fails with busy when another change came first. */
#include "storage/core/pack_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PACK_COLUMNS "id, state, length, chunks, file, created_ms"

static const char SQL_PACK_RECORD[] =
	"INSERT INTO packs (id, state, length, chunks, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
	" ON CONFLICT (id) DO UPDATE SET state = excluded.state, length = excluded.length, chunks = excluded.chunks";
static const char SQL_PACK_LIST[] = "SELECT " PACK_COLUMNS " FROM packs ORDER BY number";
static const char SQL_PACK_FIND[] = "SELECT " PACK_COLUMNS " FROM packs WHERE number = ?1";
static const char SQL_PACK_NUMBER[] = "SELECT number FROM packs WHERE id = ?1";
static const char SQL_PACK_NUMBERS[] =
	"SELECT number FROM packs WHERE number > ?1 ORDER BY number LIMIT ?2";
static const char SQL_PACK_COUNT[] = "SELECT count(*) FROM packs";
static const char SQL_PACK_BYTES[] = "SELECT coalesce(sum(length), 0) FROM packs";
static const char SQL_PACK_MARK[] = "SELECT first, count FROM segments WHERE pack = ?1";
static const char SQL_PACK_NAMED[] =
	"SELECT named, EXISTS (SELECT 1 FROM segments WHERE pack = ?1) FROM packs WHERE number = ?1";
static const char SQL_PACK_NAMES[] = "SELECT named FROM packs WHERE number = ?1";
static const char SQL_PACK_NAME[] = "UPDATE packs SET named = named + ?2 WHERE id = ?1";
static const char SQL_PACK_UNNAME[] = "UPDATE packs SET named = named - ?2 WHERE number = ?1";
static const char SQL_PACK_CONDEMN[] =
	"UPDATE packs SET state = 2, condemned_ms = ?2 WHERE number = ?1 AND state = 1";
static const char SQL_PACK_SPARE[] =
	"UPDATE packs SET state = 1, condemned_ms = NULL WHERE number = ?1 AND state = 2";
static const char SQL_PACK_REMOVE[] = "DELETE FROM packs WHERE number = ?1 AND state = 2";
static const char SQL_PACK_MOVE[] =
	"UPDATE packs SET file = ?2, length = ?3 WHERE number = ?1 AND state = 1";

static int read_record(
	struct db *db, struct db_statement *statement, struct pack_record *out, struct error *err);
static int damaged_row(struct db *db, struct error *err);
static int check_names(struct db *db, int64_t number, int64_t names, struct error *err);
static int index_differs(struct db *db, int64_t number, struct error *err);
static int check_one(struct db *db, int result, struct error *err);

int pack_row_record(struct db *db, const struct pack_record *record, struct error *err)
{
	ASSERT(record->state <= PACK_CONDEMNED && record->length <= INT64_MAX);
	return db_run(db, SQL_PACK_RECORD, err, db_blob(span_of(record->id.bytes, PACK_ID_BYTES)),
		db_i64(record->state), db_i64((int64_t)record->length), db_i64(record->chunks),
		db_i64(record->created_ms));
}

int pack_row_find(struct db *db, int64_t number, struct pack_record *out, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PACK_FIND, err, db_i64(number));
	int got = db_step(statement, err);
	if (got == 1 && read_record(db, statement, out, err) != 0)
		got = -1;
	db_reset(statement);
	return got;
}

int pack_row_number(struct db *db, const struct pack_id *id, int64_t *out, struct error *err)
{
	return db_find_i64(
		db, SQL_PACK_NUMBER, out, err, db_blob(span_of(id->bytes, PACK_ID_BYTES)));
}

int pack_row_numbers(struct db *db, int64_t after, int64_t *out, size_t capacity, size_t *out_count,
	struct error *err)
{
	struct db_statement *const statement =
		db_query(db, SQL_PACK_NUMBERS, err, db_i64(after), db_i64((int64_t)capacity));
	int got = 0;
	*out_count = 0;
	while (*out_count < capacity && (got = db_step(statement, err)) == 1)
		out[(*out_count)++] = db_column_i64(statement, 0);
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

int pack_row_bytes(struct db *db, uint64_t *out, struct error *err)
{
	int64_t bytes = 0;
	if (db_find_i64(db, SQL_PACK_BYTES, &bytes, err) < 0)
		return -1;
	*out = bytes > 0 ? (uint64_t)bytes : 0;
	return 0;
}

int pack_row_count(struct db *db, uint64_t *out, struct error *err)
{
	int64_t count = 0;
	const int found = db_find_i64(db, SQL_PACK_COUNT, &count, err);
	*out = (uint64_t)count;
	return found < 0 ? -1 : 0;
}

int pack_row_name(struct db *db, const struct pack_id *id, int64_t names, struct error *err)
{
	return db_run(
		db, SQL_PACK_NAME, err, db_blob(span_of(id->bytes, PACK_ID_BYTES)), db_i64(names));
}

int pack_row_unname(struct db *db, int64_t number, int64_t names, struct error *err)
{
	return db_run(db, SQL_PACK_UNNAME, err, db_i64(number), db_i64(names));
}

int pack_row_mark(struct db *db, int64_t number, uint32_t chunks, uint8_t *live, size_t *out_rows,
	struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PACK_MARK, err, db_i64(number));
	*out_rows = 0;
	int64_t names = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) {
		const int64_t first = db_column_i64(statement, 0);
		const int64_t count = db_column_i64(statement, 1);
		if (first < 0 || count < 1 || first > chunks || count > chunks - first) {
			got = error_set(err, ERROR_CORRUPT,
				"Rows of segments in %s name chunks that pack %lld never had.",
				db_path(db), (long long)number);
			break;
		}
		for (int64_t chunk = first; chunk < first + count; chunk++)
			live[chunk / 8] |= (uint8_t)(1u << (chunk % 8));
		names += pack_row_names_of(first, count);
		++*out_rows;
	}
	db_reset(statement);
	return got < 0 ? -1 : check_names(db, number, names, err);
}

int pack_row_is_named(struct db *db, int64_t number, bool *out_is_named, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PACK_NAMED, err, db_i64(number));
	const int got = db_step(statement, err);
	*out_is_named = got == 1 && db_column_i64(statement, 1) != 0;
	const bool is_right = got != 1 || *out_is_named == (db_column_i64(statement, 0) != 0);
	db_reset(statement);
	return got < 0 ? -1 : is_right ? 0 : index_differs(db, number, err);
}

int pack_row_condemn(struct db *db, int64_t number, int64_t now_ms, struct error *err)
{
	return check_one(
		db, db_run(db, SQL_PACK_CONDEMN, err, db_i64(number), db_i64(now_ms)), err);
}

int pack_row_spare(struct db *db, int64_t number, struct error *err)
{
	return check_one(db, db_run(db, SQL_PACK_SPARE, err, db_i64(number)), err);
}

int pack_row_remove(struct db *db, int64_t number, struct error *err)
{
	return check_one(db, db_run(db, SQL_PACK_REMOVE, err, db_i64(number)), err);
}

int pack_row_move(struct db *db, int64_t number, const struct pack_id *file, uint64_t length,
	struct error *err)
{
	const int result = db_run(db, SQL_PACK_MOVE, err, db_i64(number),
		db_blob(span_of(file->bytes, PACK_ID_BYTES)), db_i64((int64_t)length));
	return check_one(db, result, err);
}

int pack_row_list(
	struct db *db, struct pack_record **out_records, size_t *out_count, struct error *err)
{
	struct db_statement *const statement = db_query(db, SQL_PACK_LIST, err);
	struct pack_record *records = NULL;
	size_t count = 0;
	size_t capacity = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) {
		records = memory_make_room(records, count, &capacity, sizeof(*records));
		if (read_record(db, statement, &records[count], err) != 0) {
			got = -1;
			break;
		}
		count++;
	}
	db_reset(statement);
	if (got != 0) {
		free(records);
		return -1;
	}
	*out_records = records;
	*out_count = count;
	return 0;
}

static int read_record(
	struct db *db, struct db_statement *statement, struct pack_record *out, struct error *err)
{
	const struct span id = db_column_blob(statement, 0);
	const struct span file = db_column_blob(statement, 4);
	const int64_t state = db_column_i64(statement, 1);
	const int64_t length = db_column_i64(statement, 2);
	const int64_t chunks = db_column_i64(statement, 3);
	if (id.len != PACK_ID_BYTES || (file.len != 0 && file.len != PACK_ID_BYTES) ||
		state < PACK_OPEN || state > PACK_CONDEMNED || length < 0 || chunks < 0 ||
		chunks > UINT32_MAX)
		return damaged_row(db, err);
	*out = (struct pack_record){
		.state = (enum pack_state)state,
		.length = (uint64_t)length,
		.chunks = (uint32_t)chunks,
		.created_ms = db_column_i64(statement, 5),
	};
	memcpy(out->id.bytes, id.data, PACK_ID_BYTES);
	if (file.len != 0)
		memcpy(out->file.bytes, file.data, PACK_ID_BYTES);
	return 0;
}

static int damaged_row(struct db *db, struct error *err)
{
	return error_set(
		err, ERROR_CORRUPT, "A row of the table packs in %s is damaged.", db_path(db));
}

static int check_names(struct db *db, int64_t number, int64_t names, struct error *err)
{
	int64_t named = 0;
	const int got = db_find_i64(db, SQL_PACK_NAMES, &named, err, db_i64(number));
	const bool is_right = got == 1 && named == names;
	return got < 0 ? -1 : is_right ? 0 : index_differs(db, number, err);
}

static int index_differs(struct db *db, int64_t number, struct error *err)
{
	return error_set(err, ERROR_CORRUPT,
		"In %s the index segments_pack does not show the rows that lead to pack %lld.",
		db_path(db), (long long)number);
}

/* Checks that the last statement succeeded (`result`) and changed one row. */
static int check_one(struct db *db, int result, struct error *err)
{
	if (result != 0)
		return -1;
	return db_changes(db) == 1
		? 0
		: error_set(err, ERROR_BUSY,
			  "The state of the pack in %s has changed since it was read.",
			  db_path(db));
}
