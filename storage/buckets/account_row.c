#include "storage/buckets/account_row.h"

static const char SQL_ACCOUNT_FIND[] = "SELECT id FROM accounts WHERE namespace = ?1";
static const char SQL_ACCOUNT_ADD[] =
	"INSERT INTO accounts (namespace, created_ms) VALUES (?1, ?2)";

int account_row_find(struct db *db, struct span namespace, int64_t *out_id, struct error *err)
{
	return db_find_i64(db, SQL_ACCOUNT_FIND, out_id, err, db_blob(namespace));
}

int account_row_ensure(
	struct db *db, struct span namespace, int64_t now_ms, int64_t *out_id, struct error *err)
{
	const int found = account_row_find(db, namespace, out_id, err);
	if (found != 0)
		return found == 1 ? 0 : -1;
	return db_insert(db, SQL_ACCOUNT_ADD, out_id, err, db_blob(namespace), db_i64(now_ms));
}
