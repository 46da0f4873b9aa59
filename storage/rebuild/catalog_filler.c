/* Rows are written in transactions of some MiB, and the log is moved into the file now and then:
 * a catalog may be larger than the memory. */
#include "storage/rebuild/catalog_filler.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/db/db_rows.h"
#include "storage/db/db_sums.h"
#include "storage/journal/snapshot.h"
#include "storage/start/catalog.h"

static const uint64_t BATCH_BYTES = UINT64_C(4) << 20;
static const uint64_t LOG_BYTES = UINT64_C(64) << 20;

struct catalog_filler {
	struct db *db;
	struct db_rows_writer *writer;
	uint64_t pending; /* bytes of rows in the open transaction */
};

static int fill(struct catalog_filler *filler, const struct journal_history *history,
	const struct journal_way *way, struct error *err);
static int catalog_filler_take(void *owner, struct span rows, struct error *err);
static int end_batch(struct catalog_filler *filler, struct error *err);
static int prove(struct db *db, const struct journal_way *way, uint64_t sums, struct error *err);

struct db *catalog_filler_make(const char *path, const struct journal_history *history,
	const struct journal_way *way, struct error *err)
{
	struct catalog_filler filler = {.db = catalog_make(path, way->header.schema, err)};
	if (filler.db == NULL)
		return NULL;
	filler.writer = db_rows_writer_new(filler.db, err);
	const int result = filler.writer == NULL ? -1 : fill(&filler, history, way, err);
	db_rows_writer_free(filler.writer);
	if (result == 0 && db_keep_sums(filler.db, err) == 0)
		return filler.db;
	db_close(filler.db);
	return NULL;
}

static int fill(struct catalog_filler *filler, const struct journal_history *history,
	const struct journal_way *way, struct error *err)
{
	uint64_t sums = 0;
	if (db_begin(filler->db, err) != 0)
		return -1;
	if (snapshot_read(way->snapshot, &sums, catalog_filler_take, filler, err) != 0 ||
		journal_history_walk(history, way, catalog_filler_take, filler, err) != 0) {
		db_rollback(filler->db);
		return -1;
	}
	if (db_commit(filler->db, err) != 0 ||
		db_sums_establish(filler->db, journal_history_last_change(history) + 1, err) != 0)
		return -1;
	return prove(filler->db, way, way->records > 0 ? way->sums : sums, err);
}

static int catalog_filler_take(void *owner, struct span rows, struct error *err)
{
	struct catalog_filler *filler = owner;
	if (db_rows_write(filler->writer, rows, err) != 0)
		return -1;
	filler->pending += rows.len;
	return filler->pending < BATCH_BYTES ? 0 : end_batch(filler, err);
}

static int end_batch(struct catalog_filler *filler, struct error *err)
{
	filler->pending = 0;
	if (db_commit(filler->db, err) != 0)
		return -1;
	if (db_wal_bytes(filler->db) > LOG_BYTES && db_checkpoint_restart(filler->db, err) != 0)
		return -1;
	return db_begin(filler->db, err);
}

static int prove(struct db *db, const struct journal_way *way, uint64_t sums, struct error *err)
{
	struct table_sums *found = memory_new(sizeof(*found));
	int result = db_sums_load(db, found, err);
	if (result == 0 && table_sums_total(found) != sums)
		result = error_set(err, ERROR_CORRUPT,
			"The catalog made from %s is not what the journal says of change %lld.",
			way->snapshot, (long long)way->end.change);
	free(found);
	return result;
}
