#include "storage/buckets/account_row.h"

static const char SQL_ACCOUNT_FIND[] = "SELECT id FROM accounts WHERE namespace = ?1";
static const char SQL_ACCOUNT_ADD[] =
	"INSERT INTO accounts (namespace, created_ms) VALUES (?1, ?2)";

int account_row_find(struct db *db, struct span namespace, int64_t *out_id, struct error *err)
{
	struct db_statement *const find = db_prepare(db, SQL_ACCOUNT_FIND, err);
	if (find == NULL)
		return -1;
	db_bind_blob(find, 1, namespace);
	const int got = db_step(find, err);
	if (got == 1)
		*out_id = db_column_i64(find, 0);
	db_reset(find);
	return got;
}

int account_row_ensure(
	struct db *db, struct span namespace, int64_t now_ms, int64_t *out_id, struct error *err)
{
	const int found = account_row_find(db, namespace, out_id, err);
	if (found != 0)
		return found == 1 ? 0 : -1;
	struct db_statement *const add = db_prepare(db, SQL_ACCOUNT_ADD, err);
	if (add == NULL)
		return -1;
	db_bind_blob(add, 1, namespace);
	db_bind_i64(add, 2, now_ms);
	if (db_execute(add, err) != 0)
		return -1;
	*out_id = db_last_id(db);
	return 0;
}
