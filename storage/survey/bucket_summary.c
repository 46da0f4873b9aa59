#include "storage/survey/bucket_summary.h"

#include "storage/run_tables/run_row.h"

enum { ARENA_BYTES = 256 * 1024, SLICE_BUCKETS = 50 };

struct summing {
	struct call call; /* first */
	struct bucket *buckets;
	struct bucket_summary *summaries;
	size_t count;
	size_t done;
};

static enum call_next bucket_summary_help(struct call *call, struct error *err);
static int sum_up(struct store *store, const struct bucket *bucket, struct bucket_summary *out,
	struct error *err);
static int count_runs(
	struct store *store, int64_t bucket, struct bucket_summary *out, struct error *err);

static const struct call_kind kind = {.stages = {{.help = bucket_summary_help}}};

struct call *bucket_summary_call(struct store *store, const struct bucket *buckets, size_t count)
{
	struct summing *const summing = call_new(sizeof(*summing), &kind, store, ARENA_BYTES);
	struct arena *const arena = summing->call.arena;
	ASSERT(count > 0 && count <= BUCKET_SUMMARY_MAX);
	summing->count = count;
	summing->summaries = arena_take_array(arena, count, sizeof(*summing->summaries));
	summing->buckets = arena_take_array(arena, count, sizeof(*summing->buckets));
	for (size_t i = 0; summing->buckets != NULL && i < count; i++)
		summing->buckets[i].id = buckets[i].id;
	return &summing->call;
}

const struct bucket_summary *bucket_summary_result(const struct call *call)
{
	return ((const struct summing *)call)->summaries;
}

static enum call_next bucket_summary_help(struct call *call, struct error *err)
{
	struct summing *const summing = (struct summing *)call;
	for (size_t i = 0; i < SLICE_BUCKETS && summing->done < summing->count; i++) {
		const size_t at = summing->done++;
		if (sum_up(call->store, &summing->buckets[at], &summing->summaries[at], err) != 0)
			return CALL_FAILS;
	}
	return summing->done < summing->count ? CALL_AGAIN : CALL_NEXT;
}

static int sum_up(struct store *store, const struct bucket *bucket, struct bucket_summary *out,
	struct error *err)
{
	const struct bucket_question anything_for_everyone = {
		.bucket = bucket->id, .anywhere = true};
	if (bucket_totals_find(store, bucket, 1, &out->totals, err) != 0 ||
		bucket_grant_allows(store, &anything_for_everyone, &out->is_public, err) != 0)
		return -1;
	return count_runs(store, bucket->id, out, err);
}

static int count_runs(
	struct store *store, int64_t bucket, struct bucket_summary *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result =
		run_row_count_in_bucket(db, bucket, BUCKET_SUMMARY_RUNS_MAX, &out->runs, err);
	store_reader_give(store, db);
	return result;
}
