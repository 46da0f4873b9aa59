/* Replicas of a run: workers that hold, fetch or want a step and report so before their lease
 * expires. A lease keeps the step that its replica holds and the path from there
 * (storage/runs/step_keep.h). Renewing a lease touches only memory. A new replica, and one that
 * needs more than it reported before, are saved in the catalog before the reply; all other reports
 * are saved some seconds later. */
#ifndef STORAGE_RUNS_REPLICA_H
#define STORAGE_RUNS_REPLICA_H

#include "storage/runs/run.h"
#include "wire/replica_message.h"

struct replica_ref {
	struct run_ref run;
	struct span id;
};
/* Renews the lease and stores the report. *out is the whole answer. 1: it may be given; 0: only
 * after replica_save_call has succeeded; -1: no_bucket, no_run, no_step (the run does not have the
 * step that the replica holds), invalid, busy (too many replicas). */
int replica_put(struct store *store, const struct replica_ref *ref,
	const struct replica_message *report, struct arena *arena, struct replica_message *out,
	struct error *err);
/* Saves the replica's report in the catalog. */
struct call *replica_save_call(struct store *store, const struct replica_ref *ref);
/* Fails with not_found when the run has no such replica. */
int replica_find(struct store *store, const struct replica_ref *ref, struct arena *arena,
	struct replica_message *out, struct error *err);
/* Up to `limit` replicas, at least 1, whose ids follow `after`, in byte order. */
struct replica_scan {
	struct run_ref run;
	struct span after;
	size_t limit;
};
int replica_list(struct store *store, const struct replica_scan *scan, struct arena *arena,
	struct replica_list_message *out, struct error *err);
/* Fails with not_found when the run has no such replica. */
struct call *replica_remove_call(struct store *store, const struct replica_ref *ref);

/* One round of work behind the requests (storage/step_jobs/fleet_worker.h): notes leases that have
 * ended, saves reports and forgets replicas whose lease expired long ago. Blocks. */
int replica_tidy(struct store *store, struct error *err);

#endif
