#include "storage/core/store_row.h"

#include <string.h>

#include "base/random.h"

static const char SQL_MAKE[] = "INSERT INTO store (one, id, life) VALUES (1, ?1, 0)";
static const char SQL_READ[] = "SELECT id, life FROM store";
static const char SQL_SET_LIFE[] = "UPDATE store SET life = ?1";

static int take(struct db_statement *row, struct store_identity *out, struct error *err);

int store_row_make(struct db *db, struct error *err)
{
	uint8_t id[STORE_ID_BYTES];
	random_bytes(id, sizeof(id));
	return db_run(db, SQL_MAKE, err, db_blob(span_of(id, sizeof(id))));
}

int store_row_read(struct db *db, struct store_identity *out, struct error *err)
{
	struct db_statement *row = db_query(db, SQL_READ, err);
	int got = db_step(row, err);
	int result = got == 1 ? take(row, out, err) : -1;
	db_reset(row);
	return got == 0 ? error_set(err, ERROR_DAMAGED,
				  "The catalog does not say which store it belongs to.")
			: result;
}

int store_row_set_life(struct db *db, uint64_t life, struct error *err)
{
	return db_run(db, SQL_SET_LIFE, err, db_i64((int64_t)life));
}

static int take(struct db_statement *row, struct store_identity *out, struct error *err)
{
	struct span id = db_column_blob(row, 0);
	int64_t life = db_column_i64(row, 1);
	if (id.len != sizeof(out->id) || life < 0)
		return error_set(err, ERROR_DAMAGED, "The catalog's row of the store is damaged.");
	memcpy(out->id, id.data, sizeof(out->id));
	out->life = (uint64_t)life;
	return 0;
}
