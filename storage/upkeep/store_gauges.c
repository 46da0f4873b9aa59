#include "storage/upkeep/store_gauges.h"

#include "storage/buckets/bucket_totals.h"
#include "storage/core/pack_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/run_tables/webhook_row.h"
#include "storage/uploads/upload_row.h"

static int measure_packs(struct metrics *metrics, struct db *db, struct error *err);
static int measure_objects(struct metrics *metrics, struct db *db, struct error *err);
static int measure_counts(struct metrics *metrics, struct db *db, struct error *err);

int store_gauges_measure(struct store *store, struct error *err)
{
	struct metrics *const metrics = store_metrics(store);
	store_measure_disk(store);
	metrics_set(metrics, METRIC_HELPER_JOBS_WAITING,
		(int64_t)helpers_waiting(store_helpers(store)));
	struct db *const db = store_reader_take(store, err);
	int result = -1;
	if (db != NULL)
		result = measure_packs(metrics, db, err);
	if (result == 0)
		result = measure_objects(metrics, db, err);
	if (result == 0)
		result = measure_counts(metrics, db, err);
	store_reader_give(store, db);
	return result;
}

static int measure_packs(struct metrics *metrics, struct db *db, struct error *err)
{
	uint64_t bytes;
	if (pack_row_bytes(db, &bytes, err) != 0)
		return -1;
	metrics_set(metrics, METRIC_PACK_BYTES, (int64_t)bytes);
	return 0;
}

static int measure_objects(struct metrics *metrics, struct db *db, struct error *err)
{
	struct bucket_totals totals;
	if (bucket_totals_sum_all(db, &totals, err) != 0)
		return -1;
	metrics_set(metrics, METRIC_OBJECTS, totals.files);
	metrics_set(metrics, METRIC_OBJECT_BYTES, totals.bytes);
	return 0;
}

static int measure_counts(struct metrics *metrics, struct db *db, struct error *err)
{
	static const struct {
		enum metric metric;
		int (*count)(struct db *db, uint64_t *out, struct error *err);
	} counts[] = {{METRIC_PACKS, pack_row_count}, {METRIC_UPLOADS, upload_row_count},
		{METRIC_RUNS, run_row_count}, {METRIC_STEPS_UNPROVEN, step_row_count_unproven},
		{METRIC_WEBHOOKS_WAITING, webhook_row_count}};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t count = 0;
		if (counts[i].count(db, &count, err) != 0)
			return -1;
		metrics_set(metrics, counts[i].metric, (int64_t)count);
	}
	return 0;
}
