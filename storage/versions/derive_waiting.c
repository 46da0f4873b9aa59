#include "storage/versions/derive_waiting.h"

static const char SQL_WAITING_ADD[] = "INSERT INTO derive_waiting (version) VALUES (?1)";
static const char SQL_WAITING_NEXT[] =
	"SELECT version FROM derive_waiting WHERE version > ?1 AND after_ms <= ?2 ORDER BY version LIMIT 1";
static const char SQL_WAITING_PUT_OFF[] =
	"UPDATE derive_waiting SET after_ms = ?2 WHERE version = ?1";
static const char SQL_WAITING_REMOVE[] = "DELETE FROM derive_waiting WHERE version = ?1";
static const char SQL_WAITING_COUNT[] = "SELECT count(*) FROM derive_waiting";

int derive_waiting_note(struct store *store, struct db *db, int64_t version, struct span key,
	uint64_t size, struct error *err)
{
	const struct derive_options *const options = store_parts(store)->derive;
	ASSERT(version > 0);
	if (!options->enabled || size < options->min_bytes || !span_ends_text(key, ".safetensors"))
		return 0;
	return db_run(db, SQL_WAITING_ADD, err, db_i64(version));
}

int derive_waiting_next(
	struct db *db, int64_t after, int64_t now_ms, int64_t *out_version, struct error *err)
{
	ASSERT(after >= 0);
	*out_version = 0;
	return db_find_i64(db, SQL_WAITING_NEXT, out_version, err, db_i64(after), db_i64(now_ms));
}

int derive_waiting_put_off(struct db *db, int64_t version, int64_t until_ms, struct error *err)
{
	return db_run(db, SQL_WAITING_PUT_OFF, err, db_i64(version), db_i64(until_ms));
}

int derive_waiting_remove(struct db *db, int64_t version, struct error *err)
{
	return db_run(db, SQL_WAITING_REMOVE, err, db_i64(version));
}

int derive_waiting_count(struct db *db, int64_t *out_count, struct error *err)
{
	*out_count = 0;
	return db_find_i64(db, SQL_WAITING_COUNT, out_count, err) < 0 ? -1 : 0;
}
