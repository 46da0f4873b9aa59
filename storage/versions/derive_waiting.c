#include "storage/versions/derive_waiting.h"

static const char SQL_WAITING_ADD[] = "INSERT INTO derive_waiting (version) VALUES (?1)";
static const char SQL_WAITING_NEXT[] =
	"SELECT version FROM derive_waiting WHERE version > ?1 AND after_ms <= ?2 ORDER BY version LIMIT 1";
static const char SQL_WAITING_PUT_OFF[] =
	"UPDATE derive_waiting SET after_ms = ?2 WHERE version = ?1";
static const char SQL_WAITING_REMOVE[] = "DELETE FROM derive_waiting WHERE version = ?1";
static const char SQL_WAITING_COUNT[] = "SELECT count(*) FROM derive_waiting";

static int run_on_version(struct db *db, const char *sql, int64_t version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, sql, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, version);
	return db_execute(statement, err);
}

int derive_waiting_note(struct store *store, struct db *db, int64_t version, struct span key,
	uint64_t size, struct error *err)
{
	const struct derive_options *const options = store_parts(store)->derive;
	if (!options->enabled || size < options->min_bytes || !span_ends_text(key, ".safetensors"))
		return 0;
	return run_on_version(db, SQL_WAITING_ADD, version, err);
}

int derive_waiting_next(
	struct db *db, int64_t after, int64_t now_ms, int64_t *out_version, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_WAITING_NEXT, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, after);
	db_bind_i64(statement, 2, now_ms);
	const int got = db_step(statement, err);
	*out_version = got == 1 ? db_column_i64(statement, 0) : 0;
	db_reset(statement);
	return got;
}

int derive_waiting_put_off(struct db *db, int64_t version, int64_t until_ms, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_WAITING_PUT_OFF, err);
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, version);
	db_bind_i64(statement, 2, until_ms);
	return db_execute(statement, err);
}

int derive_waiting_remove(struct db *db, int64_t version, struct error *err)
{
	return run_on_version(db, SQL_WAITING_REMOVE, version, err);
}

int derive_waiting_count(struct db *db, int64_t *out_count, struct error *err)
{
	struct db_statement *const statement = db_prepare(db, SQL_WAITING_COUNT, err);
	if (statement == NULL)
		return -1;
	const int got = db_step(statement, err);
	*out_count = got == 1 ? db_column_i64(statement, 0) : 0;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}
