/* The tables `runs` and `run_schemas`. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_RUN_ROW_H
#define STORAGE_RUN_TABLES_RUN_ROW_H

#include "storage/db/db.h"
#include "storage/run_tables/run_ref.h"
#include "wire/run_settings_message.h"
#include "wire/step_message.h"

struct run_row {
	int64_t id;
	int64_t bucket;
	uint64_t epoch;
	bool has_head;
	uint64_t head;
	struct digest128 head_digest;
	bool has_schema;
	struct digest128 schema_digest;
	struct run_settings settings;
	uint64_t steps; /* number of kept steps */
	uint64_t bytes; /* of all kept forms */
	int64_t created_ms;
	struct run_parent parent;
	struct rollback_message rollback; /* read with the row, never written with it */
};

/* 1 found, 0 absent, -1. */
int run_row_find(
	struct db *db, int64_t bucket, struct span name, struct run_row *out, struct error *err);
/* Finds a run by its row: 1, 0 when it is absent or has ended, -1. `out_name` may be NULL;
 * otherwise the name is copied into the arena. */
int run_row_find_id(struct db *db, int64_t id, struct arena *arena, struct run_row *out,
	struct span *out_name, struct error *err);
/* The account that owns the run's bucket: 1, 0 when there is no such run, -1. */
int run_row_find_account(struct db *db, int64_t run, int64_t *out_account, struct error *err);
/* The next run with an id above `after` that has not ended and keeps more steps than its setting
 * keep_steps. 1, 0, -1. */
int run_row_find_overfull(struct db *db, int64_t after, int64_t *out_id, struct error *err);
/* Fails with no_bucket or no_run. */
int run_row_need(struct db *db, const struct run_ref *ref, struct run_row *out, struct error *err);
/* Fails with no_bucket. */
int run_row_list(struct db *db, const struct run_scan *scan, struct arena *arena,
	struct run_message **out, size_t *out_count, struct error *err);
/* The numbers of the runs that have published last, the latest first, then of those that have not
 * published: up to `limit` of all buckets. */
int run_row_latest(
	struct db *db, size_t limit, int64_t *out_ids, size_t *out_count, struct error *err);
/* Up to `limit` runs of all buckets that follow the run `after` of the bucket `after_bucket`, in
 * byte order of the buckets and then of the runs; `out` has room for them. Only their names: texts
 * lie in the arena. */
struct run_place {
	int64_t id;
	struct bucket_ref bucket;
	struct span owner; /* namespace of the account that has the bucket */
	struct span name;
};
struct run_place_scan {
	struct span after_bucket;
	struct span after;
	size_t limit;
};
int run_row_list_all(struct db *db, const struct run_place_scan *scan, struct arena *arena,
	struct run_place *out, size_t *out_count, struct error *err);
/* 1, 0 when the run is absent or has ended, -1. */
int run_row_find_place(
	struct db *db, int64_t id, struct arena *arena, struct run_place *out, struct error *err);
/* The step that the fleet is to serve: the rollback's, or else the head. */
uint64_t run_row_target(const struct run_row *row);
/* The texts of *out are those of `ref`, borrowed. */
void run_row_message(const struct run_row *row, const struct run_ref *ref, struct run_message *out);
/* Adds the row with its settings and sets row->id. */
int run_row_add(struct db *db, struct span name, struct run_row *row, struct error *err);
/* Writes epoch, head, schema digest, steps and bytes. */
/* Notes for those that follow runs (storage/core/run_feed.h) that the bucket, which had this name,
 * gets another one, and all its runs with it. */
int run_row_note_rename(struct db *db, int64_t bucket, struct span name, struct error *err);
int run_row_update(struct db *db, const struct run_row *row, struct error *err);
/* For a new run that is a fork; called once. */
int run_row_set_parent(
	struct db *db, int64_t run, const struct run_parent *parent, struct error *err);
int run_row_set_schema(struct db *db, int64_t run, struct span schema, struct error *err);
/* Adds the schema's text to `out`. corrupt when it does not match the row's schema_digest. */
int run_row_load_schema(
	struct db *db, const struct run_row *row, struct buffer *out, struct error *err);
int run_row_any_in_bucket(struct db *db, int64_t bucket, bool *out_any, struct error *err);
/* The number of runs that have not ended. */
int run_row_count(struct db *db, uint64_t *out, struct error *err);
/* Counts the runs of a bucket, up to `most`. */
int run_row_count_in_bucket(
	struct db *db, int64_t bucket, uint64_t most, uint64_t *out_count, struct error *err);
/* Takes the name away: only the sweeper still sees the run. */
int run_row_end(struct db *db, int64_t run, struct error *err);
int run_row_find_ended(struct db *db, int64_t *out_run, bool *out_found, struct error *err);
int run_row_remove(struct db *db, int64_t run, struct error *err);

#endif
