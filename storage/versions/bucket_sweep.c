#include "storage/versions/bucket_sweep.h"

#include "storage/versions/version.h"

enum { SLICE_VERSIONS = 200 };

static const char SQL_SWEEP_MARK[] = "INSERT INTO gone_buckets (bucket) VALUES (?1)";
/* Two statements, because each state has an index that begins with the bucket. */
static const char SQL_SWEEP_OLDER[] =
	"SELECT sequence FROM versions WHERE bucket = ?1 AND state = 2 LIMIT 1";
static const char SQL_SWEEP_CURRENT[] =
	"SELECT sequence FROM versions WHERE bucket = ?1 AND state = 1 LIMIT 1";

int bucket_sweep_mark(struct db *db, int64_t bucket, struct error *err)
{
	return db_run(db, SQL_SWEEP_MARK, err, db_i64(bucket));
}

int bucket_sweep_versions(struct db *db, int64_t bucket, bool *out_more, struct error *err)
{
	*out_more = true;
	for (int i = 0; i < SLICE_VERSIONS; i++) {
		int64_t sequence = 0;
		int found = db_find_i64(db, SQL_SWEEP_OLDER, &sequence, err, db_i64(bucket));
		if (found == 0)
			found = db_find_i64(db, SQL_SWEEP_CURRENT, &sequence, err, db_i64(bucket));
		*out_more = found == 1;
		if (found != 1)
			return found;
		if (version_abandon(db, sequence, err) != 0)
			return -1;
	}
	return 0;
}
