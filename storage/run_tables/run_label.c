#include "storage/run_tables/run_label.h"

#include <stdio.h>

#include "storage/buckets/bucket_row.h"
#include "storage/run_tables/run_row.h"

enum { ARENA_BYTES = 64 * 1024 };

static bool find_names(struct db *db, int64_t run, struct arena *arena, struct span *out_bucket,
	struct span *out_run);

void run_label_format(struct store *store, int64_t run, char out[RUN_LABEL_BYTES])
{
	struct error ignored = {0};
	struct span bucket;
	struct span name;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct db *db = store_reader_take(store, &ignored);
	if (db != NULL && find_names(db, run, arena, &bucket, &name))
		snprintf(out, RUN_LABEL_BYTES, "%.*s/%.*s", (int)bucket.len,
			(const char *)bucket.data, (int)name.len, (const char *)name.data);
	else
		snprintf(out, RUN_LABEL_BYTES, "number %lld", (long long)run);
	if (db != NULL)
		store_reader_give(store, db);
	arena_free(arena);
}

static bool find_names(struct db *db, int64_t run, struct arena *arena, struct span *out_bucket,
	struct span *out_run)
{
	struct run_row row;
	struct error ignored = {0};
	return run_row_find_id(db, run, arena, &row, out_run, &ignored) == 1 &&
		bucket_row_name(db, row.bucket, arena, out_bucket, &ignored) == 1;
}
