/* What a list of buckets tells of each: its totals, how many runs it has, and whether it allows
 * anything to everyone. Any thread. */
#ifndef STORAGE_SURVEY_BUCKET_SUMMARY_H
#define STORAGE_SURVEY_BUCKET_SUMMARY_H

#include "storage/buckets/bucket.h"

enum { BUCKET_SUMMARY_MAX = 1000, BUCKET_SUMMARY_RUNS_MAX = 10000 };

struct bucket_summary {
	struct bucket_totals totals;
	uint64_t runs; /* BUCKET_SUMMARY_RUNS_MAX: as many, or more */
	bool is_public;
};
/* A call (storage/core/call.h) that reads the summaries of 1 to BUCKET_SUMMARY_MAX buckets on a
 * helper. One that is gone meanwhile has zeros. */
struct call *bucket_summary_call(struct store *store, const struct bucket *buckets, size_t count);
/* After its success: in the order of the buckets. Lives as long as the call. */
const struct bucket_summary *bucket_summary_result(const struct call *call);

#endif
