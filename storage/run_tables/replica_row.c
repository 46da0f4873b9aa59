#include "storage/run_tables/replica_row.h"

enum { REMOVE_ROWS = 500 };

static const char SQL_REPLICA_PUT[] =
	"INSERT INTO replicas (run, id, document, lease_ms, since_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
	" ON CONFLICT (run, id) DO UPDATE SET document = ?3, lease_ms = ?4, since_ms = ?5, updated_ms = ?6";
static const char SQL_REPLICA_REMOVE[] = "DELETE FROM replicas WHERE run = ?1 AND id = ?2";
static const char SQL_REPLICA_SCAN[] =
	"SELECT p.run, p.id, p.document, p.lease_ms, p.since_ms, p.updated_ms FROM replicas p"
	" JOIN runs r ON r.id = p.run WHERE r.name IS NOT NULL ORDER BY p.run, p.id";
static const char SQL_REPLICA_REMOVE_OF_RUN[] =
	"DELETE FROM replicas WHERE run = ?1 AND id IN (SELECT id FROM replicas WHERE run = ?1 ORDER BY id LIMIT ?2)";

int replica_row_put(struct db *db, const struct replica_row *row, struct error *err)
{
	return db_run(db, SQL_REPLICA_PUT, err, db_i64(row->run), db_blob(row->id),
		db_blob(row->document), db_i64(row->lease_ms), db_i64(row->since_ms),
		db_i64(row->updated_ms));
}

int replica_row_remove(struct db *db, int64_t run, struct span id, struct error *err)
{
	return db_run(db, SQL_REPLICA_REMOVE, err, db_i64(run), db_blob(id));
}

struct db_statement *replica_row_scan(struct db *db, struct error *err)
{
	return db_query(db, SQL_REPLICA_SCAN, err);
}

void replica_row_read(struct db_statement *scan, struct replica_row *out)
{
	*out = (struct replica_row){
		.run = db_column_i64(scan, 0),
		.id = db_column_blob(scan, 1),
		.document = db_column_blob(scan, 2),
		.lease_ms = db_column_i64(scan, 3),
		.since_ms = db_column_i64(scan, 4),
		.updated_ms = db_column_i64(scan, 5),
	};
}

int replica_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err)
{
	const int result =
		db_run(db, SQL_REPLICA_REMOVE_OF_RUN, err, db_i64(run), db_i64(REMOVE_ROWS));
	*out_more = result == 0 && db_changes(db) == REMOVE_ROWS;
	return result;
}
