#include "storage/core/removal_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char SQL_ADD[] =
	"INSERT INTO removals (file) VALUES (?1) ON CONFLICT (file) DO NOTHING";
static const char SQL_DROP[] = "DELETE FROM removals WHERE file = ?1";
static const char SQL_LIST[] = "SELECT file FROM removals ORDER BY file LIMIT ?1";

static int take_all(
	struct db_statement *rows, struct pack_id **files, size_t *count, struct error *err);

int removal_row_add(struct db *db, const struct pack_id *file, struct error *err)
{
	return db_run(db, SQL_ADD, err, db_blob(span_of(file->bytes, PACK_ID_BYTES)));
}

int removal_row_drop(struct db *db, const struct pack_id *file, struct error *err)
{
	return db_run(db, SQL_DROP, err, db_blob(span_of(file->bytes, PACK_ID_BYTES)));
}

int removal_row_list(struct db *db, size_t limit, struct pack_id **out_files, size_t *out_count,
	struct error *err)
{
	*out_files = NULL;
	*out_count = 0;
	struct db_statement *rows =
		db_query(db, SQL_LIST, err, db_i64(limit == 0 ? -1 : (int64_t)limit));
	int result = take_all(rows, out_files, out_count, err);
	db_reset(rows);
	if (result == 0)
		return 0;
	free(*out_files);
	*out_files = NULL;
	return -1;
}

static int take_all(
	struct db_statement *rows, struct pack_id **files, size_t *count, struct error *err)
{
	size_t capacity = 0;
	int got;
	ASSERT(*files == NULL && *count == 0);
	while ((got = db_step(rows, err)) == 1) {
		struct span file = db_column_blob(rows, 0);
		if (file.len != PACK_ID_BYTES)
			return error_set(err, ERROR_DAMAGED,
				"A row of the catalog's table removals is damaged.");
		*files = memory_make_room(*files, *count, &capacity, sizeof(**files));
		memcpy((*files)[(*count)++].bytes, file.data, PACK_ID_BYTES);
	}
	return got;
}
