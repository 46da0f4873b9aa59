#include "storage/pack_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char SQL_PACK_RECORD[] =
	"INSERT INTO packs (id, state, length, chunks, has_private_codecs) VALUES (?1, ?2, ?3, ?4, ?5)"
	" ON CONFLICT (id) DO UPDATE SET state = excluded.state, length = excluded.length, chunks = excluded.chunks,"
	" has_private_codecs = excluded.has_private_codecs";
static const char SQL_PACK_LIST[] = "SELECT id, state, length, chunks, has_private_codecs FROM packs ORDER BY number";

int pack_row_record(struct db *const db, const struct pack_record *const record, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PACK_RECORD, err);
	if (statement == NULL)
		return -1;
	db_bind_blob(statement, 1, span_of(record->id.bytes, PACK_ID_BYTES));
	db_bind_i64(statement, 2, record->state);
	db_bind_i64(statement, 3, (int64_t)record->length);
	db_bind_i64(statement, 4, record->chunks);
	db_bind_i64(statement, 5, record->has_private_codecs);
	return db_execute(statement, err);
}

static int read_record(struct db *const db, struct db_statement *const statement, struct pack_record *const out, struct error *const err)
{
	const struct span id = db_column_blob(statement, 0);
	const int64_t state = db_column_i64(statement, 1);
	const int64_t length = db_column_i64(statement, 2);
	const int64_t chunks = db_column_i64(statement, 3);
	if (id.len != PACK_ID_BYTES || state < PACK_OPEN || state > PACK_SEALED || length < 0 || chunks < 0 || chunks > UINT32_MAX)
		return error_set(err, ERROR_CORRUPT, "%s: a row of packs is damaged.", db_path(db));
	memcpy(out->id.bytes, id.data, PACK_ID_BYTES);
	out->state = (enum pack_state)state;
	out->length = (uint64_t)length;
	out->chunks = (uint32_t)chunks;
	out->has_private_codecs = db_column_i64(statement, 4) != 0;
	return 0;
}

int pack_row_list(struct db *const db, struct pack_record **const out_records, size_t *const out_count, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_PACK_LIST, err);
	if (statement == NULL)
		return -1;
	struct pack_record *records = NULL;
	size_t count = 0;
	size_t capacity = 0;
	int got;
	while ((got = db_step(statement, err)) == 1) {
		if (count == capacity) {
			capacity = capacity == 0 ? 64 : capacity * 2;
			records = memory_grow(records, capacity, sizeof(*records));
		}
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
