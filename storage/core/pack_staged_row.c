#include "storage/core/pack_staged_row.h"

#include "storage/packs/pack_format.h"

static const char SQL_ADD[] = "INSERT INTO pack_staged (pack, start, bytes) VALUES (?1, ?2, ?3)";
static const char SQL_DROP[] = "DELETE FROM pack_staged WHERE pack = ?1";
static const char SQL_READ[] =
	"SELECT start, bytes FROM pack_staged WHERE pack = ?1 ORDER BY start";

struct staged_bytes {
	struct pack_bytes bytes; /* first */
	struct db_statement *rows;
	uint64_t length; /* of the rows so far */
};

static int restore_one(struct db *db, struct pack_store *packs, const struct pack_record *record,
	struct error *err);
static struct db_value id_value(const struct pack_id *pack);
static int pack_staged_row_next(struct pack_bytes *bytes, struct span *out, struct error *err);

int pack_staged_row_add(struct db *db, const struct pack_staged *staged, struct error *err)
{
	ASSERT(staged->start <= INT64_MAX && staged->bytes.len > 0);
	return db_run(db, SQL_ADD, err, id_value(&staged->pack), db_i64((int64_t)staged->start),
		db_blob(staged->bytes));
}

int pack_staged_row_drop(struct db *db, const struct pack_id *pack, struct error *err)
{
	return db_run(db, SQL_DROP, err, id_value(pack));
}

void pack_staged_row_restore(struct db *db, struct pack_store *packs,
	const struct pack_record *records, size_t count, struct log *log)
{
	for (size_t i = 0; pack_store_is_far(packs) && i < count; i++) {
		char id[PACK_ID_TEXT_BYTES];
		struct error err = {0};
		if (records[i].state != PACK_OPEN || restore_one(db, packs, &records[i], &err) == 0)
			continue;
		pack_id_format(&records[i].id, id);
		error_wrap(&err, "Pack %s", id);
		log_failure(log, LOG_ERROR, NULL, "pack_damaged", &err);
	}
}

static int restore_one(struct db *db, struct pack_store *packs, const struct pack_record *record,
	struct error *err)
{
	struct staged_bytes staged = {.bytes.next = pack_staged_row_next,
		.rows = db_query(db, SQL_READ, err, id_value(&record->id))};
	const int result = pack_store_shared_restore(packs, record, &staged.bytes, err);
	db_reset(staged.rows);
	return result;
}

static struct db_value id_value(const struct pack_id *pack)
{
	return db_blob(span_of(pack->bytes, PACK_ID_BYTES));
}

static int pack_staged_row_next(struct pack_bytes *bytes, struct span *out, struct error *err)
{
	struct staged_bytes *const staged = (struct staged_bytes *)bytes;
	const int got = db_step(staged->rows, err);
	if (got != 1)
		return got;
	const int64_t start = db_column_i64(staged->rows, 0);
	*out = db_column_blob(staged->rows, 1);
	if (start < 0 || (uint64_t)start != staged->length || out->len == 0)
		return error_set(err, ERROR_CORRUPT,
			"its rows in the table pack_staged do not follow each other.");
	staged->length += out->len;
	return 1;
}
