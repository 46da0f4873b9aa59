/* Runs at a glance, for overviews: the run itself, what its newest step weighs, and how far its
 * fleet is. */
#ifndef STORAGE_OVERVIEW_RUN_GLANCE_H
#define STORAGE_OVERVIEW_RUN_GLANCE_H

#include "storage/core/call.h"
#include "wire/replica_message.h"
#include "wire/step_message.h"

struct run_glance {
	int64_t id;
	int64_t bucket;
	struct span owner; /* namespace of the account that has the bucket */
	struct run_message run;
	/* about the head, if there is one: */
	int64_t head_created_ms;
	uint64_t full_bytes; /* of its whole checkpoint */
	bool has_delta;
	uint64_t delta_bytes;
	enum step_proof verified;
	/* about the replicas: */
	struct fleet_counts counts;
	uint64_t behind;      /* those with a lease below the step that they are to serve */
	uint64_t ahead;       /* those above it */
	uint64_t lag_steps;   /* of the one that is farthest from that step */
	uint64_t lag_seconds; /* the same in time, as in struct replica_message */
};

/* A call (storage/core/call.h): up to `limit` runs, at least 1, of all buckets that follow the run
 * `after` of the bucket `after_bucket`, in byte order of buckets and then of runs. The names are
 * copied. */
struct run_glance_scan {
	struct span after_bucket;
	struct span after;
	bool names_only; /* sets of each only its numbers, its owner and its names */
	size_t limit;
};
struct call *run_glance_call(struct store *store, const struct run_glance_scan *scan);
/* Once the call has succeeded; they live as long as the call. */
const struct run_glance *run_glance_result(const struct call *call, size_t *out_count);

/* One run by the number of its row; texts lie in the arena. 1, 0 when it is absent or has ended,
 * -1. */
int run_glance_find(struct store *store, int64_t run, struct arena *arena, struct run_glance *out,
	struct error *err);

#endif
